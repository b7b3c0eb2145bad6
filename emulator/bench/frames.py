"""How many frames per second the NIC engine hands to the kernel, against Scapy's `sendp`.

Both send the same RoCEv2 data frames into the same interface, a veth pair that nobody listens to.
Ours are patched from a template and sent in batches; Scapy's are packets that `sendp` builds and
sends one by one, as scripts do. That `sendp` of frames that were built before is shown beside it.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from emulator.bench.rows import Row, at_least
from emulator.bench.setting import Setting, median_of, scratch_namespace
from emulator.clock.live import LiveClock
from emulator.dataplane.medium import KernelMedium, open_sender
from emulator.dataplane.plane import DataPlane
from emulator.kernel import links, netlink, netns
from emulator.kernel.forking import Forked, Stop
from emulator.waiting import wait_for
from topologies.errors import MachineError
from traffic.nic.frames import FrameBook
from traffic.template import FrameBank
from traffic.wire import FlowAddress, Opcode

NAME = "frames"
SUMMARY = "data frames of 4096 B payload, built and handed to the kernel, per second"
PAYLOAD_BYTES = 4096
BATCH = 256
BATCHES = 80
SCAPY_FRAMES = 300
REPETITIONS = 5
LEAST_RATIO = 100.0
_MTU_BYTES = PAYLOAD_BYTES + 128
_INTERFACE, _PEER = "bench0", "bench1"
_PATIENCE_S = 120.0
ADDRESS = FlowAddress("02:00:00:00:00:01", "02:00:00:00:00:02", "10.1.1.1", "10.1.2.1", 77, 5, 26)


def measure(setting: Setting) -> list[Row]:
    """Frames per second of both, and the ratio."""
    with scratch_namespace() as (ledger, descriptor):
        with netns.entered(descriptor), netlink.Session() as session:
            ends = [links.End(_INTERFACE, 10, ADDRESS.src_mac, descriptor),
                    links.End(_PEER, 11, ADDRESS.dst_mac, descriptor)]  # fmt: skip
            session.run([links.veth_pair(ends[0], ends[1], _MTU_BYTES)])
            session.run([links.up(end.index, end.name) for end in ends])
        setting.note(f"frames: the engine, {REPETITIONS} x {BATCH * BATCHES:,} frames")
        ours = _engine_rate(descriptor)
        setting.note(f"frames: Scapy, {REPETITIONS} x {SCAPY_FRAMES} frames")
        theirs = _in_child(descriptor, ledger.add_process, setting.folder)
    return rows(ours, *theirs)


def rows(ours: float, scapy: float, prebuilt: float) -> list[Row]:
    """The figures, frames/s, as rows."""
    return [
        Row("NIC engine", ours, "frames/s"),
        Row("Scapy sendp", scapy, "frames/s", remark="builds each packet"),
        Row("Scapy sendp, built before", prebuilt, "frames/s", remark="sends only"),
        at_least("ratio to sendp", ours / scapy, "x", LEAST_RATIO),
        Row("ratio to sendp, built before", ours / prebuilt, "x"),
    ]


def bank() -> FrameBank:
    """The template that the engine patches."""
    book = FrameBook()
    book.add_datagram(ADDRESS, PAYLOAD_BYTES)
    return book.finish()


def _engine_rate(descriptor: int) -> float:
    """Median rate of patching and sending, frames/s."""
    # The data plane is only read from when frames are received, which nothing does here.
    plane = cast(DataPlane, None)
    with open_sender(descriptor, _INTERFACE) as sender:
        medium = KernelMedium(plane, {0: sender}, LiveClock(1.0))
        send = _sender_of(medium, bank())
        send(0)
        return median_of(lambda: _rate(BATCH * BATCHES, lambda: _send_all(send)), REPETITIONS)


def _sender_of(medium: KernelMedium, frames: FrameBank) -> Callable[[int], None]:
    """Patches and sends the batch of a number."""
    index, ports = np.zeros(BATCH, np.intp), np.zeros(BATCH, np.intp)
    steps = np.arange(BATCH)

    def send(number: int) -> None:
        psn = number * BATCH + steps
        headers, icrc = frames.patch(index, Opcode.SEND_MIDDLE, 0, psn)
        taken = medium.send(
            ports, headers, frames.header_bytes[index], frames.body_bytes[index], icrc
        )
        if taken != BATCH:
            raise MachineError(f"the kernel took {taken} of {BATCH} frames")

    return send


def _send_all(send: Callable[[int], None]) -> None:
    for number in range(BATCHES):
        send(number)


def _rate(count: int, work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return count / (time.perf_counter() - begin)


def _in_child(descriptor: int, started: Callable[[int], None], folder: Path) -> tuple[float, float]:
    """Scapy's rates, measured by a process in the namespace, where Scapy knows the interface."""
    report, log = folder / "scapy.json", folder / "scapy.log"
    report.unlink(missing_ok=True)

    def work(_should_stop: Stop) -> None:
        report.write_text(json.dumps(scapy_rates()))

    child = Forked("scapy", work, log, descriptor)
    started(child.pid)
    try:
        wait_for(lambda: child.poll() is not None, _PATIENCE_S, "Scapy to send its frames")
    finally:
        child.kill()
    if not report.exists():
        raise MachineError(f"Scapy failed: {log.read_text(errors='replace').strip()[-400:]}")
    building, sending = json.loads(report.read_text())
    return building, sending


def scapy_rates() -> tuple[float, float]:
    """Median frames/s of `sendp`: (packets that it builds, frames that were built before)."""
    from scapy.config import conf  # noqa: PLC0415 - touches the interfaces of its namespace
    from scapy.packet import Raw  # noqa: PLC0415
    from scapy.sendrecv import sendp  # noqa: PLC0415

    from traffic import headers  # noqa: PLC0415

    conf.ifaces.reload()

    def rate(packets: list[Any]) -> float:
        return _rate(len(packets), lambda: sendp(packets, iface=_INTERFACE, verbose=False))

    def fresh() -> list[Any]:
        middle, numbers = Opcode.SEND_MIDDLE, range(SCAPY_FRAMES)
        return [headers.data_packet(ADDRESS, middle, psn, PAYLOAD_BYTES) for psn in numbers]

    built = [Raw(bytes(packet)) for packet in fresh()]
    building = statistics.median(rate(fresh()) for _ in range(REPETITIONS))
    sending = statistics.median(rate(built) for _ in range(REPETITIONS))
    return building, sending
