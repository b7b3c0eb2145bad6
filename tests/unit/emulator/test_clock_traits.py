"""What differs between the two clocks."""

from __future__ import annotations

import pytest

from emulator.clock import traits
from emulator.clock.traits import LIVE, VIRTUAL, ClockTraits, traits_of
from traffic.wire import wire_bytes

BOTH = [LIVE, VIRTUAL]


def test_clocks_are_known_by_name() -> None:
    """All that an experiment may name, and no others."""
    assert [traits_of(name) for name in traits.CLOCKS] == BOTH
    assert [one.name for one in BOTH] == list(traits.CLOCKS)
    with pytest.raises(KeyError):
        traits_of("lunar")


@pytest.mark.parametrize("one", BOTH, ids=lambda one: one.name)
def test_the_figures_fit_together(one: ClockTraits) -> None:
    """Bounds in their order; nothing is looked after more rarely than patience allows."""
    assert 0 < one.least_tick_ns <= one.most_tick_ns
    assert one.ticks_per_round_trip > 1
    assert one.most_tick_ns < one.lead_ns
    assert one.quiet_ns > one.most_tick_ns
    assert one.drain_ns > 10 * one.quiet_ns
    assert 0 < one.rest_ns <= one.look_ns
    assert one.least_sample_ns >= one.rest_ns


def test_only_the_live_clock_competes_for_processors() -> None:
    """It needs priority, and measures whether the machine kept up."""
    assert (LIVE.real_time, VIRTUAL.real_time) == (True, False)


def test_the_live_clock_forgives_what_a_machine_is_late() -> None:
    """Its shapers may catch up as much as timers are late; a virtual timer is never late."""
    assert VIRTUAL.burst_ns < LIVE.burst_ns / 1000


def test_a_virtual_shaper_saves_up_for_less_than_a_full_frame() -> None:
    """At 400 Gbit/s too, so that no two frames leave at once."""
    assert VIRTUAL.burst_ns < wire_bytes(4096) * 8e9 / 400e9


def test_links_delay_packets_where_the_kernel_can() -> None:
    """On the live clock the receiving NIC does; the guest's kernel has all that it takes."""
    assert (LIVE.delays_in_path, VIRTUAL.delays_in_path) == (False, True)
    assert (LIVE.datapath, VIRTUAL.datapath) == (None, "system")


def test_what_is_written_under_the_virtual_clock_does_not_depend_on_wall_time() -> None:
    """Rows are flushed by model time, so that two runs write alike."""
    assert VIRTUAL.flush_ns is None
    assert LIVE.flush_ns is not None
