"""The daemon watches adopted folders beside its own, and gives back what was learnt."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.daemon.intake.adopting import (
    AdoptedFolder,
    adopt_folder,
    give_all_back,
    proof_of,
    session_folders,
)
from agentos.daemon.intake.folders import Folders
from agentos.daemon.intake.sessions import LOOK_S, SETTLED_S, SessionLogs, take_all
from agentos.daemon.service import service
from agentos.domain import Evolution, EvolutionState, Result
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.skill_folders.folder import folder_differences
from agentos.registry.skill_folders.skills_folder import SkillsFolders
from agentos.registry.store import Registry
from agentos.resources import parse_id
from agentos.settings import load_settings
from agentos.trajectories.past import ImportTarget

SKILL = "---\nname: adding\ndescription: Adds things. Use it when things are to be added.\n---\n# Adding\n\nAdd.\n"
NAME = parse_id("skill/adding")
pytestmark = pytest.mark.sandbox


def test_a_folder_that_is_adopted_later_is_watched_and_given_back_to(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "theirs" / "adding" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(SKILL)
    with service(home, load_settings(home.settings), socket_name="test.sock") as served:
        folders = Folders(served)
        folders.scan()
        assert served.registry.latest(NAME) is None
        adopt_folder(served.ledger, AdoptedFolder(str(tmp_path / "theirs"), "in-place"))
        deadline = time.monotonic() + 60
        while served.registry.latest(NAME) is None:
            assert time.monotonic() < deadline
            folders.scan()
        new = SKILL + "\nMind the header.\n"
        served.registry.commit({f"{NAME}/SKILL.md": new.encode()}, "Mind the header", "edit")
        folders.scan()
        assert file.read_text() == new


def say(file: Path, text: str, *, more: bool = False) -> float:
    """A session of another agent, or its next words; when it was written."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": text}},
        {"type": "assistant", "message": {"role": "assistant", "id": f"m-{text}", "content": "Done."}},
    ]
    with file.open("a" if more else "w") as opened:
        opened.writelines(f"{json.dumps({'uuid': f'{text}-{n}', **line})}\n" for n, line in enumerate(lines))
    return file.stat().st_ctime


def test_sessions_are_taken_in_as_they_end(home: Home, ledger: Ledger, tmp_path: Path) -> None:
    registry, logs = Registry(home.registry), tmp_path / "sessions"
    over = say(logs / "a" / "1.jsonl", "add one") - SETTLED_S - 1
    os.utime(logs / "a" / "1.jsonl", (over, over))
    say(logs / "a" / "0.jsonl", "add nothing")
    into = ImportTarget(registry.stable(), 0.0, datetime.now(UTC))
    assert take_all(ledger, into, logs) == {"imported": 1, "known": 0, "refused": 0}
    say(logs / "a" / "0.jsonl", "add more", more=True)  # it was under way
    adopt_folder(ledger, AdoptedFolder(str(tmp_path / "theirs"), "", str(logs)))
    sessions, folders = SessionLogs(ledger, registry, 0.0), session_folders(ledger)
    assert folders == [str(logs)]
    written = say(logs / "b" / "2.jsonl", "add two")
    (logs / "broken.jsonl").write_text("{")
    assert sessions.look(folders, 1.0, written + SETTLED_S / 2) == {}  # it may go on
    later = written + 5 * SETTLED_S
    assert sessions.look(folders, 2.0, later) == {}  # not before the next look
    found = sessions.look(folders, 1.0 + LOOK_S, later)
    assert found == {"imported": 2, "known": 1, "refused": 1}
    # from the memo alone: a daemon that starts again takes nothing twice
    assert SessionLogs(ledger, registry, 0.0).look(folders, 1.0, later) == {}
    ahead = written + 3650 * 86_400  # of the clock, and so of what is written
    os.utime(logs / "b" / "2.jsonl", (ahead, ahead))
    sessions.look(folders, 1.0 + 2 * LOOK_S, ahead + 2 * SETTLED_S)
    say(logs / "b" / "3.jsonl", "add three")
    assert sessions.look(folders, 1.0 + 3 * LOOK_S, later)["imported"] == 1
    os.rename(logs, tmp_path / "away")
    assert sessions.look(folders, 1.0 + 4 * LOOK_S, later) == {}
    runs = ledger.runs(result=Result.UNKNOWN, limit=10)
    assert len(runs) == 4


def test_what_the_folder_changed_meanwhile_hides_neither_proof_nor_probation(
    home: Home, ledger: Ledger, tmp_path: Path
) -> None:
    registry, place = Registry(home.registry), tmp_path / "theirs"
    folder, path = place / "adding", f"{NAME}/SKILL.md"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    skills = SkillsFolders(registry, [place], None, settle_s=0.0)
    take_in = lambda: [skills.scan(1.0) for _ in range(2)]  # noqa: E731
    take_in()
    base = registry.stable()
    evolution = Evolution("evo-1", "evd-1", "f", EvolutionState.PROBATION, base)
    candidate = registry.add_candidate("cand-1", base, {path: SKILL.replace("Add.", "Add all rows.")})
    registry.promote(base, candidate, {"Evolution": "evo-1"}, "Add all rows")
    ledger.put(evolution)
    (folder / "SKILL.md").write_text(SKILL.replace("# Adding", "# Adding numbers"))
    take_in()
    assert registry.versions(NAME)[0].evolution is None  # a merge lies on top
    adopt_folder(ledger, AdoptedFolder(str(place), "in-place"))
    settings = load_settings(home.settings)
    assert not give_all_back(home, settings, ledger, registry)  # it may still be rolled back
    (difference,) = folder_differences(registry, [place])
    assert "Evolution: evo-1" in proof_of(registry, ledger, difference)
    ledger.put(replace(evolution, state=EvolutionState.PROMOTED))
    assert give_all_back(home, settings, ledger, registry)
    text = (folder / "SKILL.md").read_text()
    assert "Add all rows." in text
    assert "# Adding numbers" in text
