"""task and run commands on a home without a daemon, and once with a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.cli.tasks.task import _tell_steps, tell_left
from agentos.cli.tasks.waits import ModelWaits, before, held_up_by
from agentos.daemon.control.daemon_lock import DaemonLock
from agentos.daemon.intake.filing import doubts
from agentos.daemon.upkeep.status import DaemonStatus, WaitingTask
from agentos.domain import KernelFault, Outcome, Result, Run, Share, Snapshot, Step, kernel_fault
from agentos.gateway.setup import SOCKET, GatewayEnding, note_ending
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.taskfile import read_drafts
from agentos.worker.jobs.workspace_code import OWN_SCRIPT
from tests.daemon.conftest import _make_task
from tests.refusals import assert_golden

NOW = datetime(2026, 5, 1, tzinfo=UTC)

Agentos = Callable[..., "subprocess.CompletedProcess[str]"]

TASK = """
name: count words
call: {tool: word_count, args: {path: text.txt}}
inputs: [text.txt]
checks:
  - equals: {value: 3, path: words}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("three small words\n")
    (tmp_path / "task.yaml").write_text(TASK)
    return tmp_path / "task.yaml"


def test_what_is_added_though_it_cannot_end_well_is_told_at_once(
    agentos: Agentos, tmp_path: Path, home: Home
) -> None:
    checks: list[dict[str, object]] = [
        {"command": {"argv": argv}}
        for argv in (
            ["make"],
            ["pytest", "-q"],
            ["./run.sh"],
            ["python3", "main.py"],
            ["cat", "out.txt"],
            ["true"],
        )
    ]
    checks.append({"command": {"argv": ["make"], "runs_workspace": True, "stdout_equals": "ok"}})
    tasks = [
        {"goal": "make it", "checks": checks},
        {"goal": "x", "agent": "defualt"},
        {"goal": "x", "secrets": ["nobody"]},
        {"call": {"tool": "wordcount", "args": {}}},
        {"call": {"tool": "word_count", "args": {"path": "t"}}},
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    drafts = read_drafts(tmp_path / "tasks.json")
    told = doubts(home, drafts)
    refused = [doubt for doubt in told if "runs_workspace" in doubt]
    assert [doubt.split()[1] for doubt in refused] == ["1", "2", "3", "4"]
    assert all(OWN_SCRIPT in doubt for doubt in refused), (
        "who did not mean a file of the run is told what to type"
    )
    names = [doubt for doubt in told if doubt not in refused]
    assert len(names) == 4
    for word in ("default", "'nobody'", "word_count", "agentos model add"):
        assert [doubt for doubt in names if word in doubt], word
    done = agentos("task", "add", str(tmp_path / "tasks.json"))
    assert len(done.stdout.splitlines()) == len(tasks), "all the same they are added"
    assert done.stderr.count("Note:") == 5
    assert not [
        line
        for line in agentos(
            "task", "add", "-", stdin=TASK.replace("inputs: [text.txt]", "")
        ).stderr.splitlines()
        if "Note" in line
    ]


def test_an_argument_that_is_an_inputs_path_here_and_not_in_the_workspace_is_told(
    home: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "mail"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.txt").touch()

    def told(given: str, argument: str) -> list[str]:
        call = {"tool": "word_count", "args": {"path": argument}}
        document = tmp_path / "task.json"
        document.write_text(json.dumps([{"call": call, "inputs": [given]}]))
        return [doubt for doubt in doubts(home, read_drafts(document)) if doubt.startswith(f"'{argument}'")]

    (doubt,) = told("mail/in/a.txt", "mail/in/a.txt")
    assert doubt.endswith("'a.txt'")
    (doubt,) = told(str(folder), f"{folder}/in/a.txt")
    assert doubt.endswith("'mail/in/a.txt'")
    for given, argument in (
        ("mail", "mail/in/a.txt"),
        ("mail/in/a.txt", "a.txt"),
        ("mail/in/a.txt", "out/a.txt"),
    ):
        assert told(given, argument) == []


@pytest.mark.slow
def test_added_tasks_are_listed_and_shown_and_cancelled(agentos: Agentos, file: Path, home: Home) -> None:
    done = agentos("task", "add", str(file))
    task_id = done.stdout.split()[0]
    assert_golden("task.agentos_daemon_start", done.stderr)
    assert "count words" in agentos("task", "list").stdout
    shown = agentos("task", "show", task_id[-6:]).stdout
    assert "text.txt (18 bytes)" in shown
    assert "queued" in shown
    (listed,) = json.loads(agentos("task", "list", "--json").stdout)
    assert listed["task"]["id"] == task_id
    assert "share" not in json.dumps(listed)  # nobody is to learn what is held out
    (kept,) = listed["task"]["inputs"]
    assert Ledger(home.ledger).blobs.get(kept["sha256"]) == b"three small words\n"
    agentos("task", "cancel", task_id)
    assert_golden("task_cancel.nothing_to_cancel", agentos("task", "cancel", task_id, code=1).stderr)
    assert "cancelled" in agentos("task", "list", "--state", "cancelled").stdout


def test_tasks_come_from_standard_input_too(agentos: Agentos) -> None:
    two = '[{"goal": "one"}, {"goal": "two", "schedule": "0 7 * * *"}]'
    ids = json.loads(agentos("task", "add", "-", "--json", stdin=two).stdout)
    assert len(ids) == 2
    states = [item["state"] for item in json.loads(agentos("task", "list", "--json").stdout)]
    assert states == ["queued", "scheduled"]


def test_an_answer_where_nobody_asks_is_no_bug(agentos: Agentos) -> None:
    assert_golden("run_answer.nobody_asks", agentos("run", "answer", "--choice", "1", code=1).stderr)


def test_following_a_run_as_json_is_a_document_a_line(agentos: Agentos) -> None:
    assert_golden("run_tail.no_runs_yet", agentos("run", "tail", "--json", code=1).stderr)
    assert agentos("evolution", "watch", "--exit-when-idle", "--json").stdout == ""


def test_a_bad_file_adds_nothing(agentos: Agentos, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("- {goal: fine}\n- {gaol: typo}\n- {goal: x, checks: [{equal: 1}]}\n")
    said = agentos("task", "add", str(bad), code=1).stderr
    assert "task 2: line 2: 'gaol' is no known key" in said
    assert "task 3: line 3: check 1" in said
    assert agentos("task", "list", "--json").stdout.strip() == "[]"
    with (tmp_path / "huge.yaml").open("wb") as huge:
        huge.truncate(100 << 20)
    assert_golden(
        "task_add.104_857_600_bytes", agentos("task", "add", str(tmp_path / "huge.yaml"), code=1).stderr
    )


def test_an_input_larger_than_the_workspace_is_refused(agentos: Agentos, tmp_path: Path) -> None:
    with (tmp_path / "big.bin").open("wb") as big:
        big.truncate(3 << 20)
    task = '{"goal": "g", "inputs": ["big.bin"], "limits": {"workspace_mb": 2}}'
    assert_golden(
        "task_add.raise_limits_workspace_mb", agentos("task", "add", "-", stdin=task, code=1).stderr
    )


def test_waiting_needs_a_daemon(agentos: Agentos, file: Path) -> None:
    assert_golden("task_run.agentos_daemon_start", agentos("task", "run", str(file), code=1).stderr)
    assert agentos("task", "list", "--json").stdout.strip() == "[]"


def test_wrong_words_are_told_what_there_is(agentos: Agentos) -> None:
    assert_golden("task_list.queued", agentos("task", "list", "--state", "asleep", code=1).stderr)
    assert_golden("run_list.passed", agentos("run", "list", "--result", "nice", code=1).stderr)
    assert_golden("run_tail.no_runs_yet_2", agentos("run", "tail", code=1).stderr)


def test_another_attempt_is_told_with_what_became_of_the_one_before(
    home: Home, file: Path, agentos: Agentos, capsys: pytest.CaptureFixture[str]
) -> None:
    (task_id,) = json.loads(agentos("task", "add", str(file), "--json").stdout)
    ledger, reader = Ledger(home.ledger), Reader(home.ledger)
    told: Counter[str] = Counter()
    for attempt in (1, 2):
        run = Run(
            f"run-{attempt}", task_id, "key", Share.OPEN, attempt, Snapshot("c" * 40, "t" * 40), "", "", NOW
        )
        ledger.begin_run(run)
        assert "agentos daemon start" in agentos("run", "tail", code=1).stderr, "nobody is at work on it"
        _tell_steps(reader, run, told)
        _tell_steps(reader, run, told)
        ledger.append_step(Step(run.id, 0, "route", None, None, None, NOW, 1.0))
        _tell_steps(reader, run, told)
        _tell_steps(reader, run, told)
        ledger.finish_run(run.id, Outcome(Result.INFRA, 0.0, "the box was lost"))
    ledger.close()
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == ["0", "attempt", "0"]
    assert said[1] == "attempt 2, after infra: the box was lost"


def test_attempts_that_the_same_thing_ended_stand_in_one_line(
    home: Home, file: Path, agentos: Agentos
) -> None:
    """A refused key leaves an attempt for each try, as long as nobody gives another."""
    (task_id,) = json.loads(agentos("task", "add", str(file), "--json").stdout)
    ledger, away = Ledger(home.ledger), kernel_fault(KernelFault.AWAY, "no key")
    for attempt in range(1, 6):
        run = Run(
            f"run-{attempt}", task_id, "key", Share.OPEN, attempt, Snapshot("c" * 40, "t" * 40), "", "", NOW
        )
        ledger.begin_run(run)
        fault = away if attempt > 1 else None  # whatever ended the first may have been its own doing
        ledger.finish_run(run.id, Outcome(Result.INFRA, 0.0, "no key", fault))
    ledger.close()
    lines = [line for line in agentos("run", "list").stdout.splitlines() if "run-" in line]
    assert [line.split()[0] for line in lines] == ["run-5", "run-1"]
    assert len(json.loads(agentos("run", "list", "--json").stdout)) == 5


def test_a_run_that_a_person_graded_anew_is_marked(home: Home, file: Path, agentos: Agentos) -> None:
    (task_id,) = json.loads(agentos("task", "add", str(file), "--json").stdout)
    ledger = Ledger(home.ledger)
    wrong = Outcome(Result.FAILED, 0.0, "wrong")
    run = Run("run-1", task_id, "key", Share.OPEN, 1, Snapshot("c" * 40, "t" * 40), "", "", NOW)
    ledger.begin_run(run)
    ledger.finish_run(run.id, wrong)
    anew = replace(ledger.task(task_id), id="task-anew")
    ledger.add_past(
        anew, replace(run, id="run-2", task_id=anew.id, outcome=wrong, finished_at=NOW, regrades=run.id), []
    )
    ledger.close()
    newest, first = (line for line in agentos("run", "list").stdout.splitlines() if line.startswith("run-"))
    assert "of run-1" in newest
    assert "of run-1" not in first
    told = {line.split()[0]: line for line in agentos("task", "list").stdout.splitlines()}
    assert ("of run-1" in told["task-anew"], "of run-1" in told[task_id]) == (True, False)


def test_a_model_call_that_came_to_nothing_is_shown_with_what_it_is_booked_with(
    home: Home, file: Path, agentos: Agentos
) -> None:
    """`run show` ended as a bug over any failed call that was paid."""
    (task_id,) = json.loads(agentos("task", "add", str(file), "--json").stdout)
    usage = {"input_tokens": 40, "output_tokens": 2, "estimated": True}
    seen = {"error": "malformed", "message": "no JSON", "usage": usage}
    with closing(Ledger(home.ledger)) as ledger:
        ledger.begin_run(
            Run("run-1", task_id, "key", Share.OPEN, 1, Snapshot("c" * 40, "t" * 40), "", "", NOW)
        )
        ledger.append_step(Step("run-1", 0, "model", {"model": "m"}, seen, None, NOW, 1.0))
        ledger.finish_run("run-1", Outcome(Result.FAILED, 0.0, "wrong"))
    (shown,) = (line for line in agentos("run", "show", "run-1").stdout.splitlines() if " model " in line)
    assert all(word in shown for word in ("malformed", "no JSON", "40 + 2"))


def test_a_task_without_a_run_is_held_up_by_itself_by_the_daemon_or_by_others() -> None:
    waits = WaitingTask("task-1", NOW, "no model")
    works = DaemonStatus("works", 0, "", None, None, 0, None, 0, (waits,))
    paused = replace(works, state="paused", why="no sandbox", waiting=())
    assert held_up_by(works, "task-1", 2) == "no model"
    assert held_up_by(paused, "task-1", 2) == "no sandbox"
    assert "2" in held_up_by(works, "task-2", 2)


def test_what_was_queued_before_a_task_is_counted(home: Home, file: Path, agentos: Agentos) -> None:
    ids = [json.loads(agentos("task", "add", str(file), "--json").stdout)[0] for _ in range(3)]
    reader = Reader(home.ledger)
    assert [before(reader, name) for name in ids] == [0, 1, 2]
    assert before(reader, "task-gone") == 0


def test_whoever_asks_hears_once_why_attempts_were_lost(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = ModelWaits(home)
    for attempt, why in ((1, "no model could be asked"), (2, "no model could be asked"), (3, "no sandbox")):
        lost = Outcome(Result.INFRA, 0.0, why)
        snapshot = Snapshot("c" * 40, "t" * 40)
        run = Run(f"run-{attempt}", "task-1", "key", Share.OPEN, attempt, snapshot, "", "", NOW, outcome=lost)
        waits.tell_run(run)
    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0].strip() for line in said] == ["lost", "lost"]
    assert "no model could be asked" in said[0]


def test_whoever_waits_hears_that_the_last_daemon_s_model_calls_come_first(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new gateway waits for the old one: a run that asks meanwhile has no call of its own to tell of."""
    home.calls.touch()
    note_ending(home.run, SOCKET, GatewayEnding(os.getpid(), 3, time.time() + 60))
    waits = ModelWaits(home)
    waits._told = -1e9
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert waits.tell("run-1")
    assert "3 model call(s)" in capsys.readouterr().err


@pytest.mark.sandbox
def test_the_whole_way_with_a_daemon(agentos: Agentos, file: Path, tmp_path: Path) -> None:
    assert "The daemon runs: pid" in agentos("daemon", "start").stdout
    try:
        assert_golden("daemon_start.runs_already", agentos("daemon", "start", code=1).stderr)
        assert "daemon      runs  (pid" in agentos("daemon", "status").stdout
        done = agentos("task", "run", str(file))
        assert "passed" in done.stdout
        assert "act" in done.stdout  # the steps of a single task are told as they happen
        (run,) = json.loads(agentos("run", "list", "--json").stdout)
        assert "share" not in run
        shown = agentos("run", "show", run["id"]).stdout
        assert "word_count" in shown
        assert "passed" in shown
        assert "passed" in agentos("run", "tail").stdout
        assert_golden(
            "run_bad.says_otherwise", agentos("run", "bad", run["id"], "--expect", "=7", code=1).stderr
        )
        (word,) = json.loads(agentos("run", "good", run["id"], "--json").stdout)
        assert (word["run_id"], word["checks"][0]["spec"]["value"]) == (run["id"], run["answer"])
        assert "nothing can be measured" in agentos("run", "flag", run["id"], "--reason", "no").stdout
        assert "expects" in agentos("run", "show", run["id"]).stdout
        agentos("run", "correct", run["id"], "--answer", str(tmp_path / "none"), code=1)
        assert json.loads(agentos("task", "checks", run["task_id"], "--json").stdout)["own"]
        agentos("run", "export", run["id"], str(tmp_path / "out"))
        assert json.loads((tmp_path / "out" / "run.json").read_text())["id"] == run["id"]
        assert len((tmp_path / "out" / "steps.jsonl").read_text().splitlines()) >= 4
        assert_golden(
            "run_export.not_an_empty_directory",
            agentos("run", "export", run["id"], str(tmp_path / "out"), code=1).stderr,
        )
        wrong = file.with_name("wrong.yaml")
        wrong.write_text(TASK.replace("value: 3", "value: 4"))
        failed = agentos("task", "run", str(wrong), "--json", code=1)
        (view,) = json.loads(failed.stdout)
        assert view["result"] == "failed"
    finally:
        assert "has stopped" in agentos("daemon", "stop").stdout
    assert "No daemon runs" in agentos("daemon", "stop").stdout
    assert "no daemon runs" in agentos("daemon", "status", code=1).stdout


def test_a_task_that_names_a_skill_whose_folder_waits_is_told_so(home: Home, tmp_path: Path) -> None:
    call = {"call": {"tool": "digest/causes", "args": {}}}
    (tmp_path / "task.json").write_text(json.dumps(call))
    drafts = read_drafts(tmp_path / "task.json")
    assert "agentos registry list" in doubts(home, drafts)[0]
    folder = home.skills / "digest"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: digest\ndescription: Digests.\n---\n")
    assert doubts(home, drafts) == [f"{folder} is not taken in yet, or was refused: agentos skill list"]


def test_a_list_that_is_as_long_as_lists_are_says_how_to_see_more(agentos: Agentos, home: Home) -> None:
    with closing(Ledger(home.ledger)) as ledger:
        for number in range(100):
            if number == 99:
                assert "--limit" not in agentos("task", "list").stderr
            ledger.add_task(_make_task("double", n=number), Share.OPEN)
    assert_golden("task_list.limit", agentos("task", "list").stderr)
    assert "--limit" not in agentos("task", "list", "--limit", "99").stderr


def test_times_that_the_daemons_clock_shows_at_another_moment_are_told(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(**more: str) -> list[str]:
        (tmp_path / "task.json").write_text(json.dumps({"goal": "x", "schedule": "0 7 * * *", **more}))
        return [doubt for doubt in doubts(home, read_drafts(tmp_path / "task.json")) if "`timezone`" in doubt]

    lock = DaemonLock(home)  # this process is the daemon, by the clock that it was started with
    try:
        lock.ready()
        assert not told()
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        (doubt,) = told()
        assert "UTC+1400" in doubt
        assert not told(timezone="Europe/Berlin")
    finally:
        lock.release()
        monkeypatch.undo()
        time.tzset()


def test_after_ctrl_c_what_goes_on_is_named(
    agentos: Agentos, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (task_id,) = json.loads(agentos("task", "add", "-", "--json", stdin="goal: x").stdout)
    reader = Reader(home.ledger)
    tell_left(reader, [reader.task(task_id)])
    assert f"agentos task cancel {task_id}" in capsys.readouterr().err
    agentos("task", "cancel", task_id)
    tell_left(reader, [reader.task(task_id)])
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_the_id_of_a_run_finds_its_task_or_says_which_it_is(agentos: Agentos, home: Home, file: Path) -> None:
    task_id = agentos("task", "add", str(file)).stdout.split()[0]
    ledger = Ledger(home.ledger)
    task = ledger.task(task_id)
    run = Run("run-1", task_id, task.key, Share.OPEN, 1, Snapshot("c", "t"), "none", "none", NOW)
    ledger.begin_run(run)
    ledger.finish_run("run-1", Outcome(Result.FAILED, 0.0, "no"))
    again = json.loads(agentos("task", "again", "run-1", "--json").stdout)
    assert again != task_id
    assert ledger.task(again).key == task.key
    assert task_id in agentos("task", "show", "run-1", code=1).stderr
    assert_golden("run_show.a_task", agentos("run", "show", task_id, code=1).stderr)
    agentos("task", "again", "run-")  # enough of its start
    assert_golden("task_again.agentos_run_list", agentos("task", "again", "run-2", code=1).stderr)
    assert_golden("task_again.agentos_task_list", agentos("task", "again", "nothing", code=1).stderr)
