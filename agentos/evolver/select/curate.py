"""Curate: which tasks take part in an evolution, as evidence, guard or hold-out.

The three sets are disjoint by the work they ask for (``Task.key``), not only by id. Guards are past
successes of the same resource and what earlier promotions repaired. Hold-out tasks were hidden
from the day they were first seen; no proposer's brief is made from this module's ``hold_out``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from agentos.domain import (
    IMPORT,
    Evidence,
    Evolution,
    EvolutionState,
    Json,
    Mode,
    Result,
    Run,
    Task,
    TrialSet,
    Verdict,
    digest,
    is_reference,
)
from agentos.evolver.find.holding_back import is_open, to_hide
from agentos.evolver.parts import Parts
from agentos.evolver.select.proven import proven
from agentos.ports import Case

LOOK_BACK = 200  # runs of the resource to choose guards and hold-outs from
ALIKE = 20  # runs of equal work that say whether it asks models
_BY_MODELS = frozenset({"model", "delegate"})  # steps: an agent that is handed work asks models


@dataclass(frozen=True, slots=True)
class Sets:
    """Task ids by set."""

    evidence: tuple[str, ...]
    guards: tuple[str, ...]
    hold_out: tuple[str, ...]
    varying: tuple[str, ...] = ()  # of all these, those whose outcome varies: docs/judging.md
    held_back: tuple[str, ...] = ()  # of the evidence, what no proposer is shown: docs/generalising.md

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


def choose_sets(parts: Parts, evidence: Evidence, *resources: str) -> Sets:
    """Disjoint sets for a change of any of the ``resources``, an equal share for each."""
    rules = parts.policy.evidence
    seen = {task.key for task in parts.tasks(evidence.task_ids)}
    runs = _in_turn([parts.journal.runs_using(resource, LOOK_BACK) for resource in dict.fromkeys(resources)])
    passed = [run for run in runs if is_open(parts, run) and _passed(run)]
    guards = _take(proven(parts, passed), seen, rules.max_guards)
    fixes = _past_fixes(parts, frozenset(resources), seen)
    hold_out = _take([run for run in runs if not is_open(parts, run)], seen, rules.max_hold_out)
    guards = tuple(dict.fromkeys((*fixes, *guards)))
    every = (*evidence.task_ids, *guards, *hold_out)
    hidden = to_hide(parts, evidence.task_ids)
    return Sets(evidence.task_ids, guards, hold_out, varying(parts, every), hidden)


def varying(parts: Parts, task_ids: Sequence[str]) -> tuple[str, ...]:
    """Of these, the tasks whose outcome varies: live runs of the same work asked a model.

    None where the policy has models answered from the record, or from it first: then every flip counts.
    """
    if parts.policy.replay.models != Mode.LIVE:
        return ()
    return tuple(task.id for task in parts.tasks(tuple(task_ids)) if _asks_models(parts, task))


def _asks_models(parts: Parts, task: Task) -> bool:
    runs = [run for run in parts.journal.runs_of(task.key, ALIKE) if run.sandbox != IMPORT]
    if any(run.outcome is not None and run.outcome.cost.calls for run in runs):
        return True
    return any(step.node in _BY_MODELS for run in runs[:1] for step in parts.journal.steps(run.id))


def case_of(parts: Parts, task: Task) -> Case:
    """A task as a search sees it."""
    if task.call is None:
        raise ValueError(f"{task.id} names no call")
    inputs = {item.path: parts.blobs.get(item.sha256) for item in task.inputs}
    return Case(task.id, task.call, inputs, task.checks)


def shown_guards(parts: Parts, sets: Sets) -> list[Task]:
    """The share of the guards that a proposer may see, chosen by a stable hash."""
    share = parts.policy.evidence.visible_guards
    return [
        task
        for task in parts.tasks(sets.guards)
        if int(digest(["visible", task.key])[:8], 16) / 16**8 < share
    ]


def visible_guards(parts: Parts, sets: Sets, path: str, tool: str | None) -> list[tuple[Case, Json]]:
    """Calls and old answers of those guards, where they call the tool at fault; None stands for any tool."""
    shown: list[tuple[Case, Json]] = []
    for task in shown_guards(parts, sets):
        if task.call is None or not path or tool not in (None, task.call.tool.rpartition("/")[2]):
            continue
        run = next((run for run in parts.journal.runs_of(task.key, 5) if _passed(run)), None)
        if run is not None and not is_reference(run.answer):
            shown.append((replace(case_of(parts, task), checks=()), run.answer))
    return shown


def _passed(run: Run) -> bool:
    return run.outcome is not None and run.outcome.result is Result.PASSED


def _take(runs: Sequence[Run], seen: set[str], limit: int) -> tuple[str, ...]:
    """Newest first, one for each distinct work, adding to ``seen``."""
    chosen: list[str] = []
    for run in runs:
        if len(chosen) == limit:
            break
        if run.task_key not in seen:
            seen.add(run.task_key)
            chosen.append(run.task_id)
    return tuple(chosen)


def _in_turn(groups: Sequence[Sequence[Run]]) -> list[Run]:
    """One of each group, then the next of each."""
    return [run for row in zip_longest(*groups) for run in row if run is not None]


def _past_fixes(parts: Parts, resources: frozenset[str], seen: set[str]) -> tuple[str, ...]:
    """What the newest promotions of these that still stand repaired, but for hidden tasks.

    As many as there may be other guards: otherwise each promotion would make all later ones dearer.
    """
    limit = parts.policy.evidence.max_guards
    standing = [
        evolution
        for resource in sorted(resources)
        for state in (EvolutionState.PROBATION, EvolutionState.PROMOTED)
        for evolution in parts.records.newest(Evolution, limit, resource=resource, state=state)
    ]
    standing.sort(key=lambda item: item.created_at.timestamp() if item.created_at else 0.0, reverse=True)
    fixed = [
        task_id
        for evolution in standing[:limit]
        for verdict in parts.records.find(Verdict, candidate_id=evolution.candidate_id)
        for task_id in verdict.fixed
    ]
    chosen: list[str] = []
    for task in parts.tasks(tuple(dict.fromkeys(fixed))):
        if len(chosen) == limit:
            break
        if task.key not in seen and not is_hidden(parts, task):
            seen.add(task.key)
            chosen.append(task.id)
    return tuple(chosen)


def is_hidden(parts: Parts, task: Task) -> bool:
    """A hold-out task that an earlier promotion repaired stays hidden: guards are shown to proposers."""
    runs = parts.journal.runs_of(task.key, 1)
    return bool(runs) and not is_open(parts, runs[0])
