"""The load of the measurements that need traffic: two hosts send to two others, three switches.

The senders' links are the slowest ones, so only the senders' NICs shape and no queue builds up
behind them: a kernel timer for each packet and queue would take half of the switches' time. What
is measured is the emulation itself: engine, switches, packets in the kernel. There is one spine,
so paths cannot collide. Links of 10 us (2 km of fibre) keep the round trip long against what the
switches add to it.
"""

from __future__ import annotations

from pathlib import Path

from emulator.spec.load import assemble
from emulator.spec.model import Experiment
from emulator.spec.yamlfile import Document

HOSTS = 2
SWITCHES = 3
PAYLOAD_BYTES = 4096
OFFERED_PPS = 21_500.0
"""Data packets per second of wall time that the senders put out together."""
WALL_S = 6.0
_SENDER_BPS, _OTHER_BPS = 100_000_000_000, 400_000_000_000
_WIRE_BITS = 8 * 4178
_DELAY = "10 us"


def experiment(name: str, pps: float = OFFERED_PPS, wall_s: float = WALL_S) -> Experiment:
    """The load as an experiment.

    Args:
        name: of the experiment.
        pps: data packets per second of wall time; gives the dilation.
        wall_s: how long it lasts.
    """
    per_host = pps / HOSTS
    senders = [f"h{number}" for number in range(1, HOSTS + 1)]
    data = {
        "name": name,
        "seed": 1,
        "dilation": round(_SENDER_BPS / (per_host * _WIRE_BITS), 1),
        "shrink": 1,
        "fabric": {
            "kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": HOSTS,
            "host_link": {"rate": f"{_OTHER_BPS} bit/s", "delay": _DELAY},
            "fabric_link": {"rate": f"{HOSTS * _OTHER_BPS} bit/s", "delay": _DELAY},
            "links": [{"between": [host, "leaf1"], "rate": f"{_SENDER_BPS} bit/s"}
                      for host in senders],
        },
        "routing": {"policy": "static"},
        "transport": {"payload": f"{PAYLOAD_BYTES} B"},
        "workloads": [{
            "kind": "background", "name": "load", "pattern": "pairs", "class": 3,
            "bytes": f"{round(per_host * wall_s) * PAYLOAD_BYTES} B",
        }],
    }  # fmt: skip
    return assemble(Document(data, {}, name), Path(f"{name}.yaml"))
