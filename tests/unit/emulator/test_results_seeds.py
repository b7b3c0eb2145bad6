"""Different seeds: the same statistics within their intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from emulator.results import seeds
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from tests.fakes.run_folder import STARTED, FakeRun, write_run


def run(root: Path, seed: int, slower: float = 1.0, count: int = 2000) -> RunReader:
    """Probes and flows with exponential times of 10 us, rows in the order of their end."""
    rng = np.random.default_rng(seed)
    folder = RunFolder.create(root, "x", f"{seed}-{slower}", STARTED)
    took = (rng.exponential(10_000 * slower, count)).astype(int).tolist()
    rows = [(0, "h1", "h2", at, 1000 * at, ns, 0) for at, ns in enumerate(took)]
    folder.extend("probes", sorted(rows, key=lambda row: row[4] + row[5]))
    folder.append("probes", (0, "h1", "h2", count, 1000 * count, None, 1))
    took = (rng.exponential(10_000, count)).astype(int).tolist()
    folder.extend(
        "flows",
        [
            (at, "bulk", "", "flow", "h1", "h2", 1, 1, 0, at, at, at + ns, 1, 0, 0, "done")
            for at, ns in enumerate(took)
        ],
    )
    folder.close()
    return RunReader.open(folder.path, allow_incomplete=True)


def test_samples_are_in_the_order_of_time_and_complete(tmp_path: Path) -> None:
    """Not in that of arrival; what was lost has no latency."""
    found = seeds.samples(run(tmp_path, 1))
    assert set(found) == {("TC0", "probe latency"), ("bulk", "flow completion")}
    expected = np.random.default_rng(1).exponential(10_000, 2000).astype(int).tolist()
    assert found["TC0", "probe latency"] == expected


def test_flows_and_tokens_are_at_full_size_and_probes_as_measured(tmp_path: Path) -> None:
    """As everywhere in results."""
    small = {"samples": 5, "probes": 50, "iterations": 1, "requests": 9}
    plain, shrunk = (
        seeds.samples(RunReader.open(write_run(tmp_path / str(s), FakeRun(shrink=s, **small))))
        for s in (1.0, 16.0)
    )
    for name, factor in (("flow completion", 16), ("TTFT", 16), ("probe latency", 1)):
        (key,) = (key for key in plain if key[1] == name and key[0] != "TC0")
        assert shrunk[key] == [factor * value for value in plain[key]]


def test_another_seed_fits(tmp_path: Path) -> None:
    """All figures, whichever seeds; they are not equal."""
    first = run(tmp_path, 1)
    for seed in range(2, 12):
        rows = seeds.compare(first, run(tmp_path, seed))
        assert len(rows) == 2
        assert all(row.fits for row in rows)
        assert all(row.first.middle != row.second.middle for row in rows)


def test_a_difference_does_not_fit(tmp_path: Path) -> None:
    """A fifth more latency at 2,000 probes is no chance; the flows are as before."""
    probes, flows = seeds.compare(run(tmp_path, 1), run(tmp_path, 2, slower=1.2))
    assert (probes.fits, flows.fits) == (False, True)
    assert probes.cells[:2] == ["TC0", "probe latency"]
    assert probes.cells[4] == "DIFFERS"
    assert flows.cells[4] == "fits"
    assert " us +- " in probes.cells[2]


def test_more_figures_make_wider_intervals(tmp_path: Path) -> None:
    """So that the confidence holds for all of them together."""
    first, second = run(tmp_path, 1), run(tmp_path, 2)
    (row, _) = seeds.compare(first, second, 0.9)
    (sure, _) = seeds.compare(first, second, 0.99)
    assert sure.first.half > row.first.half


def test_the_first_tokens_of_services_are_compared(tmp_path: Path) -> None:
    """From the arrival of a request; those without an answer are left out."""
    small = {"samples": 5, "probes": 50, "iterations": 1}
    runs = [
        RunReader.open(write_run(tmp_path, FakeRun(run_id=str(seed), seed=seed, **small)))
        for seed in (1, 2)
    ]
    names = [(row.group, row.name) for row in seeds.compare(*runs)]
    assert names == [
        ("TC0", "probe latency"), ("TC3", "probe latency"), ("job-a", "flow completion"),
        ("chat", "TTFT"),
    ]  # fmt: skip


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_samples_say_nothing(tmp_path: Path, count: int) -> None:
    """No interval, no row."""
    assert seeds.compare(run(tmp_path, 1, count=count), run(tmp_path, 2)) == []
