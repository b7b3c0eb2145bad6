"""When requests arrive and how long they are: random processes, or a window of a trace.

Arrivals are ns from the workload's start, before shrinking. Lengths are tokens.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from topologies.errors import SpecError
from topologies.reading import Reader, as_integer
from traffic.traces.azure import Request, read_trace
from traffic.workloads.base import read_positive

_SECOND_NS = 1_000_000_000
DEFAULT_CONTEXT_TOKENS = 1024
DEFAULT_GENERATED_TOKENS = 128
"""About the medians of the Azure conversation trace of 2023, 1020 and 129 tokens."""


@dataclass(frozen=True)
class Lengths:
    """Numbers of tokens: all equal, or log-normal with a given mean.

    Attributes:
        mean: mean number of tokens.
        cv: coefficient of variation (standard deviation / mean); 0 = all equal.
        maximum: larger draws are cut to it.
    """

    mean: float
    cv: float = 0.0
    maximum: int | None = None

    def draw(self, rng: random.Random) -> int:
        """A number of tokens, at least 1 unless the mean is 0."""
        if not self.mean:
            return 0
        if not self.cv:
            return round(self.mean)
        variance = math.log1p(self.cv**2)
        drawn = rng.lognormvariate(math.log(self.mean) - variance / 2, math.sqrt(variance))
        tokens = max(1, round(drawn))
        return tokens if self.maximum is None else min(tokens, self.maximum)


@dataclass(frozen=True)
class Arrivals:
    """Requests from a random process.

    Attributes:
        process: ``poisson``, ``gamma`` or ``bursts``.
        requests: how many.
        context_tokens: lengths of the prompts.
        generated_tokens: lengths of the answers.
        rate_per_s: mean rate (poisson, gamma).
        burstiness: shape k of the Gamma renewal process, CV = 1/sqrt(k) (as in vLLM: 1 is Poisson,
            less is burstier).
        burst: requests of one burst (bursts).
        within_ns: time over which a burst is spread evenly at random (bursts).
        every_ns: time from one burst's begin to the next one's (bursts).
    """

    process: str
    requests: int
    context_tokens: Lengths
    generated_tokens: Lengths
    rate_per_s: float = 0.0
    burstiness: float = 1.0
    burst: int = 0
    within_ns: int = 0
    every_ns: int = 0

    def take(self, rng: random.Random) -> list[Request]:
        """The requests, by arrival."""
        times = PROCESSES[self.process](self, rng)
        return [
            Request(round(time), self.context_tokens.draw(rng), self.generated_tokens.draw(rng))
            for time in times
        ]


def _renewal(arrivals: Arrivals, rng: random.Random) -> list[float]:
    shape = arrivals.burstiness
    scale_ns = _SECOND_NS / (arrivals.rate_per_s * shape)
    times: list[float] = []
    now = 0.0
    for _ in range(arrivals.requests):
        now += rng.gammavariate(shape, scale_ns)
        times.append(now)
    return times


def _bursts(arrivals: Arrivals, rng: random.Random) -> list[float]:
    times: list[float] = []
    while len(times) < arrivals.requests:
        begin = len(times) // arrivals.burst * arrivals.every_ns
        size = min(arrivals.burst, arrivals.requests - len(times))
        times += sorted(begin + rng.random() * arrivals.within_ns for _ in range(size))
    return times


PROCESSES: dict[str, Callable[[Arrivals, random.Random], list[float]]] = {
    "poisson": _renewal,
    "gamma": _renewal,
    "bursts": _bursts,
}


@dataclass(frozen=True)
class TraceWindow:
    """Rows of a trace, taken in order.

    Attributes:
        file: the trace, in its original form.
        path: key path, for errors.
        start_ns: rows that arrive earlier than this after the first row are skipped.
        requests: most rows to take; None = all.
        duration_ns: only rows that arrive within this time after `start_ns`; None = all.
        rate_scale: arrivals come this many times as fast.
    """

    file: Path
    path: str
    start_ns: int = 0
    requests: int | None = None
    duration_ns: int | None = None
    rate_scale: float = 1.0

    def take(self, rng: random.Random) -> list[Request]:
        """The rows, with arrivals from the first row that is taken."""
        try:
            rows = read_trace(self.file)
        except SpecError as error:
            raise SpecError(
                self.path, error.value, error.rule, error.way_out, _place(error, self.file)
            ) from None
        begin = rows[0].arrival_ns + self.start_ns
        end = None if self.duration_ns is None else begin + self.duration_ns
        rows = [r for r in rows if r.arrival_ns >= begin and (end is None or r.arrival_ns < end)]
        if not rows:
            rule = f"has no row in the window that begins {self.start_ns} ns after its first row"
            raise SpecError(self.path, self.file.name, rule, "move the window")
        return self._relative(rows[: self.requests])

    def _relative(self, rows: Sequence[Request]) -> list[Request]:
        first = rows[0].arrival_ns
        return [
            replace(row, arrival_ns=round((row.arrival_ns - first) / self.rate_scale))
            for row in rows
        ]


def _place(error: SpecError, file: Path) -> str:
    """File and line, where the error has a line."""
    return error.path if error.path.startswith(str(file)) else str(file)


def read_window(reader: Reader, file: Path, path: str, requests: int | None) -> TraceWindow:
    """Read ``window`` and ``rate_scale``, the choice of a trace's rows."""
    window = reader.mapping("window", {})
    most = window.integer("requests", None, minimum=1)
    bounds = [count for count in (most, requests) if count is not None]
    result = TraceWindow(
        file=file,
        path=path,
        start_ns=window.duration("start", 0),
        requests=min(bounds, default=None),
        duration_ns=window.duration("duration", None, allow_zero=False),
        rate_scale=read_positive(reader, "rate_scale", 1.0),
    )
    window.done()
    return result


