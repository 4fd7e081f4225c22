"""Conditions: another comparison or operator, one more operand, a filter, a default for None, a guard around a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from agentos.proposers.repair.operators.arithmetic import arm, operand, side
from agentos.proposers.repair.scope import COLLECTIONS, compatible, is_target, names_in
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Splice
from agentos.syntax import parse_expression

SIGN: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip

# What is written instead of what, with how likely: a boundary and a direction are the usual slips.
SLIPS: dict[str, dict[str, float]] = {
    "<": {"<=": 3, ">": 2, ">=": 1.5, "!=": 0.5, "==": 0.7},
    "<=": {"<": 3, ">=": 2, ">": 1.5, "==": 0.5, "!=": 0.2},
    ">": {">=": 3, "<": 2, "<=": 1.5, "!=": 0.5, "==": 0.7},
    ">=": {">": 3, "<=": 2, "<": 1.5, "==": 0.5, "!=": 0.2},
    "==": {"!=": 3, "<=": 0.8, ">=": 0.8, "in": 0.5, "<": 0.5, ">": 0.5, "is": 0.1},
    "!=": {"==": 3, "<": 0.7, ">": 0.7, "<=": 0.4, ">=": 0.4, "not in": 0.5},
    "in": {"not in": 3, "==": 0.7}, "not in": {"in": 3, "!=": 0.7},
    "is": {"is not": 3, "==": 1}, "is not": {"is": 3, "!=": 1},
}  # fmt: skip


def comparisons(site: EditSite) -> Iterator[CodeEdit]:
    """Another operator between the operands, or the operands the other way round."""
    node = site.node
    if not isinstance(node, ast.Compare):
        return
    operands = [node.left, *node.comparators]
    for index, op in enumerate(node.ops):
        for sign, weight in SLIPS[SIGN[type(op)]].items():
            yield _compared(site, node, index, sign, weight)
    yield from _overlapping(site, node)
    if len(operands) == 2 and isinstance(node.ops[0], ast.In | ast.NotIn):
        sign = SIGN[type(node.ops[0])]
        holder, item = side(site, node.comparators[0]), side(site, node.left)
        yield site.edit(f"{holder} {sign} {item}", "operands swapped")


def _overlapping(site: EditSite, node: ast.Compare) -> Iterator[CodeEdit]:
    """Whether two spans have anything in common, where it is asked whether one begins within the other."""
    ops, inside = node.ops, node.comparators[0]
    if (
        len(ops) != 2
        or not all(isinstance(op, ast.Lt | ast.LtE) for op in ops)
        or not isinstance(inside, ast.Name)
    ):
        return
    low, high = side(site, node.left), side(site, node.comparators[1])
    if type(ops[0]) is type(ops[1]):
        sign = "<=" if isinstance(ops[0], ast.Lt) else "<"
        yield site.edit(f"{low} {sign} {inside.id} {sign} {high}", "comparison operator", 2.0)
    for other in site.facts.bound_beside(inside.id, site.function):
        yield site.edit(
            f"{inside.id} {SIGN[type(ops[1])]} {high} and {low} {SIGN[type(ops[1])]} {other}",
            "regrouped",
            3.0,
        )
        yield site.edit(
            f"{other} {SIGN[type(ops[1])]} {high} and {low} {SIGN[type(ops[1])]} {inside.id}",
            "regrouped",
            2.0,
        )


def _compared(site: EditSite, node: ast.Compare, index: int, new: str, weight: float) -> CodeEdit:
    """Replace the operator before the comparator with this index."""
    old = SIGN[type(node.ops[index])]
    left, right = [node.left, *node.comparators][index : index + 2]
    start, end, gap = site.between(left, right)
    new = f" {new} " if new[-1].isalpha() and gap.strip("()") == old else new  # as in ``a=="x"``
    return CodeEdit(
        (Splice(start, end, gap.replace(old, new, 1), expression=False),), "comparison operator", weight
    )


def booleans(site: EditSite) -> Iterator[CodeEdit]:
    """``and`` for ``or``, the grouping of a mixed condition, and ``not``."""
    node = site.node
    if isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        values = node.values
        yield site.edit(joined(site, new, values), "boolean operator", 3.0)
        if len(values) > 2:
            for index in range(1, len(values)):
                first, rest = joined(site, old, values[:index]), joined(site, old, values[index:])
                yield site.edit(f"({first}) {new} ({rest})", "boolean operator")
        yield from _grouping(site, node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield site.edit(site.text(node.operand), "negation", 2.0)
    if is_condition(site) and isinstance(node, ast.expr) and not isinstance(node, ast.Compare):
        yield site.edit(f"not {site.tight(node)}", "negation", 2.0)


def joined(site: EditSite, word: str, values: Sequence[ast.expr]) -> str:
    """The values with ``and`` or ``or`` between them, in brackets what would be read otherwise without."""
    if len(values) == 1:
        return site.text(values[0])
    return f" {word} ".join(
        f"({site.text(each)})" if word == "and" and isinstance(each, ast.BoolOp) else arm(site, each)
        for each in values
    )


def _grouping(site: EditSite, node: ast.BoolOp) -> Iterator[CodeEdit]:
    """``a and b or c`` read as ``a and (b or c)``, here and in every condition of the same shape."""
    shape = _mixed(node)
    if shape is None:
        return
    yield site.edit(_regrouped(site, node), "grouping", 2.0)
    same = [
        other
        for other in site.facts.nodes_in(site.function)
        if isinstance(other, ast.BoolOp) and _mixed(other) == shape
    ]
    if len(same) > 1 and same[0] is node:
        splices = tuple(site.program.replace(other, _regrouped(site, other)) for other in same)
        yield CodeEdit(splices, "grouping", 4.0)


def _mixed(node: ast.BoolOp) -> str | None:
    """The shape of ``a and b or c`` (mixed operators, the inner one first)."""
    first = node.values[0]
    if isinstance(node.op, ast.Or) and isinstance(first, ast.BoolOp) and isinstance(first.op, ast.And):
        return f"{len(first.values)} and, {len(node.values)} or"
    return None


def _regrouped(site: EditSite, node: ast.BoolOp) -> str:
    first = node.values[0]
    assert isinstance(first, ast.BoolOp)
    tail = joined(site, "or", [first.values[-1], *node.values[1:]])
    return f"{joined(site, 'and', first.values[:-1])} and ({tail})"


def is_condition(site: EditSite) -> bool:
    """Whether the node's truth decides something by itself."""
    node, above = site.node, site.parent
    if isinstance(above, ast.If | ast.While | ast.IfExp | ast.Assert):
        return above.test is node
    if isinstance(above, ast.comprehension):
        return node in above.ifs
    if isinstance(above, ast.Return):
        return (
            isinstance(node, ast.Compare | ast.BoolOp) or site.kind(above.value or ast.Constant(0)) == "bool"
        )
    return isinstance(above, ast.BoolOp)


