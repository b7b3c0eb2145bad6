"""The same experiment and seed give the same bytes: here, elsewhere, as somebody else, under load.

All these runs are of one experiment with everything in it that could differ: random arrivals, a
lottery of marks, drops and what follows them, probes, a capture.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from emulator.caching import cache_folder
from emulator.clock.virtual import kernel
from emulator.results.reader import RunReader
from emulator.results.sameness import compare
from tests.integration.harness import Ran, leaf_spine, run
from tests.virtual.commands import ROOT, command, environment, finished

pytestmark = pytest.mark.guest

PACKAGES = ("controller", "emulator", "topologies", "traffic")
OTHER_USER = "nobody"
DOCUMENT = {
    "name": "all-at-once",
    "seed": 11,
    "clock": "virtual",
    "fabric": leaf_spine(2, 2, 2, buffer="400 KB"),
    "workloads": [
        {"kind": "training", "name": "ring", "ranks": 4, "placement": "strided",
         "collective": "all-reduce", "algorithm": "ring", "bytes": "1 MiB", "compute": "20 us",
         "iterations": 2, "class": 3},
        {"kind": "background", "name": "urgent", "pattern": "poisson", "load": 0.3,
         "sizes": "16 KB", "class": 5, "duration": "200 us"},
        {"kind": "background", "name": "bulk", "pattern": "incast", "bytes": "600 KB", "class": 4},
    ],
    "ecn": {"kmin": "20 KB", "kmax": "200 KB", "pmax": 0.3, "classes": [3, 4]},
    "transport": {"window": "auto"},
    "probes": {"rate": "100000 /s", "classes": [3, 5], "arrivals": "poisson"},
    "pcap": ["h4-eth1"],
    "shrink": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The run that all others are compared with."""
    ran = run(DOCUMENT, tmp_path_factory.mktemp("first"), "virtual")
    packets = ran.summary["packets"]
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert min(packets["dropped"], packets["marked"], packets["retransmitted"]) > 0
    assert sum(entry["sent"] for entry in ran.summary["probes"]) > 50
    return ran


def assert_same_results(first: Path, second: Path) -> None:
    """Every table, sample, counter and figure.

    How long set-up took, in nanoseconds of the guest, may differ: it depends on how many calls it
    takes to find a file. So may logs, and the manifest in its ``timings_s``.
    """
    differing = {file.name: list(file.details) for file in compare(first, second).differing}
    beside = {name: found for name, found in differing.items() if not name.startswith("logs/")}
    timings = beside.pop("manifest.json", [])
    assert beside == {}
    parts = [part for detail in timings for part in detail.split("; ")]
    assert [part for part in parts if not part.startswith("timings_s.")] == []


def assert_identical(first: Path, second: Path) -> None:
    """Every file, but for names and wall times; and what the results depend on."""
    found = compare(first, second)
    differing = {file.name: list(file.details) for file in found.differing}
    assert differing == {}
    assert list(found.depends_on) == []
    assert found.identical
    assert {"flows.csv", "queues.npz", "pcap/h4-eth1.pcap", "manifest.json"} <= {
        file.name for file in found.files
    }


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """A program that never rests for each processor, and one more."""
    program = [sys.executable, "-c", "while True: pass"]
    busy = [subprocess.Popen(program) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


@pytest.mark.usefixtures("busy_machine")
def test_a_run_repeats_to_the_byte_on_a_busy_machine(first: Ran, tmp_path: Path) -> None:
    """Nothing in a guest depends on how fast it gets on."""
    assert_identical(first.reader.path, run(DOCUMENT, tmp_path, "virtual").reader.path)


def run_elsewhere(place: Path, cache: Path | None = None, user: int | None = None) -> Path:
    """Runs it by the command line of a copy of the packages; returns the run folder."""
    checkout = place / "another checkout"
    for name in PACKAGES:
        shutil.copytree(
            ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__")
        )  # fmt: skip
    shutil.copy(ROOT / "setup.cfg", checkout)
    (place / "x.yaml").write_text(yaml.safe_dump(DOCUMENT, sort_keys=False))
    more = {"PYTHONPATH": str(checkout), "HOME": str(place), "TMPDIR": str(place),
            "FABRICLAB_CACHE": str(cache or cache_folder())}  # fmt: skip
    if user is not None:
        for path in (place, *place.rglob("*")):
            os.chown(path, user, user)
    words = command("run", "x.yaml", "--results", "elsewhere", "--quiet")
    done = finished(words, place, environment(**more), user)
    assert done.returncode == 0, done.stderr
    (folder,) = (place / "elsewhere").iterdir()
    return folder


def test_a_run_repeats_from_another_checkout(first: Ran, tmp_path: Path) -> None:
    """The place of the packages and of the results is no part of the results."""
    assert_same_results(first.reader.path, run_elsewhere(tmp_path))


@pytest.fixture
def place_for_all() -> Iterator[Path]:
    """A folder that every user can come to; those of the tests' own are their owner's alone."""
    with tempfile.TemporaryDirectory(prefix="fabriclab-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def why_not_as(user: int) -> str:
    """Why a user cannot run Python here; empty when they can."""
    words = [sys.executable, "-c", "import numpy, scapy, yaml"]
    done = finished(words, Path("/"), environment(PYTHONPATH=""), user)
    return "" if done.returncode == 0 else done.stderr.strip().rpartition("\n")[2]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_a_run_repeats_as_another_user_who_is_nobody(first: Ran, place_for_all: Path) -> None:
    """Without any right; with a cache of their own that holds the same kernel."""
    user = pwd.getpwnam(OTHER_USER).pw_uid
    try:
        reason = why_not_as(user)
    except OSError as error:
        reason = str(error)
    if reason:
        pytest.skip(f"{OTHER_USER} cannot use {sys.executable} ({reason})")
    cache = place_for_all / "cache"
    built = kernel.require().path.parent
    shutil.copytree(built, cache / built.name)
    assert_same_results(first.reader.path, run_elsewhere(place_for_all, cache, user))


def test_another_seed_gives_other_results_of_the_same_kind(first: Ran, tmp_path: Path) -> None:
    """Both hashes differ, and what was sent is about as much."""
    other = run({**DOCUMENT, "seed": 12}, tmp_path, "virtual")
    assert other.summary["verdict"] == "VALID", other.summary["reasons"]
    for name in ("schedule", "results"):
        assert other.summary["hashes"][name] != first.summary["hashes"][name]
    assert flows_of(other, "urgent") == pytest.approx(flows_of(first, "urgent"), rel=0.2)
    assert other.summary["training"][0]["iterations"] == 2


def flows_of(ran: Ran, job: str) -> int:
    """How many messages a workload sent."""
    reader: RunReader = ran.reader
    return reader.table("flows").text("job").count(job)
