"""The keys of an inference service, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topologies.errors import SpecError
from topologies.reading import Reader
from traffic.workloads.arrivals import Arrivals, TraceWindow, read_arrivals, read_window
from traffic.workloads.base import WorkloadSpec, read_common, read_positive, resolve
from traffic.workloads.models import Model, as_model
from traffic.workloads.placement import HostSet, Placement, as_host_set, read_placement

KIND = "inference"
MODES = ("disaggregated", "aggregated")
DEFAULT_MODEL = "llama-3-70b"
DEFAULT_TFLOPS = 2496.0
"""Eight A800 (or A100) at 312 TFLOP/s in bf16, the server of the Mooncake paper (FAST 2025)."""
DEFAULT_MFU = 0.5
DEFAULT_TPOT_NS = 40_000_000
"""40 ms, the limit of MLPerf's interactive Llama-2-70B scenario."""
DEFAULT_SLO_NS = (2_000_000_000, 200_000_000)
"""TTFT and TPOT limits of MLPerf's Llama-2-70B server scenario."""


@dataclass(frozen=True)
class Servers:
    """The serving hosts.

    Attributes:
        prefill: those that take prompts.
        decode: those that generate tokens; None in aggregated mode, where prefill hosts do both.
    """

    prefill: HostSet
    decode: HostSet | None

    @property
    def sets(self) -> list[HostSet]:
        """Those that are there."""
        return [self.prefill] if self.decode is None else [self.prefill, self.decode]


@dataclass(frozen=True, kw_only=True)
class InferenceSpec(WorkloadSpec):
    """An inference service and its clients.

    Attributes:
        clients: hosts that send prompts.
        servers: hosts that serve.
        placement: order that numbers of hosts are taken from, clients first.
        source: where requests come from.
        model: the language model.
        mode: ``disaggregated`` or ``aggregated``.
        tflops: floating-point rate of a server, 1e12 per second.
        mfu: share of it that a prefill achieves.
        tpot_ns: time between two tokens of an answer at the decode server.
        slo_ttft_ns: limit of the time to first token.
        slo_tpot_ns: limit of the time per output token.
        channels: queue pairs that a key-value cache is split over.
        stream: True sends each token; False sends the first and the last of an answer only.
    """

    clients: HostSet
    servers: Servers
    placement: Placement
    source: TraceWindow | Arrivals
    model: Model
    mode: str
    tflops: float
    mfu: float
    tpot_ns: int
    slo_ttft_ns: int
    slo_tpot_ns: int
    channels: int
    stream: bool


def read(reader: Reader, folder: Path) -> InferenceSpec:
    """Read an inference service."""
    common = read_common(reader, KIND)
    mode = reader.choice("mode", MODES, "disaggregated", what="mode")
    slo = reader.mapping("slo", {})
    clients = reader.get("clients", as_host_set, HostSet(reader.at("clients"), 1))
    servers = _read_servers(reader, mode)
    sets = [clients, *servers.sets]
    spec = InferenceSpec(
        **common,
        clients=clients,
        servers=servers,
        placement=read_placement(reader, sets),
        source=_read_source(reader, folder),
        model=as_model(reader.raw("model", DEFAULT_MODEL), reader.at("model")),
        mode=mode,
        tflops=read_positive(reader, "tflops", DEFAULT_TFLOPS),
        mfu=reader.fraction("mfu", DEFAULT_MFU, allow_zero=False),
        tpot_ns=reader.duration("tpot", DEFAULT_TPOT_NS),
        slo_ttft_ns=slo.duration("ttft", DEFAULT_SLO_NS[0], allow_zero=False),
        slo_tpot_ns=slo.duration("tpot", DEFAULT_SLO_NS[1], allow_zero=False),
        channels=reader.integer("channels", 1, minimum=1),
        stream=reader.flag("stream", True),
    )
    slo.done()
    return spec


def _read_servers(reader: Reader, mode: str) -> Servers:
    """``servers``, of which the first half prefills; or ``prefill`` and ``decode``."""
    if mode == "aggregated":
        return Servers(reader.get("servers", as_host_set, HostSet(reader.at("servers"), 1)), None)
    if reader.has("prefill") or reader.has("decode"):
        reader.exclusive("servers", "prefill")
        reader.exclusive("servers", "decode")
        prefill = reader.get("prefill", as_host_set, HostSet(reader.at("prefill"), 1))
        return Servers(prefill, reader.get("decode", as_host_set, HostSet(reader.at("decode"), 1)))
    servers = reader.get("servers", as_host_set, HostSet(reader.at("servers"), 2))
    return _halves(servers)


def _halves(servers: HostSet) -> Servers:
    count = servers.count or 0
    if count < 2:
        rule = "is too few for prefill and decode on different servers"
        raise SpecError(servers.path, count, rule, "ask for 2, or write mode: aggregated")
    first = (count + 1) // 2
    prefill = HostSet(servers.path, first, servers.names[:first])
    return Servers(prefill, HostSet(servers.path, count - first, servers.names[first:]))


def _read_source(reader: Reader, folder: Path) -> TraceWindow | Arrivals:
    reader.exclusive("trace", "arrivals")
    requests = reader.integer("requests", None, minimum=1)
    if reader.has("trace"):
        file = resolve(folder, reader.text("trace"))
        return read_window(reader, file, reader.at("trace"), requests)
    if reader.has("arrivals"):
        return read_arrivals(reader.mapping("arrivals"), requests)
    rule = "has neither trace nor arrivals"
    way_out = "write trace: file.csv, or arrivals: {process: poisson, rate: 5 /s, requests: 20}"
    raise SpecError(reader.path or KIND, KIND, rule, way_out)
