"""The tests of what a candidate rewrites beside the place that was diagnosed.

Guards and hold-out are drawn for the places where a failure may be mended. An edit that goes further, such as
one that makes one skill of two that are alike, must keep what the resource did that it rewrites: what promotions
of that resource repaired, and what passed with its help. So what is merged passes the tests of both parents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentos.domain import Candidate, Evolution, Kind, ResourceId, Result, Verdict
from agentos.errors import NotFound
from agentos.evolver.history.proposer_order import STANDS
from agentos.evolver.history.retirement import uses
from agentos.evolver.select import InheritanceContext
from agentos.evolver.select.curate import TaskSets, is_hidden, varying
from agentos.evolver.select.proven import proven


def with_inherited(
    parts: InheritanceContext, evolution: Evolution, candidate: Candidate, sets: TaskSets
) -> TaskSets:
    """The sets, and the tests of each resource that the candidate changes and they were not drawn for.

    At most as many as an evolution's own; hidden work stays hidden. The same where there is none.
    """
    there = {str(name): name for name in parts.snapshots.names(candidate.base)}
    touched = {"/".join(path.split("/")[:2]) for path in candidate.edit.files}
    drawn = {site.resource for site in evolution.diagnosis.sites} if evolution.diagnosis else set()
    found = dict.fromkeys(
        task_id
        for name in sorted(touched & there.keys() - drawn)
        for task_id in (*_repaired(parts, there[name]), *_helped(parts, there[name]))
    )
    rules = parts.policy.evidence
    known = {task.key for task in parts.tasks((*sets.evidence, *sets.guards, *sets.hold_out))}
    guards: list[str] = []
    hold_out: list[str] = []
    for task in parts.tasks(tuple(found)):
        own, most = (hold_out, rules.max_hold_out) if is_hidden(parts, task) else (guards, rules.max_guards)
        if task.checks and task.key not in known and len(own) < most:
            known.add(task.key)
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
        if made_by.state in STANDS and made_by.candidate_id is not None:
            for verdict in parts.records.find(Verdict, candidate_id=made_by.candidate_id):
                yield from verdict.fixed


def _helped(parts: InheritanceContext, resource: ResourceId) -> Iterator[str]:
    """Work that passed with it, newest first. That a skill was listed is no help."""
    runs = parts.journal.recent_runs(str(resource), parts.policy.look_back.retired)
    passed = [run for run in runs if run.outcome is not None and run.outcome.result is Result.PASSED]
    for run in proven(parts, passed):
        if resource.kind is not Kind.SKILL or any(
            uses(step, resource) for step in parts.journal.steps(run.id)
        ):
            yield run.task_id
