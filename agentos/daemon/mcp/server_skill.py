"""The skill that an MCP server's tools are: made of what the server says of them, and held against what it says now."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentos.domain import Effect, Json, Kind, digest
from agentos.errors import NotFound, UserError, to_type
from agentos.messages import McpServed
from agentos.resources.declarations import ServerTool, definition_of, server_tool
from agentos.resources.documents import DESCRIPTION_MAX, MAIN_FILE

_NAME_MAX = 64
_CALLED = re.compile(r"[a-z][a-z0-9_]*")
_SHOWN_MAX = 3_000  # characters of a difference that a question holds


def tools_of(files: Mapping[str, bytes]) -> list[ServerTool]:
    """The tools of servers among a resource's files, by path."""
    return [found for path in sorted(files) if (found := server_tool(path, files[path]))]


def skill_files(
    server: ServerTool, effects: Mapping[str, Effect], wheels: Sequence[str], served: McpServed
) -> tuple[dict[str, bytes], list[str]]:
    """Registry path -> content of the skill that it becomes, but for its lock, and a sentence for each tool that is left
    out. Raises UserError."""
    tools, left_out = _tools(server, effects, wheels, served)
    main = f"{server.resource}/{MAIN_FILE[Kind.SKILL]}"
    return {main: _main(server.resource.partition("/")[2], served).encode(), **tools}, left_out


def _tools(
    server: ServerTool, effects: Mapping[str, Effect], wheels: Sequence[str], served: McpServed
) -> tuple[dict[str, bytes], list[str]]:
    """Registry path -> ``tool.json``, and a sentence for each tool that is left out."""
    found: dict[str, bytes] = {}
    left_out: list[str] = []
    for tool in served.tools:
        name = str(tool.get("name", ""))
        called = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        path = f"{server.resource}/tools/{called}/tool.json"
        if not _CALLED.fullmatch(called) or len(called) > _NAME_MAX or path in found:
            left_out.append(f"the tool {name[:100]!r} has no name that a tool here can have for its own")
            continue
        schema = tool.get("inputSchema")
        if not _is_schema(schema):
            left_out.append(f"the tool {name[:100]!r} has no JSON schema that says what its arguments are")
            continue
        document = {
            "name": called,
            "description": _short(str(tool.get("description") or tool.get("title") or name)),
            "effects": [effects.get(name, effect_of(server, tool)).value],
            "idempotent": _hint(tool, "idempotentHint"),
            "dependencies": list(wheels),
            "command": list(server.command),
            "input_schema": schema,
            "mcp": _started_by(server) | {"tool": name, "definition": definition_of(tool)},
        }
        found[path] = (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()
    if missing := sorted(effects.keys() - {str(tool.get("name")) for tool in served.tools}):
        name = server.resource.partition("/")[2]
        raise UserError(f"The MCP server {name} has no tool '{missing[0]}', for which an effect was given.")
    return found, left_out


def _started_by(server: ServerTool) -> dict[str, Json]:
    """What ``server_tool`` reads; what a server has nothing of is left out."""
    outside = {"url": server.url, "hosts": list(server.hosts)} if server.hosts else {}
    inputs = {} if server.inputs is None else {"inputs": list(server.inputs)}
    return {"environment": dict(server.environment), "brings": server.brings, **outside, **inputs}


def _is_schema(schema: Json) -> bool:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError):
        return False
    return isinstance(schema, dict)


def effect_of(server: ServerTool, tool: Mapping[str, Json]) -> Effect:
    """What a tool does, by its own hints: what it changes lies in its box. Where that has a way out, a hint is the word
    of a program that could do anything there."""
    if server.hosts:
        return Effect.EXTERNAL
    return Effect.READ if _hint(tool, "readOnlyHint") else Effect.WRITE


def _hint(tool: Mapping[str, Json], name: str) -> bool:
    hints = tool.get("annotations")
    return isinstance(hints, dict) and hints.get(name) is True


def _main(name: str, served: McpServed) -> str:
    """The SKILL.md: whose tools these are, and what the server says of their use."""
    about = f"Tools of the MCP server {served.name or name}: {', '.join(str(it.get('name')) for it in served.tools)}."
    front = [
        "---",
        f"name: {name}",
        f"description: {json.dumps(_short(about))}",
        "---",
    ]
    long = [
        f"## {tool.get('name')}\n\n{text.strip()}"
        for tool in served.tools
        if len(text := str(tool.get("description") or "")) > DESCRIPTION_MAX
    ]
    return (
        "\n".join(
            [*front, "", f"# {name}", "", served.instructions.strip() or about, "", "\n\n".join(long)]
        ).rstrip()
        + "\n"
    )


def _short(text: str) -> str:
    text = text.strip() or "It says nothing of itself"
    return text if len(text) <= DESCRIPTION_MAX else f"{text[: DESCRIPTION_MAX - 1]}…"


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
        raise NotFound(
            f"There is no MCP server '{resource.partition('/')[2]}'. Try: ", to_type("agentos mcp list")
        )
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


def _difference(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> str:
    lines: list[str] = []
    for path in sorted({*old, *new}):
        if old.get(path) != new.get(path):
            before, after = (files.get(path, b"").decode().splitlines() for files in (old, new))
            lines += [path.split("/", 2)[2], *list(difflib.unified_diff(before, after, lineterm="", n=0))[2:]]
    return "\n".join(line for line in lines if not line.startswith("@@"))
