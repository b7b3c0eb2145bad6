"""Background traffic: permutation, incast, pairs, all-to-all, or random pairs at a given load."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from statistics import fmean

from topologies.errors import SpecError
from traffic.tasks import Flow
from traffic.workloads.background_spec import (
    KIND,
    RANDOM_PAIRS,
    BackgroundSpec,
    Closed,
    Open,
    read,
)
from traffic.workloads.base import Context, Workload, host_rates
from traffic.workloads.pairs import PATTERNS, Pair, cross_leaf_permutation
from traffic.workloads.placement import place
from traffic.workloads.registry import Kind, register
from traffic.workloads.volume import message_wire_bytes

MAX_FLOWS = 1_000_000
"""More flows than this are refused; the schedule keeps each in memory."""

_QUANTILES = 4096


def build(spec: BackgroundSpec, context: Context) -> Workload:
    """The flows of background traffic."""
    rng = context.rng(spec, "placement")
    (hosts,) = place(context.fabric, spec.plane, spec.placement, [spec.hosts], rng)
    pairs = _pairs(spec, context, hosts)
    if isinstance(spec.offer, Closed):
        flows = _closed(spec, context, spec.offer, pairs)
    else:
        flows = _open(spec, context, spec.offer, hosts, pairs)
    meta: dict[str, object] = {
        "name": spec.name,
        "kind": spec.kind,
        "pattern": spec.pattern,
        "hosts": list(hosts),
        "shrink": context.shrink,
        "first_id": context.first_id,
        "flows": len(flows),
        "sizes_bytes": tuple(flow.size_bytes for flow in flows),
    }
    return Workload(spec.name, spec.kind, tuple(flows), meta)


def _pairs(spec: BackgroundSpec, context: Context, hosts: Sequence[str]) -> list[Pair]:
    if spec.pattern == RANDOM_PAIRS:
        return PATTERNS["all-to-all"](hosts, context.rng(spec, "pairs"))
    if len(hosts) < 2:
        raise SpecError(spec.hosts.path, len(hosts), "must be at least 2")
    if spec.pairs:
        return list(spec.pairs)
    if spec.cross_leaf:
        leaf_of = {host: context.fabric.attachment[host, spec.plane][0] for host in hosts}
        rng = context.rng(spec, "pairs")
        return cross_leaf_permutation(hosts, leaf_of, rng, spec.at("cross_leaf"))
    return PATTERNS[spec.pattern](hosts, context.rng(spec, "pairs"))


def _closed(
    spec: BackgroundSpec, context: Context, offer: Closed, pairs: Sequence[Pair]
) -> list[Flow]:
    """Round after round; an incast waits for all senders, otherwise each pair for itself."""
    _check_number(spec, offer.count * len(pairs))
    size_bytes = context.shrunk_bytes(offer.size_bytes)
    start_ns, gap_ns = context.shrunk_ns(spec.start_ns), context.shrunk_ns(offer.gap_ns)
    flows: list[Flow] = []
    for number in range(offer.count):
        first = context.first_id + (number - 1) * len(pairs)
        everyone = tuple(range(first, first + len(pairs)))
        for index, (src, dst) in enumerate(pairs):
            after = everyone if spec.pattern == "incast" else (first + index,)
            flows.append(
                Flow(
                    id=first + len(pairs) + index,
                    job=spec.name,
                    src=src,
                    dst=dst,
                    size_bytes=size_bytes,
                    dscp=spec.dscp,
                    tag=f"n{number}",
                    plane=spec.plane,
                    after=after if number else (),
                    start_ns=start_ns,
                    delay_ns=gap_ns if number else 0,
                )
            )
    return flows


def _open(
    spec: BackgroundSpec,
    context: Context,
    offer: Open,
    hosts: Sequence[str],
    pairs: Sequence[Pair],
) -> list[Flow]:
    """Each sender's flows arrive by a Poisson process and go to its receivers at random."""
    rng = context.rng(spec, "flows")
    rates = _flow_rates(spec, context, offer, pairs)
    duration_ns = context.shrunk_ns(offer.duration_ns)
    _check_number(spec, sum(rates.values()) * duration_ns)
    receivers: dict[str, list[str]] = {}
    for src, dst in pairs:
        receivers.setdefault(src, []).append(dst)
    arrivals = sorted(
        (time, index, src)
        for index, src in enumerate(receivers)
        for time in _poisson(rates[src], duration_ns, rng)
    )
    start_ns = context.shrunk_ns(spec.start_ns)
    return [
        Flow(
            id=context.first_id + number,
            job=spec.name,
            src=src,
            dst=rng.choice(receivers[src]),
            size_bytes=context.shrunk_bytes(offer.sizes.draw(rng)),
            dscp=spec.dscp,
            tag=f"n{number}",
            plane=spec.plane,
            start_ns=start_ns + time,
            qp=number,
        )
        for number, (time, _, src) in enumerate(arrivals)
    ]


def _flow_rates(
    spec: BackgroundSpec, context: Context, offer: Open, pairs: Sequence[Pair]
) -> Mapping[str, float]:
    """Flows per ns of each sender, so that their line time is the wanted share of a link."""
    line_rates = host_rates(context.fabric, spec.plane)
    mean_bits = 8 * _mean_wire_bytes(context, offer)
    if spec.pattern == "incast":
        share = offer.load * line_rates[pairs[0][1]] / len(pairs)
        return {src: share / mean_bits / 1e9 for src, _ in pairs}
    return {src: offer.load * line_rates[src] / mean_bits / 1e9 for src, _ in pairs}


def _mean_wire_bytes(context: Context, offer: Open) -> float:
    """Mean line time of a flow, bytes, over evenly spaced quantiles of the size."""
    sizes = (offer.sizes.quantile((i + 0.5) / _QUANTILES) for i in range(_QUANTILES))
    payload_bytes = context.payload_bytes
    return fmean(message_wire_bytes(context.shrunk_bytes(size), payload_bytes) for size in sizes)


def _poisson(rate_per_ns: float, duration_ns: int, rng: random.Random) -> list[int]:
    times: list[int] = []
    now = rng.expovariate(rate_per_ns)
    while now < duration_ns:
        times.append(int(now))
        now += rng.expovariate(rate_per_ns)
    return times


def _check_number(spec: BackgroundSpec, flows: float) -> None:
    if flows > MAX_FLOWS:
        rule = f"makes about {flows:.0f} flows, more than {MAX_FLOWS}"
        raise SpecError(spec.path or spec.name, spec.name, rule, "shorten it or lower its load")


register(Kind(KIND, read, build))
