"""Harness and memories of one form: by hand, by push, by release, by evolution, and back again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentos.domain import Snapshot
from agentos.errors import Conflict, ErrorKind, Invalid
from agentos.registry.store import Registry
from agentos.registry.upgrade import UpgradeChoice
from agentos.resources import parse_id
from tests.refusals import raises
from tests.registry.conftest import SEED

HARNESS, NOTES = parse_id("harness/default"), parse_id("memory/notes")
READER, TEXT = "harness/default/resource.toml", "memory/notes/memory.md"
DOCUMENT = "memory/notes/resource.toml"
OLD, NEW = b"- Amounts are in cents.\n", b"fact: Amounts are in cents.\n"


def said(form: int, more: str = "") -> bytes:
    return f'description = "D"\nstate = {form}\n{more}'.encode()


@pytest.fixture
def known(registry: Registry) -> Registry:
    """The registry with a memory of the first form."""
    registry.commit({TEXT: OLD, DOCUMENT: b'description = "Notes"\n'}, "Notes", "edit")
    return registry


def moved() -> dict[str, str]:
    """What a promotion of a harness that reads the second form brings."""
    return {
        READER: said(2).decode(),
        "harness/default/harness.py": "def run(sdk):\n    sdk.finish(2)\n",
        "harness/default/migrate.py": "def migrate(memories):\n    return memories\n",
        TEXT: NEW.decode(),
        DOCUMENT: said(2).decode(),
    }


def promote(registry: Registry, files: dict[str, str] | None = None, evolution: str = "evo-1") -> Snapshot:
    base = registry.stable()
    candidate = registry.add_candidate(f"cand-{evolution}", base, files or moved())
    return registry.promote(base, candidate, {"Evolution": evolution}, "Read facts")


def text(registry: Registry, path: str = TEXT) -> bytes:
    return registry.files(registry.stable(), path).get(path, b"")


@pytest.mark.parametrize("changes", [{READER: said(2)}, {DOCUMENT: said(2)}], ids=["harness", "memory"])
def test_one_without_the_other_is_refused_by_hand(known: Registry, changes: dict[str, bytes]) -> None:
    before = known.stable()
    with raises(Invalid, message=f"change.form_of_{'harness' if READER in changes else 'memory'}"):
        known.commit(changes, "Half of it", "edit")
    assert known.stable() == before
    known.commit({READER: said(2), DOCUMENT: said(2), TEXT: NEW}, "All of it", "edit")
    assert known.check().faults == ()


def test_a_new_memory_and_another_agents_harness_have_to_fit_as_well(known: Registry) -> None:
    promote(known)
    with raises(Invalid, message="change.form_of_new_memory"):
        known.commit({"memory/more/memory.md": OLD, "memory/more/resource.toml": said(1)}, "More", "edit")
    old = {
        "harness/old/resource.toml": said(1),
        "harness/old/harness.py": SEED["harness/default/harness.py"],
    }
    known.commit(old, "Nobody stands on it", "edit")
    with raises(Invalid, message="change.form_of_other_harness"):
        known.commit({"agent/odd/resource.toml": b'description = "O"\nharness = "old"\n'}, "Odd", "edit")


def clone(registry: Registry, place: Path) -> Path:
    subprocess.run(["git", "clone", "-q", registry.repository.path, place], check=True)
    for key, value in (("user.name", "ada"), ("user.email", "ada@example.com")):
        subprocess.run(["git", "-C", place, "config", key, value], check=True)
    return place


def push(place: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (place / path).write_bytes(content)
    subprocess.run(["git", "-C", place, "commit", "-qam", "By hand"], check=True)
    subprocess.run(["git", "-C", place, "push", "-q", "origin", "HEAD:incoming/ada"], check=True)


def test_a_push_that_brings_half_of_it_is_refused_with_the_reason(known: Registry, tmp_path: Path) -> None:
    place = clone(known, tmp_path / "clone")
    push(place, {READER: said(2)})
    (pushed,) = known.take_in_pushes(None)
    assert "harness/default (agent default) reads memories of form 2" in pushed.faults[0]
    push(place, {DOCUMENT: said(2), TEXT: NEW})
    (pushed,) = known.take_in_pushes(None)
    assert pushed.faults == ()
    assert text(known) == NEW


def test_a_lesson_pushed_in_the_form_of_before_is_not_merged_line_by_line(
    known: Registry, tmp_path: Path
) -> None:
    known.commit({TEXT: b"a\nb\nc\nd\ne\nf\ng\n"}, "Longer", "edit")
    place = clone(known, tmp_path / "clone")
    files = moved() | {TEXT: "form two\na\nb\nc\nd\ne\nf\ng\n"}
    promote(known, files)
    push(place, {TEXT: b"a\nb\nc\nd\ne\nf\ng\n- A lesson of form 1\n"})
    (pushed,) = known.take_in_pushes(None)
    assert "memory/notes: its form is 2 here and 1 there" in pushed.faults[0]
    assert text(known).decode() == files[TEXT]


def test_a_release_that_reads_another_form_waits_for_somebody_to_decide(known: Registry) -> None:
    kept = text(known, READER)
    shipped = SEED | {READER: said(2), "prompt/default/prompt.md": b"Do it better.\n"}
    done = known.upgrade(shipped, "2.0", UpgradeChoice())
    found = {str(item.resource): item for item in done.items}
    assert found["prompt/default"].action == "taken"
    assert found["harness/default"].action == "conflict"
    assert "memory/notes (form 1)" in found["harness/default"].detail
    assert text(known, READER) == kept
    again = known.upgrade(shipped, "2.0", UpgradeChoice(take=[HARNESS]))
    assert [item.action for item in again.items] == ["conflict"]


def test_what_an_evolution_brought_over_goes_back_as_one(known: Registry) -> None:
    before = known.stable()
    promote(known)
    assert text(known) == NEW
    known.revert_evolution("evo-1", "It fails", "rollback")
    assert known.stable().tree == before.tree
    assert text(known) == OLD
    known.revert_evolution("evo-1", "It fails", "rollback")
    assert known.stable().tree == before.tree
    assert known.check().faults == ()


def test_what_was_learnt_since_is_set_aside_named_and_kept_in_the_history(known: Registry) -> None:
    before = known.stable()
    promote(known)
    known.commit({TEXT: NEW + b"fact: And of EUR.\n"}, "Learnt", "edit")
    known.commit({"memory/more/memory.md": NEW, "memory/more/resource.toml": said(2)}, "More", "edit")
    learnt = known.latest(NOTES)
    plan = known.plan_undo_evolution("evo-1")
    assert learnt is not None
    assert plan.set_aside == (f"memory/notes@{learnt.number}", "memory/more@1.0.0")
    known.revert_evolution("evo-1", "It fails", "rollback")
    assert known.stable().tree == before.tree
    message = known.repository.commit(known.stable().commit).message
    assert (
        f"Set aside, because it has another form: memory/notes@{learnt.number}, memory/more@1.0.0" in message
    )
    was = known.repository.snapshot(learnt.commit)
    assert known.files(was, TEXT)[TEXT] == NEW + b"fact: And of EUR.\n"
    known.commit({TEXT: OLD + b"- Later.\n"}, "Later", "edit")
    assert known.plan_undo_evolution("evo-1").contents == {}
    assert known.check().faults == ()


def test_a_memory_that_was_retired_since_stays_so(known: Registry) -> None:
    promote(known)
    known.retire(NOTES, "no longer true")
    known.revert_evolution("evo-1", "It fails", "rollback")
    assert text(known) == b""
    assert text(known, READER) == SEED[READER]


def test_a_part_of_it_is_not_undone_alone(known: Registry) -> None:
    promote(known)
    for resource in (HARNESS, NOTES):
        with raises(Conflict, ErrorKind.LATER, type_next="agentos registry revert evo-1"):
            known.plan_undo(resource, known.versions(resource)[0].number)
        with raises(Invalid, message=f"restore.form_of_{resource.kind.value}"):
            known.revert(known.plan_restore(resource, "1.0.0"), "Back")
    assert text(known) == NEW


def test_what_a_person_brought_over_in_one_change_goes_back_in_one(known: Registry) -> None:
    before = known.stable()
    known.commit({path: content.encode() for path, content in moved().items()}, "By hand", "edit")
    known.commit({TEXT: NEW + b"fact: More.\n"}, "Learnt", "edit")
    plan = known.plan_undo(HARNESS, known.versions(HARNESS)[0].number)
    assert sorted(map(str, plan.contents)) == ["harness/default", "memory/notes"]
    known.revert(plan, "Not good")
    assert known.stable().tree == before.tree


def test_a_harness_that_others_built_on_names_them_first(known: Registry) -> None:
    promote(known)
    promote(known, {"harness/default/harness.py": "def run(sdk):\n    sdk.finish(3)\n"}, "evo-2")
    with raises(Conflict, ErrorKind.LATER, names=["1.0.2"]):
        known.revert_evolution("evo-1", "It fails", "rollback")
    known.revert_evolution("evo-2", "It fails", "rollback")
    assert text(known) == NEW


def test_a_promotion_of_half_of_it_or_on_what_moved_is_refused(known: Registry) -> None:
    with raises(Invalid, message="candidate.form_of_memory"):
        promote(known, {READER: said(2).decode()})
    base = known.stable()
    candidate = known.add_candidate("cand-late", base, moved())
    known.commit({"memory/more/memory.md": OLD, "memory/more/resource.toml": said(1)}, "Meanwhile", "edit")
    with raises(Conflict, ErrorKind.STALE, names=[base.commit[:12]]):
        known.promote(base, candidate, {"Evolution": "evo-late"}, "Late")
    assert known.check().faults == ()
