"""``agentos daemon …``: the long-running process."""

from __future__ import annotations

import gc
from typing import Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import print_json, print_text, tell_outdated, tell_progress
from agentos.home import Home

app = noun("Start, stop and look at the daemon.")

StandBy = Annotated[
    bool,
    typer.Option("--stand-by", help="Wait while another daemon leads on the same database; then take over."),
]


@app.command()
def start(stand_by: StandBy = False) -> None:
    """Start the daemon in the background; returns when it takes tasks."""
    from agentos.daemon.control.daemon_lock import start_daemon
    from agentos.daemon.upkeep.status import DEGRADED, daemon_status

    home = Home.find()
    tell_progress("The daemon starts; it tries the sandbox first.")
    info = start_daemon(home, stand_by=stand_by)
    tell_outdated(home)
    status = daemon_status(home)
    if status.code == DEGRADED and status.state != "silent":
        print_text(f"The daemon runs (pid {info.pid}), but {status.why}", "red")
        raise typer.Exit(DEGRADED)
    print_text(f"The daemon runs: pid {info.pid}, log {home.logs / 'daemon.log'}", "green")


@app.command()
def stop(
    now: Annotated[
        bool, typer.Option("--now", help="Do not wait for tasks under way; they run again.")
    ] = False,
) -> None:
    """Stop the daemon when the tasks under way are finished."""
    from agentos.daemon.control.daemon_lock import stop_daemon
    from agentos.gateway.setup import read_ending

    home = Home.find()
    if ended := stop_daemon(home, at_once=now):
        ending = read_ending(home.run)
        said = "The daemon has stopped"
        if ended == "killed":
            said = "The daemon hung and was killed; the next one takes up what was under way"
        print_text(f"{said}; {ending.says}." if ending else f"{said}.")
    else:
        print_text(f"No daemon runs on {home.root}.", "dim")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show whether the daemon works. Exit code 0 when it does, 1 when none runs, 4 when it runs and cannot work."""
    from agentos.cli.admin.home import status_facts, tell_status
    from agentos.daemon.upkeep.status import daemon_status

    home = Home.find()
    status = daemon_status(home)
    if as_json:
        print_json({"home": str(home.root), **status_facts(status)})
    else:
        tell_status(home, status)
    raise typer.Exit(status.code)


@app.command()
def run(
    quiet: Annotated[bool, typer.Option("--quiet", help="Write to the log only.")] = False,
    stand_by: StandBy = False,
) -> None:
    """Run the daemon in the foreground. Ctrl-C lets tasks under way finish; Ctrl-C again stops at once."""
    gc.disable()  # looking for garbage takes a tenth of the time that the imports take
    from agentos.daemon.process import run_daemon

    gc.freeze()
    gc.enable()
    run_daemon(Home.find(), console=not quiet, stand_by=stand_by)
