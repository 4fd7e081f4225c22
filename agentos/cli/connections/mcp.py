"""``agentos mcp …``: tools of MCP servers for agents, and this home as an MCP server for other programs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import confirm, print_json, print_table, print_text
from agentos.domain import Kind, ResourceId
from agentos.errors import UserError, meant
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.daemon.mcp.packages import Packages
    from agentos.ports import Sandbox

app = noun("Add tools of MCP servers for agents; serve this home to other programs as an MCP server.")

_HOST = re.compile(r"(\*\.)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?)(:[0-9]{1,5})?")
Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name, as `agentos mcp list` has it.")]


@app.command(example="agentos mcp add time -- uvx mcp-server-time --local-timezone UTC")
def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What to call it: its tools become skill/NAME.")
    ],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND…", help="uvx PACKAGE …, npx -y PACKAGE …, or a program of the sandbox."
        ),
    ] = None,
    url: Annotated[
        str,
        typer.Option(
            metavar="URL", help="A server that is reached by streamable HTTP, in place of a command."
        ),
    ] = "",
    wheel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PACKAGE", help="A Python package that it takes, perhaps with versions. Repeatable."
        ),
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Give it a copy of these files; {server} in the command is their place."
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable of its environment. Repeatable."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[VARIABLE=]NAME",
            help="A secret of `agentos secret` that is put into its requests; it never holds it. Repeatable.",
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A host that it may reach: name, *.name or name:port. Repeatable."),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Input files of a task that it sees, such as 'docs/*'; else all, but none where it may reach hosts. Repeatable.",
        ),
    ] = None,
    effect: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOOL=EFFECT",
            help="What a tool may do (pure, read, write or external), whatever the server says. Repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add a server: start it once in a sandbox, and take its tools into the registry."""
    from dataclasses import replace
    from functools import partial

    from agentos.cli.resources.registry_edit import author
    from agentos.daemon.mcp.adding import NewServer, add_server
    from agentos.daemon.requests.server_calls import by_hand
    from agentos.domain import Effect
    from agentos.resources import name_fault

    if fault := name_fault(name):
        raise UserError(fault)
    packages = _asked_packages(command or [], url, files)
    packages = replace(packages, wheels=(*packages.wheels, *(wheel or ())))
    effects = _pairs("--effect", effect)
    if unknown := [word for word in effects.values() if word not in set(Effect)]:
        raise UserError(f"'{unknown[0]}' is no effect: use one of {', '.join(Effect)}")
    own = {key: Effect(word) for key, word in effects.items()}
    home = Home.find()
    hosts = _hosts_of(url, host or [])
    environment = _environment_of(home, _pairs("--env", env), secret or [], url, hosts)
    inputs = file if file or not hosts else []
    new = NewServer(name, packages, environment, own, files, url, hosts, inputs)
    with _sandbox(home) as sandbox:
        try:
            added = add_server(home, sandbox, new, author(), partial(by_hand, home))
        except UserError as error:
            if not (hint := _files_hint(packages.command, files)):
                raise
            raise UserError(f"{error} {hint}") from None
    if as_json:
        print_json(
            {
                "skill": str(added.skill),
                "tools": added.tools,
                "left_out": added.left_out,
                "changed": added.changed,
            }
        )
        return
    version = f"{added.served.name} {added.served.version}".strip()
    print_text(f"{added.skill}  {version}{'' if added.changed else ' (as it was)'}", "bold")
    print_text(f"tools: {', '.join(f'{name}/{tool}' for tool in added.tools)}")
    for sentence in (*added.left_out, *_egress_hint(home, hosts)):
        print_text(sentence, "yellow")


