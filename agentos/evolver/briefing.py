"""Brief: all that a proposer may know. Nothing here comes from the hold-out, nor from a guard's checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from agentos.domain import (
    Candidate,
    Evolution,
    Kind,
    Layer,
    ResourceId,
    Site,
    Snapshot,
)
from agentos.evolver.curate import Sets, case_of, visible_guards
from agentos.evolver.parts import Parts
from agentos.evolver.runs import runs_of
from agentos.ports import Brief, Earlier, Seen

FILE_MAX = 60_000  # characters of a file; longer ones are not shown
FILES_MAX = 240_000  # of all files together

# What an edit of a layer may touch, and what belongs beside it: the kinds whose files are shown.
_SHOWN = {
    Layer.MEMORY: (Kind.MEMORY,),
    Layer.PROMPT: (Kind.PROMPT,),
    Layer.SKILL: (Kind.SKILL,),
    Layer.TOOL: (Kind.TOOL, Kind.SKILL),
    Layer.AGENT: (Kind.AGENT,),
    Layer.ENVIRONMENT: (Kind.ENVIRONMENT,),
    Layer.HARNESS: (Kind.HARNESS,),
}


def brief_for(parts: Parts, evolution: Evolution, site: Site, sets: Sets, why: str = "") -> Brief:
    """What the proposers of the site's layer get."""
    kind, name = site.resource.split("/", 1)
    found = parts.snapshots.files(evolution.base, site.path) if site.path else {}
    tasks = parts.tasks(sets.evidence)
    tool = tasks[0].call.tool.rpartition("/")[2] if tasks[0].call else ""
    runs = runs_of(parts, tasks)
    return Brief(
        evolution_id=evolution.id,
        base=evolution.base,
        resource=ResourceId(Kind(kind), name),
        path=site.path,
        source=found[site.path].decode() if site.path in found else "",
        cases=tuple(case_of(parts, task) for task in tasks if task.call is not None),
        working_calls=tuple(visible_guards(parts, sets, site.path, tool)),
        budget_s=parts.policy.propose.budget_s,
        max_candidates=parts.policy.propose.max_candidates,
        layer=site.layer,
        why=why,
        files=dict(_files(parts, evolution.base, site, runs)),
        runs=runs,
        history=tuple(_history(parts, evolution)),
        surface=parts.policy.surface.allow,
    )


def _files(parts: Parts, base: Snapshot, site: Site, runs: Sequence[Seen]) -> Iterator[tuple[str, str]]:
    """The site's own resource first, then what the runs used of the kinds that its layer shows."""
    used = dict.fromkeys(name for seen in runs for name in seen.run.resources)
    kinds = {kind.value for kind in _SHOWN[site.layer]}
    wanted = [site.resource, *(name for name in used if name.split("/")[0] in kinds)]
    room = FILES_MAX
    for resource in dict.fromkeys(wanted):
        for path, content in sorted(parts.snapshots.files(base, f"{resource}/").items()):
            text = _text(content)
            if _may_be_shown(parts, path) and text is not None and len(text) <= min(FILE_MAX, room):
                room -= len(text)
                yield path, text


def _may_be_shown(parts: Parts, path: str) -> bool:
    document = path.endswith("/resource.toml")
    return document or any(fnmatchcase(path, pattern) for pattern in parts.policy.surface.allow)


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _history(parts: Parts, evolution: Evolution) -> Iterator[Earlier]:
    """What was tried on this failure before, and what came of it."""
    for past in parts.records.find(Evolution, fingerprint_id=evolution.fingerprint_id):
        if past.id == evolution.id or past.ended_at is None:
            continue
        for candidate in parts.records.find(Candidate, evolution_id=past.id):
            end = candidate.screened or f"{past.state.value}: {past.reason}"
            yield Earlier(
                candidate.manifest.layer, candidate.manifest.edit, candidate.manifest.files, end[:400]
            )
