"""What a tool declares, read without running anything: what it does to the world, and the MCP server that it is of.

A server is a skill (``skill/NAME``); each of its tools is a folder with a
``tool.json`` whose key ``mcp`` holds the tool's name there, the digest of its definition, and what the server needs
beside ``command`` to be started.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from agentos.programs import LOCK_FILE, SCRIPT_EFFECTS, is_manifest, is_script
from agentos.records.identity import Effect, Json, Snapshot, dataclass, digest
from agentos.syntax import parse

if TYPE_CHECKING:
    from agentos.ports import Snapshots


@dataclass(frozen=True, slots=True)
class Effects:
    """What a tool's source declares of its effects."""

    effects: frozenset[str]
    idempotent: bool  # making the same call twice is as good as making it once


@lru_cache(maxsize=256)
def declared(path: str, source: bytes) -> Effects:
    """Read ``TOOL`` without running anything. What cannot be read counts as acting on the outside."""
    if is_script(path):
        return Effects(frozenset(SCRIPT_EFFECTS), False)
    cards = []
    try:
        if is_manifest(path):
            says = json.loads(source)
            return Effects(frozenset(map(str, says["effects"])), says.get("idempotent") is True)
        for node in parse(source.decode("utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            named = any(isinstance(target, ast.Name) and target.id == "TOOL" for target in targets)
            if named and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                cards.append(ast.literal_eval(node.value))
        # A file that says it twice is held to all that it says.
        effects = frozenset(str(effect) for card in cards for effect in card["effects"])
        idempotent = bool(cards) and all(card.get("idempotent") is True for card in cards)
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError):
        effects, idempotent = frozenset(), False
    return Effects(effects or frozenset({Effect.EXTERNAL}), idempotent)


def recorded_effects(snapshots: Snapshots) -> Callable[[Snapshot, str], Sequence[str]]:
    """What a tool said that it does, as a run on the snapshot had it: sorted, () for a path that is not there.

    Each is read once. Raises Unavailable.
    """
    known: dict[tuple[str, str], Sequence[str]] = {}

    def effects(snapshot: Snapshot, path: str) -> Sequence[str]:
        key = (snapshot.tree, path)
        if key not in known:
            source = snapshots.files(snapshot, path).get(path) if path else None
            known[key] = sorted(declared(path, source).effects) if source is not None else ()
        return known[key]

    return effects


# --- A tool that an MCP server has: what its file says beside what every tool's says -----------


_DEFINED = ("name", "description", "inputSchema", "outputSchema", "annotations")
# as ``daemon/requests/secret_requests`` fills it
_SECRET = re.compile(r"\{\{secret:([A-Za-z][A-Za-z0-9_]{0,63})\}\}")


@dataclass(frozen=True, slots=True)
class ServerTool:
    """One tool of a server. ``resource`` is kind/name; ``brings`` the SHA-256 of a tar of files, "" for none.
    ``environment`` are its headers where it is reached by ``url``. ``hosts`` is what it may reach, ``inputs`` the
    patterns of a task's files that it sees, None for all.
    """

    resource: str
    tool: str
    definition: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    brings: str
    url: str = ""
    hosts: tuple[str, ...] = ()
    inputs: tuple[str, ...] | None = None

    @property
    def server(self) -> str:
        """Equal for tools that one running server answers for."""
        return digest(
            [self.resource, self.command, dict(self.environment), self.brings, self.hosts, self.inputs]
        )

    @property
    def secrets(self) -> frozenset[str]:
        """Names of those that the kernel puts into its requests."""
        return frozenset(name for value in self.environment.values() for name in _SECRET.findall(value))

    def sees(self, path: str) -> bool:
        """Whether it gets a task's input file."""
        return self.inputs is None or any(fnmatchcase(path, pattern) for pattern in self.inputs)


def server_tool(path: str, content: bytes) -> ServerTool | None:
    """What the file says, None where it is no tool of a server (or says so in no form that can be read)."""
    if not is_manifest(path) or b'"mcp"' not in content:
        return None
    try:
        says = json.loads(content)
        mcp = says["mcp"]
        environment = {str(name): str(value) for name, value in mcp.get("environment", {}).items()}
        return ServerTool(
            "/".join(path.split("/")[:2]),
            str(mcp["tool"]),
            str(mcp["definition"]),
            tuple(map(str, says["command"])),
            environment,
            str(mcp.get("brings", "")),
            str(mcp.get("url", "")),
            tuple(map(str, mcp.get("hosts", ()))),
            None if (inputs := mcp.get("inputs")) is None else tuple(map(str, inputs)),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def server_faults(content: bytes) -> list[str]:
    """What is wrong with the key ``mcp`` of a ``tool.json`` that is JSON, a sentence with its line for each fault."""
    mcp = json.loads(content).get("mcp")
    if mcp is None:
        return []
    if not isinstance(mcp, dict):
        return [f"{_line(content, 'mcp')}'mcp' must be an object with 'tool' and 'definition'"]
    return [
        f"{_line(content, key)}'mcp': '{key}' {'is missing: ' if value is None else 'must be '}{wanted}"
        for key, (wanted, is_right) in _SAYS.items()
        if not is_right(value := mcp.get(key, _UNSAID.get(key)))
    ]


def _line(content: bytes, key: str) -> str:
    """Where a key stands at or below ``mcp``; where it is missing, where that stands."""
    text = content.decode(errors="replace")
    top = text.find('"mcp"')
    found = text.find(f'"{key}"', top)
    return f"line {text.count(chr(10), 0, max(found, top, 0)) + 1}: "


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and bool(value)


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_UNSAID: Mapping[str, Json] = {"environment": {}, "brings": "", "url": "", "hosts": []}
_SAYS: Mapping[str, tuple[str, Callable[[Json], bool]]] = {
    "tool": ("the tool's name at the server", _is_text),
    "definition": ("the digest of its definition, which `agentos mcp accept` writes", _is_text),
    "environment": (
        "an object of texts",
        lambda value: isinstance(value, dict) and all(isinstance(item, str) for item in value.values()),
    ),
    "brings": ("the SHA-256 of a tar, or an empty text", lambda value: value == "" or _is_digest(value)),
    "url": ("a text", lambda value: isinstance(value, str)),
    "hosts": ("a list of texts", _are_texts),
    "inputs": ("a list of patterns of files", lambda value: value is None or _are_texts(value)),
}


def _is_digest(value: Json) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def is_server(files: Mapping[str, bytes]) -> bool:
    """Whether a resource of these files is an MCP server."""
    return any(server_tool(path, content) for path, content in files.items())


def definition_of(tool: Mapping[str, Json]) -> str:
    """The digest of what a server says of a tool: of all that a caller goes by."""
    return digest({key: tool[key] for key in _DEFINED if tool.get(key) is not None})


def without_server_locks(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files but for locks of servers: what these bring goes into the server's own box, not into a run's."""
    locks = {
        f"{it.resource}/{LOCK_FILE}" for path, content in files.items() if (it := server_tool(path, content))
    }
    return {path: content for path, content in files.items() if path not in locks}
