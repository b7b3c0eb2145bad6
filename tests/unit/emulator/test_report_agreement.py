"""The live clock against the virtual one: figures side by side, within tolerance or not."""

from __future__ import annotations

import copy
import csv
import io
from pathlib import Path
from typing import Any

import pytest

from emulator.report import agreement, comparison, who_pays
from emulator.report.agreement import AGREES, DIFFERS, INFORMATION, Agreement, Row
from emulator.report.compare import build_compare, compare_csv, compare_text, open_runs
from emulator.report.comparison import Compared
from emulator.results import format as fmt
from tests.fakes.pages import Page
from tests.fakes.run_folder import FakeRun, write_run

SMALL: dict[str, Any] = {"samples": 5, "probes": 50, "requests": 20, "background": 3}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Compared]:
    """One experiment under both clocks."""
    root = tmp_path_factory.mktemp("results")
    made = [FakeRun(run_id=clock, clock=clock, **SMALL) for clock in ("live", "virtual")]
    return open_runs([write_run(root, run) for run in made])


def changed(run: Compared, **values: Any) -> Compared:
    """The run with other figures: ``training__busbw_gbps=80`` and so on."""
    summary = copy.deepcopy(dict(run.summary))
    for path, value in values.items():
        part, *rest = path.split("__")
        if not rest:
            summary[part] = value
            continue
        item = summary[part][0]
        for key in rest[:-1]:
            item = item[key]
        item[rest[-1]] = value
    return Compared(run.label, run.run, summary)


def only(found: list[Agreement]) -> Agreement:
    """The one there is."""
    (one,) = found
    return one


def judged(runs: list[Compared]) -> Agreement:
    """The pair's section."""
    return only(agreement.agreements(runs, comparison.figures(runs)))


@pytest.mark.parametrize(
    ("value", "yardstick", "tolerance", "verdict"),
    [
        (104.9, 100.0, 0.05, AGREES), (95.1, 100.0, 0.05, AGREES), (105.1, 100.0, 0.05, DIFFERS),
        (94.9, 100.0, 0.05, DIFFERS), (0.0, 0.0, 0.05, AGREES), (1.0, 0.0, 0.05, DIFFERS),
        (None, 100.0, 0.05, DIFFERS), (100.0, None, 0.05, DIFFERS), (1.0, 2.0, None, INFORMATION),
    ],
)  # fmt: skip
def test_a_figure_agrees_within_its_tolerance(
    value: float | None, yardstick: float | None, tolerance: float | None, verdict: str
) -> None:
    """In both directions; one that only one run has does not agree."""
    row = Row("job", "goodput", value, yardstick, tolerance, fmt.rate_gbps)
    assert row.verdict == verdict


def test_the_figures_are_throughput_and_median_latency(runs: list[Compared]) -> None:
    """Of every workload and probed class, 5 and 10 per cent; the cache's transfer informs."""
    rows = {(row.group, row.name): row.tolerance for row in judged(runs).rows}
    assert rows == {
        ("job-a", "bus bandwidth"): 0.05,
        ("chat", "TTFT p50"): 0.10,
        ("chat", "KV transfer p50"): None,
        ("bulk", "goodput"): 0.05,
        ("bulk", "flow completion p50"): None,
        ("TC0", "probe latency p50"): 0.10,
        ("TC3", "probe latency p50"): 0.10,
    }


def test_equal_runs_agree(runs: list[Compared]) -> None:
    """All figures that are judged, and the sentence counts them."""
    found = judged(runs)
    assert found.sentence == "The clocks agree: 5 figures of 5 within tolerance."
    assert agreement.agrees(found.rows, runs)
    assert found.title == "Live against virtual: live clock, virtual clock"


def test_the_virtual_clock_is_the_yardstick_wherever_it_stands(runs: list[Compared]) -> None:
    """The live run is 25 % slower, whichever is named first."""
    live, virtual = changed(runs[0], training__busbw_gbps=60.0), runs[1]
    virtual = changed(virtual, training__busbw_gbps=80.0)
    for order in ([live, virtual], [virtual, live]):
        found = judged(order)
        assert (
            found.sentence == "The clocks differ in 1 figure of 5: job-a bus bandwidth (-25.0 %)."
        )
        assert found.rows[0].cells == [
            "job-a", "bus bandwidth", "60 Gbit/s", "80 Gbit/s", "-25.0 %", "5 %", "differs",
        ]  # fmt: skip
        assert not agreement.agrees(found.rows, order)


def test_an_invalid_run_agrees_with_nothing(runs: list[Compared]) -> None:
    """Its figures are shown, and the sentence says that they mean nothing."""
    bad = changed(runs[0], verdict="INVALID", reasons=["too slow"])
    found = judged([bad, runs[1]])
    assert found.sentence.endswith("But live clock is INVALID, so this says nothing.")
    assert "(INVALID)" in found.title
    assert not agreement.agrees(found.rows, [bad, runs[1]])


