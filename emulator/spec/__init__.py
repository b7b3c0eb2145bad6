"""PURE: from an experiment file to frozen dataclasses, and back.

load.py      the way of a file: read, merge, build, check       yamlfile.py  strict YAML
merge.py     defaults < profile < file < --set, with origins    profiles.py  named settings
keys.py      every key: default, form, meaning                  model.py     the result
ports.py     ecn, scheduler, buffers, pcap                      network.py   routing, transport,
checks.py    rules over several sections                                     switch, probes
dump.py      back to a file
"""

from __future__ import annotations

from emulator.spec.dump import to_yaml
from emulator.spec.load import load
from emulator.spec.model import (
    Experiment,
    ProbeSpec,
    RoutingSpec,
    SwitchSpec,
    TransportSpec,
)

__all__ = [
    "Experiment",
    "ProbeSpec",
    "RoutingSpec",
    "SwitchSpec",
    "TransportSpec",
    "load",
    "to_yaml",
]
