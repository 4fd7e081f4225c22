"""`agentos evolve`: look for evidence now, and follow what comes of it."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from agentos.cli.group import verb
from agentos.cli.output import print_json, print_text
from agentos.domain import Evolution
from agentos.errors import Conflict, UserError
from agentos.home import Home

app = verb()

_POLL_S = 0.1


@app.command()
def evolve(
    wait: Annotated[
        bool, typer.Option(help="Follow the evolutions until each has ended or waits for you.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """One pass now: mine the failed runs, open an evolution for each recurring failure, follow them."""
    from agentos.cli.evolution_screen import gave_way
    from agentos.daemon.daemon_lock import daemon_info
    from agentos.daemon.offline import desk
    from agentos.evolver.find.mining import mine
    from agentos.evolver.find.triage import triage

    home = Home.find()
    daemon = daemon_info(home)
    if wait and not (daemon and daemon.alive):
        raise UserError(
            "The daemon does not run, and trials run in it; type `agentos daemon start`, then again."
        )
    with desk(home) as parts:
        with suppress(Conflict):  # the daemon mined the same runs a moment earlier
            mine(parts)
        found = triage(parts)
        opened = [item.id for item in found]
    ended = _follow(home, opened, quiet=as_json) if wait else []
    if as_json:
        print_json({"opened": opened, "evolutions": ended})
    elif opened:
        for item in found:
            if item.given:
                print_text(gave_way(len(item.given)))
            print_text(f"`agentos evolution show {item.id}` explains it.", "dim")
    else:
        print_text(
            "Nothing new: no failure recurs that has not been tried. `agentos evolution list` shows the past."
        )


def _follow(home: Home, ids: list[str], *, quiet: bool) -> list[Evolution]:
    """Print each change of state until none of these is at work any more."""
    import time

    from rich.console import Console

    from agentos.cli.evolution_screen import change_text
    from agentos.evolver.find.triage import AT_WORK
    from agentos.ledger.reading import Reader

    reader = Reader(home.ledger)
    console = Console(highlight=False, soft_wrap=True)
    seen: dict[str, str] = {}
    while True:
        found = [item for item in reader.find(Evolution) if item.id in ids]
        for item in found:
            if seen.get(item.id) != item.state.value and not quiet:
                console.print(change_text(item))
            seen[item.id] = item.state.value
        if not any(item.state in AT_WORK and item.state.value != "awaiting_consent" for item in found):
            return found
        time.sleep(_POLL_S)
