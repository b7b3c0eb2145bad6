"""The registry of cases, and how measurements are judged."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from emulator.physics import judging, registry, text
from emulator.physics.case import Case, Sense, Target, Tolerance, closed_form, of_table
from emulator.physics.loading import experiment_of
from emulator.scale import resolve
from tests.fakes.physics import Wrote, toy_case
from topologies.errors import SpecError, UnknownNameError

CASES: Mapping[str, Case] = {case.name: case for case in registry.cases()}
ROOT = Path(__file__).resolve().parents[3]
MOST_PACKETS = 160_000
"""Data packets and probes of a case: some 15 s at 20,000 per second and run."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("clock", ["virtual", "live"])
def test_every_experiment_is_valid_and_small(name: str, clock: str) -> None:
    """Nothing of what a case writes is refused, and none takes minutes."""
    case = CASES[name]
    if not registry.runs_under(case, clock):
        pytest.skip("not a case of this clock")
    packets = 0
    for run in case.runs:
        experiment = experiment_of(name, run, clock)
        assert (experiment.clock, experiment.shrink) == (clock, 1)
        packets += resolve(experiment, 45_000.0).estimate.data_packets
        if experiment.probes and experiment.duration_ns:
            pairs = len(run.document["probes"]["pairs"])
            packets += round(pairs * experiment.probes.rate_per_s * experiment.duration_ns / 1e9)
    assert 0 < packets <= MOST_PACKETS


def test_names_and_quantities_are_unique() -> None:
    """A name picks one case, a quantity one row of it."""
    assert len(CASES) == len(registry.MAKERS)
    for case in CASES.values():
        quantities = [target.quantity for target in case.targets]
        assert quantities, case.name
        assert len(set(quantities)) == len(quantities)
        assert len({run.label for run in case.runs}) == len(case.runs)


def test_the_virtual_clock_is_never_granted_more_than_the_live_one() -> None:
    """It is the reference."""
    for case in CASES.values():
        for target in case.targets:
            assert target.slack("virtual") <= target.slack("live"), (case.name, target.quantity)


def test_the_documentation_has_a_row_for_every_case() -> None:
    """docs/physics.md lists exactly what there is."""
    page = (ROOT / "docs" / "physics.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE) == list(CASES)


def test_cases_are_chosen_by_name_in_their_own_order() -> None:
    """All of them without names; all that the clock has under the live one."""
    assert [c.name for c in registry.chosen(["rate-100g", "rate-10g"], "virtual")] == [
        "rate-10g",
        "rate-100g",
    ]
    assert [c.name for c in registry.chosen([], "virtual")] == list(CASES)
    live = [c.name for c in registry.chosen([], "live")]
    assert live == [name for name, case in CASES.items() if case.live]


def test_what_cannot_be_chosen_is_an_error() -> None:
    """An unknown name lists the known ones; a case without a live form says so."""
    with pytest.raises(UnknownNameError, match="waiting-time"):
        registry.chosen(["nothing"], "virtual")
    with pytest.raises(SpecError, match="does not run under the live clock"):
        registry.chosen(["waiting-time"], "live")


@pytest.mark.parametrize(
    ("sense", "measured", "live", "virtual"),
    [
        (Sense.NEAR, 109.0, True, False),
        (Sense.NEAR, 96.0, True, True),
        (Sense.NEAR, 89.0, False, False),
        (Sense.AT_LEAST, 500.0, True, True),
        (Sense.AT_LEAST, 94.0, True, False),
        (Sense.AT_MOST, 0.0, True, True),
        (Sense.AT_MOST, 106.0, True, False),
        (Sense.NEAR, math.nan, False, False),
    ],
)
def test_a_table_s_tolerance_is_halved_under_the_virtual_clock(
    sense: Sense, measured: float, live: bool, virtual: bool
) -> None:
    """100 within 10 % and within 5 %."""
    target = Target("x", "", 100.0, of_table(0.10), sense)
    assert target.passes(measured, "live") is live
    assert target.passes(measured, "virtual") is virtual


def test_absolute_tolerances_are_in_the_target_s_unit() -> None:
    """Where zero is expected, a share of it says nothing."""
    target = Target("x", "us", 0.0, closed_form(0.2, 0.1, relative=False))
    assert target.passes(-0.1, "virtual")
    assert not target.passes(0.11, "virtual")
    assert target.passes(0.11, "live")


def test_an_invalid_run_fails_its_case_with_the_reason(tmp_path: Path) -> None:
    """The numbers are shown, but none of them passes."""
    folder = Wrote(reasons=["too slow"], summary={"packets": {"sent": 412_345}}).to_folder(tmp_path)
    result = judging.judge(toy_case(), "virtual", {"run": folder}, 1.0)
    assert not result.passed
    assert result.reasons == ["run 'run' is INVALID: too slow"]
    assert [(row.measured, row.passed) for row in result.rows] == [(412_345.0, False)]


def test_a_run_that_has_to_be_invalid_is_held_to_it(tmp_path: Path) -> None:
    """Each word must stand in a reason."""
    sent = {"packets": {"sent": 412_345}}
    bad = Wrote(reasons=["class 3 lost 7 packets at leaf1-eth2"], summary=sent)
    case = toy_case(invalid=("class 3 lost", "leaf1-eth2"))
    folder = bad.to_folder(tmp_path / "bad")
    assert judging.judge(case, "virtual", {"run": folder}, 1.0).passed
    good = Wrote(summary=sent).to_folder(tmp_path / "good")
    reasons = judging.judge(case, "virtual", {"run": good}, 1.0).reasons
    assert len(reasons) == 2
    assert "should be INVALID for 'class 3 lost'" in reasons[0]


def test_what_an_invalid_run_does_not_have_is_not_measured(tmp_path: Path) -> None:
    """A case that cannot read its numbers from a broken run fails for the run's reason."""
    folder = Wrote(reasons=["the engine died"]).to_folder(tmp_path)
    result = judging.judge(CASES["rate-10g"], "virtual", {"run": folder}, 1.0)
    assert [math.isnan(row.measured) for row in result.rows] == [True, True]
    assert "the engine died" in result.reasons[0]


def test_rows_say_expected_measured_tolerance_and_result() -> None:
    """As the table prints them."""
    rows = [
        judging.Row(Target("rate", "Gbit/s", 100.0, of_table(0.10)), 99.123456, "live", True),
        judging.Row(
            Target("share", "", 0.95, Tolerance(0, 0), Sense.AT_LEAST), 0.9, "virtual", False
        ),
        judging.Row(Target("wait", "us", 0.0, closed_form(2, 1, False)), math.nan, "live", False),
    ]
    assert [text.cells(row) for row in rows] == [
        ["rate", "100 Gbit/s", "99.123 Gbit/s", "10 %", "PASS"],
        ["share", "at least 0.95", "0.9", "-", "FAIL"],
        ["wait", "0 us", "-", "2 us", "FAIL"],
    ]
