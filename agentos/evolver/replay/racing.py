"""Race: which of several candidates of one evidence goes on to guards and hold-out, by what the evidence says of each.

One that mends all of the evidence goes on at once, and the others cost nothing. Otherwise all show first what
they do for the evidence, and the best goes on. Where tasks vary each gets two rounds of fresh pairs, then every
further round goes to the one with the best mean so far, until the judge's own rule says of one that it is better:
those behind are left where they stand. Which rounds are made follows from what was seen, and the error rates stand
nevertheless: the chance that a bet is *ever* won by luck is bounded for each candidate, so it makes no
difference how far it was carried (docs/decisions/racing.md).

Nothing is decided here. Every trial is stored under its own id; trying a candidate finds those that were made.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentos.domain import Candidate, Evolution, Tier, Trial, TrialSet, tier_of
from agentos.evolver.history.parents import pairs_in
from agentos.evolver.replay import ReplayContext
from agentos.evolver.replay.trials import SequentialReplay, replay_steady
from agentos.evolver.select.curate import TaskSets
from agentos.evolver.verdict.sequential import PairTally


class _Runner:
    """One candidate, its trials on the evidence with their counterparts, and what they say so far."""

    def __init__(self, candidate: Candidate, trials: Sequence[Trial], rounds: SequentialReplay) -> None:
        self.candidate, self.rounds = candidate, rounds
        self._trials = [*trials]
        self._seen = pairs_in(trials)

    @property
    def varies(self) -> bool:
        """Whether its evidence is judged by pairs, at least in part."""
        return self.rounds.has(TrialSet.EVIDENCE)

    @property
    def gain(self) -> float:
        """Mean advantage over the base."""
        return (self._seen.wins - self._seen.losses) / max(1, self._seen.pairs)

    def is_decided(self) -> bool:
        """Whether the judge needs no further round of the evidence; makes one where it does."""
        before = len(self._trials)
        goes_on = self.rounds.step(TrialSet.EVIDENCE, self._trials)
        seen, more = self._seen, pairs_in(self._trials[before:])
        self._seen = PairTally(seen.wins + more.wins, seen.ties + more.ties, seen.losses + more.losses)
        return goes_on is not None


def leader(
    parts: ReplayContext, evolution: Evolution, candidates: Sequence[Candidate], sets: TaskSets
) -> Candidate:
    """The candidate to try next; of equal ones the first. Safe to run again: trials that were made are found.

    One that is lost is named at once, because its verdict costs nothing more.
    What is of the highest tier is tried in rank order: before its first trial come the suites of its contract.
    """
    if len(candidates) == 1 or any(tier_of(item.manifest.files) is Tier.HIGH for item in candidates):
        return candidates[0]
    runners = []
    for candidate in candidates:
        done = replay_steady(parts, evolution, candidate, sets, TrialSet.EVIDENCE)
        if done.lost:
            return candidate
        rounds = SequentialReplay(parts, evolution, candidate, sets)
        rounds.take_over(TrialSet.EVIDENCE, done)
        runners.append(_Runner(candidate, done.trials, rounds))
        if not runners[-1].varies and runners[-1].gain == 1:
            return candidate
    if varying := [runner for runner in runners if runner.varies]:
        return _led(varying, parts.policy.judge.min_rounds)
    return max(runners, key=lambda runner: runner.gain).candidate


def _led(runners: Sequence[_Runner], rounds: int) -> Candidate:
    """The first of which the evidence is decided, either way."""
    while True:
        fresh = [runner for runner in runners if runner.rounds.made < rounds]
        ahead = fresh[0] if fresh else max(runners, key=lambda runner: runner.gain)
        if ahead.is_decided():
            return ahead.candidate
