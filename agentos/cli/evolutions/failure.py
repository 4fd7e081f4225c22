"""``agentos failure``: failing runs that are the same failure, and which of them are left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from agentos.cli.group import noun
from agentos.cli.output import print_json, print_table, print_text, time_text
from agentos.domain import MUTED_CURSOR
from agentos.errors import NotFound, UserError
from agentos.home import Home
from agentos.ledger.listing import FailureGroup, failure_groups, odd_cursors
from agentos.ledger.reading import Reader

app = noun("Failures that recur, counted once each; a muted one is not repaired.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The failure's id, or enough of its start.")]
Reason = Annotated[str, typer.Option("--reason", "-m", help="Why, for the record.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]

_MOST = 1_000  # of which one is found by the start of its id


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="So many, the one that was seen last first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Failures by fingerprint: how often, first and last seen, and whether one is muted."""
    reader = Reader(Home.find().ledger)
    muted = odd_cursors(reader, MUTED_CURSOR)
    found = failure_groups(reader, limit)
    if as_json:
        print_json([_plain(group, muted=group.fingerprint.id in muted) for group in found])
        return
    print_table(
        ("failure", "seen", "first", "last", "resource", "what", ""),
        [
            (
                group.fingerprint.id,
                f"{group.count:,}",
                time_text(group.first_at),
                time_text(group.last_at),
                group.fingerprint.resource,
                f"{group.fingerprint.klass}: {group.fingerprint.signature}",
                "muted" if group.fingerprint.id in muted else "",
            )
            for group in found
        ],
        empty="No failure yet. A run that just failed is looked at once no task waits.",
        below=True,
    )


@app.command()
def mute(id: Id, reason: Reason = "", as_json: AsJson = False) -> None:
    """Open no evolution for it from now on. It is still counted; an evolution that is at work goes on."""
    from agentos.evolver.find import triage

    _turn(id, reason, triage.mute, as_json=as_json, muted=True)


@app.command()
def unmute(id: Id, reason: Reason = "", as_json: AsJson = False) -> None:
    """Let evolutions be opened for it again."""
    from agentos.evolver.find import triage

    _turn(id, reason, triage.unmute, as_json=as_json, muted=False)


def _turn(id: str, reason: str, turn: Callable[..., None], *, as_json: bool, muted: bool) -> None:
    from agentos.daemon.offline import offline_context
    from agentos.evolver.promote.consent import person

    home = Home.find()
    group = _found(Reader(home.ledger), id)
    with offline_context(home) as parts:
        turn(parts.cursor, group.fingerprint.id, person(), reason)
    if as_json:
        print_json(_plain(group, muted=muted))
    else:
        print_text(f"{group.fingerprint.id} is {'muted' if muted else 'muted no longer'}.", "green")


def _found(reader: Reader, fragment: str) -> FailureGroup:
    found = [group for group in failure_groups(reader, _MOST) if group.fingerprint.id.startswith(fragment)]
    if not found:
        raise NotFound(f"There is no failure {fragment!r}. Try: agentos failure list")
    if len(found) > 1:
        raise UserError(f"{fragment!r} could be any of {len(found)} failures: give more of its id.")
    return found[0]


def _plain(group: FailureGroup, *, muted: bool) -> dict[str, object]:
    return {
        "fingerprint": group.fingerprint,
        "count": group.count,
        "first_at": group.first_at,
        "last_at": group.last_at,
        "muted": muted,
    }
