"""Metrics from plans and completion times, with nothing dropped and nothing divided by zero."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.fakes.ideal_network import IdealNetwork, Times, leaf_spine
from traffic import wire
from traffic.metrics import (
    background_metrics,
    header_efficiency,
    inference_metrics,
    jain_index,
    mean,
    percentile,
    percentiles,
    request_rows,
    training_metrics,
    workload_metrics,
)
from traffic.tasks import Flow
from traffic.workloads import Workload, build, parse_workload

FABRIC = leaf_spine(host_link={"rate": "8 Gbit/s"})
EFFICIENCY = header_efficiency(wire.max_payload_bytes(FABRIC.mtu_bytes))


def training(shrink: float = 1.0, **keys: Any) -> Workload:
    """A ring all-reduce of 4 ranks: 8 Gbit/s and 1000 bytes a chunk make a step of 1 us."""
    raw = {"kind": "training", "ranks": 4, "bytes": 4000 * int(shrink), **keys}
    return build(parse_workload(raw, "workloads[0]"), FABRIC, 7, shrink, 30)


def inference(shrink: float = 1.0, **keys: Any) -> Workload:
    """Two requests of 100 and 5 tokens, 1 s apart; prefill 100 us, 10 us a token."""
    arrivals = {
        "process": "bursts", "burst": 1, "every": "1 s", "requests": 2,
        "context_tokens": 100, "generated_tokens": 5,
    }  # fmt: skip
    raw = {
        "kind": "inference", "clients": 1, "servers": 2, "arrivals": arrivals, "tpot": "10 us",
        "tflops": 1, "mfu": 1, "model": {"parameters": 500_000, "kv_bytes_per_token": 10}, **keys,
    }  # fmt: skip
    return build(parse_workload(raw, "workloads[1]"), FABRIC, 7, shrink, 30)


def run(workload: Workload, **keys: Any) -> Times:
    """Times of all tasks in an ideal network of 8 Gbit/s."""
    return IdealNetwork(**keys).run(workload.tasks).times()


def test_training_in_an_ideal_network() -> None:
    """5 us of computation and 6 steps of 1 us: every number can be worked out by hand."""
    workload = training(compute="5 us", iterations=3)
    assert training_metrics(workload.meta, run(workload)) == {
        "name": "training",
        "iterations": 3,
        "iterations_planned": 3,
        "iteration_ms": pytest.approx({"mean": 0.011, "p50": 0.011, "p99": 0.011}),
        "algbw_gbps": pytest.approx(4000 * 8 / 6000),
        "busbw_gbps": pytest.approx(8),
        "busbw_fraction": pytest.approx(1 / EFFICIENCY),  # this network has no headers
        "comm_fraction": pytest.approx(6 / 11),
        "gpu_busy_fraction": pytest.approx(5 / 11),
    }


def test_busbw_fraction_is_against_the_payload_rate_of_the_slowest_host() -> None:
    """At line rate less header overhead the fraction is exactly 1 (issue 2, Must show 7)."""
    workload = training(compute="0", iterations=2)
    times = run(workload)
    slowed = {
        number: (round(a / EFFICIENCY), round(b / EFFICIENCY)) for number, (a, b) in times.items()
    }
    found = training_metrics(workload.meta, slowed)
    assert found["busbw_fraction"] == pytest.approx(1, abs=1e-3)
    assert found["comm_fraction"] == 1
    assert found["gpu_busy_fraction"] == 0


def test_shrink_multiplies_times_and_leaves_bandwidths() -> None:
    """A job shrunk by 10 reports ten times its model durations and the same bandwidth."""
    whole, small = training(compute="5 us"), training(10, compute="50 us")
    one, ten = (training_metrics(w.meta, run(w)) for w in (whole, small))
    assert ten["iteration_ms"]["mean"] == pytest.approx(10 * one["iteration_ms"]["mean"])
    assert ten["busbw_gbps"] == pytest.approx(one["busbw_gbps"])
    assert ten["comm_fraction"] == pytest.approx(one["comm_fraction"])


def test_a_job_without_a_finished_iteration_has_no_numbers() -> None:
    """One lost message: 0 iterations of 3, None for what was not measured, busy time counted."""
    workload = training(compute="5 us", iterations=3)
    lost = run(workload, extra_ns=lambda flow: None if flow.tag == "i0.s2.r1" else 0)
    found = training_metrics(workload.meta, lost)
    assert found["iterations"] == 0
    assert found["iterations_planned"] == 3
    assert found["iteration_ms"] == {"mean": None, "p50": None, "p99": None}
    for key in ("algbw_gbps", "busbw_gbps", "busbw_fraction", "comm_fraction"):
        assert found[key] is None
    assert 0 < found["gpu_busy_fraction"] < 1


def test_iterations_count_up_to_the_first_unfinished_one() -> None:
    """A message that is lost in iteration 2 leaves two finished iterations."""
    workload = training(compute="5 us", iterations=4)
    lost = run(workload, extra_ns=lambda flow: None if flow.tag == "i2.s5.r0" else 0)
    found = training_metrics(workload.meta, lost)
    assert (found["iterations"], found["iterations_planned"]) == (2, 4)
    assert found["iteration_ms"]["mean"] == pytest.approx(0.011)


def test_nothing_done_at_all() -> None:
    """Without a single completion there is nothing but None, and no exception."""
    for workload in (training(), inference(), background()):
        found = workload_metrics(workload.meta, {})
        assert found is not None
        assert json.loads(json.dumps(found)) == found
    assert training_metrics(training().meta, {})["gpu_busy_fraction"] is None


def test_a_slow_message_lengthens_one_iteration() -> None:
    """A chunk 7 us late in iteration 1: p50 stays, p99 and mean show it."""
    workload = training(compute="5 us", iterations=3)
    times = run(workload, extra_ns=lambda flow: 7000 * (flow.tag == "i1.s0.r0"))
    found = training_metrics(workload.meta, times)["iteration_ms"]
    assert found["p50"] == pytest.approx(0.011)
    assert found["mean"] == pytest.approx((0.011 * 2 + 0.018) / 3)
    assert found["p99"] > 0.0178


def test_inference_in_an_ideal_network() -> None:
    """TTFT = prompt 400 ns + prefill 100 us + cache 1 us + first decode 10 us + token 64 ns."""
    workload = inference()
    found = inference_metrics(workload.meta, run(workload))
    ttft_ms = (400 + 100_000 + 1000 + 10_000 + 64) / 1e6
    assert found["ttft_ms"] == pytest.approx({"p50": ttft_ms, "p90": ttft_ms, "p99": ttft_ms})
    assert found["tpot_ms"] == pytest.approx({"p50": 0.01, "p99": 0.01})
    assert found["kv_transfer_ms"] == pytest.approx({"p50": 0.001, "p99": 0.001})
    assert (found["requests"], found["completed"], found["failed"]) == (2, 2, 0)
    assert found["slo_met_fraction"] == 1
    assert found["goodput_rps"] == pytest.approx(2 / 1.000151464)
    assert found["peak_to_mean"] == 1


def test_inference_reports_target_time_under_shrink() -> None:
    """Shrunk by 10, TTFT and goodput are those of the whole service, but for the tokens' bytes."""
    whole, small = inference(), inference(10)
    one, ten = (inference_metrics(w.meta, run(w)) for w in (whole, small))
    assert ten["ttft_ms"]["p50"] == pytest.approx(one["ttft_ms"]["p50"], rel=0.01)
    assert ten["tpot_ms"]["p50"] == pytest.approx(one["tpot_ms"]["p50"], rel=0.01)
    assert ten["goodput_rps"] == pytest.approx(one["goodput_rps"], rel=0.01)
    assert ten["slo_met_fraction"] == 1


