"""Folders of other agents that this home has adopted: watched for skills, and given back what is promoted."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from agentos.domain import Evolution, EvolutionState, Json, Verdict, Version
from agentos.errors import NotFound, UserError
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.skill_folders.folder import (
    ADOPTED,
    DifferenceSide,
    FolderDifference,
    folder_differences,
    same_files,
)
from agentos.registry.skill_folders.give_back import GiveBack, GiveBackResult, give_back
from agentos.registry.store import Registry
from agentos.settings import Settings

GIVEN = "adopt.given"  # memo: folder -> digest of the skill that was given to it last
HELD = "adopt.held"  # memo: folder -> why nothing could be given to it
_TRIED = (EvolutionState.PROMOTING, EvolutionState.PROBATION)


@dataclass(frozen=True, slots=True)
class AdoptedFolder:
    """``give``: how a promoted edit goes back; "" as the settings say. ``sessions``: that agent's logs."""

    folder: str
    give: str = ""
    sessions: str = ""


def adopted_folders(reader: Reader) -> list[AdoptedFolder]:
    """In the order in which they were adopted."""
    return [AdoptedFolder(**item) for item in reader.get_kv(ADOPTED, [])]


def session_folders(reader: Reader) -> list[str]:
    """Where the agents of adopted folders write their sessions."""
    return list(dict.fromkeys(item.sessions for item in adopted_folders(reader) if item.sessions))


def adopt_folder(ledger: Ledger, folder: AdoptedFolder) -> None:
    """Watch it from now on; one that is known is changed."""
    others = [item for item in adopted_folders(ledger) if item.folder != folder.folder]
    ledger.set_kv(ADOPTED, [asdict(item) for item in (*others, folder)])
    ledger.note("adopt.folder", folder.folder, asdict(folder))


def release_folder(ledger: Ledger, folder: str) -> bool:
    """Watch it no longer; its skills stay in the registry. False when it was not adopted."""
    kept = [item for item in adopted_folders(ledger) if item.folder != folder]
    if len(kept) == len(adopted_folders(ledger)):
        return False
    ledger.set_kv(ADOPTED, [asdict(item) for item in kept])
    ledger.note("adopt.release", folder, {})
    return True


def watched_folders(home: Home, settings: Settings, reader: Reader) -> list[Path]:
    """All folders that skills are taken from: the home's own, those of the settings, those adopted."""
    adopted = (Path(item.folder) for item in adopted_folders(reader))
    found = [home.skills, *(Path(os.path.expanduser(path)).absolute() for path in settings.skills), *adopted]
    return list(dict.fromkeys(found))


def way_of(settings: Settings, reader: Reader, folder: Path) -> GiveBack:
    """How a promoted edit goes back to this watched folder. What lies in the home or the settings: not by itself."""
    for item in adopted_folders(reader):
        if item.folder == str(folder):
            return GiveBack(item.give or settings.adopt.give)
    return GiveBack.NONE


def proof_of(registry: Registry, reader: Reader, difference: FolderDifference) -> str:
    """The commit message: what was changed and why, and what was measured of it."""
    latest = registry.latest(difference.skill)
    if latest is None:
        return f"{difference.skill}: as in the registry"
    learnt = [version for version, _ in _learnt(registry, reader, difference)]
    if latest not in learnt and (latest.origin != "import" or not learnt):
        learnt.insert(0, latest)
    messages = [_with_measured(registry, reader, version) for version in learnt]
    return "\n\n".join(messages) + "\n"


def _with_measured(registry: Registry, reader: Reader, version: Version) -> str:
    subject, _, body = registry.repository.commit(version.commit).message.strip().partition("\n")
    measured = []
    with suppress(NotFound):
        evolution = reader.get(Evolution, version.evolution or "")
        for verdict in reader.find(Verdict, evolution_id=evolution.id):
            if verdict.candidate_id == evolution.candidate_id:
                said = "; ".join(verdict.reasons)
                many = "task" if len(verdict.fixed) == 1 else "tasks"
                counts = f"{len(verdict.fixed)} {many} mended, {len(verdict.broken)} broken"
                measured = [f"Measured: {counts}. {said}".strip()]
    return "\n\n".join([subject, *measured, body.strip()]).strip()


def _learnt(
    registry: Registry, reader: Reader, difference: FolderDifference
) -> list[tuple[Version, Evolution]]:
    """What evolutions changed since a version that the folder has, newest first.

    Not the newest version alone: what was changed in the folder meanwhile is merged on top of an edit.
    """
    found = []
    for version in registry.versions(difference.skill):
        if same_files(registry, version.digest, difference.theirs):
            break
        with suppress(NotFound):
            evolution = reader.get(Evolution, version.evolution or "")
            if version.origin == "evolution" and evolution.state in (*_TRIED, EvolutionState.PROMOTED):
                found.append((version, evolution))
    return found


def give_all_back(
    home: Home, settings: Settings, ledger: Ledger, registry: Registry
) -> Sequence[tuple[FolderDifference, GiveBackResult | str]]:
    """Give what is promoted, and past its probation, to the adopted folders; each state once.

    Of a folder where that was not possible the reason is given, and kept until it is.
    """
    given, held = dict(ledger.get_kv(GIVEN, {})), dict(ledger.get_kv(HELD, {}))
    told: list[tuple[FolderDifference, GiveBackResult | str]] = []
    open_now: dict[str, Json] = {}
    for difference in folder_differences(registry, [Path(item.folder) for item in adopted_folders(ledger)]):
        key, way = str(difference.folder), way_of(settings, ledger, difference.folder.parent)
        done = given.get(key) == f"{way} {difference.digest}"
        if (
            difference.ahead is not DifferenceSide.REGISTRY
            or way is GiveBack.NONE
            or done
            or not _stands(registry, ledger, difference)
        ):
            continue
        try:
            found = give_back(
                registry, difference, way, proof_of(registry, ledger, difference), home.root / "patches"
            )
        except (UserError, OSError) as error:
            open_now[key] = str(error)
            if held.get(key) != str(error):
                told.append((difference, str(error)))
            continue
        given[key] = f"{way} {difference.digest}"
        ledger.set_kv(GIVEN, given)
        ledger.note("adopt.given", str(difference.skill), {"folder": key, **asdict(found)})
        told.append((difference, found))
    if open_now != held:
        ledger.set_kv(HELD, open_now)
    return told


def _stands(registry: Registry, reader: Reader, difference: FolderDifference) -> bool:
    """Not while one of its evolutions may still be rolled back."""
    latest = registry.latest(difference.skill)
    states = [evolution.state for _, evolution in _learnt(registry, reader, difference)]
    with suppress(NotFound):
        if latest is not None and latest.evolution:
            states.append(reader.get(Evolution, latest.evolution).state)
        return latest is not None and not any(state in _TRIED for state in states)
    return False
