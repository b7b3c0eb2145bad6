"""Evidence of a run: taken from counters, tables and the engine's last words."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.plan import make_plan
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from emulator.run import evidence
from emulator.run.pauses import PauseTotals
from emulator.spec.model import Experiment
from tests.fakes.plane import LENGTH, FakePlane
from tests.unit.emulator.spec_samples import experiment
from topologies.pause import settled
from topologies.settings import EcnRule, PfcRule
from traffic.tasks import Flow
from traffic.workloads import build_all
from traffic.workloads.base import Workload

CHOSEN = experiment(ecn={"kmin": "100 KB", "kmax": "400 KB", "pmax": 0.2})
FABRIC = CHOSEN.fabric
WAY = ("h1-eth1", "leaf1-eth3", "spine1-eth2", "leaf2-eth1")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A new run folder."""
    return RunFolder.create(tmp_path, "test", "abc123", datetime(2026, 1, 2, tzinfo=UTC))


def reader(folder: RunFolder) -> RunReader:
    """The folder as it stands."""
    return RunReader.open(folder.path, allow_incomplete=True)


def flow_row(number: int, ready_ns: int, done_ns: int | None) -> list[object]:
    """A row of flows.csv."""
    status = "unfinished" if done_ns is None else "done"
    return [
        number,
        "job",
        "t",
        "flow",
        "h1",
        "h2",
        1,
        10,
        26,
        ready_ns,
        5,
        done_ns,
        1,
        0,
        0,
        status,
    ]


def probe_row(tc: int, src: str, dst: str, latency_ns: int | None) -> list[object]:
    """A row of probes.csv."""
    return [tc, src, dst, 0, 100, latency_ns, int(latency_ns is None)]


def test_times_are_those_of_everything_that_is_done(folder: RunFolder) -> None:
    """Flows from ready to done, computations from start to end; unfinished ones have none."""
    folder.extend("flows", [flow_row(1, 100, 900), flow_row(2, 200, None)])
    folder.append("computes", [7, "job", "c", "gpu", 10, 60])
    assert evidence.times_of(reader(folder)) == {1: (100, 900), 7: (10, 60)}


def test_probes_are_summed_up_by_class(folder: RunFolder) -> None:
    """Pairs, losses and latencies in us; a class without arrivals has no latency."""
    folder.extend(
        "probes",
        [probe_row(3, "h1", "h2", 1_000 * n) for n in range(1, 101)]
        + [probe_row(3, "h2", "h1", None), probe_row(0, "h1", "h2", None)],
    )
    nothing, some = evidence.probe_section(reader(folder))
    assert (nothing["class"], nothing["sent"], nothing["lost"]) == (0, 1, 1)
    assert set(nothing["latency_us"].values()) == {None}
    assert (some["class"], some["pairs"], some["sent"], some["lost"]) == (3, 2, 101, 1)
    assert some["latency_us"]["max"] == 100
    assert some["latency_us"]["p50"] == pytest.approx(50, abs=1)
    assert some["latency_us"]["p50"] < some["latency_us"]["p99"] < some["latency_us"]["p999"]


def test_a_run_without_probes_has_no_probe_section(folder: RunFolder) -> None:
    """An empty list, not an error."""
    assert evidence.probe_section(reader(folder)) == []


@pytest.mark.parametrize(
    ("peak", "marks", "missing"),
    [
        (400_000, 0, False),
        (400_000 + FABRIC.mtu_bytes + 14, 0, False),
        (400_000 + FABRIC.mtu_bytes + 15, 0, True),
        (4_000_000, 1, False),
        (4_000_000, 0, True),
    ],
)
def test_a_queue_far_above_kmax_must_have_marked(peak: int, marks: int, missing: bool) -> None:
    """The packet that made it so long met a queue above Kmax, unless it is within one frame."""
    plane = FakePlane(FABRIC)
    plane.add("leaf1-eth3", peak_bytes=peak, mark_packets=marks)
    plane.add("leaf1-eth3", tc=0, peak_bytes=9_000_000)
    plane.add("h1-eth1", peak_bytes=9_000_000)
    expected = ["leaf1-eth3 class 3"] if missing else []
    assert isinstance(CHOSEN.ecn[0], EcnRule)
    assert {rule.tc for rule in CHOSEN.ecn} == {3}
    assert evidence.missing_marks(plane, CHOSEN) == expected


