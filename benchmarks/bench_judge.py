"""The judge for noisy outcomes, simulated: false promotions, power, and what the trials cost, beside other rules.

python benchmarks/bench_judge.py [--full] [--only TEXT] [--processes N] [--evolutions N]

An evolution has four evidence tasks whose base passes with a chance drawn from 0 to 0.6, and a candidate
that passes each of them by the effect more often. "Of 20" tries twenty such candidates one after another until
one is accepted, on shared trials of the base. ``--full`` simulates five times as many (some minutes).

Then come whole evolutions through the product's own code (``dice``): promotions of edits that change nothing, with
1, 5, 20, and 5 edits in each of 4 evolutions of one failure, and of edits that repair it. As many as
``--evolutions`` says for each row; 2,000 take some hours in all. ``--only`` chooses rows by a part of their name.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial

import dice

from agentos.domain import Decision, TrialSet
from agentos.evolver.policy import Judge
from agentos.evolver.verdict.paired_tests import (
    MeasuredSet,
    Pair,
    PairCost,
    PairedState,
    PairTally,
    decide,
    improved,
    log_e_above,
)

RULE = Judge()
TASKS, SEED = 4, 20260101
STEPS = (8, 16, 32, 64, 128, 240)
EFFECTS = (0.1, 0.2, 0.4)

standing = cache(lambda found, number: improved(found, number, RULE).standing)


def report(what: str, value: str, beside: str, remarks: str) -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


@dataclass
class Evidence:
    """Chances of the tasks on the base, and the base's outcomes, which all candidates share."""

    dice: random.Random
    chances: list[float] = field(default_factory=list)
    base: list[list[bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.chances:
            self.chances = [self.dice.uniform(0, 0.6) for _ in range(TASKS)]

    def before(self, round_: int) -> list[bool]:
        while len(self.base) <= round_:
            self.base.append([self.dice.random() < chance for chance in self.chances])
        return self.base[round_]

    def rounds(self, effect: float, stop: int) -> Iterator[list[Pair]]:
        """Round after round of pairs with a candidate of this effect, until a set of ``stop`` pairs is full."""
        for number in range(stop // len(self.chances)):
            before = self.before(number)
            after = [self.dice.random() < chance + effect for chance in self.chances]
            yield list(zip(before, after, strict=True))


# --- rules: from evidence, effect and the candidate's number to (accepted, pairs spent) ---------

Acceptance = Callable[[Evidence, float, int], tuple[bool, int]]


def sequential(evidence: Evidence, effect: float, number: int, *, divided: bool = True) -> tuple[bool, int]:
    """Ours: bets, the error divided among candidates unless told otherwise."""
    wins = ties = losses = 0
    for pairs in evidence.rounds(effect, RULE.max_pairs):
        for before, after in pairs:
            wins, ties, losses = wins + (after > before), ties + (after == before), losses + (after < before)
        now = standing(PairTally(wins, ties, losses), number if divided else 1)
        if now is not PairedState.OPEN:
            return now is PairedState.SHOWN, wins + ties + losses
    return False, RULE.max_pairs


@cache
def sign_p(wins: int, losses: int) -> float:
    """Exact one-sided chance of so many wins among the pairs that differ (McNemar)."""
    count = wins + losses
    return sum(math.comb(count, more) for more in range(wins, count + 1)) / 2**count


def fixed(
    evidence: Evidence, effect: float, number: int, *, pairs: int, alpha: float = RULE.alpha
) -> tuple[bool, int]:
    """A sign test, looked at once."""
    seen = [pair for round_ in evidence.rounds(effect, pairs) for pair in round_]
    return sign_p(seen.count((False, True)), seen.count((True, False))) <= alpha, len(seen)


def peeking(evidence: Evidence, effect: float, number: int) -> tuple[bool, int]:
    """The same test looked at after every round, at the level of one look."""
    wins = losses = spent = 0
    for pairs in evidence.rounds(effect, RULE.max_pairs):
        wins, losses = wins + pairs.count((False, True)), losses + pairs.count((True, False))
        spent += len(pairs)
        if sign_p(wins, losses) <= RULE.alpha:
            return True, spent
    return False, spent


def three_cases(evidence: Evidence, effect: float, number: int, *, equal_is_enough: bool) -> tuple[bool, int]:
    """Three cases, each run once on either side: GEPA accepts a higher sum, others also an equal one."""
    cases = evidence.dice.sample(range(TASKS), 3)
    before = sum(evidence.dice.random() < evidence.chances[case] for case in cases)
    after = sum(evidence.dice.random() < evidence.chances[case] + effect for case in cases)
    return after > before or (equal_is_enough and after == before), 3


def recorded_failure(
    evidence: Evidence, effect: float, number: int, *, rounds: int | None
) -> tuple[bool, int]:
    """Ours, misused: the failing runs for which the tasks were chosen stand as the base's trials."""
    count = RULE.max_pairs // TASKS if rounds is None else rounds
    evidence.base[:count] = [[False] * TASKS] * count
    return sequential(evidence, effect, number)


def every_flip(evidence: Evidence, effect: float, number: int, *, recorded: bool) -> tuple[bool, int]:
    """The rules for deterministic tasks (evolver/verdict/judge.py) on tasks that vary; the base fresh or the mined runs."""
    if recorded:
        evidence.base[:2] = [[False] * TASKS] * 2
    rounds = list(evidence.rounds(effect, 2 * TASKS))
    tasks = [tuple(zip(*pairs, strict=True)) for pairs in zip(*rounds, strict=True)]
    failing = [after for before, after in tasks if not any(before)]
    fixed = sum(all(after) for after in failing)
    broken = any(all(before) and not all(after) for before, after in tasks)
    return fixed > 0 and not broken and fixed >= 0.5 * len(failing), 2 * TASKS


RULES: dict[str, Acceptance] = {
    "agentos, evidence": sequential,
    "every flip counts, base run afresh": partial(every_flip, recorded=False),
    "every flip counts, base is the mined runs": partial(every_flip, recorded=True),
    "the same, error not divided": partial(sequential, divided=False),
    "sign test, 48 pairs, one look": partial(fixed, pairs=48),
    "sign test, 48 pairs, alpha/20": partial(fixed, pairs=48, alpha=RULE.alpha / 20),
    "sign test, a look each round": peeking,
    "GEPA: sum of 3 cases rises": partial(three_cases, equal_is_enough=False),
    "mean of 3 cases not lower": partial(three_cases, equal_is_enough=True),
    "agentos, misused: 2 rounds on the mined runs": partial(recorded_failure, rounds=2),
    "agentos, misused: base never run again": partial(recorded_failure, rounds=None),
}


NULLS = dict.fromkeys(("agentos, evidence", "GEPA: sum of 3 cases rises", "mean of 3 cases not lower"), 2000)

# --- simulations --------------------------------------------------------------------------------


REPAIR = 0.95  # of tasks whose base never passes


def trial_runs(rule: Acceptance, effect: float, count: int, candidates: int) -> list[tuple[bool, int]]:
    """Whether any of the candidates was accepted, and the pairs spent, for each simulated evolution."""
    dice = random.Random(f"{SEED} {effect} {candidates}")
    found = []
    for _ in range(count):
        evidence = Evidence(dice, [0.0] * TASKS if effect == REPAIR else [])
        spent, accepted = 0, False
        for number in range(1, candidates + 1):
            accepted, pairs = rule(evidence, effect, number)
            spent += pairs
            if accepted:
                break
        found.append((accepted, spent))
    return found


def share(found: list[tuple[bool, int]]) -> float:
    return sum(accepted for accepted, _ in found) / len(found)


def mean_pairs(found: list[tuple[bool, int]]) -> str:
    return f"{statistics.mean(spent for _, spent in found):.0f}"


def rule_line(name: str, nulls: int, count: int) -> tuple[str, str, str, str]:
    """One rule: null candidates, candidates that help, one that harms."""
    rule = RULES[name]
    null = trial_runs(rule, 0.0, nulls, 1)
    twenty = trial_runs(rule, 0.0, nulls, 20)
    power = [trial_runs(rule, effect, count, 1) for effect in EFFECTS]
    value = f"false {share(null):.1%}, of 20 {share(twenty):.1%}"
    beside = "finds " + " / ".join(f"{share(found):.0%}" for found in power)
    pairs = " / ".join(mean_pairs(found) for found in (null, *power))
    return name, value, beside, f"pairs {pairs}; of 20: {mean_pairs(twenty)}; n={nulls}, {count}"


def power_line(effect: float, count: int) -> tuple[str, str, str, str]:
    """Found within so many pairs; beside it a sign test of just that size, looked at once.

    The largest effect is a repair: what never passed passes nearly always.
    """
    found = trial_runs(sequential, effect, count, 1)
    ours = [sum(ok and spent <= step for ok, spent in found) / count for step in STEPS]
    once = [share(trial_runs(partial(fixed, pairs=step), effect, count, 1)) for step in STEPS]
    return (
        f"found at {effect:+g} within {'/'.join(map(str, STEPS))} pairs",
        " ".join(f"{one:.0%}" for one in ours),
        "one look: " + " ".join(f"{one:.0%}" for one in once),
        f"n={count}",
    )


def size_line(effect: float, count: int) -> tuple[str, str, str, str]:
    """Pairs to reach 80 %: ours on average and the fixed size that does it, at equal error."""
    bold = partial(bare, stop=4000)
    found = trial_runs(bold, effect, count, 1)
    enough = sorted(spent for _, spent in found)[math.ceil(0.8 * count) - 1]
    size = next(
        pairs
        for pairs in range(8, 4000, 4 if pairs_are_few(effect) else 20)
        if share(trial_runs(partial(fixed, pairs=pairs, alpha=RULE.alpha / 2), effect, count, 1)) >= 0.8
    )
    return (
        f"pairs for 80 % at {effect:+g}",
        f"mean {mean_pairs(found)}, 80 % within {enough}",
        f"fixed size {size}",
        f"both at {RULE.alpha / 2:.1%}, ours without giving up; n={count}",
    )


def pairs_are_few(effect: float) -> bool:
    return effect > 0.15


def bare(evidence: Evidence, effect: float, number: int, *, stop: int) -> tuple[bool, int]:
    """The test of the evidence alone, never given up."""
    wins = losses = spent = 0
    for pairs in evidence.rounds(effect, stop):
        wins, losses = wins + pairs.count((False, True)), losses + pairs.count((True, False))
        spent += len(pairs)
        if log_gain(wins, losses) >= math.log(2 / RULE.alpha):
            return True, spent
    return False, spent


@cache
def log_gain(wins: int, losses: int) -> float:
    return log_e_above(PairTally(wins, 0, losses), 0.0)


# --- whole judgements: evidence, 8 guards, 4 hold-out tasks, costs --------------------------------


@dataclass(frozen=True)
class World:
    """A sort of candidate, and how steady the guards and the hold-out are on the base."""

    gain: float = 0.4
    fall: float = 0.0  # of each guard
    broken: int = 0  # guards
    steady: float = 0.9  # the least chance of passing
    margin: float = RULE.margin


def judgement(dice: random.Random, world: World) -> tuple[Decision, dict[str, int]]:
    """One candidate, replayed as the ruling asks until it decides or may not go on."""
    guards = [(p, p - world.fall) for p in (dice.uniform(world.steady, 1) for _ in range(8))]
    chances = {
        TrialSet.EVIDENCE: [(p, p + world.gain) for p in (dice.uniform(0, 0.6) for _ in range(TASKS))],
        TrialSet.GUARD: [(1.0, 0.0)] * world.broken + guards[world.broken :],
        TrialSet.HOLD_OUT: [(p, p) for p in (dice.uniform(world.steady, 1) for _ in range(4))],
    }
    pairs: dict[TrialSet, dict[str, list[Pair]]] = {
        which: {f"{which}{number}": [] for number in range(len(found))} for which, found in chances.items()
    }
    costs: list[tuple[float, float]] = []
    rule = Judge(margin=world.margin)
    while True:
        measured = {which: MeasuredSet(tasks) for which, tasks in pairs.items()}
        ruling = decide(measured, rule, spending=[PairCost("seconds", costs)])
        which = ruling.undecided
        if which is None or ruling.exhausted:
            spent = {name.value: sum(map(len, tasks.values())) for name, tasks in pairs.items()}
            return ruling.decision, spent
        for (before, after), seen in zip(chances[which], pairs[which].values(), strict=True):
            seen.append((dice.random() < before, dice.random() < after))
            costs.append((dice.lognormvariate(0, 0.3), dice.lognormvariate(0, 0.3)))


WHOLE = {
    "whole judgement, nothing changes": (World(gain=0.0), 2000),
    "repaired, guards steady": (World(steady=1.0), 300),
    "repaired, guards pass 90 to 100 %": (World(), 300),
    "the same, margin 0.05": (World(margin=0.05), 100),
    "the same, margin 0.15": (World(margin=0.15), 300),
    "the same, margin 0.2": (World(margin=0.2), 300),
    "+0.2, guards pass 90 to 100 %": (World(gain=0.2), 300),
    "repaired, but guards fall by the margin": (World(fall=RULE.margin), 500),
    "repaired, but 1 of 8 guards breaks": (World(broken=1), 300),
}


def whole_line(name: str, times: int) -> tuple[str, str, str, str]:
    """What becomes of candidates of one sort, all three sets and the costs together."""
    dice = random.Random(f"{SEED} {name}")
    world, count = WHOLE[name][0], WHOLE[name][1] * times
    ends = [judgement(dice, world) for _ in range(count)]
    decisions = [decision for decision, _ in ends]
    rates = {decision: decisions.count(decision) / count for decision in Decision}
    spent = "/".join(f"{statistics.mean(pairs[which.value] for _, pairs in ends):.0f}" for which in TrialSet)
    return (
        name,
        f"promoted {rates[Decision.PROMOTE]:.1%}",
        f"rejected {rates[Decision.REJECT]:.0%}, held {rates[Decision.HOLD]:.0%}",
        f"pairs {spent} (evidence/guards/hold-out); n={count}",
    )


def speed() -> None:
    """One decision on the largest sets allowed."""
    dice = random.Random(SEED)

    def some(count: int, before: float, after: float) -> MeasuredSet:
        rounds = RULE.max_pairs // count
        return MeasuredSet(
            {
                f"{n}": [(dice.random() < before, dice.random() < after) for _ in range(rounds)]
                for n in range(count)
            }
        )

    sets = {
        TrialSet.EVIDENCE: some(4, 0.2, 0.5),
        TrialSet.GUARD: some(16, 0.9, 0.85),
        TrialSet.HOLD_OUT: some(10, 0.95, 0.95),
    }
    spending = [PairCost(unit, [(1.0, 1.1)] * 240) for unit in ("usd", "tokens", "seconds")]
    took = []
    for _ in range(200):
        began = time.perf_counter()
        decide(sets, RULE, spending=spending)
        took.append((time.perf_counter() - began) * 1e3)
    report(
        "one decision",
        f"{statistics.median(took):.2f} ms",
        "< 1 ms is the target",
        "3 sets of 240 pairs, 3 costs",
    )


PART = 25  # evolutions that one process simulates at a time: a row of twenty edits takes seconds each


def in_parts(
    pool: ProcessPoolExecutor, name: str, evolutions: int
) -> list[Future[list[tuple[bool, int, int]]]]:
    """The same evolutions of a row on however many cores."""
    starts = range(0, evolutions, PART)
    return [
        pool.submit(dice.ends, name, min(PART, evolutions - start), f"{SEED}+{start}") for start in starts
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--full", action="store_true", help="five times as many evolutions")
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--processes", type=int, default=None, help="at once; as many as there are cores")
    parser.add_argument("--evolutions", type=int, default=20, help="whole evolutions of each row")
    chosen = parser.parse_args()
    times = 5 if chosen.full else 1
    work: dict[str, Callable[[], tuple[str, str, str, str]]] = {
        **{name: partial(rule_line, name, NULLS.get(name, 500) * times, 500 * times) for name in RULES},
        **{
            f"found at {effect:+g}": partial(power_line, effect, 500 * times) for effect in (*EFFECTS, REPAIR)
        },
        **{f"pairs at {effect:+g}": partial(size_line, effect, 200 * times) for effect in EFFECTS},
        **{name: partial(whole_line, name, times) for name in WHOLE},
    }
    if not chosen.only:
        speed()
    with ProcessPoolExecutor(chosen.processes) as pool:
        jobs = [pool.submit(job) for name, job in work.items() if chosen.only in name]
        print(f"finds: at {'/'.join(f'{effect:+.1f}' for effect in EFFECTS)}; pairs: at 0 and at these")
        drawn = {name: in_parts(pool, name, chosen.evolutions) for name in dice.ROWS if chosen.only in name}
        for job in jobs:
            report(*job.result())
        for name, parts in drawn.items():
            report(*dice.row(name, [end for part in parts for end in part.result()]))


if __name__ == "__main__":
    main()
