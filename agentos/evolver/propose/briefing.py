"""Brief: all that a proposer may know. Nothing here comes from the hold-out, nor from a guard's checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, partial

from agentos.domain import (
    Arm,
    Call,
    Candidate,
    Decision,
    EarlierAttempt,
    EditTarget,
    Evolution,
    Fault,
    Json,
    Kind,
    Layer,
    MemoryProposal,
    ProposalState,
    RefusalKind,
    ResourceId,
    Run,
    Share,
    Snapshot,
    Task,
    Trial,
    TrialSet,
    Verdict,
    digest,
    is_memory,
    is_reference,
)
from agentos.evolver.find.fingerprints import HandedFailure
from agentos.evolver.find.mining import inspect, run_below
from agentos.evolver.find.triage import runs_of
from agentos.evolver.history.proposers import in_words, lately, parents_for
from agentos.evolver.memory.lessons import fared
from agentos.evolver.propose import BriefContext
from agentos.evolver.propose.validation import good_runs
from agentos.evolver.select.curate import TaskSets, case_of, shown_guards, visible_guards
from agentos.ports import Brief, Case, EarlierWork, KnownLesson, ObservedRun

FILE_MAX = 60_000  # characters of a file; longer ones are not shown
FILES_MAX = 240_000  # of all files together
CALLS_MAX = 10  # that agents made of the tool, of those that failed and of those that worked

# What an edit of a layer may touch, and what belongs beside it: the kinds whose files are shown.
_SHOWN = {
    Layer.MEMORY: (Kind.MEMORY,),
    Layer.PROMPT: (Kind.PROMPT,),
    Layer.SKILL: (Kind.SKILL,),
    Layer.TOOL: (Kind.TOOL, Kind.SKILL),
    Layer.AGENT: (Kind.AGENT,),
    Layer.ENVIRONMENT: (Kind.ENVIRONMENT,),
    Layer.RULE: (Kind.RULE,),
    Layer.HARNESS: (Kind.HARNESS,),
}


def brief_for(
    parts: BriefContext, evolution: Evolution, site: EditTarget, sets: TaskSets, why: str = ""
) -> Brief:
    """What the proposers of the site's layer get."""
    kind, name = site.resource.split("/", 1)
    found = parts.snapshots.files(evolution.base, site.path) if site.path else {}
    tasks = parts.tasks(sets.shown)
    tool = tasks[0].call.tool.rpartition("/")[2] if tasks[0].call else ""
    called = None if site.layer is Layer.HARNESS else tool  # a harness serves calls of every tool
    runs = runs_of(parts, tasks)
    files = dict(_files(parts, evolution.base, site, runs))
    remembers = site.layer is Layer.MEMORY
    made = calls_in(parts, runs, shown_guards(parts, sets), site.path)
    return Brief(
        evolution_id=evolution.id,
        base=evolution.base,
        resource=ResourceId(Kind(kind), name),
        path=site.path,
        source=found[site.path].decode() if site.path in found else "",
        cases=(*(case_of(parts, task) for task in tasks if task.call is not None), *made.failing),
        working_calls=(*visible_guards(parts, sets, site.path, called), *made.working),
        budget_s=parts.policy.propose.budget_s,
        max_candidates=parts.policy.propose.max_candidates,
        layer=site.layer,
        why=why,
        files=files,
        runs=runs,
        parents=parents_for(parts, evolution, site),
        surface=parts.policy.surface.allow,
        searched=parts.policy.surface.searched,
        memories=fared_of(parts, files) if remembers else (),
        wished=_proposed_memories(parts, tasks) if remembers else (),
        successes=_successes(parts, evolution.base, sets, site.layer),
        faults=_faults(parts, evolution, sets, runs),
        earlier=cache(partial(_earlier_work, parts, evolution, site.layer)),
    )


def _earlier_work(parts: BriefContext, evolution: Evolution, layer: Layer) -> EarlierWork:
    tracks = lately(parts.records, parts.policy.look_back.calibrated, evolution.id)
    return EarlierWork(tuple(_history(parts, evolution)), in_words(tracks, layer))


def _faults(
    parts: BriefContext, evolution: Evolution, sets: TaskSets, runs: Sequence[ObservedRun]
) -> tuple[Fault, ...]:
    """How the evidence that may be shown failed, in trials of the base and in the runs that were mined."""
    trials = parts.records.find(Trial, evolution_id=evolution.id)
    of_base = [item for item in trials if item.arm is Arm.BASE and item.task_id in sets.shown]
    mined = [inspect(parts, seen.run, seen.steps) for seen in runs]
    found = [item.outcome.fault for item in of_base if item.outcome.fault is not None]
    return tuple(dict.fromkeys([*found, *(failure.fault for failure in mined if failure is not None)]))


def fared_of(parts: BriefContext, files: Mapping[str, str]) -> tuple[KnownLesson, ...]:
    """The lessons of these memories, by path, and how open runs ended that had them."""
    memories = {path: text for path, text in files.items() if is_memory(path)}
    runs = {
        path: parts.journal.recent_runs(path.rpartition("/")[0], parts.policy.look_back.lessons)
        for path in memories
    }

    def text_at(snapshot: Snapshot, path: str) -> str:
        return parts.snapshots.files(snapshot, path).get(path, b"").decode("utf-8", "replace")

    return fared(memories, runs, text_at, parts.now(), parts.policy.mine.half_life_days)


