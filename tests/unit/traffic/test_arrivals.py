"""Arrival processes, token lengths, windows of a trace."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pytest

from topologies.errors import SpecError, UnknownNameError
from topologies.reading import Reader
from traffic.workloads.arrivals import (
    Arrivals,
    Lengths,
    as_lengths,
    peak_to_mean,
    read_arrivals,
    read_window,
)

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(
    f"2023-11-16 18:00:{second:02d}.0000000,{100 + second},{second}" for second in range(0, 20, 2)
)


def arrivals(**keys: Any) -> Arrivals:
    """What is read from a mapping below ``arrivals``."""
    return read_arrivals(Reader(keys, "arrivals"), None)


def gaps(process: Arrivals, seed: int = 1) -> list[int]:
    """Inter-arrival times, ns."""
    times = [request.arrival_ns for request in process.take(random.Random(seed))]
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.parametrize(
    ("keys", "cv"),
    [
        ({"process": "poisson"}, 1),
        ({"process": "gamma", "burstiness": 1}, 1),
        ({"process": "gamma", "burstiness": 0.25}, 2),
        ({"process": "gamma", "burstiness": 4}, 0.5),
    ],
)
def test_renewal_processes_have_rate_and_burstiness(keys: dict[str, Any], cv: float) -> None:
    """The mean gap is 1/rate and its coefficient of variation 1/sqrt(k)."""
    seen = gaps(arrivals(rate="5 /s", requests=20_000, **keys))
    assert fmean(seen) == pytest.approx(2e8, rel=0.05)
    assert pstdev(seen) / fmean(seen) == pytest.approx(cv, rel=0.05)


def test_bursts() -> None:
    """20 requests in 50 ms every 2 s: 50 requests are two and a half bursts (case E14)."""
    keys = {"process": "bursts", "burst": 20, "within": "50 ms", "every": "2 s", "requests": 50}
    times = [r.arrival_ns for r in arrivals(**keys).take(random.Random(1))]
    assert times == sorted(times)
    assert [sum(b * 2e9 <= t <= b * 2e9 + 5e7 for t in times) for b in range(3)] == [20, 20, 10]
    assert peak_to_mean(times[:40]) == pytest.approx(20 * 3 / 40)


def test_arrivals_are_seeded() -> None:
    """Equal seeds give equal requests, other seeds other ones."""
    process = arrivals(rate="5 /s", requests=5, context_tokens={"mean": 500})
    assert process.take(random.Random(1)) == process.take(random.Random(1))
    assert process.take(random.Random(1)) != process.take(random.Random(2))


def test_lengths() -> None:
    """A number and `fixed` are constant; `mean` is log-normal with that mean and CV, cut at max."""
    rng = random.Random(1)
    assert as_lengths(128, "x") == as_lengths({"fixed": 128}, "x") == Lengths(128)
    assert {Lengths(128).draw(rng) for _ in range(5)} == {128}
    assert Lengths(0, 1).draw(rng) == 0
    drawn = [as_lengths({"mean": 1000, "cv": 0.5}, "x").draw(rng) for _ in range(20_000)]
    assert fmean(drawn) == pytest.approx(1000, rel=0.03)
    assert pstdev(drawn) == pytest.approx(500, rel=0.05)
    cut = as_lengths({"mean": 1000, "max": 1200}, "x")
    assert max(cut.draw(rng) for _ in range(1000)) == 1200


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"requests": 5}, "'rate' is missing"),
        ({"rate": "5 /s"}, "'requests' is missing"),
        ({"rate": "0 /s", "requests": 5}, "rate: '0 /s' must be above 0"),
        ({"rate": 5, "requests": 5}, "rate: 5 has no unit"),
        ({"rate": "5 /s", "requests": 0}, "requests: 0 must be at least 1"),
        (
            {"process": "gamma", "rate": "5 /s", "requests": 5, "burstiness": 0},
            "burstiness: 0.0 must be above 0",
        ),
        (
            {"process": "bursts", "requests": 5, "burst": 2, "every": "1 ms", "within": "1 s"},
            "within: .* is longer than the time between two bursts",
        ),
        ({"rate": "5 /s", "requests": 5, "context_tokens": -1}, "context_tokens: -1 must be"),
        (
            {"rate": "5 /s", "requests": 5, "context_tokens": {"fixed": 5, "mean": 5}},
            "excludes fixed",
        ),
    ],
)
def test_impossible_arrivals(keys: dict[str, Any], message: str) -> None:
    """Missing and impossible values are errors with their key path below `arrivals`."""
    with pytest.raises(SpecError, match=message) as caught:
        arrivals(**keys)
    assert caught.value.path.startswith("arrivals")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"process": "weibull"}, "'weibull' is not a known arrival process; .*bursts, gamma"),
        ({"rate": "5 /s", "requests": 5, "burstiness": 2}, "'burstiness' is not a known key"),
        ({"rate": "5 /s", "requests": 5, "context_tokens": {"mean": 5, "x": 1}}, "'x' is not a"),
    ],
)
def test_unknown_arrivals(keys: dict[str, Any], message: str) -> None:
    """A key of another process is unknown, not ignored."""
    with pytest.raises(UnknownNameError, match=message):
        arrivals(**keys)


def windowed(folder: Path, requests: int | None = None, **keys: Any) -> list[tuple[int, int]]:
    """(arrival in ms, context tokens) of the rows that are taken of ten rows 2 s apart."""
    file = folder / "trace.csv"
    file.write_text(TRACE, encoding="utf-8")
    window = read_window(Reader(keys), file, "trace", requests)
    rows = window.take(random.Random(1))
    return [(row.arrival_ns // 1_000_000, row.context_tokens) for row in rows]


def test_a_whole_trace(tmp_path: Path) -> None:
    """All rows in order, from time 0."""
    rows = windowed(tmp_path)
    assert rows == [(1000 * second, 100 + second) for second in range(0, 20, 2)]


@pytest.mark.parametrize(
    ("keys", "rows"),
    [
        ({"requests": 2}, [(0, 100), (2000, 102)]),
        ({"window": {"requests": 2}}, [(0, 100), (2000, 102)]),
        ({"requests": 3, "window": {"requests": 1}}, [(0, 100)]),
        ({"window": {"start": "15 s", "requests": 2}}, [(0, 116), (2000, 118)]),
        ({"window": {"start": "4 s", "duration": "4 s"}}, [(0, 104), (2000, 106)]),
        ({"requests": 3, "rate_scale": 4}, [(0, 100), (500, 102), (1000, 104)]),
    ],
)
def test_windows(tmp_path: Path, keys: dict[str, Any], rows: list[tuple[int, int]]) -> None:
    """Begin, length and number choose rows; arrivals count from the first row taken."""
    requests = keys.pop("requests", None)
    assert windowed(tmp_path, requests, **keys) == rows


def test_an_empty_window(tmp_path: Path) -> None:
    """A window after the trace's end is an error, not a service without requests."""
    with pytest.raises(SpecError, match=r"trace: 'trace\.csv' has no row in the window"):
        windowed(tmp_path, window={"start": "1 h"})


def test_errors_of_a_trace_name_key_file_and_line(tmp_path: Path) -> None:
    """What is wrong inside the file is reported with the key that names it."""
    file = tmp_path / "trace.csv"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\nnow,1,1\n", encoding="utf-8")
    window = read_window(Reader({}), file, "workloads[1].trace", None)
    with pytest.raises(SpecError, match=r"trace.csv:2: workloads\[1\].trace: 'now' is not a date"):
        window.take(random.Random(1))


def test_peak_to_mean() -> None:
    """Most arrivals in one second over the mean; None when there is less than two seconds."""
    second = 1_000_000_000
    assert peak_to_mean([0, 1, 2, 3 * second]) == pytest.approx(3 / (4 / 4))
    assert peak_to_mean([5, 6, 7]) is None
    assert peak_to_mean([]) is None
