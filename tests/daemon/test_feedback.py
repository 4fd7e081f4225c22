"""A person's word on a run, over the whole way: kept, held against the run in a real box, evidence or guard."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.cli.evolutions.evolve import await_words
from agentos.daemon.offline import offline_context
from agentos.daemon.people.feedback import FeedbackDetails, settle, speak
from agentos.daemon.run.execution import BoxExecutor, graded_by
from agentos.daemon.upkeep.auditing import verify_home
from agentos.domain import (
    Call,
    Candidate,
    Check,
    Evidence,
    Evolution,
    EvolutionState,
    Feedback,
    InputFile,
    KernelFault,
    Rating,
    Result,
    Run,
    RunEnd,
    Share,
    Sighting,
    Task,
    Verdict,
    kind_of,
    new_id,
)
from agentos.errors import ErrorKind, UserError
from agentos.evolver.find.feedback import taken_back
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.select.curate import _spoken, choose_sets
from agentos.evolver.watch.health import words
from agentos.home import Home
from agentos.ledger.rows.codec import plain
from agentos.ledger.schedules import copies, last_read
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from tests.command_server import command_server
from tests.daemon.conftest import Daemon, until
from tests.refusals import raises

pytestmark = pytest.mark.sandbox

BILL = '''"""The total of a bill."""

from pydantic import BaseModel

TOOL = {"name": "bill", "description": "The total of a bill.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    prices: list[int]
    shipping: int = 0


class Output(BaseModel):
    total: int
    items: int


def run(input: Input) -> Output:
    return Output(total=sum(input.prices) - input.shipping, items=len(input.prices))
'''
FILES = {
    "tool/bill/tool.py": BILL.encode(),
    "tool/bill/resource.toml": b'description = "The total of a bill."\n',
}


@pytest.fixture
def ran(
    home: Home, ledger: Ledger, sandbox: Bubblewrap, make_task: Callable[..., Task]
) -> Callable[..., Run]:
    """A finished run of the bill's tool."""
    registry = Registry(home.registry)
    registry.commit(FILES, "A tool with a fault", "edit")
    executor = BoxExecutor(registry, ledger.blobs, sandbox)

    def run(
        *checks: Check,
        share: Share = Share.OPEN,
        schedule_id: str = "",
        left: tuple[InputFile, ...] = (),
        **args: Any,
    ) -> Run:
        call = Call("bill", args)
        task = replace(
            make_task("double", n=1),
            id=new_id("task"),
            name=f"bill {args}",
            goal="",
            call=call,
            checks=checks,
            schedule_id=schedule_id,
        )
        ledger.add_task(task, share)
        snapshot = registry.stable()
        begun = Run(
            new_id("run"), task.id, task.key, share, 1, snapshot, "bubblewrap", "strong", task.created_at
        )
        ledger.begin_run(begun)
        done = executor.execute(task, snapshot, begun.id, ledger.append_step)
        ledger.finish_run(begun.id, done.outcome, RunEnd(done.answer, left, done.resources))
        return ledger.run(begun.id)

    return run


@pytest.fixture
def settled(home: Home, sandbox: Bubblewrap) -> Callable[[], list[Evolution]]:
    """What the daemon does with words, runs and failures."""

    def look() -> list[Evolution]:
        with offline_context(home) as parts:
            assert isinstance(parts.records, Ledger)
            settle(parts, parts.records, graded_by(sandbox))
            mine(parts)
            return triage(parts)

    return look


