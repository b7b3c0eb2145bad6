"""What the agent can be asked, over a data plane; no sockets here.

Values are in target units. A call takes effect only when all of its parameters were understood.

    hello {}                                                 version, run, ports, switches
    set_ecn {port, tc, kmin_bytes, kmax_bytes, pmax}         kmax 0 = marking off
    set_scheduler {port, classes: [{tc, priority, weight}]}  lower priority number first
    set_buffer {switch, bytes, alpha: [8 numbers]}
    set_trim {port, tc, dscp, size_bytes, threshold_bytes}   no threshold (null): when full
    set_trim {port, tc, size_bytes: 0}                       trimming off
    read_queues {}                                           what each queue holds and has counted

and about pause what `emulator.dataplane.pause_methods` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from controller import rpc
from emulator.dataplane import building
from emulator.dataplane.pause_driver import PauseDriver
from emulator.dataplane.pause_methods import PauseMethods
from emulator.dataplane.tables import Tables
from emulator.dataplane.trim_method import TrimMethod
from emulator.kernel import netlink, queues
from emulator.spec.ports import MAX_ALPHA, MAX_THRESHOLD_BYTES, MIN_ALPHA
from topologies.errors import SpecError
from topologies.model import Port
from topologies.reading import Reader, as_number
from topologies.settings import CLASSES, ClassRule, EcnRule

PROTOCOL = 1
_MAX_BUFFER_BYTES = 1 << 40

Action = Callable[[], object]
"""What a call does once all of its parameters were understood; the result, None = nothing."""


class Methods:
    """The methods by name.

    Args:
        plane: the data plane.
        emulated_bps: emulated rate of each link, bit/s by link id.
        session: netlink in the switches' namespace; None when schedulers cannot be changed.
        run_id: told by hello.
        burst_ns: of the shapers.
        pauses: drives the gates; None where no class is lossless.
        pipeline_ns: latency of the switches.
    """

    def __init__(
        self,
        plane: Tables,
        emulated_bps: list[int],
        session: netlink.Session | None,
        run_id: str,
        burst_ns: int = queues.BURST_NS,
        pauses: PauseDriver | None = None,
        pipeline_ns: int = 0,
    ) -> None:
        self._plane, self._bps, self._session, self._run_id = plane, emulated_bps, session, run_id
        self._fabric, self._burst_ns = plane.fabric, burst_ns
        pfc = PauseMethods(plane, pauses, pipeline_ns, self._port, _traffic_class)
        self._table: dict[str, Callable[[Reader], Action]] = {
            "hello": self._hello,
            "set_ecn": self._set_ecn,
            "set_scheduler": self._set_scheduler,
            "set_buffer": self._set_buffer,
            "set_trim": TrimMethod(plane, pauses, self._port, _traffic_class).read,
            "read_queues": self._read_queues,
            **pfc.table,
        }

    def call(self, method: str, params: Mapping[str, object]) -> object:
        """The result of a call.

        Raises:
            rpc.RpcError: unknown method, wrong parameters, or the kernel refused.
        """
        if method not in self._table:
            known = ", ".join(sorted([*self._table, "subscribe", "subscribe_pfc"]))
            raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"no method {method!r}; known: {known}")
        try:
            with Reader(dict(params), method) as reader:
                action = self._table[method](reader)
            result = action()
        except SpecError as error:
            raise rpc.RpcError(rpc.INVALID_PARAMS, str(error)) from error
        except OSError as error:
            raise rpc.RpcError(rpc.SERVER_ERROR, str(error)) from error
        return {} if result is None else result

    def queues(self) -> dict[str, object]:
        """Lengths and counters of all queues that are or were in use."""
        classes = self._plane.states["classes"]
        queued = self._plane.queued_bytes()
        rows = []
        used = classes["in_packets"] + classes["drop_packets"] + classes["trim_packets"]
        for port, tc in zip(*used.nonzero(), strict=True):
            entry = classes[port, tc]
            rows.append(
                {
                    "port": self._fabric.port(int(port)).name,
                    "tc": int(tc),
                    "bytes": int(queued[port, tc]),
                    "packets_in": int(entry["in_packets"]),
                    "packets_out": int(entry["out_packets"]),
                    "dropped": int(entry["drop_packets"]),
                    "trimmed": int(entry["trim_packets"]),
                    "marked": int(entry["mark_packets"]),
                    "peak_bytes": int(entry["peak_bytes"]),
                }
            )
        return {"queues": rows}

    def crossing(self, port: int, tc: int, paused: bool, held_bytes: int) -> dict[str, object]:
        """What is told about a port and class that has crossed XOFF (paused) or XON."""
        name = self._fabric.port(port).name
        return {"port": name, "tc": tc, "paused": paused, "held_bytes": held_bytes}

    def _hello(self, _reader: Reader) -> Action:
        answer = {
            "protocol": PROTOCOL,
            "run": self._run_id,
            "ports": [port.name for port in self._fabric.ports if self._is_switch(port)],
            "switches": list(self._plane.switch_ids),
        }
        return lambda: answer

    def _is_switch(self, port: Port) -> bool:
        return self._fabric.by_name[port.node].is_switch

    def _port(self, reader: Reader) -> Port:
        names = {port.name: port for port in self._fabric.ports if self._is_switch(port)}
        return names[reader.choice("port", names, what="switch port")]

    def _set_ecn(self, reader: Reader) -> Action:
        port, tc = self._port(reader), _traffic_class(reader)
        kmin = reader.integer("kmin_bytes", minimum=0, maximum=MAX_THRESHOLD_BYTES)
        kmax = reader.integer("kmax_bytes", minimum=0, maximum=MAX_THRESHOLD_BYTES)
        pmax = reader.number("pmax", minimum=0, maximum=1)
        if kmax:
            EcnRule(tc, kmin, kmax, pmax)  # checks
        return partial(self._plane.set_ecn, port.index, tc, kmin, kmax, pmax)

    def _set_scheduler(self, reader: Reader) -> Action:
        port = self._port(reader)
        rules: dict[int, ClassRule] = {}
        for entry in reader.readers("classes", minimum=1):
            with entry:
                tc = _traffic_class(entry)
                if tc in rules:
                    raise SpecError(entry.at("tc"), tc, "is given twice")
                rules[tc] = ClassRule(tc, entry.integer("priority"), entry.integer("weight"))
        if self._session is None:
            raise rpc.RpcError(rpc.SERVER_ERROR, "schedulers cannot be changed here")
        leaves = queues.leaves(
            building.interface_index(port.index), port.name, self._bps[port.link],
            building.leaf_classes(rules), building.quantum_bytes(self._fabric), self._burst_ns,
        )  # fmt: skip
        return partial(self._session.run, leaves)

    def _set_buffer(self, reader: Reader) -> Action:
        switch = reader.choice("switch", self._plane.switch_ids, what="switch")
        size = reader.integer("bytes", minimum=1, maximum=_MAX_BUFFER_BYTES)
        entries = reader.items("alpha", minimum=CLASSES, maximum=CLASSES)
        alphas = [
            as_number(value, path, minimum=MIN_ALPHA, maximum=MAX_ALPHA) for path, value in entries
        ]
        return partial(self._plane.set_buffer, switch, size, alphas)

    def _read_queues(self, _reader: Reader) -> Action:
        return self.queues


def _traffic_class(reader: Reader) -> int:
    return reader.integer("tc", minimum=0, maximum=CLASSES - 1)
