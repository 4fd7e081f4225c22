"""Statements: left out, too many, in the wrong place, at the wrong depth, without their guard."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from heapq import merge

from agentos.evolver.proposers.repair.operators.conditions import conditions_for
from agentos.evolver.proposers.repair.scope import COLLECTIONS
from agentos.evolver.proposers.repair.site import Site
from agentos.evolver.proposers.repair.source import Edit, Family, Splice

SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Break, ast.Continue, ast.Raise, ast.AnnAssign)


def block_of(site: Site) -> list[ast.stmt]:
    """The statements that the site's statement stands among."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(site.parent, field, None)
        if isinstance(block, list) and site.node in block:
            return block
    return []


def _indent(node: ast.stmt) -> str:
    return " " * node.col_offset


def before(site: Site, node: ast.stmt, text: str) -> Splice:
    start = site.program.span(node)[0]
    indented = text.replace("\n", "\n" + _indent(node))
    return Splice(start, start, f"{indented}\n{_indent(node)}", expression=False)


def after(site: Site, node: ast.stmt, text: str) -> Splice:
    """Behind the node and a comment on its last line."""
    end = site.program.span(node)[1]
    line_end = site.program.data.find(b"\n", end)
    if line_end >= 0 and site.program.data[end:line_end].strip().startswith(b"#"):
        end = line_end
    indented = text.replace("\n", "\n" + _indent(node))
    return Splice(end, end, f"\n{_indent(node)}{indented}", expression=False)


def deletions(site: Site) -> Iterator[Edit]:
    """This statement, or this and the next, left out; a branch without its condition."""
    node = site.node
    block = block_of(site)
    if not isinstance(node, ast.stmt) or not block or isinstance(node, ast.FunctionDef | ast.ClassDef):
        return
    if len(block) == 1:
        yield Edit((site.program.replace(node, "pass"),), "statement deleted", 0.5)
        return
    yield Edit((gone(site, node),), "statement deleted")
    index = block.index(node)
    if index + 1 < len(block) and len(block) > 2:
        yield Edit((gone(site, node), gone(site, block[index + 1])), "statements deleted", 0.3)
    if isinstance(node, ast.If) and not node.orelse and node.body[0].lineno > node.lineno:
        yield Edit((site.program.replace(node, _body(site, node.body)),), "condition dropped", 0.5)


def gone(site: Site, node: ast.stmt) -> Splice:
    start, end = site.program.lines_span(node)
    whole = end > site.program.span(node)[1]
    return Splice(start, end, "" if whole else "pass", expression=False)


def _body(site: Site, body: list[ast.stmt]) -> str:
    """A block's text, dedented to the depth of the statement that holds it."""
    assert isinstance(site.node, ast.stmt)
    start, end = site.program.span(body[0])[0], site.program.span(body[-1])[1]
    text = site.program.data[start:end].decode()
    deeper = body[0].col_offset - site.node.col_offset
    return re.sub(rf"\n {{{deeper}}}", "\n", text)


def moves(site: Site) -> Iterator[Edit]:
    """Neighbours exchanged; the last statement of a block one level out; the next one level in."""
    node, block = site.node, block_of(site)
    if not isinstance(node, ast.stmt) or not block or isinstance(node, ast.FunctionDef | ast.ClassDef):
        return
    index = block.index(node)
    if index + 1 < len(block) and isinstance(node, SIMPLE):
        below = block[index + 1]
        splices = (
            site.program.replace(node, site.text(below)),
            site.program.replace(below, site.text(node)),
        )
        yield Edit(splices, "statements exchanged", 0.5)
    above = site.parent
    if (
        isinstance(node, SIMPLE)
        and isinstance(above, ast.For | ast.While | ast.If)
        and len(block) > 1
        and index == len(block) - 1
    ):
        yield Edit((gone(site, node), after(site, above, site.text(node))), "statement moved out", 1.0)
    if isinstance(node, ast.For | ast.While | ast.If) and index + 1 < len(block):
        below = block[index + 1]
        if isinstance(below, SIMPLE):
            splices = (gone(site, below), after(site, node.body[-1], site.text(below)))
            yield Edit(splices, "statement moved in", 0.7)


