"""What edits make of the values that a failing call comes to, seen for many of them in one run, before one is tried.

An edit whose expression is worth the same wherever the call comes along mends nothing; one by which the expected
value comes about is worth a try. The call runs once with each expression that is to be edited watched, and what the
edits would put in its place is worked out beside it, in the box. That orders edits and forbids none: a value may be
changed later, and a call that is repeated is watched for its first rounds only.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import chain, islice
from typing import Any

from agentos.benches import BenchResult, error_of
from agentos.domain import Json
from agentos.ports import Case
from agentos.proposers.repair.prior import RankedEdit
from agentos.proposers.repair.reading import watcher
from agentos.proposers.repair.reading.failures import answer_at
from agentos.proposers.repair.scope import called_name, is_target
from agentos.proposers.repair.source import CodeEdit, Program, blocks_of, children, spliced
from agentos.syntax import Definition

# What the watcher says of an edit, and what that is worth.
FACTORS = {
    "hit": 30.0,  # the expected value comes about where the wrong one was
    "near": 6.0,  # it comes about, or the value moves by as much as the answer is off
    "works": 4.0,  # nothing is raised any more where the call ended
    "other": 1.0,
    "unknown": 1.0,
    "almost": 0.3,  # the same each time it was looked at, which was not each time
    "raises": 0.02,  # what was fine before
    "same": 0.02,  # the same value, or the same exception
}
KEPT = 3.0  # for what changes a failing call and no working one
FIRST, MOST = 1000, 3000  # edits that are looked at together
LONG = 1000  # lines of a file from which on the first ones come as they are: to find many takes time
FIRST_OF_LONG = 30
WATCHED_S = 0.3  # of CPU time for what is worked out in one run
PAIRS = 8  # differences between an answer and the expected one that are looked for

# Calls that change what they are given, or ask where they stand: expressions with one of these are not worked out twice.
CHANGING = frozenset({
    "append", "extend", "insert", "add", "update", "pop", "popitem", "popleft", "appendleft", "remove", "discard",
    "clear", "sort", "reverse", "setdefault", "write", "writelines", "read", "readline", "readlines", "next", "open",
    "print", "send", "close", "seek", "subtract", "heappush", "heappop", "heapify", "shuffle", "writerow",
    "super", "locals", "vars", "dir", "run", "write_text", "write_bytes", "mkdir", "unlink", "rename", "exec", "eval", "setattr", "exit", "rotate",
})  # fmt: skip
_GUARD = re.compile(r"\s*if (?P<test>.+):\n", re.DOTALL)
# What is a thing of its own then is equal to what it was, and is another one.
_COPIES = re.compile(r"for _ in range\(|\b(?:deep)?copy\(\)?|: (?:\[\]|\{\}|set\(\)) for")
_SET = re.compile(r"\s*(?P<name>\w+) = (?P<value>[^\n]+)\s*")

Look = Callable[[str], BenchResult]


@dataclass(frozen=True, slots=True)
class _Watched:
    """One place of the source: where it is, and texts that may stand there by the number of the edit."""

    start: int
    end: int  # where nothing stands yet, the start
    texts: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class Foresight:
    """Looks at the edits of one file by some calls, the ``failing`` ones first. ``look`` runs a source on these."""

    program: Program
    look: Look
    differences: Sequence[tuple[Json, Json]]  # what was expected, and what came
    raises: Sequence[bool]  # whether a call ends with an exception, call by call
    failing: int = 1
    _known: dict[ast.stmt, Sequence[tuple[int, int]]] = field(default_factory=dict, init=False)
    _blind: bool = field(default=False, init=False)

    def in_order(self, order: Iterable[RankedEdit]) -> Iterator[RankedEdit]:
        """The edits by how likely they are after a look at them. Their probabilities stay: they compare edits that pass."""
        rest, number, size, waiting = iter(order), 0, FIRST, list[tuple[float, int, RankedEdit]]()
        if self.program.source.count("\n") > LONG:
            yield from islice(rest, FIRST_OF_LONG)
        while stretch := list(islice(rest, size)):
            for ranked, factor in zip(stretch, self.factors([r.edit for r in stretch]), strict=True):
                turn = ranked.probability * factor
                heappush(waiting, (-turn, number, replace(ranked, turn=turn)))
                number += 1
            while waiting and -waiting[0][0] >= stretch[-1].probability:
                yield heappop(waiting)[2]
            size = min(MOST, 2 * size)
        while waiting:
            yield heappop(waiting)[2]

    def factors(self, edits: Sequence[CodeEdit]) -> Sequence[float]:
        """How much more or less likely each of them is."""
        places: dict[tuple[int, int], _Watched] = {}
        for number, edit in enumerate(edits):
            if found := self._place_of(edit):
                start, end, text = found
                places.setdefault((start, end), _Watched(start, end)).texts[number] = text
        said: Mapping[int, str] = {} if self._blind or not places else self._said(list(places.values()))
        return [self._factor(said[number]) if number in said else 1.0 for number in range(len(edits))]

    def _said(self, places: Sequence[_Watched]) -> Mapping[int, str]:
        """The watcher's letter for each call by the number of the edit; none where a call does not come to its end."""
        source = _instrumented(self.program, places, self.differences)
        seen = []
        for output, raises in zip(self.look(source).outputs, self.raises, strict=True):
            letters = output.get(SEEN) if isinstance(output, dict) else None
            if not isinstance(letters, str) or (output["ended"] and not raises):
                break
            seen.append(letters)
        if len(seen) < len(self.raises):
            self._blind = True  # the next ones would cost as much and say as little
            return {}
        numbers = chain.from_iterable(place.texts for place in places)
        return dict(zip(numbers, map("".join, zip(*seen, strict=True)), strict=True))

    def _factor(self, letters: str) -> float:
        """By the letters of the failing calls and then of the working ones."""
        failing = [FACTORS[_WORD_OF[letter]] for letter in letters[: self.failing]]
        factor = min(failing) if min(failing) < 1 else max(failing)
        working = letters[self.failing :]
        if "r" in working:
            return factor * FACTORS["raises"]
        return factor * (KEPT if working and not working.strip("sa") else 1.0)

    def _place_of(self, edit: CodeEdit) -> tuple[int, int, str] | None:
        """The whole expression that the edit changes, and the text that it would have."""
        if any(_COPIES.search(splice.text) for splice in edit.splices):
            return None
        first, last = min(s.start for s in edit.splices), max(s.end for s in edit.splices)
        if len(edit.splices) == 1 and not edit.splices[0].expression and (made := self._asked_of(edit)):
            return made
        holder = self.program.holder(first, last, whole=True)
        if holder is None or self.program.function_of(holder) is None:  # of a module, it would run too early
            return None
        if holder not in self._known:
            self._known[holder] = [self.program.span(root) for root in _roots(holder)]
        for start, end in self._known[holder]:
            if start <= first and last <= end:
                return start, end, spliced(self.program.data[start:end], edit, parenthesised=True, base=start)
        return None

    def _asked_of(self, edit: CodeEdit) -> tuple[int, int, str] | None:
        """For what is put before a statement or around it: where, and what is true if it makes a difference."""
        splice, data = edit.splices[0], self.program.data
        line = data.rfind(b"\n", 0, splice.start) + 1
        if (
            line == splice.start
            or data[line : splice.start].strip()
            or data[splice.start :].startswith((b"elif", b"\n", b"\r"))
        ):
            return None
        around = splice.end > splice.start
        if match := _GUARD.match(splice.text):
            test = match["test"]
            return splice.start, splice.start, f"not ({test})" if around else f"bool({test})"
        match = _SET.fullmatch(splice.text)
        if match and not around:
            return splice.start, splice.start, f"not ({match['name']} == ({match['value']}))"
        return None


