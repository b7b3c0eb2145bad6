"""The measurements of ``fabriclab bench``, as far as they need no root."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from emulator import scale
from emulator.bench import cost, frames, load, setting, startup, throughput
from emulator.bench.rows import Row
from emulator.bench.setting import Setting
from emulator.calibration import Silent
from emulator.fidelity import Verdict
from emulator.kernel import netns
from emulator.plan import make_plan
from emulator.results.reader import RunReader
from emulator.run import session
from emulator.run.session import Outcome
from tests.fakes import fake_mininet
from tests.fakes.machine import FakeMachine
from tests.fakes.nic_rig import Rig, flow, probe_stream
from tests.fakes.run_folder import FakeRun, write_run
from topologies.errors import MachineError
from topologies.files import fabric_to_dict
from traffic import headers, wire
from traffic.nic.engine import NicEngine
from traffic.wire import Opcode


def _by_name(found: list[Row]) -> dict[str, Row]:
    return {row.what: row for row in found}


def test_both_senders_send_the_same_frames() -> None:
    """The engine's patched frame is, bit for bit, the packet that Scapy is asked to send."""
    bank = frames.bank()
    heads, icrc = bank.patch(np.array([0]), Opcode.SEND_MIDDLE, 0, np.array([4711]))
    ours = bank.assemble(0, heads[0].tobytes(), icrc[0].tobytes())
    packet = headers.data_packet(frames.ADDRESS, Opcode.SEND_MIDDLE, 4711, frames.PAYLOAD_BYTES)
    assert ours == bytes(packet)


def test_the_ratio_of_frames_is_against_packets_that_scapy_builds() -> None:
    """The other ratio is shown, without a requirement."""
    found = _by_name(frames.rows(600_000, 1_000, 6_000))
    assert (found["ratio to sendp"].value, found["ratio to sendp"].met) == (600, True)
    assert found["ratio to sendp, built before"].value == 100
    assert found["ratio to sendp, built before"].met is None
    assert _by_name(frames.rows(99_000, 1_000, 6_000))["ratio to sendp"].met is False


def test_frames_that_the_kernel_refuses_are_an_error() -> None:
    """A rate of frames that were not sent would be no rate."""
    medium: Any = SimpleNamespace(send=lambda *_: frames.BATCH - 1)
    send = frames._sender_of(medium, frames.bank())
    with pytest.raises(MachineError, match="the kernel took 255 of 256 frames"):
        send(0)


def test_the_load_crosses_three_switches_and_only_senders_shape() -> None:
    """Every link but the senders' carries more than it is asked to."""
    experiment = load.experiment("test")
    fabric = experiment.fabric
    assert len(fabric.switches) == load.SWITCHES
    plan = make_plan(experiment, load.OFFERED_PPS)
    emulated = {
        frozenset((link.a, link.b)): link.rate_bps / plan.scaling.dilation.value
        for link in fabric.links
    }
    senders = [emulated.pop(frozenset((f"h{n}", "leaf1"))) for n in range(1, load.HOSTS + 1)]
    packet_bits = 8 * wire.wire_bytes(wire.data_frame_bytes(load.PAYLOAD_BYTES))
    assert sum(senders) / packet_bits == pytest.approx(load.OFFERED_PPS, rel=0.01)
    assert max(senders) <= scale.MAX_HOST_RATE_BPS
    assert min(emulated.values()) >= 2 * sum(senders)


def test_the_load_lasts_as_long_as_it_says() -> None:
    """The least wall time of its flows."""
    plan = make_plan(load.experiment("test", wall_s=3.0), load.OFFERED_PPS)
    least_s = plan.scaling.estimate.least_duration_ns * plan.scaling.dilation.value / 1e9
    assert least_s == pytest.approx(3.0, rel=0.05)


def _outcomes(monkeypatch: pytest.MonkeyPatch, root: Path, *valid: bool) -> list[Any]:
    """Runs end with these verdicts, one after the other; the result collects what was asked."""
    asked: list[Any] = []
    folder = write_run(root, FakeRun(iterations=1, requests=0, samples=5, probes=0))

    def run(request: Any, *_: object) -> Outcome:
        good = valid[len(asked)]
        asked.append(request)
        reasons = () if good else ("too slow",)
        return Outcome(folder, {}, Verdict(good, reasons, False), False)

    monkeypatch.setattr(session, "run", run)
    return asked


