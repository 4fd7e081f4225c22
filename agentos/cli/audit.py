"""``agentos audit``: is the log of decisions whole, and what does it say."""

from __future__ import annotations

from typing import Annotated

import typer

from agentos.cli.group import noun
from agentos.cli.output import print_json, print_table, print_text
from agentos.home import Home
from agentos.ledger.audit import Head
from agentos.ledger.reading import Reader

app = noun("Verify and read the hash-chained log of decisions.")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@app.command()
def verify(
    head: Annotated[
        str | None, typer.Option(help="A head noted earlier (number:hash); the log must still contain it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every entry against the chain. Exit code 1 when something is wrong.

    Note the head that is printed somewhere else: only that shows a log that was rewritten whole.
    """
    reader = Reader(Home.find().ledger)
    faults = reader.verify(Head.parse(head) if head else None)
    newest = reader.head()
    if as_json:
        print_json({"entries": newest.count, "faults": faults, "head": str(newest)})
    elif faults:
        for fault in faults:
            print_text(fault, "red")
    else:
        print_text(f"The audit log is whole: {newest.count} entries.", "green")
        print_text(f"head {newest}")
    if faults:
        raise typer.Exit(1)


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest entries.")] = 50,
    subject: Annotated[str | None, typer.Option(help="Only entries on this run, evolution, …")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the newest entries, the newest last."""
    entries = Reader(Home.find().ledger).entries(limit, subject)
    if as_json:
        names = ("seq", "at", "event", "subject", "detail", "previous", "hash")
        print_json([{name: getattr(entry, name) for name in names} for entry in entries])
        return
    print_table(
        ("#", "when", "event", "subject", "detail"),
        ((entry.seq, entry.at[:19], entry.event, entry.subject, entry.detail_text) for entry in entries),
        empty=f"No entry is on {subject!r}; `agentos audit list` shows all."
        if subject
        else "Nothing was decided yet: add a task with `agentos task add FILE`.",
        below=True,
    )
