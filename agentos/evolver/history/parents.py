"""Which earlier edit of a failure is worth starting from: the one that came closest, chosen with regard to noise.

Of many edits that do nothing one had luck. So what counts is not the gain that was seen but the lower bound
of it: a smaller one that was seen oftener goes before a larger one that was seen twice.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence

from agentos.domain import (
    Arm,
    Candidate,
    Decision,
    EditTarget,
    Evolution,
    Parent,
    Result,
    Trial,
    TrialSet,
    Verdict,
)
from agentos.evolver.history import HistoryContext
from agentos.evolver.verdict.judge import counted, judged_trials
from agentos.evolver.verdict.sequential import PairTally, log_e_above

PAST = 5  # evolutions of one failure among which a parent is looked for
DIFF_MAX = 6_000  # characters
SURE = 0.1  # chance that the lower bound of a gain is too high


def parents_for(parts: HistoryContext, evolution: Evolution, site: EditTarget) -> tuple[Parent, ...]:
    """The edit of an earlier evolution of this failure that came closest without being promoted; or none.

    Trials of the hold-out have no part in it, because what is chosen is shown.
    """
    close = max(_close(parts, evolution, site), key=lambda found: found[:2], default=None)
    return (close[2],) if close else ()


def _close(
    parts: HistoryContext, evolution: Evolution, site: EditTarget
) -> Iterator[tuple[float, str, Parent]]:
    """Those that did more good than harm: lower bound of the gain, id, and how it is shown."""
    for past in parts.records.newest(Evolution, PAST, fingerprint_id=evolution.fingerprint_id):
        if past.id == evolution.id:
            continue
        tried = {
            item.candidate_id
            for item in parts.records.find(Verdict, evolution_id=past.id)
            if item.decision is not Decision.PROMOTE
        }
        found = [item for item in parts.records.find(Candidate, evolution_id=past.id) if item.id in tried]
        fitting = [item for item in found if _fits(item, site)]
        trials = parts.records.find(Trial, evolution_id=past.id) if fitting else ()
        for candidate in fitting:
            seen = pairs_in(judged_trials(candidate, trials))
            diff = _diff(parts, candidate) if seen.wins > seen.losses else ""
            if 0 < len(diff) <= DIFF_MAX:
                parent = Parent(candidate.id, candidate.manifest.edit, diff, _says(seen))
                yield lower_bound(seen), candidate.id, parent


def lower_bound(seen: PairTally) -> float:
    """What the mean advantage is above, with a chance of at most ``SURE`` to be wrong; -1 where nothing is known.

    The largest mean against which the judge's bets are won (``sequential``).
    """
    low, high = -1.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        won = log_e_above(seen, middle) >= math.log(1 / SURE)
        low, high = (middle, high) if won else (low, middle)
    return low


def _fits(candidate: Candidate, site: EditTarget) -> bool:
    return candidate.manifest.layer is site.layer and (not site.path or site.path in candidate.manifest.files)


def pairs_in(trials: Sequence[Trial]) -> PairTally:
    """The pairs of the evidence, and those of guards that came out differently on the two sides."""
    sides: dict[tuple[str, int], dict[Arm, Trial]] = {}
    for trial in counted(trials):
        if trial.set is not TrialSet.HOLD_OUT and not trial.alike:
            sides.setdefault((trial.task_id, trial.repeat), {})[trial.arm] = trial
    found = {1: 0, 0: 0, -1: 0}
    for pair in sides.values():
        if Arm.BASE in pair and Arm.CANDIDATE in pair:
            gain = _passed(pair[Arm.CANDIDATE]) - _passed(pair[Arm.BASE])
            found[gain] += bool(gain) or pair[Arm.CANDIDATE].set is TrialSet.EVIDENCE
    return PairTally(found[1], found[0], found[-1])


def _passed(trial: Trial) -> int:
    return int(trial.outcome.result is Result.PASSED)


def _says(seen: PairTally) -> str:
    return (
        f"better than without it in {seen.wins:g} and worse in {seen.losses:g} of {seen.pairs:g} trials "
        "of what fails, or of what worked and came out differently"
    )


def _diff(parts: HistoryContext, candidate: Candidate) -> str:
    lines: list[str] = []
    for path, text in sorted(candidate.edit.files.items()):
        before = parts.snapshots.files(candidate.base, path).get(path, b"").decode("utf-8", "replace")
        lines += difflib.unified_diff(before.splitlines(), text.splitlines(), path, path, lineterm="")
    return "\n".join(lines)
