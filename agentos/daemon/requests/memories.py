"""What runs recall and remember: memories are read from the registry, and only proposed, never written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentos.daemon.requests.people import readable
from agentos.daemon.requests.run_requests import Denied, RequestHandler, RunContext
from agentos.domain import Json, MemoryProposal, Snapshot, digest
from agentos.ledger.store import Ledger

TEXT_MAX = 2_000  # characters of a proposed memory
WHY_MAX = 500
PROPOSALS_MAX = 20  # of one run
_QUERY_MAX = 2_000
_FOUND_MAX = 20

# The memories of a snapshot that fit a text, at most so many, best first: {"id", "text", "score"}.
Recall = Callable[[Snapshot, str, int], Sequence[Mapping[str, Json]]]


class Memories:
    """Makes the answerers of what each run recalls and would remember (``RunServices.answerers``)."""

    def __init__(self, ledger: Ledger, recall: Recall) -> None:
        self._ledger = ledger
        self._recall = recall

    def recalling(self, asking: RunContext) -> RequestHandler:
        """Of one run's ``recall``."""
        return _Recalls(self._recall, asking)

    def remembering(self, asking: RunContext) -> RequestHandler:
        """Of one run's ``remember``."""
        return _Proposals(self._ledger, asking)


class _Recalls(RequestHandler):
    """One run's searches. They go over its snapshot, so that a replay finds what the run found."""

    def __init__(self, recall: Recall, asking: RunContext) -> None:
        self._recall = recall
        self._asking = asking

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """{"memories": [{"id", "text", "score"}]}."""
        query, limit = body.get("query"), body.get("limit", 5)
        if not isinstance(query, str) or not query.strip() or len(query) > _QUERY_MAX:
            raise Denied("request", f"a query is a text of 1 to {_QUERY_MAX:,} characters")
        if type(limit) is not int or not 1 <= limit <= _FOUND_MAX:
            raise Denied("request", f"a limit is a whole number from 1 to {_FOUND_MAX}")
        found = [dict(memory) for memory in self._recall(self._asking.snapshot, query, limit)]
        seen = [memory["id"] for memory in found]
        self._asking.step("recall", {"query": query, "limit": limit}, {"memories": seen}, 0.0)
        return {"memories": found}


class _Proposals(RequestHandler):
    """What one run would remember."""

    def __init__(self, ledger: Ledger, asking: RunContext) -> None:
        self._ledger = ledger
        self._asking = asking
        self._seen: set[str] = set()

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """{"proposed": id}. In a trial nothing is stored, which the run cannot tell."""
        text, why = body.get("text"), body.get("why", "")
        if not isinstance(text, str) or not readable(text) or len(text) > TEXT_MAX:
            raise Denied("request", f"a memory is a text of 1 to {TEXT_MAX:,} characters")
        if not isinstance(why, str) or len(why) > WHY_MAX:
            raise Denied("request", f"a reason has at most {WHY_MAX} characters")
        text, why = map(self._asking.redact, (readable(text), readable(why)))
        proposal_id = f"proposal-{digest(['memory', normalised(text)])[:13]}"
        self._seen.add(proposal_id)
        if len(self._seen) > PROPOSALS_MAX:
            raise Denied("limit", f"a run may propose {PROPOSALS_MAX} memories, no more")
        if not self._asking.plan.replays:
            asking, now = self._asking, datetime.now(UTC)
            self._ledger.keep(MemoryProposal(proposal_id, asking.run_id, asking.task.key, text, why, now))
        self._asking.step("remember", {"text": text, "why": why}, {"proposed": proposal_id}, 0.0)
        return {"proposed": proposal_id}


def normalised(text: str) -> str:
    """Equal for texts that differ in spaces, case and closing marks only."""
    return " ".join(text.casefold().split()).rstrip(" .!;,")
