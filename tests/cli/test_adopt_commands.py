"""``agentos adopt``, ``skill sync``, ``task from-run`` and ``run replay`` as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentos.cli.tasks.from_run import proposed_checks, write_task
from agentos.daemon.intake.adopting import AdoptedFolder, adopted_folders, give_all_back
from agentos.domain import (
    Call,
    Check,
    Evolution,
    EvolutionState,
    Feedback,
    InputFile,
    Limits,
    Outcome,
    Rating,
    Result,
    Run,
    Share,
    Sighting,
    Snapshot,
    Task,
)
from agentos.errors import ErrorKind, UserError
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.skill_folders.skills_folder import SkillsFolders
from agentos.registry.store import Registry
from agentos.resources import parse_id
from agentos.settings import load_settings
from agentos.taskfile.text import parse
from tests.refusals import assert_golden, raises

Ran = subprocess.CompletedProcess[str]
Agentos = Callable[..., Ran]
SKILL = "---\nname: adding\ndescription: Adds things. Use it when things are to be added.\n---\n# Adding\n\nAdd.\n"
NEW = SKILL + "\nMind the header.\n"
NAME = parse_id("skill/adding")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A team's checkout with one skill, everything committed."""
    skill = tmp_path / "team" / "skills" / "adding"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    team = tmp_path / "team"
    git(team, "init", "-q")
    git(team, "add", "-A")
    git(team, "commit", "-qm", "first")
    return skill.parent


def git(place: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=place, check=True, capture_output=True, text=True).stdout


def take_in(home: Home, folder: Path) -> Registry:
    """As the daemon does."""
    registry = Registry(home.registry)
    folders = SkillsFolders(registry, [folder], None, settle_s=0.0)
    assert [outcome.action for _ in range(2) for outcome in folders.scan(1.0)] == ["imported"]
    return registry


