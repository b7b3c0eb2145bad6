"""DCQCN congestion control: the sender's reaction point and the receiver's notification point.

Pure and lazy: every call takes the time, and timers are caught up with then; no threads. Times are
ns, rates bit/s, all in target units. Two update rules exist. The paper's (Zhu et al., "Congestion
Control for Large-Scale RDMA Deployments", SIGCOMM 2015) cuts the rate at once for each CNP. The
one of ConnectX adapters and of the HPCC simulations decouples both: CNPs only set flags, alpha and
cuts are evaluated on grids of their own that begin at the first CNP.
"""

from __future__ import annotations

from traffic.dcqcn_params import (
    CONNECTX,
    HPCC,
    HPCC_PAPER,
    NS3_RDMA,
    PAPER,
    PARAMETER_SETS,
    DcqcnParams,
)

__all__ = [
    "CONNECTX",
    "HPCC",
    "HPCC_PAPER",
    "NS3_RDMA",
    "PAPER",
    "PARAMETER_SETS",
    "CnpGate",
    "Dcqcn",
    "DcqcnParams",
]


class Dcqcn:
    """The reaction point of one flow: its sending rate.

    Args:
        params: the parameter set.
        line_rate_bps: rate at which the flow starts and which it never exceeds, bit/s.
    """

    def __init__(self, params: DcqcnParams, line_rate_bps: int) -> None:
        if line_rate_bps <= 0:
            raise ValueError(f"line_rate_bps {line_rate_bps} must be above 0")
        self.params = params
        self._line = float(line_rate_bps)
        self._additive = params.step_bps(params.additive_bps, line_rate_bps)
        hyper_bps = params.hyper_bps
        self._hyper = None if hyper_bps is None else params.step_bps(hyper_bps, line_rate_bps)
        floor = self._additive if params.min_rate_bps is None else float(params.min_rate_bps)
        self._floor = min(floor, self._line)
        self._current = self._target = self._line
        self._alpha = params.initial_alpha
        self._timer_stage = self._byte_stage = self._bytes = 0
        self._last_increase_ns = self._last_alpha_ns = 0
        self._first_cnp_ns: int | None = None
        self._cnp_since_alpha = False
        self._cut_at_ns: int | None = None

    @property
    def alpha(self) -> float:
        """Estimate of congestion, 0-1, as of the last call."""
        return self._alpha

    @property
    def target_bps(self) -> float:
        """The rate that recovery heads for (RT), as of the last call."""
        return self._target

    def rate_bps(self, now_ns: int) -> int:
        """The sending rate at this time, between the floor and the line rate."""
        self._advance(now_ns)
        return max(1, int(self._current))

    def on_cnp(self, now_ns: int) -> None:
        """A congestion notification packet for this flow arrived."""
        self._advance(now_ns)
        first = self._first_cnp_ns is None
        if first:
            self._first_cnp_ns = self._last_alpha_ns = self._last_increase_ns = now_ns
        if self.params.decoupled:
            self._cnp_since_alpha = not first
            self._plan_cut(now_ns)
            self._advance(now_ns)
        else:
            self._cut(now_ns)
            self._alpha += self.params.g * (1 - self._alpha)
            self._last_alpha_ns = now_ns

    def on_sent(self, now_ns: int, nbytes: int) -> None:
        """The flow sent this many bytes."""
        self._advance(now_ns)
        if self.params.increase_bytes is None or self._first_cnp_ns is None:
            return
        self._bytes += nbytes
        events, self._bytes = divmod(self._bytes, self.params.increase_bytes)
        for _ in range(events):
            self._byte_stage += 1
            self._increase()

    def _plan_cut(self, now_ns: int) -> None:
        """The next point of the cut grid, now included, unless a cut is planned already."""
        if self._cut_at_ns is None:
            assert self._first_cnp_ns is not None
            step = self.params.cut_interval_ns
            self._cut_at_ns = now_ns + (self._first_cnp_ns - now_ns) % step

    def _advance(self, now_ns: int) -> None:
        if self._first_cnp_ns is None:
            return
        cut_at_ns = self._cut_at_ns
        if cut_at_ns is not None and cut_at_ns <= now_ns:
            self._run_timers(cut_at_ns)
            self._cut_at_ns = None
            self._cut(cut_at_ns)
        self._run_timers(now_ns)

    def _run_timers(self, now_ns: int) -> None:
        self._run_alpha(now_ns)
        ticks = (now_ns - self._last_increase_ns) // self.params.increase_interval_ns
        if ticks <= 0:
            return
        self._last_increase_ns += ticks * self.params.increase_interval_ns
        while ticks and self._current < self._line:
            self._timer_stage += 1
            self._increase()
            ticks -= 1
        self._timer_stage += ticks  # at line rate an increase changes nothing

    def _run_alpha(self, now_ns: int) -> None:
        ticks = (now_ns - self._last_alpha_ns) // self.params.alpha_interval_ns
        if ticks <= 0:
            return
        self._last_alpha_ns += ticks * self.params.alpha_interval_ns
        self._alpha *= (1 - self.params.g) ** ticks
        if self._cnp_since_alpha:  # only the first of these intervals saw a CNP
            self._alpha += self.params.g * (1 - self.params.g) ** (ticks - 1)
            self._cnp_since_alpha = False

    def _cut(self, now_ns: int) -> None:
        if self.params.clamp_target or self._timer_stage:
            self._target = self._current
        self._current = max(self._floor, self._current * (1 - self._alpha / 2))
        self._timer_stage = self._byte_stage = self._bytes = 0
        self._last_increase_ns = now_ns

    def _increase(self) -> None:
        """One step of fast recovery, additive increase or hyper increase."""
        stages = [self._timer_stage]
        if self.params.increase_bytes is not None:
            stages.append(self._byte_stage)
        if max(stages) > self.params.threshold:
            self._target = min(self._line, self._target + self._step(min(stages)))
        self._current = (self._target + self._current) / 2
        if self._target - self._current < 1:  # halving never arrives; 1 bit/s is near enough
            self._current = self._target

    def _step(self, least_stage: int) -> float:
        """R_AI, or R_HAI once both counters are beyond the threshold.

        The paper multiplies R_HAI by the number of steps beyond it; adapters do not, and give
        additive increase one step first.
        """
        beyond = least_stage - self.params.threshold
        if self.params.decoupled:
            return self._additive if self._hyper is None or beyond <= 1 else self._hyper
        return self._additive if self._hyper is None or beyond <= 0 else beyond * self._hyper


class CnpGate:
    """The notification point of a receiver: at most one CNP per interval and flow.

    Args:
        interval_ns: least time between two CNPs of the same flow; 0 lets all through.
    """

    def __init__(self, interval_ns: int) -> None:
        if interval_ns < 0:
            raise ValueError(f"interval_ns {interval_ns} must not be negative")
        self.interval_ns = interval_ns
        self._last_ns: dict[object, int] = {}

    def marked(self, flow: object, now_ns: int) -> bool:
        """A packet of this flow arrived with CE; True when a CNP is due now."""
        last_ns = self._last_ns.get(flow)
        if last_ns is not None and now_ns - last_ns < self.interval_ns:
            return False
        self._last_ns[flow] = now_ns
        return True

    def forget(self, flow: object) -> None:
        """Drop what is known of a flow that ended."""
        self._last_ns.pop(flow, None)
