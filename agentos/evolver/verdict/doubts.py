"""Doubts: why a person is asked before a promotion that the comparison of both sides would allow.

Several things can be true of an edit that mends its evidence and breaks nothing: all that it gained is work
without checks, of which nobody says that its answers are right; it leaves some of the evidence as it was; too
little work beside the evidence was there to break; some of what it changes ran in none of that work; or the hidden part of that work has told of so
many edits that this one may have been found by trying.

*Fresh work* is what came in after the edit was found. An edit that a search found passes what was known when it was found; that is how it was chosen. Whether it is right
elsewhere is told by work that did not exist then. Of each such task with checks that ran what is edited the
candidate's trial counts; the base's, which has to end as the live run did, says how it was before. A task that passes
on both sides shows that nothing is lost there; that what changed is right is shown only where the sides part: of what
passes, some have to fail on the base, and not all of these end in one answer where the evidence has several. Where the
only doubt of an edit that a search weighed is that it passes by luck, more of them settle that. Which
tasks are fresh is decided where they are chosen (``replay.fresh``). All of it is a pure function of candidate,
trials and policy, as the verdict is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from agentos.evolver.policy import (
    CHECKED,
    DICTATES,
    HIDDEN_LOST,
    LATER_GUARDS,
    ONE_SIDED,
    PARTLY_LOST,
    REEXAMINED,
    SETTINGS,
    STOOD,
    Policy,
)
from agentos.evolver.verdict.behaviour_doubts import SENSE, Doubt, dictated, of_behaviour
from agentos.evolver.verdict.gates import ROUNDING, mended
from agentos.evolver.verdict.pairing import (
    apart,
    gains_unchecked,
    guarding,
    idle_parts,
    partly_lost,
    reaches,
    split,
)
from agentos.records.candidates import Behaviour, Candidate, EditedName, Refusal, RefusalKind
from agentos.records.identity import tier_of
from agentos.records.trials import Arm, Trial, TrialSet

_NAMED = 3  # parts of an edit that a sentence names
_CODE = (".py", "/wheels.lock")
_TEXT = ".md"
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
    guarding: int = 0  # of those that pass, how many have to pass on the base, for guards that are missing
    answers: int = 0  # different ones in which it ends what it mends
    answers_wanted: int = 0
    doubted: str = ""  # the reason of the one other doubt, which enough of it settles

    @property
    def missing(self) -> int:
        """How many more are wanted, at least."""
        alike = max(0, self.answers_wanted - self.answers)
        return max(0, self.wanted - len(self.passed), self.telling - len(self.mended), alike, self._unguarded)

    @property
    def _unguarded(self) -> int:
        return self.guarding - len(self.passed) + len(self.mended)

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
        if self._unguarded > 0:
            parts.append(f"{self.guarding - self._unguarded} of {self.guarding} that passed before")
        said = ", ".join(parts)
        return f"{said}; more than otherwise, since {self.doubted}" if self.doubted else said

    def waits_for(self, resource: str) -> str:
        """What else may promote it than a person."""
        tasks = "task" if self.missing == 1 else "tasks"
        before = " that it passes now" if self.missing == self._unguarded else " that it fails now"
        which = "" if len(self.passed) < self.wanted else before
        return (
            f"waits for you, or for {self.missing} more checked {tasks} of {resource}{which} ({self.so_far})"
        )

    def meanwhile(self, resource: str, *, alone: bool, compared: bool = False) -> str:
        """To a person who does not want to answer now; ``alone``: nothing else is asked of them, ``compared``: nothing that stays."""
        if alone:
            return f"It can simply wait: {self.missing} more checked tasks of {resource} promote it too ({self.so_far})."
        ends = (
            "They can refuse it, or end what is asked."
            if compared
            else "They can refuse it; what is asked stays."
        )
        return (
            f"It can simply wait: new checked tasks of {resource} are tried with it ({self.so_far}). {ends}"
        )

    def doubts(self) -> list[Doubt]:
        """What fresh work says against it, or does not say for it yet."""
        found = []
        if self.unmended and self.mended_alike < self.needed:
            found.append(
                Doubt(
                    RefusalKind.UNMENDED,
                    f"of fresh tasks that fail as the evidence did it mends {self.mended_alike}, where {self.needed} "
                    "would be the share that it mends of those that were shown",
                    f"Of new tasks that fail alike it mends {self.mended_alike}, not {self.needed}. Is that the cause?",
                )
            )
        if self.lost:
            told = f"{len(self.lost)} fresh tasks pass on its base and cannot be replayed with it"
            asks = (
                f"{len(self.lost)} new tasks that pass now cannot be replayed with it. Would they still pass?"
            )
            found.append(Doubt(RefusalKind.LOST, told, asks))
        if self.missing:
            told = f"it rests on too little work that came after it was found: {self.so_far}"
            found.append(Doubt(RefusalKind.FRESH, told))
        return found


def questions(
    candidate: Candidate, trials: Sequence[Trial], policy: Policy, screened: Callable[[], Refusal | None]
) -> list[Doubt]:
    """All that a person is asked about. Of a tier that the policy leaves to people nothing else is asked.

    ``screened`` says what the guards of sources want looked at.
    """
    consent, author = policy.consent, candidate.model or candidate.plugin
    if left := consent.left(tier_of(candidate.manifest.files), author):
        asks = f"Is it right? Your policy leaves {left} to you."
        return [Doubt(RefusalKind.TIER, f"the policy leaves {left} to people", asks)]
    found = screened()
    asks = "Its code does what a person is asked about. May it?"
    seen = [Doubt(found.kind, found.reason, asks, found.reason)] if found else []
    return [*seen, *doubts(candidate, trials, policy)]


def doubts(candidate: Candidate, trials: Sequence[Trial], policy: Policy) -> tuple[Doubt, ...]:
    """What a person is asked about; none where the policy may consent by itself."""
    if policy.edition < CHECKED:
        return ()
    fresh = fresh_work(candidate, trials, policy)
    seen = _behaviour(candidate, fresh, policy)
    others = () if fresh.doubted else _of_known_work(candidate, trials, policy, seen)
    return (*others, *fresh.doubts())


def _behaviour(candidate: Candidate, fresh: FreshWork, policy: Policy) -> Behaviour | None:
    """As it was seen at last, with no other fresh tasks than those that the trials have."""
    again = candidate.reexamination
    if policy.edition >= REEXAMINED and again is not None and {*again.task_ids} <= {*fresh.passed}:
        return again.behaviour
    return candidate.behaviour


def _of_known_work(
    candidate: Candidate, trials: Iterable[Trial], policy: Policy, seen: Behaviour | None
) -> list[Doubt]:
    compared, _ = split(trials)
    known = [trial for trial in compared if trial.arm is not Arm.CONTROL]
    found = list(_of_trials(candidate, known, policy))
    if 0 < candidate.prior < policy.replay.prior_min:
        told = (
            f"it is far-fetched, 1 in {round(1 / candidate.prior):,} of all edits of its file by how faults are mended: "
            "among so many one may pass by luck"
        )
        asks = f"Far-fetched: 1 in {round(1 / candidate.prior):,} repairs of this file would be this edit. {SENSE}"
        found.append(Doubt(RefusalKind.UNLIKELY, told, asks, luck=True))
    if seen is not None:
        idle = any(doubt.kind is RefusalKind.UNGUARDED for doubt in found)
        found += of_behaviour(seen, policy, idle=idle)
    if policy.edition >= STOOD and (worn := worn_out(known, policy)):
        found.append(worn)
    return found


def _of_trials(candidate: Candidate, known: Sequence[Trial], policy: Policy) -> Iterator[Doubt]:
    if gains_unchecked(known):
        told = "its only gain is work without checks: it ends now, and nobody says that its answers are right"
        yield Doubt(RefusalKind.UNCHECKED, told, "What it mends has no checks. Are its answers right?")
    texts = policy.edition >= DICTATES and all(path.endswith(_TEXT) for path in candidate.edit.files)
    if texts and candidate.edit.files and (one := dictated(candidate, known, policy.judge)):
        yield one
    if left := _leaves(candidate, known, policy):
        yield left
    if (lacking := _lacking(candidate, known, policy)) and not _may_be_guarded_later(
        candidate, known, policy
    ):
        needed = max(1, policy.judge.min_tasks)
        serving = needed - lacking
        ran_it = "ran what it edits" if candidate.edited else "ended well with it"
        few = f"Only {serving} of the {needed} guards that are wanted" if serving else "No guard"
        asks = f"{few} {ran_it}. Could it break other work?"
        yield Doubt(RefusalKind.FEW_GUARDS, _too_few(candidate, serving, needed), asks)
    if idle := idle_parts(candidate, known, policy.edition):
        told = f"what it edits ran in no guard: {_listed(idle)}"
        yield Doubt(RefusalKind.UNGUARDED, told, "No guard ran this part of it. Is it right?", _listed(idle))


def worn_out(trials: Iterable[Trial], policy: Policy) -> Doubt | None:
    """Why the hidden tasks tell nothing of it; None where they do or there are none."""
    looks = [trial.look for trial in trials if trial.set is TrialSet.HOLD_OUT and trial.look]
    most = policy.judge.hold_out_looks
    if not looks or min(looks) <= most:
        return None
    told = (
        f"the hold-out is used up: {most} candidates of this failure were tried on each of its tasks before"
    )
    asks = f"{most} edits were tried on each hidden task before: it may pass by luck. {SENSE}"
    return Doubt(RefusalKind.WORN_OUT, told, asks)


def _too_few(candidate: Candidate, there: int, needed: int) -> str:
    ran = " and ran what it edits" if candidate.edited else ""
    return (
        f"of guards and hold-out tasks with checks, {there} pass with it{ran}, and with fewer than {needed} "
        "(min_tasks) nobody can tell what it breaks"
    )


def _lacking(candidate: Candidate, known: Sequence[Trial], policy: Policy) -> int:
    """How many guards fewer there are than the policy wants."""
    return max(0, max(1, policy.judge.min_tasks) - len(guarding(candidate, known, policy.edition)))


def _may_be_guarded_later(candidate: Candidate, known: Sequence[Trial], policy: Policy) -> bool:
    """Whether fresh tasks that pass on both sides count as the guards that are missing: of an edit of the search that has one."""
    later = policy.edition >= LATER_GUARDS and _is_weighed(candidate, policy)
    return (
        later and wants_fresh(candidate, known, policy) and bool(guarding(candidate, known, policy.edition))
    )


def _leaves(candidate: Candidate, trials: Sequence[Trial], policy: Policy) -> Doubt | None:
    """That some of the evidence fails with it as before; None where none does. What varies is judged by pairs."""
    own = [trial for trial in trials if trial.candidate_id == candidate.id]
    gone = policy.edition >= HIDDEN_LOST
    own = [at for at in own if at.set is TrialSet.EVIDENCE or (gone and at.alike and at.is_lost)]
    aside = apart(trials) if own else frozenset[str]()
    steady = [trial for trial in own if trial.task_id not in aside]
    partly = partly_lost(trials) if policy.edition >= PARTLY_LOST else frozenset[str]()
    ends = mended([trial for trial in steady if trial.task_id not in partly], policy.judge)
    # An edit that makes evidence impossible to replay did not mend it.
    count = len({trial.task_id for trial in steady}) if policy.edition >= ONE_SIDED else len(ends)
    if sum(ends) >= policy.judge.unattended_share * count:
        return None
    told = f"it mends {sum(ends)} of the {count} failing tasks that it was found for: is that the cause?"
    asks = f"It mends {sum(ends)} of the {count} failing tasks. Is that the cause?"
    return Doubt(RefusalKind.PARTIAL, told, asks)


def _listed(parts: Sequence[EditedName]) -> str:
    more = len(parts) - _NAMED
    names = ", ".join(part.name for part in parts[:_NAMED])
    return f"{names} and {more} more" if more > 0 else names


# --- fresh work ---------------------------------------------------------------------------------


def with_fresh(verdict_id: str) -> str:
    """The id of the verdict that has fresh work in it, beside the one that was made without."""
    return f"{verdict_id}-fresh"


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


def _passes_by_luck(candidate: Candidate, known: Sequence[Trial], policy: Policy) -> str:
    """The reason where the known work leaves that one doubt of an edit that its search weighed; else "".

    Of two such doubts nobody has seen how often such an edit is right.
    """
    asked = policy.judge.fresh_doubted and _is_weighed(candidate, policy)
    found = _of_known_work(candidate, known, policy, candidate.behaviour) if asked else []
    return found[0].reason if [each.luck for each in found] == [True] else ""


def _is_weighed(candidate: Candidate, policy: Policy) -> bool:
    """Whether its search chose it by luck at most; what somebody wrote is not, whatever belief its author names."""
    return candidate.prior >= policy.replay.luck_min and not (candidate.model or candidate.plugin)


def fresh_work(candidate: Candidate, trials: Iterable[Trial], policy: Policy) -> FreshWork:
    """What the trials of fresh work say of the candidate."""
    known, fresh = split(trials)
    trees = {Arm.BASE: candidate.base.tree, Arm.CANDIDATE: candidate.snapshot.tree}
    made = [trial for trial in fresh if trees.get(trial.arm) == trial.snapshot.tree]
    ends = {task_id: _end(candidate, own, policy.edition) for task_id, own in _by_task(made).items()}
    own = [trial for trial in known if trial.arm is Arm.CANDIDATE and not trial.alike]
    shown = [trial for trial in own if trial.set is TrialSet.EVIDENCE]
    shown_mended = mended(shown, policy.judge)
    share = policy.judge.hidden_share * sum(shown_mended) / len(shown_mended) if shown_mended else 0.0
    alike = sum(end in (_FreshEnd.MENDED_ALIKE, _FreshEnd.UNMENDED) for end in ends.values())

    def named(*wanted: _FreshEnd) -> tuple[str, ...]:
        return tuple(name for name, end in ends.items() if end in wanted)

    fixed = frozenset(named(*_MENDED))
    wanted = policy.judge.fresh_tasks if wants_fresh(candidate, known, policy) else 0
    doubted = _passes_by_luck(candidate, known, policy) if wanted else ""
    telling = min(wanted, max(policy.judge.fresh_mended, policy.judge.fresh_doubted if doubted else 0))
    later = wanted and _may_be_guarded_later(candidate, known, policy)
    return FreshWork(
        wanted=wanted,
        guarding=_lacking(candidate, known, policy) if later else 0,
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
        doubted=doubted,
    )


def _answers(trials: Iterable[Trial]) -> int:
    """How many different ones there are among those that passed."""
    return len({trial.answer_sha256 for trial in trials if trial.passed})


def _by_task(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    tasks: dict[str, list[Trial]] = {}
    for trial in trials:
        tasks.setdefault(trial.task_id, []).append(trial)
    return tasks


def _end(candidate: Candidate, trials: Sequence[Trial], edition: int) -> _FreshEnd:
    """What one task says. Where the base ends differently each time nobody knows what it should do."""
    own = [trial for trial in trials if trial.arm is Arm.CANDIDATE]
    # What cannot be replayed on the base is no other end of it, by which what the edit breaks would be nobody's matter.
    lost = edition >= PARTLY_LOST
    before = {trial.passed for trial in trials if trial.arm is Arm.BASE and not (lost and trial.is_lost)}
    if not own or len(before) != 1:
        return _FreshEnd.NOTHING
    stood, alike = before == {True}, own[0].alike
    if any(trial.is_lost for trial in own):
        return _FreshEnd.LOST if stood else _FreshEnd.NOTHING
    if not all(trial.passed for trial in own):
        if stood:
            return _FreshEnd.BROKEN
        return _FreshEnd.UNMENDED if alike else _FreshEnd.NOTHING
    ran_it = all(reaches(candidate, trial.reached) for trial in own)
    if not ran_it or not any(trial.outcome.checks for trial in trials):
        return _FreshEnd.NOTHING
    if stood:
        return _FreshEnd.KEPT
    return _FreshEnd.MENDED_ALIKE if alike else _FreshEnd.MENDED
