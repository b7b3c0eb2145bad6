"""From an experiment file to an `Experiment`: read, merge, build, check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emulator.clock.traits import CLOCKS
from emulator.spec import (
    checks,
    keys,
    merge,
    network,
    pause,
    ports,
    profiles,
    receivers,
    transport,
    trim,
    yamlfile,
)
from emulator.spec.model import AUTO, Experiment
from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric
from topologies.reading import Reader, as_number, join
from topologies.registry import build_fabric
from topologies.settings import CLASSES
from traffic import wire
from traffic.workloads import WorkloadSpec, parse_workloads

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_SEED = 2**63 - 1
MAX_SCALE = 1e9
FILE_KEYS = ("trace", "sizes_file")
"""Keys of workloads that name input files."""


def load(path: Path | str, overrides: Mapping[str, str] | None = None) -> Experiment:
    """The experiment that a file describes.

    Args:
        path: the YAML file; file names in it are relative to its folder.
        overrides: key path -> value as text, as in ``--set fabric.leaves=8``; these win.

    Raises:
        SpecError: anything is wrong with the file; the message says where.
    """
    path = Path(path)
    return assemble(yamlfile.read_file(path), path, overrides or {})


def load_fabric(path: Path | str, overrides: Mapping[str, str] | None = None) -> Fabric:
    """The fabric of a file alone; its other sections may be missing or wrong.

    Raises:
        SpecError: the file cannot be read, or its ``fabric:`` section is wrong.
    """
    path = Path(path)
    merged = layered(yamlfile.read_file(path), overrides or {})
    try:
        return _Assembly(merged, path).fabric()
    except SpecError as error:
        raise located(error, merged.origins, str(path)) from None


def assemble(
    document: yamlfile.Document, path: Path, overrides: Mapping[str, str] | None = None
) -> Experiment:
    """The experiment of a document that was read from (or belongs at) a path."""
    merged = merge.defaults()
    try:
        merged = layered(document, overrides or {})
        experiment = _Assembly(merged, path).experiment()
        checks.check(experiment)
    except SpecError as error:
        raise located(error, merged.origins, str(path)) from None
    return experiment


def layered(document: yamlfile.Document, overrides: Mapping[str, str]) -> merge.Merged:
    """Defaults, profile, file and ``--set``, the later over the earlier."""
    top = merge.Merged()
    top.overlay(document.data, lambda path: document.places.get(path, "file"))
    for key, text in overrides.items():
        if key == "profile":
            top.set(key, text)
    name = top.data.get("profile", keys.default_of("profile"))
    merged = merge.defaults()
    try:
        profile = profiles.read_profile(name)
    except SpecError as error:
        raise located(error, top.origins, document.name) from None
    settings = {key: profile.data[key] for key in profiles.SECTIONS if key in profile.data}
    merged.overlay(settings, lambda _: f"profile {name}")
    merged.overlay(document.data, lambda path: document.places.get(path, "file"))
    for key, text in overrides.items():
        merged.set(key, text)
    return merged


def located(error: SpecError, origins: Mapping[str, str], file: str) -> SpecError:
    """The error with the place that its key's value came from, unless it has one."""
    if error.file is None:
        origin = merge.origin_of(error.path, origins)
        plain = origin in (None, "default")
        in_file = plain or str(origin).startswith(("profile ", merge.FLAG))
        error.file = file if plain else f"{file} ({origin})" if in_file and file else origin
    return error