def read_arrivals(reader: Reader, requests: int | None) -> Arrivals:
    """Read the mapping below ``arrivals``; ``requests`` is the bound beside it, if any."""
    with reader:
        process = reader.choice("process", PROCESSES, "poisson", what="arrival process")
        wanted = reader.integer("requests", requests, minimum=1)
        if wanted is None:
            wanted = reader.integer("requests", minimum=1)
        common = Arrivals(
            process=process,
            requests=min(wanted, requests or wanted),
            context_tokens=reader.get(
                "context_tokens", as_lengths, Lengths(DEFAULT_CONTEXT_TOKENS)
            ),
            generated_tokens=reader.get(
                "generated_tokens", as_lengths, Lengths(DEFAULT_GENERATED_TOKENS)
            ),
        )
        if process == "bursts":
            return _read_bursts(reader, common)
        burstiness = read_positive(reader, "burstiness", 1.0) if process == "gamma" else 1.0
        return replace(common, rate_per_s=reader.event_rate("rate"), burstiness=burstiness)


def _read_bursts(reader: Reader, common: Arrivals) -> Arrivals:
    every_ns = reader.duration("every", allow_zero=False)
    within_ns = reader.duration("within", 0)
    if within_ns > every_ns:
        rule = "is longer than the time between two bursts"
        raise SpecError(reader.at("within"), within_ns, rule, "lower within or raise every")
    burst = reader.integer("burst", minimum=1)
    return replace(common, burst=burst, within_ns=within_ns, every_ns=every_ns)


def as_lengths(value: object, path: str) -> Lengths:
    """A number of tokens, ``{fixed: n}``, or ``{mean: m, cv: c, max: n}`` (log-normal)."""
    if not isinstance(value, Mapping):
        return Lengths(as_integer(value, path, minimum=0))
    with Reader(value, path) as reader:
        reader.exclusive("fixed", "mean")
        if reader.has("fixed"):
            return Lengths(reader.integer("fixed", minimum=0))
        mean = reader.number("mean", minimum=1)
        maximum = reader.integer("max", None, minimum=1)
        return Lengths(mean, reader.number("cv", 1.0, minimum=0), maximum)


def peak_to_mean(arrivals_ns: Sequence[int], bin_ns: int = _SECOND_NS) -> float | None:
    """Most arrivals in one bin over the mean of all bins; None when they span less than 2 bins."""
    if not arrivals_ns:
        return None
    first = min(arrivals_ns)
    counts: dict[int, int] = {}
    for time in arrivals_ns:
        number = (time - first) // bin_ns
        counts[number] = counts.get(number, 0) + 1
    bins = max(counts) + 1
    return max(counts.values()) * bins / len(arrivals_ns) if bins > 1 else None
