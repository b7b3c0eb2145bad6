"""The table that a person reads in ten seconds."""

from __future__ import annotations

import io
from typing import Any

import pytest

from emulator.results.summary import INVALID, VALID, SummaryParts, assemble
from emulator.results.table import MAX_LINES, align, print_table, ten_second_table

IDENTITY = {
    "name": "demo", "policy": "ecmp", "profile": "rocev2", "seed": 7, "clock": "live",
    "dilation": 1000.0, "shrink": 16,
}  # fmt: skip


def job(name: str = "job-a") -> dict[str, Any]:
    """A training job."""
    return {
        "name": name, "iterations": 3, "iteration_ms": {"mean": 256, "p50": 256, "p99": 270},
        "busbw_gbps": 89.6, "busbw_fraction": 0.896, "gpu_busy_fraction": 0.25,
    }  # fmt: skip


def service(name: str = "chat") -> dict[str, Any]:
    """An inference service with failures."""
    return {
        "name": name, "requests": 60, "completed": 57, "failed": 3,
        "ttft_ms": {"p50": 12.4, "p99": 20.6}, "tpot_ms": {"p50": 0.8, "p99": 1.1},
        "kv_transfer_ms": {"p50": 7, "p99": 15.8}, "slo_met_fraction": 0.917,
    }  # fmt: skip


def summary(**changes: Any) -> dict[str, Any]:
    """A summary with one job, one service and two classes."""
    parts: dict[str, Any] = {
        "identity": IDENTITY,
        "verdict": VALID,
        "packets": {"sent": 400, "delivered": 390, "dropped": 10, "trimmed": 0, "marked": 5},
        "training": [job()],
        "inference": [service()],
        "probes": [{"class": 3, "sent": 1000, "lost": 2, "latency_us": {"p50": 4.2, "p99": 128}}],
        "classes": [
            {"tc": 0, "lossless": False, "sent": 100, "dropped": 0, "marked": 0},
            {"tc": 3, "lossless": True, "sent": 400, "dropped": 10, "marked": 5},
        ],
    }
    return assemble(SummaryParts(**(parts | changes)))


def test_verdict_comes_first_then_workloads_classes_fidelity() -> None:
    """The order is the order of importance."""
    lines = [line for line in ten_second_table(summary()).splitlines() if line]
    assert lines[0] == (
        "VALID  demo | rocev2 | ecmp | seed 7 | live clock, slowed 1,000 x, sizes / 16"
    )
    starts = [line.split()[0] for line in lines[1:]]
    assert starts == ["job-a", "chat", "class", "TC0", "TC3", "packets", "pause", "fidelity"]


def test_workload_lines_say_what_each_got() -> None:
    """Times, bandwidth and the share of met objectives are on the workload's line."""
    text = ten_second_table(summary())
    assert "256 ms each, p99 270 ms" in text
    assert "busbw 89.6 Gbit/s (89.6 % of best)" in text
    assert "57/60 requests" in text
    assert "TTFT p50 12.4 ms, p99 20.6 ms" in text
    assert "SLO met 91.7 %" in text


def test_background_lines_say_what_got_through() -> None:
    """Flows, their completion times and the goodput."""
    bulk = {
        "name": "bulk", "flows": 20, "completed": 19, "goodput_gbps": 80.5,
        "fct_ms": {"p50": 0.1, "p99": 0.32},
    }  # fmt: skip
    line = ten_second_table(summary(background=[bulk])).splitlines()[4]
    assert " ".join(line.split()) == (
        "bulk background 19/20 flows FCT p50 100 us, p99 320 us goodput 80.5 Gbit/s"
    )


def test_planned_iterations_show_when_some_are_missing() -> None:
    """A job that did not finish says how far it came."""
    short = ten_second_table(summary(training=[job() | {"iterations_planned": 5}]))
    assert "3/5 iterations" in short
    assert "3 iterations" in ten_second_table(summary(training=[job() | {"iterations_planned": 3}]))


def test_class_lines_carry_loss_and_latency() -> None:
    """Drops, marks and probe latency stand in one line per class; lossless is named."""
    line = next(line for line in ten_second_table(summary()).splitlines() if line.startswith("TC3"))
    cells = line.split("  ")
    assert line.startswith("TC3 lossless")
    assert "10 (2.5 %)" in cells
    assert "2 (0.2 %)" in line
    assert "128 us" in line


