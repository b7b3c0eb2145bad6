"""The command line: exit codes, one line per error, and what the commands print."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulator import __version__, cli, commands
from tests.unit.emulator.spec_samples import EXAMPLES, ROOT
from topologies.errors import MachineError

SINGLE = str(EXAMPLES / "single-flow.yaml")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A command named ``fake`` that does what the test says."""

    class Fake:
        action: Any = None

        def add_parser(self, parsers: Any) -> None:
            parsers.add_parser("fake").set_defaults(run=self.run)

        def run(self, arguments: argparse.Namespace) -> int:
            return int(self.action())

    command = Fake()
    monkeypatch.setattr(cli, "COMMANDS", (command,))
    return command


def _raises(error: BaseException) -> Any:
    def action() -> int:
        raise error

    return action


def test_the_commands_code_is_the_exit_code(fake: Any) -> None:
    """A command decides between yes and no."""
    fake.action = lambda: 1
    assert cli.main(["fake"]) == 1


def test_known_errors_are_one_line_and_code_2(
    fake: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even a message of several lines becomes one."""
    fake.action = _raises(MachineError("no Open vSwitch:\n  install it"))
    assert cli.main(["fake"]) == 2
    captured = capsys.readouterr()
    assert captured.err == "fabriclab: error: no Open vSwitch: install it\n"
    assert captured.out == ""


def test_an_interrupt_is_code_130(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """As shells expect of a program that ended by Ctrl-C."""
    fake.action = _raises(KeyboardInterrupt())
    assert cli.main(["fake"]) == 130
    assert capsys.readouterr().err == "fabriclab: interrupted\n"


def test_unexpected_errors_keep_their_traceback(fake: Any) -> None:
    """A fault of the program is not dressed up as the user's."""
    fake.action = _raises(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        cli.main(["fake"])


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["plan"], ["plan", SINGLE, "--nonsense"]])
def test_wrong_arguments_are_code_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As for every other wrong input."""
    with pytest.raises(SystemExit) as caught:
        cli.main(argv)
    assert caught.value.code == 2
    assert "usage: fabriclab" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """One place states it."""
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"fabriclab {__version__}\n"


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Each registered command answers --help."""
    parser = cli.make_parser()
    (subparsers,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    assert len(subparsers.choices) == len(commands.COMMANDS)
    for name in subparsers.choices:
        with pytest.raises(SystemExit) as caught:
            cli.main([name, "--help"])
        assert caught.value.code == 0
        assert f"usage: fabriclab {name}" in capsys.readouterr().out


def test_validate_says_what_a_file_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Name, profile, fabric and workloads, one line per file."""
    assert cli.main(["validate", SINGLE, str(EXAMPLES / "incast.yaml")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert "valid; single-flow, profile ethernet, leaf-spine with 2 hosts and 3 switches" in first
    assert "valid; incast" in second


def test_validate_looks_at_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong file does not hide the state of the next one; the code is 2 all the same."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("seed: x\n")
    assert cli.main(["validate", str(wrong), SINGLE]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("fabriclab: error: ") == 1
    assert "single-flow" in captured.out


def test_plan_prints_text_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    """Both forms speak of the same plan, with the capacity that was given."""
    assert cli.main(["plan", SINGLE, "--capacity", "90000"]) == 0
    text = capsys.readouterr().out
    assert cli.main(["plan", SINGLE, "--capacity", "90000", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["capacity_pps"] == 90_000
    assert f"dilation  {data['dilation']['value']:g}" in text
    assert "has not been measured" not in text


@pytest.mark.parametrize("measured", [None, 31_000.0])
def test_plan_uses_what_was_measured(
    measured: float | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --capacity the plan rests on the kept measurement, or says that there is none."""
    monkeypatch.setattr("emulator.calibration.cached", lambda: measured)
    assert cli.main(["plan", SINGLE, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["capacity_measured"] is (measured is not None)
    assert data["capacity_pps"] == (measured or 45_000)


@pytest.mark.parametrize("clock", ["live", "virtual"])
def test_a_budget_decides_about_the_shrink(
    clock: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """Under both clocks the traffic fits the wall time that the user gives."""
    shrinks = []
    for budget in ("60s", "250 ms"):
        argv = ["plan", SINGLE, "--json", "--capacity", "30000", "--clock", clock]
        assert cli.main([*argv, "--budget", budget]) == 0
        plan = json.loads(capsys.readouterr().out)
        assert plan["expected_wall_ns"] <= {"60s": 60e9, "250 ms": 0.25e9}[budget]
        shrinks.append(plan["shrink"]["value"])
    assert shrinks[0] < shrinks[1]


def test_options_change_the_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    """--profile, --seed and --set win over the file."""
    argv = ["plan", SINGLE, "--json", "--profile", "roce-ecn", "--seed", "9"]
    argv += ["--set", "fabric.leaves=3", "--set", "workloads[flow].bytes=2 MB"]
    assert cli.main(argv) == 0
    spec = json.loads(capsys.readouterr().out)["experiment"]
    assert (spec["profile"], spec["seed"], spec["fabric"]["leaves"]) == ("roce-ecn", 9, 3)
    assert spec["workloads"][0]["bytes"] == "2 MB"


@pytest.mark.parametrize("setting", ["fabric.leaves", "=3", " =3"])
def test_a_setting_needs_key_and_value(setting: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no KEY=VALUE is not guessed at."""
    assert cli.main(["plan", SINGLE, "--set", setting]) == 2
    assert "is not KEY=VALUE; write e.g. --set fabric.leaves=8" in capsys.readouterr().err


@pytest.mark.parametrize("capacity", ["0", "-1", "nan", "inf"])
def test_a_capacity_must_be_possible(capacity: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nonsense in, error out."""
    assert cli.main(["plan", SINGLE, "--capacity", capacity]) == 2
    assert "--capacity" in capsys.readouterr().err


def test_topo_shows_nodes_links_addresses_and_paths(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that a user needs to find their way."""
    assert cli.main(["topo", SINGLE, "--set", "fabric.hosts_per_leaf=2"]) == 0
    text = capsys.readouterr().out
    assert "oversubscription 2:1" in text
    assert "10.1.2.1" in text
    assert "02:00:0a:01:02:01" in text
    assert "leaf1-eth3 to spine1-eth1" in text
    assert "across a spine" in text
    assert "bisection 100 Gbit/s" in text


def test_topo_of_a_single_leaf_has_no_switch_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Empty tables are left out; the other sections of the file do not matter."""
    path = tmp_path / "one.yaml"
    path.write_text("fabric: {kind: leaf-spine, leaves: 1, spines: 0, hosts_per_leaf: 2}\n")
    assert cli.main(["topo", str(path)]) == 0
    text = capsys.readouterr().out
    assert "Links between switches" not in text
    assert "oversubscription" not in text
    assert "below one leaf" in text


def test_topo_draws_every_node_and_link(capsys: pytest.CaptureFixture[str]) -> None:
    """The Graphviz form has one line per link and names all nodes."""
    assert cli.main(["topo", str(EXAMPLES / "two-fabrics.yaml"), "--dot"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "graph fabric {"
    assert lines[-1] == "}"
    assert sum(" -- " in line for line in lines) == 8 + 8 + 2 + 4
    assert any('"p2spine2"' in line for line in lines)


def test_topo_as_json_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON form is that of the fabric files."""
    from emulator.spec import load
    from topologies.files import fabric_from_dict

    assert cli.main(["topo", SINGLE, "--json"]) == 0
    assert fabric_from_dict(json.loads(capsys.readouterr().out)) == load(SINGLE).fabric


def test_a_reader_that_goes_away_is_no_fault() -> None:
    """``fabriclab topo FILE | head -1`` ends quietly."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "emulator.cli", "topo", SINGLE]
    result = subprocess.run(
        command, stdout=write_end, stderr=subprocess.PIPE, cwd=ROOT, check=False, timeout=60
    )
    os.close(write_end)
    assert result.returncode == 141
    assert result.stderr == b""
