"""The watch over live runs, simulated: false roll-backs, falls seen, and after how many runs.

python benchmarks/bench_probation.py [--times 1000]

Each promotion is watched for 40 live runs, as shipped, each beside three runs on the base, and looked at
after every run. Beside it stands a rule that many write first: roll back when the pass rate of the live
runs, ten or more, lies 0.2 below that of the base.
"""

from __future__ import annotations

import argparse
import random
import statistics

from agentos.evolver.policy import Probation
from agentos.evolver.watch.live_regression import LiveComparison, e_value

SEED = 20260101
RULES = Probation()


def report(what: str, value: str, beside: str = "", remarks: str = "") -> None:
    """One result line."""
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def watched(dice: random.Random, before: float, now: float) -> tuple[int | None, int | None]:
    """The run after which the watch, and the rule of thumb, roll back."""
    pairs: list[LiveComparison] = []
    ours = thumb = None
    for number in range(1, RULES.varying_runs + 1):
        base = tuple(dice.random() < before for _ in range(RULES.beside))
        pairs.append(LiveComparison("task", dice.random() < now, base))
        if ours is None and e_value(pairs) >= 1 / RULES.alpha:
            ours = number
        rate = sum(pair.passed for pair in pairs) / number
        if thumb is None and number >= 10 and rate <= before - 0.2:
            thumb = number
    return ours, thumb


def main() -> None:
    """Simulate, and report a line for each kind of promotion."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=1000)
    times = parser.parse_args().times
    dice = random.Random(SEED)
    for fall in (0.0, 0.1, 0.2, 0.3, 0.5, 1.0):
        for before in (0.95, 0.8, 0.6):
            now = max(0.0, before - fall)
            found = [watched(dice, before, now) for _ in range(times)]
            ours = [run for run, _ in found if run is not None]
            thumb = [run for _, run in found if run is not None]
            after = f"after {statistics.median(ours):.0f} runs (median)" if ours else ""
            what = "nothing changed" if not fall else f"a fall to {now:.2f}"
            report(
                f"{what}, passed {before:.2f} before",
                f"{len(ours) / times:.1%} rolled back",
                f"{len(thumb) / times:.1%} by the rule of thumb",
                after,
            )


if __name__ == "__main__":
    main()
