"""Fixtures and markers that all tests share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """A random generator with a fixed seed, so that a failure can be repeated."""
    return np.random.default_rng(20240607)
