"""What may be missing, or there only once: a key, a value, an entry, a sum that has not begun, a list, a variable."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.scope import comprehension_names, target_names
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

WALKING = frozenset({"min", "max", "sum", "sorted", "len", "list", "set", "enumerate"})
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
        yield from _set_once(site)
        return
    holder, key, value = site.text(target.value), site.text(target.slice), site.text(node.value)
    for start in ("0", "[]", "''"):
        yield site.edit(f"{site.text(target)} = {holder}.get({key}, {start}) + {value}", kind, 1.0)
    if isinstance(node, ast.Assign):
        yield site.edit(f"{holder}.setdefault({key}, {value})", kind, 1.0)


def _set_once(site: EditSite) -> Iterator[CodeEdit]:
    """The last value in the place of the first."""
    node = site.node
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "setdefault":
        holder, given = site.text(call.func.value), [site.text(argument) for argument in call.args]
        if len(given) == 2:
            yield site.edit(f"{holder}[{given[0]}] = {given[1]}", "accumulated", 1.0)


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
        yield site.edit(f"{base}.pop({key})", "presence", 0.2)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return
    if node.func.attr not in ("get", "pop"):
        return
    func, key = site.text(node.func), site.text(node.args[0])
    for default in (*DEFAULTS, key, "1"):
        yield site.edit(f"{func}({key}, {default})", "default", 0.7)
    if node.func.attr == "get":
        yield site.edit(f"{site.text(node.func.value)}[{key}]", "presence", 0.4)


def absent_attributes(site: EditSite) -> Iterator[CodeEdit]:
    """None where there is no such attribute."""
    node, above = site.node, site.parent
    called = isinstance(above, ast.Call) and above.func is node
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not called:
        yield site.edit(f"getattr({site.text(node.value)}, {node.attr!r}, None)", "default", 0.2)


def tests_of_none(site: EditSite) -> Iterator[CodeEdit]:
    """Empty and missing told apart, or not: ``x`` and ``x is not None``."""
    node, above = site.node, site.parent
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot):
        word = "not " if isinstance(node.ops[0], ast.Is) else ""
        yield site.edit(f"{word}{site.text(node.left)}", "presence", 0.7)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        word = "not " if isinstance(node.ops[0], ast.NotIn) else ""
        if isinstance(node.comparators[0], ast.Name | ast.Attribute):
            yield site.edit(
                f"{word}{site.text(node.comparators[0])}.get({site.text(node.left)})", "presence", 0.7
            )
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
        first, other = map(site.text, node.values)
        yield site.edit(f"{first} if {first} is not None else {other}", "presence", 1.0)
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


def walked(site: EditSite) -> Iterator[CodeEdit]:
    """What is walked through: without what is empty in it, and more than once."""
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
    """Each its own list, where one stands in all places; each function its own variable of a loop."""
    node = site.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        if len(node.left.elts) == 1 and not isinstance(node.left.elts[0], ast.Constant):
            item = site.text(node.left.elts[0])
            yield site.edit(f"[{item} for _ in range({site.text(node.right)})]", "presence", 3.0)
    elif isinstance(node, ast.Lambda):
        start, end = site.program.span(node)[0], site.program.span(node.body)[0]
        head = site.program.data[start:end].decode().rstrip().removesuffix(":").rstrip()
        for name in sorted(
            _bound_by_loops(site) & {n.id for n in ast.walk(node.body) if isinstance(n, ast.Name)}
        ):
            sign = "," if node.args.args else ""
            yield site.edit(f"{head}{sign} {name}={name}: {site.text(node.body)}", "presence", 3.0)


def _bound_by_loops(site: EditSite) -> set[str]:
    found = set(comprehension_names(site.program, site.parent or site.node))
    above = site.parent
    while above is not None and not isinstance(above, ast.FunctionDef):
        if isinstance(above, ast.For):
            found |= set(target_names(above.target))
        above = site.program.parent.get(above)
    return found


def entries(site: EditSite) -> Iterator[CodeEdit]:
    """A mapping that is given back with one entry more, under a name that the file knows as a constant."""
    node = site.node
    if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Name | ast.Call | ast.DictComp):
        return
    whole = site.text(node.value)
    for name in site.facts.idle:
        for value in ("1.0", "0", "1", "''"):
            yield site.edit(f"return {{{name}: {value}, **{whole}}}", "presence", 0.3)
