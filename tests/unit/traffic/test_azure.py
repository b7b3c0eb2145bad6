"""Azure traces in their original form, and what is wrong with files that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from topologies.errors import SpecError
from traffic.traces.azure import Request, parse_timestamp, read_trace

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data"
ORIGINAL = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:15:46.6805900,374,44\r\n"
    "2023-11-16 18:15:50.9951690,396,109\r\n"
    "2023-11-16 18:15:51.2224670,879,55"
)


def write(folder: Path, text: str | bytes) -> Path:
    """A trace file with this content."""
    file = folder / "trace.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_original_form(tmp_path: Path) -> None:
    """CRLF, seven fractional digits, no newline at the end: all rows, exact to 100 ns."""
    rows = read_trace(write(tmp_path, ORIGINAL))
    assert [(row.context_tokens, row.generated_tokens) for row in rows] == [
        (374, 44), (396, 109), (879, 55)
    ]  # fmt: skip
    assert rows[1].arrival_ns - rows[0].arrival_ns == 4_314_579_000
    assert rows[0].arrival_ns % 10**9 == 680_590_000


@pytest.mark.parametrize(
    ("name", "count", "mean_context", "mean_generated"),
    [("conv", 19366, 1155, 211), ("code", 8819, 2048, 27.9)],
)
def test_public_files(name: str, count: int, mean_context: float, mean_generated: float) -> None:
    """The two public files byte for byte: number of rows and published means."""
    file = DATA / f"AzureLLMInferenceTrace_{name}.csv"
    if not file.exists():
        pytest.skip(f"{file.name} is not beside the project")
    rows = read_trace(file)
    assert len(rows) == count
    assert sum(r.context_tokens for r in rows) / count == pytest.approx(mean_context, abs=0.5)
    assert sum(r.generated_tokens for r in rows) / count == pytest.approx(mean_generated, abs=0.5)


def test_other_dialects(tmp_path: Path) -> None:
    """Offsets, LF, a byte order mark, another order of columns, empty lines, 0 tokens."""
    text = (
        "\ufeffTIMESTAMP,NumImages,GeneratedTokens,ContextTokens\n"
        "2024-05-10 00:00:00.009930+00:00,1,0,2162\n\n"
        "2024-05-10T02:00:01+02:00,0,7,0\n"
    )
    rows = read_trace(write(tmp_path, text))
    assert rows[0].context_tokens == 2162
    assert rows[0].generated_tokens == 0
    assert rows[1] == Request(rows[0].arrival_ns + 990_070_000, 0, 7)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1970-01-01 00:00:00", 0),
        ("1970-01-01 00:00:01.0000001", 1_000_000_100),
        ("1970-01-01T01:00:00.5+01:00", 500_000_000),
        ("1970-01-01 00:00:00Z", 0),
        ("1969-12-31 23:59:59.9999999", -100),
        (" 1970-01-01 00:00:00.123456789 ", 123_456_789),
        ("1969-12-31 19:00:00-0500", 0),
    ],
)
def test_timestamps(text: str, value: int) -> None:
    """Any number of digits up to nine, with and without an offset."""
    assert parse_timestamp(text) == value


@pytest.mark.parametrize("text", ["5", "2023-11-16", "2023-13-16 18:15:46", "16/11/2023 18:15:46"])
def test_wrong_timestamps(text: str) -> None:
    """Seconds, dates alone and other orders are refused with an example of the right form."""
    with pytest.raises(SpecError, match=r"is not a date and a time of day.*2023-11-16 18:15:46"):
        parse_timestamp(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"trace.csv: 'trace.csv' is empty"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "has a header but no rows"),
        ("timestamp,input_length\n1,2\n", r"trace.csv:1: .* column TIMESTAMP is missing"),
        (ORIGINAL + ",9", r"trace.csv:4: .* has 4 fields instead of 3"),
        (ORIGINAL + "x", r"trace.csv:4: '55x' is not a number of tokens \(GeneratedTokens\)"),
        (ORIGINAL.replace(",396", ",-396"), r"trace.csv:3: '-396' is not a number of tokens"),
        (ORIGINAL + "\r\nyesterday,1,1", r"trace.csv:5: 'yesterday' is not a date"),
        (ORIGINAL + "\r\n2023-11-16 18:15:46,1,1", r"trace.csv:5: .* is earlier than the row"),
        (b"\xff\xfe\x00", "is not a CSV text file"),
    ],
)
def test_wrong_files_are_refused_with_file_and_line(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    """Each error names the file, the line where there is one, and the value."""
    with pytest.raises(SpecError, match=message):
        read_trace(write(tmp_path, text))


def test_missing_file(tmp_path: Path) -> None:
    """A file that does not exist is an error that says so."""
    with pytest.raises(SpecError, match="cannot be read: No such file"):
        read_trace(tmp_path / "none.csv")
