"""Arithmetic: another operator, operands the other way round, one more or one less, the sign, other brackets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentos.proposers.repair.scope import COLLECTIONS, is_target
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Splice

SIGN: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.MatMult: "@",
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

NO_NUMBERS = (ast.Starred, ast.Slice, ast.Lambda, ast.Compare, ast.BoolOp, ast.Tuple, ast.NamedExpr, ast.GeneratorExp,
              ast.Yield, ast.YieldFrom)  # fmt: skip
LOOSER = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)  # than + and -
FACTORS = {
    "* 2": 0.3, "/ 2": 0.3, "// 2": 0.3, "** 2": 0.2, "% 2": 0.2, "// 10": 0.1, "% 10": 0.1, "* 100": 0.1, "+ 2": 0.1, "- 2": 0.1,
}  # fmt: skip
OTHER_FIELDS = 16  # names of fields that are tried beside one
# days, months, hours, letters, minutes, degrees, minutes of a day
PERIODS = (7, 10, 12, 24, 26, 60, 100, 360, 1440)


def arithmetic(site: EditSite) -> Iterator[CodeEdit]:
    """Another operator between two operands, in an expression or an augmented assignment."""
    node = site.node
    if isinstance(node, ast.BinOp):
        sign = SIGN[type(node.op)]
        start, end, gap = site.between(node.left, node.right)
        for other, weight in SLIPS.get(sign, {}).items():
            splice = Splice(start, end, gap.replace(sign, other, 1), expression=False)
            yield CodeEdit((splice,), "arithmetic operator", weight)
        if sign not in ("+", "*") or "str" in (site.kind(node.left), site.kind(node.right)):
            first = _power if sign == "**" else operand
            right, left = first(site, node.right), operand(site, node.left)
            yield site.edit(f"{right} {sign} {left}", "operands swapped")
    elif isinstance(node, ast.AugAssign):
        sign = SIGN[type(node.op)]
        for other, weight in SLIPS.get(sign, {}).items():
            yield _assigned(site, node, f"{other}=", "arithmetic operator", weight)
        yield _assigned(site, node, "=", "assignment", 0.7)
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        yield _assigned(site, node, "+=", "assignment", 0.5)


def _assigned(
    site: EditSite, node: ast.Assign | ast.AugAssign, sign: str, operator: str, weight: float
) -> CodeEdit:
    """Another sign between a target and its value, which keeps its lines and brackets."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    start, end, gap = site.between(target, node.value)
    changed = re.sub(r"[^\s()]*=", sign, gap, count=1)
    return CodeEdit((Splice(start, end, changed, expression=False),), operator, weight)


def operand(site: EditSite, node: ast.expr) -> str:
    """Its text, in brackets where another operator would take it apart without."""
    return f"({site.text(node)})" if isinstance(node, ast.BinOp) else side(site, node)


def side(site: EditSite, node: ast.expr) -> str:
    """The same of what stands beside a comparison."""
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    loose = negated or isinstance(node, ast.Compare | ast.BoolOp)
    return f"({site.text(node)})" if loose else arm(site, node)


def arm(site: EditSite, node: ast.expr) -> str:
    """The same of what stands beside ``and``, ``or``, ``if`` and ``else``."""
    loose = ast.IfExp | ast.Lambda | ast.NamedExpr | ast.Yield | ast.YieldFrom
    return f"({site.text(node)})" if isinstance(node, loose) else site.text(node)


def _power(site: EditSite, node: ast.expr) -> str:
    """The same of what is raised to a power: a sign before it would be one of the whole."""
    return f"({site.text(node)})" if isinstance(node, ast.UnaryOp | ast.Await) else operand(site, node)


def one_more(site: EditSite) -> Iterator[CodeEdit]:
    """Plus one and minus one where a number counts or bounds something; a small factor elsewhere."""
    node = site.node
    if not isinstance(node, ast.expr) or not _may_be_number(site, node):
        return
    likely = 1.0 if _bounds(site) else 0.25
    text = site.text(node)
    bits = isinstance(node, ast.BinOp) and isinstance(node.op, LOOSER)
    grouped = f"({text})" if isinstance(node, ast.IfExp) or bits else text
    yield site.edit(f"{grouped} + 1", "off by one", likely)
    yield site.edit(f"{grouped} - 1", "off by one", likely)
    if isinstance(node, ast.Constant):
        return
    grouped = f"({text})" if isinstance(node, ast.BinOp | ast.IfExp) else text
    raised = _power(site, node)
    for factor, weight in FACTORS.items():
        yield site.edit(f"{raised if factor[:2] == '**' else grouped} {factor}", "factor", weight)
    for value in dict.fromkeys(site.text(number) for number in site.near(site.facts.numbers, 40)):
        for sign in ("+", "-", "*", "//", "%", "**"):
            around_it = sign == "%" and value in site.facts.periods
            likely = 2.0 if around_it else 0.25
            yield site.edit(f"{raised if sign == '**' else grouped} {sign} {value}", "factor", likely)
    yield from _with_variables(site, grouped)


