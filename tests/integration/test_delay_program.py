"""The eBPF program that delays frames, run by the kernel on single frames without any network."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import pytest

from emulator.dataplane import compiling, layout
from emulator.dataplane.building import interface_index
from emulator.dataplane.delays import LinkDelay, link_delays
from emulator.dataplane.plane import DataPlane
from emulator.spec.model import CUT_THROUGH, STORE_AND_FORWARD, SwitchSpec
from tests.fakes.fabrics import leaf_spine
from tests.integration.program_run import run_program
from topologies.addressing import host_ip
from traffic.wire import wire_bytes

pytestmark = pytest.mark.root

FABRIC = leaf_spine(
    3, 2, 2, links=[
        {"between": ["h1", "leaf1"], "rate": "25 Gbit/s"},
        {"between": ["leaf3", "spine1"], "rate": "400 Gbit/s"},
    ],
)  # fmt: skip
RATES = [link.rate_bps for link in FABRIC.links]
PORTS = ["leaf1-eth1", "leaf1-eth2", "leaf1-eth3", "leaf3-eth3", "spine1-eth1", "h1-eth1"]
CLASS = 5
IPV4, ARP = 0x0800, 0x0806
TC_ACT_OK = 0


@dataclass
class Bench:
    """The loaded program and its tables."""

    plane: DataPlane
    delays: dict[int, LinkDelay]

    def port(self, name: str) -> int:
        """A port's index."""
        return FABRIC.port_named(name).index

    def run(self, port: int, frame: bytes) -> int:
        """Runs the program on a frame that came in at a port; its departure, monotonic ns."""
        ran = run_program(self.plane.programs.wire_delay, frame, interface_index(port))
        assert ran.result == TC_ACT_OK
        return ran.departure_ns

    def last_byte_ns(self, port: int) -> int:
        """When the last byte of the last frame is at a port."""
        return int(self.plane.states["last_byte_ns"][port])


@pytest.fixture(params=[STORE_AND_FORWARD, CUT_THROUGH])
def bench(request: pytest.FixtureRequest) -> Bench:
    """A program of its own with the delays of the fabric."""
    plane = DataPlane(FABRIC, RATES, 7, compiling.object_file())
    delays = link_delays(FABRIC, RATES, SwitchSpec(request.param, 450), 1.0)
    plane.set_delays(delays)
    return Bench(plane, delays)


def frame(host: str, size: int, ethertype: int = IPV4) -> bytes:
    """A frame of a size to a host."""
    address = bytes(int(part) for part in host_ip(FABRIC, host).split("."))
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, CLASS << 5, size - 14, 0, 0, 64, 17, 0, b"\0" * 4, address
    )
    return (bytes(12) + struct.pack(">H", ethertype) + ip).ljust(size, b"\0")  # fmt: skip


@pytest.mark.parametrize("size", [42, 60, 62, 1_000, 3_500])
@pytest.mark.parametrize("name", PORTS)
def test_a_frame_is_delayed_as_the_plan_says(bench: Bench, name: str, size: int) -> None:
    """To the nanosecond and for every destination: the program computes what Python does."""
    port = bench.port(name)
    delay = bench.delays[port]
    line_ns = (wire_bytes(size) * delay.ps_per_byte + 500) // 1000
    for host in FABRIC.hosts:
        bench.plane.states["last_byte_ns"][port] = 0
        departure = bench.run(port, frame(host.name, size))
        leaf, number = FABRIC.attachment[host.name, 1]
        started = bench.last_byte_ns(port) - line_ns
        assert departure - started == delay.of(size, leaf, number)


def test_a_short_frame_does_not_overtake_the_one_ahead(bench: Bench) -> None:
    """A link cannot reorder, even where the shaper's burst lets the second one go too early."""
    port = bench.port("h1-eth1")
    ahead = bench.run(port, frame("h1", 3_500))
    bench.plane.states["last_byte_ns"][port] += 1_000_000_000
    behind = bench.run(port, frame("h1", 42))
    assert behind == ahead + 1_000_000_000


def test_what_has_no_address_waits_for_its_last_byte(bench: Bench) -> None:
    """ARP and the like, which also has no clock of its own for the time."""
    port = bench.port("leaf1-eth2")
    departure = bench.run(port, frame("h4", 42, ARP))
    assert departure == bench.last_byte_ns(port) + bench.delays[port].link_ns


def test_a_frame_is_counted_once(bench: Bench) -> None:
    """Out of the queue of the port at the other end, by class; a host's port has counted it."""
    states = bench.plane.states
    port = FABRIC.port_named("leaf1-eth2")
    bench.run(port.index, frame("h4", 1_000))
    assert states["classes"]["out_packets"][port.peer].tolist() == [0] * CLASS + [1, 0, 0]
    assert states["classes"]["out_bytes"][port.peer, CLASS] == 1_000
    assert int(states["classes"]["out_packets"].sum()) == 1
    bench.run(bench.port("h1-eth1"), frame("h1", 1_000))
    assert int(states["classes"]["out_packets"].sum()) == 1


def test_the_largest_sets_are_read_in_full(bench: Bench) -> None:
    """Every number of a host and of a leaf has a bit of its own."""
    port = bench.port("leaf1-eth2")
    config = bench.plane.configs[port : port + 1]
    assert config["whole_hosts"].shape == (1, layout.NUMBER_WORDS)
    for number in (1, 31, 32, 100, 254):
        for field, where in (("whole_hosts", (1, number)), ("whole_leaves", (number, 9))):
            if where[0] == 1 and field == "whole_leaves":
                continue
            config["whole_hosts"] = config["whole_leaves"] = 0
            config[field][0, number // 32] = np.uint32(1 << number % 32)
            wanted = bytearray(frame("h4", 1_000))
            wanted[30:34] = bytes([10, 1, *where])
            departure = bench.run(port, bytes(wanted))
            assert departure == bench.last_byte_ns(port) + bench.delays[port].link_ns
            config[field][0, number // 32] ^= np.uint32(0xFFFFFFFF)
            departure = bench.run(port, bytes(wanted))
            assert departure < bench.last_byte_ns(port) + bench.delays[port].link_ns