def _files_hint(command: Sequence[str], files: Path | None) -> str:
    """What may be wrong with a command that names a file of this machine, which the server's box has not."""
    own = next((Path(word) for word in command[1:] if Path(word).is_file()), None)
    if own is None or files is not None:
        return ""
    return (
        f"'{own}' lies on this machine, and a server's box has no file of it: give its folder by --files "
        f"{own.parent}, and write '{{server}}/{own.name}' in the command."
    )


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the servers that were added, with their versions and tools."""
    from agentos.registry.store import Registry
    from agentos.resources import tool_reference
    from agentos.resources.declarations import server_tool

    registry = Registry(Home.find().registry)
    main = registry.stable()
    rows = []
    for resource in registry.names(main):
        if resource.kind is not Kind.SKILL:
            continue
        files = registry.files(main, str(resource))
        by_path = {path: tool for path in sorted(files) if (tool := server_tool(path, files[path]))}
        if by_path:
            tools = [*by_path.values()]
            version = registry.latest(resource)
            rows.append(
                {
                    "server": resource.name,
                    "version": version.number if version else "?",
                    "command": " ".join(tools[0].command),
                    "tools": [tool.tool for tool in tools],
                    "references": [*map(tool_reference, by_path)],  # as a task names them
                }
            )
    if as_json:
        print_json(rows)
        return
    cells = [
        [str(row["server"]), str(row["version"]), str(row["command"]), ", ".join(row["references"])]
        for row in rows
    ]
    print_table(
        ("server", "version", "command", "tools"),
        cells,
        empty="No MCP server was added. Try: agentos mcp add time -- uvx mcp-server-time",
        wrap=True,
    )


@app.command("test")
def compare(name: Name, as_json: AsJson = False) -> None:
    """Start a server, and compare its tools with those on record. Exit code 1 when they differ."""
    from functools import partial

    from agentos.daemon.mcp.adding import look_at
    from agentos.daemon.requests.server_calls import by_hand

    home = Home.find()
    with _sandbox(home) as sandbox:
        found = look_at(home, sandbox, name, partial(by_hand, home))
    differs = bool(found.changed or found.gone)
    state = {key: list(getattr(found, key)) for key in ("same", "changed", "gone", "new")}
    if as_json:
        print_json({"server": found.served.name, "version": found.served.version, **state})
    else:
        print_text(f"{found.served.name} {found.served.version} answers", "bold")
        for key, tools in state.items():
            if tools:
                print_text(f"{key}: {', '.join(tools)}", "red" if key in ("changed", "gone") else "")
        if differs:
            print_text(f"To take it as it is now: agentos mcp accept {name}", "dim")
    raise typer.Exit(1 if differs else 0)


@app.command("accept")
def accept_(
    name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> None:
    """Accept a server whose tools have changed: shows what changed, asks, and makes a new version."""
    from functools import partial

    from agentos.cli.resources.registry_edit import author
    from agentos.daemon.mcp.adding import accept, look_at
    from agentos.daemon.mcp.server_skill import as_it_is_now
    from agentos.daemon.requests.server_calls import by_hand
    from agentos.registry.store import Registry

    home = Home.find()
    with _sandbox(home) as sandbox:
        served = look_at(home, sandbox, name, partial(by_hand, home)).served
    registry = Registry(home.registry)
    skill = ResourceId(Kind.SKILL, name)
    found = as_it_is_now(str(skill), registry.files(registry.stable(), str(skill)), served)
    if not found.changes:
        print_text(f"{name} is as it was added")
        return
    print_text(found.difference or "only its instructions changed")
    confirm(f"Take the MCP server {name} as it is now?", yes=yes)
    accept(home, str(skill), served, author())
    version = registry.latest(skill)
    print_text(f"{name} is version {version.number if version else '?'} now", "bold")


@app.command()
def remove(name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Remove a server's tools from the registry; the history stays."""
    from agentos.daemon.mcp.adding import no_server
    from agentos.daemon.mcp.server_skill import tools_of
    from agentos.registry.store import Registry

    registry = Registry(Home.find().registry)
    skill = ResourceId(Kind.SKILL, name)
    if not tools_of(registry.files(registry.stable(), str(skill))):
        raise no_server(registry, name)
    confirm(f"Remove the MCP server {name}?", yes=yes)
    registry.retire(skill, "the MCP server was removed")
    print_text(f"{name} is removed. To bring it back: agentos registry revert {skill}")


