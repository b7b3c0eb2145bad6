"""Experiment files that the tests of spec, scale, plan and commands share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from emulator.spec.load import assemble
from emulator.spec.model import Experiment
from emulator.spec.yamlfile import parse

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"

FABRIC: dict[str, Any] = {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2}
FLOW: dict[str, Any] = {
    "kind": "background",
    "name": "flow",
    "pattern": "pairs",
    "pairs": [["h1", "h3"]],
    "bytes": "1 MB",
    "class": 3,
}
DESIGN_EXAMPLE = """\
name: training-beside-inference
seed: 7
clock: live                 # live | virtual
dilation: auto
shrink: auto
fabric:
  kind: leaf-spine          # any registered builder
  leaves: 4
  spines: 2
  hosts_per_leaf: 4
  host_link:   {rate: 100 Gbit/s, delay: 500 ns}
  fabric_link: {rate: 100 Gbit/s, delay: 1 us, parallel: 1}
  buffer: 16 MB             # per switch, shared
  mtu: 4096 B
profile: roce-ecn           # each part can be overridden below
ecn:     {kmin: 400 KB, kmax: 1600 KB, pmax: 0.2}
routing: {policy: ecmp}
workloads:
  - {kind: training, name: job-a, ranks: 8, placement: strided, collective: all-reduce,
     algorithm: ring, bytes: 64 MiB, compute: 2 ms, iterations: 3}
  - {kind: inference, name: chat, clients: 4, servers: 4, trace: azure_conv.csv, requests: 20,
     model: llama-3-70b, slo: {ttft: 2 s, tpot: 200 ms}}
probes: {pairs: all-leaves, rate: 1000 /s, classes: [0, 3]}
"""


def from_text(
    text: str, overrides: Mapping[str, str] | None = None, path: Path | None = None
) -> Experiment:
    """The experiment of a YAML text, as if it stood in a file."""
    place = path or Path("exp.yaml")
    return assemble(parse(text, str(place)), place, overrides)


def experiment(overrides: Mapping[str, str] | None = None, **keys: Any) -> Experiment:
    """A small valid experiment with some keys replaced; None takes a key away."""
    document = {"name": "small", "fabric": FABRIC, "workloads": [FLOW], **keys}
    kept = {key: value for key, value in document.items() if value is not None}
    return from_text(yaml.safe_dump(kept), overrides)
