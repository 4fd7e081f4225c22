"""Curate: which tasks take part in an evolution, as evidence, guard or hold-out.

The three sets are disjoint by what they ask for (``Task.key``), not only by id; guards and hidden tasks by the work
itself (``work_of``), so that none stands twice and no hidden one is given away by another. Guards are past successes of the same resource and what earlier promotions repaired. Hold-out tasks were hidden
from the day they were first seen; no proposer's brief is made from this module's ``hold_out``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, zip_longest

from agentos.domain import (
    IMPORT,
    PROMOTED_STATES,
    Candidate,
    Evidence,
    Evolution,
    EvolutionState,
    Feedback,
    Json,
    Kind,
    Mode,
    Rating,
    ResourceId,
    Result,
    Run,
    Task,
    TrialLook,
    TrialSet,
    Verdict,
    digest,
    is_reference,
    work_of,
)
from agentos.errors import NotFound
from agentos.evolver.find.feedback import taken_back
from agentos.evolver.find.triage import is_open, to_hide
from agentos.evolver.history import HistoryContext
from agentos.evolver.history.content_digest import content_of
from agentos.evolver.history.retirement import uses
from agentos.evolver.select import InheritanceContext, LooksContext, SelectionContext
from agentos.ports import Case

# Results that say something of the work, not of the machinery.
_TELLING = frozenset({Result.PASSED, Result.FAILED, Result.TIMEOUT, Result.BUDGET})
_BY_MODELS = frozenset({"model", "delegate"})  # steps: an agent that is handed work asks models


@dataclass(frozen=True, slots=True)
class TaskSets:
    """Task ids by set."""

    evidence: tuple[str, ...]
    guards: tuple[str, ...]
    hold_out: tuple[str, ...]
    varying: tuple[str, ...] = ()  # of all these, those whose outcome varies: docs/understand/judging.md
    held_back: tuple[
        str, ...
    ] = ()  # of the evidence, what no proposer is shown: docs/understand/generalising.md

    @property
    def shown(self) -> tuple[str, ...]:
        """The evidence that a proposer may see."""
        return tuple(task_id for task_id in self.evidence if task_id not in self.held_back)

    def of(self, task_id: str) -> TrialSet:
        """The set a task is in."""
        if task_id in self.evidence:
            return TrialSet.EVIDENCE
        return TrialSet.GUARD if task_id in self.guards else TrialSet.HOLD_OUT

    def ids(self, which: TrialSet, *, varying: bool) -> tuple[str, ...]:
        """The tasks of a set that vary, or those that do not."""
        named = {
            TrialSet.EVIDENCE: self.evidence,
            TrialSet.GUARD: self.guards,
            TrialSet.HOLD_OUT: self.hold_out,
        }
        return tuple(task_id for task_id in named[which] if (task_id in self.varying) is varying)


def choose_sets(parts: SelectionContext, evidence: Evidence, *resources: str) -> TaskSets:
    """Disjoint sets for a change of any of the ``resources``, an equal share for each."""
    rules = parts.policy.evidence
    failing = parts.tasks(evidence.task_ids)
    seen = {task.key for task in failing}
    most = parts.policy.look_back.sets
    runs = _using(parts, resources, most)
    passed = (run for run in chain(_spoken(parts, resources), runs) if is_open(parts, run) and run.passed)
    guards = _take(parts, proven(parts, passed), seen, rules.max_guards)
    fixes = _past_fixes(parts, frozenset(resources), seen)
    worn = used_up(parts, evidence.fingerprint.id)  # renewed by what is new; it may refuse, still
    unseen = [run for run in _using(parts, resources, most, hidden=True) if not is_open(parts, run)]
    if worn:
        unseen.sort(key=lambda run: work_of(parts.journal.task(run.task_id)) in worn)
    hold_out = _take(parts, unseen, seen | {work_of(task) for task in failing}, rules.max_hold_out)
    guards = tuple(dict.fromkeys((*fixes, *guards)))
    every = (*evidence.task_ids, *guards, *hold_out)
    hidden = to_hide(parts, evidence.task_ids)
    return TaskSets(evidence.task_ids, guards, hold_out, varying(parts, every), hidden)


def varying(parts: SelectionContext, task_ids: Sequence[str]) -> tuple[str, ...]:
    """Of these, the tasks whose outcome varies: live runs of the same work asked a model, or show that it does.

    Of those that ask models none where the policy has these answered from the record, or from it first: then
    every flip counts.
    """
    live = parts.policy.replay.models == Mode.LIVE

    def varies(task: Task) -> bool:
        runs = _runs_of(parts, task)
        return live if _asks_models(parts, runs) else _ended_both_ways(parts, runs)

    return tuple(task.id for task in parts.tasks(tuple(task_ids)) if varies(task))


def asks_models_live(parts: HistoryContext, task: Task) -> bool:
    """Whether its runs ask models, and a replay would ask them again."""
    return parts.policy.replay.models == Mode.LIVE and _asks_models(parts, _runs_of(parts, task))


def _runs_of(parts: HistoryContext, task: Task) -> list[Run]:
    most = parts.policy.look_back.same_work
    return [run for run in parts.journal.runs_of(task.key, most) if run.sandbox != IMPORT]


def _ended_both_ways(parts: SelectionContext, runs: Sequence[Run]) -> bool:
    """Whether equal work passed and did not on the same content of all that it used."""
    ended = [run for run in runs if run.outcome is not None and run.outcome.result in _TELLING]
    if len({run.passed for run in ended}) < 2:
        return False
    seen: dict[str, set[bool]] = {}
    for run in ended:
        seen.setdefault(_content(parts, run), set()).add(run.passed)
    return any(len(both) == 2 for both in seen.values())


def _content(parts: SelectionContext, run: Run) -> str:
    """A digest of the files of all resources that a run used, as they were then."""
    files = {
        path: hashlib.sha256(content).hexdigest()
        for resource in sorted(run.resources)
        for path, content in parts.snapshots.files(run.snapshot, f"{resource}/").items()
    }
    return digest(sorted(files.items()))


def _asks_models(parts: HistoryContext, runs: Sequence[Run]) -> bool:
    if any(run.outcome is not None and run.outcome.cost.calls for run in runs):
        return True
    return any(step.node in _BY_MODELS for run in runs[:1] for step in parts.journal.steps(run.id))


def case_of(parts: SelectionContext, task: Task) -> Case:
    """A task as a search sees it."""
    if task.call is None:
        raise ValueError(f"{task.id} names no call")
    inputs = {item.path: parts.blobs.get(item.sha256) for item in task.inputs}
    return Case(task.id, task.call, inputs, task.checks)


def shown_guards(parts: SelectionContext, sets: TaskSets) -> list[Task]:
    """The share of the guards that a proposer may see, chosen by a stable hash."""
    share = parts.policy.evidence.visible_guards
    return [
        task
        for task in parts.tasks(sets.guards)
        if int(digest(["visible", task.key])[:8], 16) / 16**8 < share
    ]


def visible_guards(
    parts: SelectionContext, sets: TaskSets, path: str, tool: str | None
) -> list[tuple[Case, Json]]:
    """Calls and old answers of those guards, where they call the tool at fault; None stands for any tool.

    Not of work that is evidence too, of whose answer a person called a part right: the whole of it is wrong.
    """
    shown: list[tuple[Case, Json]] = []
    wrong = [(task.call, task.inputs) for task in parts.tasks(sets.evidence)]
    for task in shown_guards(parts, sets):
        if (task.call, task.inputs) in wrong:
            continue
        if task.call is None or not path or tool not in (None, task.call.tool.rpartition("/")[2]):
            continue
        run = next(
            (run for run in parts.journal.runs_of(task.key, parts.policy.look_back.answered) if run.passed),
            None,
        )
        if run is not None and not is_reference(run.answer):
            shown.append((replace(case_of(parts, task), checks=()), run.answer))
    return shown


def _take(parts: SelectionContext, runs: Iterable[Run], seen: set[str], limit: int) -> tuple[str, ...]:
    """Newest first, one for each work, adding keys and work to ``seen``. Work without checks teaches nothing good."""
    chosen: list[str] = []
    for run in runs:
        if len(chosen) == limit:
            break
        if run.task_key in seen or not _is_checked(parts, run):
            continue
        seen.add(run.task_key)
        if (work := work_of(parts.journal.task(run.task_id))) not in seen:
            seen.add(work)
            chosen.append(run.task_id)
    return tuple(chosen)


def _spoken(parts: SelectionContext, resources: Sequence[str]) -> list[Run]:
    """Runs of these resources that people called good, as their words grade them, newest first."""
    found: list[Run] = []
    for word in parts.records.newest(Feedback, parts.policy.look_back.sets, rating=Rating.GOOD):
        if taken_back(parts.records.find(Feedback, run_id=word.run_id)).get(word.id):
            continue
        with suppress(NotFound):  # a word without a check, or one that its check did not bear out
            runs = parts.journal.runs_of(parts.journal.task(word.task_id).key, 1)
            found += [run for run in runs if {*resources} & {*run.resources}]
    return found


def _is_checked(parts: SelectionContext, run: Run) -> bool:
    """By checks of its task, or by those that ship with its skill."""
    return bool(parts.journal.task(run.task_id).checks or (run.outcome and run.outcome.checks))


def _using(
    parts: SelectionContext, resources: Sequence[str], most: int, *, hidden: bool = False
) -> Iterator[Run]:
    """Runs of these resources, one of each, then the next of each."""
    groups = (
        parts.journal.runs_using(resource, most, hidden=hidden) for resource in dict.fromkeys(resources)
    )
    return (run for row in zip_longest(*groups) for run in row if run is not None)


def _past_fixes(parts: SelectionContext, resources: frozenset[str], seen: set[str]) -> tuple[str, ...]:
    """What the newest promotions of these that still stand repaired, but for hidden tasks.

    As many as there may be other guards: otherwise each promotion would make all later ones dearer.
    """
    limit = parts.policy.evidence.max_guards
    standing = [
        evolution
        for resource in sorted(resources)
        for state in PROMOTED_STATES
        for evolution in parts.records.newest(Evolution, limit, resource=resource, state=state)
    ]
    standing.sort(key=lambda item: item.created_at.timestamp() if item.created_at else 0.0, reverse=True)
    promoted = frozenset(evolution.candidate_id for evolution in standing[:limit])
    verdicts: dict[str | None, list[Verdict]] = {}
    for verdict in parts.records.find(Verdict, candidate_id=promoted) if promoted else ():
        verdicts.setdefault(verdict.candidate_id, []).append(verdict)
    fixed = [
        task_id
        for evolution in standing[:limit]
        for verdict in verdicts.get(evolution.candidate_id, ())
        for task_id in verdict.fixed
    ]
    chosen: list[str] = []
    for task in parts.tasks(tuple(dict.fromkeys(fixed))):
        if len(chosen) == limit:
            break
        if seen.isdisjoint((task.key, work_of(task))) and task.checks and not is_hidden(parts, task):
            seen |= {task.key, work_of(task)}
            chosen.append(task.id)
    return tuple(chosen)


def is_hidden(parts: SelectionContext, task: Task) -> bool:
    """A hold-out task that an earlier promotion repaired stays hidden: guards are shown to proposers."""
    runs = parts.journal.runs_of(task.key, 1)
    return bool(runs) and not is_open(parts, runs[0])


def with_inherited(
    parts: InheritanceContext, evolution: Evolution, candidate: Candidate, sets: TaskSets
) -> TaskSets:
    """The sets, and the tests of each resource that the candidate changes and they were not drawn for.

    An edit that goes further than the place that was diagnosed, such as one that makes one skill of two that are
    alike, must keep what the resource did that it rewrites: what promotions of it repaired, and what passed with
    its help. So what is merged passes the tests of both parents.

    At most as many as an evolution's own; hidden work stays hidden. The same where there is none.
    """
    there = {str(name): name for name in parts.snapshots.names(candidate.base)}
    touched = {*candidate.edit.resources}
    drawn = {site.resource for site in evolution.diagnosis.sites} if evolution.diagnosis else set()
    found = dict.fromkeys(
        task_id
        for name in sorted(touched & there.keys() - drawn)
        for task_id in (*_repaired(parts, there[name]), *_helped(parts, there[name]))
    )
    rules = parts.policy.evidence
    there_now = parts.tasks((*sets.evidence, *sets.guards, *sets.hold_out))
    known = {*map(work_of, there_now)}
    guards: list[str] = []
    hold_out: list[str] = []
    for task in parts.tasks(tuple(found)):
        own, most = (hold_out, rules.max_hold_out) if is_hidden(parts, task) else (guards, rules.max_guards)
        if task.checks and work_of(task) not in known and len(own) < most:
            known.add(work_of(task))
            own.append(task.id)
    return replace(
        sets,
        guards=(*sets.guards, *guards),
        hold_out=(*sets.hold_out, *hold_out),
        varying=(*sets.varying, *varying(parts, (*guards, *hold_out))),
    )


def _repaired(parts: InheritanceContext, resource: ResourceId) -> Iterator[str]:
    """What the resource's versions were made for, newest first."""
    for version in parts.evolvable.versions(resource)[: parts.policy.look_back.versions]:
        if version.evolution is None:
            continue
        try:
            made_by = parts.evolution(version.evolution)
        except NotFound:  # of a ledger before this one
            continue
        if made_by.state in PROMOTED_STATES and made_by.candidate_id is not None:
            for verdict in parts.records.find(Verdict, candidate_id=made_by.candidate_id):
                yield from verdict.fixed


