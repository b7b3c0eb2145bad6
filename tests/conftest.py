"""Fixtures and the markers `root` and `guest`, shared by all tests."""

from __future__ import annotations

import os
import shutil
from importlib import util

import numpy as np
import pytest

from emulator import doctor
from emulator.clock.traits import LIVE_CLOCK, VIRTUAL_CLOCK
from emulator.naming import new_run_id

REQUIRE_ROOT_TESTS = "FABRICLAB_REQUIRE_ROOT_TESTS"
"""Set by CI: what `root` tests need must be there, so a skip would hide a broken set-up."""
NO_GUEST_TESTS = "FABRICLAB_NO_GUEST_TESTS"
"""Set by CI, where the kernel could not be built, to the reason; else `guest` tests must run."""

_PROGRAMS = ("ovs-vswitchd", "ovsdb-server", "mnexec", "ip", "clang")


def why_no_root_tests() -> str:
    """What this machine lacks for tests that change the kernel's state; empty when nothing."""
    if os.geteuid() != 0:
        return "needs root"
    lacking = [name for name in _PROGRAMS if shutil.which(name) is None]
    if util.find_spec("mininet") is None:
        lacking.append("Python package mininet")
    return f"needs {', '.join(lacking)}" if lacking else ""


def why_no_guest_tests() -> str:
    """What this machine lacks for tests in a guest; empty when nothing."""
    if reason := os.environ.get(NO_GUEST_TESTS):
        return f"the virtual clock's kernel could not be built: {reason}"
    lacking = doctor.missing(doctor.examine_for_guest())
    return "; ".join(f"needs {finding.what} ({finding.detail})" for finding in lacking)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip `root` and `guest` tests with the reason where they cannot run."""
    _skip(items, "root", why_no_root_tests(), excused=False)
    if any(item.get_closest_marker("guest") for item in items):
        _skip(items, "guest", why_no_guest_tests(), excused=NO_GUEST_TESTS in os.environ)


def _skip(items: list[pytest.Item], marker: str, reason: str, *, excused: bool) -> None:
    if not reason:
        return
    if os.environ.get(REQUIRE_ROOT_TESTS) and not excused:
        text = f"{REQUIRE_ROOT_TESTS} is set, but running {marker} tests {reason}"
        pytest.exit(text, returncode=3)
    skip = pytest.mark.skip(reason=reason)
    for item in items:
        if item.get_closest_marker(marker):
            item.add_marker(skip)


@pytest.fixture(
    params=[
        pytest.param(LIVE_CLOCK, marks=pytest.mark.root),
        pytest.param(VIRTUAL_CLOCK, marks=pytest.mark.guest),
    ]
)
def clock(request: pytest.FixtureRequest) -> str:
    """The clock that a test runs under: each in turn."""
    return str(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    """A random generator with a fixed seed, so that a failure can be repeated."""
    return np.random.default_rng(20240607)


@pytest.fixture
def run_id() -> str:
    """A run id that no other run on this machine has, short enough for interface names."""
    return new_run_id()
