"""Mininet's command line over a fabric of ours."""

from __future__ import annotations

from typing import Any

from mininet.cli import CLI
from mininet.log import error, output

from emulator import DISTRIBUTION
from emulator.node_commands import with_addresses


class FabricCli(CLI):  # type: ignore[misc]
    """Mininet's own, but names become the addresses of the plan without asking the host first.

    Args:
        net: `LiveFabric.net`.
        addresses: host -> address.
    """

    prompt = f"{DISTRIBUTION}> "

    def __init__(self, net: Any, addresses: dict[str, str]) -> None:
        self._addresses = addresses
        super().__init__(net)

    def default(self, line: str) -> None:
        """Run a command on a node."""
        first, rest, line = self.parseline(line)
        if first not in self.mn:
            error(f"*** Unknown command: {line}\n")
            return
        if not rest:
            error(f"*** Please enter a command for node: {first} <cmd>\n")
            return
        node = self.mn[first]
        node.sendCmd(with_addresses(rest, self._addresses.get))
        self.waitForNode(node)

    def waitForNode(self, node: Any) -> None:  # noqa: N802 - Mininet's name
        """Print a node's output until its command has ended.

        Mininet's own hands what is typed meanwhile to the command; that is right for a person at
        a terminal, but would eat the commands that follow when they come from a file.
        """
        if self.isatty():
            super().waitForNode(node)
            return
        while node.waiting:
            output(node.monitor())
