"""Several senders into one receiver, with fixed windows and no reaction."""

from __future__ import annotations

import math
from collections.abc import Sequence

from emulator.physics import documents as doc
from emulator.physics import measure, theory
from emulator.physics.case import Case, Measured, Run, Runs, Target, closed_form
from emulator.physics.drawing import Look, Panel, Series

RATE_BPS = 100e9
_HOST_NS, _SWITCH_NS = 500, 500
_ACK_LINE_BYTES = 86
"""An acknowledgement: 62 B, its check sequence, preamble and gap."""
_HALF, _LAST, _QUEUE, _DROPS = "share of each", "last flow done", "standing queue", "drops"
RECEIVER_PORT = "leaf1-eth1"


def fair_halves_case(packets: int = 6000) -> Case:
    """Two flows of one receiver."""
    document = _incast(2, packets)
    share = 50 * doc.PAYLOAD_BYTES / doc.PACKET_BYTES
    tolerance = closed_form(live=0.05, virtual=0.005)
    return Case(
        name="fair-halves",
        table="",
        title="Two flows into one port",
        shows="Two equal flows that meet at a port get half of it each.",
        source="closed form C/2",
        runs=(Run("run", document),),
        targets=tuple(Target(f"goodput of {h}", "Gbit/s", share, tolerance) for h in ("h2", "h3")),
        measure=_goodputs,
        live=True,
        wall_s=5.0,
    )


def incast_case(senders: int, packets: int = 24_000) -> Case:
    """Many flows of one receiver; a buffer that holds all their windows."""
    each = packets // senders
    return Case(
        name=f"incast-{senders}",
        table="",
        title=f"{senders}:1 incast with windows",
        shows="The receiver's link is busy from the first packet to the last, nothing is lost, "
        "and what the windows have in flight beyond the path's own stands in its queue.",
        source="closed forms n S / C and n W - C RTT",
        runs=(Run("run", _incast(senders, each)),),
        targets=(
            Target(_LAST, "us", doc.packets_ns(senders * each) / 1000, closed_form(0.05, 0.02)),
            Target(_QUEUE, "packets", standing_queue(senders), closed_form(0.10, 0.01)),
            Target(_DROPS, "packets", 0.0, closed_form(0.0, 0.0)),
        ),
        measure=_drained,
        draw=lambda runs: _draw(senders, runs),
        live=True,
        wall_s=8.0,
    )  # fmt: skip


def rtt_ns() -> float:
    """Unloaded round trip of a full packet and its acknowledgement over one switch."""
    there, back = (
        theory.store_and_forward_ns(size, RATE_BPS, 1, _SWITCH_NS, 2 * _HOST_NS)
        for size in (doc.PACKET_BYTES, _ACK_LINE_BYTES)
    )
    return there + back


def window_packets() -> int:
    """Two bandwidth-delay products, the window called ``auto``."""
    return math.ceil(2 * rtt_ns() / doc.packets_ns(1))


def standing_queue(senders: int) -> float:
    """Packets that stand in front of the receiver."""
    return theory.standing_queue_packets(senders, window_packets(), rtt_ns(), doc.packets_ns(1))


def _incast(senders: int, packets: int) -> doc.Document:
    fabric = doc.leaf_spine(1, 0, senders + 1, host_link=doc.link(100, _HOST_NS))
    pairs = [(host, "h1") for host in doc.hosts(2, senders)]
    return doc.experiment(
        fabric, [doc.flows("incast", pairs, packets)],
        transport={"window": window_packets()}, switch={"latency": f"{_SWITCH_NS} ns"},
    )  # fmt: skip


def _goodputs(runs: Runs) -> Measured:
    flows = measure.flows(runs["run"])
    goodputs = flows.goodputs_bps / 1e9
    return {f"goodput of {src}": float(value)
            for src, value in zip(flows.src, goodputs, strict=True)}  # fmt: skip


def _drained(runs: Runs) -> Measured:
    run = runs["run"]
    last_ns = float(measure.flows(run).done_ns.max())
    depth = measure.depth_bytes(measure.samples(run), RECEIVER_PORT, 0.2 * last_ns, 0.8 * last_ns)
    return {
        _LAST: last_ns / 1000,
        _QUEUE: measure.mean(depth) / doc.FRAME_BYTES,
        _DROPS: float(run.summary["packets"]["dropped"]) if run.summary else math.nan,
    }


def _draw(senders: int, runs: Runs) -> Sequence[Panel]:
    series = measure.samples(runs["run"])
    depth = series.of_port("bytes", RECEIVER_PORT) / doc.FRAME_BYTES
    times = series.time_ns / 1000
    ends = [float(times[0]), float(times[-1])]
    bound = doc.packets_ns(24_000 // senders * senders) / 1000
    expected = standing_queue(senders)
    return [
        Panel(
            "Queue in front of the receiver", "time (us)", "queue (packets)",
            (
                Series("n W - C RTT", ends, [expected, expected], Look.REFERENCE),
                Series("drain bound", [bound, bound], [0.0, expected], Look.REFERENCE),
                Series("measured", times.tolist(), depth.tolist(), Look.LINE),
            ),
        )
    ]  # fmt: skip
