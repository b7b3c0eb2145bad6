"""Flow sizes: fixed, or drawn from a cumulative distribution, built in or from a file.

A file has one point per line, size in bytes and cumulative share, separated by blanks, a comma or
a tab; ``#`` begins a comment and one header line is skipped. Shares are percent when the last one
is 100, fractions when it is 1; anything else is an error, as is a share or a size that falls.
"""

from __future__ import annotations

import bisect
import math
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from topologies.errors import SpecError

_SEPARATOR = re.compile(r"[\s,;]+")


@dataclass(frozen=True)
class SizeCdf:
    """A piecewise linear distribution of flow sizes.

    Attributes:
        name: built-in name or file name.
        sizes_bytes: sizes, not falling.
        shares: share of flows that are at most that large, not falling, the last one 1.
    """

    name: str
    sizes_bytes: tuple[float, ...]
    shares: tuple[float, ...]

    def quantile(self, share: float) -> int:
        """The size that this share (0-1) of flows does not exceed, at least 1 byte.

        Between two points it is interpolated; up to the first point's share it is the first size.
        """
        upper = bisect.bisect_left(self.shares, share)
        if upper == 0:
            return max(1, math.ceil(self.sizes_bytes[0]))
        low, high = self.shares[upper - 1], self.shares[upper]
        below, above = self.sizes_bytes[upper - 1], self.sizes_bytes[upper]
        return max(1, math.ceil(below + (above - below) * (share - low) / (high - low)))

    def draw(self, rng: random.Random) -> int:
        """A random size, bytes."""
        return self.quantile(rng.random())

    @property
    def mean_bytes(self) -> float:
        """Mean size, bytes, without the rounding of single draws."""
        total = self.sizes_bytes[0] * self.shares[0]
        for index in range(1, len(self.shares)):
            middle = (self.sizes_bytes[index - 1] + self.sizes_bytes[index]) / 2
            total += middle * (self.shares[index] - self.shares[index - 1])
        return total


def fixed(size_bytes: int) -> SizeCdf:
    """All flows of one size."""
    return SizeCdf(f"{size_bytes} B", (size_bytes,), (1.0,))


def _percent(name: str, points: Sequence[tuple[int, float]]) -> SizeCdf:
    sizes, shares = zip(*points, strict=True)
    return SizeCdf(name, sizes, tuple(share / 100 for share in shares))


BUILT_IN: dict[str, SizeCdf] = {
    cdf.name: cdf
    for cdf in (
        _percent(
            "websearch",
            [
                (0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53),
                (200_000, 60), (1_000_000, 70), (2_000_000, 80), (5_000_000, 90),
                (10_000_000, 97), (30_000_000, 100),
            ],
        ),
        _percent(
            "fb-hadoop",
            [
                (0, 0), (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40),
                (700, 50), (1_000, 60), (2_000, 67), (7_000, 70), (30_000, 72), (50_000, 82),
                (80_000, 87), (120_000, 90), (300_000, 95), (1_000_000, 97.5), (2_000_000, 99),
                (10_000_000, 100),
            ],
        ),
        _percent(
            "ali-storage",
            [
                (0, 0), (4_000, 22.93), (8_000, 69.21), (16_000, 80.61), (32_000, 90.47),
                (64_000, 93.53), (128_000, 96.77), (256_000, 97.53), (2_000_000, 100),
            ],
        ),
    )
}  # fmt: skip
"""Points as used in the HPCC evaluation (SIGCOMM 2019); web search from the DCTCP paper (2010),
Hadoop from Roy et al. (SIGCOMM 2015), storage from Alibaba (2019)."""


def read_cdf(file: Path, path: str) -> SizeCdf:
    """A distribution from a file.

    Args:
        file: the file.
        path: key path that names it, for errors.

    Raises:
        SpecError: the file is missing or no such distribution; names file and line.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        rule = f"cannot be read: {error.strerror or error}"
        raise SpecError(path, str(file), rule) from None
    except UnicodeDecodeError:
        raise SpecError(path, str(file), "is not a text file") from None
    return _from_points(file, path, _points(file, path, lines))


_Point = tuple[int, float, float]


def _points(file: Path, path: str, lines: Iterable[str]) -> list[_Point]:
    """(line number, size, share) of each line that is not empty."""
    points: list[_Point] = []
    skipped = False
    for number, line in enumerate(lines, start=1):
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        values = _numbers(_SEPARATOR.split(text.strip(",;")))
        if values is None:
            if points or skipped:
                rule = "is not a size and a share"
                raise SpecError(path, text, rule, "write e.g. 10000 15", f"{file}:{number}")
            skipped = True
        else:
            points.append((number, *values))
    return points


def _numbers(fields: Sequence[str]) -> tuple[float, float] | None:
    if len(fields) != 2:
        return None
    try:
        size, share = float(fields[0]), float(fields[1].rstrip("%"))
    except ValueError:
        return None
    return (size, share) if math.isfinite(size) and math.isfinite(share) else None


def _from_points(file: Path, path: str, points: Sequence[_Point]) -> SizeCdf:
    if not points:
        raise SpecError(path, file.name, "has no line with a size and a share", file=str(file))
    for before, point in zip([(0, 0.0, 0.0), *points], points, strict=False):
        if point[1] < before[1] or point[2] < before[2]:
            rule = "falls: sizes and shares must not become less from line to line"
            raise SpecError(path, f"{point[1]:g} {point[2]:g}", rule, "", f"{file}:{point[0]}")
    number, _, whole = points[-1]
    if whole not in (1.0, 100.0):
        rule = "is the last share, which must be 100 (percent) or 1 (fraction)"
        raise SpecError(path, whole, rule, "", f"{file}:{number}")
    return SizeCdf(file.name, tuple(p[1] for p in points), tuple(p[2] / whole for p in points))
