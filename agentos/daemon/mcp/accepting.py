"""A server that defines its tools otherwise than when it was added: what changed, and how a person takes it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from agentos.daemon.mcp.adding import skill_files
from agentos.domain import Effect, digest
from agentos.errors import NotFound
from agentos.home import Home
from agentos.messages import McpServed
from agentos.registry.store import Registry
from agentos.resources.servers import server_tool

_SHOWN_MAX = 3_000  # characters of a difference that a question holds


@dataclass(frozen=True, slots=True)
class NewDefinition:
    """``changes`` are the files of the skill that become others (None: gone); ``difference`` is for people to read."""

    changes: Mapping[str, bytes | None]
    difference: str


def as_it_is_now(resource: str, files: Mapping[str, bytes], served: McpServed) -> NewDefinition:
    """What the skill of a server (``files`` by registry path) would become. The effects of tools stay as they were
    said, whatever the server's hints say now; how it is started and what it may see stay too. Raises NotFound.
    """
    known = {path: found for path in sorted(files) if (found := server_tool(path, files[path]))}
    if not known:
        raise NotFound(f"There is no MCP server '{resource.partition('/')[2]}'. Try: agentos mcp list")
    documents = {path: json.loads(files[path]) for path in known}
    served_names = {str(tool.get("name")) for tool in served.tools}
    effects = {
        tool.tool: Effect(documents[path]["effects"][0])
        for path, tool in known.items()
        if tool.tool in served_names
    }
    first = next(iter(known))
    new, _ = skill_files(known[first], effects, documents[first]["dependencies"], served)
    old = {path: content for path, content in files.items() if path in known or path in new}
    changes: dict[str, bytes | None] = {
        path: new.get(path) for path in (*old, *new) if old.get(path) != new.get(path)
    }
    return NewDefinition(changes, _difference(old, new))


def question_of(resource: str, definition: NewDefinition) -> str:
    """What a person is asked; another one for another change, also where that is too long to be shown."""
    shown = definition.difference
    version = digest({path: str(content) for path, content in definition.changes.items()})[:12]
    if len(shown) > _SHOWN_MAX:
        shown = f"{shown[:_SHOWN_MAX]}\n… (the rest: agentos mcp test {resource.partition('/')[2]})"
    return (
        f"The MCP server {resource.partition('/')[2]} was stopped: it defines its tools otherwise than when it was "
        f"added. Take it as it is now ({version}), as a new version?\n{shown}"
    )


def accept(home: Home, resource: str, served: McpServed, author: str = "") -> bool:
    """Take it as a new version; whether anything changed. Raises NotFound, Invalid."""
    registry = Registry(home.registry)
    main = registry.stable()
    changes = as_it_is_now(resource, registry.files(main, resource), served).changes
    if changes:
        message = f"Take the MCP server {resource.partition('/')[2]} as it is now"
        registry.commit(changes, message, "edit", base=main, author=author)
    return bool(changes)


def _difference(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> str:
    lines: list[str] = []
    for path in sorted({*old, *new}):
        if old.get(path) != new.get(path):
            before, after = (files.get(path, b"").decode().splitlines() for files in (old, new))
            lines += [path.split("/", 2)[2], *list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]]
    return "\n".join(line for line in lines if not line.startswith("@@"))
