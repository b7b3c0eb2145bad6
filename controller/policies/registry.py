"""Routing policies by name; a new one is a file beside this and one line here."""

from __future__ import annotations

from collections.abc import Callable

from controller.policies import ecmp, static, wcmp
from controller.policies.base import Policy
from topologies.errors import UnknownNameError
from topologies.model import Fabric
from topologies.reading import Reader

Builder = Callable[[Reader, Fabric], Policy]
"""Makes a policy from its options (the keys of ``routing`` besides ``policy``) and the fabric."""

DEFAULT = "ecmp"
_builders: dict[str, Builder] = {}


def register(name: str, builder: Builder) -> None:
    """Make a policy known under a name; a name that is taken is an error."""
    if name in _builders:
        raise ValueError(f"policy {name!r} is registered twice")
    _builders[name] = builder


def names() -> tuple[str, ...]:
    """Names of all policies, sorted."""
    return tuple(sorted(_builders))


def build_policy(raw: object, fabric: Fabric, path: str = "routing") -> Policy:
    """The policy of a ``routing`` section such as ``{policy: ecmp}``.

    Args:
        raw: the section as it was read from the file.
        fabric: what it routes in; names in the options must exist there.
        path: key path of the section, for errors.

    Raises:
        SpecError: an unknown policy or option, or a value that is wrong.
    """
    with Reader(raw, path) as options:
        name = options.text("policy", DEFAULT)
        if name not in _builders:
            raise UnknownNameError(options.at("policy"), "policy", name, _builders)
        return _builders[name](options, fabric)


register("ecmp", ecmp.build)
register("wcmp", wcmp.build)
register("static", static.build)
