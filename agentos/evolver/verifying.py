"""Runs the trials of an evolution once more, each from its own record, and holds the two together.

Nothing is asked and nothing is stored: a model call or an outside effect that is not on the trial's
record ends it. What differs is machinery that is not deterministic, or a record that is not whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentos.domain import Mode, Step, Trial
from agentos.errors import NotFound, Unavailable
from agentos.evolver.parts import Parts
from agentos.evolver.recordings import asks, recording_of, told, unpacked
from agentos.ports import Attempt, Plan


@dataclass(frozen=True, slots=True)
class Compared:
    """One trial and what was different this time, a sentence each."""

    trial: Trial
    differences: tuple[str, ...]


def run_again(
    parts: Parts, evolution_id: str, done: Callable[[Compared], None] = lambda compared: None
) -> list[Compared]:
    """Every stored trial of the evolution; ``done`` is called with each, on any thread."""

    def compare(trial: Trial) -> Compared:
        compared = Compared(trial, tuple(_differences(parts, trial)))
        done(compared)
        return compared

    return list(parts.replayer.map(compare, parts.records.find(Trial, evolution_id=evolution_id)))


def _differences(parts: Parts, trial: Trial) -> list[str]:
    try:
        steps = unpacked(parts.blobs.get(trial.steps_sha256)) if trial.steps_sha256 else []
        again = _again(parts, trial, steps)
    except (NotFound, Unavailable) as error:
        return [f"it could not be run again: {error}"]
    found = [
        f"{name} was {before}, is {now}"
        for name, before, now in (
            ("the result", trial.outcome.result.value, again.outcome.result.value),
            ("the score", trial.outcome.score, again.outcome.score),
            ("the answer", trial.answer_sha256[:12], again.answer_sha256[:12]),
        )
        if before != now
    ]
    if not found and trial.steps_sha256 and told(steps) != told(again.steps):
        found = [_parting(steps, again.steps)]
    return found


def _again(parts: Parts, trial: Trial, steps: Sequence[Step]) -> Attempt:
    """Under the trial's own run id, which is the one that its record knows it by."""
    run_id = trial.run_id or trial.id
    recording = None
    if asks(steps):
        recording = recording_of(trial.snapshot, [(run_id, steps)], parts.journal.answers(trial.task_id))
    plan = Plan(mode=Mode.REPLAY, recording=recording, evolution_id=trial.evolution_id, prefer=trial.sandbox)
    return parts.executor.execute(parts.journal.task(trial.task_id), trial.snapshot, run_id, plan=plan)


def _parting(before: Sequence[Step], now: Sequence[Step]) -> str:
    one, other = told(before), told(now)
    at = next(
        (index for index, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    return f"the result is the same, and the way there differs from step {at} on"
