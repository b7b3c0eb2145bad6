"""The MMU's books on lossless classes: XOFF, headroom, XON, tags, discards; on real devices."""

from __future__ import annotations

import struct

import pytest

from emulator.dataplane.layout import EVENT_FRAME, EVENT_XOFF, EVENT_XON
from emulator.spec.receivers import ReceiverSpec
from emulator.waiting import wait_for
from tests.integration.mmu_rig import LENGTH, LOSSLESS, MmuRig, frame_of, mmu_rig
from topologies.settings import PfcRule

pytestmark = pytest.mark.root

OUT = "leaf1-eth3"
IN = "leaf1-eth1"
STATIC = PfcRule(LOSSLESS, None, 10 * LENGTH, 2 * LENGTH, 5 * LENGTH, 0)
PATIENCE_S = 5.0


def drained(rig: MmuRig, port: str = OUT) -> bool:
    """Whether a queue is empty."""
    queue = rig.queue(port)
    return bool(queue["in_packets"] == queue["out_packets"])


def test_frames_are_counted_where_they_came_in(run_id: str) -> None:
    """By the host that sent them, until they have left the queue."""
    with mmu_rig(run_id, [STATIC]) as rig:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 3)
        rig.send(OUT, "h2", 2)
        assert rig.held(IN)["bytes"] == 3 * LENGTH
        assert rig.held("leaf1-eth2")["bytes"] == 2 * LENGTH
        assert rig.held(OUT)["bytes"] == 0
        rig.gate(OUT, closed=False)
        wait_for(lambda: drained(rig), PATIENCE_S, "the queue to drain")
        assert rig.held(IN)["bytes"] == rig.held("leaf1-eth2")["bytes"] == 0
        assert rig.queue(OUT)["out_packets"] == 5
        assert rig.events() == []


def test_xoff_headroom_drop_and_xon(run_id: str) -> None:
    """Ten frames are shared, five lie in the headroom, the next are lost; back the same way."""
    with mmu_rig(run_id, [STATIC]) as rig:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 10)
        assert rig.events() == []
        rig.send(OUT, "h1", 1, tc=1)
        assert not rig.is_woken()
        rig.send(OUT, "h1", 1)
        assert rig.is_woken()
        rig.waker.clear()
        assert not rig.is_woken()
        assert rig.events() == [(IN, LOSSLESS, EVENT_XOFF)]
        rig.send(OUT, "h1", 4)
        assert rig.queue(OUT)["drop_packets"] == 0
        rig.send(OUT, "h1", 2)
        held = rig.held(IN)
        assert (held["bytes"], held["headroom"]) == (10 * LENGTH, 5 * LENGTH)
        assert held["drop_packets"] == rig.queue(OUT)["drop_packets"] == 2
        assert rig.plane.switches["headroom_bytes"][0] == 5 * LENGTH
        rig.gate(OUT, closed=False)
        wait_for(lambda: drained(rig), PATIENCE_S, "the queue to drain")
        assert rig.is_woken()
        assert rig.events() == [(IN, LOSSLESS, EVENT_XON)]
        assert (rig.held(IN)["bytes"], rig.held(IN)["headroom"]) == (0, 0)
        assert rig.held(IN)["peak_headroom"] == 5 * LENGTH
        assert rig.plane.switches["headroom_bytes"][0] == 0
        assert rig.plane.switches["in_bytes"] == rig.plane.switches["out_bytes"] == 16 * LENGTH


def test_xon_comes_at_the_offset_below_xoff(run_id: str) -> None:
    """The event tells how much was held: XOFF less the offset, not more and no frame less."""
    with mmu_rig(run_id, [STATIC]) as rig:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 12)
        rig.gate(OUT, closed=False)
        wait_for(lambda: drained(rig), PATIENCE_S, "the queue to drain")
        xoff, xon = rig.plane.pause_ring.drain()
        assert (xoff["bytes"], xoff["headroom"], xoff["limit"]) == (
            10 * LENGTH,
            LENGTH,
            10 * LENGTH,
        )
        assert (xon["bytes"], xon["headroom"]) == (8 * LENGTH, 0)
        assert xoff["time_ns"] < xon["time_ns"]
        assert (xoff["changes"], xon["changes"]) == (1, 2)


def test_a_dynamic_threshold_follows_the_free_buffer(run_id: str) -> None:
    """With alpha 1 one port may take half of what is shared, and two a third each."""
    rule = PfcRule(LOSSLESS, 1.0, None, 0, 5 * LENGTH, 0)
    with mmu_rig(run_id, [rule], buffer=f"{75 * LENGTH} B") as rig:
        shared = 75 * LENGTH - 3 * 5 * LENGTH
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 40)
        (first,) = rig.plane.pause_ring.drain()
        assert first["bytes"] == pytest.approx(shared / 2, abs=LENGTH)
        assert rig.held(IN)["bytes"] == pytest.approx(shared / 2, abs=LENGTH)
        rig.send(OUT, "h2", 40)
        (second,) = rig.plane.pause_ring.drain()
        assert rig.fabric.port(int(second["port"])).name == "leaf1-eth2"
        assert second["bytes"] == pytest.approx(shared / 4, abs=LENGTH)


