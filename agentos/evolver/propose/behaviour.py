"""How an edit of a tool behaves beside what was shown: it and its base on the same generated inputs.

An edit that differs from the base at the shown inputs alone, and writes something into the source by which
these could be told, looks them up: it is refused before a trial is spent on it. One that differs nowhere else
and writes nothing new (``>`` becomes ``>=``) may be right, because its fault may have been at one point. All
of it runs in a bench, in one box; an edit whose effect cannot be seen there is let pass, and the replay judges.
"""

from __future__ import annotations

import ast
import hmac
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from agentos.benches import GONE, LOST, error_of, error_told, settled
from agentos.domain import Behaviour, Candidate, Json, Refusal, RefusalKind, Task, canonical, folder_of
from agentos.evolver.find.mining import called_path
from agentos.evolver.guards.static import leaves, tasks_named
from agentos.evolver.policy import ReplayPolicy
from agentos.evolver.propose import BehaviourContext
from agentos.evolver.propose.ambiguity import findings
from agentos.evolver.propose.edit_mutants import loosened
from agentos.evolver.propose.moot_mutants import NUMBER
from agentos.evolver.propose.neighbours import Neighbour, neighbours
from agentos.evolver.propose.symptoms import EditFindings, parted
from agentos.evolver.propose.unread_names import unread
from agentos.evolver.propose.validation import as_one_text, newly_named, newly_written
from agentos.evolver.select.curate import TaskSets, case_of
from agentos.evolver.select.renaming import RenamedTask, renamed
from agentos.ports import Case
from agentos.resources import is_tool_file
from agentos.syntax import parse

_SAMPLES, _SHOWN = 4, 36  # differences that people are shown, and characters of each value
_LEAD = 8  # of these before two answers part
_HASHES = frozenset(
    {"hash", "hashlib", "md5", "sha1", "sha256", "sha512", "blake2b", "crc32", "adler32", "zlib"}
)
_PLAIN = frozenset(map(as_one_text, (0, 1, 2, -1, "", " ", "\n")))  # constants that identify nothing


@dataclass(frozen=True, slots=True)
class InputRun:
    """One input on both sides."""

    case: Case
    before: Json
    after: Json
    along: str = ""  # of a neighbour: what was changed; "" of an input that a task has
    of: int = -1

    @property
    def differs(self) -> bool:
        return canonical(self.before) != canonical(self.after)

    @property
    def valid(self) -> bool:
        """Whether the tool takes such an input, and ends on it, also with the edit: else it says nothing of the two."""
        ended = error_of(self.before) not in ("input", *GONE)
        return ended and error_of(self.after) not in (*LOST, "memory")


@dataclass(frozen=True, slots=True)
class ObservedBehaviour:
    """All that was run: inputs that were shown, of evidence and of guards, and what lies beside them."""

    shown: Sequence[InputRun]
    beside: Sequence[InputRun]  # neighbours of the evidence, and evidence that was held back
    guards: Sequence[InputRun]
    beside_guards: Sequence[InputRun]
    renamed: Sequence[
        tuple[InputRun, InputRun]
    ] = ()  # each input as it is, and under another name, in the old names
    path: str = ""  # of the tool

    @property
    def lost(self) -> str:
        """Why nothing is known of the edit: no call came to an end on one of the sides; "" where some did."""
        every = (*self.shown, *self.beside, *self.guards, *self.beside_guards)
        for outputs in ([ran.before for ran in every], [ran.after for ran in every]):
            if all(error_of(output) in LOST for output in outputs):
                return error_told(outputs[0])
        return ""


def behaves(
    parts: BehaviourContext, candidate: Candidate, sets: TaskSets
) -> tuple[Behaviour | None, Refusal | None]:
    """What people are shown of it, and why it is refused; None where nothing can be run."""
    told, why = _behaves(parts, candidate, sets)
    if named := _listed(parts, candidate, sets):
        told = replace(told or Behaviour(0, 0, 0, 0, 0, 0), listed=named)
    return told, why


