"""A case that was not thought of, with all that belongs to it: in a function that asks itself, a branch more, at both ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentos.proposers.repair.operators.statements import (
    after,
    before,
    block_of,
    in_template,
    together,
)
from agentos.proposers.repair.scope import names_in, target_names
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

Loop = ast.For | ast.While


# --- a branch more --------------------------------------------------------------------------------


# --- the same at all places ------------------------------------------------------------------------


def told_missing(site: EditSite) -> Iterator[CodeEdit]:
    """What is not there is told from None that is there: by another value for what ``get`` does not find."""
    node = site.node
    if not isinstance(node, ast.Assign) or node not in block_of(site):
        return
    calls = [n for n in ast.walk(node.value) if isinstance(n, ast.Call) and len(n.args) == 1]
    calls = [c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "get"]
    names = {name for target in node.targets for name in target_names(target)}
    nothing = []
    for test in (n for n in site.facts.nodes_in(site.function) if isinstance(n, ast.Compare)):
        if isinstance(test.ops[0], ast.Is | ast.IsNot) and names & names_in(test.left):
            nothing.append(test.comparators[0])
    if calls and nothing:
        found = [site.program.replace(c, f"{site.text(c).removesuffix(')')}, ...)") for c in calls]
        yield together([*found, *(site.program.replace(n, "...") for n in nothing)], "told missing")


def optional_part(site: EditSite) -> Iterator[CodeEdit]:
    """The first or last group of a pattern need not be there; as a number it is nought then."""
    node = site.node
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or in_template(site, node):
        return
    written = site.text(node)
    groups = list(re.finditer(r"\((?!\?)(?:[^()\\]|\\.)*\)", written))
    if len(groups) < 2 or not written.startswith(("r", "'", '"')):
        return
    ways = []
    first, second, last = groups[0], groups[1], groups[-1]
    ways.append(
        f"{written[: first.start()]}(?:{written[first.start() : second.start()]})?{written[second.start() :]}"
    )
    ways.append(
        f"{written[: groups[-2].end()]}(?:{written[groups[-2].end() : last.end()]})?{written[last.end() :]}"
    )
    numbers = [
        n for n in site.program.nodes(ast.Call) if site.text(n.func) in ("int", "float") and len(n.args) == 1
    ]
    plain = [n.args[0] for n in numbers if isinstance(n.args[0], ast.Name | ast.Subscript | ast.Call)]
    plain = [n for n in plain if not in_template(site, n)][:6]
    for way in ways:
        begun = site.program.replace(node, way)
        yield together((begun,), "optional part")
        for one in plain:
            yield together((begun, site.program.replace(one, f"{site.text(one)} or 0")), "optional part")
        if len(plain) > 1:
            all_of = [site.program.replace(one, f"{site.text(one)} or 0") for one in plain]
            yield together((begun, *all_of), "optional part")


def group_unread(site: EditSite) -> Iterator[CodeEdit]:
    """A group of a pattern that nothing reads is what is given back in place of a default."""
    node, function = site.node, site.function
    if not isinstance(node, ast.stmt) or node not in block_of(site) or function is None:
        return
    hints = {a.arg: site.text(a.annotation) for a in function.args.args if a.annotation is not None}
    matches = {name for name, hint in hints.items() if "Match" in hint}
    read: dict[str, int] = {}
    for each in ast.walk(function) if matches else ():
        holder: ast.expr | None = None
        if isinstance(each, ast.Subscript):
            holder, number = each.value, each.slice
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.args:
            holder, number = each.func.value if each.func.attr == "group" else None, each.args[0]
        if isinstance(holder, ast.Name) and isinstance(number, ast.Constant) and type(number.value) is int:
            read[holder.id] = max(number.value, read.get(holder.id, 0))
    for name, most in read.items():
        if name in matches:
            group = f"{name}[{most + 1}]"
            yield together(
                (before(site, node, f"if {group} is not None:\n    return {group}"),), "group unread"
            )


# --- ends: ties at a cut, nothing at all, numbers that began anew ---------------------------------------


def began_anew(site: EditSite) -> Iterator[CodeEdit]:
    """A difference below nought, where a counter began anew; a date of two digits that lies ahead."""
    node = site.node
    if (
        not isinstance(node, ast.Assign)
        or node not in block_of(site)
        or not isinstance(node.targets[0], ast.Name)
    ):
        return
    name, value = node.targets[0].id, node.value
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
        idle = [
            n
            for n in site.variables()
            if n in site.facts.unread and site.scope.kinds.get(n) in ("int", "float")
        ]
        for step in (f"{way}{end}" for n in idle for way, end in ((n, ""), (f"10**{n}", ""), (n, " + 1"))):
            yield together((after(site, node, f"if {name} < 0:\n    {name} += {step}"),), "began anew")
        yield together(
            (after(site, node, f"if {name} < 0:\n    {name} = {site.text(value.left)}"),), "began anew"
        )
    elif "%y" in site.program.source or "[-2:]" in site.program.source:
        for other in site.variables():
            if other != name and site.scope.kinds.get(other, "") == "":
                text = f"if {name} > {other}:\n    {name} = {name}.replace(year={name}.year - 100)"
                yield together((after(site, node, text),), "began anew")


BRANCHES = (told_missing, optional_part, group_unread, began_anew)
