"""What the medium hands over, as runs: packets of one queue pair that follow each other. PURE.

Frames of many paths arrive interleaved. A stable sort by queue pair puts those of each path side
by side in the order of their arrival, and comparing neighbours finds where a run ends. So the work
per packet is NumPy's; what is left is done once per run.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from traffic.nic.medium import Records
from traffic.wire import Opcode

Record = tuple[int, int, int, int, int, int, int]
"""(queue pair, time, PSN, frame length, opcode, ToS byte, AETH)"""

Run = tuple[int, list[int], int, int, int, int, int]
"""(queue pair, times of the packets, PSN of the first, frame length, opcode of the first, ToS byte,
AETH of the first). Times do not fall; all other packets are SEND Middle of that length and ToS."""

_FIELDS = ("dest_qp", "time_ns", "psn", "length", "opcode", "tos", "aeth")


def singles(records: Records) -> Iterator[Record]:
    """The records one by one."""
    return zip(*(records[name].tolist() for name in _FIELDS), strict=True)


def joined(records: Records) -> Iterator[Run]:
    """The records as runs that are as long as they can be; those of a queue pair in their order.

    The low 16 bits of the queue pair are sorted much faster than all of it. Two queue pairs that
    share them are not told apart by the sort but by the comparison, which only makes runs shorter.
    """
    pairs = records["dest_qp"]
    order = pairs.astype(np.uint16).argsort(kind="stable")
    times = records["time_ns"][order]
    pairs, psn, length, opcode, tos = (
        records[name][order] for name in ("dest_qp", "psn", "length", "opcode", "tos")
    )
    follows = opcode[1:] == Opcode.SEND_MIDDLE
    follows &= psn[1:] - psn[:-1] == 1
    for column in (pairs, length, tos):
        follows &= column[1:] == column[:-1]
    follows &= times[1:] >= times[:-1]
    begins = [0, *((~follows).nonzero()[0] + 1).tolist()]
    firsts = (column[begins].tolist() for column in (psn, length, opcode, tos))
    aeth = records["aeth"][order[begins]].tolist()
    return zip(pairs[begins].tolist(), _parts(times, begins), *firsts, aeth, strict=True)


def _parts(times: npt.NDArray[np.int64], begins: list[int]) -> Iterator[list[int]]:
    """The times of each run."""
    flat = times.tolist()
    for begin, end in zip(begins, [*begins[1:], len(flat)], strict=True):
        yield flat[begin:end]
