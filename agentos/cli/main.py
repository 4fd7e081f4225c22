"""The command ``agentos``: finds the noun, imports only that one, and turns errors into exit codes.

Exit codes: 0 done, 1 a person or the machine has to do something (one sentence on standard error
says what), 2 wrong usage, 3 a bug of ours (a report lies in the logs), 4 the daemon runs and cannot work, 130
ended by Ctrl-C.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import itertools
import os
import select
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core
from typer.core import TyperCommand, TyperGroup

from agentos import __version__
from agentos.errors import AgentOSError, ErrorKind, Unavailable, UserError, error_json
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.plugins.registry import Plugin


# Name -> module that exports ``app``, and the line for --help; nothing is imported to print it.
COMMANDS = {
    "init": ("agentos.cli.admin.home", "Make a home, or complete one."),
    "status": ("agentos.cli.admin.home", "Show what the daemon is doing, and what waits for you."),
    "daemon": ("agentos.cli.admin.daemon", "Start, stop and look at the daemon."),
    "service": ("agentos.cli.admin.service", "Let systemd start the daemon."),
    "task": ("agentos.cli.tasks.task", "Add, run, list, show and cancel tasks."),
    "schedule": ("agentos.cli.tasks.schedule", "Repeat work by the clock, or for each file that arrives."),
    "ask": ("agentos.cli.tasks.ask", "Ask an agent about files, without a task file."),
    "run": ("agentos.cli.runs.run", "Look at runs, and say which answers are right."),
    "trajectory": ("agentos.cli.runs.trajectory", "Import runs of other systems; export training data."),
    "memory": ("agentos.cli.resources.memory", "Look at memories; accept those that runs propose."),
    "web": ("agentos.cli.admin.web", "Show this home in a browser."),
    "worker": ("agentos.cli.admin.worker", "Run sandboxes on this host for a home on another."),
    "cluster": ("agentos.cli.admin.worker", "Show the hosts of this home, and what runs where."),
    "token": ("agentos.cli.connections.token", "Make and revoke tokens for the API of this home."),
    "failure": ("agentos.cli.evolutions.failure", "List recurring failures; mute some."),
    "evolve": ("agentos.cli.evolutions.evolve", "Look for recurring failures now, and try to mend them."),
    "evolution": (
        "agentos.cli.evolutions.evolution",
        "See, approve and undo what was changed to mend failures.",
    ),
    "registry": ("agentos.cli.resources.registry", "Look at, edit and undo versions of what shapes agents."),
    "skill": ("agentos.cli.resources.skill", "Add skills, look at them, run their tests."),
    "mcp": ("agentos.cli.connections.mcp", "Add tools of MCP servers; serve this home as one."),
    "rule": ("agentos.cli.resources.rule", "Keep rules that stop or refuse what runs are about to do."),
    "secret": ("agentos.cli.connections.secret", "Keep keys that tools send to hosts and never see."),
    "notify": ("agentos.cli.connections.notify", "Test notifications, and see what was sent."),
    "model": ("agentos.cli.connections.model", "Add, test and stop the models that agents ask."),
    "adopt": ("agentos.cli.resources.adopt", "Watch another agent's skills, and give edits back."),
    "sandbox": ("agentos.cli.admin.sandbox", "Check what the sandbox prevents on this machine."),
    "home": ("agentos.cli.admin.moving", "Move the ledger or the blobs to another store."),
    "audit": ("agentos.cli.admin.audit", "Verify and read the log of decisions."),
    "backup": ("agentos.cli.admin.backup", "Write the whole home into one file."),
    "restore": ("agentos.cli.admin.backup", "Make a home from a backup."),
    "prune": ("agentos.cli.admin.backup", "Delete steps and files of old runs; says first which."),
    "plugin": ("agentos.cli.admin.plugin", "List installed plug-ins, and what is wrong with them."),
    "doctor": ("agentos.cli.admin.doctor", "Find leftovers and damage, and mend them."),
}


_USAGE: Any = typer.BadParameter.__base__  # of click, which typer may bring with itself
_USED: list[Plugin] = []  # whose noun this call is


def _installed(name: str) -> Any:
    """The command of a plug-in, None where none has that name. Raises PluginFailed."""
    from agentos.plugins import registry

    plugin = next((found for found in registry.installed("commands") if found.name == name), None)
    if plugin is None:
        return None
    found = registry.load(plugin)
    if not isinstance(found, typer.Typer):
        raise plugin.failed(f"it is a {type(found).__name__}, and no typer.Typer")
    _USED.append(plugin)
    return typer.main.get_command(found)


def load(name: str) -> Any:
    """Import the command (or the group of commands) of that name."""
    found: Any = typer.main.get_command(importlib.import_module(COMMANDS[name][0]).app)
    return getattr(found, "commands", {}).get(name, found)


@contextmanager
def _while_it_is_read() -> Iterator[None]:
    """A reader that had enough (agentos run list | head) is no fault; click would end with 1 and say nothing."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError as error:
        stdout = select.poll()
        stdout.register(sys.stdout, 0)
        if not stdout.poll(0):
            raise Unavailable("A connection was closed from its other end; try again") from None
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        meant = error.__context__
        raise typer.Exit(meant.exit_code if isinstance(meant, typer.Exit) else 0) from None
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        raise typer.Exit from None  # rich ends with 1 itself
    except _USAGE as wrong:
        if not _wants_json():
            raise
        _say(UserError(wrong.format_message(), kind=ErrorKind.USAGE))
        raise typer.Exit(wrong.exit_code) from None


