"""The process ends loudly on an unhandled exception, and says why before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

FAILING = """
import logging
from controller import process
logging.basicConfig(format="%(levelname)s %(message)s")
process.at_end(lambda reason: print("state:", reason, flush=True))

@process.kill_on_exception
def handler(number):
    return 1 / number

print(handler(2), flush=True)
handler(0)
print("went on")
"""

BROKEN_LAST_WORDS = """
from controller import process
process.at_end(lambda reason: 1 / 0)
process.at_end(lambda reason: print("second:", reason, flush=True))
process.end(7, "done")
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter of its own."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT,
        timeout=60,
    )  # fmt: skip


def test_unhandled_exception_ends_the_process() -> None:
    """Exit code 1, a traceback in the log as CRITICAL, last words with the reason."""
    done = run(FAILING)
    assert done.returncode == 1
    assert done.stdout == "0.5\nstate: ZeroDivisionError: division by zero\n"
    assert "CRITICAL unhandled exception" in done.stderr
    assert "in handler\nZeroDivisionError" in done.stderr


def test_nothing_keeps_the_process_from_ending() -> None:
    """Last words that fail are logged; the others are still said."""
    done = run(BROKEN_LAST_WORDS)
    assert (done.returncode, done.stdout) == (7, "second: done\n")
    assert "could not say that the controller ends" in done.stderr


@pytest.mark.parametrize("arguments", [["--no-such-option"], []])
def test_usage(arguments: list[str]) -> None:
    """Wrong arguments print the usage and exit with 2."""
    command = [sys.executable, "-m", "controller", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )
    assert done.returncode == 2
    assert "usage: python -m controller" in done.stderr
