"""Is what was promoted passed less often in live use than what stood before it?

Each live run on the promoted content stands beside up to ``beside`` live runs on the content before it: of
the same work where there are any left, else of the same kind of work. If nothing got worse, a run passes
at least as often as those beside it, and no bet on the contrary can be expected to gain (``paired_tests``).
Half of the first fortune is bet on a fall of the rate, half on "whatever passed before fails now", so that
a total loss is seen after two or three runs. When the fortune reaches ``1/alpha`` the fall is taken as
shown; with nothing worse that ever happens with a chance of at most ``alpha``, however often one looks.

Only checked work is counted: an answer that nothing looks at says nothing. Runs of the work that the evolution
was opened for are in neither group: they were chosen because they failed. docs/understand/probation.md says it to a user; docs/decisions/live-falls.md why not otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from agentos.domain import (
    Candidate,
    Evidence,
    Evolution,
    EvolutionEnding,
    EvolutionState,
    Result,
    Run,
    Share,
    Snapshot,
    Task,
    Trial,
    Version,
    work_of,
)
from agentos.errors import NotFound, Unavailable
from agentos.evolver.history import HistoryContext
from agentos.evolver.history.content_digest import content_of
from agentos.evolver.policy import Probation
from agentos.evolver.replay.jobs import no_model
from agentos.evolver.verdict.paired_tests import log_e
from agentos.evolver.watch import ChangeContext, WatchContext
from agentos.plaintext import counted
from agentos.resources import parse_id

# Results that say something of the agent: also what it spent its run's budget on.
_TELLING = frozenset({Result.PASSED, Result.FAILED, Result.TIMEOUT, Result.BUDGET})


@dataclass(frozen=True, slots=True)
class LiveComparison:
    """One live run, passed or not, and the runs on the base that stand beside it."""

    task: str  # as it may be named
    passed: bool
    before: tuple[bool, ...]

    @property
    def fall(self) -> float:
        """From -1 (it failed always and passes now) to 1."""
        return sum(self.before) / len(self.before) - self.passed


@dataclass(frozen=True, slots=True)
class LiveEvidence:
    """What live use says of a promotion so far."""

    pairs: tuple[LiveComparison, ...]
    e_value: float  # the fortune of the bet on a fall

    @property
    def worse(self) -> tuple[str, ...]:
        """Tasks of runs that failed where one beside it had passed."""
        return tuple(dict.fromkeys(pair.task for pair in self.pairs if pair.fall > 0))

    def says(self) -> str:
        """Both rates, in words."""
        before = [passed for pair in self.pairs for passed in pair.before]
        now = [pair.passed for pair in self.pairs]
        return f"{sum(now)} of {len(now)} live runs pass, {sum(before)} of {len(before)} did before it"


def e_value(pairs: Sequence[LiveComparison]) -> float:
    """Of "it passes less often", against "each run passes at least as often as those beside it"."""
    counts: dict[float, int] = {}
    for pair in pairs:
        counts[pair.fall] = counts.get(pair.fall, 0) + 1
    rate = log_e(tuple(counts.items()), at_most=0.0, low=-1.0)
    lost = sum(map(_log_lost, pairs)) if all(not pair.passed and all(pair.before) for pair in pairs) else None
    return (math.exp(min(rate, 700)) + (math.exp(min(lost, 700)) if lost is not None else 0.0)) / 2


def _log_lost(pair: LiveComparison) -> float:
    """Logarithm of what a bet on "all beside it passed, and it fails" pays: that has at most this chance.

    The chance is p^m (1-p) with m runs beside it, which is largest at p = m/(m+1).
    """
    beside = len(pair.before)
    return (beside + 1) * math.log(beside + 1) - beside * math.log(beside)


def standing(parts: HistoryContext, evolution: Evolution, sides: LiveArms) -> LiveEvidence:
    """What the live runs since the promotion say; without any the fortune is what it began with."""
    rules = parts.policy.probation
    now = sides.since(rules.varying_runs)
    if all(run.passed for run in now):  # no bet on a fall gains by a run that passes
        return LiveEvidence((), 1.0)
    pairs = tuple(_beside(now, sides.before(rules.beside * rules.varying_runs), sides.kind, rules))
    return LiveEvidence(pairs, e_value(pairs))


class LiveArms:
    """The live runs of an evolution's kind of work on the content before it, and on its own."""

    def __init__(self, parts: WatchContext, evolution: Evolution) -> None:
        if evolution.promoted is None or evolution.candidate_id is None or evolution.ended_at is None:
            raise ValueError(f"{evolution.id} was not promoted")
        self._parts, self.evolution, self._promoted_at = parts, evolution, evolution.ended_at
        self._now = parts.now()
        self._is_ahead = self._promoted_at > self._now  # dated by a clock that was put back
        self.touched = parts.records.get(Candidate, evolution.candidate_id).edit.resources
        # Of what was touched, and of what was at fault: a new resource was used by nobody before.
        self._names = sorted({*self.touched, evolution.resource})
        self._contents: dict[str, str] = {}
        self._tasks: dict[str, Task] = {}
        self.base = self.content(evolution.base)
        self.own = self.content(evolution.promoted)
        self._live: list[Run] | None = None

    def live(self) -> list[Run]:
        """Runs begun since the promotion on another content of what was touched than the base's, newest first."""
        if self._live is None:
            runs = [run for name in self._names for run in self._recent(name)]
            found = {run.id: run for run in runs if self._is_since(run)}
            changed = [run for run in found.values() if self.content(run.snapshot) != self.base]
            self._live = sorted(changed, key=_finished, reverse=True)
        return self._live

    def since(self, most: int) -> list[Run]:
        """The first ``most`` live runs on the promoted content that say something of it, oldest first."""
        again = [at for at in _rolled_back(self._parts) if self._promoted_at < at <= self._now]
        found = [run for run in self.live() if not again or run.started_at >= max(again)]
        telling = [run for run in self._telling(found) if self.content(run.snapshot) == self.own]
        return telling[::-1][:most]

    def used(self) -> list[Run]:
        """All runs on the promoted content, whatever they say, newest first."""
        return [run for run in self.live() if self.content(run.snapshot) == self.own]

    def counted(self) -> list[Run]:
        """Of these, new and checked work that came to an end of its own.

        What was tried with the edit before it was promoted ended well there, so to pass again shows nothing, unless a
        model does it.
        """
        found = self._telling(self.used())
        tried = self._tried() if found else frozenset[str]()
        return [run for run in found if _asked_models(run) or work_of(self._task(run)) not in tried]

    def _tried(self) -> frozenset[str]:
        """The work that was in its trials."""
        trials = self._parts.records.find(Trial, evolution_id=self.evolution.id)
        return frozenset(map(work_of, self._parts.tasks(tuple({trial.task_id for trial in trials}))))

    def telling(self) -> list[Run]:
        """New, checked work since the promotion, also on what others made of its content since."""
        return self._telling(self.live())

    def before(self, most: int) -> list[Run]:
        """Runs on the base's content that had finished when the evolution was promoted, newest first."""
        recent, far = self._parts.journal.recent_runs, self._parts.policy.look_back.watched
        runs = [run for name in self._names for run in recent(name, far, self._promoted_at)]
        found = sorted({run.id: run for run in runs}.values(), key=_finished, reverse=True)
        return [run for run in self._telling(found) if self.content(run.snapshot) == self.base][:most]

    def kind(self, run: Run) -> str:
        """Work of one kind calls one tool, or is given to one agent."""
        task = self._task(run)
        return f"tool {task.call.tool}" if task.call else f"agent {task.agent}"

    def _is_since(self, run: Run) -> bool:
        """Whether it began after the promotion. The very commit is no older, whatever a clock that was put back says;
        nor is its content, where the promotion's time is worth nothing."""
        promoted = self.evolution.promoted
        if promoted is not None and run.snapshot.commit == promoted.commit:
            return True
        return (
            self.content(run.snapshot) == self.own if self._is_ahead else run.started_at >= self._promoted_at
        )

    def _recent(self, name: str) -> Sequence[Run]:
        """The newest runs that used it, as far back as the promotion; most evolutions have few."""
        limit, far = 8, self._parts.policy.look_back.watched
        while True:
            runs = self._parts.journal.recent_runs(name, limit)
            over = not self._is_ahead and bool(runs) and _finished(runs[-1]) < self._promoted_at
            if len(runs) < limit or limit >= far or over:
                return [run for run in runs if run.is_live]
            limit = min(limit * 4, far)

    def _telling(self, runs: Iterable[Run]) -> list[Run]:
        """Those that say how good the work is, but for the work that was chosen because it failed."""
        evidence = self._parts.records.get(Evidence, self.evolution.evidence_id)
        chosen = {task.key for task in self._parts.tasks(evidence.task_ids)}
        return [
            run
            for run in runs
            if run.outcome is not None
            and run.outcome.result in _TELLING
            and not no_model(run.outcome)
            and run.is_live
            and run.task_key not in chosen
            and self._task(run).checks
        ]

    def _task(self, run: Run) -> Task:
        if run.task_id not in self._tasks:
            self._tasks[run.task_id] = self._parts.journal.task(run.task_id)
        return self._tasks[run.task_id]

    def content(self, snapshot: Snapshot) -> str:
        """What the snapshot has of the resources that were touched; the same where only comments differ."""
        if snapshot.tree not in self._contents:
            self._contents[snapshot.tree] = content_of(self._parts.snapshots, snapshot, self.touched)
        return self._contents[snapshot.tree]


