"""The engine's side of a run: its rhythm, its routes, and what its process leaves behind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.assembly import Assembler, Pace
from emulator.clock.traits import VIRTUAL
from emulator.plan import make_plan
from emulator.results.files import LineFile
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from emulator.run import traffic
from emulator.scale import host_rates_bps
from emulator.transport import TransportSettings
from tests.fakes.medium import FakeClock, FakeMedium, FakeQueue
from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, RATE_BPS, Rig, flow, probe_stream
from tests.unit.emulator.spec_samples import experiment
from topologies.addressing import host_ip
from traffic.tasks import Compute, Flow
from traffic.wire import wire_bytes

PLAN = make_plan(experiment(), 20_000)


@pytest.mark.parametrize("dilation", [1.0, 50.0, 1_000.0, 1e6])
def test_the_tick_is_a_fraction_of_the_round_trip_within_bounds(dilation: float) -> None:
    """At most a millisecond of wall time, at least a quarter of one, else an eighth of the trip."""
    shortest_ns = min(pair.round_trip_ns for pair in PLAN.pairs)
    pace = traffic.pace_of(PLAN, dilation, 30_000.0)
    wall_ns = pace.tick_ns * dilation
    assert wall_ns == pytest.approx(
        min(max(shortest_ns * dilation / 8, 250_000), 1_000_000), abs=dilation
    )
    packet_ns = wire_bytes(PLAN.frame_bytes) * 8e9 / min(host_rates_bps(PLAN.experiment.fabric))
    assert pace.lookahead_ns == pytest.approx(1.5 * pace.tick_ns + 1.5 * packet_ns, abs=1)
    assert pace.software_ns == 30_000 / dilation


def test_acknowledgements_that_clock_a_sender_need_more_ticks() -> None:
    """What a tick lets go at once is a burst: an eighth of a round trip, not half of one."""
    step = {"kmin": "100 KB", "kmax": "100 KB", "pmax": 1}
    keys: dict[str, Any] = {"ecn": step, "clock": "virtual"}
    for kind, share in (("go-back-n", 2), ("dctcp", 8)):
        plan = make_plan(experiment(transport={"kind": kind}, **keys))
        shortest_ns = min(pair.round_trip_ns for pair in plan.pairs)
        tick_ns = traffic.pace_of(plan, 1.0, 0.0, VIRTUAL).tick_ns
        assert tick_ns == max(1_000, round(shortest_ns / share))


def test_routes_are_those_of_the_controller() -> None:
    """From the sender's link to the receiver's, joined end to end."""
    chosen = experiment()
    route = traffic.route_of(chosen)
    seen = set()
    for sport in range(0xC000, 0xC040):
        links = route("h1", "h3", 1, sport)
        assert (links[0].a, links[-1].a) == ("h1", "h3")
        assert links[0].b == links[1].a == "leaf1"
        assert links[1].b == links[2].b
        seen.add(links[1].b)
    assert seen == {"spine1", "spine2"}
    assert [link.a for link in route("h1", "h2", 1, 0xC000)] == ["h1", "h2"]


class Ended:
    """An engine's process that has run over a fake network, and what it left."""

    def __init__(self, rig: Rig, tmp_path: Path, limit_ns: int | None = None, stop: int = 1 << 60):
        rig.clock.dilation = 1.0  # type: ignore[attr-defined]
        started = datetime(2026, 1, 2, tzinfo=UTC)
        tmp_path.mkdir(exist_ok=True)
        self.folder = RunFolder.create(tmp_path, "test", "abc123", started)
        self.progress: list[tuple[int, int]] = []
        prepared: Any = SimpleNamespace(
            plan=rig.plan, medium=rig.medium, clock=rig.clock,
            quiet_ns=50_000_000, drain_ns=5_000_000_000, flush_every_ns=200_000_000,
        )  # fmt: skip
        report = tmp_path / "engine.json"
        work = traffic.engine_work(
            prepared, self.folder, report, limit_ns, lambda *now: self.progress.append(now)
        )
        work(lambda: rig.clock.now_ns() >= stop)
        self.outcome = json.loads(report.read_text())
        self.rig = rig
        reader = RunReader.open(self.folder.path, allow_incomplete=True)
        self.flows = list(reader.table("flows").rows())
        self.probes = list(reader.table("probes").rows())
        self.computes = list(reader.table("computes").rows())
        self.folder.close()


