"""``agentos trajectory`` as a user types it, and what the evolver makes of imported runs."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from agentos.cli.output import moment_text, with_local_times
from agentos.cli.runs.trajectory_export import _moment
from agentos.daemon.offline import offline_context
from agentos.domain import (
    Arm,
    Evolution,
    EvolutionState,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Sighting,
    Snapshot,
    Step,
    Trial,
    TrialSet,
)
from agentos.errors import ErrorKind, UserError
from agentos.evolver.find.mining import flag, mine
from agentos.evolver.find.triage import triage
from agentos.evolver.history.recordings import packed
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from tests.refusals import assert_golden, raises

Ran = CompletedProcess[str]
Agentos = Callable[..., Ran]
NOW = datetime(2026, 1, 2, tzinfo=UTC)
SECRET = "tulip-4711-tulip"


def chat(goal: str, answer: str, reward: float, **rest: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": goal}, {"role": "assistant", "content": answer}]
    return {"messages": messages, "reward": reward, **rest}


def test_a_date_is_meant_as_times_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert _moment("2026-01-31") == datetime(2026, 1, 31, 5, tzinfo=UTC)
        assert _moment("2026-01-31T12:00Z") == datetime(2026, 1, 31, 12, tzinfo=UTC)
        assert moment_text("2026-01-31T12:00:00+00:00") == "2026-01-31 07:00:00"
        assert moment_text("") == ""
        assert with_local_times("since 2026-01-31T12:00:00.5+00:00, 1") == "since 2026-01-31 07:00:00, 1"
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        for wrong in ("soon", "0001-01-01"):
            with raises(UserError, ErrorKind.USAGE, names=["--since"]):
                _moment(wrong)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Ten tasks, each tried twice with different ends, and two broken records."""
    lines = [
        json.dumps(chat(f"question {n}", answer, r)) for n in range(10) for answer, r in (("a", 1), ("b", 0))
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join([*lines, "{broken", json.dumps({"messages": []})]) + "\n")
    return path


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# --- import -----------------------------------------------------------------------------------------


def test_good_records_are_imported_and_each_broken_one_is_refused(agentos: Agentos, file: Path) -> None:
    ran = agentos("trajectory", "import", str(file), code=1)
    assert "20 runs imported (10 failed, 10 passed)." in ran.stdout
    assert "Refused: 2;" in ran.stdout
    refused = ran.stderr.splitlines()
    assert refused[0].startswith("runs.jsonl:21: it is not JSON")
    assert refused[1].startswith("runs.jsonl:22: 'messages' must be a list")
    again = json.loads(agentos("trajectory", "import", str(file), "--json", code=1).stdout)
    assert (again["imported"], again["known"], len(again["refused"])) == (0, 20, 2)


@pytest.mark.slow
def test_a_run_is_shown_beside_the_other_runs_of_its_task(agentos: Agentos, tmp_path: Path) -> None:
    def tried(seat: int, reward: int) -> dict[str, Any]:
        function = {"name": "update_seat", "arguments": json.dumps({"seat": seat})}
        call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]}
        said = [{"role": "user", "content": "seat me"}, call]
        answer = {"role": "tool", "tool_call_id": "c", "content": "Error: taken" if seat > 8 else "ok"}
        return {"messages": [*said, answer], "reward": reward, "try": f"{seat}{reward}"}

    path = tmp_path / "runs.json"
    path.write_text(json.dumps([tried(1, 1), tried(1, 0), tried(2, 1), tried(9, 0)]))
    agentos("trajectory", "import", str(path))
    runs = [run["id"] for run in json.loads(agentos("run", "list", "--json").stdout)]
    shown = [json.loads(agentos("run", "show", run, "--json").stdout) for run in reversed(runs)]
    # a call that failed changed nothing, so nothing of it is shared
    assert [round(one["deviation"]["share"], 2) for one in shown] == [0.67, 0.67, 1.0, 1.0]
    assert {one["deviation"]["others"] for one in shown} == {3}
    assert [sign["signal"] for sign in shown[3]["signals"]] == ["failure"]
    told = agentos("run", "show", runs[0]).stdout
    assert "signals    failure at step 3" in told
    assert "compared   100% of what it changed is not what they changed  (3 other runs of its task)" in told


@pytest.mark.slow
def test_a_dry_run_changes_nothing_and_counts_the_same(agentos: Agentos, file: Path, home: Home) -> None:
    told = json.loads(agentos("trajectory", "import", "--dry-run", "--json", str(file), code=1).stdout)
    assert (told["imported"], told["results"]) == (20, {"passed": 10, "failed": 10})
    assert Reader(home.ledger).runs() == []
    agentos("trajectory", "import", str(file), code=1)
    again = json.loads(agentos("trajectory", "import", "--dry-run", "--json", str(file), code=1).stdout)
    assert (again["imported"], again["known"]) == (0, 20)


