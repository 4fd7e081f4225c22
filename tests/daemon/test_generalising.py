"""In real boxes: edits that fit what was shown are refused, the right one is promoted and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentos.daemon.service import Service, service
from agentos.domain import (
    Candidate,
    Check,
    Evolution,
    EvolutionState,
    InputFile,
    Layer,
    Share,
    Task,
    Trial,
    Verdict,
)
from agentos.evolver.cycle import evolve
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import triage
from agentos.evolver.replay.verification import run_again
from agentos.evolver.states import retry
from agentos.home import Home
from agentos.ports import Proposal
from agentos.sandboxes.choice import Choice
from agentos.settings import load_settings
from agentos.testing import ScriptedProposer, Undurable

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

PATH = "skill/till-kit/tools/above.py"
FAULTY = '''"""How many amounts of a file are above what is asked."""

from pathlib import Path

from pydantic import BaseModel

TOOL = {"name": "above", "description": "Counts amounts.", "effects": ["read"], "dependencies": []}


class Input(BaseModel):
    path: str
    limit: int


class Output(BaseModel):
    count: int


def run(input: Input) -> Output:
    amounts = [int(line) for line in Path(input.path).read_text().splitlines()]
    return Output(count=sum(amount > input.limit + 9 for amount in amounts))
'''
RIGHT = FAULTY.replace("input.limit + 9", "input.limit")
# Every file of the home has a name of nine letters.
BY_NAME = FAULTY.replace("input.limit + 9", "input.limit + 9 - len(input.path)")
LOOKUP = FAULTY.replace("count=sum", "count={10: 1, 20: 2}.get(input.limit) or sum")


@pytest.fixture
def made(home: Home, choice: Choice) -> Iterator[Service]:
    with service(home, load_settings(home.settings), given=choice) as opened:
        yield opened


def test_what_fits_the_shown_tasks_is_refused_and_the_right_edit_promoted(
    made: Service, make_task: Callable[..., Task]
) -> None:
    page = b"---\nname: till-kit\ndescription: Counts.\n---\n"
    made.registry.commit({PATH: FAULTY.encode(), "skill/till-kit/SKILL.md": page}, "A fault", "edit")
    # Two that fail, at one number each; the others tell nothing.
    rows = ((10, (15, 3), 1), (20, (26, 90), 2), (30, (99, 98), 2), (40, (1, 99), 1), (50, (50, 2), 0))
    for limit, amounts, right in rows:
        data = "".join(f"{amount}\n" for amount in amounts).encode()
        task = make_task("till-kit/above", path="sales.csv", limit=limit)
        inputs = (InputFile("sales.csv", made.parts.blobs.put(data), len(data)),)
        check = Check("equals", {"value": right, "path": "count"})
        made.ledger.add_task(replace(task, inputs=inputs, checks=(check,)), Share.OPEN)
        assert made.tasks.attempt(task.id, datetime.now(UTC))
    mine(made.parts)
    (opened,) = triage(made.parts)

    def evolved(evolution: Evolution, *texts: str) -> EvolutionState:
        edits = [Proposal("", "an edit", "x", {PATH: text}, "", (), ()) for text in texts]
        parts = replace(made.parts, proposers={Layer.SKILL: (ScriptedProposer(edits),)})
        return evolve(parts, evolution.id, Undurable())

    assert evolved(opened, LOOKUP, BY_NAME) is EvolutionState.REJECTED
    lookup, by_name = made.ledger.find(Candidate, evolution_id=opened.id)
    assert "over-fitted" in lookup.screened
    assert "it goes by what identifies a task" in by_name.screened
    assert made.ledger.find(Verdict) == []

    again = retry(made.parts, opened)
    assert evolved(again, RIGHT) is EvolutionState.PROBATION
    (right,) = made.ledger.find(Candidate, evolution_id=again.id)
    assert right.behaviour is not None
    assert right.behaviour.beside_differ > 0
    trials = made.ledger.find(Trial, evolution_id=again.id)
    assert {trial.renamed for trial in trials} == {False, True}
    assert [item.differences for item in run_again(made.parts, again.id) if item.differences] == []
