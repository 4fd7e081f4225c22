"""What runs look up beside what they were given, in their own words: memories, and skills.

Both are read from the registry. A memory is only proposed, never written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agentos import frontmatter
from agentos.daemon.job.selection import Finder, allowed
from agentos.daemon.requests.people import readable
from agentos.daemon.requests.run_requests import Denied, RequestHandler, RunContext
from agentos.domain import Json, Kind, MemoryProposal, Snapshot, digest
from agentos.ledger.store import Ledger
from agentos.ports import Snapshots

TEXT_MAX = 2_000  # characters of a proposed memory
WHY_MAX = 500
PROPOSALS_MAX = 20  # of one run
SKILL_MAX = 8_000  # characters of one SKILL.md
_QUERY_MAX = 2_000
_MEMORIES_MAX, _SKILLS_MAX = 20, 10  # that one search finds
_DEPTH = 100  # of a ranking, in which what the agent may have and does not hold is looked for

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
        query, limit = _search(body, 5, _MEMORIES_MAX)
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


class SkillSearch:
    """Makes the answerer of one run's ``skills`` (``RunServices.answerers``)."""

    def __init__(self, finder: Finder, registry: Snapshots) -> None:
        self._finder = finder
        self._registry = registry

    def answerer(self, asking: RunContext) -> RequestHandler:
        """Of one run: over its snapshot, so that a replay finds what the run found."""
        return _SkillSearches(self._finder, self._registry, asking)


class _SkillSearches(RequestHandler):
    def __init__(self, finder: Finder, registry: Snapshots, asking: RunContext) -> None:
        self._finder = finder
        self._registry = registry
        self._asking = asking

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """{"skills": [{"name", "description", "text"}]}, best first: none that the run has, or its agent may not have."""
        query, limit = _search(body, 3, _SKILLS_MAX)
        asking = self._asking
        own = {path.split("/")[1] for path in asking.bundle.files if path.startswith(f"{Kind.SKILL}/")}
        wanted = asking.bundle.agent.get("skills", [])
        ranked = self._finder.find(asking.snapshot, query, (Kind.SKILL,), _DEPTH)
        names = [hit.resource.name for hit in ranked]
        chosen = [name for name in names if name not in own and allowed(name, wanted)][:limit]
        asking.step("skills", {"query": query, "limit": limit}, {"skills": chosen}, 0.0)
        return {"skills": [self._told(name) for name in chosen]}

    def _told(self, name: str) -> dict[str, Json]:
        path = f"{Kind.SKILL}/{name}/SKILL.md"
        text = self._registry.files(self._asking.snapshot, path).get(path, b"").decode("utf-8", "replace")
        try:
            description = frontmatter.read(text).description
        except ValueError:
            description = ""
        return {"name": name, "description": description, "text": text[:SKILL_MAX]}


def _search(body: Mapping[str, Any], usual: int, most: int) -> tuple[str, int]:
    """The query and the limit that a run asks with. Raises Denied."""
    query, limit = body.get("query"), body.get("limit", usual)
    if not isinstance(query, str) or not query.strip() or len(query) > _QUERY_MAX:
        raise Denied("request", f"a query is a text of 1 to {_QUERY_MAX:,} characters")
    if type(limit) is not int or not 1 <= limit <= most:
        raise Denied("request", f"a limit is a whole number from 1 to {most}")
    return query, limit
