"""The kernel in the cache, if one is built: it is what the recipe says, and works as it must."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from emulator.clock.virtual import kernel, recipe, trial
from emulator.clock.virtual.kernel import BuiltKernel

_RANDOM = "import os; print('random', os.urandom(16).hex(), os.environ.get('fabriclab_seed'))"
_CLOCK = """
import time
first = time.monotonic_ns()
reading_ns = time.monotonic_ns() - first
time.sleep(1000)
slept_ns = time.monotonic_ns() - first
phases = set()
for number in range(8):
    time.sleep(1e-3 + number * 1.1e-8)
    phases.add(time.monotonic_ns() % 256)
print("clock", reading_ns, slept_ns, len(phases))
"""


@pytest.fixture(scope="module")
def built() -> BuiltKernel:
    """The kernel that runs take."""
    found = kernel.find()
    if found is None:
        pytest.skip(f"the virtual clock's kernel is not built; {kernel.COMMAND}")
    return found


def _said(command: list[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout


def _in_guest(built: BuiltKernel, folder: Path, program: str, *parameters: str) -> str:
    """The line that a Python program prints as the guest's first process."""
    command = trial.command(built.path, folder)
    command = [word for word in command if not word.startswith("init=")]
    script = folder / "script.py"
    script.write_text(program)
    # It ends, so the kernel panics and aborts: that is the end of a guest that nobody switches off.
    said = trial.output([*command, f"init={sys.executable}", *parameters, "--", str(script)])
    return next(line for line in said.splitlines() if line.startswith(("random", "clock")))


def test_it_says_its_version(built: BuiltKernel) -> None:
    """The source's, with our suffix."""
    assert _said([str(built.path), "--version"]).strip() == f"{built.version}-fabriclab"


def test_it_has_all_options_of_the_recipe(built: BuiltKernel) -> None:
    """The configuration that is in the program itself."""
    assert recipe.dropped(_said([str(built.path), "--showconfig"])) == []


def test_it_runs_programs_of_this_machine(built: BuiltKernel, tmp_path: Path) -> None:
    """With all registers that this processor has."""
    trial.require(built.path, built.version, tmp_path)


def test_its_randomness_comes_from_the_seed_alone(built: BuiltKernel, tmp_path: Path) -> None:
    """Equal seeds, equal bytes, whatever else is on the command line; init never sees the seed."""
    seeds = {
        "one": "fabriclab_seed=1",
        "again": "fabriclab_seed=1",
        "two": "fabriclab_seed=2",
        "long": f"fabriclab_seed={'1' * 32}1",
        "none": "quiet",
    }
    said = {name: _in_guest(built, tmp_path, _RANDOM, seed) for name, seed in seeds.items()}
    folder = tmp_path / "another-folder"
    folder.mkdir()
    elsewhere = _in_guest(built, folder, _RANDOM, "fabriclab_seed=1", "OTHER=words")
    assert said["one"] == said["again"] == elsewhere
    assert len(set(said.values())) == len(seeds) - 1
    assert said["one"].endswith(" None")


def test_its_time_jumps_and_counts_in_nanoseconds(built: BuiltKernel, tmp_path: Path) -> None:
    """A quarter of an hour passes at once; reading takes time; timers end at any nanosecond."""
    _, reading_ns, slept_ns, phases = _in_guest(built, tmp_path, _CLOCK).split()
    assert int(reading_ns) >= recipe.CLOCK_READ_NS
    assert int(slept_ns) == pytest.approx(1000e9, rel=1e-3)
    assert int(phases) > 1
