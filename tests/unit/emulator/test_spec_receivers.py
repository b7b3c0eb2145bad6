"""The section ``receivers``: hosts that are slower than their links."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.spec import to_yaml
from emulator.spec.receivers import ReceiverSpec
from tests.unit.emulator.spec_samples import experiment, from_text
from topologies.errors import SpecError
from topologies.pause import headroom_bytes

SLOW = {"hosts": ["h3"], "rate": "20 Gbit/s"}


def receivers(*entries: dict[str, Any]) -> tuple[ReceiverSpec, ...]:
    """What a ``receivers:`` list gives beside a lossless class."""
    return experiment(receivers=list(entries), pfc={}).receivers


def error(*entries: Any, **more: Any) -> str:
    """The message that a list is refused with."""
    with pytest.raises(SpecError) as caught:
        experiment(receivers=list(entries), **({"pfc": {}} | more))
    return str(caught.value)


def test_a_slow_host_and_its_defaults() -> None:
    """A buffer of 1 MB, from the beginning to the end."""
    assert receivers(SLOW) == (ReceiverSpec("h3", 20_000_000_000, 1_000_000, 0, None),)
    assert experiment().receivers == ()


def test_a_host_that_is_stuck_for_a_while() -> None:
    """It takes nothing; all hosts of an entry are alike."""
    entry = {"hosts": ["h3", "h4"], "rate": "stuck", "buffer": "2 MB", "start": "1 ms",
             "duration": "3 ms"}  # fmt: skip
    assert receivers(entry) == tuple(
        ReceiverSpec(host, 0, 2_000_000, 1_000_000, 3_000_000) for host in ("h3", "h4")
    )


def test_xoff_leaves_room_for_what_is_in_flight() -> None:
    """The buffer less the headroom of the host's link; XON lies two frames below."""
    x = experiment(receivers=[SLOW], pfc={})
    (spec,), link = x.receivers, x.fabric.links[2]
    room = headroom_bytes(link, x.fabric.mtu_bytes, 2_018)
    assert spec.xoff_bytes(link, x.fabric.mtu_bytes) == 1_000_000 - room
    assert spec.xon_bytes(link, x.fabric.mtu_bytes) == 1_000_000 - room - 2 * 4218


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rate": "1 Gbit/s"}, "'hosts' is missing"),
        ({"hosts": ["h3"]}, "'rate' is missing"),
        ({"hosts": [], "rate": "stuck"}, "must have at least 1 entries"),
        ({"hosts": ["h9"], "rate": "stuck"}, "receivers[0].hosts[0]: 'h9' is not a known host"),
        ({"hosts": ["leaf1"], "rate": "stuck"}, "'leaf1' is not a known host"),
        ({"hosts": ["h3"], "rate": "100 Gbit/s"}, "receivers[0].rate: '100 Gbit/s' is not slower "
         "than the link of h3, 100 Gbit/s"),
        ({"hosts": ["h3"], "rate": 0}, "must be above 0"),
        ({"hosts": ["h3"], "rate": "stuck", "buffer": "50 KB"}, "receivers[0].buffer: '50 KB' is "
         "too small for what comes after a pause of h3; write at least"),
        ({"hosts": ["h3"], "rate": "stuck", "duration": 0}, "must be above 0"),
        ({"hosts": ["h3"], "rate": "stuck", "speed": 1}, "'speed' is not a known key"),
    ],
)  # fmt: skip
def test_receivers_refuse(entry: dict[str, Any], message: str) -> None:
    """Each impossible entry is an error that names the key and the rule."""
    assert message in error(entry)


def test_a_host_stands_once() -> None:
    """Two entries for one host would contradict each other."""
    assert "receivers[1].hosts: 'h3' stands in two entries" in error(SLOW, SLOW)


def test_receivers_need_a_lossless_class() -> None:
    """They slow senders down by pausing, and what is not lossless cannot be paused."""
    assert "receivers: ['h3'] pause their leaves, but no class is lossless" in error(
        SLOW, pfc="none"
    )


def test_receivers_survive_the_round_trip() -> None:
    """The resolved file gives equal receivers."""
    entries = [SLOW, {"hosts": ["h4"], "rate": "stuck", "start": "1 ms", "duration": "3 ms"}]
    x = experiment(receivers=entries, pfc={})
    assert from_text(to_yaml(x)) == x