@app.command()
def serve(
    client: Annotated[
        str,
        typer.Option(metavar="NAME", help="The program that is served, as settings and records name it."),
    ] = "client",
    http: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve over HTTP, to callers with the client's token; else on standard streams.",
        ),
    ] = "",
) -> None:
    """Serve this home to another program: tasks, runs, feedback, questions, evolutions, skills and memories."""
    from agentos.cli.connections.mcp_serving import serve as serve_tools
    from agentos.resources import name_fault

    if fault := name_fault(client):
        raise UserError(f"--client: {fault}")
    serve_tools(Home.find(), client, http)


@contextmanager
def _sandbox(home: Home) -> Iterator[Sandbox]:
    """The one that runs get, for this command alone."""
    from agentos.sandboxes.choice import Choice
    from agentos.settings import load_settings

    settings = load_settings(home.settings)
    with closing(Choice(home.root, settings.run_uid, settings.sandbox)) as sandbox:
        yield sandbox


def _pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """``KEY=VALUE`` of an option that may be repeated. Raises UserError."""
    for text in given or ():
        if "=" not in text or text.startswith("="):
            raise UserError(f"{option} is NAME=VALUE, found '{text[:100]}'")
    return dict(text.split("=", 1) for text in given or ())


def _asked_packages(command: Sequence[str], url: str, files: Path | None) -> Packages:
    """How it is started. Raises UserError."""
    from agentos.daemon.mcp.packages import Packages, packages_of

    if bool(command) is bool(url):
        raise UserError("A server is named by a command after -- or by --url: give one of the two")
    if url:
        if files:
            raise UserError("--files is for a server that is started here")
        return Packages(())
    packages = packages_of(command)
    if packages.npm and files:
        raise UserError("--files is for a server that is no package of npm")
    return packages


def _hosts_of(url: str, hosts: Sequence[str]) -> list[str]:
    """What it may reach: of a URL its own host alone. Raises UserError."""
    if not url:
        if wrong := [host for host in hosts if not _HOST.fullmatch(host)]:
            raise UserError(f"--host is a name, *.name or name:port, found '{wrong[0][:100]}'")
        return [host.lower() for host in hosts]
    if hosts:
        raise UserError(
            "--host is for a server that is started here; one with --url is reached at its own host"
        )
    try:
        parts = urlsplit(url)
        place = (parts.hostname or "") + (f":{parts.port}" if parts.port is not None else "")
        if parts.scheme in ("http", "https") and place and parts.username is None:
            return [place]
    except ValueError:  # a bracket that is not closed, a port beyond all
        pass
    raise UserError(f"--url is https://HOST/PATH without a user, found '{url[:200]}'")


def _environment_of(
    home: Home, given: Mapping[str, str], secrets: Sequence[str], url: str, hosts: Sequence[str]
) -> dict[str, str]:
    """Variables (headers of a server by URL) with the names of secrets in place of values. Raises UserError."""
    from agentos.models.secrets import secrets_of

    if secrets and not hosts:
        raise UserError("--secret is put into requests: name by --host where the server sends them")
    known, found = secrets_of(home), dict(given)
    for text in secrets:
        variable, _, name = text.rpartition("=")
        if name not in known:
            hint = meant(name, known, "Type: `agentos secret set NAME --host HOST`")
            raise UserError(f"There is no secret '{name[:64]}'. {hint}")
        placed = f"{{{{secret:{name}}}}}"
        if url and not variable:
            found["Authorization"] = f"Bearer {placed}"
        else:
            found[variable or name] = placed
    return found


def _egress_hint(home: Home, hosts: Sequence[str]) -> list[str]:
    """One sentence where the settings do not let runs reach what the server was given."""
    from agentos.daemon.requests.egress import is_named
    from agentos.settings import load_settings

    allowed = load_settings(home.settings).egress
    missing = [host for host in hosts if not is_named(host, allowed)]
    names = ", ".join(f'"{host}"' for host in missing)
    return [f"Runs may not reach {names} yet: add it to 'egress' in agentos.toml"] if missing else []
