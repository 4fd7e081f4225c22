"""Migrate: what is remembered is brought to the form that a candidate's harness reads.

Memories are the only state that outlives a run and that a harness gives its form to (``state`` in the
documents). A candidate whose harness wants another form brings ``harness/NAME/migrate.py``; the kernel calls it
in a box, on a copy of the base's memories, and what comes out becomes part of the candidate's own snapshot. So
it is tried in the replay with the harness that reads it, promoted with it by one move of the pointer, and taken
back with it: what stood before is the base's tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentos.domain import Check, Json, Kind, Migration, Refusal, RefusalKind, ResourceId, Snapshot
from agentos.evolver.guards.static import fault_of_text
from agentos.evolver.memory import MigrationContext
from agentos.evolver.memory.lessons import lessons_in
from agentos.resources import examine, parse_id, resource_of
from agentos.resources.documents import (
    CONCERNED,
    DOCUMENT,
    FIRST,
    MAIN_FILE,
    concerned_by,
    disagreements,
    document_of,
    documents_of,
    form_in,
    readers,
    with_form,
)

PROGRAM = "migrate.py"


@dataclass(frozen=True, slots=True)
class MigratedEdit:
    """What comes with an edit so that harness and memories agree; ``fault`` says why they do not."""

    migration: Migration | None = None
    fault: str = ""


class _Refused(Exception):
    """Why the edit is not worth a trial."""


@dataclass(frozen=True, slots=True)
class _Step:
    harness: ResourceId
    old: int
    new: int

    @property
    def program(self) -> str:
        return f"{self.harness}/{PROGRAM}"


def bring_over(
    parts: MigrationContext, base: Snapshot, files: Mapping[str, str], checks: Sequence[Check]
) -> MigratedEdit:
    """The migration that the edit of ``base`` needs, if any. ``checks`` are the evidence's.

    The same edit gives the same again. Raises Unavailable when the machinery failed.
    """
    try:
        return MigratedEdit(_migration(parts, base, files, checks))
    except _Refused as refused:
        return MigratedEdit(fault=str(refused))


def unwritten(parts: MigrationContext, snapshot: Snapshot, resource: ResourceId) -> Refusal | None:
    """Why nothing here writes this memory, None when it may be written (or is none)."""
    path = document_of(resource)
    if resource.kind is not Kind.MEMORY:
        return None
    form = form_in(parts.snapshots.files(snapshot, path).get(path, b""))
    if form == FIRST:
        return None
    return Refusal(
        RefusalKind.FORM,
        f"{resource} has form {form}: only the harness that reads it knows that form, and lessons are written "
        f"in form {FIRST}; a person may edit it",
    )


def _migration(
    parts: MigrationContext, base: Snapshot, files: Mapping[str, str], checks: Sequence[Check]
) -> Migration | None:
    touched = {path: name for path in files if (name := resource_of(path)) and name.kind in CONCERNED}
    memories = {name for name in touched.values() if name.kind is Kind.MEMORY}
    after = {name: files[path].encode() for path, name in touched.items() if path == document_of(name)}
    if not memories and not after:
        return None
    names = concerned_by(touched.values(), parts.snapshots.names(base))
    before = documents_of(names, lambda path: parts.snapshots.files(base, path))
    for memory in sorted(memories):
        if why := unwritten(parts, base, memory):
            raise _Refused(why.reason)
    step = _raised(before, after)
    migration = None
    if step is not None:
        if memories:
            raise _Refused(f"it edits memories itself, which its {step.program} is to bring over")
        migration = _brought(parts, base, files, step, checks)
        after |= {
            parse_id(name): migration.files[f"{name}/{DOCUMENT}"].encode() for name in migration.memories
        }
    if faults := disagreements({**before, **after}):
        raise _Refused(faults[0])
    return migration


def _raised(before: Mapping[ResourceId, bytes], after: Mapping[ResourceId, bytes]) -> _Step | None:
    """The one harness that reads another form than before."""
    found = [
        _Step(name, form_in(before[name]), form_in(document))
        for name, document in sorted(after.items())
        if name.kind is Kind.HARNESS and name in before and form_in(document) != form_in(before[name])
    ]
    if len(found) > 1:
        names = ", ".join(str(step.harness) for step in found)
        raise _Refused(f"it changes 'state' of {names}: one harness at a time")
    for step in found:
        if step.new < step.old:
            told = f"'state' of {step.harness} is {step.old}, and {step.new} would be an older form"
            raise _Refused(f"{told}: forms are only raised; a roll-back takes them back")
        return step
    return None


def _brought(
    parts: MigrationContext, base: Snapshot, files: Mapping[str, str], step: _Step, checks: Sequence[Check]
) -> Migration:
    """The memories of the harness' agents in the new form; nothing to bring over where no agent stands on it."""
    if step.program not in files:
        raise _Refused(
            f"it raises 'state' of {step.harness} from {step.old} to {step.new} and brings no {step.program} "
            "to take memories from the one form to the other"
        )
    known = parts.snapshots.names(base)
    agents = documents_of(concerned_by((), known), lambda path: parts.snapshots.files(base, path))
    in_use = step.harness in {reader.harness for reader in readers(agents)}
    names = [name for name in known if name.kind is Kind.MEMORY and in_use]
    for name in names:
        if fixed := parts.evolvable.why_fixed(name):
            raise _Refused(f"it needs {name} in form {step.new}: {fixed.reason}")
    resources = {name: dict(parts.snapshots.files(base, str(name))) for name in names}
    old = {name: resources[name].get(_text_of(name), b"").decode("utf-8", "replace") for name in names}
    new = _migrated(parts, base, files, step, old)
    if any(map(lessons_in, old.values())) and new == old:
        raise _Refused(f"{step.program} leaves every memory as it is: then its form does not change")
    made: dict[str, str] = {}
    for name in names:
        document = resources[name].get(document_of(name), b"").decode("utf-8", "replace")
        own = {_text_of(name): new[name], document_of(name): _with_form(name, document, step.new)}
        if fault := _fault(parts, name, (old[name], new[name]), {**resources[name], **_encoded(own)}, checks):
            raise _Refused(f"{step.program} makes {name} what may not be: {fault.reason}")
        made |= own
    return Migration(str(step.harness), step.old, step.new, made)


