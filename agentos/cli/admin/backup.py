"""``agentos backup``, ``restore`` and ``prune``: what of a home is kept, and where."""

from __future__ import annotations

import shlex
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import counted, print_json, print_text, tell_notes, tell_progress
from agentos.home import Home

app = noun("")


@app.command(example="agentos backup ~/agentos-2026-11-29.tar.gz")
def backup(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A new file; .tar.gz and .tgz are compressed.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the whole home (ledger, blobs, registry, settings, keys) into one file, and read it again.

    The daemon may go on: what the file holds is one moment. It holds keys and whatever runs saw, so keep it as you
    keep the home; only you may read it. `agentos restore FILE` makes a home from it.
    """
    from agentos.daemon.upkeep.backup import back_up

    began = time.monotonic()
    made = back_up(Home.find(), file, replace=force, say=tell_progress)
    size = file.stat().st_size
    tell_notes([f"{name} of the registry leads to nothing, and was left out." for name in made.left_out])
    if as_json:
        print_json(
            {
                "file": str(file),
                "bytes": size,
                "files": len(made.files),
                "head": made.head,
                "made_at": made.made_at,
                "left_out": made.left_out,
            }
        )
        return
    took = time.monotonic() - began
    print_text(
        f"{file}: {counted(len(made.files), 'file')}, {size / 1e6:.1f} MB, read again, {took:.1f} s", "green"
    )
    print_text(f"To see that it works: agentos --home /tmp/again restore {shlex.quote(str(file))}")


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `agentos backup` wrote.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Move the home that is there aside, then restore.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the home (--home, AGENTOS_HOME) from a backup, and verify its log of decisions.

    Everything is unpacked and checked first; a damaged backup changes nothing. A home that is there is never
    removed: with --replace it is moved aside. Exit code 1 when the restored home's audit finds a fault.
    """
    from agentos.daemon.upkeep.backup import restore as restore_home

    home = Home.find()
    audited, old = restore_home(home, file, replace=replace, say=tell_progress)
    if as_json:
        facts = {"home": str(home.root), "moved_aside": old and str(old), "head": str(audited.head)}
        print_json({**facts, "faults": audited.faults})
    else:
        print_text(f"Restored the home {home.root}: {audited.head.count} audit entries.", "green")
        if old is not None:
            print_text(f"The home that was there lies in {old}.")
        for fault in audited.faults:
            print_text(fault, "red")
    if audited.faults:
        raise typer.Exit(1)


@app.command()
def prune(
    days: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=36_500,
            metavar="DAYS",
            help="Runs older than this; 0: no limit. Else as in the settings.",
        ),
    ] = None,
    gb: Annotated[
        float | None,
        typer.Option(
            metavar="GB",
            min=0,
            help="The oldest first while the home is larger; 0: no limit. Else as in the settings.",
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Delete; without this it is only said what would go.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete the steps and files of old runs, and what trials of old evolutions recorded.

    Outcomes, evidence with its runs, verdicts with their trials, flagged runs, the newest 200 runs of each resource and
    the audit log stay, and `agentos audit verify` still finds all that was tampered with. The daemon does the same
    once a day, as `[retention]` in the settings says.
    """
    from datetime import UTC, datetime

    from agentos.daemon.upkeep.retention import prune as prune_home
    from agentos.settings import load_settings

    home = Home.find()
    asked = {name: value for name, value in (("days", days), ("gb", gb)) if value is not None}
    limits = load_settings(home.settings).retention.model_copy(update=asked)
    found = prune_home(home, datetime.now(UTC), limits, apply=yes, say=tell_progress)
    if as_json:
        print_json({**asdict(found), "applied": yes})
        return
    if not (found.runs or found.evolutions or found.blobs or found.wheels):
        print_text("Nothing is old enough to go, and the home is not too large.")
        return
    went = "went" if yes else "would go"
    print_text(
        f"{counted(found.runs, 'run')}: steps and files {went} ({found.kept:,} beside are kept whole); "
        f"trajectories of {counted(found.evolutions, 'evolution')}; {counted(found.blobs, 'file')} and {counted(found.wheels, 'wheel')} with {found.bytes / 1e6:.1f} MB "
        f"of {found.size_before / 1e6:.1f} MB.",
        "green" if yes else "",
    )
    if not yes:
        print_text("Nothing was changed. To do it: agentos prune --yes")
