"""A case that was not thought of, with all that belongs to it: in a function that asks itself, a branch more, at both ends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentos.proposers.repair.operators.arithmetic import side
from agentos.proposers.repair.operators.calls import key_text
from agentos.proposers.repair.operators.statements import (
    after,
    before,
    below,
    block_of,
    first_statement,
    in_loop,
    in_template,
    names_in,
    together,
)
from agentos.proposers.repair.scope import target_names
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Splice

UNDOING = {"append": "remove", "add": "discard"}
LEVELS = ("float", "int", "Decimal", "Fraction", "date", "datetime")
Loop = ast.For | ast.While


# --- a branch more --------------------------------------------------------------------------------


def another_branch(site: EditSite) -> Iterator[CodeEdit]:
    """A branch for a word that failing calls are given and nothing knows: as another branch does, or the opposite."""
    node = site.node
    if not isinstance(node, ast.If) or node.body[0].lineno == node.lineno or node not in block_of(site):
        return
    if site.text(node).startswith("elif"):
        return
    chain = [node]
    while len(chain[-1].orelse) == 1 and isinstance(chain[-1].orelse[0], ast.If):
        chain.append(chain[-1].orelse[0])
    for branch in chain:
        for test in (n for n in ast.walk(branch.test) if isinstance(n, ast.Compare)):
            asked = test.comparators[0]
            if not isinstance(test.ops[0], ast.Eq) or not isinstance(asked, ast.Constant):
                continue
            if not isinstance(asked.value, str):
                continue
            for word in site.facts.given.words:
                yield from _for_word(site, chain, test, word)


def _for_word(site: EditSite, chain: list[ast.If], test: ast.Compare, word: str) -> Iterator[CodeEdit]:
    subject, start = site.text(test.left), site.program.span(chain[0])[0]
    pair = f"({site.text(test.comparators[0])}, {word!r})"
    yield together((site.program.replace(test, f"{subject} in {pair}"),), "another branch")
    steps = dict.fromkeys(text for branch in chain for s in branch.body for text in _undone(site, s))
    steps |= dict.fromkeys(("continue", "pass") if isinstance(site.parent, Loop) else ("pass",))
    for step in steps:
        text = f"if {subject} == {word!r}:\n    {step}\nelif".replace(
            "\n", "\n" + site.program.indent(chain[0])
        )
        yield together((Splice(start, start + len("if"), text, expression=False),), "another branch", 0.5)


def _undone(site: EditSite, step: ast.stmt) -> Iterator[str]:
    """The opposite of what a statement does."""
    if isinstance(step, ast.AugAssign) and isinstance(step.op, ast.Add | ast.Sub):
        sign = "-" if isinstance(step.op, ast.Add) else "+"
        yield f"{site.text(step.target)} {sign}= {site.text(step.value)}"
    elif isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Subscript):
        target = step.targets[0]
        yield f"{site.tight(target.value)}.pop({key_text(site, target.slice)}, None)"
    elif isinstance(step, ast.Expr) and isinstance(step.value, ast.Call):
        func = step.value.func
        if isinstance(func, ast.Attribute) and func.attr in UNDOING and step.value.args:
            holder, what = site.text(func.value), site.text(step.value.args[0])
            yield f"if {what} in {holder}:\n        {holder}.{UNDOING[func.attr]}({what})"


def marked(site: EditSite) -> Iterator[CodeEdit]:
    """A word in the place of a number is nothing, or is counted where the file has a counter for it that never counts."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Assign) or node not in block_of(site) or above is None:
        return
    target, calls = node.targets[0], [n for n in ast.walk(node.value) if isinstance(n, ast.Call)]
    numbers = [c for c in calls if site.text(c.func) in LEVELS and len(c.args) == 1]
    for call in numbers[:2]:
        what, indent = side(site, call.args[0]), site.program.indent(node)
        for word in site.facts.given.words:
            if not in_loop(site) and not _gives_back(site):
                text = f"if {what} == {word!r}:\n    return"
                yield together((before(site, node, text),), "another branch")
            steps = [f"{name} += 1" for name in _never_counted(site)]
            for ways in (
                [*steps, f"{site.text(target)} = 0"],
                *([step, "continue"] for step in steps),
                ["continue"],
            ):
                if "continue" in ways and not in_loop(site):
                    continue
                then = "".join(f"\n{indent}    {way}" for way in ways)
                otherwise = site.text(node).replace("\n", "\n    ")
                text = f"if {what} == {word!r}:{then}\n{indent}else:\n{indent}    {otherwise}"
                yield together((Splice(*site.program.span(node), text, expression=False),), "another branch")