def test_a_finished_run_leaves_rows_and_a_report(tmp_path: Path) -> None:
    """Every flow, computation and probe, and the counters."""
    tasks = [Compute(9, "job", "gpu", 5_000, "c"), flow(1, 10 * PAYLOAD, after=(9,))]
    ended = Ended(Rig(tasks, [probe_stream(interval_ns=2_000)]), tmp_path)
    (row,) = ended.flows
    assert (row["id"], row["status"], row["bytes"], row["packets"]) == ("1", "done", "40960", "10")
    assert int(row["ready_ns"]) == 5_000 <= int(row["first_tx_ns"]) < int(row["done_ns"])
    assert (row["retransmitted"], row["marked"], row["dscp"]) == ("0", "0", "26")
    assert [(c["resource"], c["start_ns"], c["done_ns"]) for c in ended.computes] == [
        ("gpu", "0", "5000")
    ]
    assert {probe["lost"] for probe in ended.probes} == {"0"}
    assert len(ended.probes) == ended.outcome["counters"]["probes_sent"]
    assert ended.outcome["finished"] is ended.outcome["drained"] is True
    assert ended.outcome["unfinished"] == ended.outcome["starved_share"] == 0
    assert ended.progress
    assert ended.progress[0][0] in (0, 1)


def test_rows_that_a_full_disk_did_not_take_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is a process of its own: nobody else knows what it could not write."""
    assert Ended(Rig([flow(1, PAYLOAD)]), tmp_path / "roomy").outcome["degraded"] is None

    def full(file: LineFile, text: str) -> None:
        if file.path.name == "flows.csv" and not file.is_empty:
            raise OSError(28, "No space left on device")
        append(file, text)

    append = LineFile.append
    monkeypatch.setattr(LineFile, "append", full)
    ended = Ended(Rig([flow(1, PAYLOAD)]), tmp_path / "full")
    assert ended.flows == []
    assert "the disk is full: flows.csv" in ended.outcome["degraded"]
    assert "1 rows of flows.csv" in ended.outcome["degraded"]


def test_what_did_not_end_is_written_down_as_unfinished(tmp_path: Path) -> None:
    """Flows under way have no end; flows that never started have no row."""
    tasks = [flow(1, 1_000), flow(2, 64 << 20, qp=1), flow(3, 1_000, after=(2,))]
    ended = Ended(Rig(tasks), tmp_path, limit_ns=50_000)
    rows = {row["id"]: row for row in ended.flows}
    assert set(rows) == {"1", "2"}
    assert (rows["2"]["status"], rows["2"]["done_ns"], rows["2"]["ready_ns"]) == (
        "unfinished",
        "",
        "0",
    )
    assert ended.outcome["finished"] is False
    assert ended.outcome["unfinished"] == 2
    assert ended.outcome["ended_ns"] >= 50_000


def test_a_run_can_be_stopped(tmp_path: Path) -> None:
    """What has happened by then is there."""
    ended = Ended(Rig([flow(1, 1_000), flow(2, 64 << 20, qp=1)]), tmp_path, stop=60_000)
    assert [row["id"] for row in ended.flows if row["status"] == "done"] == ["1"]
    assert ended.outcome["drained"] is True
    assert 60_000 <= ended.outcome["ended_ns"] < 65_000


def test_probes_that_did_not_arrive_are_lost(tmp_path: Path) -> None:
    """With when they were sent; those under way at the end arrive while it drains."""
    stream = probe_stream(interval_ns=1_000)
    rig = Rig(streams=[stream], lose=lambda frame: frame.psn in (2, 7))
    ended = Ended(rig, tmp_path, limit_ns=20_500)
    lost = [
        (row["seq"], row["sent_ns"], row["latency_ns"])
        for row in ended.probes
        if row["lost"] == "1"
    ]
    assert lost == [("2", "2000", ""), ("7", "7000", "")]
    assert len(ended.probes) == 21


def test_packets_sent_again_are_reported_for_unfinished_flows_too(tmp_path: Path) -> None:
    """The number is the engine's, not the sum over finished flows."""
    parameters = replace(PARAMETERS, rto_ns=30_000)
    rig = Rig([flow(1, 4 * PAYLOAD)], parameters=parameters, lose=lambda frame: frame.is_data)
    ended = Ended(rig, tmp_path, limit_ns=100_000)
    assert ended.outcome["retransmitted"] == ended.outcome["counters"]["retransmitted"] == 12
    assert ended.outcome["counters"]["timeouts"] == 3


def test_lateness_is_reported_in_microseconds_and_as_a_share(tmp_path: Path) -> None:
    """One pause of 30 us in a message of 86 us."""
    late = {20_000: 30_000}
    window = replace(PARAMETERS, window_packets=None)
    rig = Rig([flow(1, 1 << 20)], parameters=window, late_ns=lambda asked: late.get(asked, 0))
    ended = Ended(rig, tmp_path)
    assert ended.outcome["lateness_us"]["p50"] == 0
    assert ended.outcome["lateness_us"]["p99"] > 1
    assert ended.outcome["starved_share"] == pytest.approx(29.5 / 85.6, rel=0.05)


