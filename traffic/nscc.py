"""NSCC, the sender's congestion window of Ultra Ethernet: marks and delay together. PURE.

Network-signalled congestion control, Ultra Ethernet specification 1.0, with the constants of the
consortium's htsim. Two signals of each acknowledgement, the mark and the queueing delay (round
trip less the unloaded one), choose one of four reactions:

    no mark, delay below target   proportional growth, or fast growth when there is no delay at all
    no mark, delay above target   fair growth
    mark, delay below target      none: the packet's path is avoided instead
    mark, delay above target      multiplicative decrease, once per round trip

Each trimmed packet takes its own size off the window. When packets are lost or the delay is
extreme, the window becomes what arrived in the last round trip (quick adapt). Growth is gathered
and applied after some packets. One acknowledgement may stand for many packets; then it counts for
the mean delay as the acknowledgements of their own would.

Windows are bytes on the wire, times ns.
"""

from __future__ import annotations

from traffic.uet_params import UetParams

_REFERENCE_RTT_NS = 12_000
_REFERENCE_BDP_BYTES = 100e9 * 12e-6 / 8
_TARGET_TRIMMING = 0.75
_TARGET_DROPPING = 1.0
_PACKETS_OF_AN_ACK = 4
_NO_CONGESTION_SHARE = 0.25


