"""From a case's document to the experiment that runs. PURE."""

from __future__ import annotations

import copy
from pathlib import Path

from emulator.clock.traits import VIRTUAL_CLOCK
from emulator.physics.case import Run
from emulator.spec.load import assemble
from emulator.spec.model import Experiment
from emulator.spec.yamlfile import Document


def experiment_of(case: str, run: Run, clock: str = VIRTUAL_CLOCK) -> Experiment:
    """The experiment of a run under a clock; its name tells case and run.

    Raises:
        SpecError: the document is wrong.
    """
    name = "-".join(["physics", case, *run.label.split()])
    data = {**copy.deepcopy(dict(run.document)), "name": name, "clock": clock, "shrink": 1}
    return assemble(Document(data, {}, name), Path(f"{name}.yaml"))
