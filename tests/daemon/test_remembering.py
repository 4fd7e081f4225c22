"""What a proposal becomes in the registry: one lesson, which holds all of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentos.daemon.people.remembering import memory_files
from agentos.domain import Kind, MemoryProposal, ResourceId
from agentos.retrieval.texts import lessons

MEMORY = ResourceId(Kind.MEMORY, "m")


@pytest.mark.parametrize(
    "text", ["Use A.\n# not B\nthen C", "Steps:\n- first\n* second\n1. third", "one\n\n  two", "# x", "- x"]
)
def test_a_proposal_of_many_lines_is_one_lesson(text: str) -> None:
    files = memory_files(MEMORY, MemoryProposal("p", "run-1", "k", text, "", datetime.now(UTC)))
    assert lessons(files, MEMORY) == [" ".join(text.split())]