class _Lazy(TyperGroup):
    """A group whose commands are imported when they are called."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # for --help, and for what was meant by a name that is none
        self.commands = {
            name: TyperCommand(name, help=line, callback=lambda: None) for name, (_, line) in COMMANDS.items()
        }

    def make_context(self, *args: Any, **more: Any) -> Any:
        """As click's, which prints the help meanwhile."""
        with _while_it_is_read():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """As click's, with all that was printed out of the buffer."""
        with _while_it_is_read():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """For a call: the command itself."""
        if any(arg.split("=")[0] == "--home" for arg in itertools.takewhile(lambda arg: arg != "--", args)):
            ctx.fail(f"--home stands before the command: agentos --home PATH {args[0]} …")
        if args and (found := load(args[0]) if args[0] in COMMANDS else _installed(args[0])):
            # by ``run``: nothing looked for garbage meanwhile, and what was imported is none
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            return args[0], found, args[1:]
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """For --help: also the nouns of plug-ins, of which none is imported."""
        from agentos.plugins import registry

        more = [plugin for plugin in registry.installed("commands") if not plugin.fault]
        for plugin in more:
            line = f"Of the plug-in {plugin.distribution} {plugin.version}."
            self.commands[plugin.name] = TyperCommand(plugin.name, help=line, callback=lambda: None)
        return super().list_commands(ctx)