@pytest.mark.parametrize(
    ("verdicts", "attempts", "met"),
    [((True,), 1, True), ((False, True), 2, True), ((False,) * 3, 3, False)],
)
def test_only_a_valid_run_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    verdicts: tuple[bool, ...],
    attempts: int,
    met: bool,
) -> None:
    """An INVALID attempt is repeated and said; after three of them the requirement is missed."""
    asked = _outcomes(monkeypatch, tmp_path, *verdicts)
    notes: list[str] = []
    found = _by_name(throughput.measure(Setting(tmp_path, "system", notes.append)))
    verdict = found["verdict is VALID"]
    assert (len(asked), verdict.met) == (attempts, met)
    assert notes.count("INVALID: too slow") == verdicts.count(False)
    assert ("attempt" in verdict.remark) is (attempts > 1)
    assert asked[0].datapath == "system"


def test_delivered_packets_per_second_are_those_of_the_wall(tmp_path: Path) -> None:
    """All packets of flows that ended, over the span from first to last, times the dilation."""
    folder = write_run(tmp_path, FakeRun(iterations=1, requests=0, samples=5, probes=0))
    table = RunReader.open(folder).table("flows")
    first, done = table.numbers("first_tx_ns"), table.numbers("done_ns")
    span_ns = done.max() - first.min()
    dilation = json.loads((folder / "summary.json").read_text())["dilation"]
    expected = table.numbers("packets").sum() / (span_ns * dilation / 1e9)
    assert throughput.delivered_pps(folder) == pytest.approx(expected)


def test_a_run_in_which_nothing_arrived_delivers_nothing(tmp_path: Path) -> None:
    """No division by zero, no figure out of thin air."""
    folder = write_run(tmp_path, FakeRun(iterations=0, requests=0, samples=5, probes=0))
    assert throughput.delivered_pps(folder) == 0.0


def _timed(rig: Rig) -> cost.TimedEngine:
    return cost.TimedEngine(rig.plan, rig.medium, rig.clock, Silent())


def test_the_timed_engine_does_what_the_engine_does() -> None:
    """The same packets in the same ticks, and processor time in every phase that had work."""
    tasks = [flow(1, 400_000), flow(2, 100_000, "h3", "h2")]
    plain, rig = Rig(tasks), Rig(tasks)
    timed = _timed(rig)
    assert plain.run()
    assert timed.run(lambda: False, 1_000_000_000)
    assert timed.counters == plain.counters
    for phase in ("_take", "_deliver", "_answer", "_fill", cost.FLUSH, cost.KERNEL):
        assert timed.spent_ns[phase] > 0, phase
    assert timed.spent_ns[cost.FLUSH] > timed.spent_ns[cost.KERNEL]


