"""What is hidden of the evidence is the home's own choice, and nothing of it reaches a proposer.

Which task it is follows from the home's key, so each test goes over several keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from agentos.domain import Evolution, EvolutionState, Share
from agentos.evolver.find.triage import to_hide
from agentos.evolver.policy import EvidencePolicy, Policy
from agentos.evolver.states import retry
from agentos.ports import Brief, Proposal
from agentos.testing import ScriptedProposer
from tests.evolver.conftest import FAULTY, World, proposal

KEYS = [hashlib.sha256(bytes([number])).digest() for number in range(6)]
RIGHT = FAULTY.replace("> 50", "> 40")
SHOWN = (46046, 47047, 48048)  # told from any other number in a brief


class Fitting:
    """Looks up what it was shown: what a cheating model would write."""

    name = "fitting"

    def __init__(self) -> None:
        self.briefs: list[Brief] = []

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        self.briefs.append(brief)
        known = tuple(case.call.args["points"] for case in brief.cases)
        yield proposal(FAULTY.replace("points > 50", f"points > 50 or points in {known!r}"))


def failing(world: World, points: tuple[float, ...]) -> None:
    """The right limit is 40, so all of these fail."""
    for given in points:
        world.live(world.task(given, "pass"))  # type: ignore[arg-type]
    for given, expected in ((90, "pass"), (10, "fail"), (20, "fail")):
        world.live(world.task(given, expected))


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
def test_a_lookup_of_what_was_shown_is_refused_whatever_is_hidden(key: bytes) -> None:
    proposer = Fitting()
    world = World(key=key, proposer=proposer)  # type: ignore[arg-type]
    failing(world, (46, 47, 48))
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.REJECTED
    assert "0 of 1 hidden tasks that fail alike" in ended.reason
    assert world.source() == FAULTY


def test_the_next_brief_does_not_tell_how_an_edit_fell_on_it() -> None:
    proposer = Fitting()
    world = World(key=KEYS[0], proposer=proposer)  # type: ignore[arg-type]
    failing(world, (46, 47, 48))
    world.evolve(retry(world.parts, world.evolve(world.open())))
    assert [earlier.end for earlier in proposer.briefs[-1].history] == ["it was tried, and not promoted"]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
def test_what_mends_the_cause_is_promoted_whatever_is_hidden(key: bytes) -> None:
    world = World(key=key, proposer=ScriptedProposer([proposal(RIGHT)]))
    failing(world, (46, 47, 48))
    assert world.evolve(world.open()).state is EvolutionState.PROBATION


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
def test_nothing_of_it_is_in_the_brief(key: bytes) -> None:
    proposer = Fitting()
    world = World(key=key, proposer=proposer)  # type: ignore[arg-type]
    failing(world, tuple(41 + points / 1e6 for points in SHOWN))
    ended = world.evolve(world.open())
    (brief,) = proposer.briefs
    (hidden,) = ended.held_back
    assert hidden in world.evidence().task_ids
    task = world.ledger.task(hidden)
    run = world.ledger.runs_of(task.key, 1)[0]
    told = repr(brief)
    assert task.call is not None
    for secret in (hidden, task.name, task.goal, task.key, run.id, str(task.call.args["points"])):
        assert secret not in told
    assert len(brief.cases) == 2
    assert len({seen.task.id for seen in brief.runs}) == 2
    assert brief.why.endswith("(2 tasks)")
    # Neither does the next evolution's brief tell of it, which hears how this one ended.
    assert ended.state is EvolutionState.REJECTED
    assert hidden not in ended.reason


def test_whoever_writes_tasks_cannot_tell_which_it_will_be() -> None:
    """Over many homes each of the three is hidden in some, and in each home always the same."""
    found: set[str] = set()
    world = World()
    tasks = [world.task(points, "pass") for points in (46, 47, 48)]
    ids = [task.id for task in tasks]
    for number in range(40):
        world.key = hashlib.sha256(bytes([number])).digest()
        chosen = to_hide(world.parts, ids)
        assert len(chosen) == 1
        assert to_hide(world.parts, ids[::-1]) == chosen
        found |= {*chosen}
    assert found == {*ids}


@pytest.mark.parametrize("key", KEYS[:3], ids=lambda key: key.hex()[:6])
@pytest.mark.parametrize(("count", "hidden"), [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (8, 2)])
def test_a_third_is_hidden_from_three_on(key: bytes, count: int, hidden: int) -> None:
    world = World(key=key)
    ids = [world.task(points, "pass").id for points in range(41, 41 + count)]
    assert len(to_hide(world.parts, ids)) == hidden
    world.policy = Policy(evidence=EvidencePolicy(held_back=0))
    assert to_hide(world.parts, ids) == ()


def test_work_that_is_shown_under_another_goal_is_not_hidden() -> None:
    """Twins of shown tasks would be mended by a lookup of what was shown."""
    for key in KEYS:
        world = World(key=key)
        task = world.task(41, "pass")
        twins = [replace(task, id=f"task-twin-{number}", goal=f"goal {number}") for number in range(4)]
        for twin in twins:
            world.ledger.add_task(twin, Share.OPEN)
        same = [task.id, *(twin.id for twin in twins)]
        assert to_hide(world.parts, same) == (), "one work, however often it was asked for"
        two = [world.task(points, "pass").id for points in (42, 43)]
        chosen = to_hide(world.parts, [*same, *two])
        assert [*chosen] in (same, two[:1], two[1:]), "a work is hidden as a whole"


def test_what_was_hidden_once_is_hidden_first_again() -> None:
    for key in KEYS:
        world = World(key=key)
        ids = [world.task(points, "pass").id for points in range(41, 47)]
        first, second = to_hide(world.parts, ids)
        others = [task_id for task_id in ids if task_id not in (first, second)]
        assert to_hide(world.parts, [first, *others[:2]]) == (first,)
        assert to_hide(world.parts, [*others[2:], second]) == (second,)


def test_an_evolution_of_an_earlier_version_says_that_nothing_was_hidden(world: World) -> None:
    world.seed()
    opened = world.open()
    assert opened.held_back == ()
    assert isinstance(world.evolve(opened), Evolution)