def _listed(parts: BehaviourContext, candidate: Candidate, sets: TaskSets) -> str:
    """What the texts that it edits name the shown failing tasks by, one by one; "" where they do not."""
    edited = {path: text for path, text in candidate.edit.files.items() if path.endswith(".md")}
    if not edited:
        return ""
    old = "\n".join(_text(parts, candidate, path) for path in edited)
    tasks = parts.tasks(sets.shown)
    goals = [" ".join((task.goal, *(file.path for file in task.inputs))) for task in tasks]
    return ", ".join(tasks_named(old, "\n".join(edited.values()), goals))


def _behaves(
    parts: BehaviourContext, candidate: Candidate, sets: TaskSets
) -> tuple[Behaviour | None, Refusal | None]:
    seen = _run(parts, candidate, sets)
    if seen is None:
        return _of_other_tools(parts, candidate, sets), None
    old = {path: _text(parts, candidate, path) for path in candidate.edit.files}
    written = {
        value
        for path, text in candidate.edit.files.items()
        if path.endswith(".py")
        for value in newly_written(path, old[path], text)
    } - _PLAIN
    named = {
        name
        for path, text in candidate.edit.files.items()
        if path.endswith(".py")
        for name in newly_named(old[path], text)
    }
    by_names = _by_names(seen)
    fits = "" if by_names else fitted(seen, written, bool(named & _HASHES), parts.policy.replay)
    why = by_names or fits
    taken = [loosened(old[path], text) for path, text in candidate.edit.files.items() if path.endswith(".py")]
    told = replace(_told(seen, parts.policy.replay), loosened=next(filter(None, taken), ""))
    sources = [
        path
        for path, text in candidate.edit.files.items()
        if path.endswith(".py") and _code(text) != _code(old[path])
    ]
    edited = edited_alone(sources, seen.path)
    apart = [*([] if edited else sources), *of_program(candidate.edit.files, old, seen.path)]
    if apart:
        told = replace(told, uncompared=", ".join(apart))
    if not why and edited:
        found = findings(parts, candidate, edited, sets)
        untried = found.untried or seen.lost
        told = replace(
            _with_findings(told, found),
            uncompared=f"{edited}, of whose calls nothing is known ({untried})"
            if untried
            else told.uncompared,
            unread=unread(
                *(text.replace("\r\n", "\n") for text in (old[edited], candidate.edit.files[edited])),
                helper=edited != seen.path,
            ),
            known=tuple(i for i in (*sets.shown, *sets.guards) if i not in sets.varying),
        )
    kind = RefusalKind.BY_NAME if by_names else RefusalKind.OVER_FITTED
    return told, Refusal(kind, why) if why else None


def reexamined(
    parts: BehaviourContext, candidate: Candidate, sets: TaskSets, later: Sequence[str]
) -> Behaviour | None:
    """As it was seen before, but held against others with the tasks of the sets that came ``later`` among the known ones.

    None where that cannot be done. Raises NotFound when a known task was cleared away.
    """
    before = candidate.behaviour
    sources = [path for path in candidate.edit.files if path.endswith(".py")]
    if before is None or parts.benches is None or len(sources) != 1 or not sets.shown:
        return None
    found = findings(parts, candidate, sources[0], sets, frozenset(later))
    asked = before.ambiguity.rival if before.ambiguity is not None else ""
    # What was asked about is not ended by calls that nobody answered.
    return None if found.untried or found.lost & {"", asked} else _with_findings(before, found)


def _of_other_tools(parts: BehaviourContext, candidate: Candidate, sets: TaskSets) -> Behaviour | None:
    """Of an edit of code that no evidence calls by name: that it is compared with nothing. None of any other edit."""
    called = any(
        called_path(parts.journal, task) for task in parts.tasks(sets.shown) if task.id not in sets.varying
    )
    code = [
        path
        for path in sorted(candidate.edit.files)
        if path.endswith(".py") and path.startswith(("tool/", "skill/"))
    ]
    if not (called and code and parts.policy.replay.neighbours):
        return None
    return Behaviour(0, 0, 0, 0, 0, 0, uncompared=", ".join(code))


