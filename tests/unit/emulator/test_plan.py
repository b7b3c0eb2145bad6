"""The plan: numbers that hold, text that a person can read, JSON that a program can."""

from __future__ import annotations

import json

import pytest

from controller.core.routing import Routing
from controller.policies.registry import build_policy
from emulator import timing
from emulator.pairs import pair_classes, pair_times
from emulator.plan import Plan, make_plan, to_dict
from emulator.plan_text import render
from emulator.spec.model import Experiment, SwitchSpec
from emulator.tables import aligned
from emulator.transport import transport_settings
from tests.unit.emulator.spec_samples import FABRIC, FLOW, experiment


@pytest.fixture(scope="module")
def small() -> Plan:
    """The plan of a small experiment on a machine of known capacity."""
    return make_plan(experiment(profile="roce-ecn", probes={}), 45_000)


def test_links_stand_with_their_emulated_values(small: Plan) -> None:
    """Rates are divided and delays multiplied by the dilation, counts stay."""
    scale = small.scaling.scale
    assert [(entry.ends, entry.count) for entry in small.links] == [
        ("host-leaf", 4),
        ("leaf-spine", 4),
    ]
    for entry in small.links:
        assert entry.emulated_bps == scale.emulated_bps(entry.rate_bps)
        assert entry.emulated_delay_ns == scale.wall_ns(entry.delay_ns)


def test_times_are_those_of_the_timing_module(small: Plan) -> None:
    """The prediction that a run is held against is the one that the plan shows."""
    x = small.experiment
    for entry in small.pairs:
        expected = timing.one_way_ns(entry.pair.links, x.switch, 4154)
        assert entry.one_way_ns == pytest.approx(expected)
    for entry in small.probe_pairs:
        expected = timing.one_way_ns(entry.pair.links, x.switch, 130)
        assert entry.one_way_ns == pytest.approx(expected)
        assert entry.round_trip_ns == pytest.approx(2 * expected)


def test_no_probes_no_probe_times() -> None:
    """What is not sent is not predicted."""
    assert make_plan(experiment(), 45_000).probe_pairs == ()


def test_resources_are_counted(small: Plan) -> None:
    """One namespace for the switches and one per host, a pair per link, eight queues per port."""
    counts = small.resources
    assert (counts.namespaces, counts.bridges, counts.veth_pairs) == (5, 4, 8)
    assert counts.queues == 16 * 8
    assert counts.longest_interface == "spine1-eth1"


@pytest.mark.parametrize("policy", ["ecmp", "static", "wcmp"])
def test_rules_are_those_that_the_controller_will_install(policy: str) -> None:
    """The count comes from the controller's own routing, for every policy."""
    x = experiment(routing={"policy": policy})
    routing = Routing(x.fabric, build_policy({"policy": policy}, x.fabric), x.seed)
    installed = sum(len(routing.rules(node)) for node in x.fabric.switches)
    assert make_plan(x, 45_000).resources.rules == installed


def test_ports_that_cut_packets_are_a_step_where_there_are_any(small: Plan) -> None:
    """With the classes that are cut and those in which headers go on."""
    rules = [{"classes": [3]}, {"classes": [2], "to_class": 6, "ports": "leaf1"}]
    found = make_plan(experiment(trim=rules), 45_000)
    (step,) = [step for step in found.steps if step.what == "ports that cut packets"]
    assert step.count == 12
    assert step.detail == "class 2, on in class 6, class 3, on in class 5"
    assert not [step for step in small.steps if "cut" in step.what]


def test_expected_wall_time_is_dilated_model_time(small: Plan) -> None:
    """Wall time is model time times dilation, and no less than the bound."""
    assert small.expected_wall_ns == small.expected_model_ns * small.scaling.dilation.value
    assert small.expected_model_ns >= small.scaling.estimate.least_duration_ns


def _transport(x: Experiment) -> tuple[int | None, int]:
    times = [pair_times(pair, x.switch, 4154) for pair in pair_classes(x.fabric)]
    settings = transport_settings(x, times)
    return settings.window_packets, settings.retransmit_timeout_ns


def test_automatic_window_is_two_bandwidth_delay_products() -> None:
    """The smallest number of packets that covers twice the longest path's product."""
    x = experiment(transport={"window": "auto"})
    window, _ = _transport(x)
    bdp_bytes = max(pair_times(p, x.switch, 4154).bdp_bytes for p in pair_classes(x.fabric))
    assert window is not None
    assert (window - 1) * 4178 < 2 * bdp_bytes <= window * 4178


@pytest.mark.parametrize(("written", "window"), [("unlimited", None), (7, 7)])
def test_windows_as_written(written: object, window: int | None) -> None:
    """A number is taken as it is; unlimited is no limit."""
    assert _transport(experiment(transport={"window": written}))[0] == window


def test_automatic_timeout_outlasts_a_full_buffer() -> None:
    """A packet behind a full buffer is late, not lost: 16 MB take 1.28 ms at 100 Gbit/s."""
    assert _transport(experiment())[1] > 1_280_000
    assert _transport(experiment(transport={"retransmit_timeout": "3 us"}))[1] == 3_000


