"""How often candidates of a failure were looked at, whichever of its evolutions they are of.

Whoever tries edits long enough finds one that looks good. So the error that a failure may cost is divided among
all candidates that were ever tried on it (``multiplicity``), and a hidden task tells only of the first few of
them: after that, what passes it may have been found by trying.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentos.domain import Arm, Candidate, Evolution, Task, Trial, TrialSet
from agentos.evolver.select import LooksContext


class LookCounter:
    """Counts for one candidate. What it was given with its first trial of a set stays, whoever was tried since."""

    def __init__(self, parts: LooksContext, candidate: Candidate) -> None:
        self._parts, self._candidate = parts, candidate
        self._seen: dict[TrialSet, list[Trial]] = {}
        self._looks: dict[TrialSet, dict[str, int]] = {}  # of sets and hidden work, by key

    def _trials(self, which: TrialSet) -> list[Trial]:
        """Of candidates, as they were when first asked for: until then, others may have been tried."""
        if which not in self._seen:
            fingerprint_id = self._parts.evolution(self._candidate.evolution_id).fingerprint_id
            self._seen[which] = [item for item in _tried(self._parts, fingerprint_id) if item.set is which]
        return self._seen[which]

    def number(self, which: TrialSet) -> int:
        """Which candidate of the failure it is that is tried on the set, from 1."""
        here = self._trials(which)
        own = [trial for trial in here if trial.candidate_id == self._candidate.id]
        # The look of a hidden task is that task's own count.
        stored = (trial.number or (trial.look if which is not TrialSet.HOLD_OUT else 0) for trial in own)
        return max(stored, default=0) or self._after_others(here)

    def at(self, task: Task, which: TrialSet) -> int:
        """As ``Trial.look``: of a hidden task its own count, else that of the set."""
        key = task.key if which is TrialSet.HOLD_OUT else ""
        known = self._looks.setdefault(which, {})
        if key not in known:
            known[key] = self._at_work(key) if key else self.number(which)
        return known[key]

    def _at_work(self, key: str) -> int:
        here = [
            item
            for item in self._trials(TrialSet.HOLD_OUT)
            if self._parts.journal.task(item.task_id).key == key
        ]
        stored = (trial.look for trial in here if trial.candidate_id == self._candidate.id)
        return max(stored, default=0) or self._after_others(here)

    def _after_others(self, trials: Sequence[Trial]) -> int:
        return len({trial.candidate_id for trial in trials} - {self._candidate.id}) + 1


def used_up(parts: LooksContext, fingerprint_id: str) -> frozenset[str]:
    """Keys of the hidden work that tells nothing more of edits of this failure."""
    by: dict[str, set[str]] = {}
    for trial in _tried(parts, fingerprint_id):
        if trial.set is TrialSet.HOLD_OUT:
            by.setdefault(parts.journal.task(trial.task_id).key, set()).add(trial.candidate_id)
    most = parts.policy.judge.hold_out_looks
    return frozenset(key for key, candidates in by.items() if len(candidates) >= most)


def _tried(parts: LooksContext, fingerprint_id: str) -> Iterator[Trial]:
    """All trials of candidates of the failure."""
    for evolution in parts.records.find(Evolution, fingerprint_id=fingerprint_id):
        for trial in parts.records.find(Trial, evolution_id=evolution.id):
            if trial.arm is Arm.CANDIDATE:
                yield trial