def _proposed_memories(parts: BriefContext, tasks: Sequence[Task]) -> tuple[str, ...]:
    """What runs of this very work asked to be remembered, and nobody has decided on; newest first."""
    keys = {task.key for task in tasks}
    waiting = parts.records.newest(MemoryProposal, parts.policy.look_back.proposals, state=ProposalState.OPEN)
    return tuple(one.text for one in waiting if one.task_key in keys)


def _successes(parts: BriefContext, base: Snapshot, sets: TaskSets, layer: Layer) -> tuple[ObservedRun, ...]:
    """Passing runs that a proposer may see, whose checks it may not: of the guards, or all that a rule may not hold back."""
    if layer is Layer.RULE:
        return good_runs(parts, base)
    found = []
    for task in shown_guards(parts, sets) if layer is Layer.SKILL else ():
        runs = [
            run
            for run in parts.journal.runs_of(task.key, parts.policy.look_back.answered)
            if run.share is Share.OPEN
        ]
        run = next((run for run in runs if run.passed), None)
        if task.call is None and run is not None:
            found.append(ObservedRun(replace(task, checks=()), run, tuple(parts.journal.steps(run.id))))
    return tuple(found)


def _files(
    parts: BriefContext, base: Snapshot, site: EditTarget, runs: Sequence[ObservedRun]
) -> Iterator[tuple[str, str]]:
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


def _may_be_shown(parts: BriefContext, path: str) -> bool:
    document = path.endswith("/resource.toml")
    rules = parts.policy.surface
    return document or any(fnmatchcase(path, pattern) for pattern in (*rules.allow, *rules.searched))


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _history(parts: BriefContext, evolution: Evolution) -> Iterator[EarlierAttempt]:
    """What was tried on this failure lately, and what came of it, but for what hidden tasks said of it."""
    lately = parts.records.newest(
        Evolution, parts.policy.look_back.told, fingerprint_id=evolution.fingerprint_id
    )
    for past in reversed(lately):
        if past.id == evolution.id or past.ended_at is None:
            continue
        for candidate in parts.records.find(Candidate, evolution_id=past.id):
            end = candidate.screened or _end(parts, past, candidate)
            yield EarlierAttempt(
                candidate.manifest.layer, candidate.manifest.edit, candidate.manifest.files, end[:400]
            )


def _end(parts: BriefContext, past: Evolution, candidate: Candidate) -> str:
    """What became of an edit that was worth a trial.

    Whoever learns how each edit fell on hidden tasks can look for one that passes these: of an edit that came so
    far no more is told than that it was not promoted.
    """
    verdict = next(reversed(parts.records.find(Verdict, candidate_id=candidate.id)), None)
    if verdict is None:
        return "it was not tried to its end"
    if verdict.decision is Decision.PROMOTE and past.candidate_id == candidate.id:
        return f"{past.state.value}: {past.reason}"
    tried = parts.records.find(Trial, evolution_id=past.id, candidate_id=candidate.id)
    fell = RefusalKind.OVER_FITTED in verdict.kinds  # on evidence that was held back
    if fell or any(trial.set is TrialSet.HOLD_OUT for trial in tried):
        return "it was tried, and not promoted"
    return f"{verdict.decision.value}: {verdict.reasons[0]}"


# --- the calls of the tool at fault that agents made: where a task names none, a search tries these ---------------


@dataclass(frozen=True, slots=True)
class AgentCalls:
    """Calls of the tool that failed, and those that worked with what they gave."""

    failing: tuple[Case, ...] = ()
    working: tuple[tuple[Case, Json], ...] = ()


def calls_in(
    parts: BriefContext, runs: Sequence[ObservedRun], guards: Sequence[Task], path: str
) -> AgentCalls:
    """Those of the tool at ``path``, where tasks name no call: in failing runs and below them, and in runs of the guards
    that may be shown those that worked. What failed has no check, which only the trials of the whole task supply; what
    worked has to give what it gave."""
    failing: dict[str, Case] = {}
    working: dict[str, tuple[Case, Json]] = {}
    if not path.startswith(("tool/", "skill/")):
        return AgentCalls()
    roots = [(seen.task, seen.run) for seen in runs if not seen.run.passed]
    roots += [(task, run) for task in guards for run in parts.journal.runs_of(task.key, 1)]
    for root, above in roots:
        if root.call is not None:
            continue
        for task, run in _tree(parts, root, above):
            inputs = {item.path: parts.blobs.get(item.sha256) for item in task.inputs}
            for step in parts.journal.steps(run.id):
                action, came = step.action, step.observation
                if step.node != "act" or not isinstance(action, dict) or action.get("path") != path:
                    continue
                tool, args = action.get("tool"), action.get("args")
                if not isinstance(tool, str) or not isinstance(args, dict):  # a harness writes the steps
                    continue
                case = Case(task.id, Call(tool, args), inputs, ())
                key = digest([case.call, sorted((item.path, item.sha256) for item in task.inputs)])
                if step.fault is not None and step.fault.resource:
                    failing[key] = case
                elif step.fault is None and isinstance(came, dict) and not is_reference(came):
                    working[key] = (case, came.get("output"))
    return AgentCalls(tuple(failing.values())[:CALLS_MAX], tuple(working.values())[:CALLS_MAX])


def _tree(parts: BriefContext, task: Task, run: Run) -> Iterator[tuple[Task, Run]]:
    """The run, and all that it handed work to."""
    yield task, run
    for step in parts.journal.steps(run.id):
        if step.node == "delegate" and isinstance(step.observation, dict):
            handed = HandedFailure(step.index, "", str(step.observation.get("task")))
            if (below := run_below(parts, handed)) is not None:
                yield from _tree(parts, parts.journal.task(below.task_id), below)
