"""From tasks to what the engine runs: connections, delays, frames, probes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from emulator import timing
from emulator.assembly import CONTROL_DSCP, Assembler, Pace, delay_of, entropy, port_of
from emulator.pairs import pair_times
from emulator.plan import make_plan
from emulator.run.traffic import route_of
from emulator.spec.model import Experiment, SwitchSpec
from emulator.transport import TransportSettings
from tests.unit.emulator.spec_samples import FLOW, experiment
from topologies.addressing import host_ip, host_mac
from topologies.errors import SpecError
from topologies.model import Link
from traffic import wire
from traffic.dcqcn_params import PAPER
from traffic.nic.connection import QP_BASE
from traffic.nic.engine import PROBE_QP_BASE
from traffic.tasks import Compute, Flow

PACE = Pace(1_000, 1_500)
SETTINGS = TransportSettings(48, 99_000)
PROBES = {"pairs": "all-leaves", "rate": "100000 /s", "classes": [0, 3], "size": "126 B"}
FULL = wire.data_frame_bytes(4096)


def assembler(
    chosen: Experiment | None = None, pace: Pace = PACE, delays_in_path: bool = False
) -> Assembler:
    """An assembler of the small sample experiment."""
    chosen = chosen or experiment()
    return Assembler(chosen, route_of(chosen), pace, SETTINGS, delays_in_path)


def flow(number: int, src: str = "h1", dst: str = "h3", size: int = 10_000, qp: int = 0) -> Flow:
    """A flow of class 3."""
    return Flow(number, "job", src, dst, size, 26, "t", qp=qp)


def test_flows_of_one_key_share_a_connection() -> None:
    """Another queue pair, or another direction, is another connection."""
    plan = assembler().plan([flow(1), flow(2), flow(3, qp=1), flow(4, "h3", "h1")])
    assert len(plan.connections) == 3
    assert [one.number for one in plan.connections] == [0, 1, 2]
    assert plan.connection_of[flow(1).connection] is plan.connection_of[flow(2).connection]
    assert set(plan.connection_of) == {flow(1).connection, flow(1, qp=1).connection,
                                       flow(1, "h3", "h1").connection}  # fmt: skip


def test_a_connection_runs_between_the_ports_of_its_hosts() -> None:
    """With their addresses, the line rate of the sender, and an entropy from seed and key."""
    chosen = experiment()
    ends = assembler(chosen).endpoints(flow(1).connection, 26)
    fabric = chosen.fabric
    assert (fabric.port(ends.src_port).name, fabric.port(ends.dst_port).name) == (
        "h1-eth1",
        "h3-eth1",
    )
    address = ends.address
    assert (address.src_ip, address.dst_ip) == (host_ip(fabric, "h1", 1), host_ip(fabric, "h3", 1))
    assert (address.src_mac, address.dst_mac) == (
        host_mac(fabric, "h1", 1),
        host_mac(fabric, "h3", 1),
    )
    assert (address.dscp, ends.rate_bps) == (26, fabric.links[0].rate_bps)
    assert address.entropy == entropy(chosen.seed, "job", 1, "h1", "h3", 0)


def test_entropy_repeats_and_spreads() -> None:
    """14 bits that depend on seed and every part of the key."""
    keys = [(seed, "job", 1, "h1", "h3", qp) for seed in (7, 8) for qp in range(500)]
    numbers = [entropy(*key) for key in keys]
    assert numbers == [entropy(*key) for key in keys]
    assert max(numbers) <= wire.ENTROPY_MASK
    assert len(set(numbers)) > 950
    assert len({number & 63 for number in numbers}) == 64


@pytest.mark.parametrize("mode", ["store-and-forward", "cut-through"])
@pytest.mark.parametrize("frame", [wire.ACK_FRAME_BYTES, wire.CNP_FRAME_BYTES, 1_000, FULL])
def test_a_hold_is_the_unloaded_one_way_time(mode: str, frame: int) -> None:
    """For frames of any length, to the nanosecond: the emulation itself adds nothing here."""
    chosen = replace(experiment(), switch=SwitchSpec(mode, 450))
    for dst in ("h2", "h3"):
        links = route_of(chosen)("h1", dst, 1, 0xC000)
        hold = delay_of(links, chosen, 0.0).hold_ns(frame)
        assert hold == pytest.approx(timing.one_way_ns(links, chosen.switch, frame), abs=1)


def test_links_of_different_rates_are_held_for_exactly() -> None:
    """A slow host link and a fast fabric link."""
    links = [Link(n, "a", "b", rate * 10**9, 700) for n, rate in enumerate((25, 100, 400, 10))]
    chosen = experiment()
    for frame in (62, 500, FULL):
        exact = timing.one_way_ns(links, chosen.switch, frame)
        assert delay_of(links, chosen, 0.0).hold_ns(frame) == pytest.approx(exact, abs=1)


def test_what_the_emulation_takes_is_taken_off_the_hold() -> None:
    """Once for each switch on the way."""
    chosen = experiment()
    links = route_of(chosen)("h1", "h3", 1, 0xC000)
    whole, less = delay_of(links, chosen, 0.0), delay_of(links, chosen, 100.0)
    assert whole.hold_ns(FULL) - less.hold_ns(FULL) == 300
    assert delay_of(links, chosen, 1e6).hold_ns(FULL) == 0


UNLIKE = {
    "kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 1,
    "links": [
        {"between": ["h1", "leaf1"], "rate": "200 Gbit/s", "delay": "2 us"},
        {"between": ["h2", "leaf2"], "rate": "50 Gbit/s", "delay": "700 ns"},
    ],
}  # fmt: skip


def test_the_way_back_is_held_for_by_itself() -> None:
    """Cut-through over links of different rates does not take the same time both ways."""
    base = experiment(fabric=UNLIKE, workloads=[FLOW | {"pairs": [["h1", "h2"]]}], probes=PROBES)
    chosen = replace(base, switch=SwitchSpec("cut-through", 450))
    ends = assembler(chosen).endpoints(("job", 1, "h1", "h2", 0), 26)
    links = route_of(chosen)("h1", "h2", 1, ends.address.sport)
    for frame in (62, FULL):
        exact = timing.one_way_ns(links[::-1], chosen.switch, frame)
        assert ends.back.hold_ns(frame) == pytest.approx(exact, abs=1)
    assert ends.back.hold_ns(FULL) != ends.path.hold_ns(FULL)


def test_with_delays_in_the_path_only_the_last_link_is_held_for() -> None:
    """Its propagation and the frame's line time, at either end; what the emulation takes is not."""
    chosen = experiment(fabric=UNLIKE, workloads=[FLOW | {"pairs": [["h1", "h2"]]}], probes=PROBES)
    maker = assembler(chosen, replace(PACE, software_ns=1e6), delays_in_path=True)
    ends = maker.endpoints(("job", 1, "h1", "h2", 0), 26)
    for frame in (62, FULL):
        line_ns = wire.wire_bytes(frame) * 8
        assert ends.path.hold_ns(frame) == round(700 + line_ns / 50)
        assert ends.back.hold_ns(frame) == round(2_000 + line_ns / 200)
    streams = {(one.src, one.dst): one for one in maker.streams(chosen.probes)}  # type: ignore[arg-type]
    assert streams["h1", "h2"].path == ends.path
    assert streams["h2", "h1"].path == ends.back