def test_every_phase_is_a_method_that_a_tick_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A phase that is renamed or left out would be missing from the shares unnoticed."""
    called: list[str] = []
    for phase in cost.PHASES:
        original = getattr(NicEngine, phase)

        def noted(self: Any, *arguments: Any, _of: Any = original, _as: str = phase) -> Any:
            called.append(_as)
            return _of(self, *arguments)

        monkeypatch.setattr(NicEngine, phase, noted)
    rig = Rig([flow(1, 4096)], [probe_stream()])
    rig.engine.tick(0)
    assert sorted(called) == sorted(cost.PHASES)


def test_costs_are_per_packet_and_shares_are_of_the_whole() -> None:
    """Sending includes patching and the kernel; what no phase accounts for has a name too."""
    spent = dict.fromkeys(cost.PHASES, 0) | {
        "_take": 100_000, "_deliver": 200_000, "_fill": 50_000, "_check_timeouts": 10_000,
        cost.FLUSH: 400_000, cost.KERNEL: 300_000,
    }  # fmt: skip
    counters = {"data_sent": 90, "control_sent": 10, "probes_sent": 0, "received": 100,
                "delivered": 80, "ticks": 10}  # fmt: skip
    found = cost.rows(spent, counters, 1_000_000)
    named = _by_name(found)
    assert named["send"].value == pytest.approx(4.5)
    assert named["of which in the kernel"].value == pytest.approx(3.0)
    assert named["receive"].value == pytest.approx(3.0)
    assert named["all of the engine"].value == pytest.approx(12.5)
    assert "10.0 per tick" in named["send"].remark
    shares = [row.value for row in found if row.what.startswith("share: ")]
    assert sum(shares) == pytest.approx(100)
    assert shares == sorted(shares, reverse=True)
    assert named["share: read queues, sleep, the loop"].value == pytest.approx(24)


def test_an_engine_that_sent_nothing_divides_by_nothing() -> None:
    """A run that was cut short at once still has a table."""
    spent = dict.fromkeys((*cost.PHASES, cost.FLUSH, cost.KERNEL), 0)
    counters = dict.fromkeys((*cost._SENT, "received", "delivered", "ticks"), 0)
    assert _by_name(cost.rows(spent, counters, 0))["send"].value == 0


def test_startup_covers_every_ordered_pair_once() -> None:
    """8 leaves, 4 spines, 64 hosts, and a source port for each pair that spreads them."""
    fabric = startup.make_fabric()
    assert (len(fabric.hosts), len(fabric.switches)) == (64, 12)
    ways = list(startup.all_ways(fabric))
    pairs = {(way.address.src_ip, way.address.dst_ip) for way in ways}
    assert len(ways) == len(pairs) == 64 * 63
    assert all(src != dst for src, dst in pairs)
    buckets = {way.address.sport & 63 for way in ways}
    assert len(buckets) == 64
    names = {port.index: port.node for port in fabric.ports}
    assert {names[way.src_port] for way in ways} == {host.name for host in fabric.hosts}


def test_startup_is_compared_where_both_do_the_same_and_where_ours_does_more() -> None:
    """The requirement rests on the harder comparison."""
    found = _by_name(startup.rows(0.5, 2.0, 1.0, 8.0, 4.0))
    assert (found["ratio, ready"].value, found["ratio, ready"].met) == (4, True)
    assert found["ratio, no controller"].value == 16
    assert found["ratio, gone"].value == 4
    missed = _by_name(startup.rows(0.5, 11.0, 6.0, 8.0, 4.0))
    assert [name for name, row in missed.items() if row.met is False] == [
        "fabriclab ready", "fabriclab gone", "ratio, ready"
    ]  # fmt: skip


def test_a_mininet_that_fails_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log is what explains it."""
    report = tmp_path / "mininet.json"

    class Ended:
        pid = 1

        def poll(self) -> int:
            report.with_suffix(".log").write_text("ovs-vsctl exited with code 1\n")
            return 1

        def kill(self) -> None:
            pass

        def wait(self) -> int:
            return 1

    monkeypatch.setattr(startup, "spawn", lambda *_, **__: Ended())
    ovs: Any = SimpleNamespace(env={})
    started: list[int] = []
    with pytest.raises(MachineError, match="Mininet failed: ovs-vsctl exited with code 1"):
        startup._run_mininet(ovs, 0, started.append, tmp_path / "fabric.json", report)
    assert started == [1]


def test_mininet_starts_the_same_graph_and_leaves_the_machine_s_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All hosts, shaped links, the userspace datapath; both times are reported."""
    nets = fake_mininet.install(monkeypatch, "topologies.mn", "emulator.bench.stock_mininet")
    stock_mininet = importlib.import_module("emulator.bench.stock_mininet")
    fabric = startup.make_fabric(leaves=2, spines=2, hosts=4)
    graph, report = tmp_path / "fabric.json", tmp_path / "report.json"
    graph.write_text(json.dumps(fabric_to_dict(fabric)))
    assert stock_mininet.main([str(graph), str(report)]) == 0
    (net,) = nets
    assert net.events == ["made", "start", "stop"]
    topo = net.options["topo"]
    assert topo.hosts == [host.name for host in fabric.hosts]
    assert len(topo.links) == len(fabric.links)
    assert {(link["cls"], link["bw"]) for link in topo.links} == {("TCLink", 100.0)}
    assert net.options["switch"].keywords["datapath"] == "user"
    assert net.options["controller"] is None
    assert json.loads(report.read_text()).keys() == {"ready_s", "gone_s"}


def test_a_scratch_namespace_is_owned_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written down before it is made; removed with its descriptor, also after an error."""
    machine = FakeMachine(tmp_path, monkeypatch)
    seen: list[str] = []

    def create(names: list[str], prepare: Any) -> None:
        (folder,) = machine.state.iterdir()
        assert json.loads((folder / "owned.json").read_text())["namespaces"] == names
        for name in names:
            (machine.namespaces / name).touch()
            prepare(name)

    monkeypatch.setattr(netns, "create", create)
    descriptors: list[int] = []

    def use() -> None:
        with setting.scratch_namespace(seen.append) as (ledger, descriptor):
            assert ledger.owned.what == "bench"
            assert seen == ledger.owned.namespaces
            os.fstat(descriptor)
            descriptors.append(descriptor)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use()
    assert list(machine.namespaces.iterdir()) == []
    assert list(machine.state.iterdir()) == []
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptors[0])