def test_a_bad_word_on_a_passed_run_is_evidence(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    run = ran(prices=[3, 4], shipping=2)
    assert run.outcome is not None
    assert run.outcome.result is Result.PASSED  # nothing was expected of it
    (word,) = speak(home, run.id, Rating.BAD, FeedbackDetails("shipping is paid, not given", ("total=9",)))
    assert word.principal.startswith("person:")
    assert word.checks[0].spec == {"value": 9, "path": "total", "made_by": word.id}

    (evolution,) = settled()
    again = ledger.run(word.regraded_id)
    assert again.outcome is not None
    assert (again.outcome.result, kind_of(again.outcome.fault)) == (Result.FAILED, KernelFault.FEEDBACK)
    assert "shipping is paid" in again.outcome.reason
    assert (again.regrades, again.is_live, again.answer) == (run.id, False, run.answer)
    assert len(ledger.steps(again.id)) == len(ledger.steps(run.id)) > 0
    evidence = ledger.get(Evidence, evolution.evidence_id)
    assert evidence.run_ids == (again.id,)
    assert evidence.fingerprint.klass == "wrong_answer"
    assert "feedback" in evidence.fingerprint.signature
    assert any(item.flagged for item in ledger.find(Sighting, run_id=again.id))
    assert settled() == []  # once
    assert len(ledger.runs()) == 2
    assert verify_home(home).faults == ()


def test_who_looks_at_once_sees_what_a_word_shows(
    home: Home, ran: Callable[..., Run], sandbox: Bubblewrap
) -> None:
    """``agentos evolve`` said that nothing was new while the daemon held the word against its run."""
    speak(home, ran(prices=[3, 4], shipping=2).id, Rating.BAD, FeedbackDetails(expect=("total=9",)))

    def held_later() -> None:
        time.sleep(0.5)
        with offline_context(home) as parts:
            assert isinstance(parts.records, Ledger)
            settle(parts, parts.records, graded_by(sandbox))

    daemon = threading.Thread(target=held_later)
    daemon.start()
    with offline_context(home) as parts:
        await_words(parts)
        mine(parts)
        found = triage(parts)
    daemon.join()
    assert [item.state for item in found] == [EvolutionState.MINED]


@pytest.mark.parametrize("damaged", [False, True])
def test_a_word_on_a_run_whose_files_are_gone_holds_up_no_other(
    ledger: Ledger, home: Home, ran: Callable[..., Run], settled: Callable[[], list[Evolution]], damaged: bool
) -> None:
    """Retention lets files go: each look would end at that word, before those that came later."""
    gone = InputFile("report.txt", hashlib.sha256(b"long ago").hexdigest(), 8)
    if damaged:
        ledger.blobs.write(gone.sha256, b"something else")
    old, new = ran(prices=[3, 4], shipping=2, left=(gone,)), ran(prices=[5], shipping=2)
    ((first,), (second,)) = (
        speak(home, run.id, Rating.BAD, FeedbackDetails("shipping is paid", ("total=9",)))
        for run in (old, new)
    )
    settled()
    known = {run.id for run in ledger.runs()}
    assert (first.regraded_id in known, second.regraded_id in known) == (False, True)


@pytest.mark.parametrize("held", [True, False], ids=["after it was held", "before"])
def test_the_newer_of_two_words_stands(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]], held: bool
) -> None:
    run, other = ran(prices=[3, 4], shipping=2), ran(prices=[3, 5], shipping=2)
    speak(home, other.id, Rating.BAD, FeedbackDetails(expect=("total=10",)))
    (older,) = speak(home, run.id, Rating.GOOD, FeedbackDetails(expect=("total=5",)))
    if held:
        settled()
    (newer,) = speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=9",)), "person:other")
    settled()
    assert {run.regrades for run in ledger.runs()} >= {other.id}
    assert any(it.id == older.regraded_id for it in ledger.runs()) is held
    assert any(it.id == newer.regraded_id for it in ledger.runs())
    told = command_server().run("--home", str(home.root), "run", "show", run.id, env=os.environ).stdout
    assert "taken back by person:other" in told
    with offline_context(home) as parts:
        assert older.regraded_id not in {it.id for it in _spoken(parts, run.resources)}
    rows = {row.principal: row for row in words(ledger.find(Feedback), (), ())}
    assert (rows[older.principal].wrong, rows["person:other"].wrong) == (1, 0)


def test_a_word_against_an_older_one_says_so(home: Home, ran: Callable[..., Run]) -> None:
    run = ran(prices=[3, 4], shipping=2)
    command = ["--home", str(home.root), "run"]
    first = command_server().run(*command, "bad", run.id, "--expect", "total=9", env=os.environ)
    second = command_server().run(*command, "good", run.id, "--expect", "total=5", env=os.environ)
    assert ["the newer word" in done.stdout for done in (first, second)] == [False, True]


