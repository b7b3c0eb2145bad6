"""A fabric that stands for people: ping, iperf3, tcpdump by hand, with all queues and rules in."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from emulator import calibration, doctor, naming
from emulator.fabric import LiveFabric
from emulator.node_commands import NodeCommand, with_addresses
from emulator.ownership import Ledger
from emulator.plan import make_plan
from emulator.run.alone import alone
from emulator.run.building import fabric_settings
from emulator.run.ending import orderly, standing
from emulator.spec.model import Experiment
from topologies.addressing import host_ip
from topologies.model import Fabric
from topologies.units import format_rate


@contextmanager
def raised(
    experiment: Experiment, note: Callable[[str], None], alongside: bool = False
) -> Iterator[LiveFabric]:
    """The fabric of an experiment, at the dilation that a run of it would have.

    Args:
        experiment: whose fabric, marking, scheduling and routing.
        note: told what is going on.
        alongside: start although something else is under way.

    Raises:
        MachineError: the machine lacks something, or something else is under way.
    """
    doctor.require()
    with alone("topo", alongside), orderly():
        plan = make_plan(experiment, calibration.capacity_pps(note))
        settings = fabric_settings(plan, doctor.datapath())
        note(scale_note(experiment.fabric, settings.dilation))
        ledger = Ledger(naming.new_run_id(), what="topo")
        with standing(LiveFabric(settings, ledger, note)) as live:
            yield live


def scale_note(fabric: Fabric, dilation: float) -> str:
    """What a person must know who looks at a slowed-down fabric by hand."""
    fastest = max(link.rate_bps for link in fabric.links)
    return (
        f"dilation {dilation:g}: a link of {format_rate(fastest)} carries "
        f"{format_rate(round(fastest / dilation))} here. Link delays are made by the traffic "
        "engine of runs; ping shows what the emulation itself takes"
    )


def addresses(fabric: Fabric) -> dict[str, str]:
    """Host -> its address in its first plane."""
    found: dict[str, str] = {}
    for host, plane in fabric.attachment:
        found.setdefault(host, host_ip(fabric, host, plane))
    return found


def execute(
    live: LiveFabric, commands: Sequence[NodeCommand], note: Callable[[str], None]
) -> list[str]:
    """Runs commands one after the other; their output goes where ours goes.

    Returns:
        A sentence for each that failed.
    """
    known, failures = addresses(live.fabric), []
    for command in commands:
        note(str(command))
        words = ["bash", "-c", with_addresses(command.line, known.get)]
        node = live.net[command.node]
        code = node.popen(words, stdin=subprocess.DEVNULL, stdout=None, stderr=None).wait()
        if code:
            failures.append(f"{command}: exit code {code}")
    return failures


def prompt(live: LiveFabric) -> None:
    """Mininet's command line, until the user leaves it."""
    from emulator.mininet_cli import FabricCli  # noqa: PLC0415 - Mininet is a system package

    FabricCli(live.net, addresses(live.fabric))
