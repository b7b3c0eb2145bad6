"""From a file to an experiment: every section, its defaults, and the errors that it can give."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from emulator.spec import load
from emulator.spec.dump import to_document
from emulator.spec.load import load_fabric
from emulator.spec.model import UNLIMITED
from tests.unit.emulator.spec_samples import DESIGN_EXAMPLE, EXAMPLES, experiment, from_text
from topologies.errors import SpecError, UnknownNameError
from topologies.settings import ClassRule, EcnRule

TRACE = EXAMPLES / "data" / "azure_conv_excerpt.csv"


def _error(overrides: dict[str, str] | None = None, **keys: Any) -> str:
    with pytest.raises(SpecError) as caught:
        experiment(overrides, **keys)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def design_file(tmp_path: Path) -> Path:
    """The design's example in a folder of its own, with its trace beside it."""
    shutil.copy(TRACE, tmp_path / "azure_conv.csv")
    path = tmp_path / "exp.yaml"
    path.write_text(DESIGN_EXAMPLE)
    return path


def test_the_designs_example_loads(design_file: Path) -> None:
    """The example that is normative for the format gives what it says."""
    x = load(design_file)
    assert (x.name, x.seed, x.clock) == ("training-beside-inference", 7, "live")
    assert (x.dilation, x.shrink, x.budget_ns) == (None, None, 60_000_000_000)
    assert len(x.fabric.hosts) == 16
    assert x.ecn == (EcnRule(3, 400_000, 1_600_000, 0.2, "switches"),)
    assert [spec.name for spec in x.workloads] == ["job-a", "chat"]
    assert x.probes is not None
    assert (x.probes.rate_per_s, x.probes.classes) == (1000.0, (0, 3))
    assert x.transport.control == "dcqcn"


def test_the_designs_other_lines_load_as_well(design_file: Path) -> None:
    """Its profile, and the other clock."""
    assert load(design_file, {"profile": "rocev2"}).transport.control == "dcqcn"
    assert load(design_file, {"clock": "virtual"}).clock == "virtual"


def test_the_smallest_file_gets_every_default() -> None:
    """Only a fabric and something to do have to be written."""
    x = from_text(
        "fabric: {kind: leaf-spine, leaves: 1, spines: 0, hosts_per_leaf: 2}\n"
        "workloads: [{kind: background, bytes: 1 MB}]\n"
    )
    assert (x.name, x.seed, x.profile) == ("exp", 1, "ethernet")
    assert (x.ecn, x.probes, x.pcap, x.duration_ns) == ((), None, (), None)
    assert (x.transport.control, x.transport.window) == ("none", UNLIMITED)
    assert x.transport.retransmit_timeout_ns is None
    assert x.routing.section == {"policy": "ecmp"}
    assert (x.switch.mode, x.switch.latency_ns) == ("store-and-forward", 500)


@pytest.mark.parametrize(
    ("mtu", "payload"),
    [("4200 B", 4096), ("4096 B", 4048), ("9000 B", 4096), ("1500 B", 1452), ("1503 B", 1452)],
)
def test_automatic_payload_is_the_largest_that_fits(mtu: str, payload: int) -> None:
    """A multiple of 4, at most 4096, within the MTU less 48 bytes of headers."""
    x = experiment({"fabric.mtu": mtu})
    assert x.transport.payload_bytes == payload
    assert payload + 48 <= x.fabric.mtu_bytes


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("payload", "4160 B", "does not fit: the MTU is 4200 B and headers take 44 B"),
        ("payload", "1001 B", "must be a multiple of 4 from 64 to 4096"),
        ("payload", "8 B", "must be a multiple of 4 from 64 to 4096"),
        ("window", "0", "must be at least 1"),
        ("window", "none", "is not a known window"),
        ("kind", "tcp", "is not a known transport"),
        ("control", "timely", "is not a known control of go-back-n"),
        ("params", "hpc", "did you mean 'hpcc'?"),
        ("retransmit_timeout", "0", "must be above 0"),
        ("overrides", "{gg: 1}", "transport.overrides.gg: 'gg' is not a known key"),
        ("overrides", "{g: 2}", "must be at most 1"),
        ("overrides", "{cnp_interval: 50}", "has no unit"),
        ("overrides", "{clamp_target: 1}", "must be true or false"),
        ("windows", "4", "did you mean 'window'?"),
    ],
)
def test_transport_refuses(setting: str, value: str, message: str) -> None:
    """Every value of the transport section is checked."""
    assert message in _error({f"transport.{setting}": value})


