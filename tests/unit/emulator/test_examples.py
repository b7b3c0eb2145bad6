"""Every example is short, valid and can be planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.plan import make_plan
from emulator.scale import REFERENCE_CAPACITY_PPS
from emulator.spec import load
from tests.unit.emulator.spec_samples import EXAMPLES, ROOT
from traffic.traces.azure import read_trace

FILES = sorted(EXAMPLES.glob("*.yaml"))
MAX_LINES = 40
ORIGINAL = ROOT.parent / "shared" / "data" / "AzureLLMInferenceTrace_conv.csv"
EXCERPT = EXAMPLES / "data" / "azure_conv_excerpt.csv"


def test_there_are_examples() -> None:
    """The tests below look at something."""
    assert {path.stem for path in FILES} >= {
        "training-beside-inference", "single-flow", "incast", "two-fabrics", "permutation",
    }  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_are_short_and_explained(path: Path) -> None:
    """Under 40 lines, beginning with a sentence that says what to look for."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) < MAX_LINES
    assert lines[0].startswith("# ")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_can_be_planned(path: Path) -> None:
    """On a machine like the reference each fits its budget, without warnings."""
    plan = make_plan(load(path), REFERENCE_CAPACITY_PPS)
    assert plan.experiment.name == path.stem
    assert plan.scaling.dilation.fits
    assert plan.scaling.shrink.fits
    assert plan.notes == ()


def test_the_excerpt_is_in_its_original_form() -> None:
    """CRLF, seven fractional digits, original columns."""
    raw = EXCERPT.read_bytes()
    assert raw.startswith(
        b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,"
    )
    assert raw.count(b"\r\n") == raw.count(b"\n") == 401
    assert len(read_trace(EXCERPT)) == 400


@pytest.mark.skipif(not ORIGINAL.exists(), reason="the original trace is not on this machine")
def test_the_excerpt_is_the_beginning_of_the_original() -> None:
    """Byte for byte."""
    assert ORIGINAL.read_bytes().startswith(EXCERPT.read_bytes())
