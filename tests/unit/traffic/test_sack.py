"""Selective acknowledgements as numbers: every field comes back, and sits where the page says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic import headers, sack, wire
from traffic.icrc import icrc_of

TO = wire.FlowAddress(
    "02:00:00:00:00:02", "02:00:00:00:00:01", "10.1.2.2", "10.1.1.1", 77, 0x105, dscp=48
)
LONG = st.integers(0, sack.MASK)


def answers() -> st.SearchStrategy[sack.Answer]:
    """Any answer whose fields are within their limits."""
    first = st.integers(-sack.FIRST_LIMIT, sack.FIRST_LIMIT - 1)
    kept = st.integers(-sack.KEPT_LIMIT - 1, sack.KEPT_LIMIT)
    newest = st.integers(0, 63) | st.just(sack.NOBODY)
    return st.builds(
        sack.Answer, first, newest, kept, LONG, LONG, st.integers(0, 255), st.integers(0, 0xFFFFFF)
    )


@given(answers())
def test_every_field_comes_back(answer: sack.Answer) -> None:
    """From the number that it was packed into, which has 192 bits."""
    number = sack.pack(answer)
    assert 0 <= number < 1 << 192
    assert sack.unpack(number) == answer


@pytest.mark.parametrize("kept", [-5_000, 5_000])
def test_a_time_beyond_the_limits_is_cut(kept: int) -> None:
    """Rather than that it changes another field."""
    answer = sack.Answer(0, 3, kept, 1, 2, 0, 4)
    limit = sack.KEPT_LIMIT if kept > 0 else -sack.KEPT_LIMIT - 1
    assert sack.unpack(sack.pack(answer)) == answer._replace(kept=limit)


def test_credits_are_counted_modulo_2_to_the_24() -> None:
    """As sequence numbers are."""
    assert sack.unpack(sack.pack(sack.Answer(0, 0, 0, 0, 0, 0, (1 << 24) + 5))).credits == 5


@given(answers(), st.integers(0, 0xFFFFFF))
def test_the_frame_has_the_fields_where_the_page_says(answer: sack.Answer, psn: int) -> None:
    """RoCEv2's acknowledgement, then a word, two bitmaps and the ICRC; 82 bytes."""
    frame = headers.sack_frame(TO, psn, sack.pack(answer))
    assert len(frame) == wire.SACK_FRAME_BYTES == 82
    plain = headers.ack_frame(TO, psn, answer.credits)
    assert frame[wire.AT_BTH : wire.AT_SYNDROME] == plain[wire.AT_BTH : wire.AT_SYNDROME]
    assert frame[wire.AT_SYNDROME] == answer.syndrome
    assert int.from_bytes(frame[wire.AT_MSN : wire.AT_SACK], "big") == answer.credits
    word = int.from_bytes(frame[58:62], "big")
    assert word >> 18 == answer.first & 0x3FFF
    assert word >> 11 & 127 == answer.newest
    assert word & 0x7FF == answer.kept & 0x7FF
    assert int.from_bytes(frame[62:70], "big") == answer.received
    assert int.from_bytes(frame[70:78], "big") == answer.marked
    assert int.from_bytes(frame[-4:], "little") == icrc_of(frame[:-4])
