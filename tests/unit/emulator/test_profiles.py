"""The profiles that are shipped: what each one sets, and that it fits any example."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.plan import make_plan
from emulator.spec import profiles
from emulator.spec.dump import to_yaml
from emulator.spec.load import load
from tests.unit.emulator.spec_samples import EXAMPLES, ROOT, experiment, from_text
from topologies.errors import UnknownNameError
from topologies.pause import settled

NAMES = ("ethernet", "infiniband", "roce-ecn", "rocev2", "ultra-ethernet")
FILES = sorted(EXAMPLES.glob("*.yaml"))
GIGABIT = 1_000_000_000


def test_these_are_all() -> None:
    """And each says what it is."""
    assert tuple(profiles.names()) == NAMES
    for name in NAMES:
        assert len(profiles.description(name)) > 80


def test_an_unknown_one_is_an_error_that_lists_them() -> None:
    """With the one that was probably meant."""
    with pytest.raises(UnknownNameError, match="did you mean 'rocev2'"):
        profiles.read_profile("roce-v2")


@pytest.mark.parametrize("name", NAMES)
def test_what_a_profile_sets_survives_the_round_trip(name: str) -> None:
    """Written out and read again."""
    x = experiment(profile=name)
    assert from_text(to_yaml(x)) == x


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_example_can_be_planned_under_every_profile(name: str, path: Path) -> None:
    """What an example sets itself goes with all of them."""
    plan = make_plan(load(path, {"profile": name}))
    assert plan.experiment.profile == name


def test_rocev2_marks_long_before_it_pauses() -> None:
    """So rate control comes first."""
    x = experiment(profile="rocev2")
    (rule,) = x.ecn
    (pause,) = x.pfc
    assert (rule.tc, pause.tc) == (3, 3)
    assert pause.alpha is not None
    assert rule.kmax_bytes <= pause.alpha * x.fabric.buffer_bytes
    assert x.transport.dcqcn is not None


@pytest.mark.parametrize("rate", ["100 Gbit/s", "200 Gbit/s"])
def test_infiniband_holds_at_most_what_credits_can_tell(rate: str) -> None:
    """128 KiB per link and class, at the delays of the examples."""
    fabric = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2,
              "host_link": {"rate": rate, "delay": "300 ns"},
              "fabric_link": {"rate": rate, "delay": "300 ns"}}  # fmt: skip
    x = experiment(profile="infiniband", fabric=fabric)
    assert (x.transport.kind, x.switch.mode, x.ecn) == ("credit", "cut-through", ())
    for classes in settled(x.pfc, x.fabric, x.switch.latency_ns).values():
        for rule in classes.values():
            assert rule.xoff_bytes is not None
            assert rule.headroom_bytes is not None
            assert rule.xoff_bytes + rule.headroom_bytes <= 128 * 1024
            assert rule.response_ns == 0


def test_infiniband_makes_every_class_of_the_workloads_lossless() -> None:
    """Whichever they are."""
    flows = [{"kind": "background", "name": f"c{tc}", "pattern": "pairs", "pairs": [["h1", "h3"]],
              "bytes": "1 MB", "class": tc} for tc in (1, 4)]  # fmt: skip
    x = experiment(profile="infiniband", workloads=flows)
    assert {rule.tc for rule in x.pfc} == {1, 4}


def test_ultra_ethernet_cuts_at_one_product_and_later_at_the_last_hop() -> None:
    """And marks from a fifth to four fifths of it: 150 KB at 100 Gbit/s."""
    x = experiment(profile="ultra-ethernet")
    assert [(rule.threshold_bytes, rule.ports) for rule in x.trim] == [
        (150_000, "switches"), (225_000, "last-hop"),
    ]  # fmt: skip
    assert [(rule.kmin_bytes, rule.kmax_bytes, rule.pmax) for rule in x.ecn] == [
        (30_000, 120_000, 1.0)
    ]
    assert x.pfc == ()
    assert x.transport.uet is not None
    assert x.transport.uet.entropies == 64


def test_the_page_has_a_section_for_each_of_the_new_ones() -> None:
    """With its sources and what it leaves out."""
    text = (ROOT / "docs" / "profiles.md").read_text(encoding="utf-8")
    for name in ("rocev2", "infiniband", "ultra-ethernet"):
        section = text.split(f"\n## `{name}`\n")[1].split("\n## ")[0]
        assert "ources**" in section or "sources**" in section
        assert "**Leaves out**" in section