def test_transport_values_are_read_in_their_units() -> None:
    """Window, timeout and single DCQCN parameters."""
    x = experiment(
        profile="roce-ecn",
        transport={
            "window": "unlimited",
            "retransmit_timeout": "2 ms",
            "payload": "1 KiB",
            "params": "paper",
            "overrides": {
                "additive": "80 Mbit/s",
                "g": "1/16",
                "increase_bytes": "none",
                "min_rate": "100 Mbit/s",
            },
        },
    )
    assert (x.transport.window, x.transport.retransmit_timeout_ns) == (UNLIMITED, 2_000_000)
    assert x.transport.payload_bytes == 1024
    dcqcn = x.transport.dcqcn
    assert dcqcn is not None
    assert (dcqcn.additive_bps, dcqcn.g, dcqcn.increase_bytes) == (80_000_000, 1 / 16, None)
    assert (dcqcn.min_rate_bps, dcqcn.cnp_interval_ns) == (100_000_000, 50_000)


def test_senders_that_do_not_react_have_no_dcqcn() -> None:
    """Without control there are no parameters to run."""
    assert experiment().transport.dcqcn is None


def test_thresholds_scale_with_the_rate_of_each_port() -> None:
    """4 KB per Gbit/s is 400 KB at 100 Gbit/s and 1.6 MB at 400 Gbit/s, as in the HPCC set."""
    x = experiment(
        profile="roce-ecn",
        fabric={
            "kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2,
            "fabric_link": {"rate": "400 Gbit/s"},
        },
    )  # fmt: skip
    by_port = {rule.ports: (rule.kmin_bytes, rule.kmax_bytes) for rule in x.ecn}
    assert by_port["leaf1-eth1"] == (400_000, 1_600_000)
    assert by_port["leaf1-eth3"] == (1_600_000, 6_400_000)
    assert by_port["spine1-eth1"] == (1_600_000, 6_400_000)
    assert all(rule.tc == 3 and rule.pmax == 0.2 for rule in x.ecn)
    assert len(x.ecn) == 8


def test_equal_rates_need_one_rule_per_class() -> None:
    """Rules stay readable where all ports are alike."""
    x = experiment(
        ecn={"kmin": "1 KB per Gbps", "kmax": "2KB/Gbit/s", "pmax": "50 %", "classes": [0, 3]}
    )
    assert x.ecn == (
        EcnRule(0, 100_000, 200_000, 0.5, "switches"),
        EcnRule(3, 100_000, 200_000, 0.5, "switches"),
    )


def test_absolute_thresholds_override_the_profiles_relative_ones() -> None:
    """The file's kmin replaces the profile's, whichever form each has."""
    x = experiment(profile="roce-ecn", ecn={"kmin": "300 KB"})
    assert x.ecn == (EcnRule(3, 300_000, 1_600_000, 0.2, "switches"),)


@pytest.mark.parametrize("written", ["none", None, []])
def test_marking_can_be_switched_off(written: object) -> None:
    """The word none, an empty value and an empty list all mean no marks."""
    x = experiment({"ecn": "none" if written == "none" else "[]" if written == [] else ""},
                   profile="roce-ecn", transport={"control": "none"})  # fmt: skip
    assert x.ecn == ()