def foresight_of(
    failing: Sequence[tuple[Case, Json]], working: Sequence[tuple[Case, Json]], program: Program, look: Look
) -> Foresight:
    """By these calls, with the answers that the original gave. ``look`` runs them in this order."""
    found: list[tuple[Json, Json]] = []
    for case, output in failing:
        for check in case.checks:
            if check.kind == "equals" and "value" in check.spec and not _is_error(output):
                got = answer_at(output, str(check.spec.get("path", "")))
                found += islice(_differences(check.spec["value"], got), PAIRS)
    raises = [_is_error(output) for _, output in (*failing, *working)]
    return Foresight(program, look, found, raises, len(failing))


def can_be_watched(program: Program) -> bool:
    """Whether the file is a tool that is called as the box calls it, so that it can answer what was seen."""
    names = {node.name for node in program.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {"run", "Output"} <= names


def _is_error(output: Json) -> bool:
    return bool(error_of(output))


def _differences(want: Any, got: Any) -> Iterator[tuple[Json, Json]]:
    """What differs, the whole first, then its parts."""
    if want == got and type(want) is type(got):
        return
    yield want, got
    if isinstance(want, dict) and isinstance(got, dict):
        for key in (key for key in want if key in got):
            yield from _differences(want[key], got[key])
        yield from zip(sorted(want.keys() - got.keys()), sorted(got.keys() - want.keys()), strict=False)
    elif isinstance(want, list) and isinstance(got, list):
        for one, other in zip(want, got, strict=False):
            yield from _differences(one, other)
    elif isinstance(want, str) and isinstance(got, str):
        for part, kind in ((r"[^\s,;:|]+", str), (r"\d+(?:\.\d+)?", float)):
            parts = [list(map(kind, re.findall(part, text))) for text in (want, got)]
            if len(parts[0]) == len(parts[1]):
                yield from ((one, other) for one, other in zip(*parts, strict=True) if one != other)


# --- Which expressions are watched --------------------------------------------------------------


def _roots(statement: ast.stmt) -> Iterator[ast.expr]:
    """The largest expressions of the statement itself that may be worked out twice."""
    if isinstance(statement, Definition | ast.ClassDef):
        return
    inner = {id(each) for each in blocks_of(statement)}
    for node in children(statement):
        if id(node) in inner or (isinstance(statement, ast.AnnAssign) and node is not statement.value):
            continue
        if isinstance(statement, ast.Expr) and isinstance(node, ast.Call):  # it is called for what it does
            yield from chain.from_iterable(_largest(each) for each in (*node.args, *node.keywords))
        elif isinstance(node, ast.expr | ast.withitem):
            yield from _largest(node)


_PARTS = (ast.expr, ast.keyword, ast.comprehension, ast.withitem)


def _largest(node: ast.AST) -> Iterator[ast.expr]:
    if is_target(node):
        return
    if isinstance(node, ast.Lambda | ast.GeneratorExp | ast.Slice | ast.FormattedValue):
        return
    if isinstance(node, ast.expr) and not isinstance(node, ast.Starred) and not _changes(node):
        yield node
        return
    if isinstance(node, ast.JoinedStr):  # its parts have no places to rely on
        return
    for child in children(node):
        called = isinstance(node, ast.Call) and child is node.func
        if called:
            if isinstance(child, ast.Attribute) and not isinstance(child.value, ast.Name):
                yield from _largest(child.value)
        elif isinstance(child, _PARTS) and not (isinstance(node, ast.NamedExpr) and child is node.target):
            yield from _largest(child)


def _changes(node: ast.expr) -> bool:
    """Whether working it out changes anything, as far as its words say."""
    return any(
        isinstance(inner, ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Await)
        or (isinstance(inner, ast.Call) and called_name(inner) in CHANGING)
        for inner in ast.walk(node)
    )


# --- The source that is run ---------------------------------------------------------------------


SEEN = "seen_values"
_WORD_OF = {word[0]: word for word in FACTORS}  # a letter stands for each
_WATCH = "watch_value"


def _instrumented(
    program: Program, places: Sequence[_Watched], differences: Sequence[tuple[Json, Json]]
) -> str:
    """The source with its places watched; its answer is what was seen."""
    inserted: list[tuple[int, int, str]] = []
    for number, place in enumerate(places):
        line = program.data.rfind(b"\n", 0, place.start) + 1
        if place.start == place.end:
            indent = program.data[line : place.start].decode()
            inserted.append((place.start, 1, f"{_WATCH}({number}, lambda: False)\n{indent}"))
        else:
            inserted += [(place.start, 2, f"{_WATCH}({number}, lambda: ("), (place.end, 0, "))")]
    parts, at = [], 0
    for offset, _, text in sorted(inserted):
        parts += [program.data[at:offset].decode(), text]
        at = offset
    parts.append(program.data[at:].decode())
    texts = [list(place.texts.values()) for place in places]
    return _ANSWERED.format(
        source="".join(parts),
        watcher=inspect.getsource(watcher),
        given=f"{texts!r}, {list(differences)!r}, {sorted(CHANGING)!r}, {WATCHED_S}",
    )


# The tool's own ``run`` with what was seen for its answer. ``Output`` takes whatever it is made from.
_ANSWERED = f"""{{source}}

{_WATCH}_space = {{{{"__name__": "watcher"}}}}
exec({{watcher!r}}, {_WATCH}_space)
{_WATCH} = {_WATCH}_space["Watcher"]({{given}})
import pydantic as {_WATCH}_pydantic
{_WATCH}_run = run
class Output({_WATCH}_pydantic.BaseModel):
    model_config = {{{{"extra": "allow", "arbitrary_types_allowed": True}}}}
def run(input):
    _, error = {_WATCH}_space["_outcome"](lambda: {_WATCH}_run(input))
    return Output({SEEN}={_WATCH}.seen(), ended=type(error).__name__ if error else "")
"""
