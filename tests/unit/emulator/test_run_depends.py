"""What results depend on: everything that decides, nothing that does not."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from emulator.run import depends
from emulator.run.depends import depends_on, installation, sources_digest, spec_digest
from emulator.run.inputs import copier, input_files, self_contained
from emulator.scale import Scale
from emulator.spec.load import load
from emulator.spec.model import Experiment
from tests.unit.emulator.spec_samples import EXAMPLES, ROOT, experiment

SCALE = Scale(1.0, 4.0)
FABRIC = {"open-vswitch": "3.1.0", "controller": "ryu 4.34", "datapath": "system"}


def digest(chosen: Experiment) -> str:
    """Of an experiment with its files."""
    return spec_digest(chosen, input_files(chosen))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of two of the packages."""
    for package in ("topologies", "controller"):
        shutil.copytree(ROOT / package, tmp_path / "tree" / package)
    return tmp_path / "tree"


def test_sources_are_known_by_name_and_content(tree: Path, tmp_path: Path) -> None:
    """From another path, user and hour they are the same; a changed line or name is not."""
    before = sources_digest(tree)
    other = tmp_path / "other"
    shutil.copytree(tree, other)
    for path in other.rglob("*.py"):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    (other / "topologies" / "__pycache__").mkdir(exist_ok=True)
    (other / "topologies" / "__pycache__" / "x.pyc").write_bytes(b"x")
    (other / "topologies" / ".#units.py").write_text("an editor's")
    (other / "topologies" / "notes.md").write_text("not a source")
    assert sources_digest(other) == before
    changed = other / "topologies" / "units.py"
    changed.write_text(changed.read_text() + "\n")
    assert sources_digest(other) != before
    shutil.copyfile(tree / "topologies" / "units.py", changed)
    assert sources_digest(other) == before
    changed.rename(changed.with_name("united.py"))
    assert sources_digest(other) != before


@pytest.mark.parametrize("name", ["x.py", "x.c", "x.h", "x.yaml"])
def test_every_kind_of_source_counts(tree: Path, name: str) -> None:
    """Python, the data plane's C, profiles."""
    before = sources_digest(tree)
    (tree / "controller" / name).write_text("x")
    assert sources_digest(tree) != before


def test_an_installation_is_described_in_plain_json() -> None:
    """A host hands it to its guest; the kernel is the guest's, else this machine's."""
    found = installation("abcd")
    assert json.loads(json.dumps(found)) == found
    assert found["kernel"] == "abcd"
    assert installation()["kernel"] == os.uname().release
    assert found["sources"] == sources_digest(ROOT)
    assert len({found["sources"], found["data_plane"]}) == 2
    assert found["versions"]["python"].startswith("3.")


def test_the_data_plane_has_a_digest_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a difference there can be told from any other in the sources."""
    for package in ("topologies", "emulator"):
        shutil.copytree(ROOT / package, tmp_path / package)
    monkeypatch.setattr(depends.emulator, "__file__", str(tmp_path / "emulator" / "__init__.py"))
    before = installation()
    program = tmp_path / "emulator" / "dataplane" / "bpf" / "mmu.bpf.c"
    program.write_text(program.read_text() + "/* more */\n")
    after = installation()
    assert after["data_plane"] != before["data_plane"]
    assert after["sources"] != before["sources"]


@pytest.mark.parametrize(
    ("keys", "same"),
    [
        ({"budget": "7 s"}, True),
        ({"dilation": 50}, True),
        ({"ecn": {"kmin": "100 KB", "kmax": "400 KB", "pmax": 0.2}}, False),
        ({"seed": 8}, True),
        ({"shrink": 4}, True),
        ({"routing": {"policy": "static"}}, False),
        ({"clock": "virtual"}, True),
        ({"switch": {"latency": "300 ns"}}, False),
    ],
)
def test_the_experiment_s_digest_is_of_what_decides(keys: dict[str, Any], same: bool) -> None:
    """Seed, clock and scale have entries of their own, so that a difference can be named."""
    assert (digest(experiment(**keys)) == digest(experiment())) is same


def test_input_files_count_by_their_content(tmp_path: Path) -> None:
    """A run folder that was taken elsewhere has the same digest; one byte more is another."""
    chosen = load(EXAMPLES / "training-beside-inference.yaml")
    files = input_files(chosen)
    assert files
    (tmp_path / "spec.yaml").write_text(self_contained(chosen, files, copier(tmp_path)))
    again = load(tmp_path / "spec.yaml")
    assert digest(again) == digest(chosen)
    (copy,) = (tmp_path / "inputs").iterdir()
    copy.write_bytes(copy.read_bytes().rstrip() + b"0\n")
    assert digest(load(tmp_path / "spec.yaml")) != digest(chosen)


def test_the_entry_names_everything() -> None:
    """Each part by itself, so that a difference can be named."""
    chosen = load(EXAMPLES / "training-beside-inference.yaml")
    installed = installation("abcd")
    found = depends_on(chosen, SCALE, input_files(chosen), installed, FABRIC)
    assert json.loads(json.dumps(found)) == found
    assert found["seed"] == chosen.seed
    assert (found["clock"], found["dilation"], found["shrink"]) == (chosen.clock, 1.0, 4.0)
    assert set(found["inputs"]) == {"workloads[1].trace"}
    assert found["versions"] == {
        "python": installed["versions"]["python"], "numpy": installed["versions"]["numpy"],
        "scapy": installed["versions"]["scapy"], "open-vswitch": "3.1.0",
    }  # fmt: skip
    assert (found["controller"], found["datapath"]) == ("ryu 4.34", "system")
    for key in ("sources", "data_plane", "kernel", "architecture", "c_library"):
        assert found[key] == installed[key]
