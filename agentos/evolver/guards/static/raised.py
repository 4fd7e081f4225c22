"""The raise that is the evidence stays: an edit that takes it out, or out of the way, mends no failure.

A tool that raises on purpose says that it was given what it cannot answer. Where that is the failure at hand,
an edit may mend what leads there, and for work with checks also the condition; it may not delete the raise,
catch it, leave before it, stop calling the function that holds it, or give it a condition that never holds.
Where none of the evidence has checks, nobody says that the condition was wrong: then it stays as it is.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentos.domain import Fault, Refusal, RefusalKind
from agentos.evolver.guards.static.edit import FUNCTIONS, ParsedSource, is_source, leaving, read
from agentos.syntax import UNKNOWN, is_python

_BROAD = frozenset({"Exception", "BaseException"})
_LEAVES = ast.Return | ast.Continue | ast.Break
_LARGE = 10**6  # no length of anything that a run is given


def defused(
    old: Mapping[str, str], new: Mapping[str, str], faults: Iterable[Fault], *, checked: bool
) -> Refusal | None:
    """How the edit gets past a raise that one of the ``faults`` came from; None where it does not.

    ``old`` and ``new`` are whole texts by registry path, ``old`` of all the base's sources that lead to one another;
    ``checked``: some of the failing work has checks.
    """
    for fault in faults:
        path = fault.where.rpartition(":")[0]
        touched = [other for other in new if other in old and is_source(other)]
        if path not in old or not touched:
            continue
        try:
            files = [*dict.fromkeys([path, *touched])]
            first, *others = (read(each, old[each] if is_python(old[each]) else "") for each in files)
            here, before = _Source(first), _Source(_joined([first, *others]))
            after = _Source(_joined([read(each, new.get(each, old[each])) for each in files]))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None  # told elsewhere
        for node in _raises(here, fault):
            if why := _gone_past(before, after, node, checked=checked):
                told = f"{path}: the failure is the `{_shown(node)}` of line {node.lineno}, and {why}"
                return Refusal(RefusalKind.RAISED, told)
    return None


def _joined(readings: Sequence[ParsedSource]) -> ParsedSource:
    """Several files as one: what leads to a raise may lie in another file than it."""
    if len(readings) == 1:
        return readings[0]
    body = [node for one in readings for node in one.tree.body]
    made = ParsedSource(readings[0].path, "", ast.Module(body, []))
    for one in readings:
        made.nodes += one.nodes
        made.parents |= one.parents
        for name, paths in one.names.items():
            made.names.setdefault(name, set()).update(paths)
    again = Counter(name for one in readings for name in {*one.values, *one.loose})
    made.constants = {
        name: value for one in readings for name, value in one.constants.items() if again[name] == 1
    }
    return made


@dataclass(frozen=True, slots=True)
class _Source:
    """One version of the file, or of several, and what leads where in it."""

    reading: ParsedSource

    def above(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """(what holds it, what it is held by in there), from the inside out."""
        while (holder := self.reading.parents.get(node)) is not None:
            yield holder, node
            node = holder

    def function_of(self, node: ast.AST) -> str:
        """Name of the innermost function around it, "" for the module."""
        return next((holder.name for holder, _ in self.above(node) if isinstance(holder, FUNCTIONS)), "")

    def raises(self, like: ast.Raise) -> list[ast.Raise]:
        """Those that say the same and are reached."""
        return [node for node in self.reading.reached if isinstance(node, ast.Raise) and _same(node, like)]

    def calls(self, name: str) -> list[ast.AST]:
        """Uses of a function by its name, reached ones alone."""
        return [
            node
            for node in self.reading.reached
            if (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load))
            or (isinstance(node, ast.Attribute) and node.attr == name)
        ]

    def ways(self, node: ast.AST) -> list[ast.AST]:
        """The node, and what leads to it: uses of its function, of theirs, and so on."""
        found, names, queue = [node], set[str](), [node]
        while queue:
            name = self.function_of(queue.pop())
            if name and name not in names:
                names.add(name)
                more = [use for use in self.calls(name) if self.function_of(use) != name]
                found += more
                queue += more
        return found


def _same(one: ast.Raise, other: ast.Raise) -> bool:
    return ast.dump(one) == ast.dump(other)


def _shown(node: ast.Raise) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 80 else f"{text[:77]}..."


# --- which raise it was -------------------------------------------------------------------------


def _raises(source: _Source, fault: Fault) -> list[ast.Raise]:
    """The statements that the fault may have come from; none where the interpreter or a library raised it."""
    function, kind = fault.where.rpartition(":")[2], fault.type.removeprefix("exception ")
    found = [
        node
        for node in source.reading.reached
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and _class(node.exc) == kind
        and source.function_of(node) in (function, "")
        and _may_say(source.reading, node.exc, fault.message)
    ]
    return found or [
        node
        for node in source.reading.reached
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Name | ast.Call)
        and _class(node.exc) not in _known(source)
        and source.function_of(node) == function
    ]


def _known(source: _Source) -> set[str]:
    """Names of exceptions; what else is raised is put together, and may be any."""
    own = {node.name for node in source.reading.nodes if isinstance(node, ast.ClassDef)}
    imported = {name for name, paths in source.reading.names.items() if paths}
    return own | imported | set(dir(builtins))


def _class(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called).rpartition(".")[2]


def _may_say(reading: ParsedSource, node: ast.expr, message: str) -> bool:
    if not isinstance(node, ast.Call) or not node.args:
        return True
    # One after another, each where it stands first: as a pattern, many blanks in both would take for ever.
    place = 0
    for text in _fixed_parts(reading, node.args[0]):
        if (found := message.find(text, place)) < 0:
            return False
        place = found + len(text)
    return True


def _fixed_parts(reading: ParsedSource, node: ast.expr) -> list[str]:
    """What a message has in any case, in its order; nothing where it can be anything."""
    value = reading.fold(node)
    if value is not UNKNOWN:
        return [str(value)]
    parts = node.values if isinstance(node, ast.JoinedStr) else []
    return [str(part.value) for part in parts if isinstance(part, ast.Constant)]


# --- how it is got past -------------------------------------------------------------------------


def _gone_past(before: _Source, after: _Source, node: ast.Raise, *, checked: bool) -> str:
    old_same, same = before.raises(node), after.raises(node)
    if len(same) < len(old_same):
        return "it is gone, or nothing reaches it"
    if {after.function_of(item) for item in same} - {before.function_of(item) for item in old_same}:
        return "it stands in another function now"
    if why := _renamed(before, after, node):
        return why
    old_ways, ways = before.ways(node), [way for item in same for way in after.ways(item)]
    if why := _uncalled(before, after, old_ways):
        return why
    for rule in (_caught, _wrapped, _left_before, _never):
        if why := rule(before, after, old_ways, ways):
            return why
    old, new = _conditions(before, old_ways), _conditions(after, ways)
    if not checked and (old - new or (new - old and len(ways) == len(old_ways))):
        return "its condition is another one, which no check of the failing work asks for"
    if not checked and _leaves(after, ways) - _leaves(before, old_ways):
        return "the edit leaves before it, which no check of the failing work asks for"
    return ""


def _renamed(before: _Source, after: _Source, node: ast.Raise) -> str:
    name = _class(node.exc) if node.exc else ""

    def bound(source: _Source) -> int:
        return sum(
            (isinstance(item, ast.Name) and item.id == name and not isinstance(item.ctx, ast.Load))
            or (isinstance(item, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and item.name == name)
            or (isinstance(item, ast.alias) and (item.asname or item.name) == name)
            or (isinstance(item, ast.arg) and item.arg == name)
            for item in source.reading.nodes
        )

    return f"{name} is made another thing" if bound(after) > bound(before) else ""


def _uncalled(before: _Source, after: _Source, old_ways: Sequence[ast.AST]) -> str:
    """A function on the way that is called in fewer places, or made one that a call does not run."""
    names = {before.function_of(way) for way in old_ways} - {""}
    for name in sorted(names):
        if len(after.calls(name)) < len(before.calls(name)):
            return f"{name}, which leads there, is called in fewer places"
        if _idle_kinds(after, name) - _idle_kinds(before, name):
            return f"a call of {name}, which leads there, does not run it any more"
        if len([f for f in after.reading.functions if f.name == name]) != len(
            [f for f in before.reading.functions if f.name == name]
        ):
            return f"{name}, which leads there, is defined otherwise"
    return ""


def _idle_kinds(source: _Source, name: str) -> set[str]:
    """A generator or a coroutine runs nothing when it is called."""
    kinds = set()
    for function in source.reading.functions:
        if function.name == name:
            inside = [node for node in ast.walk(function) if source.function_of(node) == name]
            kinds |= {"yields" for node in inside if isinstance(node, ast.Yield | ast.YieldFrom)}
            kinds |= {"async"} if isinstance(function, ast.AsyncFunctionDef) else set()
    return kinds


def _caught(before: _Source, after: _Source, old_ways: Sequence[ast.AST], ways: Sequence[ast.AST]) -> str:
    return "it is caught" if _catching(after, ways) > _catching(before, old_ways) else ""


def _catching(source: _Source, ways: Sequence[ast.AST]) -> int:
    """Handlers around any of the ways that may catch what the first of them raises."""
    caught = _caught_by(source, ways[0])
    count = 0
    for way in ways:
        for holder, held in source.above(way):
            if isinstance(holder, ast.Try | ast.TryStar) and held in holder.body:
                count += sum(bool(_names(handler.type) & caught) for handler in holder.handlers)
            if isinstance(holder, ast.Try | ast.TryStar) and held not in holder.finalbody:
                count += sum(1 for item in holder.finalbody for _ in leaving(item))
            if isinstance(holder, ast.With | ast.AsyncWith) and held in holder.body:
                count += sum(
                    isinstance(item.context_expr, ast.Call)
                    and ast.unparse(item.context_expr.func).endswith("suppress")
                    and any(_names(argument) & caught for argument in item.context_expr.args)
                    for item in holder.items
                )
    return count


def _names(node: ast.expr | None) -> set[str]:
    """Names of what is caught; a handler without a type, or of one that is put together, catches anything."""
    if node is None:
        return set(_BROAD)
    if isinstance(node, ast.Tuple):
        return {name for item in node.elts for name in _names(item)}
    return {_class(node)} if isinstance(node, ast.Name | ast.Attribute) else set(_BROAD)


def _caught_by(source: _Source, node: ast.AST) -> set[str]:
    """Names of the classes by which what is raised can be caught."""
    name = _class(node.exc) if isinstance(node, ast.Raise) and node.exc else ""
    found, queue = set(_BROAD), [name]
    own = {item.name: item for item in source.reading.nodes if isinstance(item, ast.ClassDef)}
    while queue:
        name = queue.pop()
        if name in found - _BROAD:
            continue
        found.add(name)
        builtin = getattr(builtins, name, None)
        if isinstance(builtin, type) and issubclass(builtin, BaseException):
            found |= {base.__name__ for base in builtin.__mro__}
        queue += [_class(base) for base in own[name].bases] if name in own else []
    return found


def _wrapped(before: _Source, after: _Source, old_ways: Sequence[ast.AST], ways: Sequence[ast.AST]) -> str:
    """A new decorator on a function that leads there may do anything in its place."""

    def decorators(source: _Source, seen: Sequence[ast.AST]) -> Counter[str]:
        names = {source.function_of(way) for way in seen}
        return Counter(
            f"{function.name} {ast.unparse(item)}"
            for function in source.reading.functions
            if function.name in names
            for item in function.decorator_list
        )

    return (
        "a function that leads there gets a decorator"
        if decorators(after, ways) - decorators(before, old_ways)
        else ""
    )


def _left_before(
    before: _Source, after: _Source, old_ways: Sequence[ast.AST], ways: Sequence[ast.AST]
) -> str:
    """A way out before it, under the very condition that it stood under."""
    held = {ast.dump(test) for test, _ in _tests(after, ways)} | {
        ast.dump(test) for test, _ in _tests(before, old_ways)
    }
    new = _leaves(after, ways) - _leaves(before, old_ways)
    for way in ways:
        for statement in _earlier(after, way):
            if isinstance(statement, ast.If) and any(
                _leave_of(inner) in new for inner in ast.walk(statement)
            ):
                parts = statement.test.values if isinstance(statement.test, ast.BoolOp) else [statement.test]
                if any(ast.dump(part) in held for part in (statement.test, *parts)):
                    return "the edit leaves before it under its own condition"
    return ""


def _earlier(source: _Source, way: ast.AST) -> Iterator[ast.stmt]:
    """Statements that stand before it in its function, and in the blocks around it."""
    for holder, held in source.above(way):
        for _, value in ast.iter_fields(holder):
            if isinstance(value, list) and held in value and isinstance(held, ast.stmt):
                yield from value[: value.index(held)]
        if isinstance(holder, FUNCTIONS):
            return


def _leaves(source: _Source, ways: Sequence[ast.AST]) -> Counter[str]:
    found: Counter[str] = Counter()
    for way in ways:
        for statement in _earlier(source, way):
            found.update(filter(None, map(_leave_of, ast.walk(statement))))
    return found


def _leave_of(node: ast.AST) -> str:
    return ast.dump(node) if isinstance(node, _LEAVES) else ""


# --- conditions ---------------------------------------------------------------------------------


def _tests(source: _Source, ways: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, bool]]:
    """The conditions around the ways, each with what it has to be."""
    for way in ways:
        for holder, held in source.above(way):
            if isinstance(holder, ast.If | ast.While) and held is not holder.test:
                yield holder.test, held in holder.body
            elif isinstance(holder, ast.IfExp) and held is not holder.test:
                yield holder.test, held is holder.body
            elif isinstance(holder, ast.BoolOp) and held in holder.values:
                for value in holder.values[: holder.values.index(held)]:
                    yield value, isinstance(holder.op, ast.And)
            elif isinstance(holder, ast.For | ast.AsyncFor) and held in holder.body:
                yield holder.iter, True
            elif isinstance(holder, FUNCTIONS):
                break


def _conditions(source: _Source, ways: Sequence[ast.AST]) -> Counter[str]:
    found = Counter(f"{wanted} {ast.dump(test)}" for test, wanted in _tests(source, ways))
    for way in ways:
        for holder, held in source.above(way):
            if isinstance(holder, ast.Match) and isinstance(held, ast.match_case):
                cases = holder.cases[: holder.cases.index(held) + 1]
                tried = [f"{ast.dump(case.pattern)} {case.guard and ast.dump(case.guard)}" for case in cases]
                found.update(f"{ast.dump(holder.subject)} is {case}" for case in tried)
            elif isinstance(holder, FUNCTIONS):
                break
    return found


def _never(before: _Source, after: _Source, old_ways: Sequence[ast.AST], ways: Sequence[ast.AST]) -> str:
    known = _conditions(before, old_ways)
    for test, wanted in _tests(after, ways):
        new = not known[f"{wanted} {ast.dump(test)}"]
        if new and (_never_is(after.reading, test) if wanted else _never_is(after.reading, _not(test))):
            return f"its condition never holds (`{ast.unparse(test)}`)"
    return ""


def _not(node: ast.expr) -> ast.expr:
    """Its opposite, as far as ``_never_is`` looks into it."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    if isinstance(node, ast.BoolOp):
        operator = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        return ast.BoolOp(operator, [_not(value) for value in node.values])
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPPOSITE:
        return ast.Compare(node.left, [_OPPOSITE[type(node.ops[0])]()], node.comparators)
    return ast.UnaryOp(ast.Not(), node)


