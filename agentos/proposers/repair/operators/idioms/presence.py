"""What may be missing: a key, a value, an entry, a sum that has not begun."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

DEFAULTS = ("0", "''", "[]", "None", "{}", "0.0")


def sums(site: EditSite) -> Iterator[CodeEdit]:
    """``d[k] = v`` and ``d[k] += v`` for what adds up from nothing."""
    node = site.node
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target, kind = node.targets[0], "accumulated"
        yield site.edit(f"{site.text(target)} += {site.text(node.value)}", kind, 1.0)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
        target, kind = node.target, "presence"
    else:
        return
    holder, key, value = site.text(target.value), site.text(target.slice), site.text(node.value)
    for start in ("0", "[]", "''"):
        yield site.edit(f"{site.text(target)} = {holder}.get({key}, {start}) + {value}", kind, 1.0)


def lookups(site: EditSite) -> Iterator[CodeEdit]:
    """A default for ``get`` and ``pop``, or another one; the key itself where nothing stands for it."""
    node = site.node
    if (
        isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and not isinstance(node.slice, ast.Slice)
    ):
        base, key = site.text(node.value), site.text(node.slice)
        for default in (key, "{}", "None", "0.0", "1"):
            yield site.edit(f"{base}.get({key}, {default})", "default", 0.3)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return
    if node.func.attr not in ("get", "pop"):
        return
    func, key = site.text(node.func), site.text(node.args[0])
    for default in (*DEFAULTS, key, "1"):
        yield site.edit(f"{func}({key}, {default})", "default", 0.7)
    if node.func.attr == "get":
        yield site.edit(f"{site.text(node.func.value)}[{key}]", "presence", 0.4)


def tests_of_none(site: EditSite) -> Iterator[CodeEdit]:
    """Empty and missing told apart, or not: ``x`` and ``x is not None``."""
    node, above = site.node, site.parent
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot):
        word = "not " if isinstance(node.ops[0], ast.Is) else ""
        yield site.edit(f"{word}{site.text(node.left)}", "presence", 0.7)
    elif (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Name)
    ):
        yield site.edit(f"{site.text(node.operand)} is None", "presence", 0.5)
    elif isinstance(node, ast.Name | ast.Attribute) and _is_tested(node, above):
        yield site.edit(f"{site.text(node)} is not None", "presence", 0.7)


def _is_tested(node: ast.expr, above: ast.AST | None) -> bool:
    if isinstance(above, ast.If | ast.While | ast.IfExp):
        return above.test is node
    return isinstance(above, ast.BoolOp) or (isinstance(above, ast.comprehension) and node in above.ifs)


def nothing_to_walk(site: EditSite) -> Iterator[CodeEdit]:
    """``or []`` for what is walked through, and ``or ""`` for what is a text."""
    node, above = site.node, site.parent
    if isinstance(above, ast.For | ast.comprehension) and above.iter is node and isinstance(node, ast.expr):
        yield site.edit(f"({site.text(node)} or [])", "default", 1.0)
    if (
        isinstance(above, ast.Attribute)
        and above.value is node
        and isinstance(node, ast.Name | ast.Attribute)
    ):
        for default in ("''", "{}"):
            yield site.edit(f"({site.text(node)} or {default})", "default", 0.5)


def entries(site: EditSite) -> Iterator[CodeEdit]:
    """A mapping that is given back with one entry more, under a name that the file knows as a constant."""
    node = site.node
    if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Name | ast.Call | ast.DictComp):
        return
    whole = site.text(node.value)
    for name in site.facts.idle:
        for value in ("1.0", "0", "1", "''"):
            yield site.edit(f"return {{{name}: {value}, **{whole}}}", "presence", 0.3)
