"""The one import of the controller framework: Ryu, or os-ken where Ryu cannot run.

Both have the same interface; os-ken is the maintained one, Ryu the one that people know. Importing
this module chooses and imports, but patches nothing: the controller's process calls `patch` first.
The environment variable FABRICLAB_SDN (``ryu`` or ``os_ken``) forces one. Nothing outside of
`controller.app` and `controller.openflow` needs this module.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import os
import socket
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from topologies.errors import MachineError, UnknownNameError

DISTRIBUTION = {"ryu": "ryu", "os_ken": "os-ken"}
VARIABLE = "FABRICLAB_SDN"
LOCALHOST = "127.0.0.1"
SOCKET_TIMEOUT_S = 60.0
"""How long a switch may take to read what it is sent, seconds; the framework's default is 5."""

Handler = TypeVar("Handler", bound=Callable[..., object])


def _prepare(root: str) -> None:
    """What has to be true before the framework is imported."""
    # Else eventlet imports a resolver of its own: a fifth of the start, and no name is looked up.
    os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
    if root == "os_ken":
        os.environ.setdefault("OSKEN_HUB_TYPE", "eventlet")
        return
    wsgi = importlib.import_module("eventlet.wsgi")
    if not hasattr(wsgi, "ALREADY_HANDLED"):  # removed in eventlet 0.30.3; Ryu 4.34 imports it
        wsgi.ALREADY_HANDLED = object()  # type: ignore[attr-defined]


def _put_in_order() -> None:
    """What is due, or has come, at one moment is handled in an order that repeats.

    eventlet goes by the addresses of objects in memory, which depend on as little as the length of
    path names. Under the virtual clock many things happen at one moment, and runs must repeat.
    """
    timer = importlib.import_module("eventlet.hubs.timer").Timer
    listener = importlib.import_module("eventlet.hubs.hub").FdListener
    if "number" in vars(timer):
        return
    numbers, construct = itertools.count(), timer.__init__

    def numbered(self: Any, *args: Any, **keys: Any) -> None:
        self.number = next(numbers)
        construct(self, *args, **keys)

    timer.number = 0
    timer.__init__ = numbered
    timer.__lt__ = lambda self, other: self.number < other.number
    listener.__hash__ = lambda self: hash((self.fileno, self.evtype == "read"))


def _import(root: str) -> str:
    """Import all that we use of a framework; gives its name and version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eventlet announces its end at every import
        _prepare(root)
        _put_in_order()
        for name in _MODULES:
            importlib.import_module(f"{root}.{name}")
    return f"{DISTRIBUTION[root]} {importlib.metadata.version(DISTRIBUTION[root])}"


_MODULES = (
    "cfg", "lib.hub", "base.app_manager", "controller.controller", "controller.handler",
    "controller.ofp_event", "controller.ofp_handler", "ofproto.ofproto_v1_3",
    "ofproto.ofproto_v1_3_parser",
)  # fmt: skip


def choose() -> tuple[str, str]:
    """The framework's package and its name with version.

    Raises:
        UnknownNameError: FABRICLAB_SDN names another package.
        MachineError: none can be imported; says why.
    """
    forced = os.environ.get(VARIABLE)
    if forced is not None and forced not in DISTRIBUTION:
        raise UnknownNameError(VARIABLE, "controller framework", forced, DISTRIBUTION)
    failures = []
    for root in [forced] if forced else DISTRIBUTION:
        try:
            return root, _import(root)
        except Exception as error:  # noqa: BLE001 - broken installations fail in every way
            failures.append(f"{root}: {type(error).__name__}: {error}")
    raise MachineError(
        f"no controller framework can be imported ({'; '.join(failures)}); "
        "run scripts/provision.sh, or install os-ken and eventlet"
    )


ROOT, NAME = choose()


def _module(name: str) -> Any:
    return importlib.import_module(f"{ROOT}.{name}")


app_manager = _module("base.app_manager")
hub = _module("lib.hub")
ofp_event = _module("controller.ofp_event")
ofproto_v1_3 = _module("ofproto.ofproto_v1_3")
ofproto_v1_3_parser = _module("ofproto.ofproto_v1_3_parser")
_handler = _module("controller.handler")

HANDSHAKE: str = _handler.HANDSHAKE_DISPATCHER
CONFIG: str = _handler.CONFIG_DISPATCHER
MAIN: str = _handler.MAIN_DISPATCHER
DEAD: str = _handler.DEAD_DISPATCHER

_Base: Any = getattr(app_manager, {"ryu": "RyuApp", "os_ken": "OSKenApp"}[ROOT])


class App(_Base):  # type: ignore[misc]
    """Base of controller applications, of whichever framework."""


def handles(event: type, *states: str) -> Callable[[Handler], Handler]:
    """Decorator of a method that handles an event while its switch is in one of these states."""
    decorate: Callable[[Handler], Handler] = _handler.set_ev_cls(event, list(states))
    return decorate


def patch() -> None:
    """Make blocking calls of the standard library yield to other green threads."""
    hub.patch()


def run(apps: Sequence[type[App]], listen_port: int, **arguments: object) -> None:
    """Run applications and listen for switches on 127.0.0.1; returns only by an exception.

    Args:
        apps: application classes; each is made with `arguments`.
        listen_port: TCP port for OpenFlow. Nothing else is served (no WSGI).
        **arguments: keyword arguments of the applications.

    Raises:
        MachineError: the port is taken, or the listener has ended.
    """
    _check_port(listen_port)
    _configure(listen_port)
    manager = app_manager.AppManager.get_instance()
    manager.load_apps([f"{ROOT}.controller.ofp_handler"])
    for app in apps:
        manager.applications_cls[f"{app.__module__}.{app.__name__}"] = app
    services = manager.instantiate_apps(**arguments)
    hub.joinall(services)
    raise MachineError(f"the OpenFlow listener on {LOCALHOST}:{listen_port} has ended")


def _configure(listen_port: int) -> None:
    config = _module("cfg").CONF
    config([], project="fabriclab", default_config_files=[], default_config_dirs=[])
    config.set_override("ofp_listen_host", LOCALHOST)
    config.set_override("ofp_tcp_listen_port", listen_port)
    config.set_override("socket_timeout", SOCKET_TIMEOUT_S)


def _check_port(port: int) -> None:
    """The framework only logs when it cannot listen, and goes on; so try it first."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOCALHOST, port))
            probe.listen()
        except OSError as error:
            raise MachineError(
                f"cannot listen on {LOCALHOST}:{port}: {error.strerror}; "
                "end the program that uses the port, or choose another openflow_port"
            ) from error
