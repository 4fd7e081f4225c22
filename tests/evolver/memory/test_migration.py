"""An edit that wants another form of memories: what it has to bring, and everything else that it might."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from agentos.domain import Candidate, Check, EditTarget, Layer, Migration, RefusalKind
from agentos.evolver.cycle import diagnose_and_curate, propose_candidates, reproduce
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.memory import MigrationResult
from agentos.evolver.memory.migration import MigratedEdit, bring_over
from agentos.evolver.policy import SurfacePolicy
from agentos.evolver.promote.probing import form_faults
from agentos.evolver.propose.proposing import why_fixed
from agentos.evolver.propose.validation import screen
from agentos.evolver.select.curate import TaskSets
from agentos.ports import Proposal
from agentos.resources import parse_id
from agentos.testing import FakeRegistry, ScriptedProposer
from tests.evolver.conftest import FAULTY, PATH, RIGHT, World

READER, PROGRAM = "harness/default/resource.toml", "harness/default/migrate.py"
NOTES, FACTS = "memory/notes/memory.md", "memory/facts/memory.md"
OLD = 'description = "D"\n'
RAISED = f"{OLD}state = 2\n"
GOOD = (
    "def migrate(memories):\n    return {name: text.replace('- ', '* ') for name, text in memories.items()}\n"
)
FILES = {
    "agent/default/resource.toml": OLD,
    READER: OLD,
    "harness/default/harness.py": "def run(sdk):\n    pass\n",
    NOTES: "# Lessons\n\n- Amounts are in cents.\n",
    "memory/notes/resource.toml": OLD,
    FACTS: "# Lessons\n",
    "memory/facts/resource.toml": f"{OLD}state = 1\n",
    PATH: FAULTY,
    "skill/calc/SKILL.md": "x",
}
CHECKS = (Check("equals", {"value": "a secret answer"}),)


def in_place(files: Mapping[str, bytes], path: str, memories: Mapping[str, str]) -> MigrationResult:
    """As in a box, without one."""
    space: dict[str, object] = {}
    try:
        exec(files[path].decode(), space)
        return MigrationResult(space["migrate"](dict(memories)))  # type: ignore[operator]
    except ArithmeticError as error:
        return MigrationResult(fault=f"{type(error).__name__}: {error}")


@pytest.fixture
def parts(world: World) -> Dependencies:
    world.registry = FakeRegistry(FILES)
    return replace(world.parts, migrate=in_place)


def brought(parts: Dependencies, program: str = GOOD, **more: str) -> MigratedEdit:
    files = {
        READER: RAISED,
        PROGRAM: program,
        **{path.replace("__", "/"): text for path, text in more.items()},
    }
    return bring_over(parts, parts.snapshots.stable(), files, CHECKS)


def returning(expression: str) -> str:
    return f"def migrate(memories):\n    return {expression}\n"


def test_memories_come_over_with_their_documents(parts: Dependencies) -> None:
    made = brought(parts)
    assert made.fault == ""
    assert made.migration is not None
    assert made.migration.files == {
        NOTES: "# Lessons\n\n* Amounts are in cents.\n",
        "memory/notes/resource.toml": f"state = 2\n{OLD}",
        FACTS: "# Lessons\n",
        "memory/facts/resource.toml": f"{OLD}state = 2\n",
    }
    assert str(made.migration) == "memory/facts, memory/notes from form 1 to 2"
    base = parts.snapshots.stable()
    files = {READER: RAISED, PROGRAM: GOOD, **made.migration.files}
    assert form_faults(parts.snapshots, parts.candidates.add_candidate("cand-1", base, files)) == []
    assert brought(parts) == made


def test_an_edit_that_wants_no_other_form_needs_nothing(parts: Dependencies) -> None:
    base = parts.snapshots.stable()
    asked = replace(parts, migrate=lambda *given: pytest.fail("nothing is to be migrated"))
    for files in (
        {PATH: RIGHT},
        {NOTES: "# Lessons\n\n- Other.\n"},
        {PROGRAM: GOOD},
        {READER: 'description = "E"\n'},
    ):
        assert bring_over(asked, base, files, CHECKS) == MigratedEdit()


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (returning("1 // 0"), "failed in its box: ZeroDivisionError"),
        (returning("None"), "returned no texts by name: NoneType"),
        (returning("[*memories]"), "returned no texts by name: list"),
        (returning("{}"), "returned other memories than it was given: facts, notes; returned: nothing"),
        (returning("{**memories, 'extra': 'x'}"), "returned: extra, facts, notes"),
        (returning("{'../notes': '', 'facts': ''}"), "returned other memories"),
        (returning("{name: 3 for name in memories}"), "returned no text for memory/facts: int"),
        (returning("dict(memories)"), "leaves every memory as it is"),
        (returning("{name: '' for name in memories}"), "makes memory/facts what may not be: nothing is left"),
        (returning("{name: 'x\\n' * ((1 << 19) + 1) for name in memories}"), "bytes, at most"),
        (returning("{name: '\\ud800' + name for name in memories}"), "a migrated memory is not Unicode"),
        (returning("{name: 'key sk-0123456789abcdefghij' for name in memories}"), "looks like a secret"),
        (returning("{name: 'say: a secret answer' for name in memories}"), "writes an expected value"),
        (returning("{name: 'a\\u200bb' for name in memories}"), "a character that is not seen"),
        (returning("{name: 'x' * 700 for name in memories}"), "a line of more than 600"),
        (returning("{name: str(place) for place, name in enumerate(memories)}"), "called twice with the same"),
    ],
)  # fmt: skip
def test_what_is_no_migration_is_refused_with_the_reason(
    parts: Dependencies, program: str, says: str
) -> None:
    made = brought(parts, program)
    assert made.migration is None
    assert says in made.fault


def test_what_differs_from_call_to_call_is_refused(parts: Dependencies) -> None:
    count = iter(range(9))
    parts = replace(
        parts,
        migrate=lambda files, path, memories: MigrationResult(dict.fromkeys(memories, str(next(count)))),
    )
    assert "called twice with the same and returned something else" in brought(parts).fault


def test_a_form_is_not_raised_without_a_program_of_its_own(parts: Dependencies, world: World) -> None:
    base = parts.snapshots.stable()
    refused = bring_over(parts, base, {READER: RAISED}, CHECKS).fault
    assert "raises 'state' of harness/default from 1 to 2 and brings no harness/default/migrate.py" in refused
    # that of the step before does not do for the next one
    world.registry.edit({READER: RAISED, PROGRAM: GOOD, **_documents(2)})
    third = {READER: f"{OLD}state = 3\n"}
    assert "from 2 to 3 and brings no" in bring_over(parts, parts.snapshots.stable(), third, CHECKS).fault


def _documents(form: int) -> dict[str, str]:
    return {f"memory/{name}/resource.toml": f"{OLD}state = {form}\n" for name in ("notes", "facts")}


def test_a_form_is_only_raised(parts: Dependencies, world: World) -> None:
    world.registry.edit({READER: RAISED, **_documents(2)})
    made = bring_over(parts, parts.snapshots.stable(), {READER: OLD, PROGRAM: GOOD}, CHECKS)
    assert "forms are only raised" in made.fault


def test_an_edit_does_not_say_itself_what_memories_become(parts: Dependencies) -> None:
    base = parts.snapshots.stable()
    own = {READER: RAISED, PROGRAM: GOOD, NOTES: "* Mine.\n"}
    assert "it edits memories itself" in bring_over(parts, base, own, CHECKS).fault
    lie = {"memory/notes/resource.toml": RAISED}
    assert "memory/notes (form 2)" in bring_over(parts, base, lie, CHECKS).fault
    assert "it edits memories itself" in bring_over(parts, base, {**lie, READER: RAISED}, CHECKS).fault


def test_a_memory_that_another_agents_harness_reads_as_well_stays(parts: Dependencies, world: World) -> None:
    world.registry.edit(
        {
            "agent/other/resource.toml": f'{OLD}harness = "other"\n',
            "harness/other/resource.toml": OLD,
            "harness/other/harness.py": "def run(sdk):\n    pass\n",
        }
    )
    refused = brought(parts).fault
    assert "harness/other (agent other) reads memories of form 1" in refused
    assert "memory/facts (form 2), memory/notes (form 2)" in refused
    both = brought(parts, **{"harness__other__resource.toml": RAISED}).fault
    assert "changes 'state' of harness/default, harness/other: one harness at a time" in both
    # nobody's memories are brought over for a harness that no agent stands on
    world.registry.edit({"agent/other/resource.toml": OLD})
    files = {"harness/other/resource.toml": RAISED, "harness/other/migrate.py": returning("memories")}
    made = bring_over(parts, parts.snapshots.stable(), files, CHECKS)
    assert made == MigratedEdit(Migration("harness/other", 1, 2, {}))


def test_a_pinned_memory_is_not_brought_over(parts: Dependencies, world: World) -> None:
    world.registry.pinned.add(parse_id("memory/notes"))
    assert "it needs memory/notes in form 2: memory/notes is pinned" in brought(parts).fault


def test_nothing_here_writes_lessons_in_a_form_that_only_a_harness_knows(
    parts: Dependencies, world: World
) -> None:
    site = EditTarget(Layer.MEMORY, "memory/notes", NOTES)
    assert why_fixed(parts, site) is None
    world.registry.edit({READER: RAISED, **_documents(2)})
    fixed = why_fixed(parts, site)
    assert fixed is not None
    assert fixed.kind is RefusalKind.FORM
    assert fixed.reason.startswith("memory/notes has form 2")
    made = bring_over(parts, parts.snapshots.stable(), {NOTES: "- Mine.\n"}, CHECKS)
    assert made.fault == fixed.reason
    assert "lessons are written in form 1" in made.fault
    assert why_fixed(parts, EditTarget(Layer.HARNESS, "harness/default", PROGRAM)) is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (OLD, RAISED, ""),
        (OLD, f'{RAISED}command = ["sh"]\n', "it changes command; only 'state' may change"),
        (OLD, f"{RAISED}evolvable = false\n", "it changes evolvable"),
        (None, RAISED, "for people to add"),
        (OLD, "state = = 2", "not valid TOML"),
    ],
)
def test_of_a_harness_document_nothing_but_the_form_may_change(old: str | None, new: str, says: str) -> None:
    found = screen({READER: old} if old else {}, {READER: new}, (), SurfacePolicy())
    assert bool(found) == bool(says)
    assert found is None or says in found.reason


def proposing(world: World, files: Mapping[str, str]) -> Candidate:
    """The stored candidate of a proposal with these files."""
    made = Proposal("a cause", "an edit", "scripted", files, "why", (), ())
    world.proposer = ScriptedProposer([made])
    world.seed()
    evolution = world.open()
    parts = replace(world.parts, migrate=in_place)
    chosen = diagnose_and_curate(parts, evolution.id, reproduce(parts, evolution.id))
    propose_candidates(parts, evolution.id, TaskSets(*(tuple(ids) for ids in chosen)))
    (candidate,) = world.ledger.find(Candidate)
    return candidate


def test_what_is_tried_holds_the_memories_in_the_new_form(world: World) -> None:
    world.registry = FakeRegistry(FILES)
    candidate = proposing(world, {PATH: RIGHT, READER: RAISED, PROGRAM: GOOD})
    assert candidate.screened == ""
    assert candidate.migration is not None
    assert candidate.edit.files.keys() == {PATH, READER, PROGRAM}
    tried = {path: text.decode() for path, text in world.registry.files(candidate.snapshot, "memory").items()}
    assert tried == candidate.migration.files
    assert candidate.control is None, "it is no edit of what is remembered"


def test_an_edit_without_its_program_is_screened_out_before_a_trial(world: World) -> None:
    world.registry = FakeRegistry(FILES)
    candidate = proposing(world, {PATH: RIGHT, READER: RAISED})
    assert "brings no harness/default/migrate.py" in candidate.screened
    assert candidate.snapshot == candidate.base


def test_the_program_is_read_by_the_guards_before_it_is_called(world: World) -> None:
    world.registry = FakeRegistry(FILES)
    candidate = proposing(world, {PATH: RIGHT, READER: RAISED, PROGRAM: f"import socket\n{GOOD}"})
    assert "socket" in candidate.screened
