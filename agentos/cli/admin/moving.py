"""``agentos home``: where what a home keeps lies."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import counted, print_json, print_text, tell_progress
from agentos.errors import UserError
from agentos.home import Home

app = noun("Move what this home keeps to another store.")


@app.callback()
def home() -> None:
    """Move what this home keeps to another store."""


@app.command(example="agentos home move --to postgresql://agentos@db.example.org/agentos")
def move(
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="URL", help="Move the ledger to postgresql://user@host/database, or back: file."
        ),
    ] = "",
    blobs: Annotated[
        str,
        typer.Option(
            "--blobs",
            metavar="URL",
            help="Move the blobs to s3://bucket/folder or file:///folder, or back: files.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Move the ledger into PostgreSQL, or the blobs to another store, and back; what was moved is compared.

    No daemon may work meanwhile. What was there stays where it is; a ledger takes no more rows then. What is cut off is
    asked for again. Registry and keys stay in the home.
    """
    from agentos.daemon.upkeep.moving import move_blobs, move_home

    if bool(to) == bool(blobs):
        raise UserError("expected one of --to (the ledger) and --blobs")
    if blobs:
        done = move_blobs(Home.find(), blobs, tell_progress)
        if as_json:
            print_json({"blobs_in": blobs, **asdict(done)})
            return
        print_text(
            f"{done.blobs:,} blobs ({done.size / 1e6:.1f} MB) lie in {blobs}, each read again", "green"
        )
        print_text("Next: `agentos audit verify`, then `agentos daemon start`.")
        return
    moved = move_home(Home.find(), to)
    if as_json:
        print_json(
            {"to": to, "tables": moved.tables, "rows": moved.rows, "head": moved.head, "again": moved.again}
        )
        return
    print_text(
        f"{counted(moved.rows, 'row')} of {counted(moved.tables, 'table')} lie in {to}, compared one by one; head {moved.head}",
        "green",
    )
    print_text("Next: `agentos audit verify`, then `agentos daemon start`.")