def test_the_round_trip_is_the_one_that_the_plan_prints() -> None:
    """Data there and ACK back, by the engine's holds and by `fabriclab plan`."""
    chosen = experiment()
    path = assembler(chosen).endpoints(flow(1).connection, 26).path
    (far,) = (entry for entry in make_plan(chosen, 1e5).pairs if entry.pair.switches == 3)
    times = pair_times(far.pair, chosen.switch, FULL)
    assert path.hold_ns(FULL) + path.hold_ns(wire.ACK_FRAME_BYTES) == pytest.approx(
        times.round_trip_ns, abs=2
    )


def test_parameters_are_those_of_the_experiment() -> None:
    """Payload, window, timeout, rate control, rhythm."""
    chosen = experiment(
        profile="roce-ecn", transport={"control": "dcqcn", "params": "paper", "payload": "1024 B"}
    )
    parameters = assembler(chosen).parameters()
    assert parameters.payload_bytes == 1024
    assert (parameters.window_packets, parameters.rto_ns) == (48, 99_000)
    assert parameters.dcqcn == PAPER
    assert (parameters.control_dscp, wire.traffic_class(CONTROL_DSCP)) == (CONTROL_DSCP, 6)
    assert (parameters.tick_ns, parameters.lookahead_ns) == (1_000, 1_500)


def test_every_host_port_has_a_nic() -> None:
    """At its own rate; switches have none."""
    chosen = experiment()
    nics = assembler(chosen).nics()
    names = {chosen.fabric.port(index).name for index in nics}
    assert names == {f"h{n}-eth1" for n in range(1, 5)}
    assert {nic.rate_bps for nic in nics.values()} == {chosen.fabric.links[0].rate_bps}


def test_a_plan_has_the_frames_of_all_messages() -> None:
    """A template for every rest of a message, and for the probes."""
    chosen = experiment(probes=PROBES)
    maker = assembler(chosen)
    streams = maker.streams(chosen.probes)  # type: ignore[arg-type]
    tasks = [flow(1, size=10_000), flow(2, size=4096), Compute(3, "job", "gpu", 10, "c")]
    plan = maker.plan(tasks, streams)
    (one,) = plan.connections
    assert set(one.templates.tails) == {10_000 - 2 * 4096, 4096}
    assert all(0 <= stream.template < len(plan.bank) for stream in streams)
    assert len({stream.template for stream in streams}) == len(streams)
    assert len(plan.schedule.tasks) == 3


