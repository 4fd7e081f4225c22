"""What runs find among the skills that they were not given: names, descriptions and texts, by their own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentos import frontmatter
from agentos.daemon.job.selection import Finder, allowed
from agentos.daemon.requests.run_requests import Denied, RequestHandler, RunContext
from agentos.domain import Json, Kind
from agentos.ports import Snapshots

_QUERY_MAX = 2_000
_FOUND_MAX = 10
TEXT_MAX = 8_000  # characters of one SKILL.md
_DEPTH = 100  # of a ranking, in which what the agent may have and does not hold is looked for


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
        query, limit = body.get("query"), body.get("limit", 3)
        if not isinstance(query, str) or not query.strip() or len(query) > _QUERY_MAX:
            raise Denied("request", f"a query is a text of 1 to {_QUERY_MAX:,} characters")
        if type(limit) is not int or not 1 <= limit <= _FOUND_MAX:
            raise Denied("request", f"a limit is a whole number from 1 to {_FOUND_MAX}")
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
        return {"name": name, "description": description, "text": text[:TEXT_MAX]}
