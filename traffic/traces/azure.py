"""Azure LLM inference traces: CSV with TIMESTAMP, ContextTokens, GeneratedTokens.

The 2023 files (AzureLLMInferenceTrace_conv.csv, _code.csv; Azure Public Dataset, CC-BY 4.0) have
CRLF line ends, seven fractional digits and no newline at the end; the 2024 files add an offset
such as +00:00. Timestamps are read exactly: seven digits are 100 ns, which `datetime` would cut.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

from topologies.errors import SpecError

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?\s*(Z|[+-]\d{2}:?\d{2})?"
)
_FORMS = "write e.g. 2023-11-16 18:15:46.6805900"


@dataclass(frozen=True, slots=True)
class Request:
    """One row of a trace.

    Attributes:
        arrival_ns: when it arrived, ns since 1970-01-01 UTC (or since any other fixed time).
        context_tokens: length of the prompt, tokens; may be 0.
        generated_tokens: length of the answer, tokens; may be 0.
    """

    arrival_ns: int
    context_tokens: int
    generated_tokens: int


def read_trace(path: Path) -> list[Request]:
    """All rows of a trace, in the file's order.

    Raises:
        SpecError: no such file, not such a trace, or a wrong row; names file and line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _rows(path, csv.reader(file))
    except OSError as error:
        reason = error.strerror or str(error)
        raise SpecError(str(path), path.name, f"cannot be read: {reason}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise SpecError(str(path), path.name, f"is not a CSV text file: {error}") from None


def parse_timestamp(text: str, path: str = "TIMESTAMP") -> int:
    """ns since 1970-01-01 UTC; a timestamp without an offset is taken as UTC.

    Raises:
        SpecError: not an ISO 8601 date and time of day.
    """
    match = _STAMP.fullmatch(text.strip())
    if not match:
        raise SpecError(path, text, "is not a date and a time of day", _FORMS)
    date, clock, digits, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{date} {clock}").replace(tzinfo=_zone(offset))
    except ValueError as error:
        raise SpecError(path, text, f"is not a date and a time of day: {error}", _FORMS) from None
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    return seconds * 1_000_000_000 + int((digits or "0").ljust(9, "0"))


def _zone(offset: str | None) -> timezone:
    if offset is None or offset == "Z":
        return UTC
    minutes = int(offset[1:3]) * 60 + int(offset[-2:])
    return timezone(timedelta(minutes=-minutes if offset[0] == "-" else minutes))


def _rows(path: Path, lines: Iterator[list[str]]) -> list[Request]:
    header = next(lines, None)
    if header is None:
        raise SpecError(str(path), path.name, "is empty", f"its first line is {','.join(COLUMNS)}")
    columns = _columns(path, header)
    requests: list[Request] = []
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        request = _row(f"{path}:{number}", line, columns, len(header))
        if requests and request.arrival_ns < requests[-1].arrival_ns:
            rule = "is earlier than the row before it"
            raise SpecError(
                f"{path}:{number}", line[columns[0]], rule, "sort the file by TIMESTAMP"
            )
        requests.append(request)
    if not requests:
        raise SpecError(str(path), path.name, "has a header but no rows")
    return requests


def _columns(path: Path, header: Sequence[str]) -> list[int]:
    names = [name.strip() for name in header]
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        rule = f"is not the header of an Azure LLM trace: column {missing[0]} is missing"
        raise SpecError(f"{path}:1", ",".join(names), rule, f"expected {','.join(COLUMNS)}")
    return [names.index(name) for name in COLUMNS]


def _row(place: str, line: Sequence[str], columns: Sequence[int], width: int) -> Request:
    if len(line) != width:
        raise SpecError(place, ",".join(line), f"has {len(line)} fields instead of {width}")
    stamp, context, generated = (line[column] for column in columns)
    return Request(
        parse_timestamp(stamp, place),
        _tokens(place, COLUMNS[1], context),
        _tokens(place, COLUMNS[2], generated),
    )


def _tokens(place: str, column: str, text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        raise SpecError(place, text, f"is not a number of tokens ({column})")
    return int(digits)
