"""Closed forms for collectives: bus bandwidth factors, ideal times, the alpha-beta model.

Sizes are counted as nccl-tests counts them (the full buffer per rank; for all-gather and
reduce-scatter the whole array).
"""

from __future__ import annotations

from fractions import Fraction

from traffic.workloads.collectives.halving_doubling import core_ranks

_FACTORS = {
    "all-reduce": lambda ranks: Fraction(2 * (ranks - 1), ranks),
    "reduce-scatter": lambda ranks: Fraction(ranks - 1, ranks),
    "all-gather": lambda ranks: Fraction(ranks - 1, ranks),
    "all-to-all": lambda ranks: Fraction(ranks - 1, ranks),
    "broadcast": lambda ranks: Fraction(1),
    "send-recv": lambda ranks: Fraction(1),
}


def bus_factor(collective: str, ranks: int) -> float:
    """busbw / algbw of a collective (nccl-tests, doc/PERFORMANCE.md)."""
    return float(_FACTORS[collective](ranks))


def ideal_time_ns(collective: str, ranks: int, size_bytes: int, rate_bps: float) -> float:
    """The time at which bus bandwidth equals the rate of each rank's link: S f / B."""
    return bus_factor(collective, ranks) * size_bytes * 8e9 / rate_bps


def steps(collective: str, algorithm: str, ranks: int, pieces: int = 1) -> int:
    """Number of messages in a row that the slowest rank waits for."""
    if algorithm == "ring":
        rounds = {"all-reduce": 2 * (ranks - 1), "send-recv": 1}
        return rounds.get(collective, ranks - 1)
    if algorithm == "halving-doubling":
        folded = 0 if core_ranks(ranks) == ranks else 2
        return 2 * (core_ranks(ranks).bit_length() - 1) + folded
    if algorithm == "chain":
        return ranks - 2 + pieces
    return {"pairwise": ranks - 1, "mesh": 1}[algorithm]


def alpha_beta_ns(
    collective: str,
    algorithm: str,
    ranks: int,
    size_bytes: int,
    rate_bps: float,
    alpha_ns: float,
    pieces: int = 1,
) -> float:
    """Time of a collective when a message of n bytes takes alpha + n/B (Hockney 1994).

    Args:
        collective: the operation.
        algorithm: how it is carried out.
        ranks: number of ranks.
        size_bytes: size of the operation.
        rate_bps: rate of each rank's link, bit/s.
        alpha_ns: fixed time of a message, ns.
        pieces: number of pieces of a pipelined algorithm.
    """
    count = steps(collective, algorithm, ranks, pieces)
    share = Fraction(size_bytes) * _serial_share(collective, algorithm, ranks, pieces)
    return count * alpha_ns + float(share) * 8e9 / rate_bps


def _serial_share(collective: str, algorithm: str, ranks: int, pieces: int) -> Fraction:
    """Bytes that pass one link one after the other, as a share of the size."""
    if algorithm == "chain":
        return Fraction(ranks - 2 + pieces, pieces)
    if algorithm == "halving-doubling" and core_ranks(ranks) != ranks:
        return Fraction(2) + _FACTORS[collective](core_ranks(ranks))
    return _FACTORS[collective](ranks)
