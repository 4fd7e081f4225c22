"""The ladder: where a failure of an agent that thinks may be mended, the cheapest layer first.

No single step of such a run is "the" fault: a memory, a line of the prompt, a skill, a tool or the loop
itself may each be what was missing. What the runs show decides where to begin; every layer that has a
proposer gets its turn, and the trials decide. The others follow by what edits of them achieved for their
cost so far (``scheduling``). A layer that failed this failure before goes to the end, one that was promoted
twice for it without an end to it is left out: then it lies deeper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agentos.domain import (
    Candidate,
    EditTarget,
    Evidence,
    Evolution,
    EvolutionState,
    Kind,
    Layer,
    ResourceId,
    Snapshot,
)
from agentos.errors import Invalid
from agentos.evolver.diagnose import DiagnosisContext
from agentos.evolver.find.agent_failures import failed_below
from agentos.evolver.find.harness_signs import astray
from agentos.evolver.find.triage import PAST, WITHOUT_SUCCESS
from agentos.evolver.history.proposer_order import archive, by_layer, ordered
from agentos.evolver.policy import FailureClass
from agentos.ports import ObservedRun
from agentos.resources import read

PROMOTED_TWICE = 2
LADDER = (Layer.MEMORY, Layer.PROMPT, Layer.SKILL, Layer.TOOL, Layer.RULE, Layer.HARNESS)
_STOPS = frozenset({"limit", "loop", "steps", "empty", "malformed", "nonsense"})  # of the loop, not of a tool
_NO_TOOL = frozenset({"unknown_tool"})


def ladder(
    parts: DiagnosisContext, evidence: Evidence, base: Snapshot, runs: Sequence[ObservedRun]
) -> tuple[list[EditTarget], str]:
    """The sites in the order in which they are tried, and why the first one is first.

    ``runs`` are those of the evidence and others of the same work, all of tasks without a call.
    """
    agent = runs[0].task.agent if runs else "default"
    settings = _agent(parts, base, agent)
    first, why = _start(
        runs, next((item for item in parts.taxonomy if item.name == evidence.fingerprint.klass), None)
    )
    known = archive(parts)
    others = [layer for layer in LADDER if layer is not first]
    order = [first, *ordered(others, lambda layer: by_layer(known, layer))]
    failed, promoted = _tried(parts, evidence)
    order = [layer for layer in order if promoted[layer] < PROMOTED_TWICE]
    order.sort(key=lambda layer: failed[layer])  # stable: the order above where none failed
    if order and order[0] is not first:
        why = f"{why}; the {first.value} layer was tried before and did not end it"
    sites = [_site(parts, base, layer, agent, settings) for layer in order]
    return [*_faulty_tool(parts, base, runs, evidence), *sites], why


def _start(runs: Sequence[ObservedRun], klass: FailureClass | None) -> tuple[Layer, str]:
    """Where to begin, by what the runs show."""
    failing = [seen for seen in runs if not seen.passed]
    if sign := _loop_sign(runs):
        return Layer.HARNESS, f"{sign}, in most failing runs and in no passing one"
    if klass is not None and klass.layer is Layer.HARNESS:
        return Layer.HARNESS, klass.says
    ends = Counter(_end(seen) for seen in failing)
    if failing and sum(ends[end] for end in _NO_TOOL) * 2 > len(failing):
        return Layer.TOOL, "most failing runs asked for a tool that there is not"
    if failing and sum(ends[end] for end in _STOPS) * 2 > len(failing):
        return (
            Layer.SKILL,
            "most failing runs were stopped before they came to an answer: they lack a way to do it",
        )
    keys = {seen.task.key for seen in failing}
    if any(seen.passed and seen.task.key in keys for seen in runs):
        return (
            Layer.MEMORY,
            "runs of the same task pass and fail: what the passing ones did can be remembered",
        )
    return (
        Layer.MEMORY,
        "the agent's answers are wrong, and no step of a tool failed: the cheapest layer goes first",
    )


def _loop_sign(runs: Sequence[ObservedRun]) -> str:
    """What the loop itself did wrong in more than half of the failing runs, and never in a passing one."""
    signs = [(seen.passed, astray(seen.run.outcome, seen.steps)) for seen in runs]
    failing = Counter(sign for passed, sign in signs if not passed)
    for sign, count in failing.most_common(1):
        if sign and count * 2 > failing.total() and (True, sign) not in signs:
            return sign
    return ""


def _end(seen: ObservedRun) -> str:
    outcome = seen.run.outcome
    if outcome is not None and outcome.fault is not None:
        return outcome.fault.type
    return next((step.fault.type for step in reversed(seen.steps) if step.fault), "")


def _faulty_tool(
    parts: DiagnosisContext, base: Snapshot, runs: Sequence[ObservedRun], evidence: Evidence
) -> Iterator[EditTarget]:
    """The tool that the failure is named by, as one below the runs may be; else whose fault most failing runs hold."""
    failing = [seen for seen in runs if not seen.passed]
    named = evidence.fingerprint.signature.partition(" | ")[0]
    below = named.startswith(("tool/", "skill/")) and any(failed_below(seen.steps) for seen in failing)
    if below and parts.snapshots.files(base, named):
        layer = Layer.SKILL if named.startswith("skill/") else Layer.TOOL
        yield EditTarget(layer, "/".join(named.split("/")[:2]), named)
        return
    paths = Counter(path for seen in failing for path in {*_broken(seen)})
    for path, count in paths.most_common(1):
        if count * 2 > len(failing) and path in parts.snapshots.files(base, path):
            layer = Layer.SKILL if path.startswith("skill/") else Layer.TOOL
            yield EditTarget(layer, "/".join(path.split("/")[:2]), path)


def _broken(seen: ObservedRun) -> Iterator[str]:
    for step in seen.steps:
        own = step.fault is not None and step.fault.type not in {"input", "effect", "not_found", *_NO_TOOL}
        if own and isinstance(step.action, Mapping) and isinstance(step.action.get("path"), str):
            yield step.action["path"]


def _tried(parts: DiagnosisContext, evidence: Evidence) -> tuple[Counter[Layer], Counter[Layer]]:
    """By layer: evolutions of this failure that ended without success, and promotions."""
    failed: Counter[Layer] = Counter()
    promoted: Counter[Layer] = Counter()
    for past in parts.records.newest(Evolution, PAST, fingerprint_id=evidence.fingerprint.id):
        candidates = parts.records.find(Candidate, evolution_id=past.id)
        if past.state in WITHOUT_SUCCESS:
            failed.update({candidate.manifest.layer for candidate in candidates if not candidate.screened})
        elif past.state in (EvolutionState.PROMOTED, EvolutionState.PROBATION):
            promoted.update(item.manifest.layer for item in candidates if item.id == past.candidate_id)
    return failed, promoted


def _agent(parts: DiagnosisContext, base: Snapshot, name: str) -> Mapping[str, str]:
    resource = ResourceId(Kind.AGENT, name)
    try:
        return read(resource, parts.snapshots.files(base, f"{resource}/")).settings
    except Invalid:
        return {}


def _site(
    parts: DiagnosisContext, base: Snapshot, layer: Layer, agent: str, settings: Mapping[str, str]
) -> EditTarget:
    """A new skill, tool or rule is the agent's matter: what uses the agent is what it may break."""
    if layer in (Layer.SKILL, Layer.TOOL, Layer.RULE):
        return EditTarget(layer, f"agent/{agent}", "")
    name, file = {
        Layer.MEMORY: ("default", "memory.md"),
        Layer.PROMPT: (settings.get("prompt", "default"), "prompt.md"),
        Layer.HARNESS: (settings.get("harness", "default"), "harness.py"),
    }[layer]
    path = f"{layer.value}/{name}/{file}"
    return EditTarget(layer, f"{layer.value}/{name}", path if parts.snapshots.files(base, path) else "")
