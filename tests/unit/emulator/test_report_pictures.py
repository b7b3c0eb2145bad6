"""Details of single pictures."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from emulator.report.charts_jobs import (
    MAX_ITERATIONS,
    MAX_RANKS,
    iterations_picture,
    requests_picture,
    timeline_picture,
)
from emulator.report.charts_ports import queue_picture, rates_picture
from emulator.report.charts_probes import probes_picture
from emulator.report.extract import MarkRule, ProbeClass, Requests
from emulator.report.fabricmap import manifest_ports
from emulator.report.picture import Picture
from emulator.report.timeline import Row, Timeline
from emulator.results.queues import QueueSeries
from emulator.results.reader import RunReader
from tests.fakes.run_folder import FakeRun, write_run

MS = 1_000_000


def texts(picture: Picture) -> list[str]:
    """All text in the drawing."""
    return re.findall(r"<text [^>]*>([^<]*)</text>", picture.svg or "")


def job(iterations: int = 3, ranks: int = 4, name: str = "job") -> Timeline:
    """A job whose seventh iteration is the slowest."""
    spans, at = {}, 0.0
    for number in range(iterations):
        length = (3 if number == 7 else 2) * MS
        spans[number] = (at, at + length)
        at += length
    rows = [
        Row(f"r{rank}", [(a, a + MS) for a, _ in spans.values()],
            [(a + MS, b) for a, b in spans.values()])
        for rank in range(ranks)
    ]  # fmt: skip
    return Timeline(name, tuple(rows), spans, 0)


def service(**changes: object) -> Requests:
    """Ten requests of 1 to 10 ms."""
    values = np.arange(1.0, 11.0)
    plain: dict[str, object] = {
        "job": "chat", "ttft_ms": values, "tpot_ms": values / 10, "kv_ms": values / 2,
        "expected": {"ttft": 10, "tpot": 10, "kv": 10}, "unfinished": 0,
    }  # fmt: skip
    return Requests(**(plain | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunReader:
    """A run with queues."""
    return RunReader.open(write_run(tmp_path_factory.mktemp("r"), FakeRun(samples=80, probes=10)))


def samples_of(run: RunReader) -> QueueSeries:
    """Its samples."""
    samples = run.queues()
    assert samples is not None
    return samples


def test_long_jobs_show_the_slowest_iteration() -> None:
    """Of many iterations those around the slowest are drawn, and the report says which."""
    picture = timeline_picture([job(iterations=40)], 1)
    assert "iterations 2 to 11 of 40 are shown, around the slowest (7)" in picture.sentence
    marks = [text for text in texts(picture) if re.fullmatch(r"i\d+", text)]
    assert len(marks) == MAX_ITERATIONS
    assert "i7" in marks


def test_many_ranks_are_cut_with_a_note() -> None:
    """The first ranks are drawn; the note says how many there are."""
    picture = timeline_picture([job(ranks=100)], 1)
    assert f"the first {MAX_RANKS} of 100 ranks are shown" in picture.sentence
    assert f"r{MAX_RANKS - 1}" in texts(picture)
    assert f"r{MAX_RANKS}" not in texts(picture)


def test_further_jobs_are_named() -> None:
    """More jobs than there is room for are not hidden."""
    picture = timeline_picture([job(name=f"j{n}") for n in range(6)], 1)
    assert "2 more jobs are in flows.csv" in picture.sentence


def test_unfinished_tasks_are_said() -> None:
    """A timeline that ends in the middle says how many tasks were open."""
    base = job()
    picture = timeline_picture([Timeline("job", base.rows, base.iterations, 12)], 1)
    assert "12 tasks had not ended with the run" in picture.sentence


def test_shrink_is_said_where_times_are_as_emulated() -> None:
    """The timeline is in emulated time and says what to multiply by."""
    assert "16 times as long" in timeline_picture([job()], 16).sentence
    assert timeline_picture([job()], 1).sentence == ""


def test_iteration_axis_counts_in_whole_numbers() -> None:
    """There is no iteration 0.5."""
    for count in (1, 3, 12):
        picture = iterations_picture([job(iterations=count)], 1000)
        ticks = [text for text in texts(picture) if re.fullmatch(r"\d+\.\d+", text)]
        assert ticks == []


def test_far_objectives_do_not_squeeze_the_curves() -> None:
    """An objective of a hundred times the slowest request is said, not drawn."""
    picture = requests_picture([service()], {"chat": {"ttft": 1000.0, "tpot": 1.5}})
    assert "SLO 1 s is far right" in texts(picture)
    assert "SLO 1.5 ms" in texts(picture)


def test_services_without_transfer_say_none() -> None:
    """The panel of a latency that does not exist says so."""
    nothing = np.full(10, np.nan)
    picture = requests_picture(
        [service(kv_ms=nothing, expected={"ttft": 10, "tpot": 10, "kv": 0})], {}
    )
    assert "none" in texts(picture)


def test_several_services_get_a_legend() -> None:
    """Two services are told apart by name."""
    picture = requests_picture([service(), service(job="code")], {})
    assert {"chat", "code"} <= set(texts(picture))


def test_lost_probes_are_said() -> None:
    """Losses stand below the picture; none at all is a sentence too."""
    arrived = ProbeClass(0, 10, np.arange(1.0, 11.0))
    lossy = ProbeClass(3, 10, np.arange(1.0, 8.0))
    assert probes_picture([arrived], {}).sentence == "No probe was lost."
    assert probes_picture([arrived, lossy], {}).sentence == "TC3 lost 3 of 10 probes."
    dead = ProbeClass(3, 10, np.zeros(0))
    assert probes_picture([dead], {}).sentence == "None of the probes arrived."
    assert probes_picture([dead], {}).svg is None


def test_queue_rows_are_the_deepest_switch_ports(run: RunReader) -> None:
    """Six rows, deepest first; a host's own queue is not a switch port."""
    samples = samples_of(run)
    picture = queue_picture(samples, manifest_ports(run.manifest), [])
    titles = [text for text in texts(picture) if ", peak " in text]
    assert len(titles) == 6
    names = [re.search(r"\((.*)\)", title).group(1) for title in titles]  # type: ignore[union-attr]
    peaks = [samples.of_port("bytes", name).max() for name in names]
    assert peaks == sorted(peaks, reverse=True)
    assert not any(name.startswith("h") for name in names)