def _gives_back(site: EditSite) -> bool:
    returns = [n for n in site.facts.nodes_in(site.function) if isinstance(n, ast.Return)]
    return site.function is None or any(each.value is not None for each in returns)


def _never_counted(site: EditSite) -> list[str]:
    """Counters of the function that stay at nought."""
    nodes = site.facts.nodes_in(site.function)
    stored = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    begun = [n for n in nodes if isinstance(n, ast.Assign) and set(site.text(n.value)) <= set("0, ()")]
    names = [name for n in begun for target in n.targets for name in target_names(target)]
    return [name for name in names if stored.count(name) == 1][:2]


def lists_as_well(site: EditSite) -> Iterator[CodeEdit]:
    """What is done with the entries of a dict is done with the items of a list, by their numbers."""
    node = site.node
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Call) or len(node.body) != 1:
        return
    loop = node.body[0]
    if (
        site.text(node.test.func) != "isinstance"
        or not isinstance(loop, ast.For)
        or loop.body[0].lineno == loop.lineno
    ):
        return
    value, kind = (site.text(each) for each in node.test.args[:2])
    target = loop.target
    if kind != "dict" or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return
    key, inner = (site.text(each) for each in target.elts)
    counted = f"for {key}, {inner} in enumerate({value}):"
    start, indent = site.program.span(loop.body[0])[0], site.program.indent(node)
    deep = site.program.indent(loop.body[0]).removeprefix(indent)
    body = site.program.data[start : site.program.span(loop)[1]].decode()
    body = body.replace("\n" + indent, "\n")
    for head in (f"{counted}\n{deep}{key} = str({key})", counted, f"for {inner} in {value}:"):
        text = f"elif isinstance({value}, list):\n    {head}\n{deep}{body}"
        yield together((below(site, loop, text),), "another branch")


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


def keys_alike(site: EditSite) -> Iterator[CodeEdit]:
    """Keys are brought into one form wherever a table is asked or filled."""
    node, function = site.node, site.function
    if function is None or node is not first_statement(site):
        return
    by_table: dict[str, list[ast.expr]] = {}
    for each in site.facts.nodes_in(function):
        if (
            isinstance(each, ast.Subscript)
            and isinstance(each.value, ast.Name)
            and not isinstance(each.slice, ast.Slice)
        ):
            by_table.setdefault(each.value.id, []).append(each.slice)
        elif isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.In | ast.NotIn):
            by_table.setdefault(site.text(each.comparators[0]), []).append(each.left)
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.args:
            known = each.func.attr in ("get", "setdefault", "pop", "add", "discard")
            by_table.setdefault(site.text(each.func.value) if known else "", []).append(each.args[0])
    by_table.pop("", None)
    for keys in by_table.values():
        plain = [
            key
            for key in keys
            if not isinstance(key, ast.Constant | ast.Tuple) and not in_template(site, key)
        ]
        if 2 <= len(plain) <= 6 and all(site.kind(key) in ("", "str") for key in plain):
            for way in ("lower()", "strip()", "casefold()", "upper()", "strip().lower()"):
                yield together(
                    [site.program.replace(k, f"{site.tight(k)}.{way}") for k in plain], "keys alike", 0.5
                )


