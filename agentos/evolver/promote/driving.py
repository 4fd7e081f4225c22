"""What runs are driven by, and which snapshots may drive them: those that passed a probe, or that somebody vouched for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentos.domain import Kind, Pass, Probe, ResourceId, Snapshot, content_sha256, digest, new_id
from agentos.evolver.states import RecordContext

if TYPE_CHECKING:
    from agentos.ports import Snapshots

DRIVING = (Kind.HARNESS, Kind.AGENT, Kind.ENVIRONMENT)  # what runs are driven by


def driving_sha256(snapshots: Snapshots, snapshot: Snapshot) -> str:
    """Identity of all that runs on the snapshot are driven by."""
    return digest([content_sha256(snapshots.files(snapshot, kind)) for kind in DRIVING])


def concerns(snapshots: Snapshots, snapshot: Snapshot, base: Snapshot) -> bool:
    """Whether runs on the snapshot are driven by something else than runs on the base."""
    return driving_sha256(snapshots, snapshot) != driving_sha256(snapshots, base)


def changed(snapshots: Snapshots, snapshot: Snapshot, base: Snapshot) -> list[ResourceId]:
    """The resources that are new in the snapshot, or another than in the base."""
    return [
        name
        for name in snapshots.names(snapshot)
        if files_of(snapshots, snapshot, name) != files_of(snapshots, base, name)
    ]


def only_adds(snapshots: Snapshots, snapshot: Snapshot, base: Snapshot) -> bool:
    """Whether all that drove runs in the base does so unchanged: what is new drives nobody's runs yet."""
    return all(
        files_of(snapshots, snapshot, name) == files_of(snapshots, base, name)
        for name in snapshots.names(base)
        if name.kind in DRIVING
    )


def files_of(snapshots: Snapshots, snapshot: Snapshot, name: ResourceId) -> Mapping[str, bytes]:
    return snapshots.files(snapshot, str(name))


def passed(parts: RecordContext, snapshot: Snapshot) -> Probe | None:
    """The probe by which the snapshot may drive runs, if there is one: the newest says so."""
    found = parts.records.find(Probe, driving_sha256=driving_sha256(parts.snapshots, snapshot))
    return found[-1] if found and found[-1].passed else None


def vouch(parts: RecordContext, snapshot: Snapshot, why: str) -> Probe:
    """Let the snapshot count as probed, on somebody's word."""
    return passed(parts, snapshot) or keep_probe(parts, snapshot, why, ProbeShown(), passed=True)


@dataclass(frozen=True, slots=True)
class ProbeShown:
    """What a probe showed, beside whether it passed."""

    evolution_id: str = ""
    passes: tuple[Pass, ...] = ()
    canaries: tuple[str, ...] = ()
    seconds: float = 0.0


def keep_probe(
    parts: RecordContext, snapshot: Snapshot, reason: str, shown: ProbeShown, *, passed: bool
) -> Probe:
    made = Probe(
        id=new_id("probe"),
        snapshot=snapshot,
        driving_sha256=driving_sha256(parts.snapshots, snapshot),
        passed=passed,
        reason=reason,
        at=parts.now(),
        evolution_id=shown.evolution_id,
        passes=shown.passes,
        canaries=shown.canaries,
        seconds=shown.seconds,
    )
    detail = {"probe": made.id, "tree": snapshot.tree, "reason": reason}
    parts.audit.note(
        f"probe.{'passed' if passed else 'failed'}", shown.evolution_id or made.id, detail, (made,)
    )
    return made
