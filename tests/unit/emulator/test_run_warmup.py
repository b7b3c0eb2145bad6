"""Before a run: paths are taught, and the idle network is measured, over the fake medium."""

from __future__ import annotations

import pytest

from emulator.run import warmup
from emulator.run.warmup import Way
from tests.fakes.medium import FakeClock, FakeMedium, FakeQueue, Frame, Lose
from tests.fakes.nic_rig import PARAMETERS, RATE_BPS, address, endpoints, number_of
from topologies.errors import MachineError
from traffic.nic.connection import Connection

HOP_NS = 7_000


class Net:
    """Hosts around one switch that takes a while for each packet, in wall time."""

    def __init__(self, lose: Lose = lambda frame: False) -> None:
        self.clock = FakeClock(1_000_000)
        nics = {port: FakeQueue(RATE_BPS) for port in range(1, 5)}
        self.switch = {port: FakeQueue(RATE_BPS, delay_ns=HOP_NS + 100 * port) for port in nics}
        self.medium = FakeMedium(self.clock, nics, self._route, lose)

    def _route(self, _port: int, dst_ip: str) -> list[FakeQueue]:
        return [self.switch[int(dst_ip.rpartition(".")[2])]]


def way(src: str, dst: str, hops: int = 1, **keys: int) -> Way:
    """A direction between two hosts."""
    return Way(number_of(src), address(src, dst, **keys), hops)


def test_both_directions_of_every_connection_are_ways() -> None:
    """Data there, control back, in its own class."""
    connections = [Connection(0, endpoints("h1", "h2"), PARAMETERS),
                   Connection(1, endpoints("h3", "h1"), PARAMETERS)]  # fmt: skip
    ways = warmup.ways_of(connections, [1, 3], 48)
    assert [(one.src_port, one.address.dst_ip, one.hops) for one in ways] == [
        (1, "10.1.0.2", 1), (2, "10.1.0.1", 1), (3, "10.1.0.1", 3), (1, "10.1.0.3", 3),
    ]  # fmt: skip
    assert [one.address.dscp for one in ways] == [26, 48, 26, 48]


def test_every_way_is_taught_once() -> None:
    """Ways that switches cannot tell apart need one packet between them."""
    net = Net()
    ways = [way("h1", "h2"), way("h2", "h1"), way("h1", "h2"), way("h1", "h2", entropy=5),
            way("h1", "h2", dscp=48)]  # fmt: skip
    warmup.teach(net.medium, net.clock, ways)
    sent = [(frame.src_ip, frame.sport & 0x3FFF, frame.tos >> 2) for frame in net.medium.sent]
    assert sent == [
        ("10.1.0.1", 0, 26), ("10.1.0.2", 0, 26), ("10.1.0.1", 5, 26), ("10.1.0.1", 0, 48),
    ]  # fmt: skip


def test_a_way_that_carries_nothing_is_named() -> None:
    """The run ends before it begins, with who cannot reach whom."""

    def lose(frame: Frame) -> bool:
        return frame.dst_ip == "10.1.0.3"

    net = Net(lose)
    with pytest.raises(MachineError, match=r"from 10\.1\.0\.1 to 10\.1\.0\.3"):
        warmup.teach(net.medium, net.clock, [way("h1", "h2"), way("h1", "h3")])


def test_teaching_nothing_is_done_at_once() -> None:
    """An experiment without flows and probes."""
    net = Net()
    warmup.teach(net.medium, net.clock, [])
    assert warmup.hop_latency_ns(net.medium, net.clock, []) == 0
    assert net.clock.now_ns() == 1_000_000


def test_a_hop_s_time_is_the_median_over_all_ways() -> None:
    """Latency over hops, of many small packets; a way of two hops counts half."""
    net = Net()
    ways = [way("h2", "h1"), way("h1", "h2", hops=2), way("h1", "h3")]
    expected = sorted([HOP_NS + 100, (HOP_NS + 200) / 2, HOP_NS + 300])[1]
    assert warmup.hop_latency_ns(net.medium, net.clock, ways) == pytest.approx(expected, abs=2)
    assert len(net.medium.sent) >= 30


def test_round_trips_are_the_sums_of_both_directions() -> None:
    """Of each pair by itself, in order."""
    net = Net()
    pairs = [(way("h1", "h2"), way("h2", "h1")), (way("h3", "h4"), way("h4", "h3"))]
    measured = warmup.idle_round_trips_ns(net.medium, net.clock, pairs)
    assert measured == [
        pytest.approx(2 * HOP_NS + 300, abs=2),
        pytest.approx(2 * HOP_NS + 700, abs=2),
    ]


def test_packets_of_the_warm_up_do_not_meet() -> None:
    """They are spread, so that none waits for another."""
    net = Net()
    ways = [way(f"h{n}", "h4") for n in (1, 2, 3)]
    assert warmup.hop_latency_ns(net.medium, net.clock, ways) == pytest.approx(HOP_NS + 400, abs=2)
    assert max(queue.peak_bytes for queue in net.switch.values()) < 100
