"""Which tools, skills, memories and agents a task without a call gets: what its agent may have, and of
that the part that fits the goal where all of it would be too much for a model to look at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from agentos import frontmatter
from agentos.domain import Json, Kind, ResourceId, SearchHit, Snapshot

# More than these, and the goal decides. A model's choice of tools gets worse with their number.
MOST: Mapping[Kind, int] = {Kind.TOOL: 24, Kind.SKILL: 12, Kind.MEMORY: 12}


# What other agents call the tools that ship here.
_ELSEWHERE: Mapping[str, str] = {
    "bash": "shell",
    "read": "read-file",
    "write": "write-file",
    "edit": "edit-file",
    "multiedit": "edit-file",
    "grep": "search-files",
    "glob": "list-files",
    "ls": "list-files",
}


class Finder(Protocol):
    """Ranks resources by a text (``retrieval.index.Index``)."""

    @property
    def plugin(self) -> str:
        """The label of the plug-in that ranks, "" where none does."""
        ...

    def find(self, snapshot: Snapshot, query: str, kinds: Sequence[Kind], limit: int) -> Sequence[SearchHit]:
        """The same answer for the same snapshot and text, always. Raises Unavailable."""
        ...


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a run is about, and who is to do it."""

    snapshot: Snapshot
    goal: str
    agent: str
    settings: Mapping[str, Json]  # the agent's


@dataclass(frozen=True, slots=True)
class Selection:
    """What the run gets, sorted, and what its agent names that the snapshot does not have."""

    resources: Sequence[ResourceId]
    missing: Sequence[ResourceId]
    more_skills: int = 0  # that the agent may have as well


def select(
    wish: RunRequest, names: Sequence[ResourceId], finder: Finder | None, most: Mapping[Kind, int] = MOST
) -> Selection:
    """The selection from all ``names`` of the snapshot; without a finder everything that is allowed.

    What the agent names outright is always there; what it allows by a pattern (``*``, ``csv-*``) is
    there as long as there is little of it. A memory is allowed to all.
    """
    resources: set[ResourceId] = set()
    missing: list[ResourceId] = []
    more_skills = 0
    for kind, key in (
        (Kind.TOOL, "tools"),
        (Kind.SKILL, "skills"),
        (Kind.AGENT, "agents"),
        (Kind.MEMORY, ""),
    ):
        wanted = [_as_name(kind, text) for text in wish.settings[key]] if key else ["*"]
        there = {found.name for found in names if found.kind is kind}
        named = {name for name in wanted if not _is_pattern(name)}
        missing += [ResourceId(kind, name) for name in sorted(named - there)]
        may_have = {name for name in there if allowed(name, wanted)}
        given = may_have
        if kind is Kind.AGENT:
            given = may_have - {wish.agent}
        elif finder is not None and len(may_have) > most[kind]:
            # all that fit, where not all is allowed: the best may be among what the agent may not have
            limit = most[kind] if may_have == there else len(there)
            found = finder.find(wish.snapshot, wish.goal, (kind,), limit)
            fitting = [item.resource.name for item in found if item.resource.name in may_have]
            given = {*fitting[: most[kind]], *(named & there)}
        if kind is Kind.SKILL:
            more_skills = len(may_have - given)
        resources |= {ResourceId(kind, name) for name in given}
    return Selection(sorted(resources), missing, more_skills)


def allowed(name: str, wanted: Sequence[str]) -> bool:
    """Whether an agent that wants these names and patterns may have it."""
    return any(fnmatchcase(name, pattern) for pattern in wanted)


def allowed_tools(wish: RunRequest, names: Sequence[ResourceId], texts: Sequence[str]) -> set[ResourceId]:
    """The tools that the ``SKILL.md`` of selected skills name in ``allowed-tools``, of those that the agent may have."""
    there = {found.name for found in names if found.kind is Kind.TOOL}
    may_have = [_as_name(Kind.TOOL, text) for text in wish.settings["tools"]]
    found: set[ResourceId] = set()
    for text in texts:
        try:
            said = frontmatter.read(text).tools or ()
        except ValueError:
            continue
        for word in said:
            name = re.sub(r"[^a-z0-9]+", "-", word.partition("(")[0].lower()).strip("-")
            name = _ELSEWHERE.get(name, name)
            if name in there and allowed(name, may_have):
                found.add(ResourceId(Kind.TOOL, name))
    return found


def _as_name(kind: Kind, text: str) -> str:
    """Tools are called with ``_`` and stored with ``-``."""
    return text.replace("_", "-") if kind is Kind.TOOL else text


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")
