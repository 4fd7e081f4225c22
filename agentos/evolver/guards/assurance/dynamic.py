"""Tries a candidate with what the kernel brings along: the contract suite, and the safety probes.

Neither is in any registry, and names are drawn anew each time: no edit can be written to fit them.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from agentos.domain import (
    Arm,
    Candidate,
    Evidence,
    Evolution,
    InputFile,
    Kind,
    Mode,
    Refusal,
    RefusalKind,
    ResourceId,
    SafetyRate,
    Snapshot,
    Trial,
    digest,
    new_id,
    tier_of,
)
from agentos.errors import ModelAway
from agentos.evolver.guards.assurance import SafetyContext, SuiteContext
from agentos.evolver.guards.assurance.contract import RetryingExecutor, program_suite, suite, violations
from agentos.evolver.replay.jobs import without_model
from agentos.evolver.safety_probes import INPUT, SafetyProbe, with_tool
from agentos.ports import Plan, Snapshots
from agentos.resources import examine, is_tool_file, resources_of
from agentos.resources.documents import DOCUMENT
from agentos.shipped import seed_files
from agentos.syntax import tree_of

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


# --- the contract -------------------------------------------------------------------------------


def in_breach(parts: SuiteContext, candidate: Candidate) -> Refusal | None:
    """How the candidate breaks the contract of a harness, None when it keeps it or touches none.

    Raises Unavailable when the machinery failed: then nothing is known.
    """
    snapshot, base = candidate.snapshot, candidate.base
    # In the sandbox in which it will live, and as well, never instead, in the one that the policy names.
    places = dict.fromkeys(["auto", parts.policy.sandbox.preferred(tier_of(candidate.manifest.files))])
    for harness in sorted(_harnesses(parts, candidate)):
        for place in places:
            if broken := breaches(parts, harness, snapshot, base, Plan(prefer=place)):
                more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
                told = f"{harness} breaks the contract: {broken[0]}{more}"
                return Refusal(RefusalKind.CONTRACT, told)
    return None


def breaches(
    parts: SuiteContext, harness: ResourceId, snapshot: Snapshot, base: Snapshot, plan: Plan | None = None
) -> Sequence[str]:
    """The clauses of the contract that the snapshot's harness breaks, a sentence each.

    Without a ``plan`` it may be a person's change: then a program of its own need not ask a model where the
    one before did. Raises Unavailable when the machinery failed: then nothing is known.
    """
    chance = random.Random()  # noqa: S311 - only not to be foreseen by an edit
    is_program, was_program = (_is_program(parts, here, harness) for here in (snapshot, base))
    if is_program:
        tried = program_suite(harness, chance, parts.now(), asks=was_program and plan is not None)
    else:
        tried = suite(harness, chance, parts.now())
    executor = RetryingExecutor(
        parts.executor_with(tried.files, frozenset()), parts.policy.replay.infra_retries
    )
    broken = violations(executor, snapshot, tried, parts.replayer, plan)
    if not broken or not (is_program and was_program):
        return broken
    # any program may stand here: it is held to what the one before it did
    before = {said.partition(":")[0] for said in violations(executor, base, tried, parts.replayer, plan)}
    return [said for said in broken if said.partition(":")[0] not in before]


def _is_program(parts: SuiteContext, snapshot: Snapshot, harness: ResourceId) -> bool:
    return bool(_settings(parts, snapshot, harness).get("command"))


def _harnesses(parts: SuiteContext, candidate: Candidate) -> set[ResourceId]:
    """Those that are touched, and those of touched agents."""
    touched = resources_of(candidate.manifest.files)
    found = {resource for resource in touched if resource.kind is Kind.HARNESS}
    for agent in touched:
        settings = _settings(parts, candidate.snapshot, agent) if agent.kind is Kind.AGENT else {}
        if name := settings.get(Kind.HARNESS):
            found.add(ResourceId(Kind.HARNESS, str(name)))
    return found


def _settings(parts: SuiteContext, snapshot: Snapshot, resource: ResourceId) -> dict[str, object]:
    """None of a resource that cannot be read: its runs say what is wrong."""
    read = examine(resource, parts.snapshots.files(snapshot, str(resource))).resource
    return dict(read.settings) if read else {}


# --- the safety probes --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """One rate that is to be known."""

    evolution_id: str
    candidate_id: str
    arm: Arm
    snapshot: Snapshot
    agent: str
    learnt: bool
    place: str
    ran: tuple[str, ...]
    left_out: tuple[str, ...]
    probes_sha256: str
    image: str

    @property
    def id(self) -> str:
        return f"safety-{digest(self)[:20]}"


def measure(parts: SafetyContext, evolution: Evolution, candidate: Candidate) -> list[SafetyRate]:
    """The rates of base and candidate, with what was learnt and without; stored.

    A tree that was measured before is not measured again, unless models took part: those vary, or boxes
    are made of something else by now.
    A probe that asks a model, and gets nothing of what the edit changes, ends alike on both sides: it is left out.
    So are all that ask one where no model answers, if the edit changes nothing that a model reads.
    Raises Unavailable when the machinery failed, and ModelAway when an edit of what a model reads cannot be
    probed: then nothing is known.
    """
    try:
        return _measure(parts, evolution, candidate, with_models=True)
    except ModelAway:
        if is_read(parts.snapshots, candidate):
            raise
        return _measure(parts, evolution, candidate, with_models=False)


def _measure(
    parts: SafetyContext, evolution: Evolution, candidate: Candidate, *, with_models: bool
) -> list[SafetyRate]:
    agent = _agent(parts, evolution, candidate)
    place = "auto"  # where live runs are
    sha256 = digest(parts.safety_probes)
    image = _image(parts, candidate)
    found = []
    reached = _reached(parts, candidate, agent) if with_models else frozenset()
    for arm, owner, snapshot in (
        (Arm.BASE, "", candidate.base),
        (Arm.CANDIDATE, candidate.id, candidate.snapshot),
    ):
        ran, left_out = _chosen(parts, snapshot, agent, reached)
        names = tuple(probe.name for probe in ran), tuple(probe.name for probe in left_out)
        for with_learnt in (True, False):
            side = _Side(evolution.id, owner, arm, snapshot, agent, with_learnt, place, *names, sha256, image)
            rate = _known(parts, side) or _measured(parts, side, ran)
            parts.records.put(rate)
            found.append(rate)
    return found


def _agent(parts: SafetyContext, evolution: Evolution, candidate: Candidate) -> str:
    """As whom the probes are run: an agent that the edit touches, else the one whose work failed."""
    touched = sorted(resources_of(candidate.manifest.files))
    agents = [resource.name for resource in touched if resource.kind is Kind.AGENT]
    evidence = parts.records.get(Evidence, evolution.evidence_id)
    return (agents or [task.agent for task in parts.tasks(evidence.task_ids[:1])])[0]


def _reached(parts: SafetyContext, candidate: Candidate, agent: str) -> frozenset[str]:
    """Names of the probes with a model whose runs get something of what the edit changes."""
    place = "aaaaaaaa"  # one name on both sides: it is part of what the run gets

    def differs(probe: SafetyProbe, without: frozenset[ResourceId]) -> bool:
        task = probe.task(place, agent, (), parts.now())
        given = []
        for snapshot in (candidate.base, candidate.snapshot):
            left_out = without and frozenset(learnt(parts.snapshots.names(snapshot)))
            files = {**probe.files(place), **_agent_with(parts, snapshot, agent, place, left_out)}
            executor = parts.executor_with(files, left_out)
            given.append(executor.given(task, snapshot))
        return given[0] != given[1] or not given[0]

    some = frozenset({ResourceId(Kind.MEMORY, "default")})  # stands for: without what was learnt
    return frozenset(
        probe.name
        for probe in parts.safety_probes
        if probe.model and any(differs(probe, without) for without in (frozenset(), some))
    )


def _chosen(
    parts: SafetyContext, snapshot: Snapshot, agent: str, reached: frozenset[str]
) -> tuple[Sequence[SafetyProbe], Sequence[SafetyProbe]]:
    """What is run, with a model several times, and what is left out: no model, or nothing of the edit in it."""
    models = [probe for probe in parts.safety_probes if probe.model]
    plain = [probe for probe in parts.safety_probes if not probe.model]
    if not parts.has_model(snapshot, agent):
        return plain, models
    asked = [probe for probe in models if probe.name in reached]
    return (
        [*plain, *asked * max(1, parts.policy.safety.repeats)],
        [probe for probe in models if probe.name not in reached],
    )


def _image(parts: SafetyContext, candidate: Candidate) -> str:
    """What boxes are made of, and the plug-ins: its trials have just been made, in the sandbox of the same tier."""
    trials = parts.records.find(Trial, evolution_id=candidate.evolution_id, candidate_id=candidate.id)
    plugins = {name for trial in trials for name in trial.plugins}
    return " ".join(sorted({trial.image for trial in trials}) + sorted(plugins))


def _known(parts: SafetyContext, side: _Side) -> SafetyRate | None:
    """What was measured for this evolution, or on the same tree for another."""
    with_models = {probe.name for probe in parts.safety_probes if probe.model} & {*side.ran}
    for rate in parts.records.find(SafetyRate, tree=side.snapshot.tree):
        if rate.id == side.id:
            return rate
        same = _Side(
            **{name: getattr(rate, name) for name in _Side.__dataclass_fields__}
            | {name: getattr(side, name) for name in ("evolution_id", "candidate_id", "arm", "snapshot")}
        )
        if same == side and not with_models:
            return replace(
                rate,
                id=side.id,
                evolution_id=side.evolution_id,
                candidate_id=side.candidate_id,
                arm=side.arm,
                snapshot=side.snapshot,
            )
    return None


def _measured(parts: SafetyContext, side: _Side, probes: Sequence[SafetyProbe]) -> SafetyRate:
    without = frozenset() if side.learnt else frozenset(learnt(parts.snapshots.names(side.snapshot)))
    happened = parts.replayer.map(lambda probe: _happened(parts, side, probe, without), probes)
    return SafetyRate(
        id=side.id,
        evolution_id=side.evolution_id,
        candidate_id=side.candidate_id,
        arm=side.arm,
        snapshot=side.snapshot,
        agent=side.agent,
        learnt=side.learnt,
        ran=side.ran,
        violated=tuple(probe.name for probe, did in zip(probes, happened, strict=True) if did),
        left_out=side.left_out,
        probes_sha256=side.probes_sha256,
        place=side.place,
        image=side.image,
        at=parts.now(),
    )


def learnt(names: Iterable[ResourceId]) -> Iterator[ResourceId]:
    """Memories, and skills that did not ship."""
    shipped = resources_of(seed_files())
    for resource in names:
        if resource.kind is Kind.MEMORY or (resource.kind is Kind.SKILL and resource not in shipped):
            yield resource


def _agent_with(
    parts: SafetyContext, snapshot: Snapshot, agent: str, tool: str, without: frozenset[ResourceId]
) -> dict[str, bytes]:
    """The agent's document, by its path, with this tool alone."""
    path = f"{Kind.AGENT}/{agent}/{DOCUMENT}"
    own = parts.snapshots.files(snapshot, path).get(path, b"")
    return {path: with_tool(own, tool, without)}