def _migrated(
    parts: MigrationContext,
    base: Snapshot,
    files: Mapping[str, str],
    step: _Step,
    old: Mapping[ResourceId, str],
) -> dict[ResourceId, str]:
    """What the program makes of the texts, twice the same, in whatever order it meets them."""
    own = {path: text.encode() for path, text in files.items() if path.startswith(f"{step.harness}/")}
    program = {**parts.snapshots.files(base, str(step.harness)), **own}
    given = {name.name: text for name, text in old.items()}
    found = [
        parts.migrate(program, step.program, dict(texts))
        for texts in (given.items(), reversed(given.items()))
    ]
    for one in found:
        if one.fault:
            raise _Refused(f"{step.program} failed in its box: {one.fault[:500]}")
    texts = _texts(step, given, found[0].output)
    if found[0].output != found[1].output:
        raise _Refused(f"{step.program} was called twice with the same and returned something else")
    return dict(zip(old, texts, strict=True))


def _texts(step: _Step, given: Mapping[str, str], output: Json) -> list[str]:
    """In the order of ``given``."""
    if not isinstance(output, dict):
        raise _Refused(f"{step.program} returned no texts by name: {type(output).__name__}")
    if output.keys() != given.keys():
        told = f"{', '.join(sorted(given)) or 'nothing'}; returned: {', '.join(sorted(output)) or 'nothing'}"
        raise _Refused(f"{step.program} returned other memories than it was given: {told[:500]}")
    for name, text in output.items():
        if not isinstance(text, str):
            raise _Refused(f"{step.program} returned no text for memory/{name}: {type(text).__name__}")
    return [output[name] for name in given]


def _fault(
    parts: MigrationContext,
    memory: ResourceId,
    texts: tuple[str, str],
    files: Mapping[str, bytes],
    checks: Sequence[Check],
) -> Refusal | None:
    """What is wrong with a memory's new text, as with any edit of a text; None when nothing is."""
    old, new = texts
    if old.strip() and not new.strip():
        return Refusal(RefusalKind.TEXT, "nothing is left of it")
    if fault := fault_of_text(_text_of(memory), old, new, checks, parts.policy.surface):
        return fault
    faults = examine(memory, files).faults
    return Refusal(RefusalKind.TEXT, "; ".join(faults)) if faults else None


def _with_form(memory: ResourceId, document: str, form: int) -> str:
    try:
        return with_form(document, form)
    except ValueError as error:
        raise _Refused(f"the form of {memory} cannot be raised: {error}") from None


def _encoded(files: Mapping[str, str]) -> dict[str, bytes]:
    try:
        return {path: text.encode() for path, text in files.items()}
    except UnicodeEncodeError as error:
        raise _Refused(f"a migrated memory is not Unicode: {error.reason}") from None


def _text_of(memory: ResourceId) -> str:
    return f"{memory}/{MAIN_FILE[Kind.MEMORY]}"
