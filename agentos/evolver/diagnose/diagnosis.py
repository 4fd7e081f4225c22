"""Diagnose: which layer and file does a failure belong to, and which steps say so?

The cheapest layer that explains the failure is named. A failure that the taxonomy calls a tool's
but that no tool's code took part in is the harness'; one that several tools share word for word is too.
Where an agent thought by itself, several layers are named in turn (``layers``).
"""

from __future__ import annotations

from agentos.domain import (
    Diagnosis,
    EditTarget,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Kind,
    Layer,
    Snapshot,
    Task,
)
from agentos.evolver.diagnose import DiagnosisContext
from agentos.evolver.diagnose.layer_order import PROMOTED_TWICE, ladder
from agentos.evolver.find.agent_failures import failed_below, telling_step
from agentos.evolver.find.harness_signs import ANOTHER_ORDER, SOMETHING_ELSE
from agentos.evolver.find.holding_back import runs_of
from agentos.evolver.find.mining import tool_path
from agentos.evolver.policy import FailureClass
from agentos.programs import MANIFEST

SHARED_BY = 3  # tools that fail with one and the same message: none of them is to blame
LATELY = 20  # promotions of a resource that are looked at


def diagnose(parts: DiagnosisContext, evidence: Evidence, base: Snapshot) -> Diagnosis:
    """Layer, resource and file, and the reason in a sentence."""
    klass = next(item for item in parts.taxonomy if item.name == evidence.fingerprint.klass)
    tasks = parts.tasks(evidence.task_ids)
    steps = _steps(parts, evidence, called=tasks[-1].call is not None)
    count = f"{len(evidence.task_ids)} task{'s' if len(evidence.task_ids) > 1 else ''}"
    if tasks[-1].call is None:
        sites, why = ladder(parts, evidence, base, runs_of(parts, tasks))
        if not sites:
            why = "every layer was promoted twice for this failure, and it came back"
            return Diagnosis(Layer.HARNESS, evidence.fingerprint.resource, "", f"{why} ({count})", steps)
        if below := _below(parts, evidence):
            why = below
        first, *others = sites
        return Diagnosis(first.layer, first.resource, first.path, f"{why} ({count})", steps, tuple(others))
    sites, why = _of_a_call(parts, evidence, base, tasks[-1], klass)
    first, *others = sites
    return Diagnosis(first.layer, first.resource, first.path, f"{why} ({count})", steps, tuple(others))


def _of_a_call(
    parts: DiagnosisContext, evidence: Evidence, base: Snapshot, task: Task, klass: FailureClass
) -> tuple[list[EditTarget], str]:
    """Where a task that names its tool went wrong, the likeliest first, and why there."""
    fingerprint = evidence.fingerprint
    run = parts.journal.runs_of(task.key, 1)
    used = run[0].resources if run else ()
    path = _tool_file(parts, base, tool_path(task.call, used))
    files = parts.snapshots.files(base, path) if path else {}
    harness = fingerprint.resource
    if not harness.startswith(f"{Kind.HARNESS.value}/"):
        harness = next(
            (name for name in used if name.startswith(f"{Kind.HARNESS.value}/")), "harness/default"
        )
    in_harness = _in_harness(parts, base, harness, fingerprint)
    if klass.layer is Layer.HARNESS or harness == fingerprint.resource:
        return [in_harness], _why_harness(fingerprint, harness)
    if klass.layer is not Layer.TOOL:
        return [EditTarget(klass.layer, fingerprint.resource, path)], klass.says
    if path not in files:
        why = f"{klass.says}, and the file {path or 'of the tool'} is not in the registry"
        return [EditTarget(Layer.AGENT, fingerprint.resource, path)], why
    if shared := _shared_by(parts, fingerprint):
        why = f"{klass.says}, word for word the same in {shared} tools: what they share is {harness}"
        return [in_harness], why
    layer = Layer.SKILL if path.startswith("skill/") else Layer.TOOL
    tool = EditTarget(layer, "/".join(path.split("/")[:2]), path)
    if _promotions(parts, tool.resource, klass) >= PROMOTED_TWICE:
        why = (
            f"{klass.says}, after {PROMOTED_TWICE} promotions of {tool.resource} for such: "
            f"the fault lies deeper, in {harness}"
        )
        return [in_harness, tool], why
    if node := _outside_tools(parts, evidence):
        why = f"{klass.says}; {tool.resource} gave an answer, and the step '{node}' of {harness} refused it"
        return [tool, in_harness], why
    why = f"{klass.says}; every failing run executed {path} and nothing else that may evolve"
    return [tool], why


