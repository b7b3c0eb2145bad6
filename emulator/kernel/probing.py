"""Tries the kernel features that a run needs, in a scratch namespace that is removed again."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

from emulator.kernel import links, netlink, netns, queues

_INDEX = 10
_MTU = 1500
_RATE_BPS = 10_000_000
_MODULE_HINT = "the kernel lacks it; install the distribution's full kernel (linux-modules-extra)"


def features(program_fd: int | None) -> Iterator[tuple[str, bool, str]]:
    """(feature, whether it works, what to do otherwise).

    Args:
        program_fd: a loaded eBPF program to attach; None when there is none to try with.
    """
    name = f"fl-probe-{secrets.token_hex(3)}"
    try:
        netns.create([name], lambda _name: None)
    except OSError:
        yield "network namespaces", False, "the kernel refuses them (a container without rights?)"
        return
    try:
        yield "network namespaces", True, ""
        yield from _inside(name, program_fd)
    finally:
        netns.remove(name)


def _inside(name: str, program_fd: int | None) -> Iterator[tuple[str, bool, str]]:
    fd = netns.open_fd(name)
    try:
        with netns.entered(fd), netlink.Session() as session:
            ends = [links.End(f"probe{n}", _INDEX + n, f"02:00:00:00:00:0{n}", fd) for n in (1, 2)]
            pair = links.veth_pair(ends[0], ends[1], _MTU)
            shaper = queues.shaper(_INDEX + 1, "probe1", _RATE_BPS, _LEAVES, _MTU)
            tries: list[tuple[str, list[netlink.Message]]] = [
                ("veth", [pair]),
                ("clsact", [queues.clsact(_INDEX + 1, "probe1")]),
                ("HTB", shaper),
            ]
            if program_fd is not None:
                attach = queues.bpf_filter(_INDEX + 1, "probe1", program_fd, 1, egress=True)
                tries.insert(2, ("eBPF filters", [attach]))
            yield from ((what, _works(session, messages), _MODULE_HINT) for what, messages in tries)
    finally:
        os.close(fd)


_LEAVES = tuple(queues.LeafClass(0, 1) for _ in range(8))


def _works(session: netlink.Session, messages: list[netlink.Message]) -> bool:
    try:
        session.run(messages)
    except OSError:
        return False
    return True
