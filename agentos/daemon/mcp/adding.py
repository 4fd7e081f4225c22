"""Takes an MCP server into the registry: it is started in a box, and what it says of its tools becomes a skill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentos.daemon.mcp.packages import Packages, archive, install, keep, pack
from agentos.daemon.mcp.server_box import Fetch, McpFault, ServerBox, ServerProgram, program_of
from agentos.daemon.mcp.server_skill import as_it_is_now, skill_files, tools_of
from agentos.domain import Effect, Kind, ResourceId, Snapshot
from agentos.errors import ErrorKind, NotFound, UserError, meant, to_type
from agentos.home import Home
from agentos.messages import McpServed
from agentos.ports import Sandbox
from agentos.programs import LOCK_FILE
from agentos.registry.store import Registry
from agentos.resources.declarations import ServerTool, definition_of, server_tool

WayOut = Callable[[ServerTool], Fetch | None]  # who makes the requests of a server that is started by hand


@dataclass(frozen=True, slots=True)
class NewServer:
    """What a person says of a server. ``effects`` by the tool's name there: they go before the server's own hints.
    ``files`` is a folder whose files it gets a copy of; ``environment`` are its headers where it has a ``url``;
    ``hosts`` and ``inputs`` are what it may see, as ``ServerTool`` has them.
    """

    name: str
    packages: Packages
    environment: Mapping[str, str] = field(default_factory=dict)
    effects: Mapping[str, Effect] = field(default_factory=dict)
    files: Path | None = None
    url: str = ""
    hosts: Sequence[str] = ()
    inputs: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class AddedServer:
    """The skill that it became; ``changed`` says whether that is a new version."""

    skill: ResourceId
    served: McpServed
    tools: Sequence[str]
    left_out: Sequence[str]  # one sentence for each tool that could not be taken
    changed: bool


@dataclass(frozen=True, slots=True)
class ServerState:
    """A server as it was added, held against what it says now: names of tools."""

    served: McpServed
    same: Sequence[str]
    changed: Sequence[str]
    gone: Sequence[str]
    new: Sequence[str]


def add_server(
    home: Home, sandbox: Sandbox, new: NewServer, author: str = "", way_out: WayOut | None = None
) -> AddedServer:
    """Start it once, and write the skill. Raises UserError, Invalid or Unavailable, having written nothing."""
    registry = Registry(home.registry)
    skill = ResourceId(Kind.SKILL, new.name)
    present = registry.files(registry.stable(), str(skill))
    if present and not tools_of(present):
        raise UserError(
            f"{skill} is there already and is no MCP server; give another name", kind=ErrorKind.TAKEN
        )
    packages, brings = new.packages, ""
    data = pack(new.files) if new.files else None
    if packages.npm:
        packages, data = install(packages)
    files: dict[str, bytes] = {}
    if packages.wheels:
        files[f"{skill}/{LOCK_FILE}"] = registry.wheels.resolve(str(skill), sorted(packages.wheels))
    modules = registry.wheels_of(files).get(str(skill), {})
    server = ServerTool(
        str(skill),
        "",
        "",
        (new.url,) if new.url else packages.command,
        new.environment,
        brings,
        new.url,
        tuple(new.hosts),
        None if new.inputs is None else tuple(new.inputs),
    )
    served = say(sandbox, program_of(server, modules, data), way_out and way_out(server))
    if data is not None:
        server = replace(server, brings=keep(home, data))
    tools, left_out = skill_files(server, new.effects, sorted(packages.wheels), served)
    if len(tools) < 2:
        raise UserError(
            f"The MCP server {new.name} has no tools that could be taken: {'; '.join(left_out) or 'none'}"
        )
    files |= tools
    changes = {**dict.fromkeys(present), **files}
    before = registry.latest(skill)
    registry.commit(changes, f"Add the MCP server {new.name}", "edit", author=author)
    after = registry.latest(skill)
    return AddedServer(
        skill,
        served,
        sorted(path.split("/")[3] for path in tools if server_tool(path, tools[path])),
        left_out,
        before != after,
    )


def look_at(home: Home, sandbox: Sandbox, name: str, way_out: WayOut | None = None) -> ServerState:
    """Start a server that was added, and compare. Raises NotFound, UserError, Unavailable."""
    registry = Registry(home.registry)
    added, program = _added(home, registry, registry.stable(), name)
    served = say(sandbox, program, way_out and way_out(added[0]))
    has = {str(tool.get("name")): definition_of(tool) for tool in served.tools}
    known = {tool.tool: tool.definition for tool in added}
    return ServerState(
        served,
        same=sorted(tool for tool in known if has.get(tool) == known[tool]),
        changed=sorted(tool for tool in known if tool in has and has[tool] != known[tool]),
        gone=sorted(known.keys() - has.keys()),
        new=sorted(has.keys() - known.keys()),
    )


def say(sandbox: Sandbox, program: ServerProgram, fetch: Fetch | None = None) -> McpServed:
    """What the server says of itself when it is started in a box. Raises UserError, Unavailable."""
    try:
        with closing(ServerBox(sandbox, program, fetch=fetch)) as box:
            return box.served
    except McpFault as error:
        raise UserError(f"{error} ({error.fault.type})") from None


def no_server(registry: Registry, name: str) -> NotFound:
    """What to raise where no skill of that name is one; it names the servers that are called nearly so."""
    snapshot = registry.stable()
    skills = [found for found in registry.names(snapshot) if found.kind is Kind.SKILL]
    known = [skill.name for skill in skills if tools_of(registry.files(snapshot, str(skill)))]
    hint = meant(name, known, "Try: ", to_type("agentos mcp list"))
    return NotFound(f"There is no MCP server '{name}'. ", hint)


def _added(
    home: Home, registry: Registry, snapshot: Snapshot, name: str
) -> tuple[Sequence[ServerTool], ServerProgram]:
    skill = f"{Kind.SKILL}/{name}"
    files = registry.files(snapshot, skill)
    tools = tools_of(files)
    if not tools:
        raise no_server(registry, name)
    one = tools[0]
    brings = archive(home, one.brings) if one.brings else None
    modules = registry.wheels_of(files).get(skill, {})
    return tools, program_of(one, modules, brings)


def accept(home: Home, resource: str, served: McpServed, author: str = "") -> bool:
    """Take it as a new version; whether anything changed. Raises NotFound, Invalid."""
    registry = Registry(home.registry)
    main = registry.stable()
    changes = as_it_is_now(resource, registry.files(main, resource), served).changes
    if changes:
        message = f"Take the MCP server {resource.partition('/')[2]} as it is now"
        registry.commit(changes, message, "edit", base=main, author=author)
    return bool(changes)
