"""Memories as lists of lessons: how one is told from another, changed, left out, and how it fared.

A lesson is one bullet of ``memory/<name>/memory.md``; indented lines continue it. Its id stands behind it
as a comment, ``<!-- m-3f2a9c01 -->``, which no model is shown; one that a person wrote without has the id
that its words give, and gets it written down when it is first changed. Nothing of how a lesson fared is kept
in the registry: it is counted from the runs that had it before them (``fared``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agentos.domain import (
    Kind,
    MemoryProposal,
    ProposalState,
    ResourceId,
    Result,
    Run,
    Share,
    Snapshot,
    digest,
    is_memory,
)
from agentos.evolver.memory import MemoryProposalContext
from agentos.ports import KnownLesson

NOTHING = "# Lessons\n"
_MARK = re.compile(r"<!--\s*(m-[0-9a-f]{8})\s*-->\s*$")
_BULLET = re.compile(r"^\s*([-*+]|\d+[.)])\s+")
_COUNTS = frozenset({Result.PASSED, Result.FAILED, Result.TIMEOUT, Result.BUDGET})


@dataclass(frozen=True, slots=True)
class Lesson:
    """One thing remembered; ``first`` and ``last`` are its lines in the file, from 0."""

    id: str
    text: str
    first: int
    last: int


def lessons_in(text: str) -> list[Lesson]:
    """The lessons of a memory in their order; headings and empty lines are none."""
    groups: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines()):
        if not line.strip() or line.startswith("#"):
            continue
        goes_on = groups and line[0] in " \t" and not _BULLET.match(line)
        if goes_on and groups[-1][0] + len(groups[-1][1]) == number:
            groups[-1][1].append(line)
        else:
            groups.append((number, [line]))
    taken: set[str] = set()
    return [_lesson(first, lines, taken) for first, lines in groups]


def _lesson(first: int, lines: Sequence[str], taken: set[str]) -> Lesson:
    """``taken``, which grows, are the ids before it: a person may have copied a line with its id, and changed its words."""
    marks = [found[1] for line in lines if (found := _MARK.search(line)) and found[1] not in taken]
    text = " ".join(_MARK.sub("", line).strip() for line in lines)
    text = _BULLET.sub("", text).strip()
    lesson = Lesson(marks[0] if marks else id_of(text), text, first, first + len(lines) - 1)
    taken.add(lesson.id)
    return lesson


def id_of(text: str) -> str:
    """The id of a lesson that has none yet: equal for texts that differ in case, spaces and closing marks."""
    return f"m-{digest(['lesson', _plain(text)])[:8]}"


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .!;,")


def added(memory: str, text: str) -> str:
    """The memory with one more lesson at its end; as it was where it holds these words already."""
    if any(_plain(lesson.text) == _plain(text) for lesson in lessons_in(memory)):
        return memory
    body = (memory or NOTHING).rstrip("\n")
    gap = "\n" if lessons_in(memory) else "\n\n"
    return f"{body}{gap}{_bullet(text, id_of(text))}\n"


def changed(memory: str, id: str, text: str) -> str:
    """The memory with other words for a lesson, whose id stays. Raises KeyError where there is none."""
    lesson = _by_id(memory, id)
    lines = memory.splitlines()
    lines[lesson.first : lesson.last + 1] = [_bullet(text, id)]
    return "\n".join(lines) + "\n"


def removed(memory: str, id: str) -> str:
    """The memory without a lesson. Raises KeyError where there is none of this id."""
    lesson = _by_id(memory, id)
    lines = memory.splitlines()
    del lines[lesson.first : lesson.last + 1]
    return "\n".join(lines).rstrip("\n") + "\n"


def _by_id(memory: str, id: str) -> Lesson:
    found = next((lesson for lesson in lessons_in(memory) if lesson.id == id), None)
    if found is None:
        raise KeyError(id)
    return found


def _bullet(text: str, id: str) -> str:
    return f"- {' '.join(text.split())} <!-- {id} -->"


def emptied(base: Mapping[str, str], edit: Mapping[str, str]) -> dict[str, str]:
    """The edit of ``base`` (its memories by path) without anything remembered, neither before nor by it."""
    files = {path: text for path, text in edit.items() if not is_memory(path)}
    for path, text in base.items():
        if lessons_in(text):
            files[path] = NOTHING
    return files


def only_removes(base: Mapping[str, str], edit: Mapping[str, str]) -> bool:
    """Whether the edit does nothing but take lessons out of memories."""
    if not edit or not all(is_memory(path) and path in base for path in edit):
        return False
    for path, text in edit.items():
        before = [lesson.text for lesson in lessons_in(base[path])]
        after = [lesson.text for lesson in lessons_in(text)]
        if len(after) >= len(before) or not set(after) <= set(before):
            return False
        if not _headings(text) <= _headings(base[path]):  # an agent reads these too
            return False
    return True


def _headings(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.startswith("#")}


def fared(
    texts: Mapping[str, str],
    runs: Mapping[str, Sequence[Run]],
    text_at: Callable[[Snapshot, str], str],
    now: datetime,
    half_life_days: float,
) -> tuple[KnownLesson, ...]:
    """Each lesson of ``texts`` (by path), with how the ``runs`` (by path) ended that had it before them.

    The score is (successes + 1) / (uses + 2), a use counting half as much after each half-life: a lesson
    of which nothing is known, or nothing any more, has 0.5. That a run with it passed does not say that it
    passed because of it: the score decides nothing. Runs of hidden work, and imported ones, do not count.
    """
    found: list[KnownLesson] = []
    for path, text in texts.items():
        had: dict[str, frozenset[str]] = {}
        counted = [run for run in runs.get(path, ()) if _says_something(run)]
        for run in counted:
            if run.snapshot.tree not in had:
                told = lessons_in(text_at(run.snapshot, path))
                had[run.snapshot.tree] = frozenset(lesson.id for lesson in told)
        for lesson in lessons_in(text):
            own = [run for run in counted if lesson.id in had[run.snapshot.tree]]
            found.append(_remembered(path, lesson, own, now, half_life_days))
    return tuple(found)


def _says_something(run: Run) -> bool:
    return (
        run.share is Share.OPEN and run.is_live and run.outcome is not None and run.outcome.result in _COUNTS
    )


def _remembered(
    path: str, lesson: Lesson, runs: Sequence[Run], now: datetime, half_life_days: float
) -> KnownLesson:
    weights = [0.5 ** (_days(run, now) / half_life_days) for run in runs]
    won = sum(weight for weight, run in zip(weights, runs, strict=True) if run.passed)
    return KnownLesson(
        path=path,
        id=lesson.id,
        text=lesson.text,
        uses=len(runs),
        successes=sum(run.passed for run in runs),
        score=round((won + 1) / (sum(weights) + 2), 4),
    )


def _days(run: Run, now: datetime) -> float:
    return max(0.0, (now - (run.finished_at or run.started_at)).total_seconds() / 86_400)


# -------------------------------------------------------------------------------------------------
# What became of memories that runs proposed: one that an evolution brought into a memory waits for
# nobody.


def settle_proposals(parts: MemoryProposalContext) -> list[MemoryProposal]:
    """Close each open proposal whose words are a lesson of a memory by now, and say which brought them."""
    waiting = parts.records.newest(MemoryProposal, parts.policy.look_back.proposals, state=ProposalState.OPEN)
    known = _is_remembered(parts) if waiting else {}
    settled = []
    for proposal in waiting:
        memory = known.get(id_of(proposal.text))
        if memory is None:
            continue
        reason = _brought_by(parts, memory)
        done = replace(
            proposal,
            state=ProposalState.ACCEPTED,
            decided_at=parts.now(),
            resource=str(memory),
            reason=reason,
        )
        about = {"state": done.state.value, "resource": done.resource, "reason": reason}
        parts.audit.note("memory.decided", proposal.id, about, (done,))
        settled.append(done)
    return settled


def _is_remembered(parts: MemoryProposalContext) -> dict[str, ResourceId]:
    """The memory that holds each lesson, by the id that the lesson's words give."""
    return {
        id_of(lesson.text): ResourceId(Kind.MEMORY, path.split("/")[1])
        for path, content in parts.snapshots.files(parts.snapshots.stable(), Kind.MEMORY.value).items()
        if is_memory(path)
        for lesson in lessons_in(content.decode("utf-8", "replace"))
    }


def _brought_by(parts: MemoryProposalContext, memory: ResourceId) -> str:
    newest = next(iter(parts.evolvable.versions(memory)), None)
    if newest is None or newest.evolution is None:
        return "the memory says so"
    return f"brought by {newest.evolution}"