def _helped(parts: InheritanceContext, resource: ResourceId) -> Iterator[str]:
    """Work that passed with it, newest first. That a skill was listed is no help."""
    runs = parts.journal.recent_runs(str(resource), parts.policy.look_back.retired)
    passed = [run for run in runs if run.passed]
    for run in proven(parts, passed):
        if resource.kind is not Kind.SKILL or any(
            uses(step, resource) for step in parts.journal.steps(run.id)
        ):
            yield run.task_id


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """A promotion on probation: what it touched, what that was before, and since when it stands."""

    touched: tuple[str, ...]
    before: str
    since: datetime | None


def proven(parts: HistoryContext, runs: Iterable[Run]) -> Iterable[Run]:
    """Of these passing runs those whose work has also passed without any version that is on probation now.

    A success that only such a version ever gave is its own witness. As a guard it would protect that version
    from the edit that mends it.
    """
    unsettled = [found for evolution in _on_probation(parts) if (found := _unsettled(parts, evolution))]
    if not unsettled:
        return runs
    return (run for run in runs if _seen_without(parts, run, unsettled))


def _on_probation(parts: HistoryContext) -> Sequence[Evolution]:
    return parts.records.find(Evolution, state=EvolutionState.PROBATION)


def _unsettled(parts: HistoryContext, evolution: Evolution) -> _Unsettled | None:
    if evolution.candidate_id is None:
        return None
    touched = parts.records.get(Candidate, evolution.candidate_id).edit.resources
    before = content_of(parts.snapshots, evolution.base, touched)
    return _Unsettled(touched, before, evolution.ended_at)


