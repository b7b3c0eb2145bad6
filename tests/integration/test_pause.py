"""Pause on the fabric: incasts that lose nothing, classes that are not held up, real frames."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from controller.agent_client import AgentClient
from emulator.doctor import datapath
from emulator.naming import STATE_FOLDER
from emulator.results.reader import RunReader
from emulator.run import session
from emulator.run.progress import Progress
from emulator.run.supervising import Interrupt
from emulator.spec.load import assemble
from emulator.spec.yamlfile import Document
from tests.integration.harness import CAPACITY_PPS, Ran, leaf_spine, pairs, run

pytestmark = pytest.mark.root

SLOWED = 2000
FAN_IN = 8
SIZE = 500_000
RATE_BPS = 100_000_000_000
FRAME_OVER_PAYLOAD = 4178 / 4096
UNLIMITED = {"window": "unlimited"}


def fabric() -> dict[str, Any]:
    """Two leaves of four senders and one of receivers; uplinks never are the bottleneck."""
    return leaf_spine(3, 1, 4, buffer="2 MB", fabric_link={"rate": "400 Gbit/s", "delay": "1 us"})


def incast(results: Path, **more: Any) -> Ran:
    """Eight senders to one receiver at once, in class 3, with nothing that slows them down."""
    ends = [(f"h{n}", "h9") for n in range(1, FAN_IN + 1)]
    workloads = [pairs(*ends, size=f"{SIZE} B", name="in"), *more.pop("beside", [])]
    document = {"name": "incast", "fabric": fabric(), "workloads": workloads,
                "transport": UNLIMITED, "dilation": SLOWED, "shrink": 1, **more}  # fmt: skip
    return run(document, results)


def events(ran: Ran, *kinds: str) -> list[dict[str, Any]]:
    """Rows of events.csv of these kinds."""
    return [row for row in ran.reader.table("events").rows() if row["kind"] in kinds]


def test_a_lossless_incast_loses_nothing_and_ends_on_time(tmp_path: Path) -> None:
    """No drop, nothing sent twice, the last flow within 5 % of the time that the port needs."""
    ran = incast(tmp_path, pfc={"classes": [3]})
    summary = ran.summary
    assert summary["verdict"] == "VALID", summary["reasons"]
    assert summary["packets"]["dropped"] == summary["packets"]["retransmitted"] == 0
    bound_ns = FAN_IN * SIZE * FRAME_OVER_PAYLOAD * 8e9 / RATE_BPS
    last_ns = max(int(row["done_ns"]) for row in ran.reader.table("flows").rows())
    assert bound_ns < last_ns < 1.05 * bound_ns
    pfc = summary["pfc"]
    assert pfc["pauses"] == len(events(ran, "pause")) > 0
    assert pfc["watchdog_events"] == 0
    assert {row["tc"]: row["lossless"] for row in summary["classes"]} == {3: True, 6: False}


def test_pauses_come_after_the_modelled_reaction(tmp_path: Path) -> None:
    """Not before, and half of them within a tenth; who pauses whom is what the fabric says."""
    ran = incast(tmp_path, pfc={"classes": [3]})
    details = json.loads((ran.reader.path / "pfc.json").read_text())
    actual, modelled = details["reaction_us"]["p50"], details["modelled_us"]["p50"]
    assert modelled <= actual < 1.1 * modelled
    assert ran.summary["pfc"]["reaction_us"] == details["reaction_us"]
    pausing = {(row["detail"], row["port"]) for row in events(ran, "pause")}
    assert ("by leaf3-eth5", "spine1-eth3") in pausing
    assert {who for who, port in pausing if port.startswith("h")} <= {
        f"by leaf{leaf}-eth{port}" for leaf in (1, 2) for port in range(1, 5)
    }
    for row in details["ingress"]:
        assert row["peak_headroom_bytes"] <= row["headroom_bytes"]


def test_the_same_incast_without_pause_drops(tmp_path: Path) -> None:
    """What pause prevents."""
    ran = incast(tmp_path)
    assert ran.summary["packets"]["dropped"] > 0
    assert ran.summary["packets"]["retransmitted"] > 0
    assert ran.summary["pfc"]["pauses"] == 0
    assert not events(ran, "pause")


def test_other_classes_are_not_paused(tmp_path: Path) -> None:
    """A flow of another class from a paused host to another receiver gets what is left."""
    beside = pairs(("h1", "h10"), size="2 MB", name="free", **{"class": 0})
    ran = incast(tmp_path, pfc={"classes": [3]}, beside=[beside])
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert {row["tc"] for row in events(ran, "pause", "resume")} == {"3"}
    (row,) = [row for row in ran.reader.table("flows").rows() if row["job"] == "free"]
    rate_gbps = 2_000_000 * 8 / (int(row["done_ns"]) - int(row["ready_ns"]))
    left = (1 - 1 / FAN_IN) * 100 / FRAME_OVER_PAYLOAD
    assert rate_gbps > 0.9 * left
    assert ran.summary["packets"]["dropped"] == 0


def test_too_little_headroom_is_told_by_port_and_class(tmp_path: Path) -> None:
    """A lossless class that loses makes the run INVALID, and the ingress port is named."""
    ran = incast(tmp_path, pfc={"classes": [3], "headroom": "10 KB"})
    assert ran.summary["verdict"] == "INVALID"
    reasons = " ".join(ran.summary["reasons"])
    assert "lossless class 3 lost" in reasons
    assert "the headroom of class 3 at leaf" in reasons


def test_a_capture_has_real_pause_frames(tmp_path: Path) -> None:
    """tshark reads them as priority flow control of class 3, pause and resume, none malformed."""
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark")
    ran = incast(tmp_path, pfc={"classes": [3]}, pcap=["h1-eth1"])
    frames = pause_frames(ran.reader.path / "pcap" / "h1-eth1.pcap")
    mine = [row for row in events(ran, "pause", "resume") if row["port"] == "h1-eth1"]
    assert len(frames) == len(mine) > 0
    quanta = [int(frame["macc.cbfc.pause_time.c3"][0], 0) for frame in frames]
    assert set(quanta) == {0xFFFF, 0}
    assert quanta[0] == 0xFFFF
    for frame in frames:
        assert frame["eth.dst"] == ["01:80:c2:00:00:01"]
        assert "_ws.malformed" not in frame


def test_a_slow_receiver_slows_its_senders_down(tmp_path: Path) -> None:
    """It gets what it takes, nothing is lost, and its leaf is paused by it."""
    took, buffer_bytes = 25_000_000_000, 300_000
    slow = {"hosts": ["h9"], "rate": f"{took} bit/s", "buffer": f"{buffer_bytes} B"}
    ran = incast(tmp_path, pfc={"classes": [3]}, receivers=[slow])
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert ran.summary["packets"]["dropped"] == 0
    (last_ns,) = [max(int(row["done_ns"]) for row in ran.reader.table("flows").rows())]
    frames = FAN_IN * SIZE * (FRAME_OVER_PAYLOAD - 24 / 4096)
    bound_ns = (frames - buffer_bytes) * 8e9 / took
    assert bound_ns < last_ns < 1.1 * bound_ns
    assert ("by h9-eth1", "leaf3-eth1") in {
        (row["detail"], row["port"]) for row in events(ran, "pause")
    }


def test_a_watchdog_ends_a_storm(tmp_path: Path) -> None:
    """A stuck host's pause spreads to its senders; what it stops is dropped, and others go on."""
    stuck = {"hosts": ["h9"], "rate": "stuck", "buffer": "200 KB"}
    victim = pairs(("h1", "h10"), size="300 KB", name="victim")
    ran = incast(
        tmp_path, beside=[victim], receivers=[stuck], duration="1200 us",
        pfc=[{"classes": [3], "watchdog": "none"},
             {"classes": [3], "watchdog": {"detect": "200 us", "restore": "100 us"},
              "ports": "leaf3-eth1"}],
    )  # fmt: skip
    (storm,) = events(ran, "storm")
    assert (storm["port"], storm["detail"]) == ("leaf3-eth1", "watchdog drops")
    assert ran.summary["pfc"]["watchdog_events"] == 1
    paused = {row["port"] for row in events(ran, "pause") if int(row["time_ns"]) < 200_000}
    assert paused >= {"leaf3-eth1", "spine1-eth3", "leaf1-eth5", "h1-eth1"}
    (row,) = [row for row in ran.reader.table("flows").rows() if row["job"] == "victim"]
    assert int(row["done_ns"]) > int(storm["time_ns"])
    assert ran.summary["packets"]["dropped"] > 0
    assert ran.summary["verdict"] == "INVALID"
    assert ran.summary["fidelity"]["unaccounted_packets"] == 0


