"""JSON-RPC 2.0 lines: what is written is read back, what is wrong gets the right error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import rpc
from controller.rpc import Decoder, ErrorResponse, Notification, Request, Response, RpcError

MESSAGES: list[rpc.Message] = [
    Request(1, "set_ecn", {"port": "leaf1-eth3", "pmax": 0.2}),
    Request("a", "hello"),
    Notification("queues", {"bytes": [1, 2]}),
    Response(1, None),
    Response("a", {"ok": True}),
    ErrorResponse(1, rpc.INVALID_PARAMS, "no such port"),
    ErrorResponse(None, rpc.PARSE_ERROR, "not JSON", {"line": 3}),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: type(m).__name__)
def test_round_trip(message: rpc.Message) -> None:
    """Each kind of message is one line of JSON with the version, and reads back equal."""
    line = rpc.encode(message)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line)["jsonrpc"] == "2.0"
    assert rpc.decode(line) == message


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8,
)  # fmt: skip


@settings(derandomize=True, deadline=None)
@given(st.dictionaries(st.text(), JSON_VALUES), st.integers() | st.text(), st.data())
def test_stream_in_any_pieces(
    params: dict[str, object], number: int | str, data: st.DataObject
) -> None:
    """However the bytes are cut, the same messages come out, line breaks in texts included."""
    sent: list[rpc.Message] = [
        Request(number, "m", params),
        Notification("n", params),
        Response(number, params),
    ]
    stream = b"".join(map(rpc.encode, sent))
    cut = data.draw(st.integers(0, len(stream)))
    decoder = Decoder()
    assert [*decoder.feed(stream[:cut]), *decoder.feed(stream[cut:])] == sent
    assert decoder.pending == 0


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"{", rpc.PARSE_ERROR, None),
        (b"\xff\xfe", rpc.PARSE_ERROR, None),
        (b"[" * 100_000, rpc.PARSE_ERROR, None),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"x": NaN}}',
            rpc.PARSE_ERROR,
            None,
        ),
        (b"[]", rpc.INVALID_REQUEST, None),
        (b"3", rpc.INVALID_REQUEST, None),
        (b'{"id": 4, "method": "m"}', rpc.INVALID_REQUEST, 4),
        (b'{"jsonrpc": "1.0", "id": 4, "method": "m"}', rpc.INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "id": 4, "method": 5}', rpc.INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "id": 4, "method": "m", "params": [1]}', rpc.INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "id": null, "method": "m"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": true, "method": "m"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "m"}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": 4}', rpc.INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "id": 4, "result": 1, "error": {}}', rpc.INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "result": 1}', rpc.INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": 4, "error": "no"}', rpc.INVALID_REQUEST, 4),
        (b'{"jsonrpc": "2.0", "id": 4, "error": {"code": "1"}}', rpc.INVALID_REQUEST, 4),
    ],
)
def test_what_is_no_message(line: bytes, code: int, request_id: int | None) -> None:
    """The error has the code of the specification, and the request's id where it could be read."""
    with pytest.raises(RpcError) as caught:
        rpc.decode(line)
    assert (caught.value.code, caught.value.request_id) == (code, request_id)
    assert rpc.decode(rpc.encode(caught.value.response())) == caught.value.response()


def test_a_bad_line_does_not_hide_the_next() -> None:
    """The reader gets the error in its place, and goes on."""
    good = rpc.encode(Request(2, "m"))
    first, second = Decoder().feed(b"nonsense\n\n  \n" + good)
    assert isinstance(first, RpcError)
    assert second == Request(2, "m")


@pytest.mark.parametrize("stream", [b"x" * 11, b"x" * 11 + b"\n", b'""\n' + b"x" * 11])
def test_line_without_end_is_refused(stream: bytes) -> None:
    """A line beyond the limit is an error before it fills the memory, ended or not."""
    with pytest.raises(RpcError, match="more than 10 bytes"):
        list(Decoder(max_line_bytes=10).feed(stream))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1}, object()])
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    """Nothing is sent that the other side cannot read."""
    with pytest.raises(ValueError, match=r"JSON"):
        rpc.encode(Response(1, value))


def test_error_answers_a_known_request() -> None:
    """An error without an id of its own takes that of the request that it answers."""
    error = RpcError(rpc.METHOD_NOT_FOUND, "no method x", data=["y"])
    assert error.response(7) == ErrorResponse(7, rpc.METHOD_NOT_FOUND, "no method x", ["y"])
