"""Latencies, thresholds and places of loss out of a run folder's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.report.extract import (
    mark_rules,
    places,
    probe_classes,
    request_latencies,
    slo_ms,
    unloaded_latency_ns,
)
from emulator.results import columns
from emulator.results.queues import QueueSeries
from emulator.results.reader import Table

MS = 1_000_000


def table(name: str, rows: list[dict[str, object]]) -> Table:
    """A table of rows that give the columns that matter."""
    names = columns.CSV_TABLES[name]
    data = {key: ["" if row.get(key) is None else str(row[key]) for row in rows] for key in names}
    return Table(Path(f"{name}.csv"), data)


def request(**changes: object) -> dict[str, object]:
    """A finished request: 3 ms to the first token, 10 ms for 5 more, 1 ms of transfer."""
    plain = {
        "job": "chat", "generated_tokens": 6, "arrival_ns": 2 * MS, "kv_start_ns": 3 * MS,
        "kv_done_ns": 4 * MS, "first_token_ns": 5 * MS, "last_token_ns": 15 * MS, "status": "done",
    }  # fmt: skip
    return plain | changes


def test_latencies_are_those_of_the_full_size_service() -> None:
    """TTFT, TPOT and transfer time are multiplied by shrink."""
    found = request_latencies(table("requests", [request()]), shrink=4)
    assert len(found) == 1
    assert found[0].ttft_ms.tolist() == [12.0]
    assert found[0].tpot_ms.tolist() == [8.0]
    assert found[0].kv_ms.tolist() == [4.0]
    assert found[0].unfinished == 0


def test_short_answers_have_no_time_per_token() -> None:
    """An answer of one token has no TPOT and is not expected to have one."""
    rows = [request(generated_tokens=1, last_token_ns=5 * MS), request()]
    found = request_latencies(table("requests", rows), 1)[0]
    assert np.isnan(found.tpot_ms[0])
    assert found.expected == {"ttft": 2, "tpot": 1, "kv": 2}
    assert found.unfinished == 0


def test_unfinished_requests_have_no_latency() -> None:
    """What did not happen is NaN and is counted."""
    row = request(first_token_ns=None, last_token_ns=None, kv_done_ns=None, status="unfinished")
    found = request_latencies(table("requests", [row, request()]), 1)[0]
    assert np.isnan([found.ttft_ms[0], found.tpot_ms[0], found.kv_ms[0]]).all()
    assert found.unfinished == 1
    assert found.expected["kv"] == 2


def test_services_without_transfer_expect_none() -> None:
    """Where one host serves prompt and answer, there is no transfer to wait for."""
    row = request(kv_start_ns=None, kv_done_ns=None)
    assert request_latencies(table("requests", [row]), 1)[0].expected["kv"] == 0


def test_services_are_kept_apart() -> None:
    """Each job has its own distribution, in the order of appearance."""
    rows = [request(job="b"), request(job="a"), request(job="b")]
    found = request_latencies(table("requests", rows), 1)
    assert [(item.job, len(item.ttft_ms)) for item in found] == [("b", 2), ("a", 1)]
    assert request_latencies(table("requests", []), 1) == []


def test_probes_by_class_with_losses() -> None:
    """Lost probes count as sent, and have no latency."""
    rows: list[dict[str, object]] = [
        {"class": 3, "latency_ns": 10, "lost": 0}, {"class": 0, "latency_ns": 5, "lost": 0},
        {"class": 3, "latency_ns": None, "lost": 1}, {"class": 3, "latency_ns": 30, "lost": 0},
    ]  # fmt: skip
    found = probe_classes(table("probes", rows))
    assert [(item.tc, item.sent, item.lost) for item in found] == [(0, 1, 0), (3, 3, 1)]
    assert sorted(found[1].latency_ns.tolist()) == [10, 30]
    assert probe_classes(table("probes", [])) == []


def test_predictions_span_the_probed_paths() -> None:
    """The least and the largest prediction of a class; None without any."""
    rows = [
        {"class": 0, "src": "h1", "dst": "h2", "latency_ns": 5},
        {"class": 0, "src": "h1", "dst": "h3", "latency_ns": 9},
        {"class": 3, "src": "h1", "dst": "h2", "latency_ns": 7},
    ]
    assert unloaded_latency_ns({"unloaded": rows}, 0) == (5, 9)
    assert unloaded_latency_ns({"unloaded": rows}, 3) == (7, 7)
    assert unloaded_latency_ns({"unloaded": rows}, 5) is None
    assert unloaded_latency_ns({}, 0) is None


def event(kind: str, port: str, tc: int | None, value: int) -> dict[str, object]:
    """An event of some packets at a place."""
    return {"time_ns": 1, "kind": kind, "port": port, "tc": tc, "value": value}


def counters(
    dropped: list[int], marked: list[int], trimmed: list[int] | None = None
) -> QueueSeries:
    """Final counters of two ports."""
    zero = np.zeros((1, 2), dtype=int)
    arrays = {
        "time_ns": np.array([1]), "bytes": zero, "bytes_tc": np.zeros((1, 2, 8), dtype=int),
        "tx_bytes": zero, "dropped": np.array([dropped]), "marked": np.array([marked]),
        "trimmed": np.array([trimmed or [0, 0]]),
        "buffer_used": np.zeros((1, 0), dtype=int),
    }  # fmt: skip
    return QueueSeries(("p1", "p2"), (), arrays)


def test_events_of_a_place_add_up_worst_first() -> None:
    """Increments are summed per port and class; other kinds are no packets."""
    rows = [
        event("mark", "p1", 3, 5), event("drop", "p2", 3, 1), event("drop", "p2", 3, 2),
        event("drop", "p2", 0, 1), event("pause", "p2", 3, 99), event("drop", "p1", 1, 0),
    ]  # fmt: skip
    found = places(table("events", rows), None)
    assert [(p.port, p.tc, p.drop, p.trim, p.mark) for p in found] == [
        ("p2", 3, 3, 0, 0), ("p2", 0, 1, 0, 0), ("p1", 3, 0, 0, 5),
    ]  # fmt: skip


def test_counters_fill_in_what_events_do_not_tell() -> None:
    """A port whose drops are in the samples only is listed, without a class, and never twice."""
    found = places(table("events", [event("drop", "p1", 3, 4)]), counters([4, 7], [0, 2]))
    assert [(p.port, p.tc, p.drop, p.mark) for p in found] == [("p2", None, 7, 2), ("p1", 3, 4, 0)]


def test_what_was_cut_has_its_places() -> None:
    """By events, and where these do not tell, by the samples; below drops, above marks."""
    rows = [event("trim", "p1", 3, 4), event("mark", "p1", 2, 9), event("drop", "p3", 5, 1)]
    found = places(table("events", rows), counters([0, 0], [0, 0], [4, 6]))
    assert [(p.port, p.tc, p.drop, p.trim, p.mark) for p in found] == [
        ("p3", 5, 1, 0, 0), ("p2", None, 0, 6, 0), ("p1", 3, 0, 4, 0), ("p1", 2, 0, 0, 9),
    ]  # fmt: skip


def test_nothing_lost_no_places() -> None:
    """A clean run has no places."""
    assert places(table("events", []), counters([0, 0], [0, 0])) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"ecn": {"kmin": "400 KB", "kmax": "1600 KB", "pmax": 0.2}}, [(400_000, 1_600_000)]),
        ({"ecn": [{"classes": [3], "kmin": "1 MiB", "kmax": "2 MiB"}]}, [(2**20, 2**21)]),
        ({"ecn": [{"tc": 3, "kmin_bytes": 5, "kmax_bytes": 9}]}, [(5, 9)]),
        ({"ecn": "none"}, []),
        ({"ecn": [{"kmin": "much", "kmax": "more"}, "x"]}, []),
        ({}, []),
    ],
)
def test_thresholds_in_every_spelling(
    spec: dict[str, Any], expected: list[tuple[float, float]]
) -> None:
    """The rules of a resolved experiment are found; what is not understood draws no line."""
    assert [(r.kmin_bytes, r.kmax_bytes) for r in mark_rules(spec, {})] == expected


@pytest.mark.parametrize(
    ("ports", "fits"),
    [("switches", True), ("all", True), ("leaf1", True), ("leaf1-eth*", True), ("hosts", False),
     ("spine*", False)],
)  # fmt: skip
def test_thresholds_belong_to_ports(ports: str, fits: bool) -> None:
    """A rule's selector decides at which port its lines are drawn."""
    rule = mark_rules({"ecn": [{"kmin": 1, "kmax": 2, "ports": ports}]}, {})[0]
    assert rule.fits("leaf1-eth3", "leaf1") is fits


@pytest.mark.parametrize("leads_to_host", [True, False])
def test_thresholds_of_the_last_hop_belong_to_ports_that_lead_to_hosts(leads_to_host: bool) -> None:
    """Whatever their names are."""
    rule = mark_rules({"ecn": [{"kmin": 1, "kmax": 2, "ports": "last-hop"}]}, {})[0]
    assert rule.fits("leaf1-eth3", "leaf1", leads_to_host) is leads_to_host


def test_objectives_are_found_by_service() -> None:
    """Limits in ms; a service without objectives has none."""
    workloads = [
        {"kind": "inference", "name": "chat", "slo": {"ttft": "2 s", "tpot": "200 ms"}},
        {"kind": "inference", "name": "bare"},
    ]
    assert slo_ms({"workloads": workloads}, "chat") == {"ttft": 2000.0, "tpot": 200.0}
    assert slo_ms({"workloads": workloads}, "bare") == {}
    assert slo_ms({}, "chat") == {}
