"""Fixtures and the `root` marker, shared by all tests."""

from __future__ import annotations

import os
import shutil
from importlib import util

import numpy as np
import pytest

from emulator.naming import new_run_id

REQUIRE_ROOT_TESTS = "FABRICLAB_REQUIRE_ROOT_TESTS"
"""Set by CI: what `root` tests need must be there, so a skip would hide a broken set-up."""

_PROGRAMS = ("ovs-vswitchd", "ovsdb-server", "mnexec", "ip", "clang")


def why_no_root_tests() -> str:
    """What this machine lacks for tests that change the kernel's state; empty when nothing."""
    if os.geteuid() != 0:
        return "needs root"
    lacking = [name for name in _PROGRAMS if shutil.which(name) is None]
    if util.find_spec("mininet") is None:
        lacking.append("Python package mininet")
    return f"needs {', '.join(lacking)}" if lacking else ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip `root` tests with the reason where they cannot run."""
    reason = why_no_root_tests()
    if not reason:
        return
    if os.environ.get(REQUIRE_ROOT_TESTS):
        pytest.exit(f"{REQUIRE_ROOT_TESTS} is set, but running root tests {reason}", returncode=3)
    skip = pytest.mark.skip(reason=reason)
    for item in items:
        if item.get_closest_marker("root"):
            item.add_marker(skip)


@pytest.fixture
def rng() -> np.random.Generator:
    """A random generator with a fixed seed, so that a failure can be repeated."""
    return np.random.default_rng(20240607)


@pytest.fixture
def run_id() -> str:
    """A run id that no other run on this machine has, short enough for interface names."""
    return new_run_id()
