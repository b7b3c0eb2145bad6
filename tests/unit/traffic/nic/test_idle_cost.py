"""What a tick costs does not depend on what is idle: counted in lines of code, not in time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import traffic.nic
from tests.fakes.nic_rig import PAYLOAD, Rig, flow, probe_stream
from traffic.tasks import Compute

_HERE = str(Path(traffic.nic.__file__).parent)
_LATER_NS = 10**9


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of the NIC engine's code run meanwhile."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(_HERE):
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def cost(others: int) -> tuple[int, int]:
    """(lines, ticks) of a message between two hosts beside so many that do nothing yet.

    Each of the others has a NIC, a connection with a message that starts later, and a stream of
    probes that does.
    """
    tasks = [flow(0, 60 * PAYLOAD), Compute(1, "job", "gpu", 1, "c", start_ns=_LATER_NS)]
    streams = [probe_stream(0, "h1", "h2", interval_ns=5_000)]
    for n in range(others):
        src, dst = f"h{2 * n + 3}", f"h{2 * n + 4}"
        tasks.append(flow(n + 2, PAYLOAD, src, dst, start_ns=_LATER_NS))
        streams.append(probe_stream(n + 1, src, dst, first_ns=_LATER_NS))
    rig = Rig(tasks, streams)
    lines = lines_run(lambda: rig.run(60_000))
    assert [done.flow.id for done in rig.seen.flows] == [0]
    assert len(rig.seen.probes) > 5
    return lines, len(rig.seen.ticks)


def test_idle_hosts_connections_and_probes_cost_nothing() -> None:
    """Two hosts among 128 cost what two hosts alone do, line by line."""
    alone, among_many = cost(0), cost(63)
    assert among_many[1] == alone[1]
    assert among_many[0] == alone[0]


def test_lines_are_counted() -> None:
    """Twice the packets are more lines, so the count means something."""
    small = lines_run(lambda: Rig([flow(0, 30 * PAYLOAD)]).run())
    large = lines_run(lambda: Rig([flow(0, 300 * PAYLOAD)]).run())
    assert large > 1.5 * small > 0
