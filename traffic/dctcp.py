"""DCTCP congestion control: the window of a sender to which every mark is echoed. PURE.

Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010; RFC 8257. Alpha follows the share of
marked packets, window by window: alpha = (1 - g) alpha + g F. A window of data with a mark cuts by
alpha / 2, once. RFC 8257 lists that at the window's end; stacks do it at the first mark and let the
window grow again when the data sent before is acknowledged. Without a mark it grows as TCP's does:
by what is acknowledged in slow start, by one packet per round trip afterwards. A loss halves it, a
timeout makes it least (RFC 5681).

Windows are packets. Sequence numbers never wrap here.
"""

from __future__ import annotations

from traffic.dctcp_params import HPCC, LINUX, PARAMETER_SETS, RFC8257, DctcpParams

__all__ = ["HPCC", "LINUX", "PARAMETER_SETS", "RFC8257", "DctcpParams", "DctcpWindow"]

_NO_THRESHOLD = float("inf")
_LOSS_FACTOR = 0.5


class DctcpWindow:
    """The congestion window of one flow.

    Args:
        params: the parameter set.
        bdp_packets: bandwidth-delay product of the path.

    Attributes:
        alpha: estimate of the share of marked packets, 0-1.
        window: packets that may be in flight; fractions count towards later ones.
    """

    __slots__ = (
        "_acked", "_cut_end", "_marked", "_params", "_peak", "_threshold", "_window_end", "alpha",
        "window",
    )  # fmt: skip

    def __init__(self, params: DctcpParams, bdp_packets: int) -> None:
        self._params = params
        initial = bdp_packets if params.initial_packets is None else params.initial_packets
        self.window = self._at_least(initial)
        self._threshold = _NO_THRESHOLD if params.slow_start else self.window
        self.alpha = params.initial_alpha
        self._acked = self._marked = self._peak = 0
        self._window_end = self._cut_end = 0

    def on_sent(self, in_flight: int) -> None:
        """Packets were sent, and so many are in flight now: only a window that is used grows."""
        self._peak = max(self._peak, in_flight)

    def on_ack(self, oldest: int, next_psn: int, acked: int, marked: int) -> None:
        """Packets were acknowledged for the first time.

        Args:
            oldest: the first sequence number that is not acknowledged now.
            next_psn: the sequence number of the next new packet.
            acked: how many packets were acknowledged.
            marked: how many of them arrived with CE.
        """
        self._acked += acked
        self._marked += marked
        was_marked, peak = self._marked > 0, self._peak
        ended = oldest > self._window_end
        if ended:
            self._end_window(oldest, next_psn)
        if self._params.cut_at_once:
            self._react_at_once(oldest, next_psn, acked, marked, peak)
        elif ended and was_marked:
            self._cut(1 - self.alpha / 2, next_psn)
        elif not was_marked and oldest > self._cut_end:
            self._grow(acked, self._params.increase_packets if ended else 0.0, peak)

    def _react_at_once(
        self, oldest: int, next_psn: int, acked: int, marked: int, peak: int
    ) -> None:
        after_cut = min(acked, oldest - self._cut_end)
        if after_cut <= 0:
            return
        if marked > acked - after_cut:  # more than those that were sent before the cut
            self._cut(1 - self.alpha / 2, next_psn)
        elif not marked:
            self._grow(acked, self._params.increase_packets * acked / self.window, peak)

    def on_loss(self, oldest: int, next_psn: int) -> None:
        """Something was lost; it counts once for each window of data, as a mark does."""
        if oldest >= self._cut_end:
            self._cut(_LOSS_FACTOR, next_psn)

    def on_timeout(self) -> None:
        """Nothing was acknowledged for too long, so nothing counts as in flight any more."""
        self._threshold = self._at_least(self.window * _LOSS_FACTOR)
        self.window = self._at_least(0)
        self._peak = 0

    def _end_window(self, oldest: int, next_psn: int) -> None:
        """The data of an observation window is acknowledged; the next one begins."""
        share = self._marked / self._acked
        self.alpha += self._params.g * (share - self.alpha)
        self._acked = self._marked = 0
        self._window_end = next_psn
        self._peak = next_psn - oldest

    def _cut(self, factor: float, next_psn: int) -> None:
        self.window = self._threshold = self._at_least(self.window * factor)
        self._cut_end = next_psn

    def _grow(self, acked: int, step: float, peak: int) -> None:
        """Without marks: in slow start by what was acknowledged, then by a step."""
        if self.window < self._threshold:
            if self.window < 2 * peak:
                self.window = min(self.window + acked, self._threshold)
        elif peak >= int(self.window):
            self.window += step

    def _at_least(self, window: float) -> float:
        return max(float(window), float(self._params.min_packets))
