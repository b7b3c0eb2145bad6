"""Every kind of wrong file: one clear line, exit code 2, and nothing created."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator import cli
from tests.unit.emulator.spec_samples import ROOT

FOLDER = ROOT / "tests" / "golden" / "bad-inputs"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("command", ["validate", "plan"])
def test_a_bad_file_gives_its_message(
    command: str, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message names file, line, key path, value, rule and way out, in a single line."""
    monkeypatch.chdir(FOLDER)
    before = sorted(FOLDER.iterdir())
    assert cli.main([command, path.name]) == 2
    captured = capsys.readouterr()
    expected = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert captured.err.replace(str(FOLDER), "{folder}") == expected
    assert captured.out == ""
    assert sorted(FOLDER.iterdir()) == before


def test_every_message_belongs_to_a_file() -> None:
    """No message is left over from a file that is gone."""
    assert {path.stem for path in FOLDER.glob("*.txt")} == {path.stem for path in FILES}
    assert len(FILES) > 40


@pytest.mark.parametrize("name", ["nowhere.yaml", "."])
def test_a_file_that_is_not_there(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a missing file nor a folder is an experiment."""
    monkeypatch.chdir(FOLDER)
    assert cli.main(["validate", name]) == 2
    assert capsys.readouterr().err in {
        "fabriclab: error: file: 'nowhere.yaml' does not exist; check the path\n",
        "fabriclab: error: file: '.' is a folder; name the YAML file in it\n",
    }
