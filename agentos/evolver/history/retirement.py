"""Skills that an evolution made and nobody uses any more: found here, retired by the daemon once a day.

Every skill is listed to every agent that may have it, and each line of that list costs tokens and attention.
Retiring one is a version like any other: its content stays in the history and can be restored. What a person
wrote or changed is never retired.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from agentos.domain import Kind, ResourceId, Step
from agentos.evolver.history import RetirementContext

CURSOR, _PUT_OFF = "retiring", "retiring.put_off"  # the days of the last look, and of the last put off
_AWAY_DAYS = 2
_OURS = frozenset({"evolution", "revert"})


@dataclass(frozen=True, slots=True)
class Unused:
    """A skill to retire, and why."""

    skill: ResourceId
    reason: str


def unused_skills(parts: RetirementContext) -> list[Unused]:
    """At most once a day: those that are old enough, and that no run of the last days read or used."""
    today = parts.now().toordinal()
    last, put_off = parts.cursor.read(CURSOR), parts.cursor.read(_PUT_OFF)
    if last >= today:
        return []
    parts.cursor.advance(CURSOR, today, [])
    # Nobody was here, or the clock is ahead: a day later.
    if 0 < last < today - _AWAY_DAYS and last != put_off:
        parts.cursor.advance(_PUT_OFF, today, [])
        return []
    names = parts.snapshots.names(parts.snapshots.stable())
    skills = [name for name in names if name.kind is Kind.SKILL]
    why = f"no run used it in {parts.policy.mine.unused_days:g} days"
    return [Unused(skill, why) for skill in skills if _is_unused(parts, skill)]


def _is_unused(parts: RetirementContext, skill: ResourceId) -> bool:
    versions = parts.evolvable.versions(skill)
    since = parts.now() - timedelta(days=parts.policy.mine.unused_days)
    if not versions or not all(version.origin in _OURS for version in versions):
        return False
    if versions[0].created_at > since or parts.evolvable.why_fixed(skill):
        return False
    runs = parts.journal.recent_runs(str(skill), parts.policy.look_back.retired)
    lately = [run for run in runs if (run.finished_at or run.started_at) > since]
    return not any(uses(step, skill) for run in lately for step in parts.journal.steps(run.id))


def uses(step: Step, skill: ResourceId) -> bool:
    """Whether it read the skill's page or called one of its tools: that it was listed is no use."""
    action = step.action
    if not isinstance(action, Mapping):
        return False
    args = action.get("args")
    read = (
        action.get("tool") == "read_skill" and isinstance(args, Mapping) and args.get("skill") == skill.name
    )
    return read or str(action.get("path", "")).startswith(f"{skill}/")