def test_marked_classes_default_to_those_of_the_workloads() -> None:
    """A rule that names no class marks what is sent."""
    other = {"kind": "background", "name": "b", "bytes": "1 MB", "class": 5}
    flow = {"kind": "background", "name": "a", "bytes": "1 MB", "dscp": 10}
    x = experiment(workloads=[flow, other], ecn={"kmin": "1 KB", "kmax": "2 KB", "pmax": 1})
    assert [rule.tc for rule in x.ecn] == [1, 5]


@pytest.mark.parametrize(
    ("ecn", "message"),
    [
        ({"kmin": "400 KB", "kmax": "300 KB", "pmax": 0.2}, "is 300 KB at leaf1-eth1 (100 Gbit/s), "
         "below kmin, 400 KB"),
        ({"kmin": "16 MB", "kmax": "17 MB", "pmax": 0.2}, "has only 16 MB of buffer"),
        ({"kmin": "1 KB", "kmax": "5 GiB", "pmax": 0.2}, "is over 4 GiB"),
        ({"kmin": "1 KB", "pmax": 0.2}, "'kmax' is missing"),
        ({"kmin": "1 KB", "kmax": "2 KB"}, "'pmax' is missing"),
        ({"kmin": "1 KB", "kmax": "2 KB", "pmax": 0}, "must be above 0"),
        ({"kmin": "1 KB", "kmax": "2 KB", "pmax": 20}, "must be at most 1; write 20 %"),
        ({"kmin": "1 KB", "kmax": "2 KB", "pmax": 1, "classes": [8]}, "must be at most 7"),
        ({"kmin": "1 KB", "kmax": "2 KB", "pmax": 1, "classes": [3, 3]}, "stands twice"),
        ({"kmin": "1 KB", "kmax": "2 KB", "pmax": 1, "ports": "leaf9"}, "is not a known port"),
        ({"kmin": "1 Kbit", "kmax": "2 KB", "pmax": 1}, "is in bits, and a size is in bytes"),
        ("yes", "must be a mapping"),
    ],
)  # fmt: skip
def test_marking_refuses(ecn: object, message: str) -> None:
    """Impossible marking rules say what is wrong."""
    assert message in _error(ecn=ecn)


def test_reacting_senders_need_marks() -> None:
    """DCQCN on unmarked classes would do nothing, which nobody means."""
    message = _error({"ecn": "none"}, profile="roce-ecn")
    assert "transport.control: 'dcqcn' reacts to ECN marks, but no rule marks class 3" in message


def test_scheduler_entries_follow_the_defaults() -> None:
    """Classes that no entry names are served equally; entries come after them and win."""
    x = experiment(scheduler=[{"classes": [3], "priority": 0}, {"classes": [0], "weight": 4}])
    assert x.scheduler[:6] == tuple(ClassRule(tc, 1, 1, "all") for tc in (1, 2, 4, 5, 6, 7))
    assert x.scheduler[6:] == (ClassRule(3, 0, 1, "all"), ClassRule(0, 1, 4, "all"))


def test_scheduler_may_differ_between_ports() -> None:
    """An entry for some ports leaves the default of its class to the others."""
    x = experiment(scheduler=[{"classes": [3], "priority": 0, "ports": "leaf1"}])
    assert x.scheduler[:8] == tuple(ClassRule(tc, 1, 1, "all") for tc in range(8))
    assert x.scheduler[8:] == (ClassRule(3, 0, 1, "leaf1"),)


@pytest.mark.parametrize(
    ("buffers", "alphas"),
    [
        ({"alpha": "1/8"}, [0.125] * 8),
        ({"alpha": 8, "classes": [3]}, [1, 1, 1, 8, 1, 1, 1, 1]),
        ([{"classes": [0, 1], "alpha": 2}, {"classes": [7], "alpha": 0.5}],
         [2, 2, 1, 1, 1, 1, 1, 0.5]),
    ],
)  # fmt: skip
def test_buffers_give_each_class_its_alpha(buffers: object, alphas: list[float]) -> None:
    """One mapping or a list; the rest keeps the default."""
    rules = experiment(buffers=buffers).buffers
    assert [rule.tc for rule in rules] == list(range(8))
    assert [rule.alpha for rule in rules] == alphas


