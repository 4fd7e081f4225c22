"""What runs when: loops left or gone on with, statements elsewhere, what one branch does and the other does not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentos.proposers.repair.operators.statements import SIMPLE, after, before, block_of, gone
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Splice

LEFT = {"bisect_left": "bisect_right", "ceil": "floor", "mean": "median", "combinations": "permutations",
        "zip_longest": "zip", "floor": "ceil", "bisect_right": "bisect_left", "median": "mean",
        "permutations": "combinations", "combinations_with_replacement": "combinations",
        "OrderedDict": "Counter", "nlargest": "nsmallest", "nsmallest": "nlargest", "unescape": "escape",
        "escape": "unescape", "quote": "unquote", "unquote": "quote", "date": "datetime"}  # fmt: skip


LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Raise)


def jumps(site: EditSite) -> Iterator[CodeEdit]:
    """``continue`` for ``break``, and the other way round; ``elif`` for a second ``if``."""
    node = site.node
    if isinstance(node, ast.Continue):
        yield site.edit("break", "flow", 1.0)
    elif isinstance(node, ast.Break):
        yield site.edit("continue", "flow", 1.0)
    elif isinstance(node, ast.Return) and _in_loop(site):
        yield site.edit("continue", "flow", 0.3)
        yield site.edit("break", "flow", 0.3)
    elif isinstance(node, ast.If) and site.text(node).startswith("if"):
        block = block_of(site)
        index = block.index(node) if node in block else 0
        above = block[index - 1] if index else None
        if isinstance(above, ast.If) and not above.orelse:
            start = site.program.span(node)[0]
            yield CodeEdit((Splice(start, start, "el", expression=False),), "flow", 0.7)


def _in_loop(site: EditSite) -> bool:
    above = site.parent
    while above is not None and not isinstance(above, ast.FunctionDef):
        if isinstance(above, ast.For | ast.While):
            return True
        above = site.program.parent.get(above)
    return False


def farther(site: EditSite) -> Iterator[CodeEdit]:
    """A simple statement moved to another place of its block, farther than to its neighbour."""
    node, block = site.node, block_of(site)
    if not isinstance(node, SIMPLE) or node not in block:
        return
    index, text = block.index(node), site.text(node)
    for place, other in enumerate(block):
        if abs(place - index) < 2 and isinstance(other, SIMPLE):
            continue
        if place < index:
            yield CodeEdit((before(site, other, text), gone(site, node)), "statements exchanged", 0.4)
        elif not isinstance(other, LEAVING):
            yield CodeEdit((gone(site, node), after(site, other, text)), "statements exchanged", 0.4)
    above = site.parent
    if isinstance(above, ast.For | ast.While | ast.If) and len(block) > 1 and index == 0:
        yield CodeEdit((before(site, above, text), gone(site, node)), "statement moved out", 0.3)


def twins(site: EditSite) -> Iterator[CodeEdit]:
    """The same again for another: ``home.points += 1`` is followed by ``away.points += 1``."""
    node = site.node
    if not isinstance(node, ast.AugAssign | ast.Assign | ast.Expr) or node not in block_of(site):
        return
    text = site.text(node)
    used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    names = [name for name in site.variables() if name.isidentifier()]
    for old in sorted(used & set(names)):
        for new in names:
            if new != old and new not in used:
                changed = re.sub(rf"\b{old}\b", new, text)
                yield CodeEdit((after(site, node, changed),), "statement inserted", 0.2)


def from_elsewhere(site: EditSite) -> Iterator[CodeEdit]:
    """A start value set again: an assignment of the same class, or one from before the loop."""
    node = site.node
    if not isinstance(node, ast.stmt) or node not in block_of(site) or site.function is None:
        return
    above = site.program.parent.get(site.function)
    if not isinstance(above, ast.ClassDef):
        return
    for method in above.body:
        if isinstance(method, ast.FunctionDef) and method is not site.function:
            for other in method.body:
                if isinstance(other, ast.Assign) and isinstance(
                    other.value, ast.Constant | ast.List | ast.Dict
                ):
                    yield CodeEdit((before(site, node, site.text(other)),), "set again", 2.0)
                    if node is block_of(site)[-1] and not isinstance(node, ast.Return):
                        yield CodeEdit((after(site, node, site.text(other)),), "set again", 2.0)
    for field in above.body:
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and field.value is not None
        ):
            value = site.text(field.value) if isinstance(field.value, ast.Constant) else "[]"
            text = f"self.{field.target.id} = {value}"
            yield CodeEdit((before(site, node, text),), "set again", 1.0)
            yield CodeEdit((after(site, node, text),), "set again", 1.0)


def flushed(site: EditSite) -> Iterator[CodeEdit]:
    """What a loop does when a group ends, done once more behind the loop for the last group."""
    node = site.node
    if not isinstance(node, ast.For | ast.While) or node not in block_of(site):
        return
    for inner in node.body:
        if not isinstance(inner, ast.If):
            continue
        for statement in inner.body:
            if isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign):
                text = site.text(statement)
                yield CodeEdit((after(site, node, text),), "statement inserted", 0.5)
                for name in {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)} & set(
                    site.variables()
                ):
                    yield CodeEdit((after(site, node, f"if {name}:\n    {text}"),), "statement inserted", 0.5)


def imported_instead(site: EditSite) -> Iterator[CodeEdit]:
    """Another function of the same library in the place of one that the file imports, wherever it is used."""
    node = site.node
    if not isinstance(node, ast.Name) or node.id not in site.facts.imported or node.id not in LEFT:
        return
    new = LEFT[node.id]
    uses = [n for n in site.facts.nodes if isinstance(n, ast.Name) and n.id == node.id]
    splices = [site.program.replace(use, new) for use in uses]
    for line in site.program.tree.body:
        if isinstance(line, ast.ImportFrom):
            for alias in line.names:
                if alias.name == node.id and alias.asname is None:
                    start = site.program.offset(alias.lineno, alias.col_offset)
                    splices.insert(0, Splice(start, start + len(node.id), new, expression=False))
                    yield CodeEdit(tuple(splices), "function", 1.5)


def ordered_otherwise(site: EditSite) -> Iterator[CodeEdit]:
    """One item of a written list moved to its front or its end."""
    node = site.node
    if (
        isinstance(node, ast.List | ast.Tuple)
        and 3 <= len(node.elts) <= 12
        and isinstance(node.ctx, ast.Load)
    ):
        texts = [site.text(item) for item in node.elts]
        opening, closing = ("[", "]") if isinstance(node, ast.List) else ("(", ")")
        for index in range(len(texts)):
            rest = texts[:index] + texts[index + 1 :]
            for moved in ([texts[index], *rest], [*rest, texts[index]]):
                if moved != texts:
                    yield site.edit(f"{opening}{', '.join(moved)}{closing}", "order", 0.5)
