"""``agentos home``: where what a home keeps lies."""

from __future__ import annotations

from typing import Annotated

import typer

from agentos.cli.group import noun
from agentos.cli.output import print_json, print_text
from agentos.home import Home

app = noun("Where what this home keeps lies.")

AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@app.callback()
def home() -> None:
    """Where what this home keeps lies."""


@app.command()
def move(
    to: Annotated[str, typer.Option("--to", help="postgresql://user@host/database, or the word file.")],
    as_json: AsJson = False,
) -> None:
    """Move the ledger into a PostgreSQL database, or back into the home's own file; all of it, and compared.

    No daemon may work meanwhile. The old ledger stays where it is, and takes no more rows; remove it when you like.
    What is cut off is asked for again. Registry, blobs and keys stay in the home.
    """
    from agentos.daemon.upkeep.moving import move_home

    moved = move_home(Home.find(), to)
    if as_json:
        print_json(
            {"to": to, "tables": moved.tables, "rows": moved.rows, "head": moved.head, "again": moved.again}
        )
        return
    print_text(
        f"{moved.rows:,} rows of {moved.tables} tables lie in {to}, compared one by one; head {moved.head}",
        "green",
    )
    print_text("Next: `agentos audit verify`, then `agentos daemon start`.")