@pytest.mark.parametrize(
    ("section", "value", "message"),
    [
        ("buffers", {"alpha": 0}, "must be above 0"),
        ("buffers", {"alpha": 1000}, "must be at most 256"),
        ("buffers", {"alpha": 0.001}, "must be at least 1/256"),
        (
            "buffers",
            [{"classes": [1]}, {"classes": [1], "alpha": 2}],
            "has its alpha in an earlier",
        ),
        ("scheduler", [{"priority": 0}], "'classes' is missing"),
        ("scheduler", [{"classes": [1], "priority": 8}], "must be at most 7"),
        ("scheduler", [{"classes": [1], "weight": 0}], "must be at least 1"),
        ("scheduler", {"classes": [1]}, "must be a list"),
        ("switch", {"mode": "cut through"}, "did you mean 'cut-through'?"),
        ("switch", {"latency": 500}, "has no unit"),
        ("routing", {"policy": "ecnp"}, "did you mean 'ecmp'?"),
        ("routing", {"policy": "ecmp", "by": "host"}, "routing.by: 'by' is not a known key"),
        ("pcap", ["leaf7-eth1"], "is not a known port"),
        ("pcap", "leaf1", "must be a list"),
        ("name", "a/b", "must be 1 to 64 letters"),
        ("name", 7, "must be text"),
        ("seed", -1, "must be at least 0"),
        ("seed", 1.5, "must be a whole number"),
        ("seed", 2**63, "must be at most"),
        ("clock", "wall", "is not a known clock"),
        ("dilation", 0.5, "must be at least 1"),
        ("dilation", "slow", "is neither auto nor a number"),
        ("shrink", 0, "must be at least 1"),
        ("budget", "0 s", "must be above 0"),
        ("budget", "60", "has no unit"),
        ("duration", "-1 s", "must be above 0"),
        ("fabric", "leaf-spine", "must be a mapping"),
        ("workloads", {"kind": "training"}, "must be a list"),
        ("profile", "etherned", "did you mean 'ethernet'?"),
        ("profile", ["ethernet"], "is not a known profile"),
        ("probe", {}, "did you mean 'probes'?"),
    ],
)
def test_sections_refuse(section: str, value: object, message: str) -> None:
    """Each section names key, value, rule and way out."""
    assert message in _error(None, **{section: value})


@pytest.mark.parametrize(
    ("probes", "message"),
    [
        ({"pairs": "leaf1"}, "is not a known set of pairs"),
        ({"pairs": [["h1", "leaf2"]]}, "is a switch, and probes run between hosts"),
        ({"pairs": [["h1", "h9"]]}, "is not a known host"),
        ({"pairs": [["h1", "h1"]]}, "probes a host from itself"),
        ({"pairs": [["h1"]]}, "must have at least 2 entries"),
        ({"pairs": []}, "must have at least 1 entries"),
        ({"rate": "0 /s"}, "must be above 0"),
        ({"rate": 100}, "has no unit"),
        ({"classes": []}, "must have at least 1 entries"),
        ({"size": "61 B"}, "must be from 62 to 4214 B"),
        ({"size": "9 KB"}, "must be from 62 to 4214 B"),
        ({"rates": "1 /s"}, "did you mean 'rate'?"),
        ({"arrivals": "random"}, "is not a known kind of arrivals; known: periodic, poisson"),
        ({"arrivals": 5}, "probes.arrivals: 5"),
    ],
)
def test_probes_refuse(probes: dict[str, Any], message: str) -> None:
    """Probes run between hosts, with sensible rates and sizes."""
    assert message in _error(probes=probes)


