"""Diagnose: which layer and file does a failure belong to, and which steps say so?

The cheapest layer that explains the failure is named. A failure that the taxonomy calls a tool's
but that no tool's code took part in is the harness'; one that several tools share word for word is too.
Where an agent thought by itself, several layers are named in turn (``layers``).
"""

from __future__ import annotations

from agentos.domain import Diagnosis, Evidence, Fingerprint, Kind, Layer, Site, Snapshot, Task
from agentos.evolver.layers import ladder
from agentos.evolver.mining import tool_path
from agentos.evolver.parts import Parts
from agentos.evolver.policy import FailureClass
from agentos.evolver.runs import runs_of

SHARED_BY = 3  # tools that fail with one and the same message: none of them is to blame
LOOK_BACK = 500  # sightings


def diagnose(parts: Parts, evidence: Evidence, base: Snapshot) -> Diagnosis:
    """Layer, resource and file, and the reason in a sentence."""
    klass = next(item for item in parts.taxonomy if item.name == evidence.fingerprint.klass)
    tasks = parts.tasks(evidence.task_ids)
    steps = _steps(parts, evidence)
    count = f"{len(evidence.task_ids)} task{'s' if len(evidence.task_ids) > 1 else ''}"
    if tasks[-1].call is None:
        sites, why = ladder(parts, evidence, base, runs_of(parts, tasks))
        if not sites:
            why = "every layer was promoted twice for this failure, and it came back"
            return Diagnosis(Layer.HARNESS, evidence.fingerprint.resource, "", f"{why} ({count})", steps)
        first, *others = sites
        return Diagnosis(first.layer, first.resource, first.path, f"{why} ({count})", steps, tuple(others))
    site, why = _of_a_call(parts, evidence.fingerprint, base, tasks[-1], klass)
    return Diagnosis(site.layer, site.resource, site.path, f"{why} ({count})", steps)


def _of_a_call(
    parts: Parts, fingerprint: Fingerprint, base: Snapshot, task: Task, klass: FailureClass
) -> tuple[Site, str]:
    """Where a task that names its tool went wrong, and why there."""
    run = parts.journal.runs_of(task.key, 1)
    used = run[0].resources if run else ()
    path = tool_path(task.call, used)
    files = parts.snapshots.files(base, path) if path else {}
    harness = fingerprint.resource
    if not harness.startswith(f"{Kind.HARNESS.value}/"):
        harness = next(
            (name for name in used if name.startswith(f"{Kind.HARNESS.value}/")), "harness/default"
        )
    if klass.layer is Layer.HARNESS or harness == fingerprint.resource:
        why = f"the fault was raised in {harness}, not in the tool"
        return _in_harness(parts, base, harness, fingerprint), why
    if klass.layer is not Layer.TOOL:
        return Site(klass.layer, fingerprint.resource, path), klass.says
    if path not in files:
        why = f"{klass.says}, and the file {path or 'of the tool'} is not in the registry"
        return Site(Layer.AGENT, fingerprint.resource, path), why
    if shared := _shared_by(parts, fingerprint):
        why = f"{klass.says}, word for word the same in {shared} tools: what they share is {harness}"
        return _in_harness(parts, base, harness, fingerprint), why
    layer = Layer.SKILL if path.startswith("skill/") else Layer.TOOL
    why = f"{klass.says}; every failing run executed {path} and nothing else that may evolve"
    return Site(layer, "/".join(path.split("/")[:2]), path), why


def _in_harness(parts: Parts, base: Snapshot, harness: str, fingerprint: Fingerprint) -> Site:
    """The harness' file that the fault names, else the one that its runs begin in."""
    files = parts.snapshots.files(base, f"{harness}/")
    named = [path for path in files if path.endswith(".py") and path in fingerprint.signature]
    return Site(Layer.HARNESS, harness, max(named, key=len, default=f"{harness}/harness.py"))


def _shared_by(parts: Parts, fingerprint: Fingerprint) -> int:
    """How many resources failed with this message, if they are enough to clear each of them; else 0."""
    message = fingerprint.signature.rpartition(" | ")[2]
    if not message:
        return 0
    resources = {
        sighting.fingerprint.resource
        for sighting in parts.records.newest_sightings({fingerprint.klass}, LOOK_BACK)
        if sighting.fingerprint.signature.rpartition(" | ")[2] == message
    }
    return len(resources) if len(resources) >= SHARED_BY else 0


def _steps(parts: Parts, evidence: Evidence) -> tuple[str, ...]:
    """For each run of the evidence, its first step with a fault, else its last step."""
    found = []
    for run_id in evidence.run_ids:
        steps = parts.journal.steps(run_id)
        if steps:
            step = next((item for item in steps if item.fault is not None), steps[-1])
            found.append(f"{run_id}#{step.index}")
    return tuple(found)
