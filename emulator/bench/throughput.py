"""How many data packets per second arrive end to end over three switches, with a verdict.

A whole run as `fabriclab run` makes it, with all counters, samples and tables on. What does not
carry a VALID verdict does not count, so an INVALID attempt is repeated, and said.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from emulator.bench import load
from emulator.bench.rows import Row, at_least
from emulator.bench.setting import Setting
from emulator.results.reader import RunReader
from emulator.run import session
from emulator.run.progress import Progress
from emulator.run.supervising import Interrupt

NAME = "throughput"
SUMMARY = f"data packets of 4096 B payload end to end over {load.SWITCHES} switches"
LEAST_PPS = 20_000.0
ATTEMPTS = 3
VALID = "VALID"


def measure(setting: Setting) -> list[Row]:
    """Packets per second and the verdict of the first VALID attempt, else of the last."""
    experiment = load.experiment(NAME)
    outcome, attempt = None, 0
    while attempt < ATTEMPTS and (outcome is None or not outcome.verdict.valid):
        attempt += 1
        setting.note(f"throughput: a run of {load.WALL_S:g} s, attempt {attempt}")
        request = session.Request(experiment, load.OFFERED_PPS, setting.folder,
                                  datapath=setting.datapath)  # fmt: skip
        outcome = _run(request)
        for reason in outcome.verdict.reasons:
            setting.note(f"INVALID: {reason}")
    assert outcome is not None
    return rows(delivered_pps(outcome.folder), outcome.verdict.valid, outcome.verdict.reasons,
                attempt)  # fmt: skip


def _run(request: session.Request) -> session.Outcome:
    interrupt = Interrupt()
    with interrupt.armed():
        outcome = session.run(request, Progress(quiet=True), interrupt)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return outcome


def rows(pps: float, valid: bool, reasons: tuple[str, ...], attempts: int) -> list[Row]:
    """The figures as rows."""
    verdict = VALID if valid else f"INVALID: {'; '.join(reasons)}"
    tried = f", attempt {attempts}" if attempts > 1 else ""
    rate = at_least("delivered", pps, "packets/s", LEAST_PPS)
    judged = Row("verdict is VALID", float(valid), "", "1", valid, verdict + tried)
    return [rate, judged]


def delivered_pps(folder: Path) -> float:
    """Data packets per second of wall time, from the first one sent to the last one delivered."""
    run = RunReader.open(folder)
    flows = run.table("flows")
    packets, first, done = (flows.numbers(name) for name in ("packets", "first_tx_ns", "done_ns"))
    dilation = float((run.summary or {})["dilation"])
    ended = ~np.isnan(done)
    if not ended.any():
        return 0.0
    wall_s = (done[ended].max() - first[ended].min()) * dilation / 1e9
    return float(packets[ended].sum() / wall_s)