@pytest.mark.slow
def test_wrong_words_are_told(agentos: Agentos, file: Path) -> None:
    assert_golden(
        "trajectory_import.no_format_xml",
        agentos("trajectory", "import", str(file), "--format", "xml", code=1).stderr,
    )
    assert_golden(
        "trajectory_import.no_agent_x",
        agentos("trajectory", "import", str(file), "--agent", "x", code=1).stderr,
    )
    assert_golden(
        "trajectory_import.is_no_file", agentos("trajectory", "import", "nowhere.json", code=1).stderr
    )
    assert_golden(
        "trajectory_export.no_format_xml",
        agentos("trajectory", "export", "--all", "--format", "xml", code=1).stderr,
    )
    assert_golden("trajectory_export.say_what_to_export", agentos("trajectory", "export", code=1).stderr)
    assert_golden(
        "trajectory_export.say_what_to_export_2", agentos("trajectory", "export", "x", "--all", code=1).stderr
    )
    assert_golden(
        "trajectory_export.expected_a_date", agentos("trajectory", "export", "--since", "noon", code=1).stderr
    )


# --- export -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_comes_out_can_be_imported_again_and_is_known(
    agentos: Agentos, file: Path, tmp_path: Path
) -> None:
    agentos("trajectory", "import", str(file), code=1)
    out = tmp_path / "out.jsonl"
    beside = out.with_name(out.name + ".part")
    beside.write_text("mine")
    agentos("trajectory", "export", "--all", "-o", str(out))
    assert beside.read_text() == "mine"
    beside.unlink()
    assert out.stat().st_mode & 0o777 == 0o600
    first = lines_of(out)[0]
    assert {key: first[key] for key in ("messages", "reward")} == chat("question 0", "a", 1)
    again = json.loads(agentos("trajectory", "import", str(out), "--json").stdout)
    assert (again["imported"], again["known"], again["refused"]) == (0, 20, [])
    assert_golden(
        "trajectory_export.exists_already",
        agentos("trajectory", "export", "--all", "-o", str(out), code=1).stderr,
    )
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.slow
def test_runs_of_every_kind_come_out_and_go_in_again(agentos: Agentos, tmp_path: Path, home: Home) -> None:
    ledger = Ledger(home.ledger)
    (tmp_path / "task.json").write_text(json.dumps([{"goal": f"end as {kind}"} for kind in Result]))
    agentos("task", "add", str(tmp_path / "task.json"))
    for number, (view, kind) in enumerate(zip(ledger.tasks(), Result, strict=True)):
        ended = Outcome(kind, 0.0, f"why {number}")
        now = datetime.now(UTC)
        run = Run(f"run-{number:03}", view.task.id, view.task.key, Share.OPEN, 1, Snapshot("c" * 40, "t" * 40),
                  "bubblewrap", "namespaces", now)  # fmt: skip
        ledger.begin_run(run)
        ledger.finish_run(run.id, ended, RunEnd(f"answer {number}" if kind is not Result.CANCELLED else None))
    ledger.close()
    out = tmp_path / "out.jsonl"
    told = agentos("trajectory", "export", "--all", "-o", str(out)).stderr
    assert "1 left out" in told, "one that was cancelled before anything was said is no conversation"
    again = json.loads(agentos("trajectory", "import", str(out), "--json").stdout)
    spoken = len(Result) - 1
    assert (again["imported"], again["refused"]) == (spoken, [])
    nothing = {"infra", "flaky", "waiting", "not_replayable", "unknown"}
    wanted = {kind.value: 1 for kind in Result if kind not in nothing | {"cancelled"}}
    assert again["results"] == {**wanted, "unknown": len(nothing)}
    twice = json.loads(agentos("trajectory", "import", str(out), "--json").stdout)
    assert (twice["imported"], twice["known"]) == (0, spoken)


@pytest.mark.slow
def test_hold_out_tasks_give_no_training_data(agentos: Agentos, file: Path, home: Home) -> None:
    agentos("trajectory", "import", str(file), code=1)
    hidden = {run.id for run in Reader(home.ledger).runs() if run.share == "hold-out"}
    assert len(hidden) in range(2, 20, 2)  # whole tasks
    for kind in ("sft", "dpo", "grpo"):
        ran = agentos("trajectory", "export", "--all", "--format", kind)
        records = [json.loads(line) for line in ran.stdout.splitlines()]
        assert len(records) == (20 - len(hidden)) // 2, kind
        assert not hidden & {run for record in records for run in record["agentos"]["runs"]}
        assert f"{len(hidden)} left out: it belongs to a hold-out task" in ran.stderr
    assert len(agentos("trajectory", "export", "--all").stdout.splitlines()) == 20


@pytest.mark.slow
def test_runs_are_chosen_by_id_and_by_date(agentos: Agentos, file: Path, home: Home) -> None:
    agentos("trajectory", "import", str(file), code=1)
    run = Reader(home.ledger).runs()[0]
    (line,) = agentos("trajectory", "export", run.id, "--format", "otel").stdout.splitlines()
    spans = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [span["name"] for span in spans] == ["invoke_agent imported", "import", "message", "chat unknown"]
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).date().isoformat()
    assert agentos("trajectory", "export", "--since", tomorrow).stdout == ""
    assert len(agentos("trajectory", "export", "--since", "2020-01-01").stdout.splitlines()) == 20


