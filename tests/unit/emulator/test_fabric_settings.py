"""What a fabric is set up with."""

from __future__ import annotations

import pytest

from emulator.fabric import FabricSettings
from emulator.kernel.queues import BURST_NS
from tests.fakes.fabrics import leaf_spine
from topologies.errors import MachineError

FABRIC = leaf_spine(2, 1, 1)
RATES = [link.rate_bps for link in FABRIC.links]


def test_by_default_nothing_delays_packets_on_their_way() -> None:
    """As the live clock has it, with the burst that its timers need."""
    settings = FabricSettings(FABRIC, RATES, 7)
    assert not settings.delays_in_path
    assert settings.burst_ns == BURST_NS == 150_000


def test_links_delay_packets_with_the_kernel_datapath_only() -> None:
    """The userspace datapath takes packets before they could be held, so it is refused."""
    FabricSettings(FABRIC, RATES, 7, datapath="system", delays_in_path=True)
    with pytest.raises(MachineError, match="netdev datapath"):
        FabricSettings(FABRIC, RATES, 7, datapath="netdev", delays_in_path=True)
