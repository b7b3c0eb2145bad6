"""report.html of whole run folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.report.html import build_report, write_page
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from tests.fakes.pages import Page
from tests.fakes.run_folder import STARTED, FakeRun, write_run
from topologies.errors import MachineError, SpecError

SMALL: dict[str, Any] = {"samples": 60, "probes": 200, "requests": 20}
MAX_BYTES = 1_500_000


def report(root: Path, run: FakeRun) -> Page:
    """The parsed report of a synthetic run."""
    return Page(build_report(write_run(root, run)).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of an ordinary run."""
    return report(tmp_path_factory.mktemp("results"), FakeRun(**SMALL))


def test_page_is_well_formed_and_self_contained(full: Page) -> None:
    """One file, no script, nothing loaded from elsewhere, no id twice, every anchor there."""
    assert full.problems == []
    assert full.outside_links() == []
    assert full.broken_anchors() == []


def test_all_pictures_are_there(full: Page) -> None:
    """Seven drawings, each valid XML with a label for screen readers."""
    pictures = full.pictures()
    assert [picture.get("aria-label") for picture in pictures] == [
        "Fabric and link load", "Training timeline", "Iteration time", "Request latency",
        "Probe latency per traffic class", "Queue depth", "What each host sends",
    ]  # fmt: skip


def test_axes_carry_units(full: Page) -> None:
    """Every axis says what it shows and in which unit."""
    for label in (
        "time in the run (ms)", "duration (ms)", "latency (µs)", "queue (MB)",
        "share of requests", "mean load of the busier direction (%)",
    ):  # fmt: skip
        assert label in full.words


def test_the_top_says_verdict_and_results(full: Page) -> None:
    """Verdict, workloads and classes come before everything else."""
    order = [
        "training-beside-inference", "VALID", "Result in ten seconds", "19/20 requests", "TTFT",
        "TC3", "What was run", "8 hosts, 4 leaves, 2 spines", "Each line is a cable",
    ]  # fmt: skip
    positions = [full.text.index(word) for word in order]
    assert positions == sorted(positions)


def test_scale_is_explained_in_sentences(full: Page) -> None:
    """A newcomer learns what dilation and shrink did to the run."""
    assert "the network ran 1,000 times slower than the target" in full.text
    assert "messages, computation and request gaps were 16 times smaller" in full.text


def test_thresholds_objectives_and_prediction_are_drawn(full: Page) -> None:
    """Kmin, Kmax, SLOs and the idle fabric's latency are labelled in the pictures."""
    for label in ("Kmin 400 KB", "Kmax 1.6 MB", "SLO 20 ms", "SLO 2 ms"):
        assert label in full.words
    assert any(word.startswith("idle fabric, predicted") for word in full.words)


def test_drops_and_marks_by_place(full: Page) -> None:
    """Ports are named by their two ends and by class."""
    assert any(word.endswith("(leaf1-eth1)") or "leaf" in word for word in full.words)
    assert "Drops and marks by place" in full.words
    assert "TC3" in full.words


def test_experiment_versions_and_hashes_are_at_the_end(full: Page) -> None:
    """Everything that is needed to run it again is in the page."""
    for text in ("kind: leaf-spine", "scapy", "net.core.wmem_default", "9f2c41d7"):
        assert text in full.text


def test_unfinished_requests_are_said(full: Page) -> None:
    """Curves that end below 1 are explained."""
    assert "did not finish, so its curves end below 1" in full.text


EVIL = '<script>alert("x")</script> $\\frac{a}$ & \N{SNOWMAN}'
EVIL_REASON = "port <img src=x onerror=y> was 5 % slow"
EVIL_JOB = "_a$x$<b>\u4e2d"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The report of an invalid run whose names are full of markup."""
    run = FakeRun(name=EVIL, reasons=(EVIL_REASON,), **SMALL)
    path = write_run(tmp_path_factory.mktemp("results"), run)
    for name in ("flows.csv", "computes.csv", "summary.json"):
        file = path / name
        file.write_text(file.read_text().replace("job-a", EVIL_JOB))
    return Page(build_report(path).read_text(encoding="utf-8"))


def test_invalid_run_says_so_on_top(hostile: Page) -> None:
    """The reasons follow the verdict, and failed checks are marked."""
    assert "INVALID" in " ".join(hostile.words[:6])
    assert "do not rely on these numbers" in hostile.text
    assert EVIL_REASON in hostile.words
    assert "failed" in hostile.words


def test_text_is_escaped_everywhere(hostile: Page) -> None:
    """Names cannot smuggle markup into the page, the pictures, or Matplotlib's formulas."""
    assert hostile.problems == []
    assert hostile.outside_links() == []
    assert EVIL in hostile.words


