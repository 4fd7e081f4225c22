"""Propose: turn a brief into stored candidates, manifest first, screened before anything is tried."""

from __future__ import annotations

from collections.abc import Iterator

from agentos.domain import (
    Candidate,
    Diagnosis,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Kind,
    Manifest,
    ResourceId,
    digest,
)
from agentos.evolver.curate import Sets, case_of, visible_guards
from agentos.evolver.guards.guarding import guard, refusal, tier_of
from agentos.evolver.parts import Parts
from agentos.evolver.screen import screen
from agentos.ports import Brief, Proposal

REFUSED_MAX = 20  # proposals that the screen refuses are stored up to here


def brief_for(parts: Parts, evolution: Evolution, diagnosis: Diagnosis, sets: Sets) -> Brief:
    """What a proposer may know. Nothing here comes from the hold-out, nor from a guard's checks."""
    kind, name = diagnosis.resource.split("/", 1)
    source = parts.snapshots.files(evolution.base, diagnosis.path)[diagnosis.path].decode()
    tasks = parts.tasks(sets.evidence)
    tool = tasks[0].call.tool.rpartition("/")[2] if tasks[0].call else ""
    return Brief(
        evolution_id=evolution.id,
        base=evolution.base,
        resource=ResourceId(Kind(kind), name),
        path=diagnosis.path,
        source=source,
        cases=tuple(case_of(parts, task) for task in tasks),
        working_calls=tuple(visible_guards(parts, sets, diagnosis.path, tool)),
        budget_s=parts.policy.propose.budget_s,
        max_candidates=parts.policy.propose.max_candidates,
    )


def propose(parts: Parts, evolution: Evolution, diagnosis: Diagnosis, sets: Sets) -> list[str]:
    """Ids of the candidates worth a replay, best first; each stored and committed to its own ref.

    A search that a crash cut short is done again, and may find other edits in the same time: what
    it had stored by then stands.
    """
    brief = brief_for(parts, evolution, diagnosis, sets)
    stored = {item.rank: item for item in parts.records.find(Candidate, evolution_id=evolution.id)}
    evidence = parts.records.get(Evidence, evolution.evidence_id)
    reverted = _reverted_edits(parts, diagnosis.path)
    checks = [check for case in brief.cases for check in case.checks]
    accepted: list[str] = []
    refused = 0
    for rank, (proposer, proposal) in enumerate(_proposals(parts, diagnosis, brief), 1):
        reason = screen({brief.path: brief.source}, proposal.files, checks, parts.policy.surface)
        if not reason and digest(dict(proposal.files)) in reverted:
            reason = "the same edit was promoted before and rolled back"
        reason = reason or _guarded(parts, evolution, proposal, rank)
        candidate = stored.get(rank) or _store(
            parts, evolution, evidence, diagnosis, (rank, proposer, proposal, reason)
        )
        if candidate.screened:
            refused += 1
        else:
            accepted.append(candidate.id)
        if len(accepted) == brief.max_candidates or refused == REFUSED_MAX:
            break
    return accepted


def _guarded(parts: Parts, evolution: Evolution, proposal: Proposal, rank: int) -> str:
    """Why the guards refuse the edit; what they only mark is noted for whoever is asked to consent."""
    resources = {"/".join(path.split("/")[:2]) for path in proposal.files}
    base = {
        path: content.decode("utf-8", "replace")
        for resource in sorted(resources)
        for path, content in parts.snapshots.files(evolution.base, resource).items()
        if path.endswith(".py")
    }
    found = guard(base, proposal.files, parts.policy.screen)
    reason = refusal(found, parts.policy.screen, tier_of(proposal.files))
    if found and not reason:
        parts.audit.note("candidate.marked", evolution.id, {"rank": rank, "findings": [*map(str, found)]})
    return reason


def _proposals(parts: Parts, diagnosis: Diagnosis, brief: Brief) -> Iterator[tuple[str, Proposal]]:
    for proposer in parts.proposers.get(diagnosis.layer, ()):
        for proposal in proposer.propose(brief):
            yield proposer.name, proposal


def _store(
    parts: Parts,
    evolution: Evolution,
    evidence: Evidence,
    diagnosis: Diagnosis,
    made: tuple[int, str, Proposal, str],
) -> Candidate:
    rank, proposer, proposal, reason = made
    manifest = Manifest(
        evidence_id=evidence.id,
        cause=proposal.cause,
        edit=proposal.summary,
        files=tuple(sorted(proposal.files)),
        predicted_fixes=proposal.predicted_fixes,
        tasks_at_risk=proposal.tasks_at_risk,
        layer=diagnosis.layer,
        why_this_layer=proposal.why_this_layer,
    )
    candidate_id = f"cand-{evolution.id.removeprefix('evo-')}-{rank}"
    snapshot = (
        evolution.base
        if reason
        else parts.candidates.add_candidate(candidate_id, evolution.base, proposal.files)
    )
    candidate = Candidate(
        id=candidate_id,
        evolution_id=evolution.id,
        proposer=proposer,
        rank=rank,
        manifest=manifest,
        edit=Edit(dict(proposal.files), proposal.summary, proposal.operator),
        base=evolution.base,
        snapshot=snapshot,
        screened=reason,
        created_at=parts.now(),
    )
    parts.records.put(candidate)
    return candidate


def _reverted_edits(parts: Parts, path: str) -> set[str]:
    """Digests of edits of this file that a probation or a person took back."""
    found = set()
    for evolution in parts.records.find(Evolution, state=EvolutionState.ROLLED_BACK):
        if evolution.candidate_id:
            edit = parts.records.get(Candidate, evolution.candidate_id).edit
            if path in edit.files:
                found.add(digest(dict(edit.files)))
    return found
