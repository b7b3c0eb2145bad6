"""Templates of all frames that a run can send, made before it starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from traffic import headers
from traffic.nic.connection import Connection, Templates
from traffic.template import FrameBank, resized
from traffic.wire import AETH_BYTES, SACK_BYTES, FlowAddress, Opcode

_SOME = FlowAddress("02:00:00:00:00:01", "02:00:00:00:00:02", "10.0.0.1", "10.0.0.2", 0, 0)


class FrameBook:
    """Collects which frames are needed, then makes them in one go.

    Args:
        sprays: whether the transport does.
    """

    def __init__(self, sprays: bool = False) -> None:
        self._sprays = sprays
        some = headers.data_frame(_SOME, Opcode.SEND_MIDDLE, 0, 4)
        self._data = some
        self._bases: list[bytes] = [
            headers.ack_frame(_SOME, 0, 0),
            headers.cnp_frame(_SOME),
            headers.sack_frame(_SOME, 0, 0),
        ]
        self._wider: list[tuple[int, int]] = []
        self._base_of: dict[int, int] = {}
        self._flows: list[FlowAddress] = []
        self._pairs: list[tuple[int, int]] = []

    def _add(self, base: int, flow: int) -> int:
        self._pairs.append((base, flow))
        return len(self._pairs) - 1

    def _base(self, payload_bytes: int) -> int:
        if payload_bytes not in self._base_of:
            self._base_of[payload_bytes] = len(self._bases)
            self._bases.append(resized(self._data, payload_bytes))
        return self._base_of[payload_bytes]

    def add(
        self,
        connection: Connection,
        payload_bytes: int,
        sizes_bytes: Iterable[int],
        control_dscp: int,
    ) -> None:
        """Templates for a connection that carries messages of these sizes."""
        forward = replace(connection.ends.address, dest_qp=connection.receiver_qp)
        back = forward.reverse(connection.sender_qp, control_dscp)
        flow = len(self._flows)
        self._flows += [forward, back]
        templates = connection.templates
        templates.full = self._add(self._base(payload_bytes), flow)
        for tail in sorted({(size - 1) % payload_bytes + 1 for size in sizes_bytes}):
            templates.tails[tail] = self._add(self._base(tail), flow)
        templates.ack = self._add(0, flow + 1)
        templates.cnp = self._add(1, flow + 1)
        if self._sprays:
            self._make_room(templates, flow + 1)

    def _make_room(self, templates: Templates, back: int) -> None:
        """Data with a word of its own in the payload; acknowledgements that say more."""
        templates.ack = self._add(2, back)
        self._wider.append((templates.ack, SACK_BYTES))
        self._wider += [(n, AETH_BYTES) for n in (templates.full, *templates.tails.values())]

    def add_datagram(self, address: FlowAddress, payload_bytes: int) -> int:
        """A template for unacknowledged packets; returns its number."""
        self._flows.append(address)
        return self._add(self._base(payload_bytes), len(self._flows) - 1)

    def finish(self) -> FrameBank:
        """The bank with all templates that were asked for."""
        bank = FrameBank.derive(self._bases, self._flows, self._pairs)
        for template, nbytes in self._wider:
            bank.widen(template, nbytes)
        return bank


def book(
    connections: Sequence[Connection],
    sizes_bytes: Mapping[int, Iterable[int]],
    payload_bytes: int,
    control_dscp: int,
    sprays: bool = False,
) -> FrameBook:
    """A book with the frames of all connections; `sizes_bytes` by connection number."""
    made = FrameBook(sprays)
    for connection in connections:
        sizes = sizes_bytes.get(connection.number, ())
        made.add(connection, payload_bytes, sizes, control_dscp)
    return made