_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_STRICT = (ast.NotEq, ast.Lt, ast.Gt, ast.IsNot)


def _never_is(reading: ParsedSource, node: ast.expr) -> bool:
    """Whether it is false whatever the work; False where that cannot be told."""
    if reading.truth(node) is False or (isinstance(node, ast.List | ast.Tuple | ast.Set) and not node.elts):
        return True
    if isinstance(node, ast.BoolOp):
        parts = [_never_is(reading, value) for value in node.values]
        if isinstance(node.op, ast.Or):
            return all(parts)
        said = {ast.dump(value) for value in node.values}
        return any(parts) or any(ast.dump(_not(value)) in said for value in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        opposite = _not(node.operand)
        return not isinstance(opposite, ast.UnaryOp) and _never_is(reading, opposite)
    if isinstance(node, ast.Call):
        return _never_called(reading, node)
    return isinstance(node, ast.Compare) and _never_compares(reading, node)


def _never_called(reading: ParsedSource, node: ast.Call) -> bool:
    name = ast.unparse(node.func)
    if name == "isinstance" and len(node.args) == 2:
        return isinstance(node.args[1], ast.Tuple) and not node.args[1].elts
    if name == "bool" and len(node.args) == 1:
        return _never_is(reading, node.args[0])
    if name in ("any", "all") and len(node.args) == 1 and isinstance(node.args[0], ast.List | ast.Tuple):
        parts = [_never_is(reading, item) for item in node.args[0].elts]
        return any(parts) if name == "all" else all(parts)
    return name == "range" and [reading.fold(item) for item in node.args] in ([0], [0, 0])


def _never_compares(reading: ParsedSource, node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        if isinstance(operator, _STRICT) and ast.dump(left) == ast.dump(right):
            return True
        empty = isinstance(right, ast.Dict) and not right.keys
        if isinstance(operator, ast.In) and (empty or reading.fold(right) in ("", ())):
            return True
        if _length_never(reading, left, operator, right) or _length_never(
            reading, right, _MIRRORED.get(type(operator), type(operator))(), left
        ):
            return True
    return False


_MIRRORED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip


def _length_never(reading: ParsedSource, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool:
    """A length compared with what no length of anything given is."""
    bound = reading.fold(right)
    if not (isinstance(left, ast.Call) and ast.unparse(left.func) in ("len", "abs") and type(bound) is int):
        return False
    is_length = ast.unparse(left.func) == "len"
    if isinstance(operator, ast.Lt | ast.LtE):
        return bound < 0 or (bound == 0 and isinstance(operator, ast.Lt))
    if isinstance(operator, ast.Eq | ast.Is):
        return bound < 0 or (is_length and bound > _LARGE)
    return isinstance(operator, ast.Gt | ast.GtE) and is_length and bound > _LARGE
