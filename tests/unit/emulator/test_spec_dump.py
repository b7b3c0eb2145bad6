"""The resolved specification: it loads back to an equal experiment, and says everything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.spec import load, to_yaml
from emulator.spec.dump import to_document
from emulator.spec.keys import KEYS
from tests.unit.emulator.spec_samples import EXAMPLES, FABRIC, experiment, from_text

SLOW = [{"hosts": ["h3"], "rate": "20 Gbit/s"}]
EXAMPLE_FILES = sorted(EXAMPLES.glob("*.yaml"))


@pytest.mark.parametrize("path", EXAMPLE_FILES, ids=lambda path: path.stem)
def test_examples_survive_the_round_trip(path: Path, tmp_path: Path) -> None:
    """The run folder's spec.yaml can be run again from anywhere and means the same."""
    first = load(path)
    copy = tmp_path / "spec.yaml"
    copy.write_text(to_yaml(first))
    assert load(copy) == first


@pytest.mark.parametrize("profile", ["ethernet", "roce-ecn"])
def test_the_profile_adds_nothing_to_a_resolved_file(profile: str) -> None:
    """All that a profile says stands in the resolved file, so another profile changes nothing."""
    x = experiment(profile=profile)
    other = "ethernet" if profile == "roce-ecn" else "roce-ecn"
    again = from_text(to_yaml(x), {"profile": other})
    assert replace(again, profile=profile) == x


def test_every_key_stands_in_the_resolved_file() -> None:
    """Nothing is left to a default that a later version might change."""
    x = experiment(profile="roce-ecn", pfc={}, receivers=SLOW, trim={"classes": [0]}, probes={},
                   duration="1 s")  # fmt: skip
    document = to_document(x)
    for key in KEYS:
        entry: Any = document
        for name in key.path.replace("[]", "").removesuffix(".*").split("."):
            assert name in entry, key.path
            entry = entry[name][0] if isinstance(entry[name], list) else entry[name]


def test_a_chosen_scale_is_written_as_numbers() -> None:
    """After a run the file says what auto became."""
    x = replace(experiment(), dilation=2000.0, shrink=2.5)
    again = from_text(to_yaml(x))
    assert (again.dilation, again.shrink) == (2000.0, 2.5)
    assert "dilation: 2000\n" in to_yaml(x)


@pytest.mark.parametrize("name", ["1e9", "012", "on", "null", "0x10", "true", "12.", "yes"])
def test_text_that_looks_like_something_else_stays_text(name: str) -> None:
    """Names that YAML 1.1 or 1.2 would read as numbers or booleans are quoted."""
    text = yaml.safe_dump({"name": "x"}).replace("x", f"'{name}'")
    x = from_text(f"{text}fabric: {FABRIC}\nworkloads: [{{kind: background, bytes: 1 MB}}]\n")
    assert x.name == name
    assert from_text(to_yaml(x)).name == name


CLASSES = st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True)
PORTS = st.sampled_from(["all", "switches", "leaf1", "leaf*-eth1", "spine1-eth2", "h1"])
ECN = st.fixed_dictionaries(
    {
        "classes": CLASSES,
        "kmin": st.integers(0, 400_000).map(lambda n: f"{n} B"),
        "kmax": st.sampled_from(["500 KB", "4 MiB", "16 KB per Gbit/s"]),
        "pmax": st.floats(0.001, 1),
        "ports": PORTS,
    }
)
SCHEDULER = st.fixed_dictionaries(
    {"classes": CLASSES},
    optional={"priority": st.integers(0, 7), "weight": st.integers(1, 1000), "ports": PORTS},
)
OVERRIDES = st.fixed_dictionaries(
    {},
    optional={
        "g": st.floats(0, 1),
        "cnp_interval": st.integers(0, 10**9).map(lambda n: f"{n} ns"),
        "additive": st.integers(1, 10**12).map(lambda n: f"{n} bit/s"),
        "increase_bytes": st.none() | st.integers(1, 10**9).map(lambda n: f"{n} B"),
        "threshold": st.integers(1, 10),
        "clamp_target": st.booleans(),
    },
)


@settings(max_examples=60, deadline=None)
@given(
    ecn=st.lists(ECN, max_size=3),
    scheduler=st.lists(SCHEDULER, max_size=4),
    alpha=st.floats(1 / 256, 256),
    overrides=OVERRIDES,
    rate=st.floats(0.001, 1e9),
    arrivals=st.sampled_from(["periodic", "poisson"]),
    uplink=st.sampled_from(["100 Gbit/s", "400 Gbit/s"]),
    pcap=st.booleans() | st.lists(PORTS, min_size=1),
)
def test_any_settings_survive_the_round_trip(
    ecn: list[dict[str, Any]],
    scheduler: list[dict[str, Any]],
    alpha: float,
    overrides: dict[str, Any],
    rate: float,
    arrivals: str,
    uplink: str,
    pcap: Any,
) -> None:
    """Writing and reading again changes no rule, no number and no order."""
    x = experiment(
        fabric={**FABRIC, "fabric_link": {"rate": uplink}},
        ecn=ecn,
        scheduler=scheduler,
        buffers={"alpha": alpha},
        transport={"overrides": overrides},
        probes={"rate": f"{rate:.12f} /s", "arrivals": arrivals},
        pcap=pcap,
    )
    assert from_text(to_yaml(x)) == x