@pytest.mark.parametrize(
    ("slo", "met"),
    [
        ({"ttft": "112 us", "tpot": "11 us"}, 1.0),
        ({"ttft": "111 us", "tpot": "11 us"}, 0.0),
        ({"ttft": "112 us", "tpot": "9 us"}, 0.0),
    ],
)
def test_both_limits_count(slo: dict[str, str], met: float) -> None:
    """A request within one limit only does not meet the objective (DistServe's goodput)."""
    workload = inference(slo=slo)
    found = inference_metrics(workload.meta, run(workload))
    assert found["slo_met_fraction"] == met
    assert (found["goodput_rps"] == 0) == (met == 0)


def test_unfinished_requests_are_counted() -> None:
    """A lost last token: the request failed, its TTFT and cache transfer were still measured."""
    workload = inference()
    times = run(workload, extra_ns=lambda flow: None if flow.tag == "q1.t4" else 0)
    found = inference_metrics(workload.meta, times)
    assert (found["requests"], found["completed"], found["failed"]) == (2, 1, 1)
    assert found["slo_met_fraction"] == 0.5
    rows = request_rows(workload.meta, times)
    assert [row.status for row in rows] == ["done", "unfinished"]
    assert rows[1].last_token_ns is None
    assert rows[1].ttft_ns == rows[0].ttft_ns


