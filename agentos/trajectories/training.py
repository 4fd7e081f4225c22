"""Training data from conversations: examples (sft), preference pairs (dpo), groups with rewards (grpo).

The forms are those that TRL reads: {"messages"}, {"prompt", "chosen", "rejected"} and {"prompt",
"completions", "rewards"}, each with "tools" where they are known. Only what a model said can be
learnt, so conversations without a model are left out, and each left out one is counted with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentos.domain import Json, Result, canonical
from agentos.trajectories.chat import FinishedRun, chat_record
from agentos.trajectories.readers.formats import MARK

_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "function_call")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True)
class SkippedExample:
    """A run, or a pair of runs, that gives nothing to learn from, and why."""

    run: str
    why: str


@dataclass(frozen=True, slots=True)
class _Try:
    """One conversation as training data sees it."""

    run: str
    task: str
    prompt: list[Json]  # all before the assistant's first word
    completion: list[Json]
    tools: Json
    reward: float
    passed: bool


def sft(all: Iterable[FinishedRun]) -> Iterator[Json | SkippedExample]:
    """The passed runs, each an example."""
    for happened in all:
        tried = _try(happened)
        if isinstance(tried, SkippedExample):
            yield tried
        elif not tried.passed:
            yield SkippedExample(tried.run, "it did not pass")
        else:
            yield {"messages": tried.prompt + tried.completion, **_about(tried.tools, [tried])}


def grpo(groups: Iterable[Sequence[FinishedRun]]) -> Iterator[Json | SkippedExample]:
    """Of each group of equal work: all that were asked the same, with their scores as rewards."""
    for group in groups:
        alike, left = _alike(group)
        yield from left
        for tries in alike:
            if len(tries) < 2:
                yield SkippedExample(tries[0].run, "no other run was asked the same")
                continue
            yield {
                "prompt": tries[0].prompt,
                "completions": [tried.completion for tried in tries],
                "rewards": [tried.reward for tried in tries],
                **_about(tries[0].tools, tries),
            }


def dpo(groups: Iterable[Sequence[FinishedRun]]) -> Iterator[Json | SkippedExample]:
    """Of each group of equal work: what passed is preferred to what failed after the same prompt.

    No run stands in two pairs.
    """
    for group in groups:
        alike, left = _alike(group)
        yield from left
        for tries in alike:
            passed = [tried for tried in tries if tried.passed]
            failed = [tried for tried in tries if not tried.passed]
            for chosen, rejected in zip(passed, failed, strict=False):
                yield _pair(chosen, rejected)
            count = min(len(passed), len(failed))
            for alone in passed[count:] + failed[count:]:
                yield SkippedExample(alone.run, "no other run was asked the same and ended differently")


def _pair(chosen: _Try, rejected: _Try) -> Json | SkippedExample:
    if _said(chosen) == _said(rejected):
        why = "the model did the same as in the other run; what differed is what a tool gave"
        return SkippedExample(f"{chosen.run} and {rejected.run}", why)
    return {
        "prompt": chosen.prompt,
        "chosen": chosen.completion,
        "rejected": rejected.completion,
        **_about(chosen.tools, [chosen, rejected]),
    }


def _alike(group: Sequence[FinishedRun]) -> tuple[list[list[_Try]], list[SkippedExample]]:
    """The tries that were asked the same, together; and what gives nothing to learn from."""
    left: list[SkippedExample] = []
    alike: dict[bytes, list[_Try]] = {}
    for happened in group:
        tried = _try(happened)
        if isinstance(tried, SkippedExample):
            left.append(tried)
        else:
            alike.setdefault(canonical([tried.prompt, tried.tools]), []).append(tried)
    return list(alike.values()), left


def _try(happened: FinishedRun) -> _Try | SkippedExample:
    run, outcome = happened.run, happened.run.outcome
    if outcome is None or outcome.result not in _SAYS_SOMETHING:
        return SkippedExample(run.id, "its outcome says nothing of what was done")
    if not happened.by_model:
        return SkippedExample(run.id, "no model spoke in it")
    record = chat_record(happened)
    messages = [_plain(message) for message in record["messages"]]
    first = next(number for number, message in enumerate(messages) if message["role"] == "assistant")
    return _Try(
        run=run.id,
        task=happened.task.id,
        # some systems' logs begin with an agent's words; a trainer needs a prompt
        prompt=messages[:first] or [{"role": "user", "content": happened.task.goal}],
        completion=messages[first:],
        tools=record.get("tools", []),
        reward=outcome.score,
        passed=outcome.result is Result.PASSED,
    )


_SAYS_SOMETHING = (Result.PASSED, Result.FAILED, Result.TIMEOUT, Result.BUDGET)


def _plain(message: Mapping[str, Json]) -> dict[str, Json]:
    """The message with the keys that trainers know; an agent's name in the form they allow."""
    kept = {key: message[key] for key in _KEYS if message.get(key) is not None}
    if isinstance(message.get("agent"), str) and "name" not in kept:  # another system may mean anything by it
        kept["name"] = _NO_NAME.sub("_", message["agent"]).strip("_")[:64]
    return {"content": None, **kept}


def _said(tried: _Try) -> list[Json]:
    return [
        {**message, "tool_calls": [call["function"] for call in message.get("tool_calls", [])]}
        for message in tried.completion
        if message["role"] == "assistant"
    ]


def _about(tools: Json, tries: Sequence[_Try]) -> dict[str, Json]:
    about = {MARK: {"runs": [tried.run for tried in tries], "task": tries[0].task}}
    return {**({"tools": tools} if tools else {}), **about}
