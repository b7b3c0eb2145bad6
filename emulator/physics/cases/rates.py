"""One flow on an idle fabric: a port sends at its configured rate."""

from __future__ import annotations

from emulator.physics import documents as doc
from emulator.physics import measure
from emulator.physics.case import Case, Measured, Run, Runs, Target, closed_form

PACKETS = 10_000
WIRE, GOODPUT = "rate on the wire", "goodput"
_RTT_PACKETS = 100


def rate_case(gbps: int) -> Case:
    """One flow over three switches whose links are all of one rate."""
    fabric = doc.leaf_spine(
        2, 1, 1, host_link=doc.link(gbps, 500), fabric_link=doc.link(gbps, 1000)
    )
    document = doc.experiment(fabric, [doc.flows("flow", [("h1", "h2")], PACKETS)])
    share = doc.PAYLOAD_BYTES / doc.PACKET_BYTES
    tolerance = closed_form(live=0.01, virtual=0.001)
    return Case(
        name=f"rate-{gbps}g",
        table="",
        title=f"One flow at {gbps} Gbit/s",
        shows="A port sends at its configured rate, headers, preamble and gap included, and the "
        "payload gets its share of it.",
        source="IEEE 802.3 framing; RoCEv2 headers (IBTA annex A17)",
        runs=(Run("run", document),),
        targets=(
            Target(WIRE, "Gbit/s", float(gbps), tolerance),
            Target(GOODPUT, "Gbit/s", gbps * share, tolerance),
        ),
        measure=_measure,
        live=True,
        wall_s=5.0,
    )


def _measure(runs: Runs) -> Measured:
    """Both rates between the first and the last packet's arrival."""
    run = runs["run"]
    flow = measure.flows(run)
    across = next(row for row in run.manifest["unloaded_full"] if row["hops"] == 3)
    span_ns = float(flow.done_ns[0] - flow.first_tx_ns[0]) - across["latency_ns"]
    packets = float(flow.packets[0]) - 1
    return {
        WIRE: packets * doc.PACKET_BITS / span_ns,
        GOODPUT: packets * doc.PAYLOAD_BYTES * 8 / span_ns,
    }
