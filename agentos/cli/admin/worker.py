"""``agentos worker …`` and ``agentos cluster …``: hosts that hold boxes for a home."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from agentos.cli.group import AsJson, noun, verb
from agentos.cli.output import moment_text, print_json, print_table, print_text
from agentos.errors import ErrorKind, UserError, missing_extra
from agentos.home import Home, folder_of_user

_TOKEN = "AGENTOS_WORKER_TOKEN"  # noqa: S105 - the variable's name

app = verb()
worker = noun("Run sandboxes on this host for a home on another.")
cluster = noun("Show the hosts of this home, and what runs where.")
app.add_typer(worker, name="worker")
app.add_typer(cluster, name="cluster")


@worker.callback(invoke_without_command=True)
def join(
    context: typer.Context,
    url: Annotated[str, typer.Option("--join", metavar="URL", help="Where the home's daemon listens.")] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"The file that holds the token; else it is read from {_TOKEN}."),
    ] = None,
    boxes: Annotated[
        int, typer.Option(metavar="N", min=0, max=1024, help="Sandboxes at a time; 0: as many as cores.")
    ] = 0,
    memory_mb: Annotated[
        int,
        typer.Option(metavar="MB", min=0, help="Memory for all of them; 0: three quarters of this host's."),
    ] = 0,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="What this host is good for, such as zone=a. Repeatable."),
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A PEM file of authorities to trust as well.")
    ] = None,
    sandbox: Annotated[
        str, typer.Option(metavar="NAME", help="auto, bubblewrap, docker or kubernetes.")
    ] = "auto",
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where it notes what a kill could leave; else below the user's own state."
        ),
    ] = None,
) -> None:
    """Run sandboxes for a home on another host (with --join), in the foreground, until Ctrl-C.

    It needs a token of its own (`agentos token add NAME --role worker`, on the daemon's host) and a sandbox, and
    neither a home nor keys.
    """
    if context.invoked_subcommand is not None:
        return
    if not url:
        raise UserError("A worker is told where to join: `agentos worker --join https://HOST:PORT`")
    try:
        from agentos.sandboxes.remote.worker import Joining, be_a_worker, total_mb
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("agentos"):
            raise
        raise UserError(missing_extra("workers", "A worker"), kind=ErrorKind.NOT_INSTALLED) from None
    joining = Joining(
        url,
        _token(token_file),
        boxes or os.cpu_count() or 1,
        memory_mb or total_mb() * 3 // 4,
        tuple(label or ()),
        str(ca) if ca else "",
    )
    place = (
        state
        or Path(os.environ.get("XDG_STATE_HOME") or folder_of_user() / ".local" / "state") / "agentos-worker"
    )
    be_a_worker(joining, sandbox, place.absolute(), print_text)


def _token(file: Path | None) -> str:
    try:
        found = file.read_text().strip() if file else os.environ.pop(_TOKEN, "").strip()
    except (OSError, ValueError) as error:
        raise UserError(f"The token in {file} cannot be read: {getattr(error, 'strerror', error)}") from None
    if not found:
        raise UserError(f"A worker needs a token: set {_TOKEN}, or name a file with --token-file.")
    return found


@worker.command("list")
def list_(as_json: AsJson = False) -> None:
    """List who may join this home, who has joined, and how much each has to do."""
    _show(as_json=as_json)


@cluster.command()
def status(as_json: AsJson = False) -> None:
    """Show each host with its load, what runs there since when, and what to type where it gets no work."""
    _show(as_json=as_json, runs=True)


def _show(*, as_json: bool, runs: bool = False) -> None:
    from agentos.daemon.control.workers import cluster_view

    view = cluster_view(Home.find())
    if as_json:
        print_json(view)
        return
    if runs:
        where = f"Workers join at {view.listens}; here: {view.here} at a time." if view.listens else ""
        print_text(where or "No daemon of this home listens for workers: set `workers.listen`, and start it.")
    print_table(
        ("worker", "state", "boxes", "load", "sandbox", "memory", "from"),
        [
            (
                one.name,
                one.state,
                f"{len(one.runs)} of {one.boxes}" if one.boxes else "",
                f"{one.load:.1f}/{one.cores}" if one.cores else "",
                f"{one.sandbox} {one.image[:8]}",
                f"{one.memory_mb} MB" if one.memory_mb else "",
                f"{one.host} {one.address}".strip(),
            )
            for one in view.workers
        ],
        empty="No workers: `agentos token add NAME --role worker` makes a token for one.",
    )
    for one in view.workers:
        if one.why:
            print_text(f"{one.name}: {one.why}", "dim")
        for run, since in one.runs if runs else ():
            print_text(f"{one.name}  {run or 'a check'}  since {moment_text(since)}")
