"""Installed plug-ins in the daemon: proposers among those that ship, and what is on record of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from agentos.domain import Json, Layer
from agentos.ledger.store import Ledger
from agentos.plugins import registry
from agentos.plugins.registry import Plugin, PluginFailed
from agentos.ports import Adviser, Brief, Proposal, Proposer, Snapshots

_KNOWN = "plugins"  # memo: what was installed when the daemon started last

log = structlog.get_logger("agentos.plugins")


@dataclass(slots=True)
class InstalledProposer:
    """A proposer of another distribution, under the name of its entry point."""

    name: str
    layers: tuple[Layer, ...]
    signature: str  # as the record has it
    _made: Any

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """See ``ports.Proposer``."""
        found: Iterator[Proposal] = self._made.propose(brief)
        return found


class _ReadOnly:
    """The registry's reading side alone: who gets it can neither add a candidate nor move the pointer."""

    def __init__(self, snapshots: Snapshots) -> None:
        self.stable = lambda: snapshots.stable()
        self.files = lambda snapshot, prefix: snapshots.files(snapshot, prefix)
        self.names = lambda snapshot: snapshots.names(snapshot)

    stable: Any
    files: Any
    names: Any


def with_plugins(
    proposers: Mapping[Layer, tuple[Proposer, ...]], adviser: Adviser | None, snapshots: Snapshots
) -> Mapping[Layer, tuple[Proposer, ...]]:
    """The proposers, and after them the installed ones in the layers that they name.

    Each is made with the evolver's model (None where none is set up) and what reads the registry. One that cannot be
    used is named in the log and left out.
    """
    found = {layer: [*known] for layer, known in proposers.items()}
    for plugin in registry.installed("proposers"):
        try:
            made = _made(plugin, adviser, snapshots)
        except PluginFailed as error:
            log.warning("plug-in left out", why=str(error))
            continue
        for layer in made.layers:
            found.setdefault(layer, []).append(made)
    return {layer: tuple(known) for layer, known in found.items()}


def _made(plugin: Plugin, adviser: Adviser | None, snapshots: Snapshots) -> InstalledProposer:
    made = registry.make(plugin, adviser, _ReadOnly(snapshots))
    if (name := getattr(made, "name", None)) != plugin.name:
        raise plugin.failed(f"its `name` is {name!r:.60}, and its entry point's is {plugin.name!r}")
    try:
        layers = tuple(Layer(layer) for layer in getattr(made, "layers", ()))
    except (TypeError, ValueError):
        layers = ()
    if not layers:
        raise plugin.failed(f"its `layers` are not some of {', '.join(Layer)}")
    return InstalledProposer(plugin.name, layers, str(plugin), made)


def plugin_rows() -> Sequence[Mapping[str, Json]]:
    """What is installed, each with its state: "works", or "fails" with the reason. Imports all of them."""
    return [
        {
            "name": plugin.name,
            "kind": plugin.kind,
            "distribution": plugin.distribution,
            "version": plugin.version,
            "state": "fails" if why else "works",
            "reason": why,
        }
        for plugin, why in registry.everything()
    ]


def note_plugins(ledger: Ledger) -> None:
    """Into the audit log, where it is other than when the daemon started last: versions stand before what they did."""
    rows = plugin_rows()
    for row in rows:
        if row["reason"]:
            log.warning("plug-in left out", why=row["reason"])
    if rows != ledger.get_kv(_KNOWN, []):
        ledger.note("plugins.changed", "daemon", {"plugins": list(rows)})
        ledger.set_kv(_KNOWN, list(rows))
