"""``python -m controller CONFIG.json [PORT]``: run the controller until it is ended.

Exit codes: 0 after SIGTERM or SIGINT, 1 after an unhandled exception, 2 when the configuration or
the machine is wrong (one line on standard error). Rules stay in the switches in every case.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from controller import process
from controller.config import ControllerConfig, load_config
from topologies.errors import FabriclabError
from topologies.reading import as_integer

WRONG_INPUT = 2
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the controller; the result is the process's exit code."""
    given = _parse(arguments)
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, stream=sys.stderr)
    try:
        _run(_read(given))
    except FabriclabError as error:
        sys.stderr.write(f"fabriclab controller: {error}\n")
    return WRONG_INPUT


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m controller", description=__doc__)
    parser.add_argument("config", type=Path, help="the configuration, a JSON file")
    parser.add_argument("port", nargs="?", type=int, help="OpenFlow port; overrides the file's")
    return parser.parse_args(arguments)


def _read(given: argparse.Namespace) -> ControllerConfig:
    config = load_config(given.config)
    if given.port is None:
        return config
    port = as_integer(given.port, "PORT", minimum=1, maximum=65535)
    return dataclasses.replace(config, openflow_port=port)


def _run(config: ControllerConfig) -> None:
    from controller import sdn  # noqa: PLC0415 - may be missing, which is a message of its own

    sdn.patch()
    from controller.app import ControllerApp  # noqa: PLC0415 - after `patch`

    for framework in sdn.DISTRIBUTION:
        logging.getLogger(framework).setLevel(logging.WARNING)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: process.end(0, signal.Signals(number).name))
    sdn.run([ControllerApp], config.openflow_port, config=config)


if __name__ == "__main__":
    sys.exit(main())
