"""Propose: turn a brief into stored candidates, manifest first, screened before anything is tried."""

from __future__ import annotations

import tomllib
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from agentos.domain import (
    Candidate,
    Diagnosis,
    Edit,
    EditedName,
    EditTarget,
    Evidence,
    Evolution,
    Kind,
    Layer,
    Manifest,
    Refusal,
    RefusalKind,
    Snapshot,
    canonical,
    digest,
    folder_of,
    is_memory,
    tier_of,
)
from agentos.errors import Conflict, ErrorKind, Invalid, ModelFailed, Unavailable, lacking
from agentos.evolver.guards.static import untold
from agentos.evolver.guards.static.check import guard, refusal
from agentos.evolver.guards.static.edited_parts import edited_parts
from agentos.evolver.guards.static.raised import defused
from agentos.evolver.history.proposers import NOTHING, ProposerMeter, archive, ordered
from agentos.evolver.memory.lessons import emptied, only_removes
from agentos.evolver.memory.migration import bring_over, unwritten
from agentos.evolver.propose import ProposalContext
from agentos.evolver.propose.briefing import brief_for
from agentos.evolver.propose.validation import rule_fault, screen
from agentos.evolver.select.curate import TaskSets
from agentos.evolver.verdict.gates import is_asked
from agentos.plugins.registry import attempted, said
from agentos.ports import Brief, Case, Proposal, Proposer
from agentos.resources import is_tool_file, parse_id, resources_of, tool_name
from agentos.resources.documents import CONCERNED

BROKE_MAX = 500  # characters of an exception's text that are kept
SEARCH = "repair"  # the proposer whose edits are all made by operators that ship: no plugin may take the name
REFUSED_MAX = 20  # proposals that the screen refuses are stored up to here


class _Proposed(NamedTuple):
    """A proposal, whose it is, and which of the evolution's it is, from 1."""

    rank: int
    proposer: str
    proposal: Proposal