def test_lossless_classes_say_how_much_was_paused() -> None:
    """Counts, share of the time and reaction; a quiet run says so, a lossy one nothing."""
    pfc = {
        "pauses": 152, "paused_fraction": 0.25, "watchdog_events": 0,
        "reaction_us": {"p50": 3.6, "p99": 3.9},
    }  # fmt: skip
    assert (
        "pause     152 pauses, 25 % of the time, reaction p50 3.6 us, p99 3.9 us, 0 watchdog events"
    ) in ten_second_table(summary(pfc=pfc)).splitlines()
    assert "pause     nobody was paused" in ten_second_table(summary(pfc={"pauses": 0}))
    assert "pause" not in ten_second_table(summary(classes=[]))


def test_columns_are_aligned() -> None:
    """The parts of the workload lines begin at the same place."""
    lines = ten_second_table(summary()).splitlines()
    first, second = (next(x for x in lines if x.startswith(name)) for name in ("job-a", "chat"))
    assert first.index("training") == second.index("inference")
    assert first.index("256 ms each") == second.index("TTFT")


@pytest.mark.parametrize("workloads", [0, 1, 5, 40])
@pytest.mark.parametrize("classes", [0, 2, 8])
@pytest.mark.parametrize("reasons", [0, 1, 9])
def test_never_more_than_fifteen_lines(workloads: int, classes: int, reasons: int) -> None:
    """Whatever a run holds, the table fits a small window and says what it left out."""
    rows = [
        {"tc": tc, "lossless": False, "sent": 1, "dropped": 0, "marked": 0} for tc in range(classes)
    ]
    text = ten_second_table(
        summary(
            training=[job(f"job{n}") for n in range(workloads)],
            inference=[service(f"svc{n}") for n in range(workloads)],
            classes=rows,
            probes=[],
            verdict=INVALID if reasons else VALID,
            reasons=[f"reason {n}" for n in range(reasons)],
        )
    )
    lines = text.splitlines()
    assert len(lines) <= MAX_LINES
    assert lines[-1].startswith("fidelity")
    if 2 * workloads > MAX_LINES:
        assert "more, see summary.json" in text
    if classes:
        assert "TC0" in text


def test_reasons_follow_the_verdict() -> None:
    """An invalid run says why, directly below the verdict."""
    lines = ten_second_table(summary(verdict=INVALID, reasons=["a" * 300, "b"])).splitlines()
    assert lines[0].startswith("INVALID  demo")
    assert lines[1].endswith("...")
    assert len(lines[1]) < 210
    assert lines[2] == "  - b"


def test_plain_ascii_and_no_colour_for_files() -> None:
    """What is piped into a file holds no control codes and no exotic characters."""
    stream = io.StringIO()
    print_table(summary(), stream, {})
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().isascii()
    assert stream.getvalue().endswith("\n")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def test_colour_on_a_terminal_unless_refused() -> None:
    """A terminal gets a coloured verdict, with NO_COLOR it does not."""
    coloured, plain = Terminal(), Terminal()
    print_table(summary(), coloured, {})
    print_table(summary(), plain, {"NO_COLOR": "1"})
    assert coloured.getvalue().startswith("\x1b[1;32mVALID\x1b[0m")
    assert "\x1b" not in plain.getvalue()


def test_a_run_of_nothing_has_a_table() -> None:
    """Without workloads, classes and probes the verdict and the fidelity remain."""
    bare = summary(training=[], inference=[], probes=[], classes=[], packets={})
    text = ten_second_table(bare)
    assert text.splitlines()[0].startswith("VALID")
    assert "- sent" in text


def test_scale_one_is_not_mentioned() -> None:
    """A run at full size and speed has no scale words."""
    identity = IDENTITY | {"dilation": 1, "shrink": 1, "clock": "virtual"}
    assert ten_second_table(summary(identity=identity)).splitlines()[0].endswith("virtual clock")


def test_align_right() -> None:
    """Number columns are right-aligned from the given column on."""
    assert align([["a", "1"], ["bb", "100"]], right_from=1) == "a     1\nbb  100"
