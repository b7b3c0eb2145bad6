"""From the agent's crossings to its calls, by the pause policies of the configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from controller import rpc
from controller.config import ControllerConfig
from controller.policies import pausing
from controller.policies.pausing import Crossing, Order, PausePolicy
from topologies.reading import Reader
from topologies.settings import SWITCH, resolve

METHOD = "pfc"
"""Of the agent's notifications."""

Call = tuple[str, rpc.Params]


class Pauser:
    """What the controller does about crossings.

    Args:
        config: with the rules that leave pauses to a policy.

    Attributes:
        crossings: of ports that are left to a policy, so far.
        orders: what the policies made of them.
    """

    def __init__(self, config: ControllerConfig) -> None:
        made: dict[str, PausePolicy] = {}
        self._policies: dict[tuple[str, int], PausePolicy] = {}
        for index, classes in resolve(config.pfc, config.fabric, "pfc").items():
            for tc, rule in classes.items():
                if rule.control == SWITCH:
                    continue
                if rule.control not in made:
                    made[rule.control] = pausing.build(rule.control, config.fabric, "pfc.control")
                self._policies[config.fabric.port(index).name, tc] = made[rule.control]
        self.crossings = self.orders = 0

    @property
    def wanted(self) -> bool:
        """Whether any port and class is left to a policy."""
        return bool(self._policies)

    def calls(self, params: Mapping[str, object]) -> list[Call]:
        """The agent's methods to call after a notification.

        Raises:
            SpecError: it is not what the agent says.
        """
        with Reader(params, METHOD) as reader:
            crossing = Crossing(
                reader.text("port"), reader.integer("tc"), reader.flag("paused"),
                reader.integer("held_bytes"),
            )  # fmt: skip
        policy = self._policies.get((crossing.port, crossing.tc))
        if policy is None:
            return []
        orders = policy.crossed(crossing)
        self.crossings += 1
        self.orders += len(orders)
        return [_call(order) for order in orders]


def _call(order: Order) -> Call:
    params: dict[str, object] = {"port": order.port, "tc": order.tc}
    if order.paused and order.duration_ns is not None:
        params["duration_ns"] = order.duration_ns
    return ("pause" if order.paused else "resume"), params
