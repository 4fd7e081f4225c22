"""A text that names the failing work one by one says nothing of the next: a person is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentos.domain import Candidate, Edit, Layer, Manifest, RefusalKind, Share
from agentos.evolver.guards.static import tasks_named
from agentos.evolver.policy import Policy
from agentos.evolver.propose.behaviour import behaves
from agentos.evolver.select.curate import TaskSets
from agentos.evolver.verdict.doubts import doubts
from agentos.testing import FakeRegistry
from tests.evolver.conftest import World

PATH = "prompt/desk/prompt.md"
OLD = "You do the work of a desk.\n\nAlways verify.\n"
GOALS = [
    f"For the weekly report, total the visits of week {n}: {n + 3}, {n * 7 % 11}, 12" for n in range(1, 6)
]
EACH = "".join(f"When week {n}, answer in JSON.\n" for n in range(1, 9))


@pytest.mark.parametrize(
    "added",
    [
        EACH,
        EACH.upper(),
        "For weeks 1, 2, 3, 4, 5, 6, 7 and 8 answer in JSON.\n",
        "".join(f"- the visits of week {n}: JSON\n" for n in range(1, 6)),
        "".join(f"{n}. week {n}: JSON\n" for n in range(1, 6)),
    ],
    ids=["a line each", "in capitals", "in one line", "as a list", "numbered"],
)
def test_a_text_that_lists_the_shown_work_is_told(added: str) -> None:
    assert tasks_named(OLD, OLD + added, GOALS)


@pytest.mark.parametrize(
    "added",
    [
        "When weekly report, answer in JSON.\n",
        "For the weekly report, total the visits and answer in JSON.\n",
        "1. Read the report.\n2. Total the visits.\n3. Answer in JSON, with 2 decimals.\n",
        "The report of week 1 had no JSON; answer in JSON.\n",
        "",
    ],
    ids=["by the kind of work", "in the words of all", "in steps", "an example", "nothing"],
)
def test_a_text_for_what_the_work_has_in_common_is_not(added: str) -> None:
    assert tasks_named(OLD, OLD + added, GOALS) == []


TWO = ["What is the total of order 5 in euros?", "Which notes are from May and June?"]


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ("Answer in JSON and with the unit of the amount.\n", False),
        ("Put the notes of an order before the total, with June in full.\n", False),
        ("Give the total alone.\n", False),
        ("An order: in JSON.\nNotes: in JSON.\n", True),
        ("Order 5 is in JSON. June is in JSON, too.\n", True),
    ],
)
def test_two_goals_are_named_by_more_than_words_of_one_sentence(added: str, told: bool) -> None:
    assert bool(tasks_named("# Lessons\n", f"# Lessons\n{added}", TWO)) is told


def test_what_the_text_named_before_is_not_the_edits() -> None:
    assert tasks_named(OLD + EACH, OLD + EACH + "Always answer in JSON.\n", GOALS) == []


@pytest.mark.parametrize(("added", "asks"), [(EACH, True), ("When weekly report, answer in JSON.\n", False)])
@pytest.mark.parametrize(
    "beside", [{}, {"skill/calc/tools/_rates.py": "RATE = 4\n"}], ids=["alone", "and code"]
)
def test_a_person_is_asked_about_it(world: World, added: str, asks: bool, beside: dict[str, str]) -> None:
    """Whatever else is edited, and whatever the trials say; verdicts of before had nothing of the kind on record."""
    world.registry = FakeRegistry({PATH: OLD, "skill/calc/tools/_rates.py": "RATE = 3\n"})
    for number, goal in enumerate(GOALS):
        task = replace(world.task(1, "x"), id=f"week-{number}", goal=goal, call=None)
        world.ledger.add_task(task, Share.OPEN)
    base, files = world.registry.stable(), {PATH: OLD + added, **beside}
    candidate = Candidate(
        id="cand-1", evolution_id="evo-1", proposer="model", rank=1,
        manifest=Manifest("evd", "", "", tuple(files), (), (), Layer.PROMPT, ""), edit=Edit(files, "", ""),
        base=base, snapshot=world.registry.add_candidate("cand-1", base, files),
    )  # fmt: skip
    shown = tuple(f"week-{number}" for number in range(len(GOALS)))
    behaviour, refused = behaves(world.parts, candidate, TaskSets(shown, (), (), shown))
    assert refused is None
    kinds = {doubt.kind for doubt in doubts(replace(candidate, behaviour=behaviour), [], Policy())}
    assert (RefusalKind.BY_NAME in kinds) is asks
