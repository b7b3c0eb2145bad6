"""The seam between the NIC engine and transports: whatever keeps to it can be plugged in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from tests.fakes.medium import Marking, drop_randomly
from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, Rig, flow
from topologies.errors import UnknownNameError
from traffic.dcqcn_params import PAPER
from traffic.nic import transports
from traffic.nic.connection import Connection
from traffic.nic.parameters import NicParameters
from traffic.nic.receiver import Receiver
from traffic.nic.sender import Burst, Message, Sender, unwrap
from traffic.nic.transports import Ends
from traffic.wire import PSN_MASK, SYNDROME_ACK

NAME = "window-by-marks"
LEAST, MOST = 1, 32


@dataclass
class MarkWindow:
    """A sending end that shares no code with go-back-N: a window that marks halve.

    The other end says how many marks it has seen, in the AETH. What is not acknowledged in time is
    sent again from the beginning.
    """

    rto_ns: int
    payload_bytes: int
    messages: list[Message] = field(default_factory=list)
    end: int = 0
    sent: int = 0
    acknowledged: int = 0
    window: int = 8
    marks: int = 0
    halved: int = 0
    deadline_ns: int | None = None

    @property
    def has_more(self) -> bool:
        """Something waits."""
        return self.sent < self.end

    @property
    def idle(self) -> bool:
        """Nothing is left."""
        return self.acknowledged == self.end

    def enqueue(self, flow_id: int, size_bytes: int) -> Message:
        """At the end."""
        packets = -(-size_bytes // self.payload_bytes)
        tail = size_bytes - (packets - 1) * self.payload_bytes
        message = Message(flow_id, self.end, self.end + packets, tail)
        self.messages.append(message)
        self.end += packets
        return message

    def _at_hand(self) -> Message:
        return next(message for message in self.messages if self.sent < message.end)

    def allowed(self) -> int:
        """By window and message."""
        if not self.has_more:
            return 0
        room = self.window - (self.sent - self.acknowledged)
        return max(0, min(self._at_hand().end - self.sent, room))

    def take(self, count: int, now_ns: int) -> Burst:
        """In order."""
        message, first = self._at_hand(), self.sent
        if message.first_tx_ns < 0:
            message.first_tx_ns = now_ns
        self.sent += count
        if self.deadline_ns is None:
            self.deadline_ns = now_ns + self.rto_ns
        return Burst(message, first, count)

    def rate_bps(self, _now_ns: int) -> int | None:
        """The line's."""
        return None

    def due_ns(self, _now_ns: int) -> float:
        """At once."""
        return 0.0

    def on_sent(self, _now_ns: int, _nbytes: int) -> None:
        """Nothing."""

    def on_ack(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """Grows the window, or halves it if there are new marks."""
        through = unwrap(psn24, self.acknowledged) + 1
        if through <= self.acknowledged:
            return
        if aeth & 0xFFFFFF > self.marks:
            self.marks, self.halved = aeth & 0xFFFFFF, self.halved + 1
            self.window = max(LEAST, self.window // 2)
        else:
            self.window = min(MOST, self.window + 1)
        self.acknowledged, self.sent = through, max(through, self.sent)
        self.deadline_ns = now_ns + self.rto_ns if self.sent > through else None

    def on_nak(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """Nobody sends one."""
        raise AssertionError

    def on_cnp(self, now_ns: int) -> None:
        """Nobody sends one."""
        raise AssertionError

    def check_timeout(self, now_ns: int) -> bool:
        """From the beginning."""
        if self.deadline_ns is None or now_ns < self.deadline_ns:
            return False
        self.sent, self.deadline_ns = self.acknowledged, None
        return True


@dataclass
class MarkCounter:
    """A receiving end that takes what is in order and counts marks."""

    expected: int = 0
    marks: int = 0
    asked: bool = False

    def on_run(self, psn24: int, count: int, ends_message: bool) -> int:
        """In order, or not at all."""
        self.asked = True
        psn = unwrap(psn24, self.expected)
        if psn > self.expected or psn + count <= self.expected:
            return 0
        self.expected = psn + count
        return int(ends_message)

    def on_marks(self, times_ns: Iterable[int]) -> int:
        """Counted; no CNP."""
        self.marks += len(list(times_ns))
        return 0

    def pop_answer(self) -> tuple[bool, int] | None:
        """An ACK whenever something came."""
        asked, self.asked = self.asked, False
        return (False, self.expected - 1) if asked else None

    def aeth(self, is_nak: bool) -> int:
        """The marks."""
        assert not is_nak
        return SYNDROME_ACK << 24 | self.marks


def mark_window(_rate_bps: int, parameters: NicParameters, _number: int) -> Ends:
    """Both ends of it."""
    return Ends(MarkWindow(parameters.rto_ns, parameters.payload_bytes), MarkCounter())


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> NicParameters:
    """Parameters that ask for the transport above, which is registered meanwhile."""
    monkeypatch.setattr(transports, "_FACTORIES", dict(transports._FACTORIES))
    transports.register(NAME, mark_window)
    return replace(PARAMETERS, transport=NAME)


def test_a_transport_of_one_s_own_carries_messages(plugged: NicParameters) -> None:
    """All of them, in order, and each after what it waits for."""
    tasks = [flow(n, 1 + n * 50_000, *(("h1", "h2") if n % 2 else ("h2", "h1")),
                  after=(n - 1,) * (n > 3)) for n in range(8)]  # fmt: skip
    rig = Rig(tasks, parameters=plugged)
    assert rig.run()
    assert set(rig.seen.by_id()) == set(range(8))
    assert rig.counters.timeouts == rig.counters.naks == rig.counters.cnps == 0


def test_what_its_ends_tell_each_other_arrives(plugged: NicParameters) -> None:
    """The receiving end's count of marks reaches the sending end, which acts on it."""
    tasks = [flow(n, 200 * PAYLOAD, src=f"h{n + 2}", dst="h1") for n in range(4)]
    rig = Rig(tasks, parameters=plugged, marking=Marking(20_000, 60_000))
    assert rig.run()
    assert rig.settle()
    senders = [one.sender for one in rig.plan.connections]
    assert sum(one.receiver.marks for one in rig.plan.connections) == rig.switch[1].marked > 0
    assert all(isinstance(sender, MarkWindow) and sender.halved > 0 for sender in senders)
    assert sum(done.message.marked for done in rig.seen.flows) == rig.switch[1].marked


@pytest.mark.parametrize("seed", range(4))
def test_its_timeouts_are_kept(plugged: NicParameters, seed: int) -> None:
    """What the network loses is sent again when the transport says so."""
    rig = Rig([flow(n, 60 * PAYLOAD, qp=n) for n in range(3)], parameters=plugged,
              lose=drop_randomly(0.03, seed))  # fmt: skip
    assert rig.run()
    assert len(rig.seen.by_id()) == 3
    assert rig.counters.timeouts > 0


class Hoarder(Receiver):
    """Reports messages two at a time, as an end may that takes packets out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: deque[int] = deque()

    def on_run(self, psn24: int, count: int, ends_message: bool) -> int:
        """Every other time, both."""
        self.kept += [1] * super().on_run(psn24, count, ends_message)
        if len(self.kept) < 2:
            return 0
        self.kept.clear()
        return 2


def test_several_messages_may_be_complete_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are reported oldest first, at the time of the packet that completed them."""
    monkeypatch.setattr(transports, "_FACTORIES", dict(transports._FACTORIES))
    transports.register("pairs", lambda _rate, given, _number: Ends(
        Sender(given.payload_bytes, None, given.rto_ns, None), Hoarder()
    ))  # fmt: skip
    rig = Rig([flow(n, 3 * PAYLOAD) for n in range(4)],
              parameters=replace(PARAMETERS, transport="pairs"))  # fmt: skip
    assert rig.run()
    assert [done.flow.id for done in rig.seen.flows] == [0, 1, 2, 3]
    times = [done.done_ns for done in rig.seen.flows]
    assert times[0] == times[1] < times[2] == times[3]


def test_go_back_n_is_what_runs_unless_something_else_is_asked_for() -> None:
    """With or without rate control."""
    for dcqcn in (None, PAPER):
        ends = transports.build(10**9, replace(PARAMETERS, dcqcn=dcqcn))
        assert (type(ends.sender), type(ends.receiver)) == (Sender, Receiver)
        assert (ends.sender.rate_bps(0) is None) == (dcqcn is None)
        cnps = 0 if dcqcn is None else 1
        assert ends.receiver.on_marks([0, 1, 2]) == cnps
    assert "go-back-n" in transports.names()


def test_an_unknown_transport_is_an_error_that_lists_the_known_ones() -> None:
    """Before anything starts."""
    with pytest.raises(UnknownNameError, match="go-back-n"):
        Connection(0, Rig([flow(0, 1)]).plan.connections[0].ends,
                   replace(PARAMETERS, transport="go-back-m"))  # fmt: skip


def test_two_transports_of_one_name_are_an_error() -> None:
    """The second would hide the first."""
    with pytest.raises(ValueError, match="go-back-n"):
        transports.register("go-back-n", mark_window)


def test_the_low_bits_of_an_answer_are_the_number_of_messages() -> None:
    """As adapters have it, modulo 2**24."""
    one = Receiver()
    one.completed = PSN_MASK + 8
    assert [one.aeth(is_nak) for is_nak in (False, True)] == [7, 0x60000007]
