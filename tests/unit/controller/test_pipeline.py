"""The pipeline refuses what it does not declare."""

from __future__ import annotations

import pytest

from controller.core import pipeline
from controller.core.messages import (
    ALL_TABLES,
    Barrier,
    Command,
    Field,
    FlowMod,
    Match,
    Message,
    Output,
)
from controller.core.pipeline import PIPELINE, Band, Pipeline, PipelineError, Table, check_match

LEAF = Match.of(eth_type=0x800, ipv4_dst=(0x0A010200, 0xFFFFFF00))
BUCKET = Match.of(eth_type=0x800, ip_proto=17, ipv4_dst=(0x0A010200, 0xFFFFFF00), udp_src=(1, 63))


def add(match: Match, band: Band, port: int = 1, table: int = 0) -> FlowMod:
    """An ADD in a band."""
    return FlowMod(Command.ADD, match, band.priority, (Output(port),), table=table)


@pytest.mark.parametrize(
    "message",
    [
        add(LEAF, pipeline.REMOTE_LEAF),
        add(BUCKET, pipeline.BUCKET),
        add(Match.of(eth_type=0x800, ipv4_dst=1), pipeline.OWN_HOST),
        FlowMod(Command.ADD, Match(), pipeline.MISS.priority),
        FlowMod(Command.DELETE, cookie=1, cookie_mask=1, table=ALL_TABLES),
        Barrier(1),
    ],
)
def test_accepts_what_is_declared(message: Message) -> None:
    """Rules of each band, deletes by cookie and barriers pass, a second time as well."""
    PIPELINE.check(message)
    PIPELINE.check(message)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (add(LEAF, pipeline.REMOTE_LEAF, table=1), "table 1 is not declared"),
        (FlowMod(Command.ADD, LEAF, 999), "no band"),
        (add(LEAF, pipeline.BUCKET), "not those of priority"),
        (add(Match(), pipeline.OWN_HOST), "not those of priority"),
        (add(Match.of(eth_type=(0x800, 0xFF00), ipv4_dst=1), pipeline.OWN_HOST), "not be masked"),
        (add(Match.of(eth_type=0x800, ipv4_dst=(1, 2)), pipeline.OWN_HOST), "outside of its mask"),
        (add(Match.of(eth_type=0x806, ipv4_dst=1), pipeline.OWN_HOST), "needs eth_type=0x800"),
        (add(LEAF, pipeline.REMOTE_LEAF, port=0), "port 0"),
        (add(LEAF, pipeline.REMOTE_LEAF, port=0xFFFFFFFB), "not a port of a switch"),
        (FlowMod(Command.DELETE, LEAF, table=3), "table 3"),
        (FlowMod(Command.DELETE_STRICT, LEAF, 999), "no band"),
    ],
)
def test_refuses_what_is_not_declared(message: Message, reason: str) -> None:
    """Unknown tables and priorities, other fields, masks and reserved ports are refused."""
    with pytest.raises(PipelineError, match=reason):
        PIPELINE.check(message)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ((Field("vlan_vid", 1, 1),), "not a field that we know"),
        ((Field("eth_type", 0x800, 0xFFFF), Field("eth_type", 0x806, 0xFFFF)), "twice"),
        ((Field("eth_type", 0, 0),), "empty or too wide"),
        ((Field("eth_type", 0, 0x1FFFF),), "empty or too wide"),
    ],
)
def test_refuses_impossible_matches(fields: tuple[Field, ...], reason: str) -> None:
    """What no switch can accept is refused in filters too."""
    with pytest.raises(PipelineError, match=reason):
        check_match(Match(fields))


def test_bands_of_a_table_differ_in_priority() -> None:
    """Two bands of one priority would leave open which rule wins."""
    band = Band("one", 5, frozenset({frozenset({"eth_type"})}))
    table = Table(0, "t", (band, Band("two", 5, band.fields)), frozenset())
    with pytest.raises(PipelineError, match="same priority"):
        Pipeline((table,))


def test_bands_are_ordered_from_special_to_general() -> None:
    """A host's own rule wins over a bucket's, a bucket's over its leaf's, any over a miss."""
    names = [band.name for band in sorted(pipeline.FORWARD.bands, key=lambda b: -b.priority)]
    assert names == ["own-host", "remote-host", "bucket", "remote-leaf", "miss"]
