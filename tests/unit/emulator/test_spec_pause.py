"""The section ``pfc``: what it means, what it adds up to, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.spec import to_yaml
from emulator.spec.dump import to_document
from tests.unit.emulator.spec_samples import FABRIC, experiment, from_text
from topologies.errors import SpecError
from topologies.pause import headroom_bytes, settled
from topologies.settings import PauseWatchdog, PfcRule

STANDARD = PauseWatchdog(200_000_000, 200_000_000, "drop")


def rules(**section: Any) -> tuple[PfcRule, ...]:
    """The rules that a ``pfc:`` mapping gives."""
    return experiment(pfc=section).pfc


def error(overrides: dict[str, str] | None = None, **keys: Any) -> str:
    """The message that an experiment is refused with."""
    with pytest.raises(SpecError) as caught:
        experiment(overrides, **keys)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_line_of_the_design() -> None:
    """One lossless class with a dynamic threshold of an eighth; the rest is automatic."""
    assert rules(classes=[3], alpha="1/8", headroom="auto") == (
        PfcRule(3, 1 / 8, watchdog=STANDARD),
    )


def test_an_empty_section_makes_the_workloads_classes_lossless() -> None:
    """All that is sent may be paused, with the defaults."""
    assert rules() == (PfcRule(3, watchdog=STANDARD),)


@pytest.mark.parametrize("written", ["none", "[]", ""])
def test_nothing_is_lossless_without_the_section(written: str) -> None:
    """Absent, none and an empty list are the same."""
    assert experiment({"pfc": written}).pfc == experiment().pfc == ()


def test_all_keys() -> None:
    """Every value ends up in the rule of every class."""
    found = rules(
        classes=[3, 4], xoff="200 KB", xon_offset="20 KB", headroom="50 KB", response="3 us",
        ports="leaf1", control="follow",
        watchdog={"detect": "1 ms", "restore": "2 ms", "action": "forward"},
    )  # fmt: skip
    watchdog = PauseWatchdog(1_000_000, 2_000_000, "forward")
    assert found == tuple(
        PfcRule(tc, None, 200_000, 20_000, 50_000, 3_000, watchdog, "leaf1", "follow")
        for tc in (3, 4)
    )


def test_xon_itself_may_be_given() -> None:
    """With a static XOFF, xon says where sending is resumed."""
    (rule,) = rules(xoff="200 KB", xon="180 KB")
    assert rule.xon_offset_bytes == 20_000


def test_the_watchdog_can_be_switched_off_or_changed_in_part() -> None:
    """none means none; keys that are not given keep their defaults."""
    assert rules(watchdog="none")[0].watchdog is None
    assert rules(watchdog={"detect": "1 ms"})[0].watchdog == PauseWatchdog(1_000_000, 200_000_000)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"xoff": "200 KB", "xon": "201 KB"}, "pfc.xon: '201 KB' is above xoff, 200 KB: nothing "
         "would ever be resumed; write xon <= xoff"),
        ({"xoff": "200 KB", "xon_offset": "201 KB"}, "pfc.xon_offset: '201 KB' is above xoff"),
        ({"xon": "20 KB"}, "pfc.xon: '20 KB' needs a static xoff"),
        ({"xoff": "200 KB", "xon": "1 KB", "xon_offset": "1 KB"}, "excludes xon_offset"),
        ({"xoff": "200 KB", "alpha": 1}, "pfc.xoff: '200 KB' excludes alpha"),
        ({"alpha": "none"}, "pfc.alpha: None is none, and there is no xoff either"),
        ({"alpha": 0}, "pfc.alpha: 0 must be above 0"),
        ({"alpha": "1/1000"}, "must be at least 1/256"),
        ({"classes": [8]}, "pfc.classes[0]: 8 must be at most 7"),
        ({"classes": [3, 3]}, "pfc.classes[1]: 3 stands twice"),
        ({"classes": []}, "must have at least 1 entries"),
        ({"ports": "all"}, "names h1-eth1, a host's port"),
        ({"ports": "leaf9"}, "'leaf9' is not a known port"),
        ({"headroom": 0}, "must be above 0"),
        ({"headroom": "none"}, "is not a size"),
        ({"response": "soon"}, "is not a duration"),
        ({"watchdog": {"detect": 0}}, "pfc.watchdog.detect: 0 must be above 0"),
        ({"watchdog": {"action": "alert"}}, "'alert' is not a known watchdog action"),
        ({"watchdog": {"detekt": "1 ms"}}, "did you mean 'detect'?"),
        ({"watchdog": True}, "pfc.watchdog: True must be a mapping"),
        ({"control": "me"}, "'me' is not a known who pauses; known: follow, switch"),
        ({"kmin": "1 KB"}, "pfc.kmin: 'kmin' is not a known key"),
        ({"xoff": "17 MB"}, "is more than the 15.77 MB that leaf1 shares"),
        ({"headroom": "4 MB"}, "pfc.headroom: '4 MB' reserves 16 MB for all ports and classes of "
         "leaf1, which has 16 MB of buffer; raise fabric.buffer, lower the headroom, or name "
         "fewer classes"),
    ],
)  # fmt: skip
def test_pfc_refuses(section: dict[str, Any], message: str) -> None:
    """Each impossible setting is an error that names the key and the rule."""
    assert message in error(pfc=section)


def test_the_automatic_headroom_counts_too() -> None:
    """A buffer that is smaller than what the cables and peers need is refused."""
    message = error({"fabric.buffer": "238 KB"}, pfc={})
    assert "pfc.headroom: 'auto' reserves 234.9 KB for all ports and classes of leaf1" in message


def test_headroom_of_all_entries_adds_up() -> None:
    """Two entries of which each alone would fit do not fit together; the second is to blame."""
    entries = [{"classes": [3], "headroom": "3 MB"}, {"classes": [4], "headroom": "2 MB"}]
    assert "pfc[1].headroom: '2 MB' reserves 20 MB" in error(pfc=entries)


def test_headroom_of_a_later_entry_replaces_that_of_an_earlier() -> None:
    """Only the entry that counts for a port and class is reserved."""
    entries = [{"classes": [3], "headroom": "3 MB"}, {"classes": [3], "headroom": "2 MB"}]
    x = experiment(pfc=entries)
    found = settled(x.pfc, x.fabric)
    assert {rule.headroom_bytes for found in found.values() for rule in found.values()} == {
        2_000_000
    }


def test_the_switchs_latency_is_part_of_the_headroom() -> None:
    """What is in the pipeline has not been counted when the pause is decided."""
    x = experiment(pfc={}, switch={"latency": "2 us"})
    rule = settled(x.pfc, x.fabric, x.switch.latency_ns)[2][3]
    bare = headroom_bytes(x.fabric.links[0], x.fabric.mtu_bytes, rule.response_ns or 0)
    assert rule.headroom_bytes == bare + 25_000


def test_a_layer_chooses_between_static_and_dynamic() -> None:
    """--set xoff takes the place of the file's alpha, and the other way round."""
    (static,) = experiment({"pfc.xoff": "100 KB"}, pfc={"alpha": "1/4"}).pfc
    assert (static.alpha, static.xoff_bytes) == (None, 100_000)
    (offset,) = experiment({"pfc.xon_offset": "5 KB"}, pfc={"xoff": "100 KB", "xon": "90 KB"}).pfc
    assert offset.xon_offset_bytes == 5_000
    (dynamic,) = experiment({"pfc.alpha": "1/4"}, pfc={"xoff": "100 KB"}).pfc
    assert (dynamic.alpha, dynamic.xoff_bytes) == (0.25, None)


def test_any_section_survives_the_round_trip() -> None:
    """The resolved file gives equal rules, automatic values included."""
    entries = [
        {"classes": [3, 4]},
        {"classes": [4], "xoff": "100 KB", "xon": "90 KB", "ports": "leaf*-eth1",
         "watchdog": "none", "response": "1 us"},
        {"classes": [5], "alpha": 2, "headroom": "60 KB", "xon_offset": 0},
    ]  # fmt: skip
    x = experiment(pfc=entries, fabric={**FABRIC, "buffer": "32 MB"})
    assert from_text(to_yaml(x)) == x
    assert to_document(x)["pfc"][0]["headroom"] == "auto"
