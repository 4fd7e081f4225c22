"""`agentos evolve`: look for evidence now, and follow what comes of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, verb
from agentos.cli.output import print_json, print_text, tell_progress
from agentos.domain import Evolution
from agentos.errors import Conflict, ErrorKind, UserError, to_type
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.cli.tasks.waits import ModelWaits
    from agentos.evolver.dependencies import Dependencies
    from agentos.ledger.reading import Reader

app = verb()

_POLL_S = 0.1
_WORDS_S = 15.0
_TELL_S = 5.0  # between lines on what takes long


@app.command()
def evolve(
    wait: Annotated[
        bool, typer.Option(help="Follow the evolutions until each has ended or waits for you.")
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Look for recurring failures now, open an evolution for each (an attempt to mend it), and follow them."""
    from agentos.cli.evolutions.screen import gave_way
    from agentos.daemon.control.daemon_lock import daemon_info
    from agentos.daemon.offline import offline_context
    from agentos.daemon.upkeep.heartbeat import stale_settings
    from agentos.evolver.find.mining import mine
    from agentos.evolver.find.triage import triage

    home = Home.find()
    daemon = daemon_info(home)
    if wait and not (daemon and daemon.alive):
        raise UserError(
            "The daemon does not run, and trials run in it; type ",
            to_type("agentos daemon start"),
            ", then again.",
        )
    with offline_context(home) as parts:
        if daemon and daemon.alive:
            await_words(parts)
        with suppress(Conflict):  # the daemon mined the same runs a moment earlier
            mine(parts)
        found = triage(parts)
        opened = [item.id for item in found]
    # what the daemon is at already counts too: another pass opens none for the same failure
    followed = opened or [item.id for item in _under_way(home)]
    if daemon is not None and stale_settings(home, daemon.pid):
        again = "`agentos daemon stop`, then `agentos daemon start`"
        print(
            f"agentos.toml or policy.toml changed since the daemon started: it works by what they said then. {again}",
            file=sys.stderr,
        )
    try:
        ended = _follow(home, followed, quiet=as_json) if wait else []
    except KeyboardInterrupt:
        _tell_left(home, followed)
        raise
    if as_json:
        print_json({"opened": opened, "evolutions": ended})
        return
    for item in found:
        if item.given:
            print_text(gave_way(len(item.given)))
    for name in followed if wait else opened:
        print_text(f"`agentos evolution show {name}` explains it.", "dim")
    if not opened and not ended:
        _tell_nothing(home)


def await_words(parts: Dependencies) -> None:
    """The daemon holds a person's word against its run in a box: one that was given just now is waited for, for a while."""
    from agentos.daemon.people.feedback import CURSOR
    from agentos.domain import Feedback

    until = time.monotonic() + _WORDS_S
    while parts.cursor.read(CURSOR) < len(parts.records.find(Feedback)) and time.monotonic() < until:
        time.sleep(_POLL_S)


def _tell_nothing(home: Home) -> None:
    """Why nothing was opened, and what is under way all the same."""
    from agentos.cli.evolutions.failure import idle_failures, idle_text
    from agentos.ledger.reading import Reader

    print_text(
        "Nothing new: no failure recurs that has not been tried. `agentos evolution list` shows the past."
    )
    if idle := idle_failures(home, Reader(home.ledger)):
        print_text(f"Failures: {idle_text(idle)}", "dim")
    for item in _under_way(home):
        print_text(f"Under way: {item.id}, {item.state.value}; `agentos evolution watch` follows it.", "dim")


def _under_way(home: Home) -> list[Evolution]:
    """What the daemon is at."""
    from agentos.domain import RUNNING_STATES
    from agentos.ledger.reading import Reader

    reader = Reader(home.ledger)
    return [item for state in sorted(RUNNING_STATES) for item in reader.find(Evolution, state=state)]


def _tell_left(home: Home, ids: list[str]) -> None:
    """After Ctrl-C: the daemon goes on with what is not over."""
    left = [item.id for item in _under_way(home) if item.id in ids]
    if left:
        shown = left[0] if len(left) == 1 else f"{left[0]} and {len(left) - 1} more"
        told = f"`agentos evolution show {left[0]}` tells how it went, `agentos evolution watch` follows"
        print(f"\nThe daemon goes on with {shown}; {told}.", file=sys.stderr)


def trials_of(reader: Reader, evolution_id: str) -> int:
    """How many trials were made for it so far."""
    from agentos.domain import Trial

    return len(reader.find(Trial, evolution_id=evolution_id))


def _follow(home: Home, ids: list[str], *, quiet: bool) -> list[Evolution]:
    """Print each change of state until none of these is at work any more."""
    from rich.console import Console

    from agentos.cli.evolutions.screen import change_text
    from agentos.cli.tasks.waits import ModelWaits
    from agentos.daemon.control.daemon_lock import daemon_runs
    from agentos.domain import AT_WORK
    from agentos.ledger.reading import Reader

    reader = Reader(home.ledger)
    console = Console(highlight=False, soft_wrap=True)
    seen: dict[str, tuple[str, str]] = {}
    told, waits = time.monotonic(), ModelWaits(home)
    while True:
        found = [*reader.find(Evolution, id=frozenset(ids))]
        for item in found:
            now_is = (item.state.value, item.waiting.value)
            if seen.get(item.id) != now_is and not quiet:
                console.print(change_text(item))
            seen[item.id] = now_is
        if not any(item.state in AT_WORK and item.state.value != "awaiting_consent" for item in found):
            return found
        if not daemon_runs(home):
            raise UserError(
                "The daemon ended; ",
                to_type("agentos daemon start"),
                " goes on with what is under way.",
                kind=ErrorKind.NOT_RUNNING,
            )
        if not quiet:
            told = _tell_work(reader, found, waits, told)
        time.sleep(_POLL_S)


def _tell_work(reader: Reader, found: Sequence[Evolution], waits: ModelWaits, told: float) -> float:
    """What is asked and how far it is, now and then; when it was said last."""
    from agentos.domain import AT_WORK

    for item in found:
        waits.tell(item.id)
    now = time.monotonic()
    if now - told < _TELL_S:
        return told
    for item in found:
        if item.state in AT_WORK:
            tell_progress(f"  {item.id} is {item.state.value}, {trials_of(reader, item.id)} trials so far")
    return now
