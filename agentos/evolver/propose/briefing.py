"""Brief: all that a proposer may know. Nothing here comes from the hold-out, nor from a guard's checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from agentos.domain import (
    Candidate,
    Earlier,
    Evolution,
    Kind,
    Layer,
    ProposalState,
    ResourceId,
    Result,
    Share,
    Site,
    Snapshot,
    Task,
    is_memory,
)
from agentos.domain import Proposal as Wish
from agentos.evolver.history.open_runs import runs_of
from agentos.evolver.history.parents import parents_for
from agentos.evolver.memory.lessons import LOOK_BACK as FARED_BACK
from agentos.evolver.memory.lessons import fared
from agentos.evolver.parts import Parts
from agentos.evolver.select.curate import Sets, case_of, shown_guards, visible_guards
from agentos.ports import Brief, Remembered, Seen

FILE_MAX = 60_000  # characters of a file; longer ones are not shown
FILES_MAX = 240_000  # of all files together
WISHES_BACK = 100  # open proposals of runs to look through
HISTORY = 12  # evolutions of the same failure to tell of
RUNS_BACK = 5  # of a guard's work to find a passing one in

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
    tasks = parts.tasks(sets.shown)
    tool = tasks[0].call.tool.rpartition("/")[2] if tasks[0].call else ""
    called = None if site.layer is Layer.HARNESS else tool  # a harness serves calls of every tool
    runs = runs_of(parts, tasks)
    files = dict(_files(parts, evolution.base, site, runs))
    remembers = site.layer is Layer.MEMORY
    return Brief(
        evolution_id=evolution.id,
        base=evolution.base,
        resource=ResourceId(Kind(kind), name),
        path=site.path,
        source=found[site.path].decode() if site.path in found else "",
        cases=tuple(case_of(parts, task) for task in tasks if task.call is not None),
        working_calls=tuple(visible_guards(parts, sets, site.path, called)),
        budget_s=parts.policy.propose.budget_s,
        max_candidates=parts.policy.propose.max_candidates,
        layer=site.layer,
        why=why,
        files=files,
        runs=runs,
        history=tuple(_history(parts, evolution)),
        parents=parents_for(parts, evolution, site),
        surface=parts.policy.surface.allow,
        memories=fared_of(parts, files) if remembers else (),
        wished=_wished(parts, tasks) if remembers else (),
        successes=_successes(parts, sets) if site.layer is Layer.SKILL else (),
    )


def fared_of(parts: Parts, files: Mapping[str, str]) -> tuple[Remembered, ...]:
    """The lessons of these memories, by path, and how open runs ended that had them."""
    memories = {path: text for path, text in files.items() if is_memory(path)}
    runs = {path: parts.journal.recent_runs(path.rpartition("/")[0], FARED_BACK) for path in memories}

    def text_at(snapshot: Snapshot, path: str) -> str:
        return parts.snapshots.files(snapshot, path).get(path, b"").decode("utf-8", "replace")

    return fared(memories, runs, text_at, parts.now(), parts.policy.mine.half_life_days)


def _wished(parts: Parts, tasks: Sequence[Task]) -> tuple[str, ...]:
    """What runs of this very work asked to be remembered, and nobody has decided on; newest first."""
    keys = {task.key for task in tasks}
    waiting = parts.records.newest(Wish, WISHES_BACK, state=ProposalState.OPEN)
    return tuple(wish.text for wish in waiting if wish.task_key in keys)


def _successes(parts: Parts, sets: Sets) -> tuple[Seen, ...]:
    """Passing runs of the guards that a proposer may see, whose checks it may not."""
    found = []
    for task in shown_guards(parts, sets):
        runs = [run for run in parts.journal.runs_of(task.key, RUNS_BACK) if run.share is Share.OPEN]
        run = next((run for run in runs if run.outcome and run.outcome.result is Result.PASSED), None)
        if task.call is None and run is not None:
            found.append(Seen(replace(task, checks=()), run, tuple(parts.journal.steps(run.id))))
    return tuple(found)


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
    """What was tried on this failure lately, and what came of it."""
    lately = parts.records.newest(Evolution, HISTORY, fingerprint_id=evolution.fingerprint_id)
    for past in reversed(lately):
        if past.id == evolution.id or past.ended_at is None:
            continue
        for candidate in parts.records.find(Candidate, evolution_id=past.id):
            end = candidate.screened or f"{past.state.value}: {past.reason}"
            yield Earlier(
                candidate.manifest.layer, candidate.manifest.edit, candidate.manifest.files, end[:400]
            )