def _seen_without(parts: HistoryContext, run: Run, unsettled: Sequence[_Unsettled]) -> bool:
    if _is_without(parts, run, unsettled):
        return True
    return any(
        other.passed and _is_without(parts, other, unsettled)
        for other in parts.journal.runs_of(run.task_key, parts.policy.look_back.successes)
    )


def _is_without(parts: HistoryContext, run: Run, unsettled: Sequence[_Unsettled]) -> bool:
    return all(
        not {*item.touched} & {*run.resources}
        or (item.since is not None and run.finished_at is not None and run.finished_at < item.since)
        or content_of(parts.snapshots, run.snapshot, item.touched) == item.before
        for item in unsettled
    )


# --- How often candidates of a failure were looked at, whichever of its evolutions they are of
# Whoever tries edits long enough finds one that looks good. So the error that a failure may cost is divided among
# all candidates that were ever tried on it (``Judge.threshold``), and a hidden task tells only of the first few of
# them: after that, what passes it may have been found by trying.


class LookCounter:
    """Counts for one candidate. What it was given with its first trial of a set stays, whoever was tried since."""

    def __init__(self, parts: LooksContext, candidate: Candidate) -> None:
        self._parts, self._candidate = parts, candidate
        self._every: Sequence[TrialLook] | None = None
        self._seen: dict[TrialSet, list[TrialLook]] = {}
        self._looks: dict[TrialSet, dict[str, int]] = {}  # of sets and hidden work

    def _trials(self, which: TrialSet) -> list[TrialLook]:
        """Of candidates, as they were when any was first asked for: until then, others may have been tried."""
        if self._every is None:
            fingerprint_id = self._parts.evolution(self._candidate.evolution_id).fingerprint_id
            self._every = self._parts.records.looks(fingerprint_id)
        if which not in self._seen:
            self._seen[which] = [item for item in self._every if item.set is which]
        return self._seen[which]

    def number(self, which: TrialSet) -> int:
        """Which candidate of the failure it is that is tried on the set, from 1."""
        here = self._trials(which)
        own = [trial for trial in here if trial.candidate_id == self._candidate.id]
        # The look of a hidden task is that task's own count.
        stored = (trial.number or (trial.look if which is not TrialSet.HOLD_OUT else 0) for trial in own)
        return max(stored, default=0) or self._after_others(here)

    def at(self, task: Task, which: TrialSet) -> int:
        """As ``Trial.look``: of a hidden task its own count, else that of the set."""
        key = work_of(task) if which is TrialSet.HOLD_OUT else ""
        known = self._looks.setdefault(which, {})
        if key not in known:
            known[key] = self._at_work(key) if key else self.number(which)
        return known[key]

    def _at_work(self, key: str) -> int:
        asked = (*self._trials(TrialSet.HOLD_OUT), *self._trials(TrialSet.FRESH))
        here = [item for item in asked if work_of(self._parts.journal.task(item.task_id)) == key]
        stored = (trial.look for trial in here if trial.candidate_id == self._candidate.id)
        return max(stored, default=0) or self._after_others(here)

    def _after_others(self, trials: Sequence[TrialLook]) -> int:
        return len({trial.candidate_id for trial in trials} - {self._candidate.id}) + 1


def used_up(parts: LooksContext, fingerprint_id: str) -> frozenset[str]:
    """The hidden work that tells nothing more of edits of this failure, as ``work_of`` names it: filed anew it is no other."""
    by: dict[str, set[str]] = {}
    for trial in parts.records.looks(fingerprint_id):
        if trial.set in (TrialSet.HOLD_OUT, TrialSet.FRESH):  # by fresh work that is hidden edits fall too
            by.setdefault(work_of(parts.journal.task(trial.task_id)), set()).add(trial.candidate_id)
    most = parts.policy.judge.hold_out_looks
    return frozenset(work for work, candidates in by.items() if len(candidates) >= most)