def _with_findings(told: Behaviour, found: EditFindings) -> Behaviour:
    return replace(
        told,
        ambiguity=found.ambiguity,
        unguarded=bool(found.unguarded),
        unmended=found.unmended,
        breaks=found.breaks,
        loosened=found.loosened,
        needless=_needless(found),
        accepted=found.accepted,
        noise=found.noise,
        depends=found.depends,
        share=float(f"{found.share:.3g}"),  # the smallest is no 0, which says that there is none
    )


def of_program(edited: Mapping[str, str], old: Mapping[str, str], path: str) -> list[str]:
    """What changes of a program in another language, which no mutant can be made of; nothing of a tool in Python."""
    if path.endswith(".py"):
        return []
    own = [each for each in edited if each.startswith(f"{path.rpartition('/')[0]}/")]
    return [each for each in own if not each.endswith((".py", ".md")) and edited[each] != old[each]]


def edited_alone(sources: Sequence[str], path: str) -> str:
    """The one source that is edited, if that is the tool's at ``path`` or a helper module beside it; else ""."""
    if len(sources) != 1:
        return ""
    helper = sources[0].rpartition("/")[0] == path.rpartition("/")[0] and not is_tool_file(sources[0])
    return sources[0] if helper or sources[0] == path else ""


def _code(source: str) -> str:
    """The same for two texts that differ in nothing but comments and blanks."""
    try:
        return ast.dump(parse(source)) if source else ""
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


def fitted(seen: ObservedBehaviour, written: set[str], hashes: bool, rules: ReplayPolicy) -> str:
    """Why it fits the shown inputs alone, "" where that cannot be said.

    ``written`` are the texts and numbers that newly stand in the source, ``hashes`` whether it starts to hash.
    """
    at = [ran for ran in seen.shown if ran.differs]
    beside = [ran for ran in (*seen.beside, *seen.beside_guards, *seen.guards) if ran.valid]
    if not at or not (written or hashes):
        return ""
    # Who compares squares, or distances, knows a number by another one as well: the same with another sign.
    mirrored = {_without_signs(ran.case) for ran in at}
    beside = [ran for ran in beside if not ran.differs or _without_signs(ran.case) not in mirrored]
    if len(beside) >= rules.neighbours_min and not any(ran.differs for ran in beside):
        points = {canonical([ran.case.call.args, sorted(_digests(ran.case))]) for ran in at}
        if hashes or len(points) > 1 or any(written & {*_traits(ran.case, rules.length_min)} for ran in at):
            return (
                f"over-fitted: it behaves otherwise than its base at the inputs that were shown, and at none of "
                f"{len(beside)} inputs beside them"
            )
    return _looks_up(at, seen.beside, written, rules) or _by_length(at, seen.beside, written, rules)


def _by_names(seen: ObservedBehaviour) -> str:
    """Why it goes by the names of files: its answer changes with them, and its base's does not."""
    told = [
        canonical(plain.after) != canonical(other.after)
        for plain, other in seen.renamed
        if canonical(plain.before) == canonical(other.before)
        # On a busy machine either may come to no end.
        and not {error_of(plain.after), error_of(other.after)} & {"died", "timeout"}
    ]
    if not any(told):
        return ""
    return (
        f"in {sum(told)} of {len(told)} calls it answers otherwise where an input file has another name: it goes "
        "by what identifies a task"
    )


def _looks_up(
    at: Sequence[InputRun], beside: Sequence[InputRun], written: set[str], rules: ReplayPolicy
) -> str:
    """A number of which several shown values stand newly in the source, and no other one makes a difference."""
    for name in sorted({name for ran in at for name in ran.case.call.args}):
        values = {
            as_one_text(value)
            for ran in at
            if isinstance(value := ran.case.call.args.get(name), int | float) and not isinstance(value, bool)
        }
        along = [ran for ran in beside if ran.valid and ran.along == name]
        if (
            len(values) > 1
            and values <= written
            and len(along) >= rules.along_min
            and not any(ran.differs for ran in along)
        ):
            return (
                f"over-fitted: it looks up the shown values of {name}, and no other value makes a difference"
            )
    return ""


