"""``agentos sandbox``: what the sandbox holds back on this machine, found out by trying."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from agentos.cli.output import print_json, print_table, print_text
from agentos.home import Home

app = typer.Typer(help="What the sandbox holds back on this machine.", no_args_is_help=True)


@app.callback()
def sandbox() -> None:
    """Keeps ``check`` a command of its own beside those to come."""


@app.command()
def check(
    run_uid: Annotated[
        int | None,
        typer.Option(min=1, help="As root: the uid to try it as.  [default: the settings' run_uid]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Start a real sandbox, try from inside what it must prevent, and print what held.

    The daemon does the same before its first job and runs none where a promise fails. Exit code 1
    when one does not hold, or when there can be no sandbox (the message says what to type).
    """
    from agentos.sandboxes.bubblewrap import Bubblewrap
    from agentos.settings import load_settings

    home = Home.find()
    began = time.monotonic()
    with Bubblewrap(home.root, run_uid or load_settings(home.settings).run_uid) as made:
        claims = made.examine()
        groups = made.groups
    took_s = time.monotonic() - began
    broken = [claim.promise for claim in claims if not claim.held]
    level = "none" if broken else "namespace"
    held_by = (
        f"version {groups.version}: {', '.join(sorted(groups.controllers))}" if groups.parents else "none"
    )
    if as_json:
        print_json(
            {
                "sandbox": made.name,
                "level": level,
                "cgroups": {
                    "version": groups.version,
                    "controllers": sorted(groups.controllers),
                    "why_not": groups.why_not,
                },
                "claims": claims,
                "seconds": round(took_s, 3),
            }
        )
    else:
        rows = [("yes" if claim.held else "NO", f"A job {claim.promise}.", claim.detail) for claim in claims]
        print_table(("holds", "promise", "found"), rows, empty="Nothing was tried.")
        print_text(f"level {level}, control groups {held_by}, tried in {took_s:.1f} s")
        if not groups.parents:
            print_text(
                f"Without control groups ({groups.why_not}) memory is held for each process and not for the whole "
                "job, and CPU time not at all: see docs/security.md.",
                "yellow",
            )
    if broken:
        print_text(f"The sandbox does not hold here: no task will run. Broken: {'; '.join(broken)}.", "red")
        raise typer.Exit(1)
