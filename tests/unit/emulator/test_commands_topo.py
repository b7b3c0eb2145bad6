"""``fabriclab topo --up``: a fabric for people, or for commands, and its end."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulator import calibration, doctor
from emulator.cli import main
from emulator.kernel.process import start_time
from emulator.node_commands import NodeCommand, parse_command, with_addresses
from emulator.ownership import Owned
from emulator.plan import make_plan
from emulator.run import building, by_hand, ending
from emulator.spec.load import load
from tests.fakes.machine import FakeMachine, child
from tests.unit.emulator.spec_samples import EXAMPLES
from topologies.errors import SpecError

SINGLE = str(EXAMPLES / "single-flow.yaml")


class FakeFabric:
    """A fabric of one machine: its nodes run commands right here.

    Attributes:
        events: what happened to it.
    """

    def __init__(self, settings: Any, ledger: Any, note: Any) -> None:
        self.settings, self.ledger, self.fabric = settings, ledger, settings.fabric
        self.events: list[str] = []
        self.net = {node.name: SimpleNamespace(popen=self._popen) for node in self.fabric.nodes}

    @staticmethod
    def _popen(words: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(words, **options)

    def __enter__(self) -> FakeFabric:
        self.events.append("up")
        return self

    def __exit__(self, *_: object) -> None:
        self.events.append("down")
        self.ledger.close()


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[FakeFabric]:
    """The fabrics that a command builds, none of them real."""
    FakeMachine(tmp_path, monkeypatch)
    monkeypatch.setattr(doctor, "require", lambda: None)
    monkeypatch.setattr(calibration, "capacity_pps", lambda _note: 30_000.0)
    made: list[FakeFabric] = []

    def build(*arguments: Any) -> FakeFabric:
        made.append(FakeFabric(*arguments))
        return made[-1]

    monkeypatch.setattr(by_hand, "LiveFabric", build)
    return made


def _up(*commands: str) -> int:
    return main(["topo", SINGLE, "--up", *(part for text in commands for part in ("--exec", text))])


def test_commands_run_in_order_and_their_output_is_ours(
    built: list[FakeFabric], capfd: pytest.CaptureFixture[str]
) -> None:
    """Names of hosts become addresses, also behind a pipe; then the fabric goes."""
    assert _up("h1 echo to h2", "leaf1 printf 'a b' | cat; echo") == 0
    captured = capfd.readouterr()
    assert captured.out == "to 10.1.2.1\na b\n"
    assert "h1 echo to h2" in captured.err
    assert built[0].events == ["up", "down"]


def test_a_command_that_fails_is_code_1(
    built: list[FakeFabric], capfd: pytest.CaptureFixture[str]
) -> None:
    """Those after it run all the same; each failure is named with its code."""
    assert _up("h1 exit 3", "h2 false", "h2 echo on") == 1
    captured = capfd.readouterr()
    assert captured.out == "on\n"
    assert "fabriclab: h1 exit 3: exit code 3\nfabriclab: h2 false: exit code 1" in captured.err
    assert built[0].events == ["up", "down"]


def test_without_commands_the_command_line_opens(
    built: list[FakeFabric], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the fabric that stands; when it is left, the fabric goes and nothing is remembered."""
    seen: list[list[str]] = []
    monkeypatch.setattr(by_hand, "prompt", lambda live: seen.append(list(live.events)))
    assert _up() == 0
    assert seen == [["up"]]
    assert built[0].events == ["up", "down"]
    assert built[0].ledger.owned.what == "topo"
    assert not built[0].ledger.folder.exists()


