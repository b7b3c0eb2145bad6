"""What a workload is made of: flows over the network and computations on hosts, as a DAG.

All times are model time (ns since the run's start, target units), all sizes are payload bytes.
A flow is done when its last byte has arrived, a computation when its duration is over. A task is
ready `delay_ns` after the last of its `after` tasks is done (after the run's start when it has
none), and never before `start_ns`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Flow:
    """One message from one host to another.

    Flows of equal (job, plane, src, dst, qp) share one connection: one UDP source port, FIFO order.

    Attributes:
        id: unique over the whole run.
        job: name of the workload that it belongs to.
        src: name of the sending host.
        dst: name of the receiving host.
        size_bytes: payload, bytes; at least 1.
        dscp: differentiated services code point, 0-63; the traffic class is ``dscp >> 3``.
        tag: what it is within its job, such as ``i3.s5.r2`` (iteration, step, rank).
        plane: the fabric plane that it travels in.
        after: ids of the tasks that must be done first.
        start_ns: model time before which it does not start.
        delay_ns: wait after its dependencies are met.
        qp: number of the queue pair between the two hosts within the job.
    """

    id: int
    job: str
    src: str
    dst: str
    size_bytes: int
    dscp: int
    tag: str
    plane: int = 1
    after: tuple[int, ...] = ()
    start_ns: int = 0
    delay_ns: int = 0
    qp: int = 0

    @property
    def connection(self) -> tuple[str, int, str, str, int]:
        """Key of the connection that carries it."""
        return self.job, self.plane, self.src, self.dst, self.qp


@dataclass(frozen=True, slots=True)
class Compute:
    """Work on a host that takes time and sends nothing.

    Attributes:
        id: unique over the whole run.
        job: name of the workload that it belongs to.
        resource: what it occupies, such as ``gpu:job-a:3``; a resource executes one computation at
            a time, in the order in which they became ready; ``""`` is unlimited.
        duration_ns: how long it takes.
        tag: what it is within its job.
        after: ids of the tasks that must be done first.
        start_ns: model time before which it does not start.
        delay_ns: wait after its dependencies are met.
    """

    id: int
    job: str
    resource: str
    duration_ns: int
    tag: str
    after: tuple[int, ...] = ()
    start_ns: int = 0
    delay_ns: int = 0


Task = Flow | Compute
