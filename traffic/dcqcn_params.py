"""Published parameter sets of DCQCN, as data with their sources.

Times are ns, rates bit/s, target units. Where a source's values belong to one line rate, the steps
grow with the line rate, so that a step stays the same share of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

_US = 1_000
_MB = 1_000_000
_MBPS = 1_000_000
_GBPS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class DcqcnParams:
    """One published set of DCQCN parameters.

    Attributes:
        name: what a user writes to choose it.
        source: where the values come from.
        decoupled: True for the adapter's rule, False for the paper's.
        cnp_interval_ns: least time between two CNPs of a flow; 0 = one per marked packet.
        cut_interval_ns: grid on which the decoupled rule evaluates cuts.
        alpha_interval_ns: time after which alpha is updated again.
        g: weight of one alpha update.
        increase_interval_ns: time between two increases by the timer.
        increase_bytes: bytes between two increases by the byte counter; None = no byte counter.
        threshold: number of increases that are fast recovery (F).
        additive_bps: step of additive increase (R_AI).
        hyper_bps: step of hyper increase (R_HAI); None = additive for ever.
        min_rate_bps: floor of the rate; None = one additive step.
        reference_rate_bps: line rate at which both steps hold; they grow in proportion to the line
            rate. None = the steps are absolute.
        initial_alpha: alpha before the first CNP.
        clamp_target: whether each cut sets the target rate to the current rate; if not, only the
            first cut after an increase by the timer does.
    """

    name: str
    source: str
    decoupled: bool
    cnp_interval_ns: int
    cut_interval_ns: int
    alpha_interval_ns: int
    g: float
    increase_interval_ns: int
    increase_bytes: int | None
    threshold: int
    additive_bps: int
    hyper_bps: int | None
    min_rate_bps: int | None
    reference_rate_bps: int | None
    initial_alpha: float = 1.0
    clamp_target: bool = True

    def step_bps(self, step_bps: int, line_rate_bps: int) -> float:
        """An increase step at this line rate."""
        if self.reference_rate_bps is None:
            return float(step_bps)
        return step_bps * line_rate_bps / self.reference_rate_bps


PAPER = DcqcnParams(
    name="paper",
    source="DCQCN paper (SIGCOMM 2015), 40 Gbit/s; it gives no hyper increase and no floor",
    decoupled=False,
    cnp_interval_ns=50 * _US,
    cut_interval_ns=50 * _US,
    alpha_interval_ns=55 * _US,
    g=1 / 256,
    increase_interval_ns=55 * _US,
    increase_bytes=10 * _MB,
    threshold=5,
    additive_bps=40 * _MBPS,
    hyper_bps=None,
    min_rate_bps=None,
    reference_rate_bps=40 * _GBPS,
)
NS3_RDMA = DcqcnParams(
    name="ns3-rdma",
    source="sample configuration of the DCQCN authors' ns3-rdma, 40 Gbit/s",
    decoupled=False,
    cnp_interval_ns=50 * _US,
    cut_interval_ns=50 * _US,
    alpha_interval_ns=55 * _US,
    g=1 / 256,
    increase_interval_ns=60 * _US,
    increase_bytes=300 * _MB,
    threshold=5,
    additive_bps=40 * _MBPS,
    hyper_bps=200 * _MBPS,
    min_rate_bps=None,
    reference_rate_bps=40 * _GBPS,
)
HPCC = DcqcnParams(
    name="hpcc",
    source='"dcqcn" of the HPCC simulations (SIGCOMM 2019); 5 and 50 Mbit/s steps at 25 Gbit/s',
    decoupled=True,
    cnp_interval_ns=0,
    cut_interval_ns=4 * _US,
    alpha_interval_ns=1 * _US,
    g=1 / 256,
    increase_interval_ns=300 * _US,
    increase_bytes=None,
    threshold=1,
    additive_bps=5 * _MBPS,
    hyper_bps=50 * _MBPS,
    min_rate_bps=1000 * _MBPS,
    reference_rate_bps=25 * _GBPS,
    clamp_target=False,
)
HPCC_PAPER = DcqcnParams(
    name="hpcc-paper",
    source='"dcqcn_paper" of the HPCC simulations (SIGCOMM 2019)',
    decoupled=True,
    cnp_interval_ns=0,
    cut_interval_ns=50 * _US,
    alpha_interval_ns=50 * _US,
    g=1 / 256,
    increase_interval_ns=55 * _US,
    increase_bytes=None,
    threshold=1,
    additive_bps=5 * _MBPS,
    hyper_bps=50 * _MBPS,
    min_rate_bps=1000 * _MBPS,
    reference_rate_bps=25 * _GBPS,
    clamp_target=False,
)
CONNECTX = DcqcnParams(
    name="connectx",
    source="firmware defaults of ConnectX adapters (dce_tcp_*, rpg_* of mlxconfig)",
    decoupled=True,
    cnp_interval_ns=4 * _US,
    cut_interval_ns=4 * _US,
    alpha_interval_ns=1 * _US,
    g=5 / 1024,
    increase_interval_ns=300 * _US,
    increase_bytes=32767,
    threshold=1,
    additive_bps=5 * _MBPS,
    hyper_bps=50 * _MBPS,
    min_rate_bps=1 * _MBPS,
    reference_rate_bps=None,
    initial_alpha=1023 / 1024,
    clamp_target=False,
)
PARAMETER_SETS = MappingProxyType(
    {params.name: params for params in (PAPER, NS3_RDMA, HPCC, HPCC_PAPER, CONNECTX)}
)
"""Every parameter set by its name."""
