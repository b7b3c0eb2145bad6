"""The measurement of the virtual clock, as far as it needs no guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.bench import registry, virtual
from emulator.bench.setting import Setting
from emulator.clock.virtual import kernel
from emulator.scale import tasks_of
from traffic.tasks import Flow


@pytest.mark.parametrize("hosts", virtual.SHAPES)
def test_every_fabric_carries_about_as_many_packets_over_three_switches(hosts: int) -> None:
    """All hosts send, each to one behind another leaf."""
    chosen = virtual.experiment(hosts)
    flows = [task for task in tasks_of(chosen, 1) if isinstance(task, Flow)]
    assert len({flow.src for flow in flows}) == len(chosen.fabric.hosts) == hosts
    leaf_of = {host: chosen.fabric.attachment[host, 1] for host in {flow.src for flow in flows}}
    assert all(leaf_of[flow.src] != leaf_of[flow.dst] for flow in flows)
    packets = sum(flow.size_bytes for flow in flows) / virtual.PAYLOAD_BYTES
    assert packets == pytest.approx(virtual.PACKETS, rel=0.01)


def test_rates_cost_and_starts_have_their_requirements() -> None:
    """What misses one is marked; the live clock is only there to compare with."""
    found = {row.what: row for row in virtual.rows(
        {8: 60_000, 16: 55_000, 64: 45_000}, {8: 3.0, 16: 30.0, 64: 6.0}, 20_000
    )}  # fmt: skip
    assert found["packets, 8 hosts"].met
    assert found["packets, 64 hosts"].met is False
    assert found["cost per packet, dearest to cheapest"].value == pytest.approx(4 / 3)
    assert found["cost per packet, dearest to cheapest"].met is False
    assert found["first packet, 16 hosts"].met is False
    assert found["first packet, 64 hosts"].met
    assert found["live clock, for comparison"].met is None


def test_a_run_that_is_not_valid_counts_for_nothing() -> None:
    """Its rate is 0, and no ratio hides that."""
    found = {row.what: row for row in virtual.rows({8: 60_000, 64: 0}, {16: 1, 64: 1}, None)}
    assert found["cost per packet, dearest to cheapest"].met is False
    assert "live clock, for comparison" not in found


def test_the_start_is_all_that_comes_before_the_traffic() -> None:
    """By the phases of wall.json, in their order."""
    wall = {"phases_s": {"boot": 0.5, "imports": 2, "traffic": 9.0, "end": 1.0}}
    assert virtual.start_s(wall) == 2.5


def test_without_a_kernel_nothing_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what to do."""
    monkeypatch.setattr(kernel, "find", lambda: None)
    (row,) = virtual.measure(Setting(tmp_path, "netdev", lambda _text: None))
    assert "kernel build" in row.remark
    assert virtual in registry.BENCHES
