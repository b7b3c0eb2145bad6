"""A program: stock Mininet builds a fabric and takes it away, and says how long that took.

``python -m emulator.bench.stock_mininet FABRIC.json REPORT.json``, inside a network namespace and
a process namespace of the bench's own, with ``OVS_RUNDIR`` naming a private Open vSwitch, so that
nothing of the system is touched. Mininet's own initialisation is left out: it only raises limits
of the whole machine (``fixLimits``), and the namespaces of hosts do not need it.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path

from mininet.net import Mininet
from mininet.node import OVSSwitch

from topologies.files import fabric_from_dict
from topologies.mn import FabricTopo

MBPS = 100.0
"""Rate of every link, Mbit/s; TCLink shapes up to 1000."""


def main(arguments: list[str]) -> int:
    """Build, take away, write {"ready_s", "gone_s"}."""
    fabric_file, report = (Path(argument) for argument in arguments)
    fabric = fabric_from_dict(json.loads(fabric_file.read_text()))
    Mininet.inited = True
    switch = partial(OVSSwitch, datapath="user", protocols="OpenFlow13", failMode="secure")
    begin = time.monotonic()
    topo = FabricTopo(fabric, host_mbps=MBPS, fabric_mbps=MBPS)
    net = Mininet(topo=topo, switch=switch, controller=None)
    net.start()
    ready = time.monotonic()
    net.stop()
    gone = time.monotonic()
    report.write_text(json.dumps({"ready_s": ready - begin, "gone_s": gone - ready}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
