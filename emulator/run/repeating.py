"""A run that exists, as an experiment to run again."""

from __future__ import annotations

from emulator.clock.traits import VIRTUAL_CLOCK
from emulator.plan import make_plan
from emulator.results import columns
from emulator.results.reader import RunReader
from emulator.spec.load import load
from emulator.spec.model import Experiment
from topologies.errors import SpecError


def experiment_of(run: RunReader, seed: str | None = None) -> Experiment:
    """What a run ran, at the dilation and shrink that it ran at; `seed` is another one, as text.

    Where the experiment leaves them to the tool, under the virtual clock the tool chooses the same
    again on every machine (of one version), so "auto" stays and the file stays equal. What the
    live clock chose depended on its machine, so the numbers are set.

    Raises:
        SpecError: the folder's experiment is missing or wrong, or a file that it reads is gone.
    """
    file = run.path / columns.SPEC
    if not file.is_file():
        rule = f"has no {columns.SPEC}, so it cannot be repeated"
        raise SpecError("run", str(run.path), rule)
    other = {} if seed is None else {"seed": seed}
    experiment = load(file, other)
    wanted = {key: (run.summary or run.manifest).get(key) for key in ("dilation", "shrink")}
    if experiment.clock == VIRTUAL_CLOCK and _chosen(experiment) == wanted:
        return experiment
    scale = {key: str(value) for key, value in wanted.items() if value is not None}
    return load(file, other | scale)


def _chosen(experiment: Experiment) -> dict[str, float]:
    scale = make_plan(experiment).scaling.scale
    return {"dilation": scale.dilation, "shrink": scale.shrink}


def label_of(run: RunReader) -> str:
    """How comparisons called it."""
    return str(run.manifest.get("label") or "")