def test_odd_job_names_are_drawn_as_they_are(hostile: Page) -> None:
    """Dollar signs, underscores and other scripts in names neither fail nor vanish."""
    assert [word.strip() for word in hostile.words].count(EVIL_JOB) >= 3


def test_missing_inputs_become_sentences(tmp_path: Path) -> None:
    """No training, no inference, no probes: a sentence each, no empty picture."""
    page = report(tmp_path, FakeRun(iterations=0, requests=0, probes=0, samples=60))
    assert page.problems == []
    for sentence in (
        "This run had no training job.", "No training iteration was completed.",
        "This run had no inference requests.", "No probes were sent in this run.",
        "No queue built up at any switch port.",
        "No packet was dropped, trimmed or marked anywhere.",
    ):  # fmt: skip
        assert sentence in page.words
    assert len(page.pictures()) == 2


def test_folder_that_was_only_created(tmp_path: Path) -> None:
    """A run that died at once still has a report: everything is missing, nothing fails."""
    folder = RunFolder.create(tmp_path, "died", "id", STARTED)
    page = Page(build_report(folder.path).read_text(encoding="utf-8"))
    assert page.problems == []
    assert page.pictures() == []
    assert "INCOMPLETE" in page.text
    assert "On record: 0 finished flows" in page.text
    assert "The folder holds no spec.yaml." in page.words


def test_run_that_was_cut_short_shows_what_it_has(tmp_path: Path) -> None:
    """After a crash the pictures are drawn from the tables and the chunks of samples."""
    page = report(tmp_path, FakeRun(finished=False, samples=250, probes=100, requests=20))
    assert "INCOMPLETE" in page.text
    assert "the run was cut short" in page.text
    assert "On record: 336 finished flows, 19 finished requests, 200 probes" in page.text
    assert "queue samples were read from the chunks" in page.text
    assert len(page.pictures()) == 7


def test_huge_runs_stay_small(tmp_path: Path) -> None:
    """Sixty-four hosts, tens of thousands of rows and counts of 10^14 fit the size limit."""
    run = FakeRun(
        leaves=8, spines=4, hosts_per_leaf=8, samples=900, probes=8_000, requests=1_500,
        iterations=20, scale=10**9,
    )  # fmt: skip
    path = write_run(tmp_path, run)
    built = build_report(path)
    assert built.stat().st_size < MAX_BYTES
    page = Page(built.read_text(encoding="utf-8"))
    assert page.problems == []
    assert page.outside_links() == []
    assert "h1-h8" in page.words
    assert "412 T" in page.words
    assert any("iterations" in word and "of 20 are shown" in word for word in page.words)


EDGE_CASES = {
    "tiny": FakeRun(
        leaves=1, spines=1, hosts_per_leaf=2, samples=1, probes=1, requests=1, iterations=1
    ),
    "two planes": FakeRun(planes=2, **SMALL),
    "all requests failed": FakeRun(failing=1.0, ecn=False, shrink=1.0, **SMALL),
}


@pytest.mark.parametrize("run", EDGE_CASES.values(), ids=EDGE_CASES.keys())
def test_edge_cases_have_sound_pages(tmp_path: Path, run: FakeRun) -> None:
    """The smallest, two planes, and the unlucky: each page is well formed."""
    page = report(tmp_path, run)
    assert page.problems == []
    assert page.outside_links() == []
    assert len(page.pictures()) >= 5
    assert ("No queue samples were recorded in this run." in page.words) == (run.samples == 1)


def test_report_repeats_and_leaves_the_rest_alone(tmp_path: Path) -> None:
    """Only report.html is added to the folder, and making it again gives the same bytes."""
    run = write_run(tmp_path, FakeRun(samples=20, probes=20, requests=5, iterations=1))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    page = build_report(run)
    first = page.read_bytes()
    after = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert after == before | {page: first}
    assert build_report(run).read_bytes() == first


def test_errors_are_those_of_the_folder(tmp_path: Path) -> None:
    """A missing folder, and a page that cannot be written, are one clear error each."""
    with pytest.raises(SpecError, match="does not exist"):
        build_report(tmp_path / "nothing")
    (tmp_path / "taken").write_text("")
    with pytest.raises(MachineError, match="cannot be written"):
        write_page(tmp_path / "taken" / "report.html", "page")


def test_damaged_samples_are_one_clear_error(tmp_path: Path) -> None:
    """A broken queues.npz is named."""
    run = write_run(tmp_path, FakeRun(**SMALL))
    (run / "queues.npz").write_bytes(b"broken")
    assert RunReader.open(run).complete
    with pytest.raises(SpecError, match=r"queues\.npz"):
        build_report(run)
