"""The one module that talks to Mininet: its objects over namespaces and links that we made.

`net['h1'].cmd('ping ...')`, `net.pingAll()` and Mininet's CLI work as its users expect. But links
exist before the objects do (built in batches), no shell starts until a command is asked for, and
no host-wide setting is changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mininet.link import Intf, Link
from mininet.net import Mininet
from mininet.node import Node

from topologies.addressing import dpid, host_ip
from topologies.model import Fabric, Port


class NamespaceNode(Node):  # type: ignore[misc]
    """A Mininet node in a named namespace; its shell starts with the first command."""

    def __init__(self, name: str, netns: str, **params: Any) -> None:
        self.netns = netns
        self._may_start = False
        super().__init__(name, **{**params, "inNamespace": False})

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 - Mininet's name
        """Starts the shell, once somebody needs it."""
        if self._may_start:
            super().startShell(mnopts)

    def _popen(self, cmd: list[str], **params: Any) -> Any:
        return super()._popen(["ip", "netns", "exec", self.netns, *cmd], **params)

    def _need_shell(self) -> None:
        if self.shell is None:
            self._may_start = True
            self.startShell()

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:  # noqa: N802
        """As Mininet's."""
        self._need_shell()
        super().sendCmd(*args, **kwargs)

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """As Mininet's."""
        self._need_shell()
        return super().cmd(*args, **kwargs)

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """As Mininet's; starts a process in the namespace without a shell."""
        kwargs["mncmd"] = []
        return super().popen(*args, **kwargs)

    def addIntf(  # noqa: N802
        self,
        intf: Any,
        port: int | None = None,
        moveIntfFn: Callable[..., None] | None = None,  # noqa: N803
    ) -> None:
        """Records an interface, which is where it belongs already."""
        super().addIntf(intf, port, moveIntfFn=_leave)


class FabricHost(NamespaceNode):
    """A host."""


class FabricSwitch(NamespaceNode):
    """A switch: a bridge of the run's Open vSwitch."""

    def __init__(
        self, name: str, netns: str, dpctl: Callable[..., str], dpid: str = "", **params: Any
    ) -> None:
        self._dpctl, self.dpid = dpctl, dpid
        super().__init__(name, netns, **params)

    def dpctl(self, command: str, *args: str) -> str:
        """Output of ovs-ofctl for this bridge."""
        return self._dpctl(command, self.name, *args)

    def connected(self) -> bool:
        """True: the run waits for the controller before it goes on."""
        return True

    def start(self, controllers: list[Any]) -> None:
        """Nothing to do: the bridge runs."""

    def defaultIntf(self) -> Any:  # noqa: N802
        """No interface stands for the switch itself."""
        return None


class FabricIntf(Intf):  # type: ignore[misc]
    """An interface whose address, MAC and queues were set when it was made."""

    def config(self, mac: str | None = None, ip: str | None = None, **_params: Any) -> None:
        """Records instead of running commands."""
        if mac:
            self.mac = mac
        if ip:
            self.ip, self.prefixLen = ip.split("/")

    def delete(self) -> None:
        """It goes with its namespace."""


class FabricLink(Link):  # type: ignore[misc]
    """A link that exists already."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_kwargs: Any) -> None:  # noqa: N802
        """Makes nothing."""


def _leave(*_args: Any) -> None:
    """Moves no interface anywhere."""


def wrap(
    fabric: Fabric,
    netns_of: Callable[[str], str],
    mac_of: Callable[[Port], str],
    dpctl: Callable[..., str],
    prefix: int,
) -> Any:
    """A `Mininet` of all nodes and links of a running fabric.

    Args:
        fabric: what it is.
        netns_of: namespace of each node.
        mac_of: MAC address of each port.
        dpctl: runs ovs-ofctl: (command, bridge, arguments) -> output.
        prefix: length of the on-link prefix of hosts' addresses.
    """
    Mininet.inited = True  # its initialisation would change settings of the whole machine
    net = Mininet(controller=None, link=FabricLink, build=False)
    for node in fabric.nodes:
        if node.is_switch:
            net.addSwitch(node.name, cls=FabricSwitch, netns=netns_of(node.name), dpctl=dpctl,
                          dpid=f"{dpid(node):016x}")  # fmt: skip
        else:
            net.addHost(node.name, cls=FabricHost, netns=netns_of(node.name))
    for link in fabric.links:
        a, b = fabric.ports[2 * link.id], fabric.ports[2 * link.id + 1]
        net.addLink(
            net[link.a], net[link.b], a.number, b.number, intf=FabricIntf,
            params1=_parameters(fabric, a, prefix), params2=_parameters(fabric, b, prefix),
            addr1=mac_of(a), addr2=mac_of(b),
        )  # fmt: skip
    net.built = True
    return net


def _parameters(fabric: Fabric, port: Port, prefix: int) -> dict[str, str]:
    if fabric.by_name[port.node].is_switch:
        return {}
    plane = fabric.link_of(port).plane
    return {"ip": f"{host_ip(fabric, port.node, plane)}/{prefix}"}
