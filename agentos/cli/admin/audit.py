"""``agentos audit``: is the log of decisions whole, and what does it say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, Newest, noun
from agentos.cli.output import moment_text, print_json, print_table, print_text
from agentos.home import Home
from agentos.ledger.audit import AuditHead
from agentos.ledger.reading import Reader

if TYPE_CHECKING:
    from agentos.daemon.upkeep.auditing import AuditReport

app = noun("Verify and read the hash-chained log of decisions.")


@app.command()
def verify(
    head: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HEAD",
            help="A head noted earlier (number:hash); the log must still contain it. Repeatable.",
        ),
    ] = None,
    heads: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A file of such heads, one on each line, as `audit_heads` sends them."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the log's chain, the ledger, the registry, the blobs and the consents, to find tampering.

    Exit code 1 when something is wrong. Note the head that is printed somewhere else: only that shows a
    home that was rewritten whole, log included.
    """
    from agentos.daemon.upkeep.auditing import noted_heads, verify_home

    noted = [(AuditHead.parse(text), "the head you gave") for text in head or ()]
    found = verify_home(Home.find(), [*noted, *(noted_heads(heads) if heads else ())])
    if as_json:
        print_json(
            {
                "entries": found.head.count,
                "digests_since": found.digests_since or None,
                "evolutions": found.evolutions,
                "consents": found.consents,
                "promotions": found.promotions,
                "faults": found.faults,
                "head": str(found.head),
            }
        )
    else:
        _print(found)
    if found.faults:
        raise typer.Exit(1)


def _print(found: AuditReport) -> None:
    for fault in found.faults:
        print_text(fault, "red")
    if not found.faults:
        counts = {
            "entries": found.head.count,
            "evolutions": found.evolutions,
            "consents": found.consents,
            "promotions": found.promotions,
        }
        looked = ", ".join(f"{what} {count}" for what, count in counts.items())
        print_text(f"All is as the audit log says: {looked}.", "green")
    if found.digests_since > 1:
        print_text(
            f"Entries have digests of what they speak of from entry {found.digests_since} on; what an earlier "
            "release wrote was compared as far as its entries say.",
            "yellow",
        )
    elif not found.digests_since and found.head.count:
        print_text("No entry has digests yet: rows were compared as far as the entries say.", "yellow")
    print_text(f"head {found.head}")


@app.command("list")
def list_(
    limit: Newest = 50,
    subject: Annotated[
        str | None, typer.Option(metavar="ID", help="Only entries on this run, evolution, …")
    ] = None,
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
        (
            (
                entry.seq,
                moment_text(entry.at),
                entry.event,
                entry.subject,
                entry.detail_text,
            )
            for entry in entries
        ),
        empty=f"No entry is on {subject!r}; `agentos audit list` shows all."
        if subject
        else "Nothing was decided yet: add a task with `agentos task add FILE`.",
        below=True,
    )
