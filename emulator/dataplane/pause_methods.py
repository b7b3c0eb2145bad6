"""What the agent can be asked about pause; values in target units.

set_pfc {port, tc, alpha, xoff_bytes, xon_offset_bytes, headroom_bytes, response_ns, watchdog,
         control}      null = automatic or none; takes effect with the next packet
set_pfc {port, tc, lossless: false}
pause {port, tc, duration_ns}   the port pauses its peer; without a duration until resume
resume {port, tc}
read_pfc {}                     what ingress ports hold, and which queues are paused
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from controller import rpc
from emulator.dataplane.pause_driver import PauseDriver
from emulator.dataplane.tables import Tables
from topologies.errors import SpecError
from topologies.files import pfc_rule_from_dict
from topologies.model import Port
from topologies.pause import frame_bytes, reserved_bytes, settle
from topologies.reading import Reader
from topologies.settings import PfcRule
from topologies.units import format_size

Action = Callable[[], object]
_NUMBERS = ("alpha", "xoff_bytes", "xon_offset_bytes", "headroom_bytes", "response_ns")


class PauseMethods:
    """The methods by name.

    Args:
        plane: the data plane.
        driver: of the pauses; None where there are no gates.
        pipeline_ns: latency of the switches, for automatic headroom.
        port: reads a switch port's name.
        traffic_class: reads a class.
    """

    def __init__(
        self,
        plane: Tables,
        driver: PauseDriver | None,
        pipeline_ns: int,
        port: Callable[[Reader], Port],
        traffic_class: Callable[[Reader], int],
    ) -> None:
        self._plane, self._driver, self._pipeline_ns = plane, driver, pipeline_ns
        self._port, self._class = port, traffic_class
        self.table: dict[str, Callable[[Reader], Action]] = {
            "set_pfc": self._set_pfc,
            "pause": self._pause,
            "resume": self._resume,
            "read_pfc": lambda _reader: self.read,
        }

    def read(self) -> dict[str, object]:
        """What ingress ports and classes hold, and which queues are paused."""
        fabric, held = self._plane.fabric, self._plane.held["classes"]
        rows = [
            {
                "port": fabric.port(int(port)).name,
                "tc": int(tc),
                "bytes": int(held[port, tc]["bytes"]),
                "headroom_bytes": int(held[port, tc]["headroom"]),
                "peak_headroom_bytes": int(held[port, tc]["peak_headroom"]),
                "pauses": (int(held[port, tc]["changes"]) + 1) // 2,
                "dropped": int(held[port, tc]["drop_packets"]),
            }
            for port, tc in zip(*self._plane.pauses["classes"]["headroom"].nonzero(), strict=True)
        ]
        closed = self._driver.paused() if self._driver else []
        queues = [{"port": fabric.port(port).name, "tc": tc} for port, tc in closed]
        return {"ingress": rows, "paused": queues}

    def _gated(self, reader: Reader) -> tuple[PauseDriver, Port, int]:
        """The driver, a port, and a class for which the port's peer has a gate."""
        port, tc = self._port(reader), self._class(reader)
        if self._driver is None:
            raise rpc.RpcError(rpc.SERVER_ERROR, "no class is lossless in this run: pfc is none")
        if (port.peer, tc) not in self._driver.gates.keys:
            known = sorted({known for _, known in self._driver.gates.keys})
            rule = f"has no gates in this run; lossless when it began: {known}"
            raise SpecError(reader.at("tc"), tc, rule)
        return self._driver, port, tc

    def _set_pfc(self, reader: Reader) -> Action:
        driver, port, tc = self._gated(reader)
        lossless = reader.flag("lossless", True)
        given = {name: reader.raw(name) for name in (*_NUMBERS, "watchdog") if reader.has(name)}
        if reader.has("control"):
            given["control"] = reader.text("control")
        if not lossless:
            return partial(driver.set_rule, port.index, tc, None)
        rule = pfc_rule_from_dict({"tc": tc, **given}, reader.path)
        rule = settle(rule, self._plane.fabric, port.index, self._pipeline_ns)
        self._check_room(driver, port, tc, rule, reader)
        return partial(driver.set_rule, port.index, tc, rule)

    def _check_room(
        self, driver: PauseDriver, port: Port, tc: int, rule: PfcRule, reader: Reader
    ) -> None:
        """The headroom of all ports and classes leaves something of the buffer to share."""
        fabric, rules = self._plane.fabric, driver.rules.by_port()
        rules.setdefault(port.index, {})[tc] = rule
        reserved = reserved_bytes(rules, fabric)[port.node]
        size = int(self._plane.switches["buffer_bytes"][self._plane.switch_ids[port.node]])
        if reserved + frame_bytes(fabric.mtu_bytes) > size:
            text = f"makes {format_size(reserved)} of headroom of {format_size(size)} of buffer"
            raise SpecError(reader.at("headroom_bytes"), rule.headroom_bytes, text)

    def _pause(self, reader: Reader) -> Action:
        driver, port, tc = self._gated(reader)
        for_ns = reader.integer("duration_ns", None, minimum=1)
        return partial(driver.wish, port.index, tc, paused=True, for_ns=for_ns)

    def _resume(self, reader: Reader) -> Action:
        driver, port, tc = self._gated(reader)
        return partial(driver.wish, port.index, tc, paused=False)
