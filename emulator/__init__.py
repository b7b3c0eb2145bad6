"""Everything that touches the machine: spec, plan, data plane, clock, run, verdict, report.

`emulator.spec`, `emulator.plan` and what these import are pure: they need no root, open no socket
and start no process. The version stands in ``setup.cfg`` only.
"""

from __future__ import annotations

import configparser
from importlib import metadata
from pathlib import Path

DISTRIBUTION = "fabriclab"


def _version() -> str:
    """The installed distribution's version, or that of the checkout when nothing is installed."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        setup = configparser.ConfigParser()
        setup.read(Path(__file__).resolve().parent.parent / "setup.cfg", encoding="utf-8")
        return setup.get("metadata", "version", fallback="unknown")


__version__ = _version()