def test_lossy_classes_share_what_is_not_reserved(run_id: str) -> None:
    """The headroom is not theirs, full or empty; and they are neither counted nor paused."""
    rule = PfcRule(LOSSLESS, None, LENGTH, 0, 20 * LENGTH, 0, ports=IN)
    with mmu_rig(run_id, [rule], buffer=f"{50 * LENGTH} B", rate_bps=80, alphas={1: 256}) as rig:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 60, tc=1)
        queue = rig.queue(OUT, tc=1)
        assert queue["in_packets"] - queue["out_packets"] == 30
        assert queue["in_packets"] + queue["drop_packets"] == 60
        assert rig.events() == []
        assert rig.held(IN, tc=1)["bytes"] == 0
        rig.send(OUT, "h1", 25)
        assert rig.held(IN)["headroom"] == 20 * LENGTH
        assert rig.queue(OUT)["drop_packets"] == 5


def test_a_class_is_lossy_at_ports_without_a_rule(run_id: str) -> None:
    """The rule of one ingress port does not protect what comes in through another."""
    rule = PfcRule(LOSSLESS, None, LENGTH, 0, 20 * LENGTH, 0, ports=IN)
    with mmu_rig(run_id, [rule]) as rig:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h2", 5)
        assert rig.held("leaf1-eth2")["bytes"] == 0
        assert rig.queue(OUT)["in_bytes"] == 5 * LENGTH
        assert rig.events() == []


def test_the_source_address_tells_the_way(run_id: str) -> None:
    """02:01, the port through which a frame came in, the port through which it left; no more."""
    with mmu_rig(run_id, [STATIC]) as rig, rig.tap("h3-eth1") as tap:
        rig.send(OUT, "h1")
        rig.send(OUT, "h1", tc=1)
        sent = frame_of(rig.fabric, "h1", "h3", LOSSLESS)
        lossless, lossy = tap.recv(2000), tap.recv(2000)
        assert lossless[6:12] == bytes([2, 1, 0, rig.index(IN), 0, rig.index(OUT)])
        assert lossy[6:12] == bytes([2, 1, 0, 0, 0, rig.index(OUT)])
        assert lossless[:6] + lossless[12:] == sent[:6] + sent[12:]


def test_frames_of_another_switch_are_counted_by_their_tag(run_id: str) -> None:
    """A tag names the port that sent; its peer is where the frame came in, if it is here."""
    with mmu_rig(run_id, [STATIC]) as rig:
        rig.gate(OUT, closed=True)
        frame = bytearray(frame_of(rig.fabric, "h1", "h3", LOSSLESS))
        for sender in ("h2-eth1", "leaf1-eth2"):
            frame[6:12] = bytes([2, 1, 0, 99, 0, rig.index(sender)])
            rig.sender(OUT).send(frame)
        assert rig.held("leaf1-eth2")["bytes"] == LENGTH
        frame[6:12] = bytes(6)
        rig.sender(OUT).send(frame)
        assert rig.queue(OUT)["in_packets"] == 3
        assert rig.plane.held["classes"]["bytes"].sum() == LENGTH


def test_a_closed_gate_lets_nothing_out_and_holds_up_no_other_class(run_id: str) -> None:
    """Not a single frame leaks, and a kick does not open it."""
    with mmu_rig(run_id, [STATIC]) as rig, rig.tap("h3-eth1") as tap:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 3)
        rig.kick(OUT)
        rig.send(OUT, "h1", 2, tc=1)
        assert {tap.recv(2000)[15] >> 5 for _ in range(2)} == {1}
        assert rig.queue(OUT)["out_packets"] == 0
        rig.gate(OUT, closed=False)
        assert {tap.recv(2000)[15] >> 5 for _ in range(3)} == {LOSSLESS}
        assert rig.queue(OUT, tc=0)["in_packets"] == 0


def test_an_opened_gate_needs_the_kick(run_id: str) -> None:
    """Without it nothing leaves, which is why the agent kicks."""
    with mmu_rig(run_id, [STATIC]) as rig:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 3)
        rig.gate(OUT, closed=False)
        wait_for(lambda: drained(rig), PATIENCE_S, "the kick to work")


def test_the_watchdog_discards_the_queue_and_what_comes(run_id: str) -> None:
    """All are drops of the egress port; none arrives; the buffer is free again."""
    with mmu_rig(run_id, [STATIC]) as rig:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 4)
        rig.plane.set_discard(rig.index(OUT), LOSSLESS, on=True)
        rig.send(OUT, "h1", 2)
        rig.send(OUT, "h1", 1, tc=1)
        rig.gate(OUT, closed=False)
        wait_for(lambda: rig.queue(OUT)["drop_packets"] == 6, PATIENCE_S, "the discard")
        queue = rig.queue(OUT)
        assert queue["drop_bytes"] == 6 * LENGTH
        assert queue["in_packets"] == queue["out_packets"] == 0
        assert rig.held(IN)["bytes"] == 0
        assert rig.plane.switches["in_bytes"] == rig.plane.switches["out_bytes"]
        rig.plane.set_discard(rig.index(OUT), LOSSLESS, on=False)
        rig.send(OUT, "h1", 1)
        wait_for(lambda: rig.queue(OUT)["out_packets"] == 1, PATIENCE_S, "normal service")
        assert rig.queue(OUT)["drop_packets"] == 6


