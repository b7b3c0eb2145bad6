"""What the suite reads out of run folders."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from emulator.physics import documents as doc
from emulator.physics import measure, theory
from emulator.physics.cases import latency, marking, rates, sharing, waiting
from tests.fakes.physics import Wrote
from topologies.errors import SpecError


def test_flows_are_read_by_columns_and_picked_by_workload(tmp_path: Path) -> None:
    """Times, sizes and rates; a flow that is not done has no duration."""
    run = Wrote(
        flows=[("a", "h1", "h2", 1000, 100, 1100, 1), ("b", "h2", "h1", 5000, 0, None, 2)]
    ).to_run(tmp_path)
    flows = measure.flows(run)
    assert (flows.job, flows.src, flows.dst) == (("a", "b"), ("h1", "h2"), ("h2", "h1"))
    assert flows.goodputs_bps[0] == pytest.approx(8e9)
    assert math.isnan(flows.durations_ns[1])
    assert flows.of_job("b").size_bytes.tolist() == [5000]


def test_rates_come_from_the_samples_within_a_time(tmp_path: Path) -> None:
    """100 bytes per ns from 1000 ns on; samples outside do not count; too few give NaN."""
    samples = [(t, (7,), (max(0, t - 1000) * 100,), (0,)) for t in range(0, 5000, 500)]
    series = measure.samples(Wrote(ports=["p"], samples=samples).to_run(tmp_path))
    assert measure.rates_bps(series, ["p"], 900, 3100) == pytest.approx([800e9])
    assert np.isnan(measure.rates_bps(series, ["p"], 1100, 1900)).all()
    assert measure.depth_bytes(series, "p", 900, 2100).tolist() == [7, 7, 7]


def test_a_run_without_samples_is_said_to_have_none(tmp_path: Path) -> None:
    """Not a crash somewhere in NumPy."""
    with pytest.raises(SpecError, match="no queue samples"):
        measure.samples(Wrote().to_run(tmp_path))


def test_probes_of_a_pair_are_in_the_order_of_sending(tmp_path: Path) -> None:
    """Lost ones are NaN, and the mean leaves them out."""
    rows = [("h1", "h2", 20, 7), ("h3", "h2", 5, 99), ("h1", "h2", 10, None), ("h1", "h2", 30, 9)]
    probes = measure.probes(Wrote(probes=rows).to_run(tmp_path), "h1", "h2")
    assert probes.sent_ns.tolist() == [10, 20, 30]
    assert measure.mean(probes.latency_ns) == 8
    assert math.isnan(measure.mean(np.array([np.nan])))


def test_a_rate_case_takes_the_first_packet_and_the_latency_off(tmp_path: Path) -> None:
    """1001 packets whose last one comes 1000 line times after the first one came."""
    latency_ns = 5000
    done_ns = 17 + latency_ns + round(doc.packets_ns(1000))
    run = Wrote(
        flows=[("flow", "h1", "h2", 1001 * 4096, 17, done_ns, 1001)],
        manifest={"unloaded_full": [{"hops": 3, "latency_ns": latency_ns}]},
    ).to_run(tmp_path)
    case = rates.rate_case(100)
    measured = case.measure({"run": run})
    for target in case.targets:
        assert measured[target.quantity] == pytest.approx(target.expected, rel=1e-5)


def test_latencies_are_those_of_each_pair_and_size(tmp_path: Path) -> None:
    """The quantities of the case, in us."""
    case = latency.latency_case("cut-through")
    runs = {}
    for at, run in enumerate(case.runs):
        rows = [(*pair, 10, 1000 * (at + 1) + hops) for hops, pair in latency.WAYS]
        runs[run.label] = Wrote(probes=rows).to_run(tmp_path / str(at))
    measured = case.measure(runs)
    assert list(measured) == [target.quantity for target in case.targets]
    assert measured["128 B over 3 switches"] == pytest.approx(1.003)
    assert measured["4154 B over 1 switch"] == pytest.approx(2.001)
    assert len(case.draw(runs)[0].series) == 4


def test_waits_that_follow_the_recursion_give_the_formula(tmp_path: Path) -> None:
    """Latency = idle + Lindley's wait exactly: what is printed is the formula itself."""
    case, rows, source = waiting.waiting_case(), [], np.random.default_rng(3)
    for load, src, dst in waiting.streams():
        service_ns = theory.line_ns(doc.PACKET_BYTES, waiting.rate_bps(load))
        sent = np.cumsum(source.exponential(1e9 / waiting.ARRIVALS_PER_S, 50)).round()
        waits = theory.lindley_waits_ns(sent, service_ns)
        idle = theory.store_and_forward_ns(doc.PACKET_BYTES, waiting.rate_bps(load), 1, 500, 1000)
        rows += [
            (src, dst, int(at), round(idle + wait)) for at, wait in zip(sent, waits, strict=True)
        ]
    runs = {"run": Wrote(probes=rows).to_run(tmp_path)}
    measured = case.measure(runs)
    for target in case.targets:
        assert measured[target.quantity] == pytest.approx(target.expected, abs=1e-4)
    assert len(case.draw(runs)[0].series[2].x) == len(waiting.LOADS) * waiting.STREAMS


def test_an_incast_s_queue_is_measured_in_packets_while_all_send(tmp_path: Path) -> None:
    """The mean over the middle of the run, the last flow's end, and the drops."""
    deep = 100 * doc.FRAME_BYTES
    samples = [(t, (deep if 200 <= t <= 800 else 0,), (t,), (0,)) for t in range(0, 1001, 100)]
    run = Wrote(
        flows=[("incast", "h2", "h1", 10, 0, 900, 1), ("incast", "h3", "h1", 10, 0, 1000, 1)],
        ports=[sharing.RECEIVER_PORT], samples=samples, summary={"packets": {"dropped": 3}},
    ).to_run(tmp_path)  # fmt: skip
    case = sharing.incast_case(8)
    measured = case.measure({"run": run})
    assert measured == {"last flow done": 1.0, "standing queue": 100.0, "drops": 3.0}
    assert [panel.title for panel in case.draw({"run": run})]


def ramp(share_of_marks: float) -> Wrote:
    """Queues that grow by ten packets from sample to sample, far beyond Kmax."""
    names = [f"leaf1-eth{n + 1}" for n in range(marking.RECEIVERS)]
    step, samples, marks = 10 * doc.FRAME_BYTES, [], 0.0
    for number in range(400):
        depth = number * step
        at = np.array([depth - step / 2])
        curve = theory.marking_probability(at, marking.KMIN_BYTES, marking.KMAX_BYTES, 0.2)
        marks += float(curve[0]) * 10 * (share_of_marks if curve[0] < 1 else 1) if number else 0
        count = len(names)
        samples.append((number, [depth] * count, [0] * count, [round(marks)] * count))
    return Wrote(ports=names, samples=samples)


def test_marks_that_follow_the_curve_are_found_on_it(tmp_path: Path) -> None:
    """Nothing below, all above, and the line in between."""
    case = marking.marking_case()
    measured = case.measure({"run": ramp(1.0).to_run(tmp_path)})
    assert all(target.passes(measured[target.quantity], "virtual") for target in case.targets)


def test_marks_that_leave_the_curve_are_noticed(tmp_path: Path) -> None:
    """Half as many marks as there should be."""
    case = marking.marking_case()
    runs = {"run": ramp(0.5).to_run(tmp_path)}
    measured = case.measure(runs)
    failing = [t for t in case.targets if not t.passes(measured[t.quantity], "virtual")]
    assert len(failing) == 3
    assert len(case.draw(runs)[0].series[1].x) == 8