def test_secrets_do_not_leave(
    agentos: Agentos, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "leak.json"
    path.write_text(json.dumps(chat(f"use {SECRET}", "also sk-abcdefghijklmnopqrstuvwx", 1)))
    agentos("trajectory", "import", str(path))
    monkeypatch.setenv("MY_API_KEY", SECRET)
    assert "MY_API_KEY" in os.environ
    for kind in ("openai-chat", "otel"):
        out = agentos("trajectory", "export", "--all", "--format", kind, "--content").stdout
        assert "redacted" in out
        assert SECRET not in out
        assert "abcdefghijklmnop" not in out


@pytest.mark.slow
def test_trials_of_an_evolution_give_preferences(agentos: Agentos, file: Path, home: Home) -> None:
    agentos("trajectory", "import", str(file), code=1)
    ledger = Ledger(home.ledger)
    run = next(run for run in ledger.runs() if run.share == "open")
    snapshot = Snapshot("c" * 40, "t" * 40)
    evolution = Evolution("evo-1", "evd-1", "f", EvolutionState.PROMOTED, snapshot)
    ledger.put(evolution)
    made = [
        ("t-base", Arm.BASE, TrialSet.EVIDENCE, Result.FAILED, "wrong"),
        ("t-good", Arm.CANDIDATE, TrialSet.EVIDENCE, Result.PASSED, "right"),
        ("t-bad", Arm.CANDIDATE, TrialSet.EVIDENCE, Result.FAILED, "also wrong"),
        ("t-hidden", Arm.CANDIDATE, TrialSet.HOLD_OUT, Result.PASSED, "hidden"),
        ("t-old", Arm.BASE, TrialSet.EVIDENCE, Result.FAILED, ""),
    ]
    for name, arm, set_, result, answer in made:
        message = {"message": {"role": "assistant", "content": answer}}
        step = Step(name, 0, "model", {"model": "m"}, message, None, NOW, 1.0)
        trial = Trial(
            name,
            evolution.id,
            "",
            run.task_id,
            set_,
            arm,
            0,
            snapshot,
            Outcome(result, 0.0, ""),
            "",
            "fake",
            "none",
            name,
        )
        if answer:
            trial = replace(trial, steps_sha256=ledger.blobs.put(packed([step])))
        ledger.put(trial)
    ledger.close()
    ran = agentos("trajectory", "export", "--evolution", "evo-1", "--format", "dpo")
    (pair,) = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [pair[key][0]["content"] for key in ("chosen", "rejected")] == ["right", "wrong"]
    assert pair["agentos"]["runs"] == ["t-good", "t-base"]
    assert "1 left out: its steps were not kept" in ran.stderr
    assert "1 left out: it belongs to a hold-out task" in ran.stderr
    ran = agentos("trajectory", "export", "--evolution", "evo-1", "--format", "grpo")
    (group,) = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(group["completions"]) == 3
    assert len(agentos("trajectory", "export", "--evolution", "evo-1").stdout.splitlines()) == 4


# --- as evidence ------------------------------------------------------------------------------------


def test_a_record_whose_task_is_there_already_holds_up_no_other(
    agentos: Agentos, file: Path, home: Home
) -> None:
    whole = json.loads(agentos("trajectory", "import", str(file), "--json", code=1).stdout)
    with contextlib.closing(sqlite3.connect(home.ledger)) as ledger, ledger:
        for (name,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            ledger.execute(f"DROP TRIGGER {name}")
        (run_id,) = ledger.execute("SELECT id FROM run ORDER BY no LIMIT 1").fetchone()
        ledger.execute("UPDATE run SET id = 'run-other' WHERE id = ?", (run_id,))
    again = json.loads(agentos("trajectory", "import", str(file), "--json", code=1).stdout)
    assert again["known"] == whole["imported"] - 1
    assert again["refused_count"] == whole["refused_count"] + 1
    assert any("there is a task with the id" in one["why"] for one in again["refused"])


def test_what_cannot_be_run_here_is_seen_but_opens_no_evolution(
    agentos: Agentos, file: Path, home: Home
) -> None:
    agentos("trajectory", "import", str(file), code=1)
    with offline_context(home) as parts:
        assert mine(parts) > 0
        found = parts.records.find(Sighting)
        assert {sighting.fingerprint.klass for sighting in found} == {"imported"}
        seen = next(sighting for sighting in found if not sighting.hidden)
        flag(parts, next(run for _, run in parts.journal.runs_after(0, 99) if run.id == seen.run_id))
        assert triage(parts) == []


def test_failures_that_an_agent_of_the_registry_can_try_are_evidence(
    agentos: Agentos, tmp_path: Path, home: Home
) -> None:
    path = tmp_path / "checked.jsonl"
    checks = [{"contains": {"value": "42"}}]
    path.write_text("\n".join(json.dumps(chat(f"q{n}", "41", 0, checks=checks)) for n in range(12)))
    agentos("trajectory", "import", str(path), "--agent", "default")
    with offline_context(home) as parts:
        assert mine(parts) > 0
        (opened,) = triage(parts)
        assert triage(parts) == []  # one at a time, and not again
        assert opened.state is EvolutionState.MINED
