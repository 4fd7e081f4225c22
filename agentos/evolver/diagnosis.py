"""Diagnose: which layer and file does a failure belong to, and which steps say so?

The cheapest layer that explains the failure is named. A failure that the taxonomy calls a tool's
but that no tool's code took part in is the harness'; one that several resources share is too.
"""

from __future__ import annotations

from agentos.domain import Diagnosis, Evidence, Kind, Layer, Snapshot
from agentos.evolver.mining import tool_path
from agentos.evolver.parts import Parts


def diagnose(parts: Parts, evidence: Evidence, base: Snapshot) -> Diagnosis:
    """Layer, resource and file, and the reason in a sentence."""
    fingerprint = evidence.fingerprint
    klass = next(item for item in parts.taxonomy if item.name == fingerprint.klass)
    tasks = parts.tasks(evidence.task_ids)
    run = parts.journal.runs_of(tasks[-1].key, 1)
    used = run[0].resources if run else ()
    path = tool_path(tasks[-1].call, used)
    files = parts.snapshots.files(base, path) if path else {}
    steps = _steps(parts, evidence)
    count = f"{len(evidence.task_ids)} task{'s' if len(evidence.task_ids) > 1 else ''}"

    if klass.layer is not Layer.TOOL:
        why = f"{klass.says} ({count})"
        return Diagnosis(klass.layer, fingerprint.resource, path, why, steps)
    if path not in files:
        why = f"{klass.says}, and the file {path or 'of the tool'} is not in the registry ({count})"
        return Diagnosis(Layer.AGENT, fingerprint.resource, path, why, steps)
    resource = "/".join(path.split("/")[:2])
    if fingerprint.resource.startswith(f"{Kind.HARNESS.value}/"):
        why = f"the fault was raised in {fingerprint.resource}, not in the tool ({count})"
        return Diagnosis(Layer.HARNESS, fingerprint.resource, fingerprint.resource, why, steps)
    layer = Layer.SKILL if path.startswith("skill/") else Layer.TOOL
    why = f"{klass.says}; every failing run executed {path} and nothing else that may evolve ({count})"
    return Diagnosis(layer, resource, path, why, steps)


def _steps(parts: Parts, evidence: Evidence) -> tuple[str, ...]:
    """For each run of the evidence, its first step with a fault, else its last step."""
    found = []
    for run_id in evidence.run_ids:
        steps = parts.journal.steps(run_id)
        if steps:
            step = next((item for item in steps if item.fault is not None), steps[-1])
            found.append(f"{run_id}#{step.index}")
    return tuple(found)
