"""The choice of the framework, and the translation of its objects."""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest

from controller.core.events import PortState
from controller.core.messages import Barrier, FlowMod, Match, Message, Output, Rule
from tests.fakes import of_wire
from topologies.errors import MachineError, UnknownNameError

try:
    from controller import openflow, sdn, wire
except MachineError as missing:
    pytest.skip(str(missing), allow_module_level=True)


def choose(monkeypatch: pytest.MonkeyPatch, broken: dict[str, Exception]) -> tuple[str, str]:
    """The choice while some frameworks cannot be imported."""

    def load(root: str) -> str:
        if root in broken:
            raise broken[root]
        return f"{root} 1.0"

    monkeypatch.setattr(sdn, "_import", load)
    return sdn.choose()


@pytest.fixture(autouse=True)
def _unforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sdn.VARIABLE, raising=False)


def test_ryu_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both work, Ryu is taken."""
    assert choose(monkeypatch, {}) == ("ryu", "ryu 1.0")


@pytest.mark.parametrize(
    "error",
    [
        ImportError("No module named 'ryu'"),
        AttributeError("no attribute 'ALREADY_HANDLED'"),
        TypeError("cannot set 'is_timeout' of an immutable type"),
    ],
)
def test_os_ken_where_ryu_cannot_run(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Whether Ryu is missing or breaks at import as it is known to, os-ken takes its place."""
    assert choose(monkeypatch, {"ryu": error}) == ("os_ken", "os_ken 1.0")


def test_neither_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has both reasons and the way out."""
    broken: dict[str, Exception] = {"ryu": TypeError("old"), "os_ken": ImportError("missing")}
    with pytest.raises(
        MachineError, match=r"ryu: TypeError: old; os_ken: ImportError: missing.*run"
    ):
        choose(monkeypatch, broken)


def test_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable leaves no choice, not even when the other one would work."""
    monkeypatch.setenv(sdn.VARIABLE, "os_ken")
    assert choose(monkeypatch, {})[0] == "os_ken"
    with pytest.raises(MachineError, match=r"\(os_ken: ImportError: missing\)"):
        choose(monkeypatch, {"os_ken": ImportError("missing")})
    monkeypatch.setenv(sdn.VARIABLE, "pox")
    with pytest.raises(UnknownNameError, match="FABRICLAB_SDN: 'pox'"):
        choose(monkeypatch, {})


def test_what_is_chosen_has_a_name_with_version() -> None:
    """It goes into the results."""
    assert sdn.NAME.split()[0] == sdn.DISTRIBUTION[sdn.ROOT]
    assert sdn.NAME.split()[1][0].isdigit()


class FakeDatapath:
    """Collects what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, data: bytes) -> None:
        """One call is one buffer."""
        self.sent.append(data)


def parse(data: bytes) -> Any:
    """A message from a switch, as the framework parses it."""
    kind, xid = data[1], int.from_bytes(data[4:8], "big")
    parser = sdn.ofproto_v1_3_parser
    return parser.msg_parser(None, of_wire.VERSION, kind, len(data), xid, bytearray(data))


@pytest.mark.parametrize("up", [True, False])
def test_port_status(up: bool) -> None:
    """Number, name and state of the link."""
    state = PortState(3, "leaf1-eth3", up)
    message = parse(of_wire.port_status(of_wire.PORT_MODIFIED, state))
    assert openflow.changed_port(message) == state


def test_removed_port_is_down() -> None:
    """Even when its last state was up."""
    message = parse(of_wire.port_status(of_wire.PORT_REMOVED, PortState(3, "leaf1-eth3", True)))
    assert openflow.changed_port(message) == PortState(3, "leaf1-eth3", False)


def test_port_that_is_set_down_is_down() -> None:
    """Administratively down counts like no carrier."""
    message = parse(of_wire.port_status(of_wire.PORT_MODIFIED, PortState(3, "leaf1-eth3", True)))
    message.desc = message.desc._replace(config=sdn.ofproto_v1_3.OFPPC_PORT_DOWN)
    assert openflow.changed_port(message).up is False


RULES: list[Message] = [
    FlowMod.add(Rule(10, Match.of(eth_type=0x800), (Output(port),)), 1) for port in (1, 2, 3)
]


def test_messages_leave_as_one_buffer() -> None:
    """A whole switch is one write; transaction ids go on from batch to batch."""
    datapath = FakeDatapath()
    connection = openflow.Connection(datapath)
    connection.send([*RULES, Barrier(4)])
    connection.send(RULES[:1])
    assert datapath.sent[0] == wire.encode([*RULES, Barrier(4)], openflow.FIRST_XID)
    assert wire.xid_of(datapath.sent[1]) == openflow.FIRST_XID + 4


def test_transaction_ids_start_again_before_they_overflow() -> None:
    """Ids stay 32 bits and above those of barriers however much is sent."""
    datapath = FakeDatapath()
    connection = openflow.Connection(datapath)
    connection._next_xid = 0xFFFFFFFF - 3
    connection.send(RULES)
    connection.send(RULES)
    assert [wire.xid_of(data) for data in datapath.sent] == [0xFFFFFFFC, openflow.FIRST_XID]


def test_error_names_the_refused_message() -> None:
    """Type and code by name, and the rule, which is found by its transaction id."""
    connection = openflow.Connection(FakeDatapath())
    connection.send(RULES)
    refused = wire.encode([RULES[1]], openflow.FIRST_XID + 1)
    text = connection.describe_error(parse(of_wire.error(0, 5, 1, refused)))
    assert text == (
        "OFPET_FLOW_MOD_FAILED(5), OFPFMFC_TABLE_FULL(1), in answer to ADD table=0,priority=10,"
        "eth_type=0x800 -> output:2 (cookie 0x1/0x0)"
    )


@pytest.mark.parametrize(
    ("refused", "shown"),
    [
        (b"", "in answer to an unknown message"),
        (b"\x04\x0e", "in answer to a message that begins with 040e"),
        (of_wire.pack(9, 5), "in answer to a message that begins with 0409000800000005"),
    ],
)
def test_error_about_something_else(refused: bytes, shown: str) -> None:
    """What cannot be found is shown as it came."""
    connection = openflow.Connection(FakeDatapath())
    connection.send(RULES)
    assert shown in connection.describe_error(parse(of_wire.error(0, 1, 1, refused)))


def test_timers_of_one_moment_keep_the_order_in_which_they_were_made() -> None:
    """Not that of their addresses in memory, which no two runs need have in common."""
    timer = importlib.import_module("eventlet.hubs.timer").Timer
    made = [timer(0, print) for _ in range(100)]
    mixed = random.Random(1).sample(made, len(made))
    assert sorted((1.0, entry) for entry in mixed) == [(1.0, entry) for entry in made]


def test_what_comes_on_several_sockets_at_once_has_one_order() -> None:
    """The hub keeps listeners in a set; its order follows from the sockets' numbers alone."""
    hub = importlib.import_module("eventlet.hubs.hub")

    def order(spare: int) -> list[int]:
        unused = [object() for _ in range(spare)]
        listeners = [hub.FdListener(hub.READ, fd, None, None, None) for fd in (9, 12, 7, 31)]
        del unused
        return [fd for _, fd in {(listener, listener.fileno) for listener in listeners}]

    assert len({tuple(order(spare)) for spare in range(50)}) == 1