def test_time_inside_switches_is_compared_with_the_idle_one() -> None:
    """300 packet-hops that spent 600 us in all, 2 us each; half of it is more than idle."""
    plane = FakePlane(FABRIC)
    plane.carry(WAY, 100)
    excess = evidence.switching_excess(plane, 600_000.0, 1_000.0, 20_000.0, hops=3)
    assert excess == pytest.approx(2 * 3 * 1_000 / 20_000)
    assert evidence.switching_excess(plane, 100_000.0, 1_000.0, 20_000.0, hops=3) == 0


def test_switches_that_handled_nothing_took_no_time() -> None:
    """No division by the number of packets."""
    assert evidence.switching_excess(FakePlane(FABRIC), 500.0, 1.0, 20_000.0, hops=3) == 0


def gathered(outcome: dict[str, Any], plane: FakePlane | None = None) -> Any:
    """The evidence of a run whose engine said this at its end."""
    prepared: Any = SimpleNamespace(software_hop_us=30.0, round_trip_error=0.01)
    plane = plane or FakePlane(FABRIC)
    return evidence.gather(
        plane, CHOSEN, plane.emulated_bps, outcome, 0.4, prepared, make_plan(CHOSEN, 20_000),
        ["something else"], PauseTotals(lateness_ns=5.0),
    )  # fmt: skip


def test_all_evidence_is_gathered() -> None:
    """From the engine's outcome, the counters and the preparation."""
    plane = FakePlane(FABRIC)
    plane.carry(WAY, 300)
    plane.busy("leaf1-eth3", 500)
    found = gathered(
        {
            "counters": {"refused": 3, "strangers": 4, "inside_switches_ns": 0.0},
            "starved_share": 0.25,
            "lateness_us": {"p50": 1.0, "p99": 2.0},
            "drained": True,
        },
        plane,
    )
    assert (found.refused, found.strangers, found.starved_share) == (3, 4, 0.25)
    assert (found.packets.sent, found.packets.delivered) == (300, 300)
    assert [rate.name for rate in found.rates] == ["leaf1-eth3"]
    assert (found.idle_least, found.round_trip_error, found.drained) == (0.4, 0.01, True)
    assert found.lateness_us == {"p50": 1.0, "p99": 2.0}
    assert (found.lossless, found.headroom_drops, found.pause_lateness_ns) == ((), {}, 5.0)
    assert found.troubles == ["something else"]
    assert found.switching_excess == 0


def test_lossless_classes_are_part_of_the_evidence() -> None:
    """With what they lost for want of headroom, and crossings that nobody heard."""
    plane = FakePlane(FABRIC)
    plane.apply_pfc(settled([PfcRule(3)], FABRIC))
    held = plane.held["classes"][2:3, 3]
    held["drop_packets"], held["lost_events"] = 4, 1
    found = gathered({}, plane)
    assert found.lossless == (3,)
    assert found.headroom_drops == {(FABRIC.port(2).name, 3): 4}
    assert found.lost_crossings == 1


@pytest.mark.parametrize(
    ("pfc", "clock", "watchdog_drops", "late"),
    [
        ({}, "live", 0, True),
        ({"headroom": "60 KB"}, "live", 0, False),
        ({"control": "follow"}, "live", 0, False),
        ({}, "virtual", 0, False),
        ({}, "live", 1, False),
    ],
)
def test_losses_that_a_faster_machine_would_not_have(
    pfc: dict[str, Any], clock: str, watchdog_drops: int, late: bool
) -> None:
    """Those of automatic headroom on the live clock, if there are no others."""
    chosen, plane = experiment(pfc=pfc, clock=clock), FakePlane(FABRIC)
    plane.apply_pfc(settled(chosen.pfc, FABRIC))
    assert not evidence.lost_to_lateness(plane, chosen)
    plane.held["classes"]["drop_packets"][2, 3] = 4
    plane.drop("leaf1-eth3", 4 + watchdog_drops)
    assert evidence.lost_to_lateness(plane, chosen) == late


def test_an_engine_that_died_leaves_no_evidence_of_being_drained() -> None:
    """Its outcome is empty; the counters still tell where the packets are."""
    found = gathered({})
    assert found.drained is False
    assert found.refused == found.strangers == 0


def test_packet_totals_count_what_hosts_took() -> None:
    """A frame that found the receive ring full reached its host but was not delivered."""
    plane = FakePlane(FABRIC)
    plane.carry(WAY, 100)
    plane.carry(WAY[:1], 5)
    plane.drop(WAY[1], 5)
    plane.add(WAY[1], mark_packets=7)
    plane.states["overruns"][FABRIC.port_named("h3-eth1").index] = 2
    totals = evidence.packet_totals(gathered({}, plane), {"retransmitted": 9})
    assert totals == {
        "sent": 105, "delivered": 98, "dropped": 5, "trimmed": 0, "marked": 7, "retransmitted": 9,
    }  # fmt: skip


