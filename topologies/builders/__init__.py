"""Builders of fabrics, one file per kind; importing this package registers them all.

Every module here whose name does not start with an underscore is imported, so a new kind is a
new file and nothing else.
"""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")
