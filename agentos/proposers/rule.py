"""The proposer of rules: a call that failing runs share, and no good run ever made, is refused from now on.

No model is asked. What the calls of several failing runs have in common is written down as a predicate, from words of
an argument, its value, or the tool itself; what a run did after it was told so, and whether it passes then, is
measured like any edit. Only calls that change something are looked at, and those of runs that the supervisor ended.
A rule that would have acted in one good run is not proposed; the kernel tests that once more (``rule_alarms``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from agentos.domain import Effect, Json, KernelFault, Layer, kind_of
from agentos.errors import Invalid, Unavailable
from agentos.ports import Brief, ObservedRun, Proposal, Snapshots
from agentos.records.runs import WRONG_ANSWER
from agentos.resources.declarations import recorded_effects
from agentos.rules.document import read_rule
from agentos.rules.predicate import compiled
from agentos.rules.trying import EffectsAt, faults_of, in_run

TASKS_MIN = 2
_PROPOSED_MAX = 3
_CHANGES = frozenset({Effect.WRITE.value, Effect.EXTERNAL.value})
_TOOL = re.compile(r"[A-Za-z][\w/-]{0,63}")
_ARGUMENT = re.compile(r"[A-Za-z]\w{0,39}")
# A harness writes the steps: only what is a plain word of a command or a text reaches a document.
_WORD = re.compile(r"[\w./:@=+,-]{2,40}")
_VALUE_MAX = 40
_LOOP_MIN = 3


@dataclass(frozen=True, slots=True)
class _Condition:
    """What bad calls share. ``args`` are those of a call that shows it, ``before`` how many equal ones went ahead."""

    when: str
    says: str
    name: str
    args: Mapping[str, Json] = field(default_factory=dict)
    before: int = 0


_Calls = Sequence[Mapping[str, Json]]  # arguments of the calls that one run made of one tool


class RuleProposer:
    """Implements ``ports.Proposer``; ``snapshots`` tells what tools do and which names are taken."""

    name = "rule"

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """The narrowest first. Raises Unavailable."""
        if brief.layer is not Layer.RULE:
            return
        failing = [seen for seen in brief.runs if _went_wrong(seen)]
        good = [*brief.successes, *(seen for seen in brief.runs if seen.run.passed)]
        if not good or len({seen.task.key for seen in failing}) < TASKS_MIN:
            return
        try:
            compiled("true")
        except Unavailable:  # without the extra [rules] no run could be held to one
            return
        taken = {str(name) for name in self._snapshots.names(brief.base)}
        effects = recorded_effects(self._snapshots)
        proposed = 0
        for tool, condition in _conditions(failing, good, effects):
            path = f"rule/{_free_name(condition.name, taken)}/resource.toml"
            text = _document(tool, condition)
            try:
                rule = read_rule(path, text.encode())
            except Invalid:  # an argument's name that is a word of the language
                continue
            acts = all(in_run(rule, seen, effects) for seen in failing)
            if acts and not faults_of(rule) and not any(in_run(rule, seen, effects) for seen in good):
                yield _proposal(tool, condition, {path: text}, failing, len(good))
                proposed += 1
            if proposed == _PROPOSED_MAX:
                return


def _conditions(
    failing: Sequence[ObservedRun], good: Sequence[ObservedRun], effects: EffectsAt
) -> Iterator[tuple[str, _Condition]]:
    bad_calls = [_calls(seen, effects) for seen in failing]
    good_calls = [_calls(seen, effects, every=True) for seen in good]
    shared = set.intersection(*({*calls} for calls in bad_calls))
    tools = sorted(tool for tool in shared if _TOOL.fullmatch(tool))
    kinds = (_by_words, _by_value, _by_amount, _by_tool)
    for kind in kinds:
        for tool in tools:
            bad = [calls[tool] for calls in bad_calls]
            right = [calls.get(tool, ()) for calls in good_calls]
            yield from ((tool, condition) for condition in kind(tool, bad, right))
    if all(_was_stopped(seen) for seen in failing):
        for tool in tools:
            bad = [calls[tool] for calls in bad_calls]
            right = [calls.get(tool, ()) for calls in good_calls]
            yield from ((tool, condition) for condition in _by_count(tool, bad, right))


def _calls(
    seen: ObservedRun, effects: EffectsAt, *, every: bool = False
) -> dict[str, list[Mapping[str, Json]]]:
    """What the run called, by tool: what changes something, unless ``every`` call is asked for."""
    every = every or _was_stopped(seen)
    found: dict[str, list[Mapping[str, Json]]] = {}
    for step in seen.steps:
        action = step.action
        if (
            step.node != "act"
            or not isinstance(action, Mapping)
            or not isinstance(action.get("args"), Mapping)
        ):
            continue
        if every or (
            step.fault is None and _CHANGES & {*effects(seen.run.snapshot, str(action.get("path", "")))}
        ):
            found.setdefault(str(action.get("tool")), []).append(action["args"])
    return found


def _went_wrong(seen: ObservedRun) -> bool:
    """It came to a wrong end, by a check, a person's word, or the supervisor's."""
    fault = seen.run.outcome.fault if seen.run.outcome else None
    return (
        not seen.run.passed
        and fault is not None
        and kind_of(fault) in {*WRONG_ANSWER, KernelFault.SUPERVISOR}
    )


def _was_stopped(seen: ObservedRun) -> bool:
    fault = seen.run.outcome.fault if seen.run.outcome else None
    return fault is not None and kind_of(fault) is KernelFault.SUPERVISOR


# --- what bad calls share ---------------------------------------------------------------------


def _by_words(tool: str, bad: Sequence[_Calls], good: Sequence[_Calls]) -> Iterator[_Condition]:
    """A word of an argument that a call of every failing run has and none of a good run, beside the first word."""
    for name in _arguments(bad):
        texts = [[_words(args.get(name)) for args in calls] for calls in bad]
        harmless = {word for calls in good for args in calls for word in _words(args.get(name))}
        told = set.intersection(*({*chain(*calls)} for calls in texts)) - harmless
        first = {words[0] for calls in texts for words in calls if words and told & {*words}}
        head = next(iter(first)) if len(first) == 1 else ""
        for word in sorted(told, key=lambda word: (-len(word), word)):
            pair = [head, word] if head and head != word else [word]
            patterns = " && ".join(f"text.matches({_pattern(one)})" for one in pair)
            said = " and ".join(pair)
            args: dict[str, Json] = {name: " ".join(pair)}
            yield _Condition(
                f'tool == "{tool}" && {patterns}', f"with {said} in {name}", f"{tool} {' '.join(pair)}", args
            )


def _by_value(tool: str, bad: Sequence[_Calls], good: Sequence[_Calls]) -> Iterator[_Condition]:
    """An argument with one and the same yes, no or short word."""
    for name in _arguments(bad):
        shared = set.intersection(*({_literal(args.get(name)) for args in calls} for calls in bad))
        harmless = {_literal(args.get(name)) for calls in good for args in calls}
        for literal in sorted(shared - harmless - {""}):
            when = f'tool == "{tool}" && has(args.{name}) && args.{name} == {literal}'
            yield _Condition(when, f"with {name} = {literal}", f"{tool} {name}", {name: json.loads(literal)})


def _by_amount(tool: str, bad: Sequence[_Calls], good: Sequence[_Calls]) -> Iterator[_Condition]:
    """A number that is larger in every failing run than in any good one."""
    for name in _arguments(bad):
        largest = [max((_number(args.get(name)) for args in calls), default=0.0) for calls in bad]
        allowed = [_number(args.get(name)) for calls in good for args in calls if _number(args.get(name))]
        if allowed and min(largest) > max(allowed):
            limit = max(allowed)
            when = f'tool == "{tool}" && has(args.{name}) && double(args.{name}) > {limit!r}'
            yield _Condition(when, f"with {name} over {limit:g}", f"{tool} {name}", {name: min(largest)})


def _by_tool(tool: str, bad: Sequence[_Calls], good: Sequence[_Calls]) -> Iterator[_Condition]:
    """A tool that no good run called."""
    if not any(good):
        yield _Condition(f'tool == "{tool}"', "at all", tool, dict(bad[0][0]) if _is_small(bad[0][0]) else {})


def _by_count(tool: str, bad: Sequence[_Calls], good: Sequence[_Calls]) -> Iterator[_Condition]:
    """Far more calls than any good run made."""
    most = max([_LOOP_MIN, *(2 * len(calls) for calls in good)])
    if min(len(calls) for calls in bad) > most:
        when = f'tool == "{tool}" && "{tool}" in calls && calls["{tool}"] >= {most}'
        yield _Condition(when, f"more than {most} times", f"{tool} again", {}, most)


def _arguments(bad: Sequence[_Calls]) -> list[str]:
    shared = set.intersection(*({name for args in calls for name in args} for calls in bad))
    return sorted(name for name in shared if _ARGUMENT.fullmatch(name))


def _words(value: Json) -> list[str]:
    return [word for word in value.split() if _WORD.fullmatch(word)] if isinstance(value, str) else []


def _literal(value: Json) -> str:
    """As the predicate language and JSON both write it, "" for what is no plain value."""
    if isinstance(value, bool):
        return json.dumps(value)
    plain = isinstance(value, str) and len(value) <= _VALUE_MAX and _WORD.fullmatch(value)
    return json.dumps(value) if plain else ""


def _number(value: Json) -> float:
    plain = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15
    return float(value) if plain else 0.0


def _pattern(word: str) -> str:
    """The word by itself, as a regular expression in the predicate language."""
    return f"r'(?:^|[^\\w-]){re.escape(word)}(?:$|[^\\w-])'"


def _is_small(args: Mapping[str, Json]) -> bool:
    return all(_literal(value) or isinstance(value, int) for value in args.values())


# --- the document -----------------------------------------------------------------------------


def _free_name(said: str, taken: set[str]) -> str:
    stem = "no-" + "-".join(re.findall(r"[a-z0-9]+", said.lower()))[:40].strip("-")
    number = 1
    while f"rule/{stem}{f'-{number}' if number > 1 else ''}" in taken:
        number += 1
    return f"{stem}-{number}" if number > 1 else stem


def _document(tool: str, condition: _Condition) -> str:
    example = [f'tool = "{tool}"', f"args = {_table(condition.args)}"]
    if condition.before:
        calls = ", ".join([f'{{ tool = "{tool}" }}'] * condition.before)
        example.append(f"before = [{calls}]")
    lines = [
        f"description = {json.dumps(f'Runs that called {tool} {condition.says} went wrong.')}",
        'on = "before_call"',
        f"when = '''\n{condition.when}\n'''",  # nothing in it has such a quote
        'enforce = "refuse"',
        'advice = "Do what the task asks for in another way, or leave this out and say so."',
        "",
        "[[examples.stops]]",
        *example,
    ]
    return "\n".join(lines) + "\n"


def _table(args: Mapping[str, Json]) -> str:
    """An inline table of TOML: its values are plain words, numbers, yes or no."""
    named = [(name, value) for name, value in args.items() if _ARGUMENT.fullmatch(name)]
    return "{ " + ", ".join(f"{name} = {json.dumps(value)}" for name, value in named) + " }"


def _proposal(
    tool: str, condition: _Condition, files: Mapping[str, str], failing: Sequence[ObservedRun], good: int
) -> Proposal:
    cause = (
        f"{len(failing)} failing runs called {tool} {condition.says}; "
        f"the rule would have acted in none of {good} runs that passed"
    )
    return Proposal(
        cause=cause,
        summary=f"refuse to call {tool} {condition.says}",
        operator="rule template",
        files=files,
        why_this_layer="a call that only failing runs make can be refused before it happens, whatever the agent thinks",
        predicted_fixes=tuple(dict.fromkeys(seen.task.id for seen in failing)),
    )
