"""Fresh work: what the trials say of tasks that came in after the edit was found.

An edit that a search found passes what was known when it was found; that is how it was chosen. Whether it is right
elsewhere is told by work that did not exist then. Of each such task with checks that ran what is edited the
candidate's trial counts; the base's, which has to end as the live run did, says how it was before. A task that passes
on both sides shows that nothing is lost there; that what changed is right is shown only where the sides part: of what
passes, some have to fail on the base, and not all of these end in one answer where the evidence has several. Which
tasks are fresh is decided where they are chosen (``replay.fresh``). A pure function of trials and policy, as the
verdict is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto

from agentos.domain import Arm, Candidate, EditedName, Refusal, RefusalKind, Result, Trial, TrialSet
from agentos.evolver.policy import SETTINGS, Policy
from agentos.evolver.verdict.overfitting import ROUNDING, mended
from agentos.evolver.verdict.pairing import apart

_CODE = (".py", "/wheels.lock")
_TOOL = "tool/"
_SETTINGS = (".json", ".toml", ".yaml", ".yml", ".sh")  # what code reads or is started by


class _FreshEnd(Enum):
    """What one fresh task says of a candidate."""

    NOTHING = auto()
    KEPT = auto()  # it passes on both sides
    MENDED = auto()
    MENDED_ALIKE = auto()  # it failed as the evidence did, and passes
    UNMENDED = auto()  # it fails as the evidence did, still
    BROKEN = auto()
    LOST = auto()  # it passes on the base, and cannot be replayed with it


_MENDED = (_FreshEnd.MENDED, _FreshEnd.MENDED_ALIKE)


@dataclass(frozen=True, slots=True)
class FreshWork:
    """Ids of fresh tasks by what they say of a candidate, and how many are wanted."""

    wanted: int  # 0: none is asked for
    tried: tuple[str, ...] = ()
    passed: tuple[str, ...] = ()  # they count: with checks, ran what it edits, pass with it
    mended: tuple[str, ...] = ()  # of these, those that fail on the base
    broken: tuple[str, ...] = ()  # they pass on the base and fail with it
    unmended: tuple[str, ...] = ()  # they fail with it as the evidence did
    lost: tuple[str, ...] = ()  # they pass on the base, and cannot be replayed with it
    mended_alike: int = 0  # of those that failed as the evidence did
    needed: int = 0  # of these and the unmended, how many it has to mend
    telling: int = 0  # of those that pass, how many have to fail on the base
    answers: int = 0  # different ones in which it ends what it mends
    answers_wanted: int = 0

    @property
    def missing(self) -> int:
        """How many more are wanted, at least."""
        alike = max(0, self.answers_wanted - self.answers)
        return max(0, self.wanted - len(self.passed), self.telling - len(self.mended), alike)

    @property
    def so_far(self) -> str:
        """The count, in words."""
        parts = [f"{len(self.passed)} of {self.wanted} so far"]
        if self.telling:
            parts.append(f"{len(self.mended)} of {self.telling} that failed before")
        elif self.mended:
            parts.append(f"{len(self.mended)} of them failed before")
        if len(self.mended) >= self.telling and self.answers < self.answers_wanted:
            parts.append("all that it mended end in one answer")
        return ", ".join(parts)

    def waits_for(self, resource: str) -> str:
        """What else may promote it than a person."""
        tasks = "task" if self.missing == 1 else "tasks"
        failing = "" if len(self.passed) < self.wanted else " that it fails now"
        return f"waits for you, or for {self.missing} more checked {tasks} of {resource}{failing} ({self.so_far})"

    def doubts(self) -> list[Refusal]:
        """What fresh work says against it, or does not say for it yet."""
        found = []
        if self.unmended and self.mended_alike < self.needed:
            found.append(
                Refusal(
                    RefusalKind.UNMENDED,
                    f"of fresh tasks that fail as the evidence did it mends {self.mended_alike}, where {self.needed} "
                    "would be the share that it mends of those that were shown",
                )
            )
        if self.lost:
            told = f"{len(self.lost)} fresh tasks pass on its base and cannot be replayed with it"
            found.append(Refusal(RefusalKind.LOST, told))
        if self.missing:
            told = f"it rests on too little work that came after it was found: {self.so_far}"
            found.append(Refusal(RefusalKind.FRESH, told))
        return found


def with_fresh(verdict_id: str) -> str:
    """The id of the verdict that has fresh work in it, beside the one that was made without."""
    return f"{verdict_id}-fresh"


def split(trials: Iterable[Trial]) -> tuple[list[Trial], list[Trial]]:
    """Those that a candidate was compared on, and those of fresh work."""
    known, fresh = list[Trial](), list[Trial]()
    for trial in trials:
        (fresh if trial.set is TrialSet.FRESH else known).append(trial)
    return known, fresh


def wants_fresh(candidate: Candidate, trials: Iterable[Trial], policy: Policy) -> bool:
    """Whether fresh work is asked for: an edit of code of whose evidence some is judged by flips.

    Pairs say how sure they are of work that varies; flips only say that the known tasks are passed.
    """
    known, _ = split(trials)
    if not policy.judge.fresh_tasks or not any(
        _is_code(path, policy.edition) for path in candidate.edit.files
    ):
        return False
    evidence = {
        trial.task_id
        for trial in known
        if trial.set is TrialSet.EVIDENCE and trial.candidate_id == candidate.id
    }
    return not evidence or bool(evidence - apart(known))


def _is_code(path: str, edition: int) -> bool:
    beside = edition >= SETTINGS and path.startswith("skill/") and path.endswith(_SETTINGS)
    return beside or path.endswith(_CODE) or path.startswith(_TOOL)


def fresh_work(candidate: Candidate, trials: Iterable[Trial], policy: Policy) -> FreshWork:
    """What the trials of fresh work say of the candidate."""
    known, fresh = split(trials)
    trees = {Arm.BASE: candidate.base.tree, Arm.CANDIDATE: candidate.snapshot.tree}
    made = [trial for trial in fresh if trees.get(trial.arm) == trial.snapshot.tree]
    ends = {task_id: _end(candidate, own) for task_id, own in _by_task(made).items()}
    shown = [
        trial
        for trial in known
        if trial.arm is Arm.CANDIDATE and trial.set is TrialSet.EVIDENCE and not trial.alike
    ]
    shown_mended = mended(shown, policy.judge)
    share = policy.judge.hidden_share * sum(shown_mended) / len(shown_mended) if shown_mended else 0.0
    alike = sum(end in (_FreshEnd.MENDED_ALIKE, _FreshEnd.UNMENDED) for end in ends.values())

    def named(*wanted: _FreshEnd) -> tuple[str, ...]:
        return tuple(name for name, end in ends.items() if end in wanted)

    fixed = frozenset(named(*_MENDED))
    wanted = policy.judge.fresh_tasks if wants_fresh(candidate, known, policy) else 0
    telling = min(wanted, policy.judge.fresh_mended)
    return FreshWork(
        wanted=wanted,
        tried=tuple(ends),
        passed=named(_FreshEnd.KEPT, *_MENDED),
        mended=named(*_MENDED),
        broken=named(_FreshEnd.BROKEN),
        unmended=named(_FreshEnd.UNMENDED),
        lost=named(_FreshEnd.LOST),
        mended_alike=len(named(_FreshEnd.MENDED_ALIKE)),
        needed=math.floor(share * alike + ROUNDING),
        telling=telling,
        answers=_answers(trial for trial in made if trial.task_id in fixed),  # the base passes none of them
        answers_wanted=min(telling, policy.judge.fresh_answers, _answers(shown)),
    )


def _answers(trials: Iterable[Trial]) -> int:
    """How many different ones there are among those that passed."""
    return len({trial.answer_sha256 for trial in trials if _passed(trial)})


def _by_task(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    tasks: dict[str, list[Trial]] = {}
    for trial in trials:
        tasks.setdefault(trial.task_id, []).append(trial)
    return tasks


def _end(candidate: Candidate, trials: Sequence[Trial]) -> _FreshEnd:
    """What one task says. Where the base ends differently each time nobody knows what it should do."""
    own = [trial for trial in trials if trial.arm is Arm.CANDIDATE]
    before = {_passed(trial) for trial in trials if trial.arm is Arm.BASE}
    replayed = [trial for trial in own if trial.outcome.result is not Result.NOT_REPLAYABLE]
    if not own or len(before) != 1:
        return _FreshEnd.NOTHING
    if len(replayed) < len(own):
        return _FreshEnd.LOST if before == {True} else _FreshEnd.NOTHING
    if not all(map(_passed, own)):
        if before == {True}:
            return _FreshEnd.BROKEN
        return _FreshEnd.UNMENDED if own[0].alike else _FreshEnd.NOTHING
    counts = any(trial.outcome.checks for trial in trials) and all(
        reaches(candidate, trial.reached) for trial in own
    )
    if not counts:
        return _FreshEnd.NOTHING
    if before == {True}:
        return _FreshEnd.KEPT
    return _FreshEnd.MENDED_ALIKE if own[0].alike else _FreshEnd.MENDED


def reaches(candidate: Candidate, reached: Iterable[str]) -> bool:
    """Whether some of what it edits was entered. Of an edit that only brings new files nothing could have been: yes."""
    there = [part for part in candidate.edited if not part.new_file]
    entered = frozenset(reached)
    return not there or any(ran(part, entered) for part in there)


def ran(part: EditedName, reached: Set[str]) -> bool:
    """Whether one of the functions that show it was entered."""
    return not reached.isdisjoint(part.shown_by)


def _passed(trial: Trial) -> bool:
    return trial.outcome.result is Result.PASSED
