"""Comparison and boolean operators."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Splice

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
        left, right = operands[index], operands[index + 1]
        for sign, weight in SLIPS[SIGN[type(op)]].items():
            yield _between(site, left, right, SIGN[type(op)], sign, weight)
    if len(operands) == 2 and isinstance(node.ops[0], ast.In | ast.NotIn):
        sign = SIGN[type(node.ops[0])]
        yield site.edit(f"{site.text(node.comparators[0])} {sign} {site.text(node.left)}", "operands swapped")


def _between(
    site: EditSite, left: ast.expr, right: ast.expr, old: str, new: str, weight: float = 1.0
) -> CodeEdit:
    """Replace the operator that is written between two operands."""
    start, end = site.program.span(left)[1], site.program.span(right)[0]
    gap = site.program.data[start:end].decode()
    return CodeEdit(
        (Splice(start, end, gap.replace(old, new, 1), expression=False),), "comparison operator", weight
    )


def booleans(site: EditSite) -> Iterator[CodeEdit]:
    """``and`` for ``or``, the grouping of a mixed condition, and ``not``."""
    node = site.node
    if isinstance(node, ast.BoolOp):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        values = [site.text(value) for value in node.values]
        yield site.edit(f" {new} ".join(values), "boolean operator", 3.0)
        if len(values) > 2:
            for index in range(1, len(values)):
                first, rest = f" {old} ".join(values[:index]), f" {old} ".join(values[index:])
                yield site.edit(f"({first}) {new} ({rest})", "boolean operator")
        yield from _grouping(site, node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield site.edit(site.text(node.operand), "negation", 2.0)
    if is_condition(site) and isinstance(node, ast.expr) and not isinstance(node, ast.Compare):
        yield site.edit(f"not {_grouped(site, node)}", "negation", 2.0)


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
    head = " and ".join(site.text(value) for value in first.values[:-1])
    tail = " or ".join(site.text(value) for value in [first.values[-1], *node.values[1:]])
    return f"{head} and ({tail})"


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


def _grouped(site: EditSite, node: ast.expr) -> str:
    simple = isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
    return site.text(node) if simple else f"({site.text(node)})"
