"""The structures that C and Python share: same fields, same places, same constants."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.dataplane import layout, plane, tables
from emulator.dataplane.compiling import SOURCE
from emulator.kernel import queues
from traffic import wire

FILES = (SOURCE, *sorted(SOURCE.parent.glob("*.h")))
TEXT = "".join(path.read_text(encoding="utf-8") for path in FILES)
STRUCTURES = {
    "class_config": layout.CLASS_CONFIG,
    "port_config": layout.PORT_CONFIG,
    "class_state": layout.CLASS_STATE,
    "port_state": layout.PORT_STATE,
    "switch_state": layout.SWITCH_STATE,
    "nic_record": layout.NIC_RECORD,
    "pause_config": layout.PAUSE_CONFIG,
    "pause_configs": layout.PAUSE_CONFIGS,
    "pause_state": layout.PAUSE_STATE,
    "pause_states": layout.PAUSE_STATES,
    "pause_event": layout.PAUSE_EVENT,
    "receiver_config": layout.RECEIVER_CONFIG,
    "level": layout.LEVEL,
    "receiver_state": layout.RECEIVER_STATE,
}


def compiler() -> str:
    """Any C compiler; without one the test is skipped."""
    for name in ("gcc", "clang", "cc"):
        if found := shutil.which(name):
            return found
    pytest.skip("needs a C compiler")


def structure(name: str) -> str:
    """The definition of a structure in the C source."""
    found = re.search(rf"^struct {name} \{{\n.*?^\}};", TEXT, re.MULTILINE | re.DOTALL)
    assert found, name
    return found.group()


def fields(name: str) -> list[str]:
    """Names of its fields, in order; comments are no fields."""
    body = re.sub(r"/\*.*?\*/", "", structure(name), flags=re.DOTALL).split("{", 1)[1]
    declarations = [line.strip() for line in body.rpartition("}")[0].split(";") if line.strip()]
    names = [re.sub(r"^(struct \w+|\w+)\s+", "", line) for line in declarations]
    return [re.sub(r"\[.*", "", part).strip() for line in names for part in line.split(",")]


def defined() -> dict[str, int]:
    """The numbers that the C source defines."""
    pairs = re.findall(r"^#define (\w+) (0x[0-9a-f]+|\d+)\b", TEXT, re.MULTILINE)
    return {name: int(value, 0) for name, value in pairs}


@pytest.fixture(scope="module")
def offsets(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], int]:
    """(structure, field) -> offset by a C compiler; field "" is the size."""
    folder = tmp_path_factory.mktemp("layout")
    lines = [
        f'printf("{name} {field} %zu\\n", offsetof(struct {name}, {field}));'
        for name in STRUCTURES
        for field in fields(name)
    ]
    lines += [f'printf("{name} - %zu\\n", sizeof(struct {name}));' for name in STRUCTURES]
    program = "\n".join(
        [
            "#include <linux/types.h>",
            "#include <stddef.h>",
            "#include <stdio.h>",
            *re.findall(r"^#define \w+ (?:0x[0-9a-f]+|\d+)$", TEXT, re.MULTILINE),
            *(structure(name) for name in STRUCTURES),
            "int main(void) {",
            *lines,
            "return 0; }",
        ]
    )
    source = folder / "layout.c"
    source.write_text(program)
    subprocess.run([compiler(), str(source), "-o", str(folder / "layout")], check=True)
    printed = subprocess.run([str(folder / "layout")], check=True, capture_output=True, text=True)
    rows = [line.split() for line in printed.stdout.splitlines()]
    return {(name, "" if field == "-" else field): int(at) for name, field, at in rows}


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_field_is_where_c_puts_it(name: str, offsets: dict[tuple[str, str], int]) -> None:
    """Names, order, offsets and size agree with what a compiler makes of the C source."""
    kind = STRUCTURES[name]
    assert list(kind.names or ()) == fields(name)
    placed = {field: entry[1] for field, entry in (kind.fields or {}).items()}
    assert placed == {field: offsets[name, field] for field in fields(name)}
    assert kind.itemsize == offsets[name, ""]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_PORTS", layout.MAX_PORTS),
        ("MAX_SWITCHES", layout.MAX_SWITCHES),
        ("CLASSES", layout.CLASSES),
        ("GAP_BUCKETS", layout.GAP_BUCKETS),
        ("FLAG_SWITCH", layout.FLAG_SWITCH),
        ("FLAG_TAGS", layout.FLAG_TAGS),
        ("FLAG_RECEIVER", layout.FLAG_RECEIVER),
        ("KICK_MARK", layout.KICK_MARK),
        ("KICK_LENGTH", layout.KICK_LENGTH),
        ("WAKE_MARK", layout.WAKE_MARK),
        ("EVENT_XOFF", layout.EVENT_XOFF),
        ("EVENT_XON", layout.EVENT_XON),
        ("EVENT_FRAME", layout.EVENT_FRAME),
        ("FIRST_INTERFACE", layout.FIRST_INTERFACE),
        ("NUMBER_WORDS", layout.NUMBER_WORDS),
        ("MIN_FRAME", wire.MIN_FRAME_BYTES),
        ("WIRE_OVERHEAD", tables.WIRE_OVERHEAD_BYTES),
        ("WIRE_OVERHEAD", queues.WIRE_OVERHEAD_BYTES),
        ("ROCE_PORT", wire.ROCE_PORT),
        ("ROCE_ACKNOWLEDGE", wire.Opcode.ACKNOWLEDGE),
        ("SACK_BYTES", wire.SACK_BYTES),
        ("SACK_FRAME", wire.SACK_FRAME_BYTES),
        ("ECN_MASK", wire.ECN_MASK),
        ("ECN_CE", wire.CE),
    ],
)
def test_constants_agree(name: str, value: int) -> None:
    """What both sides count on is the same number."""
    assert defined()[name] == value


def test_fixed_point_numbers_agree() -> None:
    """Alpha has as many fractional bits as C shifts by; a probability of 1 is always drawn."""
    assert 1 << defined()["ALPHA_SHIFT"] == layout.ALPHA_ONE
    assert "& 0xffff;" in TEXT
    assert layout.PROBABILITY_ONE == 0xFFFF + 1


def test_classes_of_the_shaper_agree() -> None:
    """The program sends class n to the n-th leaf that the shaper has."""
    leaves = queues.leaves(5, "x", 8_000, [queues.LeafClass(0, 1)] * 8, 1_500)
    handles = [int.from_bytes(message.data[24:28], "little") for message in leaves]
    first = defined()["HTB_MAJOR"] + defined()["HTB_FIRST_LEAF"]
    assert handles == [first + tc for tc in range(8)]
    assert defined()["HTB_MAJOR"] + defined()["HTB_NOWHERE"] == queues.HTB_NOWHERE


@pytest.mark.parametrize(
    ("name", "size", "record", "content"),
    [
        ("nic_ring", plane.RING_BYTES, layout.RING_RECORD, layout.NIC_RECORD),
        ("pause_ring", plane.PAUSE_RING_BYTES, layout.PAUSE_RING_RECORD, layout.PAUSE_EVENT),
    ],
)
def test_the_rings_agree(name: str, size: int, record: Any, content: Any) -> None:
    """Their sizes are those of the maps, a record with its header fills a power of 2."""
    declared = rf"BPF_MAP_TYPE_RINGBUF\);\n\s*__uint\(max_entries, ([0-9 *]+)\);\n\}} {name} "
    found = re.search(declared, TEXT)
    assert found
    assert np.prod([int(part) for part in found.group(1).split("*")]) == size
    stride = record.itemsize
    assert stride & (stride - 1) == 0
    assert stride == content.itemsize + 8
    assert size % stride == 0


def test_structures_of_maps_have_a_size_that_maps_keep() -> None:
    """An array map rounds values up to 8 bytes; the dtypes are that size already."""
    for name in ("port_config", "port_state", "switch_state", "pause_configs", "pause_states"):
        assert STRUCTURES[name].itemsize % 8 == 0


def test_the_source_is_where_the_package_says() -> None:
    """It is shipped beside the code that compiles it."""
    assert Path(SOURCE).is_file()
