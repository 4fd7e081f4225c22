"""All failing calls read together: a clue counts once, however many calls give it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentos.benches import BenchResult, error_of
from agentos.checks import place_in
from agentos.domain import Json, canonical
from agentos.ports import Case
from agentos.proposers.repair.reading.clues import Clue, Clues
from agentos.proposers.repair.scope import given_names, idle_names
from agentos.proposers.repair.source import Program

IDLE = 5.0  # for an edit that uses what the file makes and does not use


def read_failures(
    cases: Sequence[Case], evidence: Sequence[int], tried: BenchResult, program: Program
) -> Clues:
    """What the failing ones among the cases say, by what the original did on each."""
    found: dict[Clue, None] = {}
    lines = set()
    for number in evidence:
        output = tried.outputs[number]
        line = tried.raised[number] if number < len(tried.raised) else 0
        if error := error_of(output):
            clues = clues_of_error(error, str(output["message"]), line)
            lines.add(line)
        else:
            clues = _of_answer(cases[number], output)
        found.update(dict.fromkeys(clues))
    if idle := idle_names(program):
        found[Clue(IDLE, tokens=idle)] = None
    raised = tuple(node for node in program.nodes(ast.Raise) if node.lineno in lines)
    identifying = given_names(cases).identifying
    known = frozenset(f"{holder}.{name}" for name in identifying for holder in ("input", "args", "data"))
    return Clues(program, tuple(found), frozenset(lines - {0}), known | identifying, raised)


def _of_answer(case: Case, output: Json) -> Iterator[Clue]:
    for check in case.checks:
        if check.kind == "equals" and "value" in check.spec:
            got = answer_at(output, str(check.spec.get("path", "")))
            if got != check.spec["value"]:
                yield from clues_of_difference(check.spec["value"], got)


def answer_at(output: Any, path: str) -> Any:
    for part in path.split(".") if path else ():
        if isinstance(output, dict):
            output = output.get(part)
        elif (number := place_in(output, part)) is not None:
            output = output[number]
        else:
            return None
    return output


# --- What a wrong answer says beside the right one: by how much, and in which way it is wrong ----
# Only the *way* is used, to order edits. No expected value ever becomes part of an edit.


LARGEST = 1e300  # of what is reckoned with as a float
FACTORS = (2, 7, 10, 12, 16, 24, 28, 30, 60, 100, 365, 1000, 1024, 3600, 86_400)
BOUNDARY = frozenset({"off by one", "comparison operator", "slice", "constant", "argument", "keyword"})
SELECTION = frozenset({"comparison operator", "boolean operator", "operand dropped", "condition added", "filter",
                       "condition dropped", "negation", "guard", "way out", "pattern", "statement inserted"})  # fmt: skip
ORDER = frozenset({"sort key", "order", "statements exchanged", "keyword"})
LIMITED = frozenset({"limited"})


def clues_of_difference(want: Any, got: Any) -> Iterator[Clue]:
    """What speaks for which edits when this was expected and that was answered."""
    if isinstance(want, bool) or isinstance(got, bool):
        yield Clue(2.0, SELECTION)
    elif isinstance(want, int | float) and isinstance(got, int | float):
        if max(abs(want), abs(got)) < LARGEST:
            yield from _of_numbers(float(want), float(got))
    elif isinstance(want, str) and isinstance(got, str):
        yield from _of_texts(want, got)
    elif isinstance(want, list) and isinstance(got, list):
        yield from _of_lists(want, got)
    elif isinstance(want, Mapping) and isinstance(got, Mapping):
        yield from _of_mappings(want, got)
    elif want is None or got is None:
        yield Clue(
            2.0, frozenset({"default", "guard", "way out", "presence", "result"}), frozenset({"None", "or"})
        )
    elif isinstance(want, str) != isinstance(got, str):
        yield Clue(4.0, tokens=frozenset({"str", "int", "float"}))


def _of_numbers(want: float, got: float) -> Iterator[Clue]:
    apart = want - got
    if abs(apart) == 1:
        yield Clue(2.0, BOUNDARY)
    if want == -got:
        yield Clue(
            5.0, frozenset({"sign", "order", "names exchanged", "operands swapped"}), frozenset({"abs"})
        )
    if any(round(got, digits) == want for digits in range(5)):
        yield Clue(8.0, frozenset({"rounding"}), frozenset({"round"}))
    elif abs(apart) < 1 and abs(apart) <= 0.02 * abs(want):
        yield Clue(
            4.0, frozenset({"rounding"}), frozenset({"round", "//", "/", "floor", "ceil", "int", "Decimal"})
        )
    if want and got and any(_about(want / got, f) or _about(got / want, f) for f in FACTORS):
        yield Clue(3.0, frozenset({"factor", "constant", "unit"}), frozenset({"*", "/"}))
    if apart < 0:
        yield Clue(1.3, LIMITED, frozenset({"min"}))
    else:
        yield Clue(1.3, LIMITED | {"accumulated"}, frozenset({"max"}))


def _about(one: float, other: float) -> bool:
    return abs(one - other) < 0.01 * other


def _of_texts(want: str, got: str) -> Iterator[Clue]:
    if "".join(want.split()) == "".join(got.split()):
        yield Clue(6.0, frozenset({"template"}), frozenset({"strip", "rstrip", "lstrip", "split", "join"}))
    elif want.casefold() == got.casefold():
        yield Clue(6.0, tokens=frozenset({"lower", "upper", "title", "capitalize", "casefold"}))
    elif want[::-1] == got or sorted(want) == sorted(got):
        yield Clue(3.0, ORDER, frozenset({"sorted", "reversed"}))
    elif got and (got in want or want in got):
        yield Clue(2.0, BOUNDARY | {"pattern", "template"}, frozenset({"strip", "removeprefix", "split"}))
    digits = [character for character in want if character.isdigit()]
    if digits and digits != [character for character in got if character.isdigit()]:
        yield Clue(1.5, frozenset({"template", "template of time", "unit", "rounding"}))


def _of_lists(want: list[Any], got: list[Any]) -> Iterator[Clue]:
    expected, found = (Counter(canonical(item) for item in items) for items in (want, got))
    if expected == found:
        yield Clue(8.0, ORDER, frozenset({"sorted", "sort", "reverse", "reversed", "key"}))
    elif expected.keys() == found.keys():
        yield Clue(4.0, frozenset({"condition added"}), frozenset({"set", "fromkeys"}))
    elif expected <= found or found <= expected:
        yield Clue(2.0, SELECTION | BOUNDARY)
    elif len(want) == len(got) and len(want) <= 50:
        seen = next((pair for pair in zip(want, got, strict=True) if pair[0] != pair[1]), None)
        if seen is not None:
            yield from clues_of_difference(*seen)


def _of_mappings(want: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[Clue]:
    if want.keys() == got.keys():
        seen = next((key for key in want if want[key] != got[key]), None)
        if seen is not None:
            yield from clues_of_difference(want[seen], got[seen])
    elif {str(key).strip().casefold() for key in want} == {str(key).strip().casefold() for key in got}:
        yield Clue(5.0, tokens=frozenset({"strip", "lower", "upper", "casefold", "title"}))
    else:
        yield Clue(2.0, SELECTION, frozenset({"lower", "strip"}))


# --- What an exception says: its type, its message and the line at which it left the file --------


GUARDS = frozenset({"caught", "guard", "way out", "default", "condition added", "presence"})
BOUNDS = frozenset({"off by one", "slice", "constant", "argument", "comparison operator", "padded"})
CONVERSIONS = frozenset({"int", "float", "str", "Decimal", "list", "len", "sum"})
CLEANED = frozenset(
    {"strip", "replace", "lstrip", "rstrip", "split", "float", "removeprefix", "removesuffix", "or"}
)
_NUMBER = (
    "could not convert",
    "invalid literal",
    "Invalid isoformat",
    "does not match format",
    "ConversionSyntax",
)


# by exception: factor, operators, tokens, whether only where it was raised
PLAIN: dict[str, tuple[tuple[float, frozenset[str], frozenset[str], bool], ...]] = {
    "IndexError": ((4.0, BOUNDS | GUARDS, frozenset({"len", "partition"}), True),),
    "StopIteration": ((4.0, BOUNDS | GUARDS, frozenset({"None"}), True),),
    "ZeroDivisionError": (
        (6.0, GUARDS, frozenset({"max", "or"}), True),
        (2.0, GUARDS, frozenset({"=="}), False),
    ),
    "UnicodeDecodeError": (
        (12.0, frozenset({"encoding"}), frozenset({"encoding", "errors", "utf", "latin"}), False),
    ),
    "TypeError": ((6.0, frozenset({"wrap", "argument", "argument dropped", "order"}), CONVERSIONS, True),),
    **dict.fromkeys(
        ("AttributeError", "NameError", "UnboundLocalError"),
        (
            (
                5.0,
                frozenset({"attribute", "name", "function", "statement inserted", "wrap"}),
                frozenset(),
                True,
            ),
        ),
    ),
    "timeout": (
        (3.0, frozenset({"statement inserted", "statement moved out", "assignment"}), frozenset(), False),
    ),
}


def clues_of_error(kind: str, message: str, line: int) -> Iterator[Clue]:
    """What speaks for which edits when a call ended with this error at this line (0: unknown)."""
    here = frozenset({line}) if line else frozenset()
    name = kind.rpartition(".")[2]
    if name.endswith("Error") and name != "AssertionError":
        yield Clue(4.0, tokens=frozenset({name}))  # what catches it has to name it
    if name in ("TypeError", "AttributeError"):
        yield Clue(4.0, tokens=frozenset({"isinstance"}))
    if "None" in message and name in ("TypeError", "AttributeError"):
        yield Clue(8.0, GUARDS, frozenset({"None", "or"}), here)
        yield Clue(3.0, GUARDS, frozenset({"None"}))
    elif name == "KeyError":
        yield from _of_key(message, here)
    elif "empty" in message:
        yield Clue(10.0, GUARDS, frozenset({"default"}), here)
    elif name in PLAIN:
        for factor, operators, tokens, near in PLAIN[name]:
            yield Clue(factor, operators, tokens, here if near else frozenset())
    elif name in ("ValueError", "InvalidOperation", "load") or any(text in message for text in _NUMBER):
        yield from _of_value(message, here)


def _of_key(message: str, here: frozenset[int]) -> Iterator[Clue]:
    yield Clue(6.0, frozenset({"default", "presence", "accumulated"}), frozenset({"get", "setdefault"}), here)
    yield Clue(
        3.0, GUARDS | {"constant", "method", "field"}, frozenset({"in", "strip", "lower", "upper"}), here
    )
    key = message.strip("'\"")
    if key != key.strip() or key.startswith("\\ufeff"):
        yield Clue(4.0, frozenset({"encoding"}), frozenset({"strip", "sig"}))
    if key.casefold() != key:
        yield Clue(3.0, tokens=frozenset({"lower", "casefold", "upper"}))


def _of_value(message: str, here: frozenset[int]) -> Iterator[Clue]:
    yield Clue(4.0, GUARDS | {"constant", "template of time"}, CLEANED, here)
    if "unpack" in message:
        yield Clue(
            6.0,
            frozenset({"argument", "constant", "keyword"}),
            frozenset({"partition", "maxsplit", "1"}),
            here,
        )
    if match := re.search(r": b?'(.*)'", message):
        text = match.group(1)
        if text.strip() == "":
            yield Clue(4.0, GUARDS, frozenset({"or", "not"}))
        if re.search(r"\d[.]\d", text):
            yield Clue(4.0, tokens=frozenset({"float", "Decimal"}))
        if "," in text:
            yield Clue(4.0, frozenset({"cleaned"}))
