"""What the results of a run depend on: ``depends_on`` of manifest.json.

Two runs under the virtual clock whose entries are equal have equal `hashes.results`. Under the live
clock they do not: that depends on the machine, and on the moment.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import emulator
from emulator.run.inputs import InputFile
from emulator.scale import Scale
from emulator.spec.dump import to_document
from emulator.spec.model import Experiment

_PACKAGES = ("controller", "emulator", "topologies", "traffic")
_SUFFIXES = (".py", ".c", ".h", ".yaml")
_DATA_PLANE = Path("emulator", "dataplane", "bpf")
_DISTRIBUTIONS = ("numpy", "scapy", "PyYAML", "matplotlib", "Jinja2", "ryu", "os-ken", "mininet")
_DECIDING = ("python", "numpy", "scapy", "open-vswitch")
"""Versions that decide about results; the rest reads files, or draws."""
_OWN_ENTRIES = ("seed", "clock", "dilation", "shrink", "budget")
_DIGITS = 32


def versions() -> dict[str, str]:
    """Versions of what a run uses; what is not installed is left out."""
    found = {"fabriclab": emulator.__version__, "python": sys.version.split()[0]}
    for distribution in _DISTRIBUTIONS:
        try:
            found[distribution.lower()] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return found


def installation(kernel: str | None = None) -> dict[str, Any]:
    """What is the same for all runs on this machine; takes tens of milliseconds.

    Args:
        kernel: hash of the guest's kernel; None = the release of the kernel that runs this.

    Returns:
        Plain JSON, so that a host can hand it to its guest, where reading files takes long.
    """
    root = Path(emulator.__file__).resolve().parent.parent
    return {
        "sources": sources_digest(root),
        "data_plane": _digest(root, _files(root / _DATA_PLANE)),
        "kernel": kernel or platform.release(),
        "architecture": platform.machine(),
        "c_library": os.confstr("CS_GNU_LIBC_VERSION") if hasattr(os, "confstr") else None,
        "versions": versions(),
    }


def sources_digest(root: Path) -> str:
    """Digest of our packages' sources: names below `root` and contents, nothing else of them."""
    return _digest(root, (file for package in _PACKAGES for file in _files(root / package)))


def _files(folder: Path) -> Iterator[Path]:
    """Sources in a folder and below; what an editor leaves behind (hidden) is none."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(_SUFFIXES) and not name.startswith("."):
                yield Path(place, name)


def _digest(root: Path, files: Iterator[Path]) -> str:
    whole = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        whole.update(f"{file.relative_to(root)}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()[:_DIGITS]


def spec_digest(experiment: Experiment, inputs: Sequence[InputFile]) -> str:
    """Digest of the resolved experiment, the same wherever its files lie.

    Input files count by their content. What has an entry of its own does not count, nor does
    `budget`, which decides about the shrink alone.
    """
    document = {k: v for k, v in to_document(experiment).items() if k not in _OWN_ENTRIES}
    for file in inputs:
        document["workloads"][file.workload][file.key] = file.sha256
    text = json.dumps(document, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def depends_on(
    experiment: Experiment,
    scale: Scale,
    inputs: Sequence[InputFile],
    installed: Mapping[str, Any],
    fabric: Mapping[str, str | None],
) -> dict[str, Any]:
    """The manifest's entry. PURE.

    Args:
        experiment: what runs.
        scale: dilation and shrink that it runs at.
        inputs: its input files.
        installed: as `installation` gives it.
        fabric: what only a running fabric knows: ``open-vswitch``, ``controller`` (framework and
            its version), ``datapath``.
    """
    known = {**installed["versions"], **fabric}
    return {
        "spec": spec_digest(experiment, inputs),
        "inputs": {file.path_in_spec: file.sha256 for file in inputs},
        "seed": experiment.seed,
        "clock": experiment.clock,
        "dilation": scale.dilation,
        "shrink": scale.shrink,
        **{key: value for key, value in installed.items() if key != "versions"},
        "versions": {name: known.get(name) for name in _DECIDING},
        "controller": fabric.get("controller"),
        "datapath": fabric.get("datapath"),
    }