def test_ports_to_capture_are_resolved_to_names() -> None:
    """Selectors become interface names in port order; true is all."""
    assert experiment(pcap=["spine1", "h1-eth1"]).pcap == ("h1-eth1", "spine1-eth1", "spine1-eth2")
    x = experiment(pcap=True)
    assert x.pcap == tuple(port.name for port in x.fabric.ports)


def test_probes_are_periodic_by_default() -> None:
    """Random ones when the file says so; both are written down."""
    regular, random = experiment(probes={}).probes, experiment(probes={"arrivals": "poisson"})
    assert regular is not None
    assert random.probes is not None
    assert (regular.arrivals, regular.poisson) == ("periodic", False)
    assert (random.probes.arrivals, random.probes.poisson) == ("poisson", True)
    assert to_document(random)["probes"]["arrivals"] == "poisson"


def test_probes_alone_need_an_end() -> None:
    """A run of probes alone would go on for ever."""
    assert "duration: None is not given" in _error(workloads=[], probes={})
    assert experiment(workloads=[], probes={}, duration="10 ms").duration_ns == 10_000_000
    assert "nothing to do" in _error(workloads=[])


def test_probes_take_all_classes_when_there_are_no_workloads() -> None:
    """Without traffic no class is more interesting than another."""
    x = experiment(workloads=[], probes={}, duration="10 ms")
    assert x.probes is not None
    assert x.probes.classes == tuple(range(8))


def test_traces_are_found_beside_the_file(
    design_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative name is relative to the experiment file, wherever the command runs."""
    monkeypatch.chdir("/")
    x = load(design_file)
    assert x.document["workloads"][1]["trace"] == str(design_file.parent / "azure_conv.csv")


def test_traces_of_the_command_line_are_relative_to_here(
    design_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell completes names from the current folder, so --set reads them so."""
    here = tmp_path / "elsewhere"
    here.mkdir()
    shutil.copy(TRACE, here / "mine.csv")
    monkeypatch.chdir(here)
    x = load(design_file, {"workloads[chat].trace": "mine.csv"})
    assert x.document["workloads"][1]["trace"] == str(here / "mine.csv")


def test_a_missing_trace_says_where_it_was_looked_for(design_file: Path) -> None:
    """No other folder is searched behind the user's back."""
    (design_file.parent / "azure_conv.csv").unlink()
    with pytest.raises(SpecError) as caught:
        load(design_file)
    text = str(caught.value)
    assert text.startswith(f"{design_file}:21: workloads[1].trace: 'azure_conv.csv' does not exist")
    assert text.endswith(f"looked for {design_file.parent / 'azure_conv.csv'}")


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        ({}, "exp.yaml:3: workloads[0].ranks"),
        (
            {"workloads[0].ranks": "98"},
            "exp.yaml (--set workloads[0].ranks=98): workloads[0].ranks",
        ),
    ],
)
def test_errors_name_the_line_or_the_option(overrides: dict[str, str], place: str) -> None:
    """What the user has to change is named, be it in the file or on the command line."""
    text = (
        "fabric: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}\nworkloads:\n"
        "  - {kind: training, ranks: 99, bytes: 1 MB}\n"
    )
    with pytest.raises(SpecError) as caught:
        from_text(text, overrides)
    assert str(caught.value).startswith(place)


def test_an_unknown_name_stays_one_when_it_gets_its_place() -> None:
    """Callers can tell a misspelled name from a wrong value."""
    with pytest.raises(UnknownNameError, match=r"exp\.yaml:\d+: profile"):
        experiment(profile="x")


def test_a_fabric_can_be_read_without_its_experiment(tmp_path: Path) -> None:
    """Looking at a fabric does not need workloads that fit."""
    path = tmp_path / "f.yaml"
    path.write_text("fabric: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 3}\n")
    assert len(load_fabric(path, {"fabric.leaves": "4"}).hosts) == 12
    path.write_text("workloads: []\n")
    with pytest.raises(SpecError, match=r"fabric: None is missing; add fabric:"):
        load_fabric(path)
