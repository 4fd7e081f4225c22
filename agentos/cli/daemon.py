"""``agentos daemon …``: the long-running process."""

from __future__ import annotations

import gc
from typing import Annotated

import typer

from agentos.cli.group import noun
from agentos.cli.output import print_json, print_text, tell_progress
from agentos.home import Home

app = noun("Start, stop and look at the daemon.")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@app.command()
def start() -> None:
    """Start it in the background; returns when it takes tasks."""
    from agentos.daemon.background import start_daemon

    home = Home.find()
    tell_progress("The daemon starts; it tries the sandbox first.")
    info = start_daemon(home)
    print_text(f"The daemon runs: pid {info.pid}, log {home.logs / 'daemon.log'}", "green")


@app.command()
def stop(
    now: Annotated[
        bool, typer.Option("--now", help="Do not wait for tasks under way; they run again.")
    ] = False,
) -> None:
    """Let it finish the tasks under way, then end."""
    from agentos.daemon.background import stop_daemon

    home = Home.find()
    if stop_daemon(home, at_once=now):
        print_text("The daemon has stopped.")
    else:
        print_text(f"No daemon runs on {home.root}.", "dim")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Does it run? Exit code 0 when it does, 1 when not."""
    from agentos.daemon.daemon_lock import daemon_info

    home = Home.find()
    info = daemon_info(home)
    alive = info is not None and info.alive
    if as_json:
        print_json({"home": str(home.root), "alive": alive, "daemon": info})
    elif info is None:
        print_text(f"No daemon runs on {home.root}; `agentos daemon start` starts it.")
    elif info.alive:
        print_text(
            f"The daemon runs: pid {info.pid}, since {info.started_at}, version {info.version}", "green"
        )
    else:
        print_text(
            f"No daemon runs on {home.root}: the last one (pid {info.pid}) was killed. "
            "`agentos daemon start` starts one; it takes up what was under way."
        )
    raise typer.Exit(0 if alive else 1)


@app.command()
def run(
    quiet: Annotated[bool, typer.Option("--quiet", help="Write to the log only.")] = False,
) -> None:
    """Be the daemon, in the foreground. Ctrl-C drains; Ctrl-C again stops at once."""
    gc.disable()  # looking for garbage takes a tenth of the time that the imports take
    from agentos.daemon.process import run_daemon

    gc.freeze()
    gc.enable()
    run_daemon(Home.find(), console=not quiet)
