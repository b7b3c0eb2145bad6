"""Messages on the wire: read back by an independent reader, and equal to the framework's."""

from __future__ import annotations

from typing import Any

import pytest

from controller import wire
from controller.core.messages import (
    ALL_TABLES,
    Barrier,
    Command,
    FlowMod,
    Match,
    Message,
    Output,
    Rule,
)
from controller.core.routing import Routing
from controller.core.switch import delete_others
from controller.policies.registry import build_policy
from tests.fakes import of_wire
from tests.fakes.fabrics import leaf_spine
from tests.fakes.frameworks import FRAMEWORKS, parser_of

PREFIX = (0x0A010200, 0xFFFFFF00)
MATCHES = [
    Match(),
    Match.of(eth_type=0x0806),
    Match.of(eth_type=0x0800, ipv4_dst=0x0A010203),
    Match.of(eth_type=0x0800, ipv4_dst=PREFIX),
    Match.of(eth_type=0x0800, ip_proto=17, ipv4_dst=PREFIX, udp_src=(5, 0x3F)),
    Match.of(eth_type=0x0800, ip_proto=6, ipv4_dst=PREFIX, tcp_src=(5 << 6, 0x3F << 6)),
    Match.of(eth_type=0x0800, ip_proto=6, tcp_src=443),
]
MESSAGES: list[Message] = [
    *(FlowMod.add(Rule(2000, match, (Output(7),)), 0xABCD) for match in MATCHES),
    FlowMod.add(Rule(0, Match()), 1),
    FlowMod(Command.ADD, Match(), 5, (Output(1), Output(0xFFFFFF00)), (1 << 64) - 1),
    FlowMod(Command.MODIFY_STRICT, MATCHES[3], 9, (Output(2),), 3, 0xFF),
    FlowMod.remove(Rule(2000, MATCHES[4]).key),
    *delete_others(0x5A5A),
]


def read_back(data: bytes) -> list[tuple[int, Message]]:
    """(transaction id, message) of all that a buffer holds."""
    stream = bytearray(data)
    found = [(xid, of_wire.read_message(kind, xid, body)) for kind, xid, body in
             of_wire.split(stream)]  # fmt: skip
    assert not stream
    return found


def test_reads_back_as_sent() -> None:
    """Every kind of message survives the way over the wire."""
    back = read_back(wire.encode([*MESSAGES, Barrier(77)], first_xid=100))
    assert [message for _, message in back] == [*MESSAGES, Barrier(77)]


def test_all_rules_of_a_fabric_read_back() -> None:
    """Leaves and spines, with parallel links and single hosts' rules."""
    fabric = leaf_spine(3, 2, hosts_per_leaf=3, parallel=2)
    for name in ("ecmp", "static"):
        routing = Routing(fabric, build_policy({"policy": name}, fabric), 7)
        for node in fabric.switches:
            sent = [FlowMod.add(rule, 3) for rule in routing.rules(node).values()]
            assert [message for _, message in read_back(wire.encode(sent))] == sent


def test_transaction_ids_count_up_and_barriers_have_their_token() -> None:
    """So the message behind an error or an answer can be found."""
    sent: list[Message] = [MESSAGES[0], Barrier(9), MESSAGES[1]]
    back = read_back(wire.encode(sent, first_xid=0xFFFFFFFE))
    assert [xid for xid, _ in back] == [0xFFFFFFFE, 9, 0]


def test_matches_are_padded_to_eight_bytes() -> None:
    """Their length field does not count the padding (7.2.3.1)."""
    for match in MATCHES:
        encoded = wire.encode_match(match)
        length = int.from_bytes(encoded[2:4], "big")
        assert len(encoded) == (length + 7) // 8 * 8


def test_xid_of() -> None:
    """The transaction id can be read from the first eight bytes."""
    head = wire.encode([MESSAGES[0]], first_xid=0x1234)[:64]
    assert (wire.xid_of(head), wire.xid_of(head[:8]), wire.xid_of(head[:7])) == (
        0x1234,
        0x1234,
        None,
    )


@pytest.mark.parametrize("root", FRAMEWORKS)
@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_flow_mods_are_those_of_the_framework(root: str, message: FlowMod) -> None:
    """Byte for byte what Ryu or os-ken makes of the same rule."""
    parser, datapath = parser_of(root)
    assert wire.encode([message], first_xid=5) == by_framework(parser, datapath, message, xid=5)


@pytest.mark.parametrize("root", FRAMEWORKS)
def test_barriers_are_those_of_the_framework(root: str) -> None:
    """Byte for byte as well."""
    parser, datapath = parser_of(root)
    request = parser.OFPBarrierRequest(datapath)
    request.set_xid(77)
    request.serialize()
    assert wire.encode([Barrier(77)]) == bytes(request.buf)


def by_framework(parser: Any, datapath: Any, message: FlowMod, xid: int) -> bytes:
    """The framework's encoding of a flow-mod."""
    fields = {
        name: value if mask == wire_full(name) else (value, mask)
        for name, value, mask in message.match.fields
    }
    outputs = [parser.OFPActionOutput(action.port, 0) for action in message.actions]
    apply_actions = 4
    instructions = [parser.OFPInstructionActions(apply_actions, outputs)] if outputs else []
    made = parser.OFPFlowMod(
        datapath, message.cookie, message.cookie_mask, message.table, int(message.command),
        priority=message.priority, out_port=0xFFFFFFFF, out_group=0xFFFFFFFF,
        match=parser.OFPMatch(**fields), instructions=instructions,
    )  # fmt: skip
    made.set_xid(xid)
    made.serialize()
    return bytes(made.buf)


def wire_full(name: str) -> int:
    """The mask that compares a whole field."""
    return {"eth_type": 0xFFFF, "ip_proto": 0xFF, "ipv4_dst": 0xFFFFFFFF}.get(name, 0xFFFF)


def test_delete_of_all_tables_is_in_the_list() -> None:
    """The comparison covers deletes by cookie in all tables."""
    assert any(isinstance(m, FlowMod) and m.table == ALL_TABLES for m in MESSAGES)