def test_the_controller_can_pause(tmp_path: Path) -> None:
    """Told of every crossing, it answers; the reaction that is reported includes its loop."""
    link = {"rate": "100 Gbit/s", "delay": "1 us"}
    one_leaf = {"kind": "leaf-spine", "leaves": 1, "spines": 0, "hosts_per_leaf": FAN_IN + 1,
                "host_link": link, "buffer": "16 MB"}  # fmt: skip
    ran = incast(
        tmp_path, fabric=one_leaf,
        pfc={"classes": [3], "control": "follow", "headroom": "900 KB", "xoff": "100 KB"},
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert ran.summary["packets"]["dropped"] == 0
    assert ran.summary["pfc"]["pauses"] > 0
    assert len(events(ran, "pause")) - len(events(ran, "resume")) <= FAN_IN
    switch = 1.007 + 2.018 + 1.5
    assert ran.summary["pfc"]["reaction_us"]["p50"] > switch


class Changing(Progress):
    """Changes pause and marking through the agent's socket when a part of the run is over.

    Attributes:
        before: what was held then.
    """

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.before: dict[str, Any] = {}

    def update(self, fraction: float, text: str) -> None:
        """Once, after 0.1 ms of target time."""
        passed = re.search(r"([0-9.]+) ms of target time", text)
        if self.before or not passed or float(passed[1]) < 0.1:
            return
        (path,) = STATE_FOLDER.glob("*/agent.sock")
        with AgentClient(path) as agent:
            self.before = dict(agent.call("read_pfc"))  # type: ignore[call-overload]
            ports = [row["port"] for row in self.before["ingress"]]
            agent.call_all(
                [("set_pfc", {"port": port, "tc": 3, "xoff_bytes": 50_000}) for port in ports]
                + [("set_ecn", {"port": port, "tc": 3, "kmin_bytes": 0, "kmax_bytes": 1,
                                "pmax": 1}) for port in ports]
            )  # fmt: skip


def changed(results: Path, dilation: float) -> tuple[Changing, session.Outcome]:
    """An incast during which settings change."""
    ends = [(f"h{n}", "h9") for n in range(1, FAN_IN + 1)]
    document = {"name": "change", "fabric": fabric(), "transport": UNLIMITED, "dilation": dilation,
                "workloads": [pairs(*ends, size="1 MB", name="in")], "shrink": 1,
                "pfc": {"classes": [3]}}  # fmt: skip
    experiment = assemble(Document(document, {}, "test"), results / "test.yaml")
    progress = Changing()
    request = session.Request(experiment, CAPACITY_PPS, results, datapath=datapath())
    return progress, session.run_once(request, progress, Interrupt())


def test_settings_change_while_traffic_runs(tmp_path: Path) -> None:
    """XOFF and marking change in the middle, at every port, and not a packet is lost."""
    progress, outcome = changed(tmp_path, SLOWED)
    if outcome.verdict.slow_only:
        progress, outcome = changed(tmp_path, 2 * SLOWED)
    summary = outcome.summary
    assert progress.before["ingress"]
    assert summary["verdict"] == "VALID", summary["reasons"]
    assert summary["packets"]["dropped"] == summary["packets"]["retransmitted"] == 0
    assert 0 < summary["packets"]["marked"] < summary["packets"]["sent"]
    table = RunReader.open(outcome.folder).table("events").rows()
    held = [int(row["value"]) for row in table if row["kind"] == "pause"]
    assert held[0] > 100_000
    assert min(held) < 60_000


def pause_frames(capture: Path) -> list[dict[str, Any]]:
    """tshark's view of every MAC control frame."""
    fields = (
        "eth.dst",
        "macc.opcode",
        "macc.cbfc.enbv",
        "macc.cbfc.pause_time.c3",
        "_ws.malformed",
    )
    command = ["tshark", "-r", str(capture), "-Y", "eth.type == 0x8808", "-T", "json"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [entry["_source"]["layers"] for entry in json.loads(done.stdout)]
