"""Trimming on real devices: queues, shapers, the tags of lossless classes, and the NIC's ring."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.dataplane.methods import Methods
from emulator.waiting import wait_for
from tests.integration.mmu_rig import MmuRig, mmu_rig
from topologies.addressing import host_ip, host_mac
from topologies.settings import PfcRule, TrimRule
from traffic import wire
from traffic.headers import data_frame

pytestmark = pytest.mark.root

OUT, DATA, HEADERS, SIZE = "leaf1-eth3", 3, 5, 80
FULL = wire.data_frame_bytes(4096)
RULE = TrimRule(DATA, 43, SIZE, 10 * FULL)
OTHER = PfcRule(2, None, 100_000, 0, 50_000, 0)
PATIENCE_S = 5.0


def packet(rig: MmuRig, psn: int, source: str = "h1") -> bytes:
    """A full data packet of class 3 to h3."""
    fabric = rig.fabric
    address = wire.FlowAddress(
        host_mac(fabric, source), host_mac(fabric, "h3"),
        host_ip(fabric, source), host_ip(fabric, "h3"), 1, 0x123, DATA << 3,
    )  # fmt: skip
    return data_frame(address, wire.Opcode.SEND_MIDDLE, psn, 4096)


def cut(rig: MmuRig, count: int, first: int = 0) -> None:
    """Packets go to the queue of class 3, which takes what it may; its gate is closed."""
    frame = packet(rig, 0)
    sender = rig.sender(OUT)
    for psn in range(first, first + count):
        sender.send(frame[: wire.AT_PSN] + psn.to_bytes(3, "big") + frame[wire.AT_PSN + 3 :])


def records(rig: MmuRig, count: int) -> list[tuple[int, int, int]]:
    """(PSN, length, trimmed) of so many frames that came to h3's NIC."""
    found: list[tuple[int, int, int]] = []

    def there() -> bool:
        found.extend(
            (int(one["psn"]), int(one["length"]), int(one["trimmed"]))
            for one in rig.plane.ring.drain()
        )
        return len(found) >= count

    wait_for(there, PATIENCE_S, f"{count} frames")
    return found


def test_headers_pass_the_queue_that_they_could_not_enter(run_id: str) -> None:
    """Ten packets wait behind a gate, the next ones come as headers at once; then the ten come."""
    with mmu_rig(run_id, []) as rig:
        rig.plane.set_trim(rig.index(OUT), DATA, RULE)
        rig.gate(OUT, closed=True)
        cut(rig, 25)
        assert records(rig, 15) == [(psn, SIZE, 1) for psn in range(10, 25)]
        assert rig.queue(OUT, DATA)["trim_packets"] == 15
        assert rig.queue(OUT, DATA)["trim_bytes"] == 15 * (FULL - SIZE)
        assert rig.queue(OUT, DATA)["drop_packets"] == 0
        rig.gate(OUT, closed=False)
        assert records(rig, 10) == [(psn, FULL, 0) for psn in range(10)]
        for tc, count in ((DATA, 10), (HEADERS, 15)):
            assert rig.queue(OUT, tc)["in_packets"] == rig.queue(OUT, tc)["out_packets"] == count
            assert rig.queue(OUT, tc)["in_bytes"] == rig.queue(OUT, tc)["out_bytes"]
        assert rig.plane.states["trimmed_packets"][rig.index("h3-eth1")] == 15
        assert rig.plane.switches["in_bytes"] == rig.plane.switches["out_bytes"]


def test_the_agent_changes_it_while_packets_pass(run_id: str) -> None:
    """From the next packet on; each is in the queue or cut, until cutting is switched off."""
    with mmu_rig(run_id, [], buffer="100 KB") as rig:
        agent = Methods(rig.plane, [1_000_000_000] * 3, None, run_id)
        port = {"port": OUT, "tc": DATA}
        rig.gate(OUT, closed=True)
        for limit, waiting, headers in ((5, 5, 7), (8, 8, 16), (6, 8, 28)):
            asked = {"dscp": 43, "size_bytes": SIZE, "threshold_bytes": limit * FULL}
            assert agent.call("set_trim", port | asked) == {}
            cut(rig, 12)
            assert rig.queue(OUT, DATA)["in_packets"] == waiting
            assert rig.queue(OUT, DATA)["trim_packets"] == headers
        assert agent.call("set_trim", port | {"size_bytes": 0}) == {}
        cut(rig, 20)
        data = rig.queue(OUT, DATA)
        assert data["drop_packets"] > 0
        assert data["trim_packets"] == 28
        assert data["in_packets"] + data["drop_packets"] + data["trim_packets"] == 56


def test_headers_take_the_line_for_no_longer_than_they_are(run_id: str) -> None:
    """The shaper reckons with what is left of a packet; with all of it, it were 40 times slower."""
    rate_bps, count = 4_000_000, 200
    with mmu_rig(run_id, [], rate_bps=rate_bps) as rig:
        rig.plane.set_trim(rig.index(OUT), DATA, RULE)
        rig.gate(OUT, closed=True)
        cut(rig, 10 + count)
        records(rig, count)
        state = rig.plane.states[rig.index(OUT)]
        assert state["busy_gaps"] > count / 2
        achieved = int(state["busy_wire_bytes"]) * 8e9 / int(state["busy_ns"])
        assert rate_bps / 4 < achieved < rate_bps * 1.1


def test_headers_carry_the_tag_of_their_port_where_some_class_is_lossless(run_id: str) -> None:
    """They are in no account of an ingress port; the next switch reads from whom they come."""
    with mmu_rig(run_id, [OTHER]) as rig:
        rig.plane.set_trim(rig.index(OUT), DATA, RULE)
        rig.gate(OUT, closed=True)
        tap = rig.tap("h3-eth1")
        cut(rig, 11)
        frame = tap.recv(1 << 16)
        assert len(frame) == SIZE
        tag = bytes.fromhex("0201") + bytes(2) + rig.index(OUT).to_bytes(2, "big")
        assert frame[wire.AT_SRC_MAC : wire.AT_ETHERTYPE] == tag
        assert not rig.plane.held["classes"]["bytes"].any()
        assert rig.events() == []


def test_lossless_classes_keep_their_headroom_beside_a_trimmable_one(run_id: str) -> None:
    """Packets are cut when the shared buffer is used up; a lossless class still takes its own."""
    with mmu_rig(run_id, [replace(OTHER, xoff_bytes=1_000)], "200 KB", 8_000) as rig:
        rig.plane.set_trim(rig.index(OUT), DATA, replace(RULE, threshold_bytes=None))
        rig.gate(OUT, closed=True)
        cut(rig, 60)
        data = rig.queue(OUT, DATA)
        assert data["trim_packets"] > 0
        assert data["drop_packets"] == 0
        assert data["in_packets"] + data["trim_packets"] == 60
        rig.send(OUT, "h1", 20, tc=2)
        assert rig.queue(OUT, 2)["drop_packets"] == 0
        held, queue = rig.held("leaf1-eth1", 2), rig.queue(OUT, 2)
        assert held["headroom"] > 10_000
        assert held["headroom"] + held["bytes"] == queue["in_bytes"] - queue["out_bytes"]