def _with_variables(site: EditSite, grouped: str) -> Iterator[CodeEdit]:
    """Combined with a variable, or with an element: likeliest with one of what the value is put into, a total so far."""
    target = site.parent.targets[0] if isinstance(site.parent, ast.Assign) else None
    held = f"{site.text(target.value)}[" if isinstance(target, ast.Subscript) else " "
    near = site.near(site.facts.expressions, 30)
    elements = [site.text(each) for each in near if isinstance(each, ast.Subscript) and site.visible(each)]
    for name in (*site.variables(), *elements):
        if name != grouped and site.scope.kinds.get(name, "") not in COLLECTIONS | {"record"}:
            for sign in ("+", "-", "*", "/", "//", "%"):
                likely = (
                    2.0
                    if name.startswith(held) and sign in "+*"
                    else 0.2
                    if "." in name and sign in "*/"
                    else 0.1
                )
                yield site.edit(f"{grouped} {sign} {name}", "factor", likely)


def with_other_field(site: EditSite) -> Iterator[CodeEdit]:
    """The same of another field added or taken off: ``row["net"] + row["tax"]``, ``count(x, "failed") + count(x, "errors")``."""
    node = site.node
    if not isinstance(node, ast.Call | ast.Subscript) or not _may_be_number(site, node):
        return
    parts = node.args if isinstance(node, ast.Call) else [node.slice]
    keys = [part for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    if len(keys) != 1 or "=" in site.text(node):
        return
    known = (each for each in site.facts.constants if isinstance(each, str) and each.isidentifier())
    text = site.text(node)
    for name in [*dict.fromkeys((*site.facts.given.fields, *known))][:OTHER_FIELDS]:
        if name != keys[0].value:
            other = _replaced(site, node, keys[0], repr(name))
            yield site.edit(f"{text} + {other}", "operand repeated", 0.5)
            yield site.edit(f"{text} - {other}", "operand repeated", 0.2)


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
    if isinstance(node, NO_NUMBERS):
        return False
    if is_target(node):
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


# --- the same parts nested otherwise: across the bracket of a call, as a loop for a single test, around a circle ---


def across(site: EditSite) -> Iterator[CodeEdit]:
    """A method or a factor on the other side of a call's bracket: ``f(a) * b`` as ``f(a * b)``."""
    node = site.node
    if isinstance(node, ast.Call):
        yield from _methods(site, node)
        yield from _factor_out(site, node)
    elif isinstance(node, ast.BinOp):
        yield from _factor_in(site, node)
        yield from _over_all(site, node)


def _methods(site: EditSite, node: ast.Call) -> Iterator[CodeEdit]:
    """``f(a).m(b)`` and ``f(a.m(b))``."""
    func = node.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call) and len(func.value.args) == 1:
        outer = func.value
        if not outer.keywords:
            inner = f"{site.tight(outer.args[0])}.{func.attr}{_behind(site, func, node)}"
            yield site.edit(f"{site.tight(outer.func)}({inner})", "nesting", 1.0)
    argument = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(argument, ast.Call) and isinstance(argument.func, ast.Attribute):
        method = f".{argument.func.attr}{_behind(site, argument.func, argument)}"
        yield site.edit(f"{site.tight(func)}({site.text(argument.func.value)}){method}", "nesting", 1.0)


def _behind(site: EditSite, first: ast.expr, whole: ast.expr) -> str:
    """What is written of the whole after its first part."""
    return site.program.data[site.program.span(first)[1] : site.program.span(whole)[1]].decode()


