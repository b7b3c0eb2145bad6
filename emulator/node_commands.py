"""PURE: commands for single nodes of a fabric, in the form of Mininet's command line."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from topologies.errors import SpecError, UnknownNameError

FLAG = "--exec"


@dataclass(frozen=True)
class NodeCommand:
    """A shell command in a node, such as ``h1 ping -c1 h5``.

    Attributes:
        node: where it runs.
        line: what runs, still with names of nodes.
    """

    node: str
    line: str

    def __str__(self) -> str:
        return f"{self.node} {self.line}"


def parse_command(text: str, nodes: Collection[str]) -> NodeCommand:
    """``NODE COMMAND ...``; SpecError when there is no such node or no command."""
    node, _, line = text.strip().partition(" ")
    if not line.strip():
        raise SpecError(FLAG, text, "is not NODE COMMAND", 'write e.g. --exec "h1 ping -c1 h5"')
    if node not in nodes:
        raise UnknownNameError(FLAG, "node of the fabric", node, nodes)
    return NodeCommand(node, line.strip())


def with_addresses(line: str, address_of: Callable[[str], str | None]) -> str:
    """The line with names of hosts replaced by their addresses, as Mininet's command line does.

    Args:
        line: words separated by blanks; only whole words are names.
        address_of: address of a host; None for every other word.
    """
    return " ".join(address_of(word) or word for word in line.split(" "))
