"""Input files: a run folder keeps copies of them, and names these."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from emulator.results.store import RunFolder
from emulator.run import inputs
from emulator.run.inputs import InputFile, copier, input_files, self_contained
from emulator.spec.load import load
from emulator.spec.model import Experiment
from tests.fakes.run_folder import STARTED
from tests.unit.emulator.spec_samples import EXAMPLES, experiment
from topologies.errors import MachineError

TRACE = EXAMPLES / "data" / "azure_conv_excerpt.csv"
CDF = "0 0\n1000 50\n2000 100\n"


def inference(trace: Path, name: str) -> dict[str, Any]:
    """A service that replays a trace."""
    return {
        "kind": "inference", "name": name, "clients": 1, "servers": 2, "trace": str(trace),
        "requests": 3, "model": "llama-3-8b",
    }  # fmt: skip


@pytest.fixture
def chosen(tmp_path: Path) -> Experiment:
    """Two services and background traffic that read files; two files have one name."""
    other = tmp_path / "far" / TRACE.name
    other.parent.mkdir()
    other.write_bytes(TRACE.read_bytes() + b"\n")
    cdf = tmp_path / "sizes.txt"
    cdf.write_text(CDF)
    bulk = {
        "kind": "background", "name": "bulk", "pattern": "pairs", "pairs": [["h1", "h3"]],
        "load": 0.1, "duration": "1 ms", "sizes_file": str(cdf),
    }  # fmt: skip
    services = [inference(TRACE, "a"), inference(other, "b"), inference(TRACE, "c")]
    return experiment(workloads=[*services, bulk])


def test_files_are_known_by_their_content(chosen: Experiment) -> None:
    """Every workload's file, with where it is named."""
    found = input_files(chosen)
    assert [file.path_in_spec for file in found] == [
        "workloads[0].trace", "workloads[1].trace", "workloads[2].trace", "workloads[3].sizes_file",
    ]  # fmt: skip
    assert found[0].sha256 == hashlib.sha256(TRACE.read_bytes()).hexdigest() == found[2].sha256
    assert found[0].sha256 != found[1].sha256
    assert found[3].size_bytes == len(CDF)
    assert input_files(experiment()) == []


def test_a_folder_with_copies_is_the_same_experiment(chosen: Experiment, tmp_path: Path) -> None:
    """Wherever it is taken, without the files that it was made from."""
    folder = tmp_path / "run"
    folder.mkdir()
    found = input_files(chosen)
    (folder / "spec.yaml").write_text(self_contained(chosen, found, copier(folder)))
    moved = folder.rename(tmp_path / "moved")
    again = load(moved / "spec.yaml")
    assert [file.path.parent for file in input_files(again)] == [moved / "inputs"] * 4
    assert [file.sha256 for file in input_files(again)] == [file.sha256 for file in found]
    names = sorted(path.name for path in (moved / "inputs").iterdir())
    assert len(names) == 3
    assert "sizes.txt" in names
    text = self_contained(again, input_files(again), copier(tmp_path / "third"))
    assert text == (moved / "spec.yaml").read_text()


def test_a_run_folder_takes_copies(chosen: Experiment, tmp_path: Path) -> None:
    """Through its own writer, which notes what it cannot write."""
    folder = RunFolder.create(tmp_path, "x", "1", STARTED)
    found = input_files(chosen)[3:]
    text = self_contained(chosen, found, folder.copy_in)
    assert "sizes_file: inputs/sizes.txt" in text
    assert (folder.path / "inputs" / "sizes.txt").read_text() == CDF
    assert not folder.copy_in("inputs/none", tmp_path / "none")
    assert "inputs/none" in str(folder.degraded)
    folder.close()


def test_what_cannot_be_copied_keeps_its_name(
    chosen: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that failed, and a file that is too large: the name stays absolute."""
    found = input_files(chosen)
    assert str(TRACE) in self_contained(chosen, found, lambda *_: False)
    monkeypatch.setattr(inputs, "MAX_BYTES", len(CDF))
    text = self_contained(chosen, found, copier(tmp_path))
    assert str(TRACE) in text
    assert "sizes_file: inputs/sizes.txt" in text


def test_a_file_that_is_gone_is_an_error(chosen: Experiment, tmp_path: Path) -> None:
    """With its name."""
    (tmp_path / "sizes.txt").unlink()
    with pytest.raises(MachineError, match=r"sizes\.txt cannot be read: No such file"):
        input_files(chosen)


def test_a_copy_of_one_file_is_made_once(chosen: Experiment) -> None:
    """Two workloads that read it share it."""
    made: list[str] = []

    def copy(name: str, _: Path) -> bool:
        made.append(name)
        return True

    files = input_files(chosen)
    self_contained(chosen, files, copy)
    assert len(made) == len(set(made)) == 3
    assert isinstance(files[0], InputFile)
