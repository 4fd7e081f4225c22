"""``agentos doctor``: find leftovers and damage, and mend them."""

from __future__ import annotations

from typing import Annotated

import typer

from agentos.cli.group import AsJson, verb
from agentos.cli.output import print_json, print_text
from agentos.home import Home

app = verb()


@app.command()
def doctor(
    fix: Annotated[
        bool, typer.Option("--fix", help="Mend what can be mended without losing anything.")
    ] = False,
    full: Annotated[
        bool,
        typer.Option("--full", help="Read all of the ledger, blobs and registry: seconds in an old home."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find leftovers and damage in the home. Exit code 1 when something stays wrong."""
    from agentos.daemon.upkeep.doctor import examine, system_parts

    found = examine(Home.find(), fix=fix, full=full)
    left = [finding for finding in found if not finding.mended]
    if as_json:
        facts = [
            {"what": item.what, "mendable": item.mend is not None, "mended": item.mended} for item in found
        ]
        print_json({"system": system_parts(), "findings": facts})
    else:
        for line in system_parts():
            print_text(line, "dim")
        for finding in found:
            hint = "" if finding.mended or finding.mend is None else "  (--fix mends it)"
            print_text(f"{'mended' if finding.mended else 'found '}  {finding.what}{hint}")
        if not found:
            print_text("Nothing is wrong.", "green")
        if not full:
            print_text(
                "Of ledger and registry the newest part was looked at; --full reads all of them.", "dim"
            )
    raise typer.Exit(1 if left else 0)
