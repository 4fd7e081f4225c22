"""What a proposed rule would have done in good runs: one that would have held back a single one is refused.

Rules hold for all runs of the home, so trials of the work at hand cannot tell what else a rule would stop: what runs
did that passed tells it. The person who is asked to consent is told how many were looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from agentos.domain import IMPORT, Evolution, Kind, Result, Snapshot
from agentos.errors import Invalid, Unavailable
from agentos.evolver.find.holding_back import is_open
from agentos.evolver.propose import BriefContext, ProposalContext
from agentos.ports import ObservedRun, Proposal
from agentos.resources.effects import recorded_effects
from agentos.rules.document import RuleTrigger, RunRule, is_rule_file, read_rule
from agentos.rules.trying import EffectsAt, faults_of, in_run

_NAMED = 3  # runs that a refusal names


def good_runs(parts: BriefContext, base: Snapshot) -> tuple[ObservedRun, ...]:
    """Open runs of any work that passed lately, newest first, without their checks."""
    most = parts.policy.look_back.rules
    harnesses = [name for name in parts.snapshots.names(base) if name.kind is Kind.HARNESS]
    found = {run.id: run for name in harnesses for run in parts.journal.recent_runs(str(name), most)}
    good = [
        run
        for run in found.values()
        if run.outcome is not None
        and run.outcome.result is Result.PASSED
        and run.sandbox != IMPORT
        and is_open(parts, run)
    ]
    good.sort(key=lambda run: (run.finished_at or parts.now(), run.id), reverse=True)
    return tuple(
        ObservedRun(
            replace(parts.journal.task(run.task_id), checks=()), run, tuple(parts.journal.steps(run.id))
        )
        for run in good[:most]
    )


def rule_fault(parts: ProposalContext, evolution: Evolution, proposal: Proposal) -> str:
    """Why a rule of the proposal may not be tried, "" when all may; what was looked at is noted then."""
    paths = [path for path in proposal.files if is_rule_file(path)]
    if not paths:
        return ""
    good = good_runs(parts, evolution.base)
    if not good:
        return f"{paths[0]}: no run has passed yet, so nobody can tell what else the rule would hold back"
    effects = recorded_effects(parts.snapshots)
    for path in paths:
        try:
            rule = read_rule(path, proposal.files[path].encode())
            present = parts.snapshots.files(evolution.base, path).get(path)
            before = read_rule(path, present) if present is not None else None
        except (Invalid, Unavailable) as error:
            return f"{path}: {error}"
        if why := _untestable(rule) or _alarms(rule, before, good, effects):
            return f"{path}: {why}"
    parts.audit.note("rule.tested", evolution.id, {"rules": list(paths), "good_runs": len(good), "alarms": 0})
    return ""


def _untestable(rule: RunRule) -> str:
    if rule.on is RuleTrigger.BEFORE_MODEL:
        return "what models are asked is not on record, so nobody can tell what else the rule would hold back"
    if not rule.stops:
        return "it names no example that it stops"
    if wrong := faults_of(rule):
        return f"its example {wrong[0].wanted} {wrong[0].number} does not hold: {wrong[0].why}"
    return ""


def _alarms(rule: RunRule, before: RunRule | None, good: Sequence[ObservedRun], effects: EffectsAt) -> str:
    """In which good runs it would have acted where the rule as it stands does not; "" where in none."""
    held = [
        seen.run.id
        for seen in good
        if in_run(rule, seen, effects) and not (before and in_run(before, seen, effects))
    ]
    if not held:
        return ""
    more = " and others" if len(held) > _NAMED else ""
    named = ", ".join(held[:_NAMED])
    return f"it would have acted in {len(held)} of {len(good)} runs that passed ({named}{more})"