class Nscc:
    """The congestion window of one connection.

    Args:
        params: the parameter set.
        packet_bytes: wire bytes of a full packet.
        rate_bps: line rate of the sender.
        round_trip_ns: unloaded round trip of a full packet and its acknowledgement, longest path.
        trimming: whether switches trim what they cannot take.

    Attributes:
        window: bytes that may be in flight.
        max_window: most that it grows to.
        mean_delay_ns: running mean of the queueing delay.
        base_ns: unloaded round trip of this connection's paths: the shortest one seen.
        target_ns: queueing delay that is aimed for.
    """

    __slots__ = (
        "_achieved", "_adapt_at_ns", "_adapt_bytes", "_cut_at_ns", "_eta", "_fair", "_fast",
        "_fast_bytes", "_fast_share", "_fulfilled_at_ns", "_gained", "_ignored", "_packet",
        "_params", "_period_ns", "_proportional", "_rate_bps", "_received", "_to_ignore",
        "_triggered", "base_ns", "max_window", "mean_delay_ns", "target_ns", "window",
    )  # fmt: skip

    def __init__(
        self,
        params: UetParams,
        packet_bytes: int,
        rate_bps: int,
        round_trip_ns: int,
        trimming: bool,
    ) -> None:
        self._params, self._packet, self._rate_bps = params, packet_bytes, rate_bps
        self._period_ns = self.base_ns = float(round_trip_ns)
        times = params.target_times
        if times is None:
            times = _TARGET_TRIMMING if trimming else _TARGET_DROPPING
        self.target_ns = times * round_trip_ns
        self._scale(packet_bytes, self._bdp_bytes(round_trip_ns) / _REFERENCE_BDP_BYTES)
        self.max_window = self.window = 0.0
        self._limit()
        self.window = self.max_window
        self.mean_delay_ns = 0.0
        self._gained = self._received = self._fast_bytes = self._achieved = 0.0
        self._ignored = self._to_ignore = 0.0
        self._fast = self._triggered = False
        self._adapt_at_ns = self._fulfilled_at_ns = self._cut_at_ns = -1.0

    def _scale(self, packet_bytes: int, by_bdp: float) -> None:
        """Constants of the source, which hold at 100 Gbit/s and 12 us, for this network."""
        params = self._params
        by_target = self.target_ns / _REFERENCE_RTT_NS
        gain = params.proportional_packets * packet_bytes * by_bdp * by_target
        self._proportional = gain / self.target_ns if self.target_ns else 0.0
        self._fair = params.fair_packets * packet_bytes * by_bdp
        self._eta = params.eta_packets * packet_bytes * by_bdp
        self._fast_share = params.fast_share * by_bdp

    def _bdp_bytes(self, round_trip_ns: float) -> float:
        return round_trip_ns * self._rate_bps / 8e9

    def _limit(self) -> None:
        least = float(self._params.min_packets * self._packet)
        self.max_window = max(least, self._params.window_times * self._bdp_bytes(self.base_ns))
        self._adapt_bytes = self._params.adapt_share * self.max_window

    def on_ack(
        self, now_ns: int, clean: int, marked: int, round_trip_ns: float | None, in_flight: int
    ) -> None:
        """Packets were acknowledged for the first time.

        Args:
            now_ns: when the acknowledgement arrived.
            clean: wire bytes of those that arrived without a mark.
            marked: wire bytes of those with one.
            round_trip_ns: that of one of them, without the time that the receiver kept it; None
                when there is no valid sample.
            in_flight: wire bytes in flight now.
        """
        self._achieved += clean + marked
        self._received += clean + marked
        self._ignored += clean + marked
        delay_ns = self.mean_delay_ns
        if round_trip_ns is not None:
            delay_ns = self._sample(round_trip_ns, clean, marked)
        if marked:
            self._react(now_ns, True, delay_ns, marked, in_flight)
        if clean:
            self._react(now_ns, False, delay_ns, clean, in_flight)

    def on_trimmed(self, now_ns: int, nbytes: int, in_flight: int) -> None:
        """Packets of so many bytes came cut to their headers."""
        self._ignored += nbytes
        packets = max(1, round(nbytes / self._packet))
        self._average(self._period_ns, packets)  # a trimmed packet stands for a full queue
        self._triggered = True
        if not self._adapts(now_ns, True, True, 0.0, in_flight):
            self.window -= nbytes
            self._clamp()

    def on_timeout(self, nbytes: int) -> None:
        """Packets of so many bytes are taken for lost."""
        self.window -= nbytes
        self._clamp()

    def _sample(self, round_trip_ns: float, clean: int, marked: int) -> float:
        """The queueing delay of a sample; it counts for as many acknowledgements as there were."""
        if round_trip_ns < self.base_ns:
            self.base_ns = round_trip_ns
            self._limit()
        delay_ns = round_trip_ns - self.base_ns
        if clean:
            count = max(1, round(clean / self._packet / _PACKETS_OF_AN_ACK))
            calm = delay_ns > self.target_ns  # no mark in spite of it: not congested any more
            self._average(_NO_CONGESTION_SHARE * self.base_ns if calm else delay_ns, count)
        if marked:
            self._average(delay_ns, max(1, round(marked / self._packet)))
        return delay_ns

    def _average(self, delay_ns: float, count: int) -> None:
        keep = (1 - self._params.delay_gain) ** count
        self.mean_delay_ns = keep * self.mean_delay_ns + (1 - keep) * delay_ns

    def _react(
        self, now_ns: int, marked: bool, delay_ns: float, nbytes: int, in_flight: int
    ) -> None:
        if self._adapts(now_ns, False, marked, delay_ns, in_flight):
            return
        if marked:
            if delay_ns >= self.target_ns:
                self._decrease(now_ns)
        elif delay_ns >= self.target_ns:
            self._gained += self._fair * nbytes
        else:
            self._grow(nbytes, delay_ns)
        self._clamp()
        waited_ns = now_ns - self._fulfilled_at_ns
        enough = self._params.fulfil_packets * self._packet
        if self._received > enough or waited_ns > self._period_ns:
            self._fulfil(now_ns, waited_ns)

    def _grow(self, nbytes: int, delay_ns: float) -> None:
        """Fast while there has been no delay for a whole window, else in proportion to the room."""
        if delay_ns < self._params.fast_delay_ns:
            self._fast_bytes += nbytes
            self._fast = self._fast or self._fast_bytes > self.window
        else:
            self._fast_bytes, self._fast = 0.0, False
        if self._fast:
            self.window += self._fast_share * nbytes
        else:
            self._gained += self._proportional * nbytes * (self.target_ns - delay_ns)

    def _decrease(self, now_ns: int) -> None:
        self._fast_bytes, self._fast = 0.0, False
        mean_ns = self.mean_delay_ns
        if mean_ns > self.target_ns and now_ns - self._cut_at_ns > self.base_ns:
            cut = self._params.gamma * (mean_ns - self.target_ns) / mean_ns
            self.window *= max(1 - cut, self._params.least_cut)
            self._cut_at_ns = now_ns

    def _fulfil(self, now_ns: int, waited_ns: float) -> None:
        """Applies what was gained, and eta once per round trip."""
        self.window += self._gained / self.window
        if waited_ns >= self._period_ns:
            self.window += self._eta
            self._fulfilled_at_ns = now_ns
        self._gained = self._received = 0.0
        self._clamp()

    def _adapts(
        self, now_ns: int, lost: bool, marked: bool, delay_ns: float, in_flight: int
    ) -> bool:
        """Quick adapt: True when nothing else is to be done about this acknowledgement."""
        adapts = False
        if marked and self._ignored < self._to_ignore:
            adapts = True  # sent before the window was adapted
        elif now_ns > self._adapt_at_ns:
            extreme = delay_ns > self._params.adapt_times * self.target_ns
            wanted = self._adapt_at_ns >= 0 and (self._triggered or lost or extreme)
            if wanted and self._achieved < self._adapt_bytes:
                self.window = self._achieved
                self._clamp()
                self._to_ignore, self._ignored = float(in_flight), 0.0
                self._triggered, adapts = False, True
            self._achieved = 0.0
            self._adapt_at_ns = now_ns + self.base_ns + self.target_ns
        if adapts:
            self._gained = self._received = 0.0
        return adapts

    def _clamp(self) -> None:
        least = float(self._params.min_packets * self._packet)
        self.window = min(max(self.window, least), self.max_window)
