"""JSON-RPC 2.0, one object per line: the pure codec of the channel to the agent.

Both ends use it: `controller.agent_client` here, the agent's server on the other side. Messages
are frozen dataclasses; `encode` makes a line of one, a `Decoder` makes messages of the bytes that
arrive. Batches (arrays) are not used on this channel: requests may follow each other without
waiting instead. Rules and error codes: https://www.jsonrpc.org/specification.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

VERSION = "2.0"
MAX_LINE_BYTES = 16 * 1024 * 1024
"""A line that is longer is an error rather than a reason to run out of memory."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_ERROR = -32000
"""A method that is known and was called well, but could not be carried out."""

Id = int | str
Params = Mapping[str, object]


@dataclass(frozen=True)
class Request:
    """A call that is answered."""

    id: Id
    method: str
    params: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Notification:
    """A call that is not answered."""

    method: str
    params: Params = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """The result of a request."""

    id: Id
    result: object


@dataclass(frozen=True)
class ErrorResponse:
    """The error of a request; its id is None when the request could not be read."""

    id: Id | None
    code: int
    message: str
    data: object = None


Message = Request | Notification | Response | ErrorResponse


class RpcError(Exception):
    """What arrived is not a message, or a method refuses; carries the error to answer with.

    Args:
        code: one of the codes above.
        message: one sentence.
        request_id: id of the request, where it could be read.
        data: more about it; anything that JSON can hold.
    """

    def __init__(
        self, code: int, message: str, request_id: Id | None = None, data: object = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data
        self.request_id = request_id

    def response(self, request_id: Id | None = None) -> ErrorResponse:
        """The answer that reports it, to the request with this id."""
        answered = self.request_id if request_id is None else request_id
        return ErrorResponse(answered, self.code, self.message, self.data)


def encode(message: Message) -> bytes:
    """The message as one line; ValueError for what JSON has no words for (NaN, sets, ...)."""
    try:
        text = json.dumps(_to_json(message), separators=(",", ":"), allow_nan=False)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return text.encode() + b"\n"


def _to_json(message: Message) -> dict[str, object]:
    match message:
        case Request(number, method, params):
            body: dict[str, object] = {"id": number, "method": method, "params": dict(params)}
        case Notification(method, params):
            body = {"method": method, "params": dict(params)}
        case Response(number, result):
            body = {"id": number, "result": result}
        case ErrorResponse(failed, code, text, data):
            error = {"code": code, "message": text}
            body = {"id": failed, "error": error if data is None else error | {"data": data}}
    return {"jsonrpc": VERSION, **body}


def decode(line: bytes) -> Message:
    """The message on a line.

    Raises:
        RpcError: it is not JSON (PARSE_ERROR) or not a message (INVALID_REQUEST).
    """
    try:
        raw = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RpcError(PARSE_ERROR, f"not JSON: {error}") from None
    if not isinstance(raw, dict):
        raise RpcError(INVALID_REQUEST, "not a JSON object")
    request_id = _read_id(raw)
    if raw.get("jsonrpc") != VERSION:
        raise RpcError(INVALID_REQUEST, 'no "jsonrpc": "2.0"', request_id)
    if "method" in raw:
        return _read_call(raw, request_id)
    return _read_answer(raw, request_id)


def _refuse_constant(name: str) -> NoReturn:
    """NaN and the infinities are not JSON, although Python reads them."""
    raise ValueError(f"{name} is no number in JSON")


def _read_id(raw: Mapping[str, object]) -> Id | None:
    found = raw.get("id")
    if found is None or (isinstance(found, int | str) and not isinstance(found, bool)):
        return found
    raise RpcError(INVALID_REQUEST, "id is neither text nor a whole number")


def _read_call(raw: Mapping[str, object], request_id: Id | None) -> Request | Notification:
    method, params = raw["method"], raw.get("params", {})
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method is not text", request_id)
    if not isinstance(params, dict):
        raise RpcError(INVALID_REQUEST, "params is not an object with names", request_id)
    if "id" not in raw:
        return Notification(method, params)
    if request_id is None:
        raise RpcError(INVALID_REQUEST, "id is null")
    return Request(request_id, method, params)


def _read_answer(raw: Mapping[str, object], request_id: Id | None) -> Response | ErrorResponse:
    if ("result" in raw) == ("error" in raw):
        raise RpcError(INVALID_REQUEST, "neither a call nor an answer", request_id)
    if "result" in raw:
        if request_id is None:
            raise RpcError(INVALID_REQUEST, "a result without an id")
        return Response(request_id, raw["result"])
    error = raw["error"]
    if not isinstance(error, dict):
        raise RpcError(INVALID_REQUEST, "error is not an object", request_id)
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, int) or not isinstance(message, str):
        raise RpcError(INVALID_REQUEST, "error has no code or no message", request_id)
    return ErrorResponse(request_id, code, message, error.get("data"))


class Decoder:
    """Cuts a stream of bytes into messages."""

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Message | RpcError]:
        """The messages that are complete now; blank lines count for nothing.

        A line that is no message gives the `RpcError` to answer with, and the ones after it are
        still read.

        Raises:
            RpcError: a line is too long; what follows cannot be understood.
        """
        self._rest += data
        *lines, rest = self._rest.split(b"\n")
        self._rest = rest
        if max(map(len, (*lines, rest))) > self._max:
            raise RpcError(PARSE_ERROR, f"a line of more than {self._max} bytes")
        for line in lines:
            if line.strip():
                yield _decode_or_error(bytes(line))

    @property
    def pending(self) -> int:
        """Bytes of a line that has not ended yet."""
        return len(self._rest)


def _decode_or_error(line: bytes) -> Message | RpcError:
    try:
        return decode(line)
    except RpcError as error:
        return error