def test_packets_that_came_as_headers_are_not_delivered() -> None:
    """They are trimmed, wherever they were cut."""
    plane = FakePlane(FABRIC)
    plane.carry(WAY, 100)
    plane.carry(WAY[:1], 5)
    plane.cut(WAY[1], 5)
    plane.leave(WAY[1], 5, tc=5, length=64)
    plane.carry(WAY[2:], 5, tc=5)
    plane.states["trimmed_packets"][FABRIC.port_named("h3-eth1").index] = 5
    totals = evidence.packet_totals(gathered({}, plane), {})
    assert (totals["sent"], totals["delivered"], totals["trimmed"]) == (105, 100, 5)
    record = evidence.port_records(plane)[WAY[1]]
    assert (record["trimmed"], record["trimmed_bytes"]) == (5, 5 * (LENGTH - 64))


def test_the_fidelity_section_has_the_keys_that_tools_rely_on() -> None:
    """With None where nothing could be measured."""
    section = evidence.fidelity_section(gathered({"lateness_us": {"p50": 0.5, "p99": 3.0}}))
    assert section == {
        "rate_error_max": None, "unaccounted_packets": 0, "cpu_idle_min": 0.4,
        "send_lateness_us": {"p50": 0.5, "p99": 3.0}, "rtt_error_max": 0.01,
    }  # fmt: skip


def test_records_of_ports_are_what_they_counted() -> None:
    """All ports, by name."""
    plane = FakePlane(FABRIC)
    plane.carry(["leaf1-eth3"], 6)
    plane.drop("leaf1-eth3", 2, tc=0)
    plane.busy("leaf1-eth3", 300, late={12: 4})
    records = evidence.port_records(plane)
    assert set(records) == {port.name for port in FABRIC.ports}
    one = records["leaf1-eth3"]
    assert (one["in_packets"], one["out_packets"], one["dropped"], one["busy_gaps"]) == (
        6,
        6,
        2,
        300,
    )
    assert one["late_gaps_by_log2_us"][12] == 4


def built(chosen: Experiment) -> tuple[Workload, ...]:
    """Its workloads."""
    return build_all(chosen.workloads, chosen.fabric, chosen.seed, 1.0)


TRAINING = {"kind": "training", "name": "job", "ranks": 4, "bytes": "4 MB", "iterations": 2}
INFERENCE = {
    "kind": "inference", "name": "chat", "clients": 1, "servers": 2, "model": "llama-3-8b",
    "arrivals": {"process": "poisson", "rate": "100 /s", "requests": 3, "context_tokens": 10,
                 "generated_tokens": 5},
}  # fmt: skip


def test_workloads_are_measured_by_kind() -> None:
    """Each kind has its section."""
    chosen = experiment(workloads=[TRAINING, INFERENCE, CHOSEN.document["workloads"][0]])
    workloads = built(chosen)
    times = {task.id: (0, 1_000_000) for workload in workloads for task in workload.tasks}
    sections = evidence.workload_sections(workloads, times)
    names = {kind: [entry["name"] for entry in entries] for kind, entries in sections.items()}
    assert names == {"training": ["job"], "inference": ["chat"], "background": [workloads[2].name]}
    assert len(evidence.requests(workloads, times)) == 3


def test_the_schedule_s_hash_depends_on_every_task() -> None:
    """Equal for equal tasks, another one for any change."""
    tasks = [Flow(n, "job", "h1", "h2", 100, 26, "t") for n in range(3)]
    changed = [*tasks[:2], Flow(2, "job", "h1", "h2", 101, 26, "t")]
    assert evidence.schedule_hash(tasks) == evidence.schedule_hash(list(tasks))
    assert evidence.schedule_hash(tasks) != evidence.schedule_hash(changed)
    assert evidence.schedule_hash(tasks) != evidence.schedule_hash(tasks[:2])


def test_the_results_hash_depends_on_the_tables(folder: RunFolder) -> None:
    """One more row is another hash."""
    before = evidence.results_hash(reader(folder))
    assert evidence.results_hash(reader(folder)) == before
    folder.append("flows", flow_row(1, 0, 10))
    assert evidence.results_hash(reader(folder)) != before