def test_the_fabric_is_scaled_as_a_run_of_the_file_would_be(
    built: list[FakeFabric], capfd: pytest.CaptureFixture[str]
) -> None:
    """Rates, marking and routing of the experiment; the user is told what that means by hand."""
    experiment = load(SINGLE)
    plan = make_plan(experiment, 30_000.0)
    assert _up("h1 true") == 0
    assert built[0].settings == building.fabric_settings(plan, doctor.datapath())
    dilation = plan.scaling.dilation.value
    rate = experiment.fabric.links[0].rate_bps
    assert built[0].settings.emulated_bps[0] == round(rate / dilation)
    assert f"dilation {dilation:g}: a link of 100 Gbit/s carries" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--exec", "h1 true"], "needs a fabric that stands; add --up"),
        (["--up", "--exec", "h1"], "is not NODE COMMAND"),
        (["--up", "--exec", "  "], "is not NODE COMMAND"),
        (["--up", "--exec", "h9 true"], "'h9' is not a known node of the fabric"),
        (["--up", "--exec", "h1 true", "--exec", "ping h1"], "'ping' is not a known node"),
        (["--up", "--set", "fabric.leaves=0"], "fabric.leaves"),
    ],
)
def test_mistakes_build_nothing(
    built: list[FakeFabric],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    """All commands are looked at before the first one runs."""
    assert main(["topo", SINGLE, *arguments]) == 2
    assert message in capsys.readouterr().err
    assert built == []


def test_it_keeps_out_of_the_way_of_a_run(
    built: list[FakeFabric], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a second run would have to."""
    folder = tmp_path / "state" / "aaaaaa"
    folder.mkdir(parents=True)
    with child() as owner:
        machine_file = folder / "owned.json"
        machine_file.write_text(_text(Owned("aaaaaa", owner)))
        assert _up("h1 true") == 2
        assert "run aaaaaa" in capsys.readouterr().err
        assert built == []
        assert main(["topo", SINGLE, "--up", "--alongside", "--exec", "h1 true"]) == 0


def _text(owned: Owned) -> str:
    import json
    from dataclasses import asdict

    return json.dumps(asdict(owned))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_takes_the_fabric_away(
    built: list[FakeFabric], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Ctrl-C and SIGTERM alike: code 130, nothing left."""
    monkeypatch.setattr(by_hand, "prompt", lambda _live: os.kill(os.getpid(), number))
    assert _up() == 130
    assert built[0].events == ["up", "down"]


@contextmanager
def _slow_end(ended: list[str]) -> Iterator[str]:
    """Something whose end is interrupted once more."""
    try:
        yield "thing"
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        ended.append("whole")


@pytest.mark.parametrize("first", [True, False])
def test_an_interrupt_of_the_end_waits_for_the_end(first: bool) -> None:
    """What is being taken away is taken away whole; then the interrupt counts, as a first one."""
    ended: list[str] = []
    handlers = [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)]
    interrupted = pytest.raises(KeyboardInterrupt)
    with ending.orderly(), interrupted, ending.standing(_slow_end(ended)) as thing:
        assert thing == "thing"
        if first:
            raise KeyboardInterrupt
    assert ended == ["whole"]
    assert [signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)] == handlers


def test_commands_are_parsed() -> None:
    """The first word is the node, the rest is the shell's."""
    assert parse_command(" h1  ping -c1 h5 ", {"h1"}) == NodeCommand("h1", "ping -c1 h5")
    assert str(parse_command("h1 x", {"h1"})) == "h1 x"
    with pytest.raises(SpecError, match="did you mean 'leaf1'"):
        parse_command("leaf x", {"h1", "leaf1"})


def test_only_whole_words_are_names() -> None:
    """As in Mininet: parts of words, paths and unknown names stay."""
    known = {"h1": "10.1.1.1"}
    line = with_addresses("ping h1  h11 /h1 x-h1 h1", known.get)
    assert line == "ping 10.1.1.1  h11 /h1 x-h1 10.1.1.1"


def test_a_host_in_several_planes_has_the_address_of_its_first() -> None:
    """Each host stands for one address on the command line."""
    fabric = load(EXAMPLES / "two-fabrics.yaml").fabric
    found = by_hand.addresses(fabric)
    assert set(found) == {host.name for host in fabric.hosts}
    assert found["h1"] == "10.1.1.1"


def test_this_process_is_known_by_its_start(built: list[FakeFabric]) -> None:
    """The ledger of a fabric names its owner."""
    assert _up("h1 true") == 0
    assert built[0].ledger.owned.owner == (os.getpid(), start_time(os.getpid()))
