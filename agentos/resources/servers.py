"""Tools that an MCP server has: what their ``tool.json`` says beside what every tool says.

A server is a skill (``skill/NAME``); each of its tools is a folder with a ``tool.json`` whose key ``mcp`` holds the
tool's name there, the digest of its definition, and what the server needs beside ``command`` to be started.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from agentos.domain import Json, dataclass, digest
from agentos.programs import is_manifest

_DEFINED = ("name", "description", "inputSchema", "outputSchema", "annotations")
LOCK = "wheels.lock"
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
    locks = {f"{it.resource}/{LOCK}" for path, content in files.items() if (it := server_tool(path, content))}
    return {path: content for path, content in files.items() if path not in locks}