def _factor_in(site: EditSite, node: ast.BinOp) -> Iterator[CodeEdit]:
    """``f(a, b) * c`` as ``f(a * c, b)``."""
    sign = SIGN[type(node.op)]
    for call, other, left in ((node.left, node.right, True), (node.right, node.left, False)):
        if not isinstance(call, ast.Call) or (not left and sign not in "+*"):
            continue
        for argument in call.args:
            if isinstance(argument, ast.Starred | ast.GeneratorExp):
                continue
            changed = f"{site.tight(argument)} {sign} {site.tight(other)}"
            yield site.edit(_replaced(site, call, argument, changed), "nesting", 0.7)


def _factor_out(site: EditSite, node: ast.Call) -> Iterator[CodeEdit]:
    """``f(a * c, b)`` as ``f(a, b) * c``; ``f(x=s * a, y=b)`` as ``s * f(x=a, y=b)``."""
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        if isinstance(argument, ast.BinOp) and isinstance(
            argument.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod
        ):
            sign = SIGN[type(argument.op)]
            rest = _replaced(site, node, argument, site.text(argument.left))
            yield site.edit(f"{rest} {sign} {site.tight(argument.right)}", "nesting", 0.7)
            if isinstance(argument.op, ast.Mult):
                rest = _replaced(site, node, argument, site.text(argument.right))
                yield site.edit(f"{site.tight(argument.left)} * {rest}", "nesting", 0.7)


def _over_all(site: EditSite, node: ast.BinOp) -> Iterator[CodeEdit]:
    """``s * a * b + c`` as ``s * (a * b + c)``: the first factor of a product is one of the whole."""
    if not isinstance(node.op, ast.Add | ast.Sub):
        return
    first = node.left
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Mult):
        first = first.left
    if first is node.left or not isinstance(node.left, ast.BinOp):
        return
    start = site.program.span(node.left)[0]
    end = site.program.span(first)[1]
    head = site.program.data[start:end].decode()
    rest = _behind(site, first, node).lstrip()
    if rest.startswith("*") and head.count("(") == head.count(")"):
        yield site.edit(f"{head} * ({rest[1:].lstrip()})", "nesting", 1.0)


def _replaced(site: EditSite, whole: ast.expr, part: ast.expr, text: str) -> str:
    """The whole as written, with other text for a part of it."""
    start, end = site.program.span(whole)
    one, two = site.program.span(part)
    data = site.program.data
    return f"{data[start:one].decode()}{text}{data[two:end].decode()}"


def again(site: EditSite) -> Iterator[CodeEdit]:
    """``while`` for an ``if`` whose body changes what is asked."""
    node = site.node
    if not isinstance(node, ast.If) or node.orelse or not site.text(node).startswith("if"):
        return
    asked = {ast.unparse(n) for n in ast.walk(node.test) if isinstance(n, ast.Name | ast.Attribute)}
    changed = set()
    for inner in (inner for statement in node.body for inner in ast.walk(statement)):
        if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Store):
            changed.add(ast.unparse(inner))
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            changed.add(ast.unparse(inner.func.value))  # a method may change what it is called on
    if asked & changed:
        start = site.program.span(node)[0]
        yield CodeEdit((Splice(start, start + 2, "while", expression=False),), "flow", 1.5)


def around(site: EditSite) -> Iterator[CodeEdit]:
    """A number within its period, an index that begins again behind the end, a slice that begins at the start."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.expr) or isinstance(node, ast.Constant):
        return
    text = site.tight(node)
    if isinstance(above, ast.Subscript) and above.slice is node and isinstance(node, ast.BinOp):
        base = site.text(above.value)
        yield site.edit(f"{text} % len({base})", "nesting", 1.0)
        yield site.edit(f"max({site.text(node)}, 0)", "limited", 1.0)
    elif isinstance(above, ast.Slice) and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        yield site.edit(f"max({site.text(node)}, 0)", "limited", 3.0)
    elif _may_turn(site):
        for period in PERIODS:
            yield site.edit(f"{text} % {period}", "factor", 0.3)


def _may_turn(site: EditSite) -> bool:
    """A number that is compared, taken apart, or looked up by."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Name | ast.BinOp | ast.Call | ast.Attribute | ast.Subscript):
        return False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return False
    if site.kind(node) not in ("", "int", "float") or is_target(node):
        return False
    if isinstance(above, ast.Compare):
        return above.left is node
    if isinstance(above, ast.Call):
        return isinstance(above.func, ast.Name) and above.func.id == "divmod" and above.args[:1] == [node]
    if isinstance(above, ast.BinOp):
        return isinstance(above.op, ast.FloorDiv) and above.left is node
    return isinstance(above, ast.Return | ast.Assign) and isinstance(node, ast.BinOp)
