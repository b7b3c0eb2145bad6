"""PURE: by how much an experiment is slowed down (dilation) and made smaller (shrink), and why.

Under the virtual clock neither depends on the machine, so that a run repeats everywhere: dilation
is the least at which shapers, which count whole nanoseconds, keep the rate; shrink follows from
what a reference machine carries per second of wall time.

Dilation s: the live clock divides every rate by s and multiplies every duration by s; counts of
bytes and packets stay, so nothing that depends on ratios changes. Shrink m: message sizes,
computations and gaps between requests are divided by m; packets and buffers stay. Both are chosen
from 1, 2, 5, 10, 20, ... so that two machines of the same kind choose the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emulator.clock.traits import VIRTUAL_CLOCK
from emulator.demand import peak_packets_per_s
from emulator.spec.model import Experiment
from topologies.errors import SpecError
from topologies.model import Fabric
from topologies.units import format_duration, format_rate
from traffic import wire
from traffic.tasks import Flow, Task
from traffic.workloads import build_all
from traffic.workloads.estimate import Estimate, estimate

REFERENCE_CAPACITY_PPS = 45_000.0
"""Data packets/s end to end over `emulator.demand.REFERENCE_HOPS` switches that two cores carried
when the project began; stands in until this machine has been measured."""
CAPACITY_SHARE = 0.5
"""Part of the measured capacity that a run may ask for at its peak."""
MAX_HOST_RATE_BPS = 400_000_000
"""Fastest emulated host link: beyond it timers and bursts of the kernel show in the results."""
MIN_EMULATED_BPS = 8_000
"""Slowest rate that a kernel shaper is given; a frame would take seconds."""
STRETCH = 1.5
"""Expected over least duration: what queueing, hash collisions and recovery add, by experience."""
VIRTUAL_PPS = 40_000.0
"""Data packets that a guest carries end to end per second of wall time on the reference machine
(a server core of 2023): what `shrink: auto` reckons with under the virtual clock."""
SHAPER_ERROR = 0.0008
"""Rate error that a shaper may have because it counts whole nanoseconds per frame."""
MAX_SCALE = 1_000_000_000
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Scale:
    """Target units to emulated units and back.

    Attributes:
        dilation: wall time over model time, at least 1.
        shrink: divisor of messages, computations and gaps, at least 1.
    """

    dilation: float
    shrink: float = 1.0

    def emulated_bps(self, rate_bps: int) -> int:
        """The rate that the kernel shapes to, bit/s."""
        return max(1, round(rate_bps / self.dilation))

    def wall_ns(self, model_ns: float) -> int:
        """Wall time that a model time takes, ns."""
        return round(model_ns * self.dilation)

    def model_ns(self, wall_ns: float) -> int:
        """Model time that passes in a wall time, ns."""
        return round(wall_ns / self.dilation)


@dataclass(frozen=True)
class Choice:
    """A number and why it is that.

    Attributes:
        value: the number.
        reason: a clause for people.
        fits: whether the aim behind the choice is met.
    """

    value: float
    reason: str
    fits: bool = True


@dataclass(frozen=True)
class ResolvedScale:
    """What an experiment runs at on a machine.

    Attributes:
        dilation: chosen or given.
        shrink: chosen or given.
        peak_pps: data packets per second of model time at the peak, in 3-switch equivalents.
        capacity_pps: what the machine carries per second of wall time.
        estimate: of the tasks at this shrink.
        typical_bytes: workload -> message that its average byte travels in, at this shrink.
    """

    dilation: Choice
    shrink: Choice
    peak_pps: float
    capacity_pps: float
    estimate: Estimate
    typical_bytes: Mapping[str, float]

    @property
    def scale(self) -> Scale:
        """The numbers alone."""
        return Scale(self.dilation.value, self.shrink.value)


def nice_at_least(value: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, ... that is not below a value."""
    if value <= 1:
        return 1
    decade = int(10 ** math.floor(math.log10(value)))
    for candidate in (decade // 10 * 5, *(step * decade for step in _STEPS), decade * 10):
        if candidate >= value:
            return candidate
    return decade * 20


def tasks_of(experiment: Experiment, shrink: float) -> list[Task]:
    """All tasks of an experiment at a shrink; SpecError when they cannot be made so small."""
    workloads = build_all(experiment.workloads, experiment.fabric, experiment.seed, shrink)
    return [task for workload in workloads for task in workload.tasks]


def choose_dilation(
    experiment: Experiment, capacity_pps: float, tasks: Sequence[Task] | None = None
) -> Choice:
    """The smallest nice dilation that this machine carries.

    Args:
        experiment: what is to run.
        capacity_pps: data packets per second of wall time that the machine carries end to end.
        tasks: the experiment's tasks at shrink 1, when the caller has them already.
    """
    given = experiment.dilation
    if experiment.clock == VIRTUAL_CLOCK:
        return _virtual_dilation(experiment)
    peak_pps = peak_packets_per_s(
        experiment, tasks if tasks is not None else tasks_of(experiment, 1)
    )
    if given is not None:
        asked = peak_pps / given
        fits = asked <= CAPACITY_SHARE * capacity_pps
        _check_rates(experiment.fabric, given)
        return Choice(given, f"given; asks for {asked:,.0f} of {capacity_pps:,.0f} packets/s", fits)
    by_packets = peak_pps / (CAPACITY_SHARE * capacity_pps)
    fastest = max(rate for rate in host_rates_bps(experiment.fabric))
    by_rate = fastest / MAX_HOST_RATE_BPS
    value = nice_at_least(max(by_packets, by_rate))
    _check_rates(experiment.fabric, value)
    if by_rate > by_packets:
        reason = f"keeps host links at or below {format_rate(MAX_HOST_RATE_BPS)} emulated"
    else:
        reason = (
            f"{peak_pps:,.0f} packets/s at the peak become {peak_pps / value:,.0f}, "
            f"at most {CAPACITY_SHARE:.0%} of the {capacity_pps:,.0f} that this machine carries"
        )
    return Choice(value, reason)


def _virtual_dilation(experiment: Experiment) -> Choice:
    given, fabric = experiment.dilation, experiment.fabric
    frame_bytes = wire.data_frame_bytes(experiment.transport.payload_bytes)
    value = nice_at_least(1.0) if given is None else given
    while given is None and shaper_error(fabric, frame_bytes, value) > SHAPER_ERROR:
        value = nice_at_least(value * 1.01)
    _check_rates(fabric, value)
    error = shaper_error(fabric, frame_bytes, value)
    reason = f"shapers count whole nanoseconds, full frames are {error:.2%} off the rate"
    return Choice(value, reason if given is None else f"given; {reason}", error <= SHAPER_ERROR)


def shaper_error(fabric: Fabric, frame_bytes: int, dilation: float) -> float:
    """Largest relative rate error of a shaper that cuts the time of a full frame to whole ns."""
    bits = wire.wire_bytes(frame_bytes) * 8e9
    times = [bits * dilation / rate for rate in {link.rate_bps for link in fabric.links}]
    return max(1 - math.floor(time) / time for time in times)


def host_rates_bps(fabric: Fabric) -> list[int]:
    """Rates of all host links, bit/s."""
    return [link.rate_bps for link in fabric.links if not fabric.by_name[link.a].is_switch]


def _check_rates(fabric: Fabric, dilation: float) -> None:
    slowest = min(fabric.links, key=lambda link: link.rate_bps)
    if slowest.rate_bps / dilation < MIN_EMULATED_BPS:
        rule = (
            f"slows the link {slowest.a} to {slowest.b} down from "
            f"{format_rate(slowest.rate_bps)} to {slowest.rate_bps / dilation:.0f} bit/s"
        )
        way_out = f"the slowest rate that can be emulated is {format_rate(MIN_EMULATED_BPS)}"
        raise SpecError("dilation", dilation, rule, way_out)


def expected_model_ns(experiment: Experiment, bound: Estimate) -> float:
    """Model time that a run is expected to take: a planning figure, not a promise."""
    expected = bound.least_duration_ns * STRETCH
    limit = experiment.duration_ns
    if limit is not None and (expected > limit or not experiment.workloads):
        return limit
    return expected


def expected_wall_ns(experiment: Experiment, bound: Estimate, dilation: float) -> float:
    """Wall time of the traffic, set-up and report aside."""
    if experiment.clock == VIRTUAL_CLOCK:
        return bound.data_packets / VIRTUAL_PPS * 1e9
    return expected_model_ns(experiment, bound) * dilation


def choose_shrink(experiment: Experiment, dilation: float, budget_ns: int | None = None) -> Choice:
    """The smallest nice shrink whose expected wall time fits the budget.

    Dividing by m cannot make a run more than m times shorter, so from any m that is too small the
    next candidate is known, and few have to be tried. It ends where a workload's messages would
    fall below one packet, because smaller ones would no longer be shaped by the network.
    """
    return _choose_shrink(experiment, dilation, budget_ns or experiment.budget_ns)[0]


def _choose_shrink(
    experiment: Experiment, dilation: float, budget_ns: int
) -> tuple[Choice, Sequence[Task]]:
    """The choice and the tasks at that shrink."""
    shrink = float(experiment.shrink or 1)
    tasks = tasks_of(experiment, shrink)
    wall_ns = _wall_ns(experiment, tasks, dilation)
    if experiment.shrink is not None:
        fits = wall_ns <= budget_ns
        return Choice(shrink, f"given; about {_seconds(wall_ns)} of wall time", fits), tasks
    budget, limit = _seconds(budget_ns), _largest_shrink(tasks, experiment)
    while wall_ns > budget_ns:
        wanted = nice_at_least(max(shrink * 1.01, shrink * wall_ns / budget_ns))
        larger = wanted if wanted <= limit else nice_at_most(limit)
        if larger <= shrink:
            reason = f"about {_seconds(wall_ns)} of wall time, over the budget of {budget}: "
            return Choice(shrink, reason + "messages cannot become smaller", fits=False), tasks
        shrink = float(larger)
        tasks = tasks_of(experiment, shrink)
        wall_ns = _wall_ns(experiment, tasks, dilation)
    return Choice(shrink, f"about {_seconds(wall_ns)} of wall time, within {budget}"), tasks


def _wall_ns(experiment: Experiment, tasks: Sequence[Task], dilation: float) -> float:
    return expected_wall_ns(experiment, estimate(tasks, experiment.fabric), dilation)


def _largest_shrink(tasks: Sequence[Task], experiment: Experiment) -> float:
    """Where the first workload's messages, if they fill packets at all, would fill one no more."""
    payload_bytes = experiment.transport.payload_bytes
    packets = [size / payload_bytes for size in typical_bytes(tasks).values()]
    return min([MAX_SCALE, *(count for count in packets if count >= 1)])


def typical_bytes(tasks: Sequence[Task]) -> dict[str, float]:
    """Workload -> size of the message that its average byte travels in.

    A plain mean would say nothing about a service that sends a few caches of a gigabyte and many
    tokens of a few bytes.
    """
    sums: dict[str, tuple[int, int]] = {}
    for task in tasks:
        if isinstance(task, Flow):
            total, squares = sums.get(task.job, (0, 0))
            sums[task.job] = (total + task.size_bytes, squares + task.size_bytes**2)
    return {job: squares / total for job, (total, squares) in sums.items()}


def nice_at_most(value: float) -> int:
    """The largest of 1, 2, 5, 10, 20, 50, ... that is not above a value of at least 1."""
    above = nice_at_least(value)
    if above <= value:
        return above
    return above // 2 if str(above)[0] in "12" else above // 5 * 2


def _seconds(wall_ns: float) -> str:
    return format_duration(round(wall_ns), digits=2)


def resolve(experiment: Experiment, capacity_pps: float) -> ResolvedScale:
    """Both choices for an experiment on a machine."""
    tasks = tasks_of(experiment, 1)
    dilation = choose_dilation(experiment, capacity_pps, tasks)
    shrink, small = _choose_shrink(experiment, dilation.value, experiment.budget_ns)
    return ResolvedScale(
        dilation,
        shrink,
        peak_packets_per_s(experiment, tasks),
        capacity_pps,
        estimate(small, experiment.fabric),
        typical_bytes(small),
    )