def _tool_file(parts: DiagnosisContext, base: Snapshot, path: str) -> str:
    """The file of the tool: its source, or the document of one that is a program or has a server."""
    document = f"{path.removesuffix('.py')}/{MANIFEST}"
    known = parts.snapshots.files(base, path.removesuffix(".py")) if path.endswith(".py") else {}
    return document if document in known else path


def _below(parts: DiagnosisContext, evidence: Evidence) -> str:
    """Which agent below the failing runs failed first, in a sentence; "" where none did."""
    agents = {
        handed[0].agent
        for run_id in evidence.run_ids
        if (handed := failed_below(parts.journal.steps(run_id)))
    }
    names = ", ".join(f"{Kind.AGENT.value}/{name}" for name in sorted(agents))
    return (
        f"it failed at {names}, which was handed a part, in {evidence.fingerprint.resource}" if names else ""
    )


def _why_harness(fingerprint: Fingerprint, harness: str) -> str:
    message = fingerprint.signature.rpartition(" | ")[2]
    if message in (ANOTHER_ORDER, SOMETHING_ELSE):
        return f"{message}: every tool did its part, and {harness} puts it together"
    return f"the fault was raised in {harness}, not in the tool"


def _outside_tools(parts: DiagnosisContext, evidence: Evidence) -> str:
    """The node of the step that failed in every run though no call did; "" where there is none."""
    nodes = set()
    for run_id in evidence.run_ids:
        steps = parts.journal.steps(run_id)
        faulty = next((step for step in steps if step.fault is not None), None)
        nodes.add(faulty.node if faulty and any(step.node == "act" for step in steps) else "act")
    return nodes.pop() if len(nodes) == 1 and "act" not in nodes else ""


def _promotions(parts: DiagnosisContext, resource: str, klass: FailureClass) -> int:
    """Standing promotions of the resource for failures of this class, of late."""
    standing = [
        evolution
        for state in (EvolutionState.PROBATION, EvolutionState.PROMOTED)
        for evolution in parts.records.newest(Evolution, LATELY, resource=resource, state=state)
    ]
    classes = [parts.records.get(Evidence, item.evidence_id).fingerprint.klass for item in standing]
    return classes.count(klass.name)


def _in_harness(
    parts: DiagnosisContext, base: Snapshot, harness: str, fingerprint: Fingerprint
) -> EditTarget:
    """The harness' file that the fault names, else the one that its runs begin in."""
    files = parts.snapshots.files(base, f"{harness}/")
    named = [path for path in files if path.endswith(".py") and path in fingerprint.signature]
    return EditTarget(Layer.HARNESS, harness, max(named, key=len, default=f"{harness}/harness.py"))


def _shared_by(parts: DiagnosisContext, fingerprint: Fingerprint) -> int:
    """How many resources failed with this message, if they are enough to clear each of them; else 0."""
    message = fingerprint.signature.rpartition(" | ")[2]
    if not message:
        return 0
    resources = {
        sighting.fingerprint.resource
        for sighting in parts.records.newest_sightings({fingerprint.klass}, parts.policy.look_back.alike)
        if sighting.fingerprint.signature.rpartition(" | ")[2] == message and not sighting.hidden
    }
    return len(resources) if len(resources) >= SHARED_BY else 0


def _steps(parts: DiagnosisContext, evidence: Evidence, *, called: bool) -> tuple[str, ...]:
    """For each run of the evidence, the step by which its failure is told."""
    found = []
    for run_id in evidence.run_ids:
        if steps := parts.journal.steps(run_id):
            found.append(f"{run_id}#{telling_step(steps, called=called)}")
    return tuple(found)
