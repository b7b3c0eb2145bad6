"""What guest and host say to each other over the console."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from emulator.clock.virtual.console import MARK, ConsoleProgress, ConsoleReader


@pytest.fixture
def console(tmp_path: Path) -> Path:
    """The console's file; not there yet."""
    return tmp_path / "console.log"


def add(console: Path, data: bytes) -> None:
    """The guest goes on writing."""
    with console.open("ab") as file:
        file.write(data)


def said_by(speaker: io.StringIO) -> list[dict[str, object]]:
    """What a guest has told."""
    return [json.loads(line.removeprefix(MARK)) for line in speaker.getvalue().splitlines()]


def test_what_the_guest_tells_is_what_the_host_reads(console: Path) -> None:
    """Steps, how far it is, and the end, in their order, with any characters."""
    with console.open("w") as stream:
        guest = ConsoleProgress(stream)
        guest.note('a "step": ümlaut\nand a second line')
        guest.update(0.5, "half")
        guest.tell(end={"valid": True, "reasons": []})
    assert list(ConsoleReader(console).read()) == [
        {"note": 'a "step": ümlaut\nand a second line'},
        {"at": [0.5, "half"]},
        {"end": {"valid": True, "reasons": []}},
    ]


def test_progress_is_told_about_a_hundred_times() -> None:
    """However often the run asks, since each line costs a system call of the guest."""
    stream = io.StringIO()
    guest = ConsoleProgress(stream)
    for step in range(10_001):
        guest.update(step / 10_000, "")
    fractions = [entry["at"][0] for entry in said_by(stream)]  # type: ignore[index]
    assert fractions[0] == 0
    assert fractions[-1] >= 0.99
    assert fractions == sorted(fractions)


def test_a_run_that_advances_fast_is_told_a_hundred_times() -> None:
    """A line for each hundredth, none in between."""
    stream = io.StringIO()
    guest = ConsoleProgress(stream)
    for step in range(1_001):
        guest.update(step / 1_000, "")
    assert 90 <= len(said_by(stream)) <= 110


def test_a_run_that_does_not_advance_still_says_something() -> None:
    """So that the host can tell slow from stuck."""
    stream = io.StringIO()
    guest = ConsoleProgress(stream)
    for _ in range(100):
        guest.update(0.3, "one long flow")
    told = said_by(stream)
    assert 2 <= len(told) <= 10
    assert told[0] == told[-1] == {"at": [0.3, "one long flow"]}


def test_an_early_reader_waits(console: Path) -> None:
    """The guest may not have begun."""
    reader = ConsoleReader(console)
    assert list(reader.read()) == []
    add(console, f'{MARK}{{"note": "up"}}\n'.encode())
    assert list(reader.read()) == [{"note": "up"}]
    assert list(reader.read()) == []


def test_half_a_line_is_read_when_it_is_whole(console: Path) -> None:
    """Even when it is cut within a character."""
    reader, line = ConsoleReader(console), f'{MARK}{{"note": "größer"}}\n'.encode()
    cut = line.index("ß".encode()) + 1
    add(console, line[:cut])
    assert list(reader.read()) == []
    add(console, line[cut:] + b"rest")
    assert list(reader.read()) == [{"note": "größer"}]
    assert reader.other == []
    add(console, b" of a line\n")
    assert list(reader.read()) == []
    assert reader.other == ["rest of a line"]


def test_what_the_kernel_says_is_kept_aside(console: Path) -> None:
    """Its lines end with a carriage return, and need not be text; empty ones do not count."""
    add(console, b"Linux version 6\r\n\r\n\xff\xfe broken\n")
    add(console, f'{MARK}{{"at": [0.1, "x"]}}\r\n'.encode())
    reader = ConsoleReader(console)
    assert list(reader.read()) == [{"at": [0.1, "x"]}]
    assert reader.other == ["Linux version 6", "\N{REPLACEMENT CHARACTER}" * 2 + " broken"]


@pytest.mark.parametrize("text", ['{"note": "namesp[   12.5] Out of memory', "{", "[1]", "5", ""])
def test_a_line_that_the_kernel_spoiled_ends_nothing(console: Path, text: str) -> None:
    """It may print in the middle of one; what can still be read is read."""
    add(console, f'{MARK}{text}\n{MARK}{{"note": "links"}}\n'.encode())
    reader = ConsoleReader(console)
    assert list(reader.read()) == [{"note": "links"}]
    assert reader.other == [f"{MARK}{text}"]
