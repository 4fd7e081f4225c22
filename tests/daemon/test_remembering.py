"""What a proposal becomes in the registry: one lesson, which holds all of it."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime

import pytest

from agentos.daemon.people.remembering import accept, memory_files, turn_down
from agentos.domain import Kind, MemoryProposal, ResourceId
from agentos.errors import Conflict
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.retrieval.texts import lessons

MEMORY = ResourceId(Kind.MEMORY, "m")


@pytest.mark.parametrize(
    "text", ["Use A.\n# not B\nthen C", "Steps:\n- first\n* second\n1. third", "one\n\n  two", "# x", "- x"]
)
def test_a_proposal_of_many_lines_is_one_lesson(text: str) -> None:
    files = memory_files(MEMORY, MemoryProposal("p", "run-1", "k", text, "", datetime.now(UTC)))
    assert lessons(files, MEMORY) == [" ".join(text.split())]


@pytest.mark.parametrize("other", ["turned down", "accepted"])
def test_who_accepts_what_was_answered_meanwhile_leaves_no_memory(home: Home, other: str) -> None:
    proposal = MemoryProposal("mem-1", "run-1", "k", "Mind the header.", "", datetime.now(UTC))
    with closing(Ledger(home.ledger)) as ledger:
        ledger.put(proposal)
    if other == "accepted":
        first = accept(home, proposal, "ada", "one")
    else:
        turn_down(home, proposal, "it is wrong")
    with pytest.raises(Conflict):
        accept(home, proposal, "bob", "two")
    registry = Registry(home.registry)
    memories = [found.name for found in registry.names(registry.stable()) if found.kind is Kind.MEMORY]
    assert "two" not in memories
    if other == "accepted":
        assert accept(home, proposal, "bob", "one") == first, "the same again changes nothing"
        assert "one" in memories
