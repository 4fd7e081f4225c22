"""``agentos adopt``: another agent's skills folder as a source of skills, and its session logs as runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentos.cli.group import AsJson, verb
from agentos.cli.output import counted, print_json, print_table, print_text
from agentos.errors import UserError
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.ledger.store import Ledger

app = verb()


@app.command()
def adopt(
    path: Annotated[
        str | None,
        typer.Argument(metavar="PATH", help="A folder of skills; without it, list what is adopted."),
    ] = None,
    give: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="How edits go back: branch, patch, in-place or none; else as the settings say.",
        ),
    ] = "",
    sessions: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="That agent's session logs, taken in as runs: now, and by the daemon as they end.",
        ),
    ] = None,
    release: Annotated[bool, typer.Option("--release", help="Watch the folder no longer.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch another agent's folder of skills; edits that took effect here go back there.

    The daemon takes in each skill of the folder, and what is changed there later; sessions too, ten minutes
    after their last line. Typed again, it takes in at once what is new, and changes what is given with it.
    """
    from agentos.daemon.intake.adopting import AdoptedFolder, adopt_folder, adopted_folders
    from agentos.daemon.offline import offline_context
    from agentos.ledger.reading import Reader
    from agentos.ledger.store import Ledger
    from agentos.registry.skill_folders.give_back import GiveBack

    home = Home.find()
    if path is None:
        if give or sessions or release:
            raise UserError("--give, --sessions and --release are of a folder: `agentos adopt PATH …`")
        _list(Reader(home.ledger), as_json=as_json)
        return
    place = _place(home, path, release=release)
    if give and give not in set(GiveBack):
        raise UserError(f"There is no way '{give}'; the ways are {', '.join(GiveBack)}.")
    if sessions is not None and not os.path.isdir(os.path.expanduser(sessions)):
        raise UserError(
            f"'{sessions}' is no folder; name the one that holds session logs, as ~/.claude/projects."
        )
    with offline_context(home) as parts:
        ledger = parts.records
        assert isinstance(ledger, Ledger)
        if release:
            _release(ledger, place, as_json=as_json)
            return
        before = next((item for item in adopted_folders(ledger) if item.folder == str(place)), None)
        logs = (
            os.path.abspath(os.path.expanduser(sessions)) if sessions else before.sessions if before else ""
        )
        adopt_folder(ledger, AdoptedFolder(str(place), give or (before.give if before else ""), logs))
    found = sorted(item.parent.name for item in place.glob("*/SKILL.md"))
    taken = _take_sessions(home, Path(logs)) if logs else {}
    if as_json:
        print_json({"folder": str(place), "skills": found, "sessions": taken})
        return
    print_text(
        f"{place} is adopted: {counted(len(found), 'skill')}, which the daemon takes in while it runs."
    )
    if taken:
        print_text(
            f"{counted(taken['imported'], 'session')} taken in as runs, {taken['known']} there already, "
            f"{counted(taken['refused'], 'record')} refused; `agentos run list --result unknown` shows them."
        )


def _place(home: Home, path: str, *, release: bool) -> Path:
    """The folder that is meant. Raises UserError where it can hold no skills of another agent."""
    place = Path(os.path.expanduser(path)).absolute()
    if release and path:
        return place
    if not path or not place.is_dir():
        raise UserError(f"'{path}' is no folder; name the one that holds the skills' folders.")
    if (place / "SKILL.md").exists():
        raise UserError(f"'{path}' is a skill itself; name the folder above it: {place.parent}.")
    own, there = home.root.resolve(), place.resolve()
    if own.is_relative_to(there) or there.is_relative_to(own):
        raise UserError(
            f"'{path}' holds this home or lies in it; name another agent's folder of skills, as ~/.claude/skills."
        )
    return place


def _release(ledger: Ledger, place: Path, *, as_json: bool) -> None:
    from agentos.daemon.intake.adopting import release_folder

    if not release_folder(ledger, str(place)):
        raise UserError(f"'{place}' is not adopted; `agentos adopt` shows what is.")
    if as_json:
        print_json({"folder": str(place), "released": True})
    else:
        print_text(f"{place} is watched no longer; its skills stay in the registry.")


def _list(reader: Any, *, as_json: bool) -> None:
    from agentos.daemon.intake.adopting import HELD, adopted_folders

    folders, held = adopted_folders(reader), reader.get_kv(HELD, {})
    if as_json:
        print_json({"folders": [asdict(item) for item in folders], "held": held})
        return
    print_table(
        ("folder", "gives back", "sessions"),
        [(item.folder, item.give or "as the settings say", item.sessions) for item in folders],
        empty="No folder is adopted; `agentos adopt ~/.claude/skills` adopts one.",
    )
    for folder, why in held.items():
        print_text(f"{folder}: nothing was given back: {why}", "yellow")


def _take_sessions(home: Home, logs: Path) -> Mapping[str, int]:
    """Import the session logs, quietly; what is there already is counted and left alone."""
    from agentos.daemon.intake.sessions import take_all
    from agentos.daemon.offline import offline_context
    from agentos.ledger.store import Ledger
    from agentos.settings import load_settings
    from agentos.trajectories.past import ImportTarget

    with offline_context(home) as parts:
        assert isinstance(parts.records, Ledger)
        into = ImportTarget(parts.snapshots.stable(), load_settings(home.settings).hold_out, parts.now())
        return dict(take_all(parts.records, into, logs))
