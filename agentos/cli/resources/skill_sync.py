"""``agentos skill sync``: settle what skills' folders and the registry have differently."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentos.cli.group import AsJson, Yes
from agentos.cli.output import confirm, print_json, print_text
from agentos.domain import Kind, ResourceId
from agentos.errors import Conflict, UserError
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.evolver.dependencies import Dependencies
    from agentos.registry.skill_folders.folder import FolderDifference
    from agentos.registry.store import Registry

_TOLD = {
    "registry": "newer than its folder",
    "folder": "older than its folder",
    "both": "changed here and in its folder",
}


def told_of(folder: Mapping[str, str] | None) -> str:
    """The difference in a few words."""
    return _TOLD[folder["ahead"]] if folder else ""


def _differences(home: Home, registry: Registry, reader: Any) -> list[FolderDifference]:
    from agentos.daemon.intake.adopting import watched_folders
    from agentos.registry.skill_folders.folder import folder_differences
    from agentos.settings import load_settings

    return list(folder_differences(registry, watched_folders(home, load_settings(home.settings), reader)))


def sync(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One skill; without it, all that differ.")
    ] = None,
    give: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="branch, patch or in-place: how newer text of the registry goes to the folder.",
        ),
    ] = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Settle differences between skills' folders and the registry: newer text goes to the other side.

    Text of the registry goes to the folder as its settings say; text of a folder is taken in by the daemon.
    Where both were changed and cannot be merged, nothing is done, and a person has to choose. Exit code 1
    when something is left.
    """
    from agentos.daemon.offline import offline_context
    from agentos.registry.skill_folders.give_back import GiveBack
    from agentos.registry.store import Registry
    from agentos.resources import unknown

    if give and give not in set(GiveBack) - {GiveBack.NONE}:
        raise UserError(f"There is no way '{give}'; the ways are branch, patch and in-place.")
    home = Home.find()
    told: list[dict[str, Any]] = []
    with offline_context(home) as parts:
        assert isinstance(parts.snapshots, Registry)
        known = parts.snapshots.names(parts.snapshots.stable())
        wanted = None if name is None else ResourceId(Kind.SKILL, name.removeprefix("skill/"))
        if wanted is not None and wanted not in known:
            raise unknown(wanted, known)
        for item in _differences(home, parts.snapshots, parts.records):
            if wanted not in (None, item.skill):
                continue
            settled, why = _settled(home, parts, item, give, ask=not yes)
            one = {"skill": str(item.skill), "folder": str(item.folder), "ahead": item.ahead.value}
            told.append({**one, "settled": settled, "why": why})
    if as_json:
        print_json(told)
    elif not told:
        print_text("Every folder holds what the registry has.")
    for one in [] if as_json else told:
        print_text(f"{one['skill']}  {one['folder']}: {one['why']}")
    raise typer.Exit(0 if all(one["settled"] for one in told) else 1)


def _settled(
    home: Home, parts: Dependencies, item: FolderDifference, give: str, *, ask: bool
) -> tuple[bool, str]:
    """Whether the difference is settled, and what was done or has to be."""
    from agentos.daemon.intake.adopting import proof_of, way_of
    from agentos.ledger.store import Ledger
    from agentos.registry.skill_folders.folder import DifferenceSide
    from agentos.registry.skill_folders.give_back import GiveBack, give_back
    from agentos.registry.store import Registry
    from agentos.settings import load_settings

    registry, ledger = parts.snapshots, parts.records
    assert isinstance(registry, Registry)
    assert isinstance(ledger, Ledger)
    if item.ahead is DifferenceSide.FOLDER:
        return False, "the daemon takes the folder's text in; `agentos status` says why, where it was refused"
    if item.ahead is DifferenceSide.BOTH:
        choice = f"`agentos registry edit {item.skill} --file {item.folder}` takes the folder's"
        return False, f"both sides were changed; {choice}, or put the registry's into the folder"
    way = GiveBack(give) if give else way_of(load_settings(home.settings), ledger, item.folder.parent)
    way = GiveBack.IN_PLACE if way is GiveBack.NONE else way
    if ask and way is GiveBack.IN_PLACE:
        confirm(f"Write {item.skill} of the registry to {item.folder}?", yes=False)
    try:
        given = give_back(registry, item, way, proof_of(registry, ledger, item), home.root / "patches")
    except Conflict as error:
        return False, str(error)
    ledger.note("adopt.given", str(item.skill), {"folder": str(item.folder), "where": given.where})
    return True, f"given back as {given.way}: {given.where}"