def test_what_a_discarding_port_has_sent_is_not_counted_twice(run_id: str) -> None:
    """A copy that the switch has taken before the discard vanishes at the next queue."""
    with mmu_rig(run_id, [STATIC]) as rig:
        rig.plane.set_discard(rig.index("leaf1-eth2"), LOSSLESS, on=True)
        frame = bytearray(frame_of(rig.fabric, "h1", "h3", LOSSLESS))
        frame[6:12] = bytes([2, 1, 0, 0, 0, rig.index("leaf1-eth2")])
        rig.sender(OUT).send(frame)
        queue = rig.queue(OUT)
        assert queue["in_packets"] == queue["drop_packets"] == 0


def test_switching_a_class_to_lossy_gives_everything_back(run_id: str) -> None:
    """Frames that were counted are given back, and the pause ends with the next departure."""
    with mmu_rig(run_id, [STATIC]) as rig:
        rig.gate(OUT, closed=True)
        rig.send(OUT, "h1", 12)
        rig.plane.set_pause(rig.index(IN), LOSSLESS, None)
        rig.send(OUT, "h1", 3)
        assert rig.plane.switches["reserved_bytes"][0] == 2 * 5 * LENGTH
        rig.gate(OUT, closed=False)
        wait_for(lambda: drained(rig), PATIENCE_S, "the queue to drain")
        assert rig.events() == [(IN, LOSSLESS, EVENT_XOFF), (IN, LOSSLESS, EVENT_XON)]
        assert (rig.held(IN)["bytes"], rig.held(IN)["headroom"]) == (0, 0)


def test_a_slow_receiver_tells_when_its_buffer_fills(run_id: str) -> None:
    """Frames of the lossless class raise the level, which falls with time; XOFF is told once."""
    with mmu_rig(run_id, [STATIC]) as rig:
        port, receivers = rig.index("h3-eth1"), rig.plane.receivers
        receivers.apply([ReceiverSpec("h3", 0, 100_000)], (LOSSLESS,), 1.0)
        xoff = int(receivers.configs["xoff"][port])
        rig.send(OUT, "h1", 3)
        assert rig.events() == []
        receivers.begin(0, 1.0)
        rig.send(OUT, "h1", xoff // LENGTH)
        wait_for(lambda: drained(rig), PATIENCE_S, "the queue to drain")
        assert rig.events() == []
        rig.send(OUT, "h1", 3, tc=1)
        rig.send(OUT, "h1", 3)
        wait_for(lambda: drained(rig), PATIENCE_S, "the queue to drain")
        assert rig.is_woken()
        (event,) = rig.plane.pause_ring.drain()
        assert (event["port"], event["tc"], event["kind"]) == (port, LOSSLESS, EVENT_XOFF)
        assert event["bytes"] == (xoff // LENGTH + 1) * LENGTH
        assert receivers.levels[port, LOSSLESS]["bytes"] == (xoff // LENGTH + 3) * LENGTH


@pytest.mark.parametrize(
    ("change", "heard"),
    [
        ({}, True),
        ({"source": "000000000000"}, True),
        ({"target": "02000a010101"}, True),
        ({"classes": "0000"}, False),
        ({"opcode": "0001"}, False),
        ({"opcode": "1001"}, False),
    ],
    ids=str,
)
def test_pause_frames_of_programs_are_heard(
    run_id: str, change: dict[str, str], heard: bool
) -> None:
    """By opcode and classes alone: whatever the addresses are, but not without a class."""
    fields = {"target": "0180c2000001", "source": "020000000001", "type": "8808",
              "opcode": "0101", "classes": "0008"} | change  # fmt: skip
    times = [0, 0, 0, 0xFFFF, 0, 0, 0, 5]
    frame = bytes.fromhex("".join(fields.values())) + struct.pack(">8H", *times) + bytes(26)
    with mmu_rig(run_id, [STATIC]) as rig, rig.tap("leaf1-eth1") as tap:
        rig.sender("h1-eth1").send(frame)
        assert tap.recv(2000) == frame
        assert rig.is_woken() == heard
        events = rig.plane.pause_ring.drain()
        assert len(events) == heard
        for event in events:
            assert (event["port"], event["kind"]) == (rig.index("h1-eth1"), EVENT_FRAME)
            assert event["changes"] == 1 << 3
            words = struct.pack("<QQ", int(event["bytes"]), int(event["headroom"]))
            assert list(struct.unpack(">8H", words)) == times
        assert rig.queue("h1-eth1", tc=0)["in_packets"] == 0