def test_thresholds_far_above_are_said_not_drawn(run: RunReader) -> None:
    """A Kmax of many times the deepest queue would flatten every curve."""
    rules = [MarkRule(100_000, 100_000_000)]
    picture = queue_picture(samples_of(run), manifest_ports(run.manifest), rules)
    assert "Kmin 100 KB" in texts(picture)
    assert picture.sentence == "No queue came near Kmax 100 MB."


def test_close_thresholds_share_a_label(run: RunReader) -> None:
    """Labels that would overlap become one."""
    rules = [MarkRule(500_000, 510_000)]
    picture = queue_picture(samples_of(run), manifest_ports(run.manifest), rules)
    assert "Kmin 500 KB, Kmax 510 KB" in texts(picture)


def test_thresholds_are_drawn_at_their_ports_only(run: RunReader) -> None:
    """A rule for other ports draws no line here."""
    ports = manifest_ports(run.manifest)
    picture = queue_picture(samples_of(run), ports, [MarkRule(400_000, 900_000, "spine9-*")])
    assert not any(text.startswith("Kmin") for text in texts(picture))
    assert picture.sentence == ""


def test_no_samples_are_said(run: RunReader) -> None:
    """Without samples there is a sentence for queues and rates."""
    assert queue_picture(None, [], []).sentence == "No queue samples were recorded in this run."
    assert rates_picture(None, run.manifest).sentence.startswith("No queue samples")


def test_many_hosts_are_a_heat_map(tmp_path: Path) -> None:
    """More hosts than rows fit become one image, embedded as data."""
    big = FakeRun(leaves=4, hosts_per_leaf=5, samples=40, probes=0, requests=0, iterations=1)
    run = RunReader.open(write_run(tmp_path, big))
    picture = rates_picture(run.queues(), run.manifest)
    assert picture.svg is not None
    assert "data:image/png;base64" in picture.svg
    assert "share of the line rate (%)" in texts(picture)