def _by_length(
    at: Sequence[InputRun], beside: Sequence[InputRun], written: set[str], rules: ReplayPolicy
) -> str:
    """One length that all shown lists have, newly in the source, and no other one makes a difference."""
    names = sorted({name for ran in at for name in (*ran.case.call.args, *ran.case.inputs)})
    for name in names:
        lengths = {_length(ran.case, name) for ran in at}
        length = lengths.pop() if len(lengths) == 1 else None
        if length is None or length < rules.length_min or str(length) not in written:
            continue
        others = [
            ran for ran in beside if ran.valid and ran.along == name and _length(ran.case, name) != length
        ]
        if len(others) >= rules.along_min and not any(ran.differs for ran in others):
            return f"over-fitted: it behaves otherwise than its base only where {name} has {length} entries"
    return ""


def _length(case: Case, name: str) -> int | None:
    """Entries of a list, lines of a file; None of anything else."""
    if name in case.inputs:
        return len(case.inputs[name].splitlines())
    value = case.call.args.get(name)
    return len(value) if isinstance(value, list | tuple) else None


def _without_signs(case: Case) -> bytes:
    """Its arguments and files, whatever the signs of its numbers are."""

    def plain(value: Json) -> Json:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return abs(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    return canonical([plain(dict(case.call.args)), sorted(_digests(case))])


def _traits(case: Case, length_min: int) -> Iterator[str]:
    """By what an input could be told, also in the usual disguises."""
    for value in leaves(dict(case.call.args)):
        yield as_one_text(value)
        text = str(value)
        if len(text) > 1:
            yield from map(repr, (text, text[::-1], text.encode().hex(), b64encode(text.encode()).decode()))
        if isinstance(value, int) and abs(value) > 1:
            yield from (as_one_text(value * value), *map(repr, (f"{value:x}", f"{value:o}", f"{value:b}")))
    for name in (*case.call.args, *case.inputs):
        if (length := _length(case, name)) is not None and length >= length_min:
            yield str(length)


def _digests(case: Case) -> Iterator[str]:
    return (f"{path}:{content.hex()}" for path, content in case.inputs.items())


# --- running ------------------------------------------------------------------------------------


def _run(parts: BehaviourContext, candidate: Candidate, sets: TaskSets) -> ObservedBehaviour | None:
    most = parts.policy.replay.neighbours
    if not most:
        return None
    found = [
        (task, path)
        for task in parts.tasks((*sets.evidence, *sets.guards))
        if (path := called_path(parts.journal, task))
    ]
    paths = [path for task, path in found if task.id in sets.evidence]
    paths = [path for path in paths if folder_of(path) in candidate.edit.resources]
    path = next((path for path in paths if path in candidate.edit.files), next(iter(paths), ""))
    if not path:
        return None
    tasks = {task.id: task for task, own in found if own == path and task.id not in sets.varying}
    source = _text(parts, candidate, path)
    groups = [
        [tasks[task_id] for task_id in ids if task_id in tasks]
        for ids in (sets.shown, sets.held_back, sets.guards)
    ]
    if not groups[0] or not source:
        return None
    key = hmac.digest(parts.consent_key, candidate.evolution_id.encode(), "sha256")
    plain = [[case_of(parts, task) for task in group] for group in groups]
    near = neighbours(plain[0], source, key, most)
    far = neighbours(plain[2], source, key, most // 2)
    others = list(_renamed(parts, [task for group in groups for task in group], key))
    cases = [
        *plain[0],
        *plain[1],
        *plain[2],
        *(item.case for item in (*near, *far)),
        *(case for _, _, case in others),
    ]
    ran = iter(_both(parts, candidate, path, [replace(case, checks=()) for case in cases]))
    first, hidden, steady = ([next(ran) for _ in group] for group in plain)
    beside = [*hidden, *(_beside(item, next(ran)) for item in near)]
    beside_guards = [_beside(item, next(ran)) for item in far]
    by_task = {item.case.task_id: item for item in (*first, *hidden, *steady)}
    renamed = [(by_task[task_id], _as_before(other, next(ran))) for task_id, other, _ in others]
    return ObservedBehaviour(first, beside, steady, beside_guards, renamed, path)


def _renamed(
    parts: BehaviourContext, tasks: Sequence[Task], key: bytes
) -> Iterator[tuple[str, RenamedTask, Case]]:
    """Each task that has input files under long and under short names: its id, the names, and its case."""
    for task in tasks:
        for long in (True, False):
            other = renamed(task, parts.blobs.get, key, long=long)
            if other is not None and other.task.inputs != task.inputs:
                yield task.id, other, case_of(parts, other.task)


def _as_before(other: RenamedTask, ran: InputRun) -> InputRun:
    return replace(ran, before=other.as_before(ran.before), after=other.as_before(ran.after))


def _beside(item: Neighbour, ran: InputRun) -> InputRun:
    return replace(ran, along=item.along, of=item.of)


def _both(parts: BehaviourContext, candidate: Candidate, path: str, cases: Sequence[Case]) -> list[InputRun]:
    """Each case on the base and with the edit; in one box where the edit is of this file alone."""
    assert parts.benches is not None
    old = _text(parts, candidate, path)
    new = candidate.edit.files.get(path, old)
    timeout_s = parts.policy.replay.neighbour_s
    with closing(parts.benches.bench(candidate.base, path, cases, timeout_s)) as bench:
        before = settled(bench, old, range(len(cases))).outputs
        alone = set(candidate.edit.files) == {path}
        after = settled(bench, new, range(len(cases))).outputs if alone else None
    if after is None:
        with closing(parts.benches.bench(candidate.snapshot, path, cases, timeout_s)) as bench:
            after = settled(bench, new, range(len(cases))).outputs
    return [InputRun(*one) for one in zip(cases, before, after, strict=True)]


def _text(parts: BehaviourContext, candidate: Candidate, path: str) -> str:
    return parts.snapshots.files(candidate.base, path).get(path, b"").decode("utf-8", "replace")


# --- telling ------------------------------------------------------------------------------------


def _told(seen: ObservedBehaviour, rules: ReplayPolicy) -> Behaviour:
    beside = [ran for ran in seen.beside if ran.valid]
    around = [ran for ran in (*seen.guards, *seen.beside_guards) if ran.valid]
    answered = [ran for ran in seen.beside_guards if not error_of(ran.before)]
    samples = [ran for ran in (*beside, *around) if ran.differs and ran.along]
    return Behaviour(
        shown=len(seen.shown),
        shown_differ=sum(ran.differs for ran in seen.shown),
        beside=len(beside),
        beside_differ=sum(ran.differs for ran in beside),
        around_guards=len(around),
        around_guards_differ=sum(ran.differs for ran in around),
        samples=tuple(map(_sample, samples[:_SAMPLES])),
        broad=len(answered) >= rules.neighbours_min
        and sum(ran.differs for ran in answered) > rules.broad_share * len(answered),
    )


def _needless(found: EditFindings) -> str:
    if found.idle:
        return (
            f"with another one for {found.idle}" if found.idle.startswith(NUMBER) else f"without {found.idle}"
        )
    return f"with {found.needless}" if found.needless else ""


def _sample(ran: InputRun) -> str:
    value: Json = ran.case.call.args.get(ran.along, "changed")
    before, after = map(_text_of, parted(ran.before, ran.after))
    ends = min(len(before), len(after))
    alike = next((at for at in range(ends) if before[at] != after[at]), ends)
    start = max(0, alike - _LEAD) if max(len(before), len(after)) > _SHOWN else 0
    return f"{ran.along} {_cut(_text_of(value))}: {_cut(before, start)} → {_cut(after, start)}"


def _text_of(value: Json) -> str:
    if error := error_of(value):
        return f"{error}: {value['message']}"
    return value if isinstance(value, str) else canonical(value).decode("utf-8", "replace")


def _cut(text: str, start: int = 0) -> str:
    shown = f"…{text[start + 1 :]}" if start else text
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1]}…"
