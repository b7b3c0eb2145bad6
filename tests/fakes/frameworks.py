"""The controller frameworks that are installed, for tests that compare with them or start them."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from typing import Any

import pytest


def _param(root: str) -> Any:
    found = importlib.util.find_spec(root) is not None
    return pytest.param(
        root, marks=pytest.mark.skipif(not found, reason=f"{root} is not installed")
    )


FRAMEWORKS = [_param("ryu"), _param("os_ken")]
"""Parameters for ``pytest.mark.parametrize``; what is not installed is skipped with the reason."""


def parser_of(root: str) -> tuple[Any, Any]:
    """The OpenFlow 1.3 message classes of a framework, and a datapath to make them with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wsgi = importlib.import_module("eventlet.wsgi")
        if not hasattr(wsgi, "ALREADY_HANDLED"):
            wsgi.ALREADY_HANDLED = object()  # type: ignore[attr-defined]
        parser = importlib.import_module(f"{root}.ofproto.ofproto_v1_3_parser")
        protocol = importlib.import_module(f"{root}.ofproto.ofproto_protocol")
    return parser, protocol.ProtocolDesc(version=4)