def test_rows_of_flows_are_those_of_the_tasks(tmp_path: Path) -> None:
    """Names, tags, planes and classes as in the workload."""
    tasks = [Flow(5, "job-b", "h1", "h2", 777, 48, "i0.s1.r2", plane=1, qp=3)]
    ended = Ended(Rig(tasks), tmp_path)
    (row,) = ended.flows
    assert [row[name] for name in ("id", "job", "tag", "kind", "src", "dst", "plane", "dscp")] == [
        "5", "job-b", "i0.s1.r2", "flow", "h1", "h2", "1", "48",
    ]  # fmt: skip


class Fabric:
    """The idle fabric of the sample experiment; each switch takes so much wall time."""

    def __init__(self, hop_ns: int) -> None:
        self.experiment = experiment()
        self.route = traffic.route_of(self.experiment)
        fabric = self.experiment.fabric
        ports = [port for port in fabric.ports if not fabric.by_name[port.node].is_switch]
        self._host_of = {port.index: port.node for port in ports}
        self._host_at = {host_ip(fabric, port.node, 1): port.node for port in ports}
        self._hop_ns = hop_ns
        self.clock = FakeClock()
        nics = {port.index: FakeQueue(RATE_BPS) for port in ports}
        self.medium = FakeMedium(self.clock, nics, self._way)

    def _way(self, port: int, dst_ip: str) -> list[FakeQueue]:
        links = self.route(self._host_of[port], self._host_at[dst_ip], 1, 0xC000)
        return [FakeQueue(RATE_BPS, delay_ns=self._hop_ns * (len(links) - 1))]

    def plan(self, software_ns: float, flows: Sequence[Flow]) -> Any:
        """What the engine runs when it takes a hop to last so long, in model time."""
        pace = Pace(1_000, 1_500, software_ns)
        settings = TransportSettings(None, 1_000_000)
        return Assembler(self.experiment, self.route, pace, settings).plan(flows)


FLOWS = [Flow(0, "job", "h1", "h3", 9_000, 26, "t"), Flow(1, "job", "h1", "h2", 9_000, 26, "t")]


def round_trip_error(hop_ns: int, software_ns: float, flows: Sequence[Flow] = FLOWS) -> Any:
    """The deviation that is found at a dilation of 1000."""
    fabric = Fabric(hop_ns)
    drafted, ready = fabric.plan(0.0, flows), fabric.plan(software_ns, flows)
    ways = traffic._ways(drafted, fabric.route)
    return traffic._round_trip_error(
        fabric.medium, fabric.clock, drafted, ready, ways, 1_000.0, 4  # type: ignore[arg-type]
    )  # fmt: skip


def test_what_the_emulation_takes_is_made_up_for() -> None:
    """30 us of wall time per hop are 30 ns of model time, which the NICs hold packets less for."""
    assert round_trip_error(30_000, 30.0) < 0.001


def test_a_deviation_from_the_predicted_round_trip_is_found() -> None:
    """Hops that take 130 us instead lengthen the round trip over three switches by 600 ns."""
    far = next(entry for entry in PLAN.pairs if entry.pair.switches == 3)
    near = next(entry for entry in PLAN.pairs if entry.pair.switches == 1)
    expected = max(600 / far.round_trip_ns, 200 / near.round_trip_ns)
    assert round_trip_error(130_000, 30.0) == pytest.approx(expected, rel=0.02)


def test_without_flows_no_round_trip_is_measured() -> None:
    """Nothing will use one."""
    assert round_trip_error(30_000, 30.0, flows=[]) is None


def test_ways_are_those_of_flows_and_probes() -> None:
    """Both directions of each connection, and one of each probe stream, with their hops."""
    fabric = Fabric(0)
    chosen = experiment(probes={"pairs": [["h1", "h4"]], "rate": "1000 /s", "classes": [5]})
    maker = Assembler(chosen, fabric.route, Pace(1_000, 1_500), TransportSettings(None, 1_000))
    plan = maker.plan(FLOWS, maker.streams(chosen.probes))  # type: ignore[arg-type]
    ways = traffic._ways(plan, fabric.route)
    assert [way.hops for way in ways] == [3, 3, 1, 1, 3]
    assert [way.address.dscp for way in ways] == [26, 48, 26, 48, 40]


@pytest.mark.parametrize(("count", "most", "chosen"), [
    (3, 8, [0, 1, 2]), (8, 8, list(range(8))), (17, 4, [0, 4, 8, 12]), (0, 4, []),
])  # fmt: skip
def test_a_few_ways_are_taken_evenly(count: int, most: int, chosen: list[int]) -> None:
    """At most so many, over all of them."""
    assert traffic._spread(list(range(count)), most) == chosen  # type: ignore[arg-type, comparison-overlap]
