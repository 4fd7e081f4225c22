"""The example distribution, installed by pip without the network: one plug-in of each kind, in real processes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentos.domain import (
    AT_WORK,
    Candidate,
    Check,
    Evolution,
    EvolutionState,
    Kind,
    Layer,
    Result,
    Run,
    Share,
    Trial,
)
from agentos.home import Home
from agentos.ledger.audit import Entry
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.plugins import registry
from agentos.registry.store import Registry
from agentos.retrieval.installed import index_of
from agentos.retrieval.storage import Storage
from tests.command_server import command_server
from tests.daemon.conftest import UNCOMPARED, Daemon, _make_task, until
from tests.daemon.test_evolutions import FAULTY, PAIRS, PATH, RIGHT
from tests.homes import pack

VERSION = "agentos-example 1.0"
ACCOUNT = "DE89 3704 0044 0532 0130 00"  # the standard's own example
BANK = '''"""An account number."""

from pydantic import BaseModel

TOOL = {"name": "account", "description": "An account number", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    number: str


class Output(BaseModel):
    number: str


def run(input: Input) -> Output:
    return Output(number=input.number)
'''


@pytest.fixture(scope="session")
def home_with_skills(first_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = Home(tmp_path_factory.mktemp("skills") / "home")
    shutil.copytree(first_home, found.root)
    files = {
        "skill/bank/tools/account.py": BANK.encode(),
        "skill/bank/SKILL.md": b"---\nname: bank\ndescription: Bank account numbers.\n---\n",
        PATH: FAULTY.encode(),
        "skill/exam-kit/SKILL.md": b"---\nname: exam-kit\ndescription: Grades exams by their points.\n---\n",
    }
    Registry(found.registry).commit(files, "Two skills", "edit")
    return pack(found.root)


@pytest.fixture
def home(home_with_skills: Path, tmp_path: Path) -> Home:
    shutil.copytree(home_with_skills, tmp_path / "home")
    return Home(tmp_path / "home")


@pytest.fixture
def environment(example: Path, tmp_path: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": str(example),
        "EXAMPLE_NOTES": str(tmp_path / "notes.jsonl"),
        "EXAMPLE_BLOBS": str(tmp_path / "share"),
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }


@pytest.fixture
def agentos(home: Home, environment: dict[str, str], tmp_path: Path) -> Callable[..., str]:
    """``agentos("plugin", "list")``: a real process beside the installed example; what it printed."""

    def run(*words: str, stdin: str = "", code: int = 0, **more: str) -> str:
        env = os.environ | environment | more
        done = command_server().run("--home", str(home.root), *words, env=env, cwd=tmp_path, stdin=stdin)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout + done.stderr

    return run


def settings(home: Home, text: str) -> None:
    home.settings.write_text(text + "\n" + home.settings.read_text())


@pytest.mark.slow
def test_one_of_every_kind_is_there_and_works(agentos: Callable[..., str]) -> None:
    rows = json.loads(agentos("plugin", "list", "--json"))
    assert {row["kind"] for row in rows} == set(registry.KINDS)
    assert [row for row in rows if row["state"] != "works"] == []
    assert {(row["distribution"], row["version"]) for row in rows} == {("agentos-example", "1.0")}
    assert "boundary" in agentos("plugin", "list")


@pytest.mark.slow
def test_a_noun_stands_beside_the_others(agentos: Callable[..., str]) -> None:
    assert re.search(r"digest +Of the plug-in agentos-example 1\.0\.", agentos("--help"))
    assert "Count the newest runs" in agentos("digest", "--help")
    assert agentos("digest") == ""


@pytest.mark.slow
def test_runs_of_its_format_come_in(agentos: Callable[..., str], home: Home, tmp_path: Path) -> None:
    record = {"dialog": "User: What is due?\nAgent: Nothing.", "ok": False}
    (tmp_path / "log.json").write_text(json.dumps(record))
    assert "1 failed" in agentos("trajectory", "import", "log.json", "--format", "dialog")
    (run,) = Reader(home.ledger).runs()
    assert Reader(home.ledger).steps(run.id)[0].action["format"] == f"dialog ({VERSION})"
    assert "     1  failed" in agentos("digest")


@pytest.mark.slow
def test_a_secret_lies_in_its_store(agentos: Callable[..., str], home: Home) -> None:
    value = "correct-horse-battery"
    agentos("secret", "set", "BANK", "--host", "api.example.org", "--store", "folder", stdin=value)
    assert (home.root / "secrets.d" / "BANK").read_text() == value
    assert value not in home.secrets.read_text()
    assert json.loads(agentos("secret", "list", "--json"))[0]["kept_in"] == "folder"
    agentos("secret", "remove", "BANK")
    assert not (home.root / "secrets.d" / "BANK").exists()
    assert "no 'nowhere'" in agentos(
        "secret", "set", "X", "--host", "a.org", "--store", "nowhere", stdin=value, code=1
    )


@pytest.mark.slow
def test_a_person_is_told_by_it(agentos: Callable[..., str], home: Home, environment: dict[str, str]) -> None:
    home.settings.write_text('[notify]\nplugins = ["notes-file"]\n')
    assert "delivered" in agentos("notify", "test")
    assert json.loads(Path(environment["EXAMPLE_NOTES"]).read_text())["event"] == "test"
    said = agentos("notify", "test", code=1, EXAMPLE_NOTES="/nowhere/notes")
    assert "FileNotFoundError" in said
    home.settings.write_text('[notify]\nplugins = ["gone"]\n')
    assert "no 'gone' among notifiers" in agentos("notify", "test", code=1)


@pytest.mark.slow
def test_a_task_with_its_check_is_held_to_its_parameters(agentos: Callable[..., str], tmp_path: Path) -> None:
    task = {"goal": "an account", "call": {"tool": "bank/account", "args": {"number": ACCOUNT}}}
    (tmp_path / "task.json").write_text(json.dumps(task | {"checks": [{"iban": {"land": "DE"}}]}))
    assert "'land' is no parameter" in agentos("task", "add", "task.json", code=1)
    (tmp_path / "task.json").write_text(json.dumps(task | {"checks": [{"iban": {"path": "number"}}]}))
    agentos("task", "add", "task.json")
    said = agentos("task", "add", "task.json", code=1, PYTHONPATH="")
    assert "'iban' is no kind of check" in said


def test_its_retriever_finds_what_is_misspelt(
    example: Path, use: Callable[[Path], None], home: Home, tmp_path: Path
) -> None:
    use(example)
    found = Registry(home.registry)
    index = index_of("trigrams", Storage(tmp_path / "index.db"), found)
    hits = index.find(found.stable(), "gradez of exmas", (Kind.SKILL,), 1)
    assert [str(hit.resource) for hit in hits] == ["skill/exam-kit"]
    index.close()


@pytest.mark.sandbox
@pytest.mark.slow
def test_its_sandbox_keeps_what_sandboxes_promise(agentos: Callable[..., str]) -> None:
    said = json.loads(agentos("sandbox", "check", "half", "--quick", "--json"))
    (found,) = said["sandboxes"]
    assert found["sandbox"] == "half"
    assert all(claim["held"] for claim in found["claims"])


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_page_shows_words_and_runs_nothing(
    agentos: Callable[..., str], home: Home, environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-P", "-m", "agentos", "--home", str(home.root), "web", "--port", "0"]
    child = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        link = next(word for line in child.stdout for word in line.split() if word.startswith("http"))
        with httpx.Client(base_url=link.partition("/enter")[0], follow_redirects=True, timeout=60) as client:
            assert '<a href="/plugins/tools">' in client.get(link).text
            page = client.get("/plugins/tools")
            assert page.status_code == 200
            assert "In the newest 0 runs." in page.text
            assert f"tools ({VERSION})" in page.text
            assert client.get("/plugins/nobody").status_code == 404
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)


@pytest.fixture
def daemon(home: Home, environment: dict[str, str]) -> Iterator[Daemon]:
    made = Daemon(home, environment=environment)
    yield made
    made.close()


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_daemon_works_with_all_of_them(
    home: Home, daemon: Daemon, agentos: Callable[..., str], environment: dict[str, str]
) -> None:
    settings(home, 'sandbox = "half"\nblobs = "packed"\nretrieval = "trigrams"')
    home.settings.write_text(home.settings.read_text() + '\n[notify]\nplugins = ["notes-file"]\n')
    daemon.start()
    ledger = Ledger(home.ledger)
    runs: list[Run] = []
    filed: list[str] = []
    for number in (ACCOUNT, ACCOUNT.replace("89", "88"), "x" * 9_000):
        task = _make_task("bank/account", number=number)
        filed.append(task.id)
        ledger.add_task(replace(task, checks=(Check("iban", {"path": "number"}),)), Share.OPEN)

    def ended() -> bool:
        runs[:] = [run for run in Reader(home.ledger).runs() if run.outcome]
        return len(runs) == 3

    until(ended, "all runs have ended", 60)
    good, wrong, long = sorted(runs, key=lambda run: filed.index(run.task_id))
    for run in runs:
        assert run.outcome is not None
        assert run.sandbox == "half"
        assert [check.plugin for check in run.outcome.checks] == [f"iban ({VERSION})"]
    assert good.outcome is not None
    assert wrong.outcome is not None
    assert good.outcome.result is Result.PASSED, good.outcome
    assert wrong.outcome.result is Result.FAILED
    assert wrong.outcome.checks[0].detail == "the check digits of DE88370400440532013000 are wrong"
    # a long answer lies in the plug-in's store, and nothing new in the home's own files
    sha256 = long.answer["blob"]
    assert (Path(environment["EXAMPLE_BLOBS"]) / sha256).exists()
    assert not (home.blobs / sha256[:2] / sha256[2:]).exists()
    assert "xxxx" in agentos("run", "show", long.id)
    notes = Path(environment["EXAMPLE_NOTES"])
    until(lambda: notes.exists() and "failed" in notes.read_text(), "somebody is told", 60)
    noted = [entry for entry in ledger.entries_after(0, 1_000) if entry.event == "plugins.changed"]
    assert _names(noted) == sorted(registry.KINDS)
    ledger.close()
    agentos("audit", "verify")
    (Path(environment["EXAMPLE_BLOBS"]) / sha256).unlink()
    assert f"the blob {sha256} is missing" in agentos("audit", "verify", code=1)


def _names(noted: list[Entry]) -> list[str]:
    assert len(noted) == 1
    detail: Any = noted[0].detail
    return sorted(row["kind"] for row in detail["plugins"] if row["state"] == "works")


@pytest.mark.sandbox
@pytest.mark.slow
def test_an_evolution_has_their_versions_on_record(
    home: Home, daemon: Daemon, agentos: Callable[..., str]
) -> None:
    settings(home, 'sandbox = "half"')
    # so short that the shipped search finds nothing
    (home.root / "policy.toml").write_text(f"[propose]\nbudget_s = 0.001\n{UNCOMPARED}")
    daemon.start()
    ledger = Ledger(home.ledger)
    for points, needed in PAIRS:
        check = Check("equals", {"value": "pass" if points >= needed else "fail", "path": "grade"})
        task = _make_task("exam-kit/grade", points=points, needed=needed)
        ledger.add_task(replace(task, checks=(check,)), Share.OPEN)

    def over() -> bool:
        found = ledger.find(Evolution)
        return bool(found) and not any(item.state in AT_WORK for item in found)

    until(over, "the evolution has ended", 120)
    (evolution,) = ledger.find(Evolution)
    assert evolution.state in (EvolutionState.PROBATION, EvolutionState.PROMOTED), evolution.reason
    candidate = ledger.get(Candidate, str(evolution.candidate_id))
    assert (candidate.proposer, candidate.plugin) == ("boundary", f"boundary ({VERSION})")
    assert candidate.manifest.layer in (Layer.SKILL, Layer.TOOL)
    trials = ledger.find(Trial, evolution_id=evolution.id)
    assert {(trial.sandbox, trial.image.split(":")[0]) for trial in trials} == {("half", VERSION)}
    assert {trial.plugins for trial in trials} == {(f"sandboxes/half ({VERSION})",)}
    ledger.close()
    registry_ = Registry(home.registry)
    assert registry_.files(registry_.stable(), PATH)[PATH].decode() == RIGHT
    # the verdict comes out the same where no plug-in is installed
    agentos("audit", "verify", PYTHONPATH="")
    assert f"boundary ({VERSION})" in agentos("evolution", "show", evolution.id)
