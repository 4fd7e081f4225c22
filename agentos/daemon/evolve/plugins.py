"""Proposers of other distributions: what is installed beside agentos and has an entry point for it.

They are a person's own code, installed by a person, and run in the daemon's process with all that it may do.
What they propose is screened, replayed and judged like anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from agentos.domain import Layer
from agentos.errors import UserError
from agentos.ports import Adviser, Proposer, Snapshots

GROUP = "agentos.proposers"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


def with_plugins(
    proposers: Mapping[Layer, tuple[Proposer, ...]], adviser: Adviser | None, snapshots: Snapshots
) -> Mapping[Layer, tuple[Proposer, ...]]:
    """The proposers, and after them the installed ones in the layers that they name.

    Each entry point is called with the evolver's model (None where none is set up) and the registry's reader.
    Raises UserError when one cannot be loaded or does not fit.
    """
    found = {layer: [*known] for layer, known in proposers.items()}
    taken = {proposer.name for known in found.values() for proposer in known}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        made = _made(point, adviser, snapshots)
        layers = _layers(point, made, taken)
        taken.add(made.name)
        for layer in layers:
            found.setdefault(layer, []).append(made)
    return {layer: tuple(known) for layer, known in found.items()}


def _made(point: EntryPoint, adviser: Adviser | None, snapshots: Snapshots) -> Any:
    try:
        return point.load()(adviser, snapshots)
    except (ImportError, AttributeError, SyntaxError, TypeError, ValueError, OSError) as error:
        raise _unfit(point, f"it cannot be loaded ({type(error).__name__}: {error})") from error


def _layers(point: EntryPoint, made: Any, taken: Collection[str]) -> tuple[Layer, ...]:
    """The layers in which it is asked; raises UserError for one that is no proposer."""
    name = getattr(made, "name", None)
    if not callable(getattr(made, "propose", None)) or not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _unfit(point, "it has no `propose`, or no `name` of small letters, digits and hyphens")
    if name in taken:
        raise _unfit(point, f"there is a proposer {name} already")
    try:
        layers = tuple(Layer(layer) for layer in getattr(made, "layers", ()))
    except (TypeError, ValueError):
        layers = ()
    if not layers:
        raise _unfit(point, f"its `layers` are not some of {', '.join(Layer)}")
    return layers


def _unfit(point: EntryPoint, why: str) -> UserError:
    whose = point.dist.name if point.dist else "an installed distribution"
    return UserError(
        f"the proposer {point.name!r} of {whose} cannot be used: {why}. "
        "Mend it, or take it out with `pip uninstall`; see docs/understand/proposers.md."
    )