def test_probes_run_between_all_leaves_in_all_their_classes() -> None:
    """Both ways, each stream with its own queue pair, class, size and interval."""
    chosen = experiment(probes=PROBES)
    streams = assembler(chosen).streams(chosen.probes)  # type: ignore[arg-type]
    assert [(one.src, one.dst, one.traffic_class) for one in streams] == [
        ("h1", "h3", 0), ("h1", "h3", 3), ("h3", "h1", 0), ("h3", "h1", 3),
    ]  # fmt: skip
    for number, one in enumerate(streams):
        assert one.number == number
        assert one.address.dest_qp == PROBE_QP_BASE + number
        assert wire.traffic_class(one.address.dscp) == one.traffic_class
        assert wire.data_frame_bytes(one.payload_bytes) == 126
        assert one.interval_ns == 10_000
        assert 0 <= one.first_ns < 10_000
        assert one.next_ns == one.first_ns
    assert len({one.first_ns for one in streams}) == 4


def send_times(count: int, seed: int = 7, arrivals: str = "periodic") -> list[list[float]]:
    """When each stream sends its first probes."""
    chosen = experiment(probes=PROBES | {"arrivals": arrivals}, seed=seed)
    assert chosen.probes is not None
    found = []
    for one in assembler(chosen).streams(chosen.probes):
        times = []
        for _ in range(count):
            times.append(one.next_ns)
            one.send(0)
        found.append(times)
    return found


@pytest.mark.parametrize("arrivals", ["periodic", "poisson"])
def test_probes_repeat_with_the_seed(arrivals: str) -> None:
    """The same phases and intervals again; other ones for another seed."""
    assert send_times(5, seed=7, arrivals=arrivals) == send_times(5, seed=7, arrivals=arrivals)
    assert send_times(5, seed=7, arrivals=arrivals) != send_times(5, seed=8, arrivals=arrivals)


def test_probes_are_periodic_unless_random_ones_are_wanted() -> None:
    """Equal gaps of 1 over the rate, from a phase of each stream's own."""
    for times in send_times(20):
        gaps = [after - before for before, after in pairwise(times)]
        assert gaps == pytest.approx([10_000] * 19)


def test_random_probes_make_a_poisson_process() -> None:
    """Gaps, the first one too, are exponential: mean, deviation, and the share below the mean."""
    count = 4000
    for times in send_times(count, arrivals="poisson"):
        gaps = np.diff([0.0, *times])
        assert gaps.mean() == pytest.approx(10_000, rel=4 / count**0.5)
        assert gaps.std() == pytest.approx(10_000, rel=8 / count**0.5)
        assert (gaps < 10_000).mean() == pytest.approx(1 - 1 / np.e, abs=2 / count**0.5)
        assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 4 / count**0.5
    firsts = [times[0] for times in send_times(1, arrivals="poisson")]
    assert len(set(firsts)) == len(firsts)


def test_queue_pairs_of_connections_and_probes_do_not_meet() -> None:
    """There is room for four million connections below the probes."""
    assert QP_BASE + 2 * 4_000_000 + 1 < PROBE_QP_BASE <= wire.QP_MASK


def test_a_host_that_is_not_in_a_plane_has_no_port_there() -> None:
    """A mistake of ours, not of the user: checked when the experiment was read."""
    chosen = experiment(workloads=[FLOW])
    assert port_of(chosen.fabric, "h2", 1).name == "h2-eth1"
    with pytest.raises(KeyError):
        port_of(chosen.fabric, "h2", 2)


@pytest.mark.parametrize("mtu", [1_500, 1_501, 1_502, 1_503])
def test_the_largest_probe_fits_the_mtu_with_its_pad(mtu: int) -> None:
    """RoCEv2 pads to a multiple of 4, which must not make a frame that no interface sends."""
    fabric = {
        "kind": "leaf-spine",
        "leaves": 2,
        "spines": 1,
        "hosts_per_leaf": 1,
        "mtu": f"{mtu} B",
    }
    whole = wire.data_frame_bytes(wire.max_payload_bytes(mtu))
    flow_of_two = FLOW | {"pairs": [["h1", "h2"]]}
    for size in range(whole - 4, whole + 1):
        chosen = experiment(
            fabric=fabric, workloads=[flow_of_two], probes=PROBES | {"size": f"{size} B"}
        )
        for one in assembler(chosen).streams(chosen.probes):  # type: ignore[arg-type]
            assert wire.data_frame_bytes(one.payload_bytes) <= mtu + wire.ETHERNET_BYTES
    with pytest.raises(SpecError, match="within the MTU"):
        experiment(
            fabric=fabric, workloads=[flow_of_two], probes=PROBES | {"size": f"{whole + 1} B"}
        )