def propose(parts: ProposalContext, evolution: Evolution, diagnosis: Diagnosis, sets: TaskSets) -> list[str]:
    """Ids of the candidates worth a replay, best first; each stored and committed to its own ref.

    The diagnosed site is tried first, then those where the failure may be mended too, each with its
    share of the candidates; the proposers of its layer are asked by what they achieved for their cost so far
    (``scheduling``). A search that a crash cut short is done again, and may find other edits in
    the same time: what it had stored by then stands. Where one proposer of a layer finds something, those
    after it are spared, unless the failure was worked on before.
    """
    stored = {item.rank: item for item in parts.records.find(Candidate, evolution_id=evolution.id)}
    accepted: list[str] = []
    taken: list[Mapping[str, str]] = []
    refused = 0
    rank = 0
    if again := _taken_up(parts, evolution, diagnosis, sets):
        if not again.screened:
            return [again.id]
        rank = again.rank
    silent: set[str] = set()
    sites = workable(parts, diagnosis)
    most = parts.policy.propose.max_candidates
    meter = ProposerMeter(parts.now)
    for left, site in zip(range(len(sites), 0, -1), sites, strict=True):
        brief = replace(
            brief_for(parts, evolution, site, sets, diagnosis.why),
            max_candidates=max(1, (most - len(accepted)) // left),
        )
        here: list[str] = []
        for proposer, found in _proposals(parts, brief, here, silent, meter):
            for proposal in (found, *found.beside)[: most - len(accepted)]:
                if proposal.files in taken:  # two proposers may find the same edit: one trial tells all of it
                    continue
                rank += 1
                made = _Proposed(rank, proposer, proposal)
                reason = _refusal(parts, evolution, brief, made)
                candidate = stored.get(rank) or _store(parts, evolution, site.layer, made, reason)
                refused += bool(candidate.screened)
                if not candidate.screened:
                    taken.append(candidate.edit.files)
                    accepted.append(candidate.id)
                    here.append(candidate.id)
            if len(here) >= brief.max_candidates or refused >= REFUSED_MAX:
                break
        if len(accepted) >= most or refused >= REFUSED_MAX:
            break
    parts.records.put(replace(parts.evolution(evolution.id), asked=meter.asked))
    return accepted


def _taken_up(
    parts: ProposalContext, evolution: Evolution, diagnosis: Diagnosis, sets: TaskSets
) -> Candidate | None:
    """The edit of an evolution gone stale, on the present base: it is measured again instead of searched for.

    None where there is none, or where somebody changed a file that it changes.
    """
    if not evolution.takes_up:
        return None
    before = parts.records.get(Candidate, evolution.takes_up)
    sites = [site for site in workable(parts, diagnosis) if site.layer is before.manifest.layer]
    unchanged = all(
        parts.snapshots.files(before.base, path).get(path)
        == parts.snapshots.files(evolution.base, path).get(path)
        for path in before.edit.files
    )
    if not sites or not unchanged:
        return None
    if stored := [
        item for item in parts.records.find(Candidate, evolution_id=evolution.id) if item.rank == 1
    ]:
        return stored[0]
    manifest = before.manifest
    proposal = Proposal(
        cause=manifest.cause,
        summary=before.edit.summary,
        operator=before.edit.operator,
        files=before.edit.files,
        why_this_layer=manifest.why_this_layer,
        predicted_fixes=manifest.predicted_fixes,
        tasks_at_risk=manifest.tasks_at_risk,
        parents=before.parents,
        model=before.model,
        weight=before.weight,
        prior=before.prior,
    )
    brief = brief_for(parts, evolution, sites[0], sets, diagnosis.why)
    made = _Proposed(1, before.proposer, proposal)
    return _store(parts, evolution, sites[0].layer, made, _refusal(parts, evolution, brief, made))


def workable(parts: ProposalContext, diagnosis: Diagnosis) -> list[EditTarget]:
    """The diagnosis' sites that a proposer edits and an evolution may touch."""
    return [site for site in diagnosis.sites if _is_edited(parts, site) and not why_fixed(parts, site)]


def _is_edited(parts: ProposalContext, site: EditTarget) -> bool:
    """Whether a proposer edits it; of an agent the document alone, and no tool that it lacks."""
    other = site.layer is Layer.AGENT and not site.path.startswith(f"{Kind.AGENT}/")
    return bool(parts.proposers.get(site.layer)) and not other


def untouchable(parts: ProposalContext, diagnosis: Diagnosis) -> Refusal | None:
    """Why no proposer may or can work on the diagnosed resource, None when one can."""
    if not any(_is_edited(parts, site) for site in diagnosis.sites):
        layer = diagnosis.layer.value
        told = f"the fault lies in the {layer} layer, which no proposer edits: {diagnosis.why}"
        return Refusal(RefusalKind.UNEDITED, told)
    if workable(parts, diagnosis):
        return None
    return next(filter(None, (why_fixed(parts, site) for site in diagnosis.sites)))


def why_fixed(parts: ProposalContext, site: EditTarget) -> Refusal | None:
    """Why the site's resource may not be touched, None when it may."""
    resource = parse_id(site.resource)
    fixed = parts.evolvable.why_fixed(resource)
    if fixed or resource.kind is not Kind.MEMORY:
        return fixed
    return unwritten(parts, parts.snapshots.stable(), resource)


def _refusal(parts: ProposalContext, evolution: Evolution, brief: Brief, made: _Proposed) -> Refusal | None:
    """Why a proposal is not worth a trial, None when it is."""
    rank, proposer, proposal = made
    if proposal.unusable:
        return Refusal(RefusalKind.UNUSABLE, proposal.unusable)
    old = {
        path: text
        for path, text in ((path, _text_at(parts, evolution, path)) for path in proposal.files)
        if text is not None
    }
    checks = [check for seen in parts.tasks(tuple(_evidence_tasks(brief))) for check in seen.checks]
    raised = [fault for fault in brief.faults if fault.where]
    source = all(path.endswith(".py") for path in proposal.files)
    unknown = untold(checks, [*map(_given, brief.cases)]) if source else checks
    reason = screen(old, proposal.files, unknown, parts.policy.surface, searched=proposer == SEARCH)
    return (
        reason
        or _taken_back(parts, proposal)
        or rule_fault(parts, evolution, proposal)
        or _pinned(parts, evolution, proposal)
        or (
            defused(_sources(parts, evolution, proposal), proposal.files, raised, checked=bool(checks))
            if raised
            else None
        )
        or _shadowing(parts, evolution, proposal)
        or _guarded(parts, evolution, proposal, rank)
    )


def _taken_back(parts: ProposalContext, proposal: Proposal) -> Refusal | None:
    why = parts.taken_back(proposal.files)
    return Refusal(RefusalKind.TAKEN_BACK, why) if why else None


def _pinned(parts: ProposalContext, evolution: Evolution, proposal: Proposal) -> Refusal | None:
    """Why one of the resources that it touches beside the site's may not be touched, None when all may."""
    touched = {folder_of(path) for path in proposal.files}
    there = {str(name) for name in parts.snapshots.names(evolution.base)}
    for resource in sorted(touched & there):
        if fixed := parts.evolvable.why_fixed(parse_id(resource)):
            return fixed
    return None


def _shadowing(parts: ProposalContext, evolution: Evolution, proposal: Proposal) -> Refusal | None:
    """Why a new tool would be called in another's place, None when none would.

    A task names a tool without saying whose it is, and a tool of its own goes before one of a skill: so a
    new one would stand in for what may be pinned.
    """
    there = partial(_text_at, parts, evolution)
    made = {tool_name(path): path for path in filter(is_tool_file, proposal.files) if there(path) is None}
    for resource in parts.snapshots.names(evolution.base) if made else ():
        if resource.kind in (Kind.TOOL, Kind.SKILL):
            for path in filter(is_tool_file, parts.snapshots.files(evolution.base, str(resource))):
                if new := made.get(tool_name(path)):
                    told = f"{new}: there is a tool {tool_name(path)} already ({path})"
                    return Refusal(RefusalKind.TAKEN_NAME, told)
    return None


def _evidence_tasks(brief: Brief) -> Iterator[str]:
    yield from dict.fromkeys(
        [*(case.task_id for case in brief.cases), *(seen.task.id for seen in brief.runs)]
    )


def _given(case: Case) -> str:
    """What a call is given: its arguments and the texts of its files."""
    files = [content.decode("utf-8", "replace") for content in case.inputs.values()]
    return "\n".join([canonical(dict(case.call.args)).decode(), *files])


def _text_at(parts: ProposalContext, evolution: Evolution, path: str) -> str | None:
    content = parts.snapshots.files(evolution.base, path).get(path)
    return content.decode("utf-8", "replace") if content is not None else None


def _guarded(parts: ProposalContext, evolution: Evolution, proposal: Proposal, rank: int) -> Refusal | None:
    """Why the guards refuse the edit; what they only mark is noted for whoever is asked to consent."""
    base = _sources(parts, evolution, proposal)
    found = guard(base, proposal.files, parts.policy.screen)
    reason = refusal(found, parts.policy.screen, tier_of(proposal.files))
    if found and not reason:
        parts.audit.note("candidate.marked", evolution.id, {"rank": rank, "findings": [*map(str, found)]})
    return reason


def _sources(parts: ProposalContext, evolution: Evolution, proposal: Proposal) -> dict[str, str]:
    """The base's Python files of the resources that it touches."""
    resources = {folder_of(path) for path in proposal.files}
    return {
        path: content.decode("utf-8", "replace")
        for resource in sorted(resources)
        for path, content in parts.snapshots.files(evolution.base, resource).items()
        if path.endswith(".py")
    }


def _signature(parts: ProposalContext, layer: Layer, name: str) -> str:
    """Of a proposer that is installed beside agentos, with its version; "" of those that ship."""
    asked = parts.proposers.get(layer, ())
    return next((getattr(found, "signature", "") for found in asked if found.name == name), "")


def _edited(parts: ProposalContext, evolution: Evolution, proposal: Proposal) -> tuple[EditedName, ...]:
    """What trials have to run; nothing of a harness that is a program of its own, which no trial can tell."""
    programs = {
        path.removesuffix("resource.toml")
        for path in (f"{'/'.join(name.split('/')[:2])}/resource.toml" for name in proposal.files)
        if path.startswith("harness/") and "command" in tomllib.loads(_text_at(parts, evolution, path) or "")
    }
    new = {path: text for path, text in proposal.files.items() if not path.startswith(tuple(programs))}
    return edited_parts(_sources(parts, evolution, proposal), new)


def _proposals(
    parts: ProposalContext, brief: Brief, here: list[str], silent: set[str], meter: ProposerMeter
) -> Iterator[tuple[str, Proposal]]:
    """``here`` grows with what is accepted; ``silent``, which grows too, has nobody to ask any more."""
    asked = parts.proposers.get(brief.layer, ())
    known = archive(parts) if len(asked) > 1 else {}
    for proposer in ordered(
        asked, lambda item: known.get((item.name, brief.layer), NOTHING), parts.policy.propose
    ):
        if proposer.name in silent or (here and not brief.history):
            continue
        given = _proposals_of(proposer, brief, meter)
        while True:
            proposal, error = attempted(partial(next, given, None))
            if error is not None:
                if isinstance(error, ModelFailed):
                    silent.add(proposer.name)
                yield proposer.name, _no_more(proposer.name, error)
            if proposal is None:
                break
            yield proposer.name, proposal


def _proposals_of(proposer: Proposer, brief: Brief, meter: ProposerMeter) -> Iterator[Proposal]:
    for proposal in meter.timed(proposer.name, brief.layer, proposer.propose(brief)):
        if not isinstance(proposal, Proposal):
            raise TypeError(f"it proposed a {type(proposal).__name__}")
        yield proposal


def _no_more(proposer: str, error: BaseException) -> Proposal:
    """What stands in the record for a proposer that could not go on. Raises what says nothing of it."""
    summary = f"{proposer} could not go on"
    return Proposal("", summary, proposer, {}, "", (), (), unusable=_why(proposer, error))


def _why(proposer: str, error: BaseException) -> str:
    """What went wrong in a proposer's own code, and where; or that no model can be asked."""
    if isinstance(error, ModelFailed):
        return f"nothing more could be asked ({error.kind}): {error}"
    if isinstance(error, Unavailable) or not isinstance(error, Exception):  # the whole step is done again
        raise error
    if why := lacking(error):
        raise Unavailable(f"{proposer} could not go on: {why}", kind=ErrorKind.FULL) from error
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"it broke: {said(error)}"[:BROKE_MAX] + where


def _store(
    parts: ProposalContext,
    evolution: Evolution,
    layer: Layer,
    made: _Proposed,
    refused: Refusal | None,
) -> Candidate:
    rank, proposer, proposal = made
    reason = refused.reason if refused else ""
    evidence = parts.records.get(Evidence, evolution.evidence_id)
    manifest = Manifest(
        evidence_id=evidence.id,
        cause=proposal.cause,
        edit=proposal.summary,
        files=tuple(sorted(proposal.files)),
        predicted_fixes=proposal.predicted_fixes,
        tasks_at_risk=proposal.tasks_at_risk,
        layer=layer,
        why_this_layer=proposal.why_this_layer,
    )
    candidate_id = f"cand-{evolution.id.removeprefix('evo-')}-{rank}"
    snapshot, migration = evolution.base, None
    if not reason and any(name.kind in CONCERNED for name in resources_of(proposal.files)):
        checks = [check for task in parts.tasks(evidence.task_ids) for check in task.checks]
        brought = bring_over(parts, evolution.base, proposal.files, checks)
        reason, migration = brought.fault, brought.migration
    if not reason:
        files = {**proposal.files, **(migration.files if migration else {})}
        try:
            candidate_id, snapshot = _added(parts, candidate_id, evolution.base, files)
        except Invalid as error:
            reason = "; ".join(error.faults)
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
        known_tasks=parts.journal.arrived(),
        parents=proposal.parents,
        model=proposal.model,
        weight=proposal.weight,
        prior=proposal.prior,
        migration=migration,
        edited=_edited(parts, evolution, proposal) if not reason else (),
        plugin=_signature(parts, layer, proposer),
    )
    if not reason:
        candidate = with_control(parts, candidate)
    parts.records.put(candidate)
    if proposal.unusable:
        about = {"proposer": proposer, "rank": rank, "reason": reason}
        parts.audit.note("proposal.unusable", evolution.id, about)
    return candidate


def _added(
    parts: ProposalContext, candidate_id: str, base: Snapshot, files: Mapping[str, str]
) -> tuple[str, Snapshot]:
    """The candidate's id and snapshot. A kill may have left another edit under the id, and no record of it."""
    try:
        return candidate_id, parts.candidates.add_candidate(candidate_id, base, files)
    except Conflict:
        candidate_id = f"{candidate_id}-{digest(dict(files))[:8]}"
        return candidate_id, parts.candidates.add_candidate(candidate_id, base, files)


def with_control(parts: ProposalContext, candidate: Candidate) -> Candidate:
    """An edit of memories with what it is held against beside its base: the same with nothing remembered."""
    files = candidate.edit.files
    if not is_asked(candidate):
        return candidate
    memories = {
        path: content.decode("utf-8", "replace")
        for path, content in parts.snapshots.files(candidate.base, Kind.MEMORY.value).items()
        if is_memory(path)
    }
    without = emptied(memories, files)
    control = candidate.base
    if without:
        control = parts.candidates.add_candidate(f"{candidate.id}-control", candidate.base, without)
    return replace(candidate, control=control, removes=only_removes(memories, files))
