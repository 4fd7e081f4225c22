"""What the tools of a bundle say of themselves, known before the run: a box need not load each tool
to learn its schema. Loaded once for each content, in a box of its own, and kept in the index.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter

from agentos import __version__
from agentos.daemon.job.bundle import Bundle
from agentos.domain import Kind, Snapshot, digest
from agentos.messages import WHEELS, ToolCard
from agentos.registry.store import Registry
from agentos.resources import examine, is_tool_file, parse_id
from agentos.retrieval.storage import Storage, transaction

Load: TypeAlias = Callable[[Mapping[str, bytes], Sequence[str]], tuple[list[ToolCard], list[str]]]
_Files: TypeAlias = dict[str, bytes]

_CARDS = TypeAdapter(list[ToolCard])


class ToolSchemas:
    """Safe from any thread. ``load`` is ``benches.load_tools`` with a sandbox."""

    def __init__(self, storage: Storage, load: Load) -> None:
        self._storage = storage
        self._load = load
        self._loading = threading.Lock()
        # By content, of what did not load in full: tried again by the next daemon, which may have
        # what was missing.
        self._partial: dict[str, list[ToolCard]] = {}

    def of(self, bundle: Bundle) -> tuple[ToolCard, ...]:
        """The cards of all tools that load, by path. Raises Unavailable when the machinery failed."""
        resources = _with_tools(bundle.files)
        keys = {name: _key(files) for name, files in resources.items()}
        known = self._known(keys.values())
        if len(known) < len(set(keys.values())):
            with self._loading:
                known = self._known(keys.values())  # another run may have loaded them meanwhile
                new = {name: resources[name] for name, key in keys.items() if key not in known}
                if new:
                    known |= {keys[name]: cards for name, cards in self._loaded(new).items()}
        return tuple(sorted((card for key in keys.values() for card in known[key]), key=lambda c: c.path))

    def _known(self, keys: Iterable[str]) -> dict[str, list[ToolCard]]:
        """Key -> cards, of those that are known."""
        wanted = sorted(set(keys))
        marks = ", ".join("?" * len(wanted))

        def read(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            query = f"SELECT key, cards FROM cards WHERE key IN ({marks})"  # noqa: S608
            return connection.execute(query, wanted).fetchall()

        kept = {key: _CARDS.validate_json(text) for key, text in self._storage.use(read)}
        return {key: self._partial[key] for key in wanted if key in self._partial} | kept

    def _loaded(self, new: Mapping[str, _Files]) -> dict[str, list[ToolCard]]:
        """Resource -> the cards of its tools that load; kept for the next time."""
        found = self._load_all(new)
        whole: list[tuple[str, str]] = []
        for name, files in new.items():
            if len(found[name]) == len(_tools(name, files)):
                whole.append((_key(files), _CARDS.dump_json(found[name]).decode()))
            else:
                self._partial[_key(files)] = found[name]

        def write(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.executemany("INSERT OR REPLACE INTO cards VALUES (?, ?)", whole)

        self._storage.use(write)
        return found

    def _load_all(self, new: Mapping[str, _Files]) -> dict[str, list[ToolCard]]:
        """One box for all; if a tool takes that box down with it, one for each resource."""
        tools = [path for name, files in new.items() for path in _tools(name, files)]
        cards, _ = self._load({path: data for files in new.values() for path, data in files.items()}, tools)
        if tools and not cards and len(new) > 1:
            return {name: self._load(files, _tools(name, files))[0] for name, files in new.items()}
        return {name: [card for card in cards if card.path.startswith(f"{name}/")] for name in new}


def known_cards(index: Path, registry: Registry, snapshot: Snapshot) -> list[ToolCard]:
    """The cards of the snapshot's tools that some run has loaded already, by path; nothing is loaded for it."""
    if not index.exists():
        return []
    names = [str(it) for it in registry.names(snapshot) if it.kind in (Kind.SKILL, Kind.TOOL)]
    keys = [_key(dict(registry.files(snapshot, name))) for name in names]
    marks = ", ".join("?" * len(keys))
    try:
        with closing(sqlite3.connect(f"{index.as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(f"SELECT cards FROM cards WHERE key IN ({marks})", keys).fetchall()  # noqa: S608
    except sqlite3.DatabaseError:  # it may be deleted at any time, and is being made again
        return []
    return sorted(
        (card for (text,) in rows for card in _CARDS.validate_json(text)), key=lambda card: card.path
    )


def _with_tools(files: Mapping[str, bytes]) -> dict[str, _Files]:
    """kind/name -> its files, of the resources that have tool files."""
    names = {"/".join(path.split("/")[:2]) for path in files if is_tool_file(path)}
    found: dict[str, _Files] = {name: {} for name in sorted(names)}
    for path, content in files.items():
        name = "/".join(path.split("/")[:2])
        if name in found:
            found[name][path] = content
    return found


def _tools(name: str, files: Mapping[str, bytes]) -> list[str]:
    """The tool files, without modules beside them that only help; all where the resource is at fault."""
    resource = examine(parse_id(name), {p: data for p, data in files.items() if not _brought(p)}).resource
    return list(resource.tools) if resource else sorted(filter(is_tool_file, files))


def _key(files: Mapping[str, bytes]) -> str:
    """Of everything that decides what the cards say; modules that it brings are named by its lock."""
    content = {path: digest(data) for path, data in files.items() if not _brought(path)}
    return digest([__version__, content])


def _brought(path: str) -> bool:
    return f"/{WHEELS}/" in path
