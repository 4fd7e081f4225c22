"""Installed plug-ins in the daemon: proposers among those that ship, and what is on record of all of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any

import structlog

from agentos.domain import Json, Layer
from agentos.ledger.store import Ledger
from agentos.plaintext import clean
from agentos.plugins import registry
from agentos.plugins.registry import Plugin, PluginFailed
from agentos.ports import Adviser, Brief, Proposal, Proposer, Snapshots

_KNOWN = "plugins"  # memo: what was installed when the daemon started last

log = structlog.get_logger("agentos.plugins")


PROPOSE_S = 1_800.0  # in which one has to come with its next proposal; tests set less
_TEXT_MAX = 10_000  # characters of what a proposal says of itself, and entries of its lists
_FILES_MAX = 4 << 20  # characters of all files of a proposal: the screen takes far less
_BESIDE_MAX = 100
_TEXTS = ("cause", "summary", "operator", "why_this_layer", "unusable", "model")
_LISTS = ("predicted_fixes", "tasks_at_risk", "parents")
_NUMBERS = ("weight", "prior")


@dataclass(slots=True)
class InstalledProposer:
    """A proposer of another distribution, under the name of its entry point."""

    name: str
    layers: tuple[Layer, ...]
    signature: str  # as the record has it
    _made: Any

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """See ``ports.Proposer``. It works on a thread of its own, which is left to itself where nothing comes in time."""
        wanted: SimpleQueue[bool] = SimpleQueue()
        came: SimpleQueue[Proposal | BaseException] = SimpleQueue()

        def propose() -> None:
            source = iter(self._made.propose(brief))
            while wanted.get():
                came.put(_taken(next(source)))

        def work() -> None:
            _, error = registry.attempted(propose)
            if error is not None:
                came.put(error)

        threading.Thread(target=work, name=f"proposer {self.name}", daemon=True).start()
        try:
            while True:
                wanted.put(True)
                try:
                    found = came.get(timeout=PROPOSE_S)
                except Empty:
                    raise TimeoutError(f"nothing came within {PROPOSE_S:g} s") from None
                if isinstance(found, StopIteration):
                    return
                if isinstance(found, Exception):
                    raise found
                if isinstance(found, BaseException):  # not what it would end here
                    raise RuntimeError(registry.said(found)).with_traceback(found.__traceback__)
                yield found
        finally:
            wanted.put(False)


def _taken(found: object) -> Proposal:
    """The proposal as a copy of plain values, so that what is screened is what is tried and recorded.

    Of one that is none, a proposal that says why.
    """

    def copied() -> Proposal:  # its fields may be anything, and answer with anything
        more = islice(getattr(found, "beside", ()), _BESIDE_MAX)
        return replace(_copied(found), beside=tuple(map(_copied, more)))

    taken, error = registry.attempted(copied)
    if taken is not None:
        return taken
    if error is not None and not isinstance(error, Exception):
        raise error
    why = f"no proposal: {registry.said(error) if error else ''}"
    return Proposal("", "an edit that cannot be taken", "", {}, "", (), (), unusable=why)


def _copied(found: object) -> Proposal:
    if not isinstance(found, Proposal):
        raise TypeError(f"it is a {type(found).__name__}")
    texts = {name: clean(_text(getattr(found, name), name)[:_TEXT_MAX]) for name in _TEXTS}
    lists = {
        name: tuple(clean(_text(item, name)[:_TEXT_MAX]) for item in _list(getattr(found, name), name))
        for name in _LISTS
    }
    numbers = {name: float(getattr(found, name)) for name in _NUMBERS}
    if wrong := [name for name, value in numbers.items() if not 0 <= value <= 1]:
        raise ValueError(f"{wrong[0]} is a number from 0 to 1")
    files = {_text(path, "a path"): _text(text, "a file's text") for path, text in found.files.items()}
    if sum(len(path) + len(text) for path, text in files.items()) > _FILES_MAX:
        raise ValueError(f"its files have more than {_FILES_MAX:,} characters")
    if not files and not texts["unusable"]:
        raise ValueError("it changes no file")
    whole: dict[str, Any] = {"files": files, **texts, **lists, **numbers}
    return Proposal(**whole)


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, tuple | list) or len(value) > _TEXT_MAX:
        raise TypeError(f"{what} is not a tuple of at most {_TEXT_MAX:,} texts")
    return list(value)


def _text(value: object, what: str) -> str:
    """An own copy of a text that can be written down."""
    if not isinstance(value, str):
        raise TypeError(f"{what} is a {type(value).__name__}, not a text")
    return value.encode().decode()


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
    name, named = registry.call(plugin, lambda: (getattr(made, "name", None), getattr(made, "layers", ())))
    if name != plugin.name:
        raise plugin.failed(f"its `name` is {name!r:.60}, and its entry point's is {plugin.name!r}")
    try:
        layers = tuple(dict.fromkeys(map(Layer, named)))  # one that is named twice is asked once
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