def test_a_slower_plane_that_nobody_uses_does_not_widen_the_window() -> None:
    """Windows follow the paths that workloads use."""
    slow = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2, "fabric_link": {"delay": "1 ms"}}
    quick = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    fabric = {"kind": "front-back", "front": quick, "back": slow}
    keys = {"fabric": fabric, "transport": {"window": "auto"}}
    windows = [
        make_plan(experiment(workloads=[{**FLOW, "plane": plane}], **keys), 45_000)
        .transport.window_packets for plane in (1, 2)
    ]  # fmt: skip
    assert windows[0] is not None
    assert windows[1] is not None
    assert windows[0] < 100 < windows[1]


def test_text_shows_target_units_first(small: Plan) -> None:
    """100 Gbit/s stands before what the kernel is told, and every section is there."""
    text = render(small)
    row = next(line for line in text.splitlines() if "host-leaf" in line)
    assert row.index("100 Gbit/s") < row.index("200 Mbit/s")
    for title in ("Scale", "Links", "Times in the idle fabric", "Traffic", "Steps", "Settings"):
        assert f"\n{title}" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_text_says_where_every_setting_comes_from(small: Plan) -> None:
    """Default, profile and file are told apart."""
    origins = {
        line.split()[0]: line for line in render(small).splitlines() if line.startswith("  ")
    }
    assert origins["budget"].endswith("default")
    assert origins["transport.control"].endswith("profile roce-ecn")
    assert "exp.yaml:" in origins["fabric.leaves"]
    assert "exp.yaml:" in origins["workloads[0].bytes"]


def test_json_holds_the_same_numbers(small: Plan) -> None:
    """Programs get nanoseconds, bit/s and bytes."""
    data = json.loads(json.dumps(to_dict(small)))
    assert data["dilation"]["value"] == small.scaling.dilation.value
    assert data["unloaded"][0]["one_way_ns"] == pytest.approx(small.pairs[0].one_way_ns)
    assert data["links"][0]["rate_bps"] == 100_000_000_000
    assert data["resources"]["bridges"] == 4
    assert data["experiment"]["transport"]["control"] == "dcqcn"
    assert data["capacity_measured"] is True


@pytest.mark.parametrize(
    ("keys", "capacity", "note"),
    [
        ({}, None, "this machine has not been measured; 45,000 packets/s are assumed"),
        ({"dilation": 100}, 45_000, "dilation 100 asks for too many packets/s; 200 would do"),
        ({"workloads": [{**FLOW, "bytes": "1 GB"}], "shrink": 1, "budget": "1 s"}, 45_000,
         "the run exceeds its budget (given; about 61 s of wall time)"),
        ({"ecn": {"kmin": "1 KB", "kmax": "2 KB", "pmax": 1}}, 45_000, "senders do not react"),
        ({"transport": {"overrides": {"g": 0.1}}}, 45_000, "transport.overrides has no effect"),
        ({"workloads": [{**FLOW, "bytes": "1 MB"}], "shrink": 50}, 45_000,
         "flow: shrunk messages of 20,000 B are below one bandwidth-delay product"),
        ({"workloads": [{**FLOW, "bytes": "1 B", "count": 50_000}], "dilation": 250}, 1_000,
         "packets/s on average exceed the 500"),
    ],
)  # fmt: skip
def test_notes_warn_before_a_run_disappoints(
    keys: dict[str, object], capacity: float | None, note: str
) -> None:
    """What would make a run invalid, slow or misleading is said beforehand."""
    plan = make_plan(experiment(**keys), capacity)  # type: ignore[arg-type]
    assert any(note in line for line in plan.notes), plan.notes


def test_a_plan_without_surprises_has_no_notes() -> None:
    """Notes are for what matters."""
    x = experiment(profile="roce-ecn", workloads=[{**FLOW, "bytes": "100 MB"}])
    assert make_plan(x, 45_000).notes == ()


def test_a_fabric_of_one_host_pair_below_a_leaf_has_a_plan() -> None:
    """The smallest fabric works throughout."""
    x = experiment(
        fabric={"kind": "leaf-spine", "leaves": 1, "spines": 0, "hosts_per_leaf": 2},
        workloads=[{**FLOW, "pairs": [["h1", "h2"]]}],
    )
    plan = make_plan(x, 45_000)
    assert [entry.pair.switches for entry in plan.pairs] == [1]
    assert "below one leaf" in render(plan)


def test_cut_through_shows_in_the_times() -> None:
    """The same fabric is quicker, by what the switches need not wait for."""
    slow, fast = (
        make_plan(experiment(switch={"mode": mode}), 45_000).pairs[-1].one_way_ns
        for mode in ("store-and-forward", "cut-through")
    )
    assert slow - fast == pytest.approx(3 * (4178 - 64) * 8 / 100)


def test_columns_line_up() -> None:
    """Left by default, right where asked, and the last column is not padded."""
    assert aligned([("a", "1", "x"), ("bbb", "22", "yyy")], right=(1,)) == [
        "  a     1  x",
        "  bbb  22  yyy",
    ]


def test_switch_settings_default_to_no_latency() -> None:
    """The dataclass alone adds nothing; the file's default of 500 ns stands in keys.py."""
    assert SwitchSpec().latency_ns == 0
    assert experiment(fabric=FABRIC).switch.latency_ns == 500
