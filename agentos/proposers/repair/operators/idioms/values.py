"""Values: numbers within limits, in other units, grouped otherwise; what may be missing, or is shared."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from agentos.proposers.repair.operators.arithmetic import SIGN, operand
from agentos.proposers.repair.scope import COLLECTIONS, comprehension_names, is_target, names_in, target_names
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit
from agentos.syntax import Definition

# Numbers that stand for one another where a unit is meant.
UNITS = ((7, 24, 60, 3600, 86_400), (60, 100, 1000), (10, 100, 1000), (1000, 1024), (12, 24), (5, 6, 7), (28, 30, 31),
         (360, 365, 366), (1000, 1_000_000), (52, 53), (50, 100))  # fmt: skip


def limited(site: EditSite) -> Iterator[CodeEdit]:
    """``min`` or ``max`` of the value and something that bounds it."""
    node = site.node
    if not _is_value(site) or not isinstance(node, ast.expr) or site.kind(node) not in ("", "int", "float"):
        return
    text = site.text(node)
    bounds = {"0": 1.0, "1": 0.3, **{name: 1.5 for name in site.facts.idle}}
    for name in site.variables():
        if site.scope.kinds.get(name, "") in ("", "int", "float"):
            bounds.setdefault(name, 0.4)
    for other in site.near(site.facts.expressions, 30):
        if isinstance(other, ast.Subscript) and site.visible(other):
            bounds.setdefault(site.text(other), 0.3)
    for element, weight in _elements(site):
        bounds.setdefault(element, weight)
    if (so_far := _kept_so_far(site)) in bounds:
        bounds[so_far] = 3.0
    for bound, weight in bounds.items():
        if bound != text:
            yield site.edit(f"max({bound}, {text})", "limited", weight)
            yield site.edit(f"min({text}, {bound})", "limited", weight)


def _kept_so_far(site: EditSite) -> str:
    """The variable that the value is given to in each round of a loop: the last one may be taken for the greatest."""
    above = site.parent
    if not isinstance(above, ast.Assign) or len(above.targets) != 1 or above.value is not site.node:
        return ""
    around = site.program.parent.get(above)
    while isinstance(around, ast.If | ast.With | ast.Try):
        around = site.program.parent.get(around)
    return site.text(above.targets[0]) if isinstance(around, ast.For | ast.While) else ""


BEYOND = {"min": 'float("inf")', "max": 'float("-inf")'}


def begun_at_nought(site: EditSite) -> Iterator[CodeEdit]:
    """The least and the greatest so far begin beyond all values: what begins at 0 never is above it.

    Of all such variables of the function at once, where one of them is a least one.
    """
    if not isinstance(site.node, ast.Assign) or not _zeros(site.node) or site.function is None:
        return
    inside = site.facts.nodes_in(site.function)
    begun = [n for n in inside if isinstance(n, ast.Assign) and _zeros(n)]
    kinds = {each: kind for each in begun if (kind := _narrowed(site, each.targets[0], inside))}
    if "min" not in kinds.values() or site.node is not next(iter(kinds)):
        return
    splices = [
        site.program.replace(number, BEYOND[kind]) for each, kind in kinds.items() for number in _zeros(each)
    ]
    yield CodeEdit(tuple(splices), "defect", 2.0)


def _zeros(node: ast.Assign) -> list[ast.expr]:
    """The noughts that a variable, or each entry of its list, begins with."""
    value = node.value
    numbers = value.elts if isinstance(value, ast.List) else [value]
    plain = len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
    zeros = [
        n for n in numbers if isinstance(n, ast.Constant) and type(n.value) in (int, float) and not n.value
    ]
    return [*zeros] if plain and len(zeros) == len(numbers) else []


def _narrowed(site: EditSite, target: ast.expr, inside: Sequence[ast.AST]) -> str:
    """Whether it, or what is in it, becomes the least or the greatest of itself and another value; "" for neither."""
    for step in inside:
        if not isinstance(step, ast.Assign) or not isinstance(step.value, ast.Call):
            continue
        holder = step.targets[0]
        root = holder.value if isinstance(holder, ast.Subscript) else holder
        called = site.text(step.value.func)
        same = site.text(holder) in map(site.text, step.value.args) if isinstance(root, ast.Name) else False
        if called in BEYOND and same and site.text(root) == site.text(target):
            return called
    return ""


def _elements(site: EditSite) -> Iterator[tuple[str, float]]:
    """``stock[coin]`` for each mapping or list and each plain variable, most of all one that walks through it."""
    names = [name for name in site.variables() if name.isidentifier()]
    walked = _walked(site)
    for holder in names:
        if site.scope.kinds.get(holder) in ("dict", "list"):
            for key in names:
                if site.scope.kinds.get(key, "") in ("", "int", "str"):
                    yield f"{holder}[{key}]", 1.5 if (key, holder) in walked else 0.2


def _walked(site: EditSite) -> set[tuple[str, str]]:
    """Each name that a loop around the site binds, with each name that the loop walks through."""
    found = set()
    above = site.parent
    while above is not None:
        if isinstance(above, ast.For) and isinstance(above.target, ast.Name):
            found |= {(above.target.id, name) for name in names_in(above.iter)}
        above = site.program.parent.get(above)
    return found


def _is_value(site: EditSite) -> bool:
    """A value that is assigned, given back or handed on."""
    node, above = site.node, site.parent
    if isinstance(
        node, ast.Constant | ast.JoinedStr | ast.Tuple | ast.List | ast.Dict | ast.ListComp | ast.Compare
    ):
        return False
    if isinstance(above, ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign):
        return above.value is node
    if isinstance(above, ast.Call):
        return node in above.args and isinstance(node, ast.BinOp | ast.Name | ast.Subscript)
    return isinstance(above, ast.keyword | ast.BinOp) and isinstance(node, ast.BinOp | ast.Call)


def units(site: EditSite) -> Iterator[CodeEdit]:
    """Another number that counts units of the same sort; another keyword of a span of time."""
    node = site.node
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        value = node.value
        others = {other for family in UNITS if value in family for other in family if other != value}
        yield from (site.edit(str(other), "unit", 1.0) for other in sorted(others))
    elif isinstance(node, ast.Call) and site.text(node.func).endswith("timedelta"):
        yield from _spans(site, node)


def _spans(site: EditSite, node: ast.Call) -> Iterator[CodeEdit]:
    for keyword in node.keywords:
        for other in ("days", "hours", "minutes", "seconds", "weeks"):
            if other != keyword.arg:
                changed = re.sub(rf"\b{keyword.arg}=", f"{other}=", site.text(node), count=1)
                yield site.edit(changed, "unit", 1.0)


def regrouped(site: EditSite) -> Iterator[CodeEdit]:
    """The same operands and signs, bracketed otherwise: ``a * b - c`` as ``(a - c) * b`` or ``a * (b - c)``."""
    node = site.node
    if not isinstance(node, ast.BinOp) or not isinstance(
        node.left, ast.BinOp | ast.Name | ast.Call | ast.Subscript
    ):
        return
    sign = SIGN[type(node.op)]
    if isinstance(node.left, ast.BinOp):
        inner = SIGN[type(node.left.op)]
        first, second = operand(site, node.left.left), site.text(node.left.right)
        third = operand(site, node.right)
        yield site.edit(
            f"({first} {sign} {third}) {inner} {operand(site, node.left.right)}", "regrouped", 1.0
        )
        yield site.edit(f"{first} {inner} ({second} {sign} {third})", "regrouped", 1.0)
        yield site.edit(f"{first} {inner} {second} {sign} {third}", "regrouped", 1.0)
        deepest = node.left
        while isinstance(deepest.left, ast.BinOp):
            deepest = deepest.left
        if deepest is not node.left:
            start = site.text(deepest.left)
            rest = site.text(node.left)[len(start) :] if site.text(node.left).startswith(start) else ""
            if rest:
                yield site.edit(f"({start} {sign} {third}){rest}", "regrouped", 1.0)
    if isinstance(node.right, ast.BinOp):
        inner = SIGN[type(node.right.op)]
        first, third = operand(site, node.left), operand(site, node.right.right)
        second = operand(site, node.right.left)
        yield site.edit(f"({first} {sign} {second}) {inner} {third}", "regrouped", 1.0)


def to_variables(site: EditSite) -> Iterator[CodeEdit]:
    """A variable in the place of an expression."""
    node = site.node
    if not isinstance(node, ast.Subscript | ast.Call | ast.BinOp) or isinstance(site.parent, ast.Expr):
        return
    if is_target(node):
        return
    own, handed_on = site.kind(node), isinstance(site.parent, ast.Call)
    if handed_on and own not in COLLECTIONS:
        return
    for name in site.variables():
        if site.scope.kinds.get(name, "") in ((own,) if handed_on else ("", own)) or not own:
            yield site.edit(name, "expression to name", 0.4)


# --- what may be missing, or there only once ----------------------------------------------------


WALKING = frozenset({"min", "max", "sum", "sorted", "len", "list", "set", "enumerate"})


def tests_of_none(site: EditSite) -> Iterator[CodeEdit]:
    """What is there told from what is empty: ``x is not None``."""
    node = site.node
    if isinstance(node, ast.Name | ast.Attribute) and _is_tested(node, site.parent):
        yield site.edit(f"{site.text(node)} is not None", "presence", 0.7)


def _is_tested(node: ast.expr, above: ast.AST | None) -> bool:
    if isinstance(above, ast.If | ast.While | ast.IfExp):
        return above.test is node
    return isinstance(above, ast.BoolOp) or (isinstance(above, ast.comprehension) and node in above.ifs)


def nothing_to_walk(site: EditSite) -> Iterator[CodeEdit]:
    """``or []`` for what is walked through, and ``or ""`` for what is a text."""
    node, above = site.node, site.parent
    if isinstance(above, ast.For | ast.comprehension) and above.iter is node and isinstance(node, ast.expr):
        yield site.edit(f"({operand(site, node)} or [])", "default", 1.0)
    if (
        isinstance(above, ast.Attribute)
        and above.value is node
        and isinstance(node, ast.Name | ast.Attribute)
    ):
        for default in ("''", "{}"):
            yield site.edit(f"({site.text(node)} or {default})", "default", 0.5)


def walked(site: EditSite) -> Iterator[CodeEdit]:
    """What is walked through: without what is empty in it, as it was, and more than once."""
    node, above = site.node, site.parent
    if isinstance(node, ast.GeneratorExp) and isinstance(above, ast.Assign):
        yield site.edit(f"[{site.text(node)[1:-1]}]", "presence", 2.0)
    within = isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in WALKING
    within = within and above.args[:1] == [node]  # type: ignore[union-attr]  # a call, as was asked
    if isinstance(node, ast.Name | ast.Attribute | ast.Call) and (
        within or (isinstance(above, ast.For | ast.comprehension) and above.iter is node)
    ):
        if isinstance(above, ast.For):  # what it walks through may change under way
            yield site.edit(f"list({site.text(node)})", "presence", 0.5)
        for test in ("each is not None", "each"):
            yield site.edit(f"[each for each in {site.text(node)} if {test}]", "filter", 0.5)


def of_their_own(site: EditSite) -> Iterator[CodeEdit]:
    """Each function its own variable of a loop."""
    node = site.node
    if not isinstance(node, ast.Lambda):
        return
    start, end = site.program.span(node)[0], site.program.span(node.body)[0]
    head = site.program.data[start:end].decode().rstrip(" \t\n(").removesuffix(":").rstrip()
    used = names_in(node.body)
    for name in sorted(_bound_by_loops(site) & used):
        sign = "," if node.args.args else ""
        yield site.edit(f"{head}{sign} {name}={name}: {site.text(node.body)}", "presence", 3.0)


def _bound_by_loops(site: EditSite) -> set[str]:
    found = set(comprehension_names(site.program, site.parent or site.node))
    above = site.parent
    while above is not None and not isinstance(above, Definition):
        if isinstance(above, ast.For):
            found |= set(target_names(above.target))
        above = site.program.parent.get(above)
    return found
