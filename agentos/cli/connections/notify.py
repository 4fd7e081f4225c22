"""``agentos notify …``: how a person is told, and what could not be told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import typer

from agentos.cli.group import AsJson, Newest, noun
from agentos.cli.output import print_json, print_table, print_text
from agentos.domain import Notification, NotificationState
from agentos.errors import UserError
from agentos.home import Home
from agentos.ledger.reading import Reader

app = noun("Test notifications, and see what was sent.")

_RECENT = timedelta(days=2)


@app.command("test")
def try_(as_json: AsJson = False) -> None:
    """Send a test message on each channel that [notify] in agentos.toml names. Exit code 1 when one failed."""
    from agentos.daemon.people.channels import ChannelFailed, channels_of
    from agentos.daemon.people.notifications import deliver
    from agentos.settings import load_settings

    home = Home.find()
    channels = channels_of(home, load_settings(home.settings).notify)
    if not channels:
        raise UserError(
            "Nobody is told of anything: name a command, webhook, mail_to or desktop under [notify]."
        )
    now = datetime.now(UTC)
    told: dict[str, str] = {}
    for name, send in channels.items():
        id = f"note-test-{now:%Y%m%d%H%M%S}-{name}"  # noqa: A001 - as elsewhere
        text = "If you read this, agentos can tell you when something changes."
        note = Notification(id, "test", "test", name, "A test", text, now)
        try:
            deliver(send, note)
            told[name] = ""
        except ChannelFailed as error:
            told[name] = str(error)
    if as_json:
        print_json([{"channel": name, "delivered": not why, "why": why} for name, why in told.items()])
    else:
        for name, why in told.items():
            print_text(f"{name:<10}{why or 'delivered'}", "red" if why else "green")
    raise typer.Exit(1 if any(told.values()) else 0)


@app.command("list")
def list_(
    limit: Newest = 50,
    as_json: AsJson = False,
) -> None:
    """List the messages that were sent, and what became of each, newest first."""
    states = frozenset(NotificationState) - {NotificationState.MUTED}
    found = Reader(Home.find().ledger).newest(Notification, limit, state=states)
    if as_json:
        print_json(found)
        return
    print_table(
        ("when", "event", "way", "state", "tries", "title", "why"),
        [
            (
                f"{note.at.astimezone():%Y-%m-%d %H:%M}",
                note.event,
                note.channel,
                note.state.value,
                note.tries,
                note.title,
                note.why,
            )
            for note in found
        ],
        empty="Nobody was told of anything yet; `agentos notify test` tries the ways that [notify] names.",
        below=True,
    )


def undelivered(reader: Reader, now: datetime | None = None) -> Sequence[Notification]:
    """What could not be delivered of late, or not yet after a first try, oldest first (``agentos status``)."""
    since = (now or datetime.now(UTC)) - _RECENT
    states = (NotificationState.PENDING, NotificationState.FAILED, NotificationState.UNCERTAIN)
    found = [note for state in states for note in reader.find(Notification, state=state)]
    wanted = [
        note
        for note in found
        if note.at >= since and (note.why or note.state is not NotificationState.PENDING)
    ]
    return sorted(wanted, key=lambda note: note.at)


def tell_undelivered(notes: Sequence[Notification]) -> None:
    """One line for each way that fails, with the newest reason."""
    for channel in dict.fromkeys(note.channel for note in notes):
        own = [note for note in notes if note.channel == channel]
        print_text(
            f"not told    {len(own)} by {channel}: {own[-1].why}  (`agentos notify list`, `agentos notify test`)",
            "red",
        )