def at_least(site: EditSite) -> Iterator[CodeEdit]:
    """Where something is asked to be nought, it is held against a limit that the input gives and nothing reads."""
    function = site.function
    if function is None or site.node is not first_statement(site):
        return
    kinds, unread = site.scope.kinds, site.facts.unread
    limits = [n for n in site.variables() if n in unread and kinds.get(n) in ("int", "float")]
    if not limits:
        return
    tests = [test for node in site.facts.nodes_in(function) for test in _tests_of_nought(site, node)]
    for limit in limits:
        for names in ({name for _, name, _ in tests}, *({name} for _, name, _ in tests)):
            some = [each for each in tests if each[1] in names]
            for low, high in (("<", ">="), ("<=", ">")) if some else ():
                texts = [(node, f"{name} {low if zero else high} {limit}") for node, name, zero in some]
                yield together([site.program.replace(node, text) for node, text in texts], "at least")


def _tests_of_nought(site: EditSite, node: ast.AST) -> Iterator[tuple[ast.expr, str, bool]]:
    """A test of a name, and whether it asks for nought or for anything else."""
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
        asked = isinstance(node.ops[0], ast.Eq | ast.Gt | ast.NotEq)
        if asked and site.text(node.comparators[0]) == "0":
            yield node, node.left.id, isinstance(node.ops[0], ast.Eq)
    elif isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Name):
        yield node.test, node.test.id, False
    elif (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Name)
    ):
        yield node, node.operand.id, True


def as_asked(site: EditSite) -> Iterator[CodeEdit]:
    """A switch of the input that nothing reads turns a list, closes it, or takes case away where texts are compared."""
    node = site.node
    switches = [n for n in sorted(site.facts.unread) if site.scope.kinds.get(n) == "bool"]
    if not switches or not isinstance(node, ast.stmt | ast.Compare):
        return
    for switch in (each for each in switches if each in site.variables()):
        if isinstance(node, ast.Compare) and not in_template(site, node):
            parts = [node.left, *node.comparators]
            if len(parts) == 2 and all(site.kind(part) in ("", "str") for part in parts):
                one, two = map(site.tight, parts)
                sign = site.program.data[
                    site.program.span(node.left)[1] : site.program.span(parts[1])[0]
                ].decode()
                yield site.edit(
                    f"({one}.lower(){sign}{two}.lower() if {switch} else {site.text(node)})", "as asked"
                )
        if (
            not isinstance(node, ast.Assign | ast.AnnAssign)
            or node not in block_of(site)
            or node.value is None
        ):
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not isinstance(target, ast.Name):
            continue
        name = target.id
        ways = (
            f"{name}.append({name}[0])", f"{name}.reverse()", f"{name} = {name}[::-1]", f"{name} = sorted({name})",
            f"{name} = {name}.lower()", f"{name} = [each.lower() for each in {name}]", f"{name} = [each for each in {name} if each]",
            f"{name} = list(dict.fromkeys({name}))", f"{name} = -{name}",
        )  # fmt: skip
        for way in ways:
            for test in (switch, f"not {switch}", f"{switch} and len({name}) > 1"):
                step = after(site, node, f"if {test}:\n    {way}")
                yield together((step,), "as asked", 0.3 if test != switch else 1.0)


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


def emptied_first(site: EditSite) -> Iterator[CodeEdit]:
    """What the module gathers for one call is emptied before it gathers for the next."""
    node = site.node
    if not isinstance(node, ast.stmt) or node not in block_of(site) or site.function is None:
        return
    for each in site.program.tree.body:
        target = each.target if isinstance(each, ast.AnnAssign) else getattr(each, "targets", [None])[0]
        value = getattr(each, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.List | ast.Dict | ast.Call | ast.Set):
            if isinstance(value, ast.Call) and site.text(value.func) not in (
                "set",
                "list",
                "dict",
                "Counter",
                "defaultdict",
            ):
                continue
            if (isinstance(value, ast.List) and value.elts) or (isinstance(value, ast.Dict) and value.keys):
                continue
            yield together((before(site, node, f"{target.id}.clear()"),), "emptied first")


BRANCHES = (
    another_branch, marked, lists_as_well, told_missing, keys_alike, at_least, as_asked, optional_part, group_unread,
    began_anew, emptied_first,
)  # fmt: skip
