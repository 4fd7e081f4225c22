"""Should candidates of one evidence race? Simulated: promoted, by how much, runs spent, in rank order and side by side.

python benchmarks/bench_racing.py [--full]

Six candidates on four tasks that vary; one or two of them do good. "Early": a good one is twice as likely at a
place as at the next one, as when proposers put their best first; "anywhere": at each place alike. A race gives
every candidate pairs in turn; one that is led gives each next round to the candidate with the best mean so far
(after two rounds each). The base's runs are shared by all candidates, as the pipeline does.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from bench_judge import RULE, TASKS, Evidence, report

from agentos.evolver.verdict.paired_tests import PairedState, PairTally, improved

CANDIDATES = 6
SEED = 20260102
standing = cache(lambda found, number: improved(found, number, RULE).standing)


@dataclass
class Runner:
    """One candidate in the making of its pairs. ``number`` is its share of the error, from its first pair on."""

    effect: float
    number: int = 0
    rounds: int = 0
    counts: list[int] = field(default_factory=lambda: [0, 0, 0])  # wins, ties, losses
    now: PairedState = PairedState.OPEN

    def step(self, evidence: Evidence, numbered: int) -> int:
        """One round; the runs of the candidate in it."""
        self.number = self.number or numbered
        before = evidence.before(self.rounds)
        for chance, passed in zip(evidence.chances, before, strict=True):
            after = evidence.dice.random() < chance + self.effect
            self.counts[1 - (after - passed)] += 1
        self.rounds += 1
        wins, ties, losses = self.counts
        self.now = standing(PairTally(wins, ties, losses), self.number)
        if self.now is PairedState.OPEN and (self.rounds + 1) * TASKS > RULE.max_pairs:
            self.now = PairedState.REFUTED
        return TASKS

    @property
    def mean(self) -> float:
        return (self.counts[0] - self.counts[2]) / max(1, sum(self.counts))


Choice = Callable[[Sequence[Runner]], Runner]


def in_order(open_: Sequence[Runner]) -> Runner:
    return open_[0]


def in_turn(open_: Sequence[Runner]) -> Runner:
    return min(open_, key=lambda runner: runner.rounds)


def led(open_: Sequence[Runner]) -> Runner:
    fresh = [runner for runner in open_ if runner.rounds < RULE.min_rounds]
    return fresh[0] if fresh else max(open_, key=lambda runner: runner.mean)


def one(dice: random.Random, effects: Sequence[float], choose: Choice) -> tuple[float | None, int]:
    """The effect of what was promoted, and the runs spent on both sides."""
    evidence = Evidence(dice)
    runners = [Runner(effect) for effect in effects]
    spent = 0
    while open_ := [runner for runner in runners if runner.now is PairedState.OPEN]:
        runner = choose(open_)
        spent += runner.step(evidence, 1 + sum(item.number > 0 for item in runners))
        if runner.now is PairedState.SHOWN:
            break
    spent += TASKS * max(runner.rounds for runner in runners)
    shown = [runner.effect for runner in runners if runner.now is PairedState.SHOWN]
    return (shown[0] if shown else None), spent


def places(dice: random.Random, effects: Sequence[float], *, early: bool) -> list[float]:
    """Where the good ones stand among candidates without effect."""
    weights = [0.5**place if early else 1.0 for place in range(CANDIDATES)]
    row = [0.0] * CANDIDATES
    for effect in effects:
        (place,) = dice.choices(range(CANDIDATES), weights)
        weights[place] = 0.0
        row[place] = effect
    return row


WORLDS = {
    "none good": (),
    "one +0.4": (0.4,),
    "one +0.2": (0.2,),
    "+0.2 and +0.6": (0.2, 0.6),
    "+0.4 and +0.4": (0.4, 0.4),
}
CHOICES: dict[str, Choice] = {"rank order": in_order, "race, in turn": in_turn, "race, led": led}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="ten times as many evolutions")
    times = 10 if parser.parse_args().full else 1
    for world, effects in WORLDS.items():
        count = (300 if effects else 1200) * times  # errors are rare
        for early in (True, False) if effects else (True,):
            for name, choose in CHOICES.items():
                dice = random.Random(f"{SEED} {world} {early}")
                ends = [one(dice, places(dice, effects, early=early), choose) for _ in range(count)]
                good = [effect for effect, _ in ends if effect]
                false = sum(effect == 0.0 for effect, _ in ends) / count
                mean = f"mean effect {statistics.mean(good):.2f}" if good else ""
                report(
                    f"{world}{(', early' if early else ', anywhere') if effects else ''}: {name}",
                    f"promoted {len(good) / count:.0%}, falsely {false:.1%}",
                    f"{statistics.mean(spent for _, spent in ends):.0f} runs",
                    f"{mean}; n={count}".removeprefix("; "),
                )


if __name__ == "__main__":
    main()