def test_a_lost_prompt_leaves_everything_empty() -> None:
    """What did not happen is None in the row, not 0."""
    workload = inference()
    times = run(workload, extra_ns=lambda flow: None if flow.tag == "q0.prompt" else 0)
    row = request_rows(workload.meta, times)[0].as_dict()
    assert row["arrival_ns"] == 0
    for key in ("kv_start_ns", "kv_done_ns", "first_token_ns", "last_token_ns"):
        assert row[key] is None


def test_a_cache_of_which_a_part_is_missing_is_not_there() -> None:
    """With two channels the transfer is done when both parts are."""
    workload = inference(channels=2)
    times = run(workload, extra_ns=lambda flow: None if flow.tag == "q0.kv.c1" else 0)
    rows = request_rows(workload.meta, times)
    assert rows[0].kv_start_ns == 100_400
    assert rows[0].kv_done_ns is None
    assert rows[1].kv_transfer_ns == 1000


def test_columns_of_requests_csv() -> None:
    """The columns of the run folder, in their order."""
    row = request_rows(inference().meta, {})[0].as_dict()
    assert ",".join(row) == (
        "job,request,client,prefill,decode,context_tokens,generated_tokens,arrival_ns,"
        "kv_start_ns,kv_done_ns,first_token_ns,last_token_ns,status"
    )


def test_answers_without_and_with_one_token() -> None:
    """No token: no TTFT, judged by its empty answer. One token: no TPOT, judged by TTFT alone."""
    base = {"process": "bursts", "burst": 1, "every": "1 s", "requests": 1, "context_tokens": 100}
    for tokens in (0, 1):
        workload = inference(arrivals={**base, "generated_tokens": tokens})
        found = inference_metrics(workload.meta, run(workload))
        assert found["completed"] == 1
        assert found["slo_met_fraction"] == 1
        assert found["tpot_ms"] == {"p50": None, "p99": None}
        assert (found["ttft_ms"]["p50"] is None) == (tokens == 0)


def test_aggregated_serving_moves_no_cache() -> None:
    """Without a transfer its percentiles are None."""
    workload = inference(mode="aggregated")
    found = inference_metrics(workload.meta, run(workload))
    assert found["kv_transfer_ms"] == {"p50": None, "p99": None}
    assert found["completed"] == 2


def background(shrink: float = 1.0) -> Workload:
    """Two rounds of 1000 bytes over one pair, 4 us apart: a round takes 1 us at 8 Gbit/s."""
    raw = {
        "kind": "background", "name": "bulk", "pattern": "pairs", "pairs": [["h1", "h2"]],
        "bytes": 1000 * int(shrink), "count": 2, "gap": f"{4 * int(shrink)} us", "start": "9 us",
    }  # fmt: skip
    return build(parse_workload(raw, "workloads[0]"), FABRIC, 7, shrink, 30)


