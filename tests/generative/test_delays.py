"""What the data plane adds on a way through any fabric is what the plan predicts for it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import timing
from emulator.dataplane.delays import LinkDelay, link_delays
from emulator.spec.model import CUT_THROUGH, STORE_AND_FORWARD, SwitchSpec
from topologies.model import Fabric, Link, Role
from topologies.paths import Paths, links_of
from topologies.registry import build_fabric
from traffic.wire import wire_bytes

RATES = st.sampled_from(["10 Gbit/s", "25 Gbit/s", "40 Gbit/s", "100 Gbit/s", "400 Gbit/s"])
DELAYS = st.sampled_from(["0", "137 ns", "500 ns", "2 us"])
FRAMES = st.sampled_from([42, 60, 62, 74, 1_000, 4_154, 9_014])
MODES = st.sampled_from([STORE_AND_FORWARD, CUT_THROUGH])

many = settings(max_examples=80, deadline=None, derandomize=True)


@st.composite
def planes(draw: st.DrawFn, first_host: int = 1) -> dict[str, Any]:
    """A leaf-spine plane of four hosts with links of all rates; hosts may have slower links."""
    leaves = draw(st.sampled_from([1, 2, 4]))
    spines = draw(st.integers(1, 2))
    hosts = [(f"h{first_host + n}", f"leaf{n // (4 // leaves) + 1}") for n in range(4)]
    fabric = [(f"leaf{n + 1}", f"spine{m + 1}") for n in range(leaves) for m in range(spines)]
    chosen = draw(st.lists(st.sampled_from([*hosts, *fabric]), unique=True, max_size=4))
    return {
        "leaves": leaves,
        "spines": spines,
        "hosts_per_leaf": 4 // leaves,
        "host_link": {"rate": draw(RATES), "delay": draw(DELAYS)},
        "fabric_link": {"rate": draw(RATES), "delay": draw(DELAYS)},
        "links": [{"between": list(pair), "rate": draw(RATES)} for pair in chosen],
    }


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """One plane or two."""
    front = draw(planes())
    if draw(st.booleans()):
        return build_fabric({"kind": "leaf-spine"} | front)
    back = draw(planes()) | {"links": []}
    return build_fabric({"kind": "front-back", "front": front, "back": back})


def ways(fabric: Fabric) -> list[tuple[tuple[int, ...], tuple[Link, ...], tuple[int, int]]]:
    """Every path of every ordered pair of hosts in every plane: ports, links, destination."""
    paths = Paths(fabric)
    found = []
    for src, plane in fabric.attachment:
        for dst, other in fabric.attachment:
            if plane != other or src == dst:
                continue
            for path in paths.between(src, dst, plane):
                links = tuple(fabric.links[number] for number in links_of(fabric, path))
                found.append((path, links, fabric.attachment[dst, plane]))
    return found


def added_ns(
    fabric: Fabric, delays: dict[int, LinkDelay], path: tuple[int, ...], frame: int,
    where: tuple[int, int],
) -> int:  # fmt: skip
    """What all links of a path add to a frame."""
    return sum(delays[fabric.port(port).peer].of(frame, *where) for port in path)


def slack_ns(links: tuple[Link, ...], emulated: list[int], frame: int) -> float:
    """Rounding: half a ns for what is fixed and half for the rest, half a ps for each byte."""
    inexact = [link for link in links if 8 * 10**12 % emulated[link.id]]
    return len(links) + len(inexact) * 0.0005 * wire_bytes(frame)


def undecided(fabric: Fabric, links: tuple[Link, ...], path: tuple[int, ...]) -> bool:
    """Whether a switch on the way has equal-cost egresses of which only some are faster."""
    for port, before in zip(path[1:], links[:-1], strict=True):
        node = fabric.by_name[fabric.port(port).node]
        towards = fabric.by_name[fabric.port(fabric.port(port).peer).node]
        peers = {
            other: fabric.by_name[fabric.port(other.peer).node]
            for other in fabric.ports_of[node.name]
        }
        alike = [
            other
            for other, peer in peers.items()
            if peer is towards or peer.role is towards.role is Role.SPINE
        ]
        rates = {fabric.link_of(other).rate_bps > before.rate_bps for other in alike}
        if len(rates) > 1:
            return True
    return False


@many
@given(fabrics(), MODES, FRAMES, st.sampled_from([1.0, 10.0, 3.7]))
def test_the_sum_over_a_path_is_the_prediction(
    fabric: Fabric, mode: str, frame: int, dilation: float
) -> None:
    """To the nanosecond per hop, for every pair and path, mixed rates and dilation included."""
    switch = SwitchSpec(mode, 450)
    emulated = [round(link.rate_bps / dilation) for link in fabric.links]
    delays = link_delays(fabric, emulated, switch, dilation)
    for path, links, where in ways(fabric):
        added = added_ns(fabric, delays, path, frame, where)
        exact = timing.one_way_ns(links, switch, frame) * dilation
        slack = slack_ns(links, emulated, frame)
        if mode == STORE_AND_FORWARD or not undecided(fabric, links, path):
            assert abs(added - exact) <= slack
        else:
            whole = timing.one_way_ns(links, SwitchSpec(STORE_AND_FORWARD, 450), frame) * dilation
            assert exact - slack <= added <= whole + slack


@many
@given(fabrics(), MODES)
def test_frames_that_follow_each_other_stay_in_order(fabric: Fabric, mode: str) -> None:
    """At line rate a short frame never comes out of a link before the long one ahead of it."""
    emulated = [link.rate_bps for link in fabric.links]
    delays = link_delays(fabric, emulated, SwitchSpec(mode), 1.0)
    for path, links, where in ways(fabric):
        for port, link in zip(path, links, strict=True):
            delay = delays[fabric.port(port).peer]
            for ahead, behind in pairwise([9_014, 60, 4_154, 62, 42]):
                spacing = timing.serialisation_ns(ahead, link.rate_bps)
                assert delay.of(behind, *where) + spacing >= delay.of(ahead, *where) - 1
