"""Arithmetic: another operator, operands the other way round, one more or one less, the sign."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.scope import COLLECTIONS
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Splice

SIGN: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
SLIPS: dict[str, dict[str, float]] = {
    "+": {"-": 3, "*": 1, "%": 0.3, "//": 0.2, "/": 0.2},
    "-": {"+": 3, "*": 0.5, "//": 0.7, "/": 0.7, "%": 0.7},
    "*": {"+": 1.5, "**": 1.5, "/": 1, "//": 1, "-": 0.5, "%": 0.3},
    "/": {"//": 3, "*": 1.5, "%": 1, "-": 0.5, "+": 0.3},
    "//": {"/": 3, "%": 2, "*": 1, "-": 0.5},
    "%": {"//": 2, "/": 1, "*": 0.5, "-": 0.5, "+": 0.3},
    "**": {"*": 3, "//": 0.3, "+": 0.3},
    "&": {"|": 3, "^": 1, "-": 1}, "|": {"&": 3, "^": 1, "-": 1}, "^": {"&": 1, "|": 1},
    "<<": {">>": 3}, ">>": {"<<": 3},
}  # fmt: skip

FACTORS = {
    "* 2": 0.3,
    "/ 2": 0.3,
    "// 2": 0.3,
    "** 2": 0.2,
    "% 2": 0.2,
    "// 10": 0.1,
    "% 10": 0.1,
    "* 100": 0.1,
    "+ 2": 0.1,
    "- 2": 0.1,
}


def arithmetic(site: EditSite) -> Iterator[CodeEdit]:
    """Another operator between two operands, in an expression or an augmented assignment."""
    node = site.node
    if isinstance(node, ast.BinOp):
        sign = SIGN.get(type(node.op), "")
        start, end = site.program.span(node.left)[1], site.program.span(node.right)[0]
        gap = site.program.data[start:end].decode()
        for other, weight in SLIPS.get(sign, {}).items():
            splice = Splice(start, end, gap.replace(sign, other, 1), expression=False)
            yield CodeEdit((splice,), "arithmetic operator", weight)
        if sign not in ("+", "*") or "str" in (site.kind(node.left), site.kind(node.right)):
            left, right = _operand(site, node.left), _operand(site, node.right)
            yield site.edit(f"{right} {sign} {left}", "operands swapped")
    elif isinstance(node, ast.AugAssign):
        sign = SIGN.get(type(node.op), "")
        target, value = site.text(node.target), site.text(node.value)
        for other, weight in SLIPS.get(sign, {}).items():
            yield site.edit(f"{target} {other}= {value}", "arithmetic operator", weight)
        yield site.edit(f"{target} = {value}", "assignment", 0.7)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        yield site.edit(f"{site.text(node.targets[0])} += {site.text(node.value)}", "assignment", 0.5)


def _operand(site: EditSite, node: ast.expr) -> str:
    return f"({site.text(node)})" if isinstance(node, ast.BinOp | ast.IfExp) else site.text(node)


def one_more(site: EditSite) -> Iterator[CodeEdit]:
    """Plus one and minus one where a number counts or bounds something; a small factor elsewhere."""
    node = site.node
    if not isinstance(node, ast.expr) or not _may_be_number(site, node):
        return
    likely = 1.0 if _bounds(site) else 0.25
    text = site.text(node)
    grouped = f"({text})" if isinstance(node, ast.IfExp | ast.Compare | ast.BoolOp) else text
    yield site.edit(f"{grouped} + 1", "off by one", likely)
    yield site.edit(f"{grouped} - 1", "off by one", likely)
    if isinstance(node, ast.Constant):
        return
    grouped = f"({text})" if isinstance(node, ast.BinOp | ast.IfExp | ast.Compare) else text
    for factor, weight in FACTORS.items():
        yield site.edit(f"{grouped} {factor}", "factor", weight)
    for value in dict.fromkeys(site.text(number) for number in site.near(site.facts.numbers, 40)):
        for sign in ("+", "-", "*", "//", "%", "**"):
            yield site.edit(f"{grouped} {sign} {value}", "factor", 0.25)
    yield from _with_variables(site, grouped)


def _with_variables(site: EditSite, grouped: str) -> Iterator[CodeEdit]:
    for name in site.variables():
        if name != grouped and site.scope.kinds.get(name, "") not in COLLECTIONS | {"record"}:
            for sign in ("+", "-", "*", "/", "//", "%"):
                yield site.edit(
                    f"{grouped} {sign} {name}", "factor", 0.2 if "." in name and sign in "*/" else 0.1
                )


def signs(site: EditSite) -> Iterator[CodeEdit]:
    """The minus sign: one too few or one too many."""
    node = site.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if not isinstance(node.operand, ast.Constant):
            yield site.edit(site.text(node.operand), "sign", 2.0)
    elif (
        isinstance(node, ast.Name | ast.Subscript | ast.Call)
        and _may_be_number(site, node)
        and not isinstance(site.parent, ast.UnaryOp)
    ):
        yield site.edit(f"-{site.text(node)}", "sign", 0.5)


def _may_be_number(site: EditSite, node: ast.expr) -> bool:
    if isinstance(node, ast.Starred | ast.Slice | ast.Lambda | ast.Compare | ast.BoolOp | ast.Tuple):
        return False
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return False
    above = site.parent
    if isinstance(above, ast.Call | ast.Attribute | ast.Subscript | ast.For | ast.comprehension | ast.Expr):
        used_whole = getattr(above, "func", None) is node or getattr(above, "value", None) is node
        if used_whole or getattr(above, "iter", None) is node:
            return False
    return site.kind(node) in ("", "int", "float")


def _bounds(site: EditSite) -> bool:
    above = site.parent
    if isinstance(above, ast.Call):
        return isinstance(above.func, ast.Name) and above.func.id == "range"
    if isinstance(above, ast.Subscript):
        return above.slice is site.node
    return isinstance(above, ast.Slice | ast.Compare | ast.Return | ast.BinOp)