def guards(site: Site, factor: Callable[[str, str], float]) -> Iterator[Family]:
    """A condition around this statement, and a way out before it: so many that they are made as needed.

    ``factor`` says what else speaks for an operator that brings a text.
    """
    node, block = site.node, block_of(site)
    if not isinstance(node, ast.stmt) or not block or isinstance(node, ast.FunctionDef | ast.ClassDef):
        return
    conditions = conditions_for(site)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Return):
        weights = {c: 0.5 * w * factor("guard", c) for c, w in conditions.items()}
        yield Family("guard", 0.5 * sum(conditions.values()), _guarded(site, node, weights))
    ways = _ways_out(site)
    parts = []
    for way, likely in ways.items():
        weights = {c: 0.2 * w * likely * factor("way out", f"{c} {way}") for c, w in conditions.items()}
        parts.append(_left_early(site, node, way, weights))
    total = 0.2 * sum(conditions.values()) * sum(ways.values())
    yield Family("way out", total, merge(*parts, key=lambda edit: -edit.weight))


def _guarded(site: Site, node: ast.stmt, weights: Mapping[str, float]) -> Iterator[Edit]:
    inner = site.text(node).replace("\n", "\n    ")
    for condition, weight in sorted(weights.items(), key=lambda pair: -pair[1]):
        text = f"if {condition}:\n{_indent(node)}    {inner}"
        yield Edit((Splice(*site.program.span(node), text, expression=False),), "guard", weight)


def _left_early(site: Site, node: ast.stmt, way: str, weights: Mapping[str, float]) -> Iterator[Edit]:
    for condition, weight in sorted(weights.items(), key=lambda pair: -pair[1]):
        yield Edit((before(site, node, f"if {condition}:\n    {way}"),), "way out", weight)


def _ways_out(site: Site) -> dict[str, float]:
    ways: dict[str, float] = {}
    above = site.parent
    while above is not None and not isinstance(above, ast.FunctionDef):
        if isinstance(above, ast.For | ast.While):
            ways |= {"continue": 1.0, "break": 0.5}
            break
        above = site.program.parent.get(above)
    if site.function is not None:
        first = site.function.body[0] is site.node or not ways
        for node in site.facts.by_function[site.function]:
            if not isinstance(node, ast.Return):
                continue
            if isinstance(node.value, ast.Constant | ast.List | ast.Name) and site.visible(node.value):
                ways[site.text(node)] = 1.0 if first else 0.3
        for default in ("None", "0", "''", "[]", "False", "True"):
            ways.setdefault(f"return {default}", 0.5 if first else 0.1)
    return ways


def insertions(site: Site) -> Iterator[Edit]:
    """A statement that is missing: one of the same file, with its names or others; a step; an end."""
    node, block = site.node, block_of(site)
    if not isinstance(node, ast.stmt) or not block or isinstance(node, ast.FunctionDef | ast.ClassDef):
        return
    last = block[-1] is node and not isinstance(node, ast.Return | ast.Break | ast.Continue | ast.Raise)
    for text, weight in _statements(site).items():
        yield Edit((before(site, node, text),), "statement inserted", weight)
        if last:
            yield Edit((after(site, node, text),), "statement inserted", weight)


def _statements(site: Site) -> dict[str, float]:
    weights: dict[str, float] = {}
    own = site.text(site.node) if isinstance(site.node, ast.stmt) else ""
    for other in site.facts.by_function[site.function]:
        if not isinstance(other, ast.Assign | ast.AugAssign | ast.Expr) or other is site.node:
            continue
        if "\n" in site.text(other):
            continue
        weights[site.text(other)] = 0.2
    for name in site.variables():
        kind = site.scope.kinds.get(name, "")
        if "." in name or kind == "record":
            continue
        if kind in ("", "int", "float"):
            weights |= {
                f"{name} += 1": 0.7,
                f"{name} -= 1": 0.7,
                f"{name} = 0": 0.3,
                f"{name} = abs({name})": 0.1,
            }
        if kind in ("", "str"):
            weights |= {f"{name} = {name}.strip()": 0.4, f"{name} = {name}.lower()": 0.4, f"{name} = ''": 0.2}
        if kind in COLLECTIONS or kind == "":
            weights |= {f"{name} = []": 0.2, f"{name}.sort()": 0.3, f"{name} = sorted({name})": 0.2}
    weights |= {"break": 0.5, "continue": 0.3}
    weights.pop(own, None)
    return weights


def returns(site: Site) -> Iterator[Edit]:
    """Another variable, the other way round, or nothing at all given back."""
    node = site.node
    if isinstance(node, ast.Return) and node.value is not None:
        for name in site.variables():
            if name != site.text(node.value) and site.scope.kinds.get(name) != "record":
                yield site.edit(f"return {name}", "result", 0.7)
                yield site.edit(f"return -{name}", "result", 0.1)
    if isinstance(node, ast.Assign) and not isinstance(node.value, ast.Name):
        for name in site.variables():
            yield site.edit(name, "value", 0.3, node=node.value)
            if site.scope.kinds.get(name, "") in ("", "int", "float"):
                yield site.edit(f"-{name}", "value", 0.2, node=node.value)
