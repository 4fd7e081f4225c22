"""How often each version of a resource was used: each run counts once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from agentos.domain import Kind, Outcome, ResourceId, Result, Run, Share, Snapshot, Version
from agentos.web.pages.resources import _lines

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SKILL = ResourceId(Kind.SKILL, "calc")


def version(number: int, digest: str) -> Version:
    at = NOW + timedelta(days=number)
    return Version(SKILL, f"1.{number}.0", f"commit-{number}", digest, None, "", at, "edit")


def run(day: float, commit: str) -> Run:
    at = NOW + timedelta(days=day)
    outcome = Outcome(Result.PASSED, 1.0, "")
    snapshot = Snapshot(commit, "t")
    return Run("run-1", "t", "k", Share.OPEN, 1, snapshot, "x", "y", at, at, outcome, None, (), (str(SKILL),))


def test_of_versions_that_are_alike_the_one_that_was_there_counts() -> None:
    versions = [version(3, "a"), version(2, "b"), version(1, "a")]  # the third takes the second back
    digests = {"commit-1": "a", "commit-2": "b", "commit-3": "a"}
    runs = [run(1.5, "commit-1"), run(1.6, "commit-1"), run(2.5, "commit-2"), run(3.5, "commit-3")]
    site: Any = SimpleNamespace(
        reader=SimpleNamespace(recent_runs=lambda name, most: runs),
        registry=SimpleNamespace(digests=lambda snapshot: {SKILL: digests[snapshot.commit]}),
    )
    counted = [(line.version.number, line.runs) for line in _lines(site, SKILL, versions)]
    assert counted == [("1.3.0", 1), ("1.2.0", 1), ("1.1.0", 2)]
