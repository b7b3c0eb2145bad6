"""Every key of an experiment file that this package reads: default, form and meaning, once.

The defaults are written as a user would write them and lie below profile and file when these are
merged, so no reader has a default of its own. The keys inside ``fabric:`` and of each workload
belong to `topologies.builders` and `traffic.workloads`. ``docs/config.md`` documents all of them;
a test compares.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


class Absent(Enum):
    """The type of `NO_DEFAULT`."""

    TOKEN = 0


NO_DEFAULT: Final = Absent.TOKEN
"""The key is required, or its default is computed from others (its meaning says how)."""


@dataclass(frozen=True)
class Key:
    """One key.

    Attributes:
        path: key path; ``[]`` stands for the entries of a list.
        default: as a user would write it; `NO_DEFAULT` when there is none.
        form: what may be written.
        meaning: what it does.
    """

    path: str
    default: Any
    form: str
    meaning: str


_RULE_CLASSES = "list of 0..7"

KEYS: tuple[Key, ...] = (
    Key("name", NO_DEFAULT, "letters, digits, . _ -", "names the run folder; else the file's name"),
    Key("seed", 1, "whole number, 0 to 2^63-1", "the one source of randomness"),
    Key("clock", "live", "live", "which clock the emulation runs on"),
    Key("dilation", "auto", "auto or a number >= 1", "times slower than the target"),
    Key("shrink", "auto", "auto or a number >= 1", "divides messages, computations and gaps"),
    Key("budget", "60 s", "duration", "wall time that shrink: auto aims for"),
    Key("duration", None, "duration or none", "ends the run at this model time"),
    Key("fabric", NO_DEFAULT, "mapping with kind", "hosts, switches and links"),
    Key("profile", "ethernet", "name of a profile", "settings below those of the file"),
    Key("ecn", None, "mapping, list of mappings or none", "marking by the switches"),
    Key("ecn[].classes", NO_DEFAULT, _RULE_CLASSES, "classes; else those of the workloads"),
    Key("ecn[].kmin", NO_DEFAULT, "size, or size per Gbit/s", "queue from which on is marked"),
    Key("ecn[].kmax", NO_DEFAULT, "size, or size per Gbit/s", "queue above which all is marked"),
    Key("ecn[].pmax", NO_DEFAULT, "fraction > 0", "marking probability at kmax"),
    Key("ecn[].ports", "switches", "selector of ports", "ports that mark"),
    Key("pfc", None, "mapping, list of mappings or none", "lossless classes: pause (802.1Qbb)"),
    Key("pfc[].classes", NO_DEFAULT, _RULE_CLASSES, "lossless; else those of the workloads"),
    Key("pfc[].alpha", "1/8", "number or fraction, or none", "XOFF over the free shared buffer"),
    Key("pfc[].xoff", None, "size or none", "a static XOFF instead of alpha"),
    Key("pfc[].xon_offset", "auto", "auto or size", "XON is so far below XOFF"),
    Key("pfc[].xon", None, "size or none", "XON itself, with a static XOFF"),
    Key("pfc[].headroom", "auto", "auto or size", "buffer for what comes after XOFF"),
    Key("pfc[].response", "auto", "auto or duration", "a peer's reaction to a pause frame"),
    Key("pfc[].ports", "switches", "selector of switch ports", "ingress ports that pause"),
    Key("pfc[].control", "switch", "switch or a pause policy", "who pauses when XOFF is crossed"),
    Key("pfc[].watchdog", NO_DEFAULT, "mapping or none", "ends pause storms; on by default"),
    Key("pfc[].watchdog.detect", "200 ms", "duration", "a pause of this length is a storm"),
    Key("pfc[].watchdog.restore", "200 ms", "duration", "back to normal without a pause so long"),
    Key("pfc[].watchdog.action", "drop", "drop or forward", "what happens to the paused queue"),
    Key("trim", None, "mapping, list of mappings or none", "packets are cut instead of dropped"),
    Key("trim[].classes", NO_DEFAULT, _RULE_CLASSES, "cut; else those of the workloads"),
    Key("trim[].to_class", 5, "0..7", "class in which what was cut goes on"),
    Key("trim[].dscp", "auto", "auto or 0..63", "its code point, instead of to_class"),
    Key("trim[].size", "80 B", "size", "what is kept: frame without FCS"),
    Key("trim[].threshold", "auto", "auto, size, or size per Gbit/s", "longest queue; else cut"),
    Key("trim[].ports", "switches", "selector of switch ports", "egress ports that cut"),
    Key("receivers", [], "list of mappings", "hosts that are slower than their links, and pause"),
    Key("receivers[].hosts", NO_DEFAULT, "list of hosts", "the slow ones"),
    Key("receivers[].rate", NO_DEFAULT, "rate or stuck", "what they take of each lossless class"),
    Key("receivers[].buffer", "1 MB", "size", "of their NICs, for each lossless class"),
    Key("receivers[].start", "0 ns", "duration", "from when on they are slow"),
    Key("receivers[].duration", None, "duration or none", "for how long; none = to the end"),
    Key("scheduler", [], "list of mappings", "service of the traffic classes at ports"),
    Key("scheduler[].classes", NO_DEFAULT, _RULE_CLASSES, "classes of the entry"),
    Key("scheduler[].priority", 1, "0..7", "0 is served first; also for classes not named"),
    Key("scheduler[].weight", 1, "1..1000", "share among equal priorities"),
    Key("scheduler[].ports", "all", "selector of ports", "ports that serve classes so"),
    Key("buffers", [], "mapping or list of mappings", "dynamic thresholds of the shared buffer"),
    Key("buffers[].classes", NO_DEFAULT, _RULE_CLASSES, "classes; else all"),
    Key("buffers[].alpha", 1, "number or fraction, 1/256 to 256", "part of the free buffer"),
    Key("routing.policy", "ecmp", "name of a policy", "how the controller spreads flows"),
    Key("routing.*", NO_DEFAULT, "as the policy says", "options of the policy"),
    Key("transport.kind", "go-back-n", "name of a transport", "how NICs deliver messages"),
    Key("transport.control", "auto", "auto or a name", "how senders react to congestion"),
    Key("transport.params", "auto", "auto or name of a set", "parameters of the control"),
    Key("transport.overrides", {}, "mapping", "single parameters that differ from the set"),
    Key("transport.payload", "auto", "auto or size", "payload of a full packet"),
    Key("transport.window", "auto", "auto, unlimited or packets", "most unacknowledged packets"),
    Key("transport.retransmit_timeout", "auto", "auto or duration", "wait before sending again"),
    Key("switch.mode", "store-and-forward", "or cut-through", "when forwarding begins"),
    Key("switch.latency", "500 ns", "duration", "time in the switch's pipeline"),
    Key("workloads", [], "list of mappings with kind", "what the hosts do"),
    Key("probes", None, "mapping or none", "latency and loss probes"),
    Key("probes.pairs", "all-leaves", "all-leaves, all-hosts, [[h1, h2], ...]", "who probes whom"),
    Key("probes.rate", "1000 /s", "event rate", "probes per pair and class"),
    Key("probes.classes", NO_DEFAULT, _RULE_CLASSES, "classes; else those of the workloads"),
    Key("probes.arrivals", "periodic", "periodic or poisson", "gaps between a pair's probes"),
    Key("probes.size", "128 B", "size", "Ethernet frame without FCS; padded as RoCEv2 does"),
    Key("pcap", False, "true, false or list of port selectors", "ports that are captured"),
)

TOP_LEVEL = tuple(dict.fromkeys(key.path.split(".")[0].split("[")[0] for key in KEYS))
"""Names of the top-level keys."""


def default_of(path: str) -> Any:
    """The default of a key, as a user would write it; KeyError when the key has none."""
    for key in KEYS:
        if key.path == path and key.default is not NO_DEFAULT:
            return copy.deepcopy(key.default)
    raise KeyError(path)


def with_defaults(section: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping completed by the defaults of its section, such as ``probes`` or ``ecn[]``."""
    prefix = f"{section}."
    defaults = {
        key.path.removeprefix(prefix): copy.deepcopy(key.default)
        for key in KEYS
        if key.path.startswith(prefix) and key.default is not NO_DEFAULT
    }
    own = {name: value for name, value in defaults.items() if "." not in name}
    return {**own, **raw}


def default_document() -> dict[str, Any]:
    """The experiment file that says nothing but the defaults.

    Keys inside an optional section (``probes``) and of list entries join when the section does.
    """
    document: dict[str, Any] = {}
    optional = {key.path for key in KEYS if key.default is None}
    for key in KEYS:
        section, _, name = key.path.partition(".")
        if key.default is NO_DEFAULT or "[]" in key.path or (name and section in optional):
            continue
        target = document.setdefault(section, {}) if name else document
        target[name or section] = copy.deepcopy(key.default)
    return document
