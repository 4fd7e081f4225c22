"""Who is asked first, by what was achieved for what cost; and that chance, noise and what is hidden have no part in it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from agentos.domain import (
    Attestation,
    Candidate,
    Cost,
    Evolution,
    EvolutionState,
    Layer,
    ProposerCost,
)
from agentos.errors import ModelFailed
from agentos.evolver.cycle import evolve
from agentos.evolver.history.proposers import (
    Archive,
    ProposerMeter,
    ProposerYield,
    archive,
    by_layer,
    ordered,
)
from agentos.evolver.policy import LookBack, ProposePolicy
from agentos.ports import Proposal
from agentos.testing import ScriptedProposer

if TYPE_CHECKING:
    from conftest import World

PATH = "skill/calc/tools/grade.py"
FAULTY = "def answer(points):\n    if points > 50:\n        return 'pass'\n    return 'fail'\n"
RIGHT = FAULTY.replace("> 50", ">= 50")
USELESS = FAULTY.replace("> 50", "> 51")
START = datetime(2026, 1, 1, tzinfo=UTC)
UNKNOWN = ProposerYield()


RULES = ProposePolicy()


def proposing(*sources: str, name: str = "scripted") -> ScriptedProposer:
    made = [Proposal("a cause", "an edit", "compare", {PATH: one}, "why", (), ()) for one in sources]
    return ScriptedProposer(made, name)


def order(**found: ProposerYield) -> list[str]:
    """``found`` in the order that was given."""
    return ordered(list(found), lambda name: found[name], RULES)


# --- the order ---------------------------------------------------------------------------------------


def test_before_anything_is_known_the_given_order_holds() -> None:
    assert order(c=UNKNOWN, a=UNKNOWN, b=UNKNOWN) == ["c", "a", "b"]


def test_who_costs_much_and_brings_nothing_falls_behind_but_not_at_once() -> None:
    in_vain = [ProposerYield(asked, 0, 0, 45.0 * asked) for asked in range(40)]
    places = [order(search=found, model=UNKNOWN).index("search") for found in in_vain]
    assert places == sorted(places)
    assert places[5] == 0, "a few failures are bad luck"
    assert places[-1] == 1


def test_success_is_weighed_by_what_it_costs() -> None:
    cheap, dear = ProposerYield(20, 4, 4, 200.0), ProposerYield(20, 12, 12, 12_000.0)
    assert order(dear=dear, cheap=cheap) == ["cheap", "dear"]
    good = ProposerYield(20, 12, 12, 2_000.0)
    assert order(cheap=cheap, good=good) == ["cheap", "good"]
    assert order(vain=ProposerYield(20, 0, 0, 2_000.0), good=good) == ["good", "vain"]


def test_what_was_promoted_and_did_not_stand_is_no_success() -> None:
    assert order(a=ProposerYield(10, 10, 0, 2_000.0), b=ProposerYield(10, 5, 5, 2_000.0)) == ["b", "a"]


def test_the_order_finds_sooner_than_the_worst_one_and_is_near_the_best() -> None:
    """Three proposers with chances and costs of their own: after some time, little is spent in vain."""
    dice = random.Random(7)
    chances = {"a": (0.05, 60.0), "b": (0.5, 30.0), "c": (0.6, 300.0)}

    def spent(row: Sequence[str]) -> float:
        """Expected until the first success, or the end."""
        left, total = 1.0, 0.0
        for name in row:
            total += left * chances[name][1]
            left *= 1 - chances[name][0]
        return total

    found = dict.fromkeys(chances, UNKNOWN)
    rows = []
    for _ in range(150):
        rows.append(ordered(list(chances), found.__getitem__, RULES))
        for name in rows[-1]:
            won = dice.random() < chances[name][0]
            found[name] += ProposerYield(1, won, won, chances[name][1])
            if won:
                break
    best, given = min(map(spent, itertools.permutations(chances))), spent(list(chances))
    late = sum(map(spent, rows[50:])) / 100
    assert rows[0] == ["a", "b", "c"]
    assert rows[-1][0] == "b"
    assert late < best + 0.25 * (given - best)


# --- what is counted -----------------------------------------------------------------------------------


@dataclass
class Clock:
    """Stands still unless it is moved."""

    at: datetime = START

    def __call__(self) -> datetime:
        return self.at


def test_the_time_of_a_proposer_is_its_own_also_where_it_finds_nothing() -> None:
    clock = Clock()

    def slow(count: int) -> Iterator[Proposal]:
        for _ in range(count):
            clock.at += timedelta(seconds=3)
            yield Proposal("", "", "", {}, "", (), ())
        clock.at += timedelta(seconds=1)

    def fails() -> Iterator[Proposal]:
        clock.at += timedelta(seconds=5)
        raise ModelFailed("budget", "used up")
        yield

    meter = ProposerMeter(clock)
    for _ in meter.timed("repair", Layer.TOOL, slow(2)):
        clock.at += timedelta(seconds=100)  # of the screen: not the proposer's
    assert list(meter.timed("lesson", Layer.MEMORY, slow(0))) == []
    with pytest.raises(ModelFailed):
        next(meter.timed("model", Layer.TOOL, fails()))
    assert meter.asked == (
        ProposerCost("repair", Layer.TOOL, 7.0),
        ProposerCost("lesson", Layer.MEMORY, 1.0),
        ProposerCost("model", Layer.TOOL, 5.0),
    )


def test_an_evolution_keeps_whom_it_asked_and_what_their_trials_cost(world: World) -> None:
    world.proposer = proposing(USELESS, RIGHT)
    world.seed()
    script = world.executor._script

    def costly(task: object, snapshot: object) -> object:
        done = script(task, snapshot)  # type: ignore[arg-type] # passed on
        return replace(done, outcome=replace(done.outcome, cost=Cost(cpu_s=2.0, usd=0.5)))

    world.executor._script = costly  # type: ignore[assignment]
    ended = world.evolve(world.open())
    assert ended.state is EvolutionState.PROBATION
    (asked,) = ended.asked
    own = [trial for trial in world.trials() if trial.candidate_id]
    assert (asked.proposer, asked.layer) == ("scripted", Layer.SKILL)
    assert asked.cpu_s == pytest.approx(2.0 * len(own))
    assert asked.usd == pytest.approx(0.5 * len(own))
    found = archive(world.parts)
    cost = asked.seconds + asked.cpu_s + RULES.dollar_s * asked.usd
    assert found == {("scripted", Layer.SKILL): ProposerYield(1, 1, 1, cost)}
    assert archive(world.parts) == found, "the same ledger, the same answer"


def test_live_use_and_a_rollback_have_the_last_word(world: World) -> None:
    world.seed()
    ended = world.evolve(world.open())
    key = ("scripted", Layer.SKILL)
    for verdict, stands in (("effective", 1), ("partly", 1), ("mixed", 0), ("harmful", 0)):
        world.ledger.put(Attestation("att", ended.id, (), (), (), (), verdict))
        assert (archive(world.parts)[key].promoted, archive(world.parts)[key].effective) == (1, stands)
    world.ledger.put(Attestation("att", ended.id, (), (), (), (), "effective"))
    world.ledger.put(replace(ended, state=EvolutionState.ROLLED_BACK))
    assert archive(world.parts)[key].effective == 0


@pytest.mark.parametrize("state", [EvolutionState.CANCELLED, EvolutionState.STALE, EvolutionState.REPLAYING])
def test_what_was_not_decided_counts_for_nobody(world: World, state: EvolutionState) -> None:
    world.seed()
    ended = world.evolve(world.open())
    world.ledger.put(replace(ended, state=state))
    assert archive(world.parts) == {}


def test_a_success_at_one_of_two_sites_of_a_layer_is_one_success(world: World) -> None:
    world.seed()
    ended = world.evolve(world.open())
    world.ledger.put(replace(ended, asked=(*ended.asked, *ended.asked)))
    (found,) = archive(world.parts).values()
    assert (found.asked, found.promoted, found.effective) == (2, 1, 1)


def test_looking_back_costs_the_same_in_a_large_ledger(world: World) -> None:
    world.seed()
    ended = world.evolve(world.open())
    reads: Counter[str] = Counter()

    class Counting:
        def newest(self, kind: type, limit: int, **equal: object) -> object:
            reads["newest"] += limit
            return world.ledger.newest(kind, limit, **equal)

        def __getattr__(self, name: str) -> object:
            reads[name] += 1
            return getattr(world.ledger, name)

    def look(count: int) -> tuple[Archive, Counter[str]]:
        for number in range(count):
            world.ledger.put(replace(ended, id=f"evo-{count}-{number}"))
        reads.clear()
        found = archive(replace(world.parts, records=Counting()))  # type: ignore[arg-type] # counts
        return found, Counter(reads)

    few, many = look(300), look(2_000)
    assert few == many
    assert sum(found.asked for found in many[0].values()) == LookBack().evolutions


# --- who is asked -----------------------------------------------------------------------------------


def remembered(world: World, ended: Evolution, *asked: tuple[str, float, bool]) -> None:
    """Evolutions of other failures in which these proposers were asked: seconds, and whether theirs stood."""
    winner = world.ledger.get(Candidate, str(ended.candidate_id))
    for number, (proposer, seconds, won) in enumerate(asked):
        name = f"evo-{proposer}-{number}"
        candidate = replace(winner, id=f"cand-{name}", evolution_id=name, proposer=proposer)
        world.ledger.put(candidate)
        world.ledger.put(
            replace(
                ended,
                id=name,
                fingerprint_id="of another failure",
                asked=(ProposerCost(proposer, Layer.SKILL, seconds),),
                state=EvolutionState.PROMOTED if won else EvolutionState.REJECTED,
                candidate_id=candidate.id if won else None,
                promoted=ended.promoted if won else None,
            )
        )


def test_the_proposer_that_achieved_more_for_its_cost_is_asked_first(world: World) -> None:
    world.seed()
    opened = world.open()
    first, second = proposing(USELESS, name="first"), proposing(RIGHT, name="second")

    def run(evolution: Evolution) -> Evolution:
        evolve(replace(world.parts, proposers={Layer.SKILL: (first, second)}), evolution.id, world.durable)
        return world.ledger.get(Evolution, evolution.id)

    ended = run(opened)
    assert [item.proposer for item in ended.asked] == ["first"], "in the given order; the second was spared"
    assert ended.state is EvolutionState.NO_IMPROVEMENT
    stood = replace(ended, candidate_id=world.ledger.find(Candidate)[0].id, promoted=ended.base)
    remembered(world, stood, *[("first", 90.0, False)] * 20, *[("second", 20.0, True)] * 3)
    for points in (50, 50.0):
        world.live(replace(world.task(points, "pass"), goal=f"again {points}"))  # type: ignore[arg-type]
    again = replace(opened, id="evo-again", fingerprint_id="fresh", base=world.registry.stable())
    world.ledger.put(again)
    done = run(again)
    assert done.state is EvolutionState.PROBATION
    assert [item.proposer for item in done.asked] == ["second"]


def test_layers_are_ranked_by_all_who_work_on_them() -> None:
    known = {
        ("lesson", Layer.MEMORY): ProposerYield(5, 0, 0, 900.0),
        ("model", Layer.MEMORY): ProposerYield(5, 0, 0, 900.0),
        ("model", Layer.PROMPT): ProposerYield(4, 2, 2, 100.0),
    }
    assert by_layer(known, Layer.MEMORY) == ProposerYield(10, 0, 0, 1_800.0)
    rows = ordered((Layer.MEMORY, Layer.PROMPT, Layer.SKILL), lambda layer: by_layer(known, layer), RULES)
    assert rows == [Layer.PROMPT, Layer.MEMORY, Layer.SKILL], "of the third nothing is known"


def test_a_forged_or_odd_cost_cannot_break_the_order(world: World) -> None:
    """Costs come from boxes' own accounts: none, or very large ones."""
    world.seed()
    ended = world.evolve(world.open())
    world.ledger.put(replace(ended, asked=(ProposerCost("scripted", Layer.SKILL, 0.0, 0.0, 0.0),)))
    assert order(a=archive(world.parts)["scripted", Layer.SKILL], b=UNKNOWN) == ["a", "b"]
    world.ledger.put(replace(ended, asked=(ProposerCost("scripted", Layer.SKILL, 1e300, 1e300, 1e300),)))
    assert order(a=archive(world.parts)["scripted", Layer.SKILL], b=UNKNOWN) == ["b", "a"]
