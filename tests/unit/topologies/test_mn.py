"""The topology for stock Mininet, loaded as ``mn --custom`` does, without a network.

The first tests put a recording double in Mininet's place, so that they run anywhere; the last
one uses the real Mininet of the system's Python where there is one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILE = Path(__file__).parents[3] / "topologies" / "mn.py"
SYSTEM_PYTHON = "/usr/bin/python3"


class RecordingTopo:
    """Stands for ``mininet.topo.Topo``: keeps what is added."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.host: dict[str, dict[str, Any]] = {}
        self.switch: dict[str, dict[str, Any]] = {}
        self.link: dict[tuple[str, int], dict[str, Any]] = {}
        self.build(*args, **options)

    def build(self, *args: Any, **options: Any) -> None:
        """Overridden by each topology."""
        raise NotImplementedError

    def addHost(self, name: str, **options: Any) -> None:  # noqa: N802 - Mininet's name
        """Keep a host's options."""
        self.host[name] = options

    def addSwitch(self, name: str, **options: Any) -> None:  # noqa: N802 - Mininet's name
        """Keep a switch's options."""
        self.switch[name] = options

    def addLink(self, a: str, b: str, port1: int, port2: int, **options: Any) -> None:  # noqa: N802
        """Keep a link's options at both ends."""
        self.link[a, port1] = options | {"to": (b, port2)}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the file defines when it is executed as mn executes it."""
    topo, link = ModuleType("mininet.topo"), ModuleType("mininet.link")
    vars(topo)["Topo"], vars(link)["TCLink"] = RecordingTopo, object()
    for module in (ModuleType("mininet"), topo, link):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names: dict[str, Any] = {}
    exec(compile(FILE.read_text(), str(FILE), "exec"), names, names)  # noqa: S102 - as mn does
    return names


def test_leaf_spine_by_positional_parameters(loaded: dict[str, Any]) -> None:
    """``--topo leafspine,4,2,4`` has our names, addresses, port numbers and datapath ids."""
    topo = loaded["topos"]["leafspine"](4, 2, 4)
    assert len(topo.host) == 16
    assert topo.host["h5"] == {"ip": "10.1.2.1/8", "mac": "02:00:0a:01:02:01"}
    assert topo.switch["leaf4"] == {"dpid": "0000000000011004"}
    assert topo.switch["spine2"] == {"dpid": "0000000000012002"}
    assert topo.link["h5", 1] == {"to": ("leaf2", 1)}
    assert topo.link["leaf2", 6] == {"to": ("spine2", 2)}
    assert len(topo.link) == 16 + 8


def test_rates_are_shaped_only_on_request(loaded: dict[str, Any]) -> None:
    """Rates in Mbit/s make TCLinks of the links that they are for, and only of those."""
    topo = loaded["topos"]["leafspine"](2, 1, 1, parallel=2, fabric_mbps=40)
    assert "bw" not in topo.link["h1", 1]
    shaped = [topo.link["leaf1", port] for port in (2, 3)]
    assert [(entry["bw"], entry["cls"]) for entry in shaped] == [(40, loaded["TCLink"])] * 2


@pytest.mark.parametrize("mbps", [0, -1, 1001, 100_000])
def test_rates_that_stock_links_ignore_are_refused(loaded: dict[str, Any], mbps: int) -> None:
    """TCLink leaves links above 1000 Mbit/s unshaped without an error; here it is one."""
    with pytest.raises(loaded["SpecError"], match=r"host_mbps.*at most 1000"):
        loaded["LeafSpineTopo"](2, 1, 1, host_mbps=mbps)


def test_bad_parameters_are_named(loaded: dict[str, Any]) -> None:
    """A parameter out of range is the builder's error."""
    with pytest.raises(loaded["SpecError"], match=r"leafspine\.leaves: 0 must be at least 1"):
        loaded["topos"]["leafspine"](0, 2, 4)


def test_two_planes_address_both_interfaces(loaded: dict[str, Any]) -> None:
    """A host in two planes gets its second address on its second link, in a network of its own."""
    plane = {"leaves": 2, "spines": 1, "hosts_per_leaf": 1}
    fabric = loaded["build_fabric"]({"kind": "front-back", "front": plane, "back": plane})
    topo = loaded["FabricTopo"](fabric)
    assert topo.host["h2"]["ip"] == "10.1.2.1/16"
    second = topo.link["h2", 2]
    assert second["params1"] == {"ip": "10.2.2.1/16"}
    assert second["addr1"] == "02:00:0a:02:02:01"


SCRIPT = """
import json, sys
names = {}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names, names)
from mininet.util import buildTopo
topo = buildTopo(names["topos"], "leafspine,4,2,4,fabric_mbps=40")
ends = [(a, b, i["port1"], i["port2"], i.get("bw")) for a, b, i in topo.links(withInfo=True)]
print(json.dumps([topo.hosts(), topo.switches(), ends, topo.nodeInfo("h16")]))
"""


def has_mininet() -> bool:
    """Whether the system's Python has Mininet."""
    if not Path(SYSTEM_PYTHON).exists():
        return False
    probe = [SYSTEM_PYTHON, "-c", "import mininet.topo"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def test_with_the_real_mininet(tmp_path: Path) -> None:
    """Mininet's own parser and Topo accept the file from any working directory."""
    if not has_mininet():
        pytest.skip(f"{SYSTEM_PYTHON} has no Mininet")
    command = [SYSTEM_PYTHON, "-c", SCRIPT, str(FILE)]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    hosts, switches, links, h16 = json.loads(run.stdout)
    assert (len(hosts), len(links)) == (16, 24)
    assert switches == ["leaf1", "leaf2", "leaf3", "leaf4", "spine1", "spine2"]
    assert ["leaf3", "spine2", 6, 3, 40] in links
    assert ["h16", "leaf4", 1, 4, None] in links
    assert h16["ip"] == "10.1.4.4/8"