def _happened(parts: SafetyContext, side: _Side, probe: SafetyProbe, without: frozenset[ResourceId]) -> bool:
    name = "".join(random.choices(_LETTERS, k=8))  # noqa: S311 - as above
    files, content = dict(probe.files(name)), probe.content(name)
    if probe.model:
        files |= _agent_with(parts, side.snapshot, side.agent, name, without)
    inputs = (InputFile(INPUT, parts.blobs.put(content), len(content)),) if content else ()
    task = probe.task(name, side.agent, inputs, parts.now())
    executor = RetryingExecutor(parts.executor_with(files, without), parts.policy.replay.infra_retries)
    # Under the evolution's id its model calls count on its budget, and nothing outside answers.
    plan = Plan(mode=Mode.RECORD, evolution_id=side.evolution_id if probe.model else "", prefer=side.place)
    attempt = executor.execute(task, side.snapshot, new_id("run"), plan=plan)
    what = f"the safety probe '{probe.name}' could not be run"
    if probe.model and (away := without_model(attempt.outcome, what)):
        raise away
    return probe.violated(attempt)


# --- Does an edit change anything that a model reads, or only what a tool computes? --------------


def is_read(snapshots: Snapshots, candidate: Candidate) -> bool:
    """Whether an agent's model may be told something else: all but the bodies of a tool's functions is text to it."""
    if candidate.migration is not None:
        return True
    for path, text in candidate.edit.files.items():
        before = snapshots.files(candidate.base, path).get(path)
        if not is_tool_file(path) or before is None:
            return True
        if _told(before.decode("utf-8", "replace")) != _told(text):
            return True
    return False


def _told(source: str) -> list[str]:
    """The statements of a tool's file of which its card is made: all that define no function, bodies left out."""
    module = tree_of(source)
    if module is None:
        return [source]
    kept = []
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
        kept.append(ast.dump(node))
    return kept
