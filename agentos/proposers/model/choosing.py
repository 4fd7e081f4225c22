"""Rules to choose from, for a model that cannot write an edit: it can choose better than it can write.

The kernel makes them of the form of what checks ask for, set against the form of what failing runs answered, and of
what passing runs did that failing ones did not. A rule never holds an expected value: it says how to answer, not what.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence

from agentos.domain import Check, Json, Layer
from agentos.evolver.memory.lessons import added
from agentos.ports import Brief, ObservedRun

RULES_MAX = 6
LAYERS = (Layer.PROMPT, Layer.MEMORY)  # a rule is one line more of either
# What a pattern has beside the text that it looks for.
_AROUND = re.compile(r"\\b|^\(\?i\)|\^|\$|\\(?=\W)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_ALWAYS = "Before you answer, check every part of the goal against your result."
_CALLED = frozenset({"act", "call"})


def rules_for(brief: Brief) -> list[str]:
    """At most ``RULES_MAX`` sentences, those that speak to most failing runs first."""
    counts: dict[str, int] = {}
    for seen in brief.runs:
        if not seen.run.passed:
            for rule in dict.fromkeys(_of_run(seen)):
                counts[rule] = counts.get(rule, 0) + 1
    for rule in _by_contrast(brief.runs):
        counts.setdefault(rule, 1)
    ordered = sorted(counts, key=lambda rule: -counts[rule])
    return [rule for rule in [*ordered, _ALWAYS] if rule not in brief.source][:RULES_MAX]


def with_rule(brief: Brief, rule: str) -> str:
    """The brief's file with the rule as its last line."""
    if brief.layer is Layer.MEMORY:
        return added(brief.source, rule)
    return f"{brief.source.rstrip()}\n\n{rule}\n".lstrip("\n")


def _of_run(seen: ObservedRun) -> Iterator[str]:
    answer = seen.run.answer
    for check in seen.task.checks:
        if check.kind == "json_schema":
            yield from _by_schema(check, answer)
        elif check.kind == "regex":
            yield from _by_pattern(str(check.spec.get("pattern", "")), answer)
        elif check.kind in ("equals", "contains") and not check.spec.get("path"):
            yield from _by_form(check.spec.get("value"), answer)


def _by_schema(check: Check, answer: Json) -> Iterator[str]:
    schema = check.spec.get("schema")
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind in ("object", "array") and not isinstance(answer, dict if kind == "object" else list):
        yield f"Answer with one JSON {kind} and nothing else."
    named = schema.get("required") if isinstance(schema, dict) else None
    keys = [key for key in named if isinstance(key, str)] if isinstance(named, list) else []
    if keys and not (isinstance(answer, dict) and set(keys) <= set(answer)):
        yield f"Answer with a JSON object that has the keys {', '.join(keys)}."


def _by_pattern(pattern: str, answer: Json) -> Iterator[str]:
    if r"\d{4}-\d{2}-\d{2}" in pattern or r"\d{4}-\d\d-\d\d" in pattern:
        yield _DATES
    literal = _AROUND.sub("", pattern)
    if literal and isinstance(answer, str) and not set(literal) & set("\\[](){}*+?|."):
        yield from _by_text(literal, answer)
    if pattern.startswith("^") and pattern.endswith("$") and isinstance(answer, str) and "\n" in answer:
        yield _ALONE


_ALONE = "Answer with the result alone: no preface, no explanation, no unit that was not asked for."
_DATES = "Write every date as YYYY-MM-DD."


def _by_form(wanted: Json, answer: Json) -> Iterator[str]:
    """What the wanted value is, as far as the answer is not."""
    if isinstance(wanted, bool) or wanted is None:
        return
    if isinstance(wanted, dict | list) and not isinstance(answer, type(wanted)):
        yield f"Answer with one JSON {'object' if isinstance(wanted, dict) else 'list'} and nothing else."
    elif isinstance(wanted, int | float) and isinstance(answer, str):
        yield "Answer with the number alone, in digits."
    elif isinstance(wanted, str) and isinstance(answer, str | int | float):
        yield from _by_text(wanted, str(answer))


def _by_text(wanted: str, answer: str) -> Iterator[str]:
    forms: Sequence[tuple[Callable[[str], object], str]] = (
        (_DATE.fullmatch, _DATES),
        (_NUMBER.fullmatch, "Answer with the number alone, in digits."),
        (str.isupper, "Answer in capital letters."),
        (str.islower, "Answer in small letters."),
    )
    yield from (rule for has, rule in forms if has(wanted) and not has(answer))
    if _DATE.search(wanted) and not _DATE.search(answer):
        yield _DATES
    if "\n" not in wanted and len(answer) > 2 * len(wanted) + 20:
        yield _ALONE


def _by_contrast(runs: Sequence[ObservedRun]) -> Iterator[str]:
    """Tools that all passing runs called and no failing one."""
    passed = [_tools(seen) for seen in runs if seen.run.passed]
    failed = [_tools(seen) for seen in runs if not seen.run.passed]
    if passed and failed:
        for tool in sorted(set.intersection(*passed).difference(*failed)):
            yield f"Use the tool {tool} for such tasks."


def _tools(seen: ObservedRun) -> set[str]:
    """The tools that it called."""
    actions = [step.action for step in seen.steps if step.node in _CALLED and isinstance(step.action, dict)]
    return {json.dumps(action["tool"])[1:-1] for action in actions if isinstance(action.get("tool"), str)}