def _rolled_back(parts: HistoryContext) -> list[datetime]:
    """When others were rolled back: from then on a watch begins anew.

    What was broken by one that is gone may not be laid at the door of those beside it.
    """
    found = parts.records.newest(
        Evolution, parts.policy.look_back.rolled_back, state=EvolutionState.ROLLED_BACK
    )
    return [item.ended_at for item in found if item.ended_at is not None]


def _beside(
    now: Sequence[Run], before: Sequence[Run], kind: Callable[[Run], str], rules: Probation
) -> Iterable[LiveComparison]:
    """Each live run with runs on the base that stand beside no other, chosen by their work alone."""
    size = max(1, min(rules.beside, math.ceil(len(before) / rules.varying_runs)))
    kinds: dict[str, list[Run]] = {}
    equal: dict[str, list[Run]] = {}
    for run in before:
        kinds.setdefault(kind(run), []).append(run)
        equal.setdefault(run.task_key, []).append(run)
    used: set[str] = set()
    for run in now:
        own, alike = (
            [item for item in group if item.id not in used]
            for group in (equal.get(run.task_key, ()), kinds.get(kind(run), ()))
        )
        chosen = (own or alike)[:size]
        used |= {item.id for item in chosen}
        if chosen:
            yield LiveComparison(named(run), run.passed, tuple(item.passed for item in chosen))


