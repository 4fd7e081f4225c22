"""Signs that the harness is to blame: what the tools gave, or the model asked for, is not what came of it.

Read off steps and checks alone, in one run. They concern what no tool does: the joining of answers, the
hooks around a call, the dispatch of calls, what of the results is told to the model, and when to stop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentos import checks
from agentos.domain import WRONG_ANSWER, Check, Json, Outcome, Run, Step, Task, canonical, kind_of

ANOTHER_ORDER = "what the tools gave is answered in another order"
SOMETHING_ELSE = "what a tool gave is answered as something else"
NOT_MADE = "calls that the model asked for were not made as it asked"
NOT_TOLD = "what the calls gave was not told to the model"
WRONG_STOP = "the run stopped though the model had asked for calls"


def mistold(task: Task, run: Run, steps: Sequence[Step]) -> str:
    """Why the answer to a call is wrong though the tools were right, "" where that is not shown.

    What each failed check expects stands in what the tools gave, so their own code did its part.
    """
    outputs = _outputs(steps)
    missed = _missed(task.checks, run.outcome)
    if not outputs or not missed:
        return ""
    if all(any(not _why(spec, output) for output in outputs) for spec in missed):
        return SOMETHING_ELSE
    return ANOTHER_ORDER if all(_rearranged(spec, outputs) for spec in missed) else ""


def _missed(asked: Sequence[Check], outcome: Outcome | None) -> list[checks.Equals]:
    """The failed checks, if all of them compare the answer with a value; else none."""
    results = outcome.checks if outcome else ()
    if len(results) != len(asked):
        return []
    failed = [check for check, result in zip(asked, results, strict=True) if not result.passed]
    specs = [checks.parse(check.kind, check.spec) for check in failed if check.kind == "equals"]
    equals = [spec for spec in specs if isinstance(spec, checks.Equals)]
    return equals if len(equals) == len(failed) else []


def _outputs(steps: Sequence[Step]) -> list[Json]:
    """What each call gave; none if one of them failed, or is not on record as a whole."""
    acts = [step for step in steps if step.node == "act"]
    seen = [_map(step.observation) for step in acts]
    if any(step.fault is not None for step in acts) or any("output" not in one for one in seen):
        return []
    return [one["output"] for one in seen]


def _why(spec: checks.Equals, value: Json) -> str:
    return checks.judge(spec, value, Path())


def _rearranged(spec: checks.Equals, outputs: Sequence[Json]) -> bool:
    """Whether a list of what the tools gave, in some order, is what is expected there."""
    place, _, rest = (spec.path or "").partition(".")
    if place.isdigit():
        of_one = spec.model_copy(update={"path": rest or None})
        return any(not _why(of_one, output) for output in outputs)
    expected = spec.value
    if place or not isinstance(expected, list) or len(expected) != len(outputs):
        return False
    return sorted(map(canonical, expected)) == sorted(map(canonical, outputs))


def astray(outcome: Outcome | None, steps: Sequence[Step]) -> str:
    """What the loop did wrong in a run that thought, "" where nothing shows it."""
    for thought, acts, following in _thoughts(steps):
        asked = _map(thought.observation).get("calls")
        if not isinstance(asked, list) or _map(thought.observation).get("goto") != "act":
            continue
        if following is None:
            if outcome is not None and kind_of(outcome.fault) in WRONG_ANSWER:
                return WRONG_STOP
        elif len(acts) < len(asked) and _map(following.action).get("tools"):  # else they ran out of steps
            return NOT_MADE
        elif _told(following) - _told(thought) < 1 + len(asked) and not _shortened(thought, following):
            return NOT_TOLD
    return ""


def _thoughts(steps: Sequence[Step]) -> Iterator[tuple[Step, list[Step], Step | None]]:
    """Each thought with the calls that came of it, and the thought after it."""
    places = [place for place, step in enumerate(steps) if step.node == "think"]
    for place, after in zip(places, [*places, None][1:], strict=True):
        between = steps[place + 1 : after]
        acts = [step for step in between if step.node == "act"]
        yield steps[place], acts, None if after is None else steps[after]


def _told(thought: Step) -> int:
    """Messages in the request of a thought."""
    count = _map(thought.action).get("messages")
    return count if isinstance(count, int) else 0


def _shortened(thought: Step, following: Step) -> bool:
    before, after = _map(thought.action), _map(following.action)
    counted = isinstance(before.get("messages"), int) and isinstance(after.get("messages"), int)
    return not counted or before.get("compacted") != after.get("compacted")


def _map(value: Json) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