def conditions_for(site: EditSite) -> dict[str, float]:
    """Conditions that make sense at the site: the file's own, and simple ones over its variables."""
    variables = site.variables()
    known = site.facts.conditions_at
    key = (site.function, *variables)
    if key not in known:
        known[key] = _conditions_for(site, variables)
    return known[key]


def _conditions_for(site: EditSite, variables: list[str]) -> dict[str, float]:
    weights: dict[str, float] = {}
    near = site.near(site.facts.conditions, 40)
    for other in near:
        if site.visible(other):
            weights[_whole(arm(site, other))] = 1.0
            weights.setdefault(f"not ({site.text(other)})", 0.4)
    for other in near:
        for text in _renamed(site, other, variables):
            weights.setdefault(text, 0.5)
    for name in variables:
        weights.update({t: w for t, w in _about(site, name).items() if t not in weights})
    for index, one in enumerate(variables):
        for two in variables[index + 1 :]:
            for text, weight in _between(site, one, two):
                weights.setdefault(text, weight)
    return weights


def _renamed(site: EditSite, condition: ast.expr, variables: list[str]) -> Iterator[str]:
    """The condition with one of its names replaced by another variable, or two exchanged."""
    start = site.program.span(condition)[0]
    names = [n for n in ast.walk(condition) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    used = sorted({n.id for n in names if n.id in site.scope.kinds})
    for old in used:
        for new in variables:
            if new == old or not compatible(site.scope.kinds.get(old, ""), site.scope.kinds.get(new, "")):
                continue
            swap = {old: new, new: old} if new in used else {old: new}
            text = site.text(condition).encode()
            for node in sorted(names, key=lambda n: -site.program.span(n)[0]):
                if node.id in swap:
                    one, end = (offset - start for offset in site.program.span(node))
                    text = text[:one] + swap[node.id].encode() + text[end:]
            renamed = _whole(text.decode())
            try:
                found = parse_expression(renamed)
            except SyntaxError:  # places within an f-string are not to be relied on before Python 3.12
                continue
            if site.visible(found):
                yield renamed


def _whole(text: str) -> str:
    """The expression so that it may stand anywhere: one over several lines needs its parentheses with it."""
    return f"({text})" if "\n" in text else text


def _about(site: EditSite, name: str) -> dict[str, float]:
    kind = site.scope.kinds.get(name, "")
    if kind == "record":
        return {}
    weights = {name: 0.7, f"not {name}": 0.7, f"{name} is not None": 0.7, f"{name} is None": 0.5}
    if kind in ("", "int", "float"):
        weights |= {f"{name} > 0": 0.5, f"{name} >= 0": 0.3, f"{name} < 0": 0.3, f"{name} != 0": 0.4}
        weights |= {f"{name} == 0": 0.4, f"{name} % 2 == 0": 0.4, f"{name} % 2 == 1": 0.4}
        weights |= {f"{name} == 1": 0.2, f"{name} > 1": 0.3, f"{name} != 1": 0.2, f"{name} < 2": 0.2}
    if kind in COLLECTIONS or kind == "":
        weights |= {f"len({name}) > 1": 0.4, f"len({name}) == 0": 0.2, f"len({name}) == 1": 0.2}
    if kind in ("", "str"):
        weights |= {f"{name}.strip()": 0.5, f"{name}.isdigit()": 0.2, f"{name}.isalpha()": 0.2}
    for kind_asked in site.facts.asked_types if kind == "" else ():
        weights |= {f"isinstance({name}, {kind_asked})": 0.3, f"not isinstance({name}, {kind_asked})": 0.3}
    for function in site.scope.of_one:
        weights |= {f"{function}({name})": 0.7, f"not {function}({name})": 0.4}
    return weights


def _between(site: EditSite, one: str, two: str) -> Iterator[tuple[str, float]]:
    first, second = site.scope.kinds.get(one, ""), site.scope.kinds.get(two, "")
    if "record" in (first, second):
        return
    if compatible(first, second):
        for sign in ("==", "!=", "<", ">", "<=", ">="):
            yield f"{one} {sign} {two}", 0.3
    for item, holder, kind in ((one, two, second), (two, one, first)):
        if kind in COLLECTIONS or kind == "":
            yield f"{item} in {holder}", 0.3
            yield f"{item} not in {holder}", 0.3


def more_conditions(site: EditSite) -> Iterator[CodeEdit]:
    """``and`` or ``or`` one more condition, where a condition stands."""
    node = site.node
    if not is_condition(site) or isinstance(site.parent, ast.BoolOp):
        return
    assert isinstance(node, ast.expr)
    own = site.text(node)
    values = node.values if isinstance(node, ast.BoolOp) else ()
    present = {_whole(text) for text in (own, *map(site.text, values))}
    for other, weight in conditions_for(site).items():
        if other in present:
            continue
        for word, against in (("and", ast.Or), ("or", ast.And)):
            mixed = isinstance(node, ast.BoolOp) and isinstance(node.op, against)
            grouped = f"({own})" if mixed and word == "and" else arm(site, node)
            yield site.edit(f"{grouped} {word} {other}", "condition added", weight)
    yield from _asked_before(site, own)


def _asked_before(site: EditSite, own: str) -> Iterator[CodeEdit]:
    """What the condition is about is asked for first: ``not stack or stack[-1] != sign``."""
    assert isinstance(site.node, ast.expr)
    grouped = f"({own})" if isinstance(site.node, ast.BoolOp) else arm(site, site.node)
    used = dict.fromkeys(n.id for n in ast.walk(site.node) if isinstance(n, ast.Name))
    parts = _parts_of_texts(site.node)
    for name in (name for name in used if name in site.scope.kinds and name != own):
        likely = 6.0 if name in parts else 1.0
        yield site.edit(f"not {name} or {grouped}", "condition added", likely)
        yield site.edit(f"{name} and {grouped}", "condition added", likely)
        yield site.edit(f"{name} is None or {grouped}", "condition added", 0.5)
        yield site.edit(f"{name} is not None and {grouped}", "condition added", 0.5)
    for bound in dict.fromkeys(_bounds(site)):
        yield site.edit(f"{bound} and {grouped}", "condition added", 8.0)
        yield site.edit(f"not {bound} or {grouped}", "condition added", 0.5)


def _parts_of_texts(condition: ast.expr) -> set[str]:
    """Names that are looked for in a text: an empty one is at the beginning and the end of each."""
    found = set()
    for node in ast.walk(condition):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("startswith", "endswith") and node.args:
                found.add(node.args[0])
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            found.add(node.left)
    return {node.id for node in found if isinstance(node, ast.Name)}


def _bounds(site: EditSite) -> Iterator[str]:
    """That the places which the node looks up are there: ``i < len(values)``."""
    for node in ast.walk(site.node):
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name | ast.Attribute):
            continue
        held, place = site.text(node.value), node.slice
        if not isinstance(place, ast.Name | ast.BinOp) or site.kind(node.value) == "dict":
            continue
        if isinstance(place, ast.BinOp) and isinstance(place.op, ast.Sub):
            yield f"{side(site, place.left)} >= {side(site, place.right)}"
        else:
            yield f"{site.text(place)} < len({held})"


