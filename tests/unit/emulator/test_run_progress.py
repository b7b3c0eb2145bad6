"""What people see while a run lasts."""

from __future__ import annotations

import io

import pytest

from emulator.run import progress
from emulator.run.progress import Progress


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


class Clock:
    """Seconds as the test sets them."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        """Now."""
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Stands in for the module `time`."""
    fake = Clock()
    monkeypatch.setattr(progress, "time", fake)
    return fake


def test_steps_are_lines(clock: Clock) -> None:
    """Each as it begins."""
    stream = io.StringIO()
    shown = Progress(stream)
    shown.note("building")
    shown.note("sending")
    assert stream.getvalue() == "  building\n  sending\n"


def test_a_terminal_has_one_line_that_is_renewed(clock: Clock) -> None:
    """A few times a second, however often it is asked; what comes next is on a line of its own."""
    stream = Terminal()
    shown = Progress(stream)
    for step in range(11):
        shown.update(step / 10, f"step {step}")
        clock.now_s += 0.1
    shown.note("judging")
    text = stream.getvalue()
    shows = text.split("\r")[1:]
    assert [" ".join(part.split()) for part in shows] == [
        "0% step 0", "30% step 3", "60% step 6", "90% step 9 judging",
    ]  # fmt: skip
    assert text.endswith("\n  judging\n")
    assert all(len(part.split("\n")[0]) >= 79 for part in shows)


def test_a_long_line_fits_the_terminal(clock: Clock) -> None:
    """Else the terminal would wrap it, and renewing would not overwrite it."""
    stream = Terminal()
    Progress(stream).update(0.5, "x" * 200)
    assert len(stream.getvalue().lstrip("\r")) == 79


def test_a_log_gets_a_line_now_and_then(clock: Clock) -> None:
    """Every ten seconds, without control characters."""
    stream = io.StringIO()
    shown = Progress(stream)
    for second in range(25):
        shown.update(second / 25, f"second {second}")
        clock.now_s += 1
    shown.done()
    assert stream.getvalue() == "    0% second 0\n   40% second 10\n   80% second 20\n"


def test_more_than_all_is_all(clock: Clock) -> None:
    """An expectation that was too low shows no 120 %."""
    stream = io.StringIO()
    Progress(stream).update(1.2, "late")
    assert stream.getvalue() == "  100% late\n"


def test_the_last_line_is_ended_once(clock: Clock) -> None:
    """So that the shell's prompt does not stand behind it."""
    stream = Terminal()
    shown = Progress(stream)
    shown.update(1.0, "done")
    shown.done()
    shown.done()
    assert stream.getvalue().endswith(" \n")
    assert stream.getvalue().count("\n") == 1


def test_quiet_is_quiet(clock: Clock) -> None:
    """Nothing at all."""
    stream = Terminal()
    shown = Progress(stream, quiet=True)
    shown.note("building")
    shown.update(0.5, "half")
    shown.done()
    assert stream.getvalue() == ""


def test_progress_goes_to_the_error_stream(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output stays clean for what a command prints."""
    Progress().note("building")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "  building\n")