app = typer.Typer(
    cls=_Lazy,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A daemon that runs agents and repairs, by measurement, what makes them fail.",
    epilog="Begin: agentos init, agentos daemon start, agentos task run FILE. "
    "More on each: agentos COMMAND --help.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"agentos {__version__}")
        raise typer.Exit


@app.callback()
def main(
    home: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="The home to work on; else $AGENTOS_HOME, else ~/.agentos."),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of all commands."""
    if home is not None:
        if not home:
            raise typer.BadParameter("it is empty: expected the path of a home", param_hint="--home")
        os.environ["AGENTOS_HOME"] = home


def run() -> None:
    """The console script: never shows a traceback, always ends with a documented exit code."""
    # Looks for cycles of objects while the modules are imported, and a last one as the process ends, are a fifth of
    # what a short command costs.
    gc.disable()
    atexit.register(gc.freeze)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show is replaced
            stream.reconfigure(errors="replace" if stream is sys.stdout else "backslashreplace")
    # a shell without a terminal says 0: nothing would be shown
    if os.environ.get("COLUMNS", "").strip("0") == "":
        os.environ.pop("COLUMNS", None)
    without_adapters()
    try:
        app(prog_name="agentos")
    except AgentOSError as error:
        _say(error)
        _leave(1)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        _say(Unavailable(f"{error.strerror or error}{where}{of_another(error)}"))
        _leave(1)
    except Exception as error:  # noqa: BLE001 - the barrier: a bug becomes a report and exit code 3
        if isinstance(error, UnicodeEncodeError) and (
            bad := [arg for arg in sys.argv[1:] if not _is_text(arg)]
        ):
            _say(UserError(f"{bad[0]!a} is no UTF-8 text; only names of files may be anything else"))
            _leave(1)
        if _USED:
            from agentos.plugins.registry import said

            failed = _USED[0].failed(f"it raised {said(error)}")
            _say(UserError(f"{failed} A report lies in {_report()}."))
            _leave(1)
        sentence = (
            f"This is a bug of agentos ({type(error).__name__}: {error}). A report lies in {_report()}."
        )
        _say(AgentOSError(sentence, kind=ErrorKind.BUG))
        _leave(3)


def _open_streams() -> None:
    """Stand in for what was closed by whoever called: else the next file that is opened, a database, is the output."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        with suppress(OSError):  # closed, so that this opens the lowest that is free
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            setattr(sys, name, open(descriptor, "w" if descriptor else "r", encoding="utf-8"))  # noqa: SIM115


def _is_text(argument: str) -> bool:
    return argument.isascii() or not any("\ud800" <= character <= "\udfff" for character in argument)


def _wants_json() -> bool:
    return "--json" in itertools.takewhile(lambda argument: argument != "--", sys.argv[1:])


def _say(error: AgentOSError) -> None:
    """On standard error, so that all on standard output is what was asked for: a sentence, or one line of JSON."""
    from agentos.cli.output import clean, json_line, with_local_times

    if _wants_json():
        print(json_line({"error": error_json(error)}), file=sys.stderr)
        return
    sentence = str(error)
    # a sentence may begin with a file's name or an id, which are given as they are
    word = sentence.split(" ", 1)[0]
    given = word in sys.argv
    text = sentence[:1].upper() + sentence[1:] if word.isalpha() and not given else sentence
    print(
        clean(with_local_times(text if text.endswith((".", "?", "!", "…")) else text + ".")), file=sys.stderr
    )


def of_another(error: OSError) -> str:
    """Whose home it is, where that is why it is refused."""
    if not isinstance(error, PermissionError):
        return ""
    root = Home.find().root
    with suppress(OSError, KeyError):
        if root.stat().st_uid != os.geteuid():
            return f"; {root} belongs to {root.owner()}, so name a home of your own with --home"
    return ""


def _leave(code: int) -> None:
    sys.stdout.flush()
    if "agentos.daemon.process" in sys.modules and threading.active_count() > 1:
        # a daemon that did not come up: the threads of runs are held, and Python would wait for them
        sys.stderr.flush()
        os._exit(code)
    raise SystemExit(code) from None


def _report() -> str:
    """Write the traceback where it can be sent from; beside the person when there is no home."""
    folder = Path.cwd()
    with suppress(AgentOSError, OSError):  # the home may be what is wrong
        folder = logs if (logs := Home.find().logs).is_dir() else folder
    path = folder / f"bug-{datetime.now(UTC):%Y%m%d-%H%M%S}.txt"
    text = f"agentos {__version__}, Python {sys.version}\n{' '.join(sys.argv)}\n\n{traceback.format_exc()}"
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        return "the lines above: " + text
    return str(path)


# --- Values of parameters that are what they should be already, without typer's pydantic ---------
# typer converts each value by a pydantic adapter, also where nothing was given; to import pydantic and to build
# the adapters takes as long as all else that a list needs. What needs a conversion still gets one from there.


class _LazyAdapter:
    """Stands where typer keeps the adapter of a parameter, until there is a value for one."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it; typer's own errors."""
        wanted, info = self._descriptor.annotation, self._descriptor.parameter_info
        if not param.multiple and param.nargs == 1 and info.parser is None:
            if value is None or (type(value) is wanted and wanted in (str, int, float)):
                return value
            if wanted is Path and type(value) is str and _is_any_path(info) and os.access(value, os.R_OK):
                return Path(value)
            if wanted is int and type(value) is str and _is_within(value, info):
                return int(value)
        return _BUILD(self._descriptor).coerce(value, param=param, ctx=ctx)


def _is_any_path(info: Any) -> bool:
    """Whether nothing more is asked of the path than that it can be read."""
    asked = info.resolve_path or info.writable or info.path_type is not None
    return not asked and info.file_okay and info.dir_okay


def _is_within(value: str, info: Any) -> bool:
    """Whether the text is a whole number, not below zero, within the bounds that were set."""
    is_number = value.isascii() and value.isdigit() and len(value) < 19
    return is_number and (info.min or 0) <= int(value) and (info.max is None or int(value) <= info.max)


_BUILD: Any = getattr(typer.core, "build_runtime_param", None)


def without_adapters() -> None:
    """From now on an adapter is built where a value needs it. Nothing happens to a typer that works otherwise."""
    if _BUILD is not None:
        typer.core.build_runtime_param = _LazyAdapter  # type: ignore[assignment, attr-defined]