def from_zero(site: EditSite) -> Iterator[CodeEdit]:
    """A lower bound beside the upper one, for each part of a condition alike: ``0 <= x < width and 0 <= y < height``."""
    node = site.node
    parts = node.values if isinstance(node, ast.BoolOp) else [node]
    bounded = [
        each for each in parts if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.Lt | ast.LtE)
    ]
    if bounded and isinstance(node, ast.Compare | ast.BoolOp):
        start = [site.program.span(each)[0] for each in bounded]
        yield CodeEdit(
            tuple(Splice(at, at, "0 <= ", expression=False) for at in start), "condition added", 1.0
        )


def conditional(site: EditSite) -> Iterator[CodeEdit]:
    """Another value where a condition holds: ``-value if side else value``."""
    node, above = site.node, site.parent
    if not isinstance(above, ast.Return | ast.Assign | ast.keyword) or above.value is not node:
        return
    if not isinstance(node, ast.expr) or isinstance(
        node, ast.Constant | ast.IfExp | ast.JoinedStr | ast.Tuple
    ):
        return
    text, kind, number = arm(site, node), site.kind(node), operand(site, node)
    others = [f"-{number}", f"{number} + 1", f"{number} - 1", "0"] if kind in ("", "int", "float") else []
    used = names_in(node)
    tests = {name: 0.7 for name in site.variables() if name in site.facts.unread}
    tests |= {name: 0.5 for name in site.variables() if site.scope.kinds.get(name) == "bool"}
    for asked in site.near(site.facts.conditions, 8):
        if site.visible(asked) and used & names_in(asked):
            tests.setdefault(_whole(site.text(asked)), 0.2)
    for test, weight in tests.items():
        for other in others:
            yield site.edit(f"{other} if {test} else {text}", "conditional", weight)
            yield site.edit(f"{text} if {test} else {other}", "conditional", weight)