def test_a_correction_takes_an_earlier_good_word_back_and_another_correction(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    run = ran(prices=[3, 4], shipping=2)
    (good,) = speak(home, run.id, Rating.GOOD, FeedbackDetails())
    settled()
    bad, kept = speak(home, run.id, Rating.BAD, FeedbackDetails(corrected=({"total": 9, "items": 2},)))
    settled()
    assert [*taken_back(ledger.find(Feedback))] == [good.id]
    with offline_context(home) as parts:  # the whole answer is wrong, so it may guard nothing
        assert {it.id for it in _spoken(parts, run.resources)} == {kept.regraded_id}
    speak(home, run.id, Rating.BAD, FeedbackDetails(corrected=({"total": 10, "items": 2},)))
    assert {*taken_back(ledger.find(Feedback))} == {good.id, bad.id, kept.id}


def test_a_mistyped_word_is_no_evidence_once_it_was_put_right(
    home: Home, sandbox: Bubblewrap, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    run = ran(prices=[3, 4], shipping=2)
    (wrong,) = speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=90",)))
    with offline_context(home) as parts:
        assert isinstance(parts.records, Ledger)
        settle(parts, parts.records, graded_by(sandbox))
        assert parts.records.has_run(wrong.regraded_id)
    (right,) = speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=9",)))
    (opened,) = settled()
    with offline_context(home) as parts:
        assert parts.records.get(Evidence, opened.evidence_id).run_ids == (right.regraded_id,)


def test_a_word_on_a_run_of_a_schedule_is_no_run_of_it(
    ledger: Ledger, home: Home, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    run = ran(prices=[3, 4], shipping=2, schedule_id="task-nightly")
    read_at = last_read(ledger, "task-nightly", passed=True)
    (word,) = speak(home, run.id, Rating.GOOD, FeedbackDetails())
    settled()
    assert ledger.has_run(word.regraded_id)
    # what arrived between the run and the word is read by the next run
    assert last_read(ledger, "task-nightly", passed=True) == read_at
    assert [view.task.id for view in copies(ledger, "task-nightly")] == [run.task_id]


def test_a_word_on_an_old_run_is_news_after_a_repair(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    old, older = ran(prices=[3, 4], shipping=2), ran(prices=[9], shipping=3)
    speak(home, old.id, Rating.BAD, FeedbackDetails(expect=("total=9",)))
    (first,) = settled()
    ledger.put(replace(first, state=EvolutionState.PROMOTED, ended_at=datetime.now(UTC)))
    assert settled() == []
    (word,) = speak(home, older.id, Rating.BAD, FeedbackDetails(expect=("total=12",)))
    (second,) = settled()
    assert ledger.get(Evidence, second.evidence_id).task_ids == (word.task_id,)


def test_a_word_of_its_own_has_a_fingerprint_of_its_own(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    failed = ran(Check("equals", {"path": "total", "value": 9}), prices=[3, 4], shipping=2)
    run = ran(prices=[5], shipping=1)
    speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=6",)))
    settled()
    (own,) = {item.fingerprint.id for item in ledger.find(Sighting, run_id=failed.id)}
    (other,) = {item.fingerprint.id for item in ledger.find(Sighting) if item.run_id != failed.id}
    assert own != other


def test_a_good_word_is_a_guard_and_no_evidence(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    run = ran(prices=[3, 4])
    (word,) = speak(home, run.id, Rating.GOOD, FeedbackDetails())
    assert [check.spec["value"] for check in word.checks] == [{"total": 7, "items": 2}]
    assert settled() == []
    guard = ledger.run(word.regraded_id)
    assert guard.outcome is not None
    assert (guard.outcome.result, guard.outcome.checks[0].passed) == (Result.PASSED, True)
    assert guard.id in {found.id for found in ledger.runs_using("tool/bill", 10)}
    assert ledger.task(guard.task_id).checks == word.checks
    for number in range(12):
        ran(Check("equals", {"path": "items", "value": 1}), prices=[number])
    bad = ran(prices=[9], shipping=1)
    speak(home, bad.id, Rating.BAD, FeedbackDetails(expect=("total=10",)))
    (evolution,) = settled()
    with offline_context(home) as parts:
        policy = replace(parts.policy, evidence=replace(parts.policy.evidence, max_guards=3))
        sets = choose_sets(
            replace(parts, policy=policy), ledger.get(Evidence, evolution.evidence_id), "tool/bill"
        )
    assert guard.task_id in sets.guards  # whatever else has passed since
    assert len(sets.guards) == 3


def test_a_correction_is_evidence_for_what_changed_and_a_guard_for_the_rest(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    run = ran(prices=[3, 4], shipping=2)
    wrong, kept = speak(home, run.id, Rating.BAD, FeedbackDetails(corrected=({"total": 9, "items": 2},)))
    assert (wrong.rating, kept.rating) == (Rating.BAD, Rating.GOOD)
    assert [(check.spec["path"], check.spec["value"]) for check in kept.checks] == [("items", 2)]
    assert len(settled()) == 1
    results = [ledger.run(word.regraded_id).outcome for word in (wrong, kept)]
    assert [found.result for found in results if found] == [Result.FAILED, Result.PASSED]


def test_an_answer_is_corrected_in_the_editor(home: Home, ledger: Ledger, ran: Callable[..., Run]) -> None:
    run = ran(prices=[3, 4], shipping=2)
    command = ["--home", str(home.root), "run", "correct", run.id]
    environment = {**os.environ, "EDITOR": "sed -i s/5/9/", "VISUAL": ""}
    done = command_server().run(*command, env=environment)
    assert done.returncode == 0, done.stderr
    wrong, kept = ledger.find(Feedback, run_id=run.id)
    assert wrong.checks[0].spec["value"] == {"total": 9, "items": 2}
    assert kept.rating is Rating.GOOD
    none = command_server().run(*command, env={**os.environ, "EDITOR": "", "VISUAL": ""})
    assert "--answer" in none.stderr
    broken = command_server().run(*command, "--answer", "-", env=os.environ, stdin="{")
    assert (broken.returncode, len(ledger.find(Feedback))) == (1, 2)


def test_a_check_of_foreign_code_is_judged_in_a_box(
    home: Home,
    ledger: Ledger,
    ran: Callable[..., Run],
    settled: Callable[[], list[Evolution]],
    tmp_path: Path,
) -> None:
    file = tmp_path / "checks.yaml"
    file.write_text("- python: |\n    assert answer['total'] >= 7\n")
    runs = [ran(prices=[3, 4], shipping=2) for _ in range(2)]
    bad, good = (
        speak(home, run.id, rating, FeedbackDetails(check=file))[0]
        for run, rating in zip(runs, (Rating.BAD, Rating.GOOD), strict=True)
    )
    assert len(settled()) == 1
    assert ledger.has_run(bad.regraded_id)
    assert not ledger.has_run(good.regraded_id)  # it does not show what was said: no guard is made of it


def test_what_can_show_nothing_is_refused_and_what_has_no_check_is_kept(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    run = ran(Check("equals", {"path": "total", "value": 5}), prices=[3, 4], shipping=2)
    with raises(UserError, ErrorKind.DECIDED):
        speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=5",)))
    with raises(UserError, type_next="agentos run bad"):  # it is not so
        speak(home, run.id, Rating.GOOD, FeedbackDetails(expect=("total=9",)))
    with raises(UserError, ErrorKind.MISMATCHED):
        speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=9",)))
    for value in (float("inf"), "\ud800", {"total": float("nan")}):
        with raises(UserError, ErrorKind.USAGE):
            speak(home, run.id, Rating.BAD, FeedbackDetails(corrected=(value,)))
    with raises(UserError, ErrorKind.USAGE):
        speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=1e400",)))
    os.mkfifo(home.root / "fifo")
    with raises(UserError, ErrorKind.UNREADABLE):
        speak(home, run.id, Rating.BAD, FeedbackDetails(check=home.root / "fifo"))
    with raises(UserError, message="feedback.no_value"):
        speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total",)))
    with raises(UserError, names=["'totl'", "--check"]):  # a slip
        speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("totl=9",)))
    (word,) = speak(home, run.id, Rating.BAD, FeedbackDetails("I do not like it"))
    assert (word.checks, settled()) == ((), [])
    assert len(ledger.runs()) == 1


def test_hidden_work_stays_hidden_until_the_hold_out_gives_way(
    home: Home, ledger: Ledger, ran: Callable[..., Run], settled: Callable[[], list[Evolution]]
) -> None:
    run = ran(prices=[3, 4], shipping=2, share=Share.HOLD_OUT)
    (word,) = speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=9",)))
    (evolution,) = settled()
    assert all(item.hidden for item in ledger.find(Sighting))
    assert evolution.given == (word.task_id,)


@pytest.mark.parametrize("into", ["another text", "no text", "nothing that is packed"])
def test_words_cannot_be_changed_taken_away_or_slipped_in(
    home: Home, ledger: Ledger, ran: Callable[..., Run], into: str
) -> None:
    import sqlite3

    run = ran(prices=[3, 4], shipping=2)
    (word,) = speak(home, run.id, Rating.BAD, FeedbackDetails(expect=("total=9",)))
    with sqlite3.connect(home.ledger) as connection:
        for statement in ("UPDATE feedback SET body = '{}'", "DELETE FROM feedback"):
            with pytest.raises(sqlite3.IntegrityError, match="never"):
                connection.execute(statement)
        connection.execute("DROP TRIGGER feedback_no_update")
        connection.create_function("plain", 1, plain)
        made = {
            "another text": "replace(plain(body), '9', '8')",
            "no text": "replace(body, '9', '8')",
            "nothing that is packed": "x'0102'",
        }
        connection.execute(f"UPDATE feedback SET body = {made[into]}")
        connection.execute(
            "INSERT INTO feedback (id, body, run_id, task_key, rating) VALUES ('feedback-x', '{}', 'r', 'k', 'bad')"
        )
    faults = verify_home(home).faults
    assert any(word.id in fault and "not what entry" in fault for fault in faults)
    assert any("feedback-x" in fault and "no audit entry" in fault for fault in faults)


@pytest.mark.slow
def test_a_daemon_repairs_what_people_called_wrong(
    home: Home, ledger: Ledger, ran: Callable[..., Run], daemon: Daemon
) -> None:
    for prices in ([3, 4], [10, 1, 1]):
        speak(home, ran(prices=prices).id, Rating.GOOD, FeedbackDetails())
    words = []
    for prices, shipping in (([3, 4], 2), ([5], 1), ([8, 8, 8], 3)):
        expected = f"total={sum(prices) + shipping}"
        words += speak(
            home, ran(prices=prices, shipping=shipping).id, Rating.BAD, FeedbackDetails(expect=(expected,))
        )
    daemon.start()
    at_its_end = (EvolutionState.AWAITING_CONSENT, EvolutionState.PROBATION)  # a person has the last word

    def ended() -> list[Evolution]:
        return [item for item in ledger.find(Evolution) if item.ended_at or item.state in at_its_end]

    until(ended, "an evolution has ended", 240)
    (evolution,) = ended()
    assert (evolution.state in at_its_end, evolution.resource) == (True, "tool/bill"), evolution.reason
    evidence = ledger.get(Evidence, evolution.evidence_id)
    assert {*evidence.task_ids} <= {word.task_id for word in words}
    candidate = ledger.get(Candidate, str(evolution.candidate_id))
    assert "sum(input.prices) + input.shipping" in candidate.edit.files["tool/bill/tool.py"]
    (verdict,) = ledger.find(Verdict, candidate_id=candidate.id)
    assert {*verdict.fixed} == {word.task_id for word in words if word.rating is Rating.BAD}
