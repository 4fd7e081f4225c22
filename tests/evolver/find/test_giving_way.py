"""A small home, in which chance hid most of what fails: the hold-out gives way, for good, and says so."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from agentos.domain import Evolution, EvolutionState, Share, TrialSet
from agentos.errors import ErrorKind, UserError
from agentos.evolver.find.mining import flag, mine
from agentos.evolver.find.triage import CURSOR, GIVEN, triage
from agentos.testing import ScriptedProposer
from tests.evolver.conftest import FAULTY, World, proposal
from tests.refusals import raises

RIGHT = FAULTY.replace("> 50", "> 40")
KEYS = [hashlib.sha256(bytes([number])).digest() for number in range(4)]


def live(world: World, points: int, expected: str = "pass", *, hidden: bool = False) -> None:
    share = Share.HOLD_OUT if hidden else Share.OPEN
    world.live(world.task(points, expected, share), share)


def small(world: World) -> None:
    """Three tasks that fail, two of them hidden; and a few that pass."""
    for points, expected in ((90, "pass"), (10, "fail"), (20, "fail")):
        live(world, points, expected)
    live(world, 46)
    live(world, 47, hidden=True)
    live(world, 48, hidden=True)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.hex()[:6])
def test_two_of_three_hidden_keep_nothing_from_opening(key: bytes) -> None:
    world = World(key=key, proposer=ScriptedProposer([proposal(RIGHT)]))
    small(world)
    opened = world.open()
    assert len(opened.given) == 2
    (note,) = [note for note in world.ledger.notes if note.event == "hold_out.gave_way"]
    assert note.detail == {"evolution": opened.id, "tasks": list(opened.given), "of": 3}
    ended = world.evolve(opened)
    assert ended.state is EvolutionState.PROBATION
    assert len(ended.held_back) == 1, "of the three one is hidden again"
    sets = {trial.set for trial in world.trials() if trial.task_id in opened.given}
    assert sets == {TrialSet.EVIDENCE}, "what was given away is in no hold-out"
    (brief,) = world.proposer.briefs
    assert len(brief.cases) == 2
    assert not {case.task_id for case in brief.cases} & {*ended.held_back}


def test_what_was_given_stays_given(world: World) -> None:
    small(world)
    opened = world.open()
    world.evolve(opened)
    world.live(world.ledger.task(opened.given[0]), Share.HOLD_OUT)  # fails again: nothing was promoted
    assert mine(world.parts) == 1, "it is seen as any open failure"
    hidden = world.live(world.task(49, "pass", Share.HOLD_OUT), Share.HOLD_OUT)
    assert mine(world.parts) == 0
    with raises(UserError, ErrorKind.HIDDEN):
        flag(world.parts, hidden)


def test_what_a_killed_triage_was_to_show_is_in_no_hold_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(world)
    mine(world.parts)
    advance = world.ledger.advance

    def killed(name: str, *position: Any, **more: Any) -> None:
        if name == CURSOR:
            before.extend(name for name in world.ledger._cursors if name.startswith(GIVEN))
        advance(name, *position, **more)
        if name == CURSOR:
            raise SystemExit

    before: list[str] = []
    monkeypatch.setattr(world.ledger, "advance", killed)
    with pytest.raises(SystemExit):
        triage(world.parts)
    (opened,) = world.ledger.find(Evolution)
    tasks = [world.ledger.task(task_id) for task_id in opened.given]
    assert {GIVEN + task.key for task in tasks} == {*before}


def test_what_a_killed_triage_gave_away_is_on_record(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    small(world)
    mine(world.parts)
    advance = world.ledger.advance

    def killed(name: str, *position: Any, **more: Any) -> None:
        if name == CURSOR:
            raise SystemExit
        advance(name, *position, **more)

    with monkeypatch.context() as patched:
        patched.setattr(world.ledger, "advance", killed)
        with pytest.raises(SystemExit):
            triage(world.parts)
    (note,) = [note for note in world.ledger.notes if note.event == "hold_out.gave_way"]
    (again,) = triage(world.parts)
    assert isinstance(note.detail, dict)
    assert {*note.detail["tasks"]} < {*world.evidence().task_ids}
    assert again.given == (), "they are open by now"


def test_where_open_ones_suffice_nothing_is_given(world: World) -> None:
    small(world)
    live(world, 45)
    opened = world.open()
    assert opened.given == ()
    assert len(world.evidence().task_ids) == 2
    assert [note for note in world.ledger.notes if note.event == "hold_out.gave_way"] == []


def test_no_more_is_given_than_it_takes(world: World) -> None:
    for points in range(41, 48):
        live(world, points, hidden=True)
    (opened,) = _opened(world)
    assert len(opened.given) == 3
    assert [world.ledger.task(task_id).name for task_id in opened.given] == [
        "41 points",
        "42 points",
        "43 points",
    ]


def test_what_is_mended_is_given_nothing_for_one_failure_more(world: World) -> None:
    world.proposer = ScriptedProposer([proposal(FAULTY.replace("> 50", "> 45"))])
    small(world)
    assert world.evolve(world.open()).state is EvolutionState.PROBATION
    live(world, 44, hidden=True)
    assert _opened(world) == []
    live(world, 43, hidden=True)
    (again,) = _opened(world)
    assert len(again.given) == 2


def test_one_hidden_task_that_fails_twice_is_a_failure_that_recurs(world: World) -> None:
    live(world, 46, hidden=True)
    assert _opened(world) == []
    live(world, 46, hidden=True)
    (opened,) = _opened(world)
    assert [world.ledger.task(task_id).name for task_id in opened.given] == ["46 points"]


def _opened(world: World) -> list[Evolution]:
    mine(world.parts)
    return triage(world.parts)