def sessions(place: Path) -> Path:
    """A session of another agent, and a broken file."""
    place.mkdir()
    lines = [
        {
            "type": "user",
            "sessionId": "s",
            "uuid": "1",
            "message": {"role": "user", "content": "add 1 and 2"},
        },
        {"type": "assistant", "uuid": "2", "message": {"role": "assistant", "id": "m", "content": "3"}},
    ]
    (place / "s.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    (place / "broken.jsonl").write_text("{")
    for file in place.iterdir():
        os.utime(file, (1e9, 1e9))  # it is over
    return place


@pytest.mark.slow
def test_a_folder_is_adopted_with_its_sessions_and_released(
    agentos: Agentos, home: Home, folder: Path, tmp_path: Path
) -> None:
    assert_golden("adopt.no_folder", agentos("adopt", str(tmp_path / "none"), code=1).stderr)
    assert "no folder" in agentos("adopt", "", code=1).stderr, "it is not the working directory"
    assert str(folder) in agentos("adopt", str(folder / "adding"), code=1).stderr
    assert_golden("adopt_give.no_way", agentos("adopt", str(folder), "--give", "mail", code=1).stderr)
    for wrong in ("", str(home.root), str(home.skills), str(home.root.parent), "/"):
        agentos("adopt", wrong, code=1)
    assert adopted_folders(Reader(home.ledger)) == []
    logs = sessions(tmp_path / "logs")
    told = json.loads(agentos("adopt", str(folder), "--sessions", str(logs), "--json").stdout)
    assert told["skills"] == ["adding"]
    assert told["sessions"] == {"imported": 1, "known": 0, "refused": 1}
    again = json.loads(agentos("adopt", str(folder), "--give", "patch", "--json").stdout)
    assert again["sessions"] == {"imported": 0, "known": 1, "refused": 1}
    assert adopted_folders(Reader(home.ledger)) == [AdoptedFolder(str(folder), "patch", str(logs))]
    assert str(folder) in agentos("adopt").stdout
    assert_golden("adopt_release.adopt_path", agentos("adopt", "--release", code=1).stderr)
    gone = json.loads(agentos("adopt", str(folder), "--release", "--json").stdout)
    assert gone == {"folder": str(folder), "released": True}
    assert json.loads(agentos("adopt", "--json").stdout)["folders"] == []
    assert_golden("adopt_release.not_adopted", agentos("adopt", str(folder), "--release", code=1).stderr)


@pytest.mark.slow
def test_folders_that_the_environment_names_are_listed_too(
    agentos: Agentos, home: Home, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = take_in(home, folder)
    registry.commit({f"{NAME}/SKILL.md": NEW.encode()}, "Mind the header", "edit")
    assert "newer than its folder" not in agentos("registry", "list").stdout
    monkeypatch.setenv("AGENTOS_SKILLS", json.dumps([str(folder)]))
    assert "newer than its folder" in agentos("registry", "list").stdout
    monkeypatch.setenv("AGENTOS_SKILLS", "no list")
    assert agentos("registry", "list", code=1).stderr


@pytest.mark.slow
def test_a_difference_is_listed_and_settled(agentos: Agentos, home: Home, folder: Path) -> None:
    agentos("adopt", str(folder))
    registry = take_in(home, folder)
    registry.commit({f"{NAME}/SKILL.md": NEW.encode()}, "Mind the header", "edit")

    def listed() -> Any:
        rows = json.loads(agentos("registry", "list", "--json").stdout)
        return next(row["folder"] for row in rows if row["resource"] == "skill/adding")

    assert listed() == {"folder": str(folder / "adding"), "ahead": "registry"}
    assert "newer than its folder" in agentos("registry", "list").stdout
    (given,) = json.loads(agentos("skill", "sync", "--json").stdout)
    assert given["settled"]
    assert git(folder, "show", "agentos/adding:skills/adding/SKILL.md") == NEW
    (folder / "adding" / "SKILL.md").write_text(SKILL + "\nMine.\n")
    assert listed()["ahead"] == "both"
    assert "both sides" in agentos("skill", "sync", "adding", code=1).stdout
    (folder / "adding" / "SKILL.md").write_text(SKILL)
    for more in ((), ("--json",)):
        assert "needs an answer" in agentos("skill", "sync", "--give", "in-place", *more, code=1).stderr
    assert_golden("skill_sync.skill_adding", agentos("skill", "sync", "ading", code=1).stderr)
    agentos("skill", "sync", "--give", "in-place", "--yes")
    assert (folder / "adding" / "SKILL.md").read_text() == NEW
    assert listed() is None
    assert "Every folder holds" in agentos("skill", "sync").stdout


def test_a_promoted_edit_is_given_back_once_and_not_before_its_probation_is_over(
    agentos: Agentos, home: Home, folder: Path
) -> None:
    agentos("adopt", str(folder))
    registry = take_in(home, folder)
    settings, ledger = load_settings(home.settings), Ledger(home.ledger)

    def given() -> list[Any]:
        return [found for _, found in give_all_back(home, settings, ledger, registry)]

    base = registry.stable()
    candidate = registry.add_candidate("cand-1", base, {f"{NAME}/SKILL.md": NEW})
    registry.promote(base, candidate, {"Evolution": "evo-1", "Verdict": "f" * 64}, "Mind the header")
    assert given() == []  # nobody knows the evolution
    for state, count in (
        (EvolutionState.PROBATION, 0),
        (EvolutionState.PROMOTED, 1),
        (EvolutionState.PROMOTED, 0),
    ):
        ledger.put(Evolution("evo-1", "evd-1", "f" * 16, state, base))
        assert len(given()) == count, state
    message = git(folder, "log", "-1", "--format=%B", "agentos/adding")
    assert message.startswith("Mind the header")
    assert "Evolution: evo-1" in message
    registry.commit({f"{NAME}/SKILL.md": NEW.replace("Mind", "Read").encode()}, "Words", "edit")
    (folder / "adding" / "SKILL.md").write_text(SKILL + " ")
    git(folder, "add", "-A")
    (folder / "adding" / "SKILL.md").write_text(SKILL)
    (why,) = given()  # something is staged there
    assert "not committed" in why
    assert given() == []  # said once
    assert "not committed" in agentos("adopt").stdout
    git(folder, "reset", "-q")
    assert len(given()) == 1
    assert "not committed" not in agentos("adopt").stdout
    ledger.close()


def imported(agentos: Agentos, tmp_path: Path, **record: Any) -> str:
    messages = [{"role": "user", "content": "add 1 and 2"}, {"role": "assistant", "content": "3"}]
    (tmp_path / "r.jsonl").write_text(json.dumps({"messages": messages, **record}))
    agentos("trajectory", "import", str(tmp_path / "r.jsonl"))
    return str(json.loads(agentos("run", "list", "--json").stdout)[0]["id"])


@pytest.mark.slow
def test_a_run_is_exported_in_utf_8_whatever_the_terminal_speaks(
    agentos: Agentos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [{"role": "user", "content": "née?"}, {"role": "assistant", "content": "née"}]
    run = imported(agentos, tmp_path, messages=messages)
    for name, value in (("LC_ALL", "C"), ("PYTHONUTF8", "0"), ("PYTHONCOERCECLOCALE", "0")):
        monkeypatch.setenv(name, value)
    agentos("run", "export", run, "out", options=("-B",))
    assert json.loads((tmp_path / "out" / "run.json").read_text("utf-8"))["answer"] == "née"
    assert "née" in (tmp_path / "out" / "steps.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("record", "options", "checks"),
    [
        ({"outcome": "passed"}, [], [{"equals": {"value": "3"}}]),
        ({"outcome": "failed"}, [], []),
        ({}, ["--expect", "3"], [{"contains": {"value": "3"}}]),
        ({"outcome": "failed", "checks": [{"contains": {"value": "4"}}]}, [], [{"contains": {"value": "4"}}]),
    ],
)
@pytest.mark.slow
def test_a_task_file_is_written_from_a_run(
    agentos: Agentos, tmp_path: Path, record: Any, options: list[str], checks: Any
) -> None:
    run = imported(agentos, tmp_path, **record)
    out = tmp_path / "task.yaml"
    agentos("task", "from-run", run, "-o", str(out), *options)
    written: Any = parse(out.read_text(), "task")
    assert (written["goal"], written["checks"]) == ("add 1 and 2", checks)
    assert yaml.safe_load(agentos("task", "from-run", run, *options).stdout) == written
    agentos("task", "add", str(out))
    assert_golden(
        "task_from_run.exists_already", agentos("task", "from-run", run, "-o", str(out), code=1).stderr
    )


def test_the_inputs_of_a_run_are_written_over_nothing(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTOS_HOME", str(home.root))
    now, ledger = datetime.now(UTC), Ledger(home.ledger)
    given = InputFile("letter.txt", ledger.blobs.put(b"given"), 5)
    task = Task("task-a", "é", "g", Call("odd/tool", {}), (given,), "default", Limits(), (), (), None, now)
    run = Run("run-a", task.id, task.key, Share.OPEN, 1, Snapshot("c" * 40, "t" * 40), "fake", "none", now,
              finished_at=now, outcome=Outcome(Result.PASSED, 1.0, ""))  # fmt: skip
    ledger.add_past(task, run, [])
    ledger.close()
    mine = tmp_path / "task-inputs" / "letter.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    with raises(UserError, ErrorKind.TAKEN, names=["task-inputs"]):
        write_task("run-a", tmp_path / "task.yaml", "")
    assert mine.read_text() == "mine"
    assert not (tmp_path / "task.yaml").exists()
    write_task("run-a", tmp_path / "other.yaml", "")
    for taken in ("/", ".", str(tmp_path)):
        with raises(UserError, ErrorKind.TAKEN):
            write_task("run-a", Path(taken), "")
    assert (tmp_path / "other-inputs" / "letter.txt").read_bytes() == b"given"
    assert parse((tmp_path / "other.yaml").read_text("utf-8"), "task")["name"] == "é"  # type: ignore[index, call-overload]


@pytest.mark.slow
def test_a_task_file_holds_what_was_corrected(agentos: Agentos, tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "add 1 and 2"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "no, it is\n3: count\u2028again"},
        {"role": "assistant", "content": "3"},
    ]
    (tmp_path / "r.jsonl").write_text(json.dumps({"messages": messages, "outcome": "failed"}))
    agentos("trajectory", "import", str(tmp_path / "r.jsonl"))
    run = json.loads(agentos("run", "list", "--json").stdout)[0]["id"]
    agentos("run", "bad", run, "--because", "it guessed first")
    written = agentos("task", "from-run", run).stdout
    assert "# Said of it: it guessed first\n# Said of it: no, it is 3: count again\n" in written
    assert yaml.safe_load(written)["checks"] == []


def test_what_was_put_right_in_a_session_becomes_a_check(agentos: Agentos, tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "add up the invoices"},
        {"role": "assistant", "content": "The total is 44.00"},
        {"role": "user", "content": "no, the total should be 41.30"},
        {"role": "assistant", "content": "Without the duplicate it is 41.30"},
    ]
    (tmp_path / "r.jsonl").write_text(json.dumps({"messages": messages}))
    agentos("trajectory", "import", str(tmp_path / "r.jsonl"))
    run = json.loads(agentos("run", "list", "--json").stdout)[0]["id"]
    assert yaml.safe_load(agentos("task", "from-run", run).stdout)["checks"] == [
        {"contains": {"value": "41.30"}}
    ]


@pytest.mark.parametrize("outcome", ["passed", "failed", "unknown"])
@pytest.mark.slow
def test_what_is_expected_of_a_run_of_elsewhere_goes_into_its_task(
    agentos: Agentos, tmp_path: Path, home: Home, outcome: str
) -> None:
    run = imported(agentos, tmp_path, outcome=outcome)
    (tmp_path / "right.txt").write_text("four")
    said = agentos("run", "correct", run, "--answer", str(tmp_path / "right.txt")).stdout
    assert f"agentos task from-run {run}" in said
    assert "checks are what was said" in agentos("task", "from-run", run).stdout
    assert yaml.safe_load(agentos("task", "from-run", run).stdout)["checks"]
    agentos("run", "good", run)
    assert len(Reader(home.ledger).find(Feedback, run_id=run)) == 2
    assert Reader(home.ledger).find(Sighting) == []


def test_checks_of_a_word_are_proposed(ran: tuple[Task, Run]) -> None:
    task, run = ran
    check = Check("equals", {"value": 3, "path": "n", "made_by": "feedback-1"})
    word = Feedback("feedback-1", run.id, task.key, Rating.BAD, "", (check,), "person:a", run.started_at)
    checks, why = proposed_checks(task, run, {"n": 4}, [word])
    assert checks == [{"equals": {"value": 3, "path": "n"}}]
    assert "what was said" in why
    assert proposed_checks(task, run, {"n": 4}, [])[0] == [{"equals": {"value": {"n": 4}}}]


@pytest.fixture
def ran() -> tuple[Task, Run]:
    """A task without checks, and its run, which passed."""
    now = datetime.now(UTC)
    task = Task("task-1", "a", "add", None, (), "default", Limits(), (), (), None, now)
    outcome = Outcome(Result.PASSED, 1.0, "")
    return task, Run("run-1", task.id, task.key, Share.OPEN, 1, Snapshot("c", "t"), "", "", now, now, outcome)


@pytest.mark.slow
def test_an_unknown_outcome_is_listed_and_no_evidence(agentos: Agentos, tmp_path: Path, home: Home) -> None:
    run = imported(agentos, tmp_path)
    (listed,) = json.loads(agentos("run", "list", "--result", "unknown", "--json").stdout)
    assert listed["id"] == run
    agentos("run", "flag", run)  # a person's word is kept, and nothing can be measured by it
    assert Reader(home.ledger).find(Sighting) == []


def test_refusals_are_counted_and_few_are_kept(agentos: Agentos, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "bad.jsonl").write_text("{\n" * 250)
    (tmp_path / "in" / "note.md").write_text("x")
    ran = agentos("trajectory", "import", str(tmp_path / "in"), "--json", code=1)
    told = json.loads(ran.stdout)
    assert (told["refused_count"], len(told["refused"])) == (250, 100)
    assert sum(told["passed_over"].values()) == 1
    plain = agentos("trajectory", "import", str(tmp_path / "in"), code=1)
    assert "Refused: 250" in plain.stdout
    assert len(plain.stderr.splitlines()) == 100


@pytest.mark.slow
def test_a_run_of_elsewhere_whose_tools_are_not_here_cannot_be_replayed(
    agentos: Agentos, tmp_path: Path
) -> None:
    run = imported(agentos, tmp_path, outcome="failed")
    assert_golden("run_replay.made_elsewhere", agentos("run", "replay", run, code=1).stderr)
