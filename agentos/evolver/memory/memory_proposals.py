"""What became of memories that runs proposed: one that an evolution brought into a memory waits for nobody."""

from __future__ import annotations

from dataclasses import replace

from agentos.domain import Kind, MemoryProposal, ProposalState, ResourceId, is_memory
from agentos.evolver.memory import MemoryProposalContext
from agentos.evolver.memory.lessons import id_of, lessons_in

OPEN_MAX = 100  # newest open proposals that are looked through


def settle_wishes(parts: MemoryProposalContext) -> list[MemoryProposal]:
    """Close each open proposal whose words are a lesson of a memory by now, and say which brought them."""
    waiting = parts.records.newest(MemoryProposal, OPEN_MAX, state=ProposalState.OPEN)
    known = _remembered(parts) if waiting else {}
    settled = []
    for wish in waiting:
        memory = known.get(id_of(wish.text))
        if memory is None:
            continue
        reason = _brought_by(parts, memory)
        done = replace(
            wish, state=ProposalState.ACCEPTED, decided_at=parts.now(), resource=str(memory), reason=reason
        )
        about = {"state": done.state.value, "resource": done.resource, "reason": reason}
        parts.audit.note("memory.decided", wish.id, about, (done,))
        settled.append(done)
    return settled


def _remembered(parts: MemoryProposalContext) -> dict[str, ResourceId]:
    """The memory that holds each lesson, by the id that the lesson's words give."""
    return {
        id_of(lesson.text): ResourceId(Kind.MEMORY, path.split("/")[1])
        for path, content in parts.snapshots.files(parts.snapshots.stable(), Kind.MEMORY.value).items()
        if is_memory(path)
        for lesson in lessons_in(content.decode("utf-8", "replace"))
    }


def _brought_by(parts: MemoryProposalContext, memory: ResourceId) -> str:
    newest = next(iter(parts.evolvable.versions(memory)), None)
    if newest is None or newest.evolution is None:
        return "the memory says so"
    return f"brought by {newest.evolution}"
