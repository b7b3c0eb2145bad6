"""What the agent can be asked about trimming; values in target units.

set_trim {port, tc, dscp, size_bytes, threshold_bytes}   takes effect with the next packet
set_trim {port, tc, size_bytes: 0}                       what the queue cannot take is dropped
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emulator.dataplane.pause_driver import PauseDriver
from emulator.dataplane.tables import Tables
from emulator.spec.ports import MAX_THRESHOLD_BYTES
from topologies.errors import SpecError
from topologies.files import trim_rule_from_dict
from topologies.model import Port
from topologies.reading import Reader
from topologies.settings import TrimRule
from traffic.wire import CONTROL_DSCP, ETHERNET_BYTES, traffic_class

Action = Callable[[], object]
_FIELDS = ("dscp", "size_bytes", "threshold_bytes")


class TrimMethod:
    """The method.

    Args:
        plane: the data plane.
        pauses: whose classes are lossless, or may become it; None where none is.
        port: reads a switch port's name.
        traffic_class: reads a class.
    """

    def __init__(
        self,
        plane: Tables,
        pauses: PauseDriver | None,
        port: Callable[[Reader], Port],
        traffic_class: Callable[[Reader], int],
    ) -> None:
        self._plane, self._port, self._class = plane, port, traffic_class
        self._gated = {tc for _, tc in pauses.gates.keys} if pauses else set()

    def read(self, reader: Reader) -> Action:
        """Reads and checks the parameters of a call; returns what it does.

        Raises:
            SpecError: a parameter is wrong, or the class is something that excludes trimming.
        """
        port, tc = self._port(reader), self._class(reader)
        given = {name: reader.raw(name) for name in _FIELDS if reader.has(name)}
        if given.get("size_bytes") == 0:
            return partial(self._plane.set_trim, port.index, tc, None)
        rule = trim_rule_from_dict({"tc": tc, **given}, reader.path)
        self._check_size(rule, reader)
        self._check_classes(rule, reader)
        return partial(self._plane.set_trim, port.index, tc, rule)

    def _check_size(self, rule: TrimRule, reader: Reader) -> None:
        full = self._plane.fabric.mtu_bytes + ETHERNET_BYTES
        if rule.size_bytes >= full:
            text = f"is not less than a full frame, {full}"
            raise SpecError(reader.at("size_bytes"), rule.size_bytes, text)
        limit = rule.threshold_bytes
        if limit is not None and not full <= limit <= MAX_THRESHOLD_BYTES:
            text = f"must be from {full}, a full frame, to {MAX_THRESHOLD_BYTES}"
            raise SpecError(reader.at("threshold_bytes"), limit, text)

    def _check_classes(self, rule: TrimRule, reader: Reader) -> None:
        """Nothing is cut twice, nothing lossless is cut, and no header waits for a pause."""
        lossless = self._gated | set(self._plane.lossless)
        trimmable = self._plane.trimmable
        targets = {target for goals in trimmable.values() for target in goals}
        if rule.tc in lossless:
            raise SpecError(reader.at("tc"), rule.tc, "is lossless in this run")
        if rule.tc == traffic_class(CONTROL_DSCP):
            raise SpecError(reader.at("tc"), rule.tc, "is the class of acknowledgements")
        if rule.tc in targets:
            raise SpecError(reader.at("tc"), rule.tc, "is the class of what was cut")
        if rule.to_class in lossless or rule.to_class in trimmable:
            kind = "lossless" if rule.to_class in lossless else "trimmable"
            raise SpecError(reader.at("dscp"), rule.dscp, f"is in class {rule.to_class}, {kind}")