def filters(site: EditSite) -> Iterator[CodeEdit]:
    """A condition for a comprehension that has none."""
    node = site.node
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        last = node.generators[-1]
        if not last.ifs:
            end = site.program.span(node)[1] - 1  # what is walked through may stand in brackets
            item = EditSite(
                site.facts, node.key if isinstance(node, ast.DictComp) else node.elt, site.function
            )
            for condition, weight in conditions_for(item).items():
                yield CodeEdit((Splice(end, end, f" if {condition}", expression=False),), "filter", weight)


def defaults(site: EditSite) -> Iterator[CodeEdit]:
    """A value for when there is none: ``or default``, and ``if x else default``."""
    node = site.node
    if not isinstance(node, ast.Name | ast.Call | ast.Subscript | ast.Attribute):
        return
    if isinstance(site.parent, ast.Expr) or is_target(node):
        return
    if isinstance(site.parent, ast.Call) and site.parent.func is node:
        return
    text, kind = site.text(node), site.kind(node)
    for default, fits in (
        ("0", ("int", "float", "")),
        ("''", ("str", "")),
        ("[]", ("list", "")),
        ("{}", ("dict",)),
    ):
        if kind in fits:
            yield site.edit(f"({text} or {default})", "default", 0.5)
    if isinstance(site.parent, ast.Return | ast.Assign) and not isinstance(node, ast.Name):
        used = names_in(node) & set(site.variables())
        for name in sorted(used):
            for default in ("None", "0", "''", "[]", "0.0"):
                yield site.edit(f"{text} if {name} else {default}", "guard", 0.4)


def other_parameters(site: EditSite) -> Iterator[CodeEdit]:
    """An argument that falls back to a parameter of the same function: ``int(end or last)``."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Name) or not isinstance(above, ast.Call) or above.func is node:
        return
    for parameter in site.function.args.args if site.function else ():
        if parameter.arg != node.id:
            yield site.edit(f"{node.id} or {parameter.arg}", "default", 0.5)
