"""Attest: what a manifest predicted beside what was observed, at the promotion and after the probation.

At the promotion the replay is what was observed; after the probation it is live use. Both are kept:
the first says how well a proposer knew its edit, the second how well the replay knew the world.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from agentos.domain import Attestation, Candidate, Evolution, Result, Run, Verdict
from agentos.evolver.find.fingerprints import FAILING
from agentos.evolver.history import HistoryContext

AT_PROMOTION, AFTER_PROBATION = "promotion", "probation"


def attest_replay(
    parts: HistoryContext, evolution: Evolution, candidate: Candidate, verdict: Verdict
) -> Attestation:
    """Compare the manifest with the replay that promoted the candidate."""
    return _stored(parts, evolution, candidate, AT_PROMOTION, verdict.fixed, verdict.broken)


def attest_live(
    parts: HistoryContext,
    evolution: Evolution,
    candidate: Candidate,
    fixed: Sequence[str],
    live: Iterable[Run],
    regressions: Sequence[str],
) -> Attestation:
    """Compare it with live use: of what the replay ``fixed``, what passes; and what got worse."""
    passes: dict[str, list[bool]] = {}
    for run in live:
        if run.outcome is not None and run.outcome.result in {*FAILING, Result.PASSED}:
            passes.setdefault(run.task_key, []).append(run.outcome.result is Result.PASSED)
    # Work that was not asked for again stands as the replay left it.
    holds = [task.id for task in parts.tasks(tuple(fixed)) if _mostly(passes.get(task.key, [True]))]
    return _stored(parts, evolution, candidate, AFTER_PROBATION, holds, regressions)


def label(predicted: Collection[str], observed: Collection[str], regressions: Collection[str]) -> str:
    """AHE's five labels: predicted fixes that came true, beside regressions."""
    if regressions:
        return "mixed" if observed else "harmful"
    if not observed:
        return "ineffective"
    return "effective" if predicted and set(predicted) <= set(observed) else "partly"


def _stored(
    parts: HistoryContext,
    evolution: Evolution,
    candidate: Candidate,
    when: str,
    fixes: Sequence[str],
    regressions: Sequence[str],
) -> Attestation:
    manifest = candidate.manifest
    attestation = Attestation(
        id=f"att-{evolution.id.removeprefix('evo-')}{'-replay' if when == AT_PROMOTION else ''}",
        evolution_id=evolution.id,
        predicted_fixes=manifest.predicted_fixes,
        observed_fixes=tuple(fixes),
        predicted_risks=manifest.tasks_at_risk,
        observed_regressions=tuple(regressions),
        verdict=label(manifest.predicted_fixes, fixes, regressions),
        when=when,
    )
    parts.records.put(attestation)
    return attestation


def _mostly(passed: Sequence[bool]) -> bool:
    return 2 * sum(passed) >= len(passed)