def test_background_traffic_has_goodput_and_completion_times() -> None:
    """2000 bytes from the first start to the last end, 6 us: idle time before does not count."""
    workload = background()
    found = background_metrics(workload.meta, run(workload))
    assert found == {
        "name": "bulk", "flows": 2, "completed": 2, "goodput_gbps": pytest.approx(16 / 6),
        "fct_ms": {"p50": pytest.approx(0.001), "p99": pytest.approx(0.001)},
    }  # fmt: skip


def test_background_traffic_is_shown_at_full_size() -> None:
    """Shrink 10 leaves the goodput and gives the times of the messages as they were written."""
    plain, shrunk = background(), background(10.0)
    full, small = (background_metrics(w.meta, run(w)) for w in (plain, shrunk))
    assert small["goodput_gbps"] == full["goodput_gbps"]
    assert small["fct_ms"]["p50"] == pytest.approx(10 * full["fct_ms"]["p50"])


def test_background_flows_that_never_end_count_for_nothing() -> None:
    """The goodput is of the flows that are done; without any there is none."""
    workload = background()
    first, second = (task.id for task in workload.tasks)
    found = background_metrics(workload.meta, {first: (0, 2000)})
    assert (found["completed"], found["flows"], found["goodput_gbps"]) == (1, 2, 4.0)
    assert background_metrics(workload.meta, {second: (5, 5)})["goodput_gbps"] is None
    nothing = background_metrics(workload.meta, {})
    assert nothing["fct_ms"] == {"p50": None, "p99": None}
    assert nothing["goodput_gbps"] is None


@pytest.mark.parametrize(
    "workload", [training(), inference(), background()], ids=["training", "inference", "background"]
)
def test_meta_survives_json(workload: Workload) -> None:
    """Results can be computed later from a file: meta is the same after JSON."""
    again = json.loads(json.dumps(workload.meta))
    times = run(workload)
    assert workload_metrics(again, times) == workload_metrics(workload.meta, times)


def test_percentiles_agree_with_numpy() -> None:
    """Linear interpolation between ranks, in any order of values."""
    values = [5.0, 1.0, 9.0, 3.0, 2.5, 7.0]
    for percent in (0, 1, 50, 90, 99, 100):
        assert percentile(values, percent) == pytest.approx(float(np.percentile(values, percent)))
    assert percentile([4.0], 99) == 4
    assert percentile([], 50) is None
    assert percentiles([], (50, 99)) == {"p50": None, "p99": None}
    assert mean([]) is None


def test_jain_index() -> None:
    """1 for equal shares, 1/n when one has all, None when there is nothing to share."""
    assert jain_index([3, 3, 3]) == pytest.approx(1)
    assert jain_index([6, 0, 0]) == pytest.approx(1 / 3)
    assert jain_index([1, 2]) == pytest.approx(0.9)
    assert jain_index([]) is None
    assert jain_index([0, 0]) is None


def test_header_efficiency() -> None:
    """82 bytes go with each RoCEv2 packet: 1000 of 1082, 4096 of 4178; or a given overhead."""
    assert header_efficiency(1000) == pytest.approx(1000 / 1082)
    assert header_efficiency(4096) == pytest.approx(4096 / 4178)
    assert header_efficiency(1000, 62) == pytest.approx(1000 / 1062)
    assert header_efficiency(0) == 0


def test_a_flow_is_what_the_meta_says() -> None:
    """Ids in meta are those of the tasks that they name."""
    workload = inference()
    tags = {task.id: task.tag for task in workload.tasks if isinstance(task, Flow)}
    requests = workload.meta["requests"]
    assert isinstance(requests, list)
    for number, request in enumerate(requests):
        assert [tags[flow] for flow in request["kv"]] == [f"q{number}.kv"]
        assert tags[request["first_token"]] == f"q{number}.t0"
        assert tags[request["end"]] == f"q{number}.t4"
