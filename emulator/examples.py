"""Where the example files are: in the checkout, or beside an installation (setup.cfg)."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from emulator import DISTRIBUTION
from topologies.errors import MachineError

_CHECKOUT = Path(__file__).resolve().parent.parent / "examples"
_INSTALLED = Path("share") / DISTRIBUTION / "examples"


def folders() -> tuple[Path, ...]:
    """Where they may be; a checkout's own come first."""
    bases = (sysconfig.get_path("data"), sysconfig.get_path("data", "posix_user"), "/usr/local")
    return (_CHECKOUT, *(Path(base) / _INSTALLED for base in dict.fromkeys(bases)))


def example(name: str) -> Path:
    """The example file of this name; MachineError when this installation came without."""
    looked = folders()
    for folder in looked:
        if (folder / name).is_file():
            return folder / name
    places = ", ".join(str(folder) for folder in looked)
    raise MachineError(f"the example {name} is not installed; looked in {places}")