class _Assembly:
    """Reads the merged document section by section."""

    def __init__(self, merged: merge.Merged, path: Path) -> None:
        self._path = path
        self._folder = path.resolve().parent
        self._merged = merged
        self._data = merged.data

    def experiment(self) -> Experiment:
        """The whole experiment."""
        self._refuse_unknown()
        reader = Reader(self._data)
        fabric = self.fabric()
        workloads = self._workloads()
        classes = workload_classes(workloads)
        switch = network.read_switch(self._data["switch"])
        scheduler = ports.read_scheduler(self._data["scheduler"], fabric)
        pfc = pause.read_pfc(self._data["pfc"], fabric, classes, switch.latency_ns)
        return Experiment(
            name=self._name(reader),
            seed=reader.integer("seed", minimum=0, maximum=MAX_SEED),
            clock=reader.choice("clock", CLOCKS, what="clock"),
            dilation=reader.get("dilation", _scale, None),
            shrink=reader.get("shrink", _scale, None),
            budget_ns=reader.duration("budget", allow_zero=False),
            duration_ns=self._duration(reader),
            fabric=fabric,
            profile=reader.text("profile"),
            ecn=ports.read_ecn(self._data["ecn"], fabric, classes),
            scheduler=scheduler,
            buffers=ports.read_buffers(self._data["buffers"]),
            routing=network.read_routing(self._data["routing"], fabric),
            transport=transport.read_transport(self._data["transport"], fabric),
            switch=switch,
            workloads=workloads,
            probes=network.read_probes(self._data["probes"], fabric, classes),
            pcap=ports.read_pcap(self._data["pcap"], fabric),
            pfc=pfc,
            receivers=receivers.read_receivers(self._data["receivers"], fabric, pfc),
            trim=trim.read_trim(self._data["trim"], fabric, classes, pfc, scheduler),
            document=self._data,
            origins=self._merged.origins,
        )

    def _refuse_unknown(self) -> None:
        """Keys of no version."""
        for key in self._data:
            if key not in keys.TOP_LEVEL:
                raise UnknownNameError(key, "key", key, keys.TOP_LEVEL)

    def _name(self, reader: Reader) -> str:
        name = reader.text("name", self._path.stem)
        if not _NAME.fullmatch(name):
            rule = "must be 1 to 64 letters, digits, dots, _ or -, beginning with a letter or digit"
            raise SpecError("name", name, rule, "write e.g. name: my-experiment")
        return name

    def fabric(self) -> Fabric:
        """The fabric alone."""
        if "fabric" not in self._data:
            way_out = "add fabric: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}"
            raise SpecError("fabric", None, "is missing", way_out)
        return build_fabric(self._data["fabric"], "fabric")

    def _workloads(self) -> tuple[WorkloadSpec, ...]:
        self._resolve_files()
        return parse_workloads(self._data["workloads"], "workloads", self._folder)

    def _resolve_files(self) -> None:
        """Make names of input files absolute, so that the resolved spec works from everywhere."""
        entries = self._data["workloads"]
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            for key in FILE_KEYS:
                name = entry.get(key) if isinstance(entry, dict) else None
                if isinstance(name, str) and name.strip():
                    entry[key] = self._file(name, join(join("workloads", index), key))

    def _file(self, name: str, path: str) -> str:
        """An input file: relative to the experiment file, or to here when ``--set`` names it."""
        origin = merge.origin_of(path, self._merged.origins) or ""
        folder = Path.cwd() if origin.startswith(merge.FLAG) else self._folder
        file = folder / Path(name).expanduser()
        if not file.is_file():
            what = "is a folder" if file.is_dir() else "does not exist"
            raise SpecError(path, name, what, f"looked for {file}")
        return str(file)

    def _duration(self, reader: Reader) -> int | None:
        if reader.raw("duration") in ports.NONE:
            return None
        return reader.duration("duration", allow_zero=False)


def _scale(value: object, path: str) -> float | None:
    if value == AUTO:
        return None
    if isinstance(value, str):
        raise SpecError(path, value, "is neither auto nor a number", "write e.g. auto or 1000")
    return as_number(value, path, minimum=1, maximum=MAX_SCALE)


def workload_classes(workloads: tuple[WorkloadSpec, ...]) -> tuple[int, ...]:
    """Traffic classes that workloads use; all eight when there are none."""
    used: set[Any] = {wire.traffic_class(spec.dscp) for spec in workloads}
    return tuple(sorted(used)) or tuple(range(CLASSES))