def test_runs_without_figures_agree_in_nothing() -> None:
    """Information alone is no agreement."""
    row = Row("chat", "KV transfer p50", 1.0, 1.0, None, fmt.duration_ms)
    for rows in ([], [row]):
        assert agreement.sentence(rows, [], "They").endswith(
            "no figures in common that could be judged."
        )
        assert not agreement.agrees(rows, [])


@pytest.mark.parametrize(
    "other", [{"seed": 8}, {"shrink": 2.0}, {"hashes": {"schedule": "x", "results": "y"}}]
)
def test_runs_that_differ_in_more_are_not_judged(
    runs: list[Compared], other: dict[str, Any]
) -> None:
    """Another seed, scale or schedule explains a difference, so there is no section."""
    pair = [runs[0], changed(runs[1], **other)]
    assert agreement.agreements(pair, comparison.figures(pair)) == []


def test_other_settings_are_not_judged(tmp_path: Path, runs: list[Compared]) -> None:
    """Nor is a run of another profile, nor two runs under one clock; they get a sentence."""
    other = write_run(tmp_path, FakeRun(profile="ethernet", ecn=False, clock="virtual", **SMALL))
    again = write_run(tmp_path, FakeRun(run_id="again", **SMALL))
    for path in (other, again):
        pair = open_runs([runs[0].run.path, path])
        figures = comparison.figures(pair)
        assert agreement.agreements(pair, figures) == []
        assert len(who_pays.sentences(pair, figures)) == 1


def test_settings_under_both_clocks_make_a_section_each(tmp_path: Path) -> None:
    """Two profiles, two clocks: two pairs; who pays is said within a clock."""
    made = [
        FakeRun(
            run_id=f"{profile}-{clock}", profile=profile, ecn=profile == "rocev2", clock=clock,
            extra_manifest={"label": f"{profile}, {clock} clock"}, **SMALL,
        )
        for profile in ("ethernet", "rocev2")
        for clock in ("live", "virtual")
    ]  # fmt: skip
    runs = open_runs([write_run(tmp_path, run) for run in made])
    figures = comparison.figures(runs)
    found = [(pair.live.label, pair.virtual.label) for pair in agreement.agreements(runs, figures)]
    assert found == [
        ("ethernet, live clock", "ethernet, virtual clock"),
        ("rocev2, live clock", "rocev2, virtual clock"),
    ]
    starts = [text.split(":")[0] for text in who_pays.sentences(runs, figures)]
    assert starts == [
        "rocev2, live clock against ethernet, live clock",
        "rocev2, virtual clock against ethernet, virtual clock",
    ]
    assert not any("dilated" in text for text in who_pays.cautions(runs))


def test_text_has_a_section(runs: list[Compared]) -> None:
    """Below the table: title, figures, sentence; nobody pays anything to a clock."""
    text = compare_text(runs)
    assert "Live against virtual: live clock, virtual clock" in text
    row = next(line for line in text.splitlines() if line.startswith("bulk   goodput  "))
    assert row.split()[2:] == ["80", "Gbit/s", "80", "Gbit/s", "0", "%", "5", "%", "agrees"]
    assert text.endswith("The clocks agree: 5 figures of 5 within tolerance.")
    assert "pays" not in text


def test_csv_has_columns_of_the_pair(runs: list[Compared]) -> None:
    """Difference and tolerance in per cent and the verdict; the file stays rectangular."""
    slow = changed(runs[0], training__busbw_gbps=44.8)
    rows = list(csv.reader(io.StringIO(compare_csv([slow, runs[1]]))))
    assert {len(row) for row in rows} == {9}
    pair = "live clock against virtual clock"
    assert rows[0][6:] == [f"{pair} %", f"{pair} tolerance %", f"{pair} verdict"]
    cells = {row[1]: row[6:] for row in rows if row[0] in ("job-a", "chat")}
    assert cells["bus bandwidth"] == ["-50.0", "5.0", "differs"]
    assert cells["KV transfer p50"] == ["0.0", "", "for information"]
    assert cells["TTFT p99"] == ["", "", ""]


def test_page_has_a_section(runs: list[Compared], tmp_path: Path) -> None:
    """With its own heading and table."""
    page = Page(build_compare([run.run.path for run in runs], tmp_path).read_text())
    assert page.problems == []
    assert "Live against virtual: live clock, virtual clock" in page.words
    assert "The clocks agree: 5 figures of 5 within tolerance." in page.words
    assert "Who pays what" not in page.words
    assert "Background traffic" in [picture.get("aria-label") for picture in page.pictures()]
