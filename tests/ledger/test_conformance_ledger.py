"""What the ledger's ports promise, asked of the real ledger and of the fake alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.domain import (
    Candidate,
    Diagnosis,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fault,
    Fingerprint,
    InputFile,
    Layer,
    Manifest,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Sighting,
    Snapshot,
    Step,
    Task,
    TaskState,
)
from agentos.errors import Conflict, ErrorKind, NotFound
from agentos.ledger.blobs import BlobStore
from agentos.ledger.store import Ledger
from agentos.ports import Blobs
from agentos.testing import MemoryBlobs, MemoryLedger
from tests.refusals import raises

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PRINT = Fingerprint("f" * 16, "tool/column-sum", "exception", "ValueError: ?")
PASSED = Outcome(Result.PASSED, 1.0, "1 of 1 checks passed")
FAILED = Outcome(Result.FAILED, 0.0, "broke", Fault("ValueError", "broke", "tool.py:run", "tool/column-sum"))
INFRA = Outcome(Result.INFRA, 0.0, "the daemon was killed")

Make = Callable[..., object]


@pytest.fixture(params=["file", "fake", pytest.param("postgres", marks=pytest.mark.postgres)])
def book(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger | MemoryLedger]:
    if request.param == "fake":
        yield MemoryLedger()
        return
    if request.param == "postgres":
        address = request.getfixturevalue("postgres_address")
        (tmp_path / "agentos.toml").write_text(f'database = "{address}"\n')
    ledger = Ledger(tmp_path / "ledger.db")
    yield ledger
    ledger.close()


@pytest.fixture(params=["real", "fake"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return MemoryBlobs() if request.param == "fake" else BlobStore(tmp_path / "blobs")


def state_of(book: Ledger | MemoryLedger, task_id: str) -> TaskState:
    return book.states[task_id] if isinstance(book, MemoryLedger) else book.task_view(task_id).state


def sighting(run_id: str, *, flagged: bool = False) -> Sighting:
    return Sighting(run_id, "task-1", "key", PRINT, NOW, flagged)


def evolution(id: str, state: EvolutionState = EvolutionState.MINED) -> Evolution:
    return Evolution(id, "evidence-1", PRINT.id, state, Snapshot("c", "t"))


@pytest.mark.slow
def test_a_task_is_added_once(book: Ledger | MemoryLedger, make_task: Callable[..., Task]) -> None:
    task = make_task()
    book.add_task(task, Share.OPEN)
    book.add_task(task, Share.OPEN)
    assert book.task(task.id) == task
    assert book.task(task.id).key == task.key
    assert state_of(book, task.id) is TaskState.QUEUED
    with raises(Conflict, ErrorKind.TAKEN):
        book.add_task(replace(task, goal="other"), Share.OPEN)
    with raises(NotFound, names=["task task-9"]):
        book.task("task-9")


def test_a_run_from_begin_to_end(
    book: Ledger | MemoryLedger,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    book.add_task(make_task(), Share.OPEN)
    book.begin_run(make_run())
    book.begin_run(make_run())
    assert state_of(book, "task-1") is TaskState.RUNNING
    failing = replace(make_step(1), fault=FAILED.fault, observation=[None, {"a": 0.5}])
    for step in (make_step(0), failing, make_step(0)):
        book.append_step(step)
    assert book.steps("run-1") == [make_step(0), failing]
    assert book.runs_after(0, 10) == []
    output = InputFile("out.txt", "1" * 64, 3)
    assert (
        book.finish_run("run-1", FAILED, RunEnd({"sum": 5}, (output,), ("tool/b", "agent/a", "tool/b"))) == 1
    )
    assert book.finish_run("run-1", PASSED) == 1
    ((cursor, run),) = book.runs_after(0, 10)
    assert cursor == 1
    assert (run.outcome, run.answer, run.outputs) == (FAILED, {"sum": 5}, (output,))
    assert run.resources == ("agent/a", "tool/b")
    assert run.finished_at is not None
    assert run.finished_at.tzinfo is not None
    assert state_of(book, "task-1") is TaskState.DONE


def test_a_step_does_not_change(
    book: Ledger | MemoryLedger,
    make_task: Callable[..., Task],
    make_run: Callable[..., Run],
    make_step: Callable[..., Step],
) -> None:
    book.add_task(make_task(), Share.OPEN)
    book.begin_run(make_run())
    book.append_step(make_step(0))
    with raises(Conflict, ErrorKind.TAKEN, names=["step 0"]):
        book.append_step(replace(make_step(0), action={"tool": "other"}))
    book.finish_run("run-1", PASSED)
    book.append_step(make_step(0))
    with raises(Conflict, ErrorKind.OVER, names=["run run-1"]):
        book.append_step(make_step(1))
    assert len(book.steps("run-1")) == 1


def test_an_infra_run_leaves_its_task_for_another_attempt(
    book: Ledger | MemoryLedger, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    book.add_task(make_task(), Share.OPEN)
    book.begin_run(make_run())
    with raises(Conflict, ErrorKind.TAKEN, names=["attempt 1"]):
        book.begin_run(make_run("run-2"))
    book.finish_run("run-1", INFRA)
    assert state_of(book, "task-1") is TaskState.RUNNING
    book.begin_run(make_run("run-2", attempt=2))
    book.finish_run("run-2", replace(PASSED, result=Result.CANCELLED))
    assert state_of(book, "task-1") is TaskState.CANCELLED
    with raises(Conflict, ErrorKind.OVER, names=["task task-1"]):
        book.begin_run(make_run("run-3", attempt=3))


def test_a_run_needs_its_task(book: Ledger | MemoryLedger, make_run: Callable[..., Run]) -> None:
    with raises(NotFound, names=["task task-1"]):
        book.begin_run(make_run())
    with raises(NotFound, names=["run run-1"]):
        book.finish_run("run-1", PASSED)


def test_runs_are_found_in_the_order_they_finished(
    book: Ledger | MemoryLedger, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    same, other = make_task("task-1"), make_task("task-2", goal="other")
    again = make_task("task-3")
    for number, task in enumerate((same, other, again), start=1):
        share = Share.HOLD_OUT if task is other else Share.OPEN
        book.add_task(task, share)
        book.begin_run(replace(make_run(f"run-{number}", task=task), share=share))
    for number, used in ((3, ("tool/a",)), (1, ("tool/a", "tool/b")), (2, ("tool/a",))):
        book.finish_run(f"run-{number}", PASSED, RunEnd(resources=used))
    assert [(place, run.id) for place, run in book.runs_after(0, 2)] == [(1, "run-3"), (2, "run-1")]
    assert [run.id for _, run in book.runs_after(2, 9)] == ["run-2"]
    assert [run.id for run in book.runs_of(same.key, 9)] == ["run-1", "run-3"]
    assert [run.id for run in book.runs_of(same.key, 1)] == ["run-1"]
    assert [run.id for run in book.runs_using("tool/a", 9)] == ["run-2", "run-1"]
    assert [run.id for run in book.runs_using("tool/a", 1)] == ["run-2"]
    assert [run.id for run in book.runs_using("tool/a", 9, hidden=True)] == ["run-2"]
    assert [*book.runs_using("tool/b", 9, hidden=True)] == []
    assert [*book.runs_using("tool/none", 9)] == []


def test_records_are_put_replaced_and_found(book: Ledger | MemoryLedger) -> None:
    first, second = evolution("evolution-1"), evolution("evolution-2")
    for record in (first, second, first):
        book.put(record)
    moved = replace(first, state=EvolutionState.PROMOTED, promoted=Snapshot("d", "u"))
    book.put(moved)
    assert book.get(Evolution, "evolution-1") == moved
    assert book.find(Evolution) == [moved, second]
    assert book.find(Evolution, state=EvolutionState.MINED) == [second]
    assert book.find(Evolution, state=EvolutionState.MINED, evidence_id="no") == []
    assert book.find(Evolution, id=frozenset({moved.id, second.id, "none"})) == [moved, second]
    assert book.find(Evolution, id=frozenset({second.id}), state=EvolutionState.MINED) == [second]
    assert book.find(Evolution, id=frozenset()) == []
    assert book.find(Evolution, promoted=Snapshot("d", "u")) == [moved]
    with raises(NotFound, names=["evolution evolution-9"]):
        book.get(Evolution, "evolution-9")


def test_sealed_records_refuse_to_change(book: Ledger | MemoryLedger) -> None:
    evidence = Evidence("evidence-1", PRINT, ("run-1",), ("task-1",), NOW, "0" * 64)
    book.put(evidence)
    book.put(evidence)
    with raises(Conflict, ErrorKind.FIXED):
        book.put(replace(evidence, run_ids=("run-1", "run-2")))
    assert book.find(Evidence, fingerprint=PRINT) == [evidence]
    book.put(sighting("run-1"))
    book.put(sighting("run-1", flagged=True))
    assert len(book.find(Sighting, run_id="run-1")) == 2


def test_the_cursor_and_its_records_move_together(book: Ledger | MemoryLedger) -> None:
    assert book.read("mine") == 0
    book.advance("mine", 3, [sighting("run-1"), sighting("run-2")])
    assert book.read("mine") == 3
    changed = replace(sighting("run-1"), task_key="changed")
    with raises(Conflict, ErrorKind.FIXED):
        book.advance("mine", 5, [sighting("run-3"), changed])
    assert book.read("mine") == 3
    assert [found.run_id for found in book.find(Sighting)] == ["run-1", "run-2"]
    with raises(Conflict, ErrorKind.STALE):
        book.advance("mine", 2, [])
    assert book.read("other") == 0


def test_of_two_that_go_on_from_one_position_one_wins(book: Ledger | MemoryLedger) -> None:
    book.advance("triage", 1, [sighting("run-1")], after=0)
    with raises(Conflict, ErrorKind.STALE):
        book.advance("triage", 1, [sighting("run-2")], after=0)
    assert [found.run_id for found in book.find(Sighting)] == ["run-1"]


def test_the_newest_sightings_come_oldest_first_and_others_hide_none(book: Ledger | MemoryLedger) -> None:
    for number in range(4):
        book.put(sighting(f"run-{number}"))
    other = replace(PRINT, id="f" * 16, klass="somewhere_else")
    for number in range(9):
        book.put(replace(sighting(f"foreign-{number}"), fingerprint=other))
    ours = (PRINT.klass, "another")
    assert [found.run_id for found in book.newest_sightings(ours, 2)] == ["run-2", "run-3"]
    assert len(book.newest_sightings(ours, 9)) == 4
    assert book.newest_sightings((), 9) == []


def test_fingerprints_that_are_closed_are_left_out_until_they_are_seen_again(
    book: Ledger | MemoryLedger,
) -> None:
    other = replace(PRINT, id="e" * 16)
    assert book.last_sighting() == 0
    book.put(sighting("run-0"))
    book.put(replace(sighting("run-1"), fingerprint=other))
    end = book.last_sighting()
    book.advance(f"done:{PRINT.id}", end, [])
    ours = (PRINT.klass,)
    assert [found.run_id for found in book.newest_sightings(ours, 9, "done:")] == ["run-1"]
    assert len(book.newest_sightings(ours, 9)) == 2
    assert len(book.newest_sightings(ours, 9, "undone:")) == 2
    book.put(sighting("run-2"))
    assert [found.run_id for found in book.newest_sightings(ours, 9, "done:")] == ["run-0", "run-1", "run-2"]


def test_the_newest_records_are_looked_up(book: Ledger | MemoryLedger) -> None:
    base = Snapshot("a" * 40, "b" * 40)
    diagnosis = Diagnosis(Layer.TOOL, "tool/x", "tool/x/tool.py", "it fails")
    for number in range(6):
        state = EvolutionState.PROMOTED if number % 2 else EvolutionState.HELD
        book.put(
            Evolution(f"evo-{number}", "evd-1", "f", state, base, diagnosis=diagnosis if number else None)
        )
    book.put(replace(book.get(Evolution, "evo-1"), reason="stored again"))
    found = book.newest(Evolution, 2, resource="tool/x", state=EvolutionState.PROMOTED)
    assert [item.id for item in found] == ["evo-5", "evo-3"]
    assert [item.id for item in book.newest(Evolution, 9, resource="")] == ["evo-0"]
    assert len(book.newest(Evolution, 4)) == 4
    either = frozenset({EvolutionState.HELD, EvolutionState.PROMOTED})
    assert [item.id for item in book.newest(Evolution, 2, state=either)] == ["evo-5", "evo-4"]
    fields = book.newest_fields(
        Evolution, ["id", "state"], 2, resource="tool/x", state=EvolutionState.PROMOTED
    )
    assert fields == [("evo-5", "promoted"), ("evo-3", "promoted")]


def test_recent_runs_of_a_resource(
    book: Ledger | MemoryLedger, make_task: Callable[..., Task], make_run: Callable[..., Run]
) -> None:
    for number in range(4):
        task = make_task(f"task-{number}")
        book.add_task(task, Share.OPEN)
        book.begin_run(make_run(f"run-{number}", task=task))
        used = ("tool/x", "harness/default") if number != 1 else ("harness/default",)
        book.finish_run(f"run-{number}", PASSED, RunEnd(1, resources=used))
    assert [run.id for run in book.recent_runs("tool/x", 9)] == ["run-3", "run-2", "run-0"]
    assert [run.id for run in book.recent_runs("tool/x", 2)] == ["run-3", "run-2"]
    assert book.recent_runs("tool/y", 2) == []
    third = book.run("run-2").finished_at
    assert [run.id for run in book.recent_runs("tool/x", 9, third)] == ["run-0"]


def test_what_is_noted_is_kept(book: Ledger | MemoryLedger) -> None:
    book.note("promotion", "evolution-1", {"commit": "c"})
    kept = book.notes if isinstance(book, MemoryLedger) else book.entries()
    assert [(entry.event, entry.subject, entry.detail) for entry in kept] == [
        ("promotion", "evolution-1", {"commit": "c"})
    ]


def test_a_note_whose_records_are_refused_keeps_none_of_them(book: Ledger | MemoryLedger) -> None:
    sealed = Evidence("evidence-1", PRINT, ("run-1",), ("task-1",), NOW, "0" * 64)
    other = replace(sealed, id="evidence-2")
    book.put(sealed)
    with pytest.raises(Conflict):
        book.note("promotion", "evolution-1", {}, (other, replace(sealed, run_ids=("run-2",))))
    assert book.find(Evidence) == [sealed]
    assert (book.notes if isinstance(book, MemoryLedger) else book.entries()) == []


def test_blobs_are_kept_by_their_digest(blobs: Blobs) -> None:
    name = blobs.put(b"content")
    assert blobs.put(b"content") == name
    assert blobs.get(name) == b"content"
    assert blobs.get(blobs.put(b"")) == b""
    for unknown in ("0" * 64, "../../etc/passwd", ""):
        with pytest.raises(NotFound):
            blobs.get(unknown)


def test_an_evolution_that_ended_is_neither_opened_again_nor_added_to(book: Ledger | MemoryLedger) -> None:
    base = Snapshot("c" * 40, "t" * 40)
    waiting = Evolution("evo-1", "evd-1", PRINT.id, EvolutionState.AWAITING_CONSENT, base)
    manifest = Manifest("evd-1", "", "", (), (), (), Layer.SKILL, "")
    candidate = Candidate("cand-1", "evo-1", "p", 1, manifest, Edit({}, "", ""), base, base)
    book.put(Evidence("evd-1", PRINT, (), (), NOW, ""), waiting, candidate)
    ended = replace(waiting, state=EvolutionState.REJECTED, ended_at=NOW)
    book.note("evolution.rejected", ended.id, {}, (ended,))
    for late in (waiting, replace(candidate, rank=2)):
        with pytest.raises(Conflict):
            book.put(late)
        with pytest.raises(Conflict):
            book.advance("fresh", 1, [late])
    book.put(ended, candidate)  # the same again changes nothing
    assert book.get(Evolution, "evo-1") == ended
    assert book.find(Candidate) == [candidate]
    assert book.read("fresh") == 0, "all or nothing"


def test_that_an_evolution_was_promoted_is_not_forgotten(book: Ledger | MemoryLedger) -> None:
    """A person's word may come while another process promotes it."""
    base = Snapshot("c" * 40, "t" * 40)
    waiting = Evolution("evo-1", "evd-1", PRINT.id, EvolutionState.AWAITING_CONSENT, base)
    promoted = replace(waiting, state=EvolutionState.PROBATION, ended_at=NOW, promoted=base)
    book.put(Evidence("evd-1", PRINT, (), (), NOW, ""), waiting, promoted)
    with pytest.raises(Conflict):
        book.note(
            "evolution.rejected",
            "evo-1",
            {},
            (replace(waiting, state=EvolutionState.REJECTED, ended_at=NOW),),
        )
    taken_back = replace(promoted, state=EvolutionState.ROLLED_BACK)
    book.put(taken_back)
    assert book.get(Evolution, "evo-1") == taken_back