def named(run: Run) -> str:
    """The run's task. A hidden one is named nowhere that a proposer could read."""
    return "a hold-out task" if run.share is Share.HOLD_OUT else run.task_id


def _finished(run: Run) -> datetime:
    return run.finished_at or run.started_at


def _asked_models(run: Run) -> bool:
    return run.outcome is not None and run.outcome.cost.calls > 0


# --- What people did to what was promoted: who takes it back, changes or pins it ends its watch, truthfully


_OWN = frozenset({"evolution", "rollback"})  # origins of versions that the program made by itself


def follow(parts: ChangeContext, *, settled: bool = False) -> list[Evolution]:
    """End every watch that a person's change ended; with ``settled`` look at past watches too. Cheap."""
    standing = list(parts.records.find(Evolution, state=EvolutionState.PROBATION))
    if settled:
        standing += parts.records.newest(
            Evolution, parts.policy.look_back.settled, state=EvolutionState.PROMOTED
        )
    return [ended for evolution in standing if (ended := _followed(parts, evolution)) is not None]


def _followed(parts: ChangeContext, evolution: Evolution) -> Evolution | None:
    if evolution.promoted is None or evolution.candidate_id is None or not evolution.stands:
        return None
    try:
        return _ended(parts, evolution)
    except (NotFound, Unavailable):  # a registry restored from a backup: nobody knows
        return None


def _ended(parts: ChangeContext, evolution: Evolution) -> Evolution | None:
    sides = LiveArms(parts, evolution)
    now = sides.content(parts.snapshots.stable())
    if now == sides.own:
        pinned = [name for name in sides.touched if parts.evolvable.why_fixed(parse_id(name))]
        if not pinned or evolution.state is not EvolutionState.PROBATION:
            return None
        why = f"a person pinned {pinned[0]}: it is watched no longer ({_so_far(sides)})"
        return parts.move(evolution, EvolutionState.PROMOTED, why, ending=EvolutionEnding.PINNED)
    changes = [version for name in sides.touched for version in _since(parts, evolution, name)]
    people = [version for version in changes if version.origin not in _OWN]
    if not people:  # a later evolution builds on it, or the program is taking it back at this moment
        return None
    at = max(
        [*(version.created_at for version in people), *([evolution.ended_at] if evolution.ended_at else [])]
    )
    changed = replace(evolution, undone_at=at)
    names = ", ".join(sorted({str(version.resource) for version in people}))
    if now == sides.base:
        why = f"a person put back what stood before it ({names})"
        return parts.move(changed, EvolutionState.ROLLED_BACK, why, end=True, ending=EvolutionEnding.REVERTED)
    why = f"a person changed {names}: what runs get now is not what was promoted ({_so_far(sides)})"
    return parts.move(changed, EvolutionState.PROMOTED, why, ending=EvolutionEnding.SUPERSEDED)


def _since(parts: ChangeContext, evolution: Evolution, name: str) -> Sequence[Version]:
    """The versions of the resource that are newer than the one that the evolution made."""
    return list(
        takewhile(lambda version: version.evolution != evolution.id, parts.evolvable.versions(parse_id(name)))
    )


def _so_far(sides: LiveArms) -> str:
    return f"{counted(len(sides.counted()), 'live run')} of new, checked work until then"
