"""What runs when: jumps, steps elsewhere, errors caught, what a loop begins with, a function that asks itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations, takewhile

from agentos.proposers.repair.operators.arithmetic import side
from agentos.proposers.repair.operators.statements import (
    SIMPLE,
    after,
    before,
    block_of,
    first_statement,
    gone,
    in_loop,
    moved_behind,
    moved_text,
    within,
)
from agentos.proposers.repair.scope import NUMBERS, names_in
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit, Splice
from agentos.syntax import Definition

WIDER = ("ValueError", "TypeError", "KeyError", "AttributeError", "IndexError", "OverflowError")
LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Raise)
START = (ast.Constant, ast.List, ast.Dict)
AMOUNTS = NUMBERS | {"Decimal", "Fraction"}


def jumps(site: EditSite) -> Iterator[CodeEdit]:
    """``continue`` for ``break``, and the other way round; ``elif`` for a second ``if``, which may come first."""
    node = site.node
    if isinstance(node, ast.Continue):
        yield site.edit("break", "flow", 1.0)
    elif isinstance(node, ast.Break):
        yield site.edit("continue", "flow", 1.0)
    elif isinstance(node, ast.Return) and in_loop(site):
        yield site.edit("continue", "flow", 0.3)
        yield site.edit("break", "flow", 0.3)
    elif isinstance(node, ast.If) and site.text(node).startswith("if"):
        block = block_of(site)
        index = block.index(node) if node in block else 0
        above = block[index - 1] if index else None
        if isinstance(above, ast.If) and not above.orelse:
            start = site.program.span(node)[0]
            yield CodeEdit((Splice(start, start, "el", expression=False),), "flow", 0.7)
        for below in takewhile(lambda each: isinstance(each, ast.If), block[index + 1 : index + 4]):
            pair = ((node, below), (below, node))
            splices = tuple(site.program.replace(one, site.text(other)) for one, other in pair)
            yield CodeEdit(splices, "statements exchanged", 0.5)


def cases(site: EditSite) -> Iterator[CodeEdit]:
    """A case of a ``match`` before one that takes the same."""
    node, program = site.node, site.program
    if not isinstance(node, ast.Match):
        return
    spans = [_lines_of(site, case) for case in node.cases]
    for index, (start, end) in enumerate(spans):
        pattern, behind = node.cases[index].pattern, spans[index - 1][1]
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            continue  # it takes everything
        text = program.data[start:end].decode()
        for earlier, _ in spans[:index]:
            indent = program.data[program.data.rfind(b"\n", 0, earlier) + 1 : earlier].decode()
            moved = Splice(earlier, earlier, f"{text}\n{indent}", expression=False)
            yield CodeEdit((moved, Splice(behind, end, "", expression=False)), "statements exchanged", 0.5)


def _lines_of(site: EditSite, case: ast.match_case) -> tuple[int, int]:
    """Where the case stands, with the comments above it and the one behind it."""
    program = site.program
    line = program.offset(case.pattern.lineno, 0)
    while (
        line
        and program.data[(above := program.data.rfind(b"\n", 0, line - 1) + 1) : line].lstrip()[:1] == b"#"
    ):
        line = above
    start = line + len(program.data[line:]) - len(program.data[line:].lstrip())
    end = program.span(case.body[-1])[1]
    behind = program.rest_of_line(end)
    return start, end + (len(behind) if behind.lstrip().startswith(b"#") else 0)


def farther(site: EditSite) -> Iterator[CodeEdit]:
    """A simple statement moved to another place of its block, farther than to its neighbour."""
    node, block = site.node, block_of(site)
    if not isinstance(node, SIMPLE) or node not in block:
        return
    index, text = block.index(node), moved_text(site, node)
    for place, other in enumerate(block):
        if abs(place - index) < 2 and isinstance(other, SIMPLE):
            continue
        if place < index:
            yield CodeEdit((before(site, other, text), gone(site, node)), "statements exchanged", 0.4)
        elif not isinstance(other, LEAVING):
            yield CodeEdit(moved_behind(site, node, other), "statements exchanged", 0.4)
    above = site.parent
    if isinstance(above, ast.For | ast.While | ast.If) and len(block) > 1 and index == 0:
        yield CodeEdit((before(site, above, text), gone(site, node)), "statement moved out", 0.3)


def twins(site: EditSite) -> Iterator[CodeEdit]:
    """The same again for another: ``home.points += 1`` is followed by ``away.points += 1``."""
    node = site.node
    if not isinstance(node, ast.AugAssign | ast.Assign | ast.Expr) or node not in block_of(site):
        return
    text = site.text(node)
    used = names_in(node)
    names = [name for name in site.variables() if name.isidentifier()]
    for old in sorted(used & set(names)):
        for new in names:
            if new != old and new not in used:
                changed = re.sub(rf"\b{old}\b", new, text)
                yield CodeEdit((after(site, node, changed),), "statement inserted", 0.2)


def from_elsewhere(site: EditSite) -> Iterator[CodeEdit]:
    """A start value set again: one that another method of the class sets, or that the class gives a field."""
    node = site.node
    if not isinstance(node, ast.stmt) or node not in block_of(site) or site.function is None:
        return
    above = site.program.parent.get(site.function)
    begun: dict[str, float] = {}
    for each in above.body if isinstance(above, ast.ClassDef) else ():
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None:
            value = site.text(each.value) if isinstance(each.value, ast.Constant) else "[]"
            begun.setdefault(f"self.{each.target.id} = {value}", 1.0)
        for step in each.body if isinstance(each, Definition) and each is not site.function else ():
            if isinstance(step, ast.Assign | ast.AnnAssign) and isinstance(step.value, START):
                target = step.target if isinstance(step, ast.AnnAssign) else step.targets[0]
                begun[f"{site.text(target)} = {site.text(step.value)}"] = 2.0
    for text, weight in begun.items():
        yield CodeEdit((before(site, node, text),), "set again", weight)
        if node is block_of(site)[-1] and not isinstance(node, ast.Return):
            yield CodeEdit((after(site, node, text),), "set again", weight)


def flushed(site: EditSite) -> Iterator[CodeEdit]:
    """What a loop does when a group ends, done once more behind the loop for the last group."""
    node = site.node
    if not isinstance(node, ast.For | ast.While) or node not in block_of(site):
        return
    for inner in within(node.body):
        for statement in inner.body if isinstance(inner, ast.If) else ():
            if isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign):
                text = site.text(statement)
                yield CodeEdit((after(site, node, text),), "statement inserted", 0.5)
                likely = 4.0 if isinstance(statement, ast.Expr) else 0.5  # kept: the last one is lost else
                used = names_in(statement)
                for name in sorted(used.intersection(site.variables())):
                    text_of_it = f"if {name}:\n    {text}"
                    yield CodeEdit((after(site, node, text_of_it),), "statement inserted", likely)


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


# What a statement does where its condition does not hold, or where it raises; what a call hands on.


def begun_inside(site: EditSite) -> Iterator[CodeEdit]:
    """A start value that is set before a loop, set at the start of each round: alone, or once more."""
    node, block = site.node, block_of(site)
    if not isinstance(node, ast.Assign) or node not in block:
        return
    for loop in block[block.index(node) + 1 :]:
        if isinstance(loop, ast.For | ast.While) and loop.body[0].lineno > loop.lineno:
            inside = before(site, loop.body[0], moved_text(site, node))
            yield CodeEdit((gone(site, node), inside), "statement moved in", 0.7)


def caught(site: EditSite) -> Iterator[CodeEdit]:
    """What may raise, caught as the file catches elsewhere, or left out of a loop."""
    node = site.node
    if not isinstance(node, ast.Assign | ast.Expr | ast.AugAssign) or node not in block_of(site):
        return
    handlers = [each for each in site.program.nodes(ast.ExceptHandler) if each.type is not None]
    types = dict.fromkeys(site.text(each.type) for each in handlers if each.type is not None)
    ways = dict.fromkeys(
        site.text(each.body[0])
        for each in handlers
        if isinstance(each.body[0], SIMPLE) and site.visible(each.body[0])
    )
    if site.function is None:
        ways = {way: None for way in ways if not way.startswith("return")}
    if in_loop(site):
        ways.setdefault("continue")
    else:
        ways = {way: None for way in ways if way not in ("continue", "break")}
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        ways |= dict.fromkeys(f"{node.targets[0].id} = {value}" for value in ("None", "0", "''"))
    indent = site.program.indent(node)
    inner = site.text(node).replace("\n", "\n    ")
    for kind in (*types, *(each for each in WIDER if each not in types)):
        for way in ways:
            text = f"try:\n{indent}    {inner}\n{indent}except {kind}:\n{indent}    {way}"
            splice = Splice(*site.program.span(node), text, expression=False)
            yield CodeEdit((splice,), "caught", 0.3 if kind in types else 0.1)


def caught_wider(site: EditSite) -> Iterator[CodeEdit]:
    """One more exception that a handler takes: one that the file catches elsewhere, or a usual one."""
    node, above = site.node, site.parent
    if not isinstance(above, ast.ExceptHandler) or above.type is not node or not isinstance(node, ast.expr):
        return
    own = [site.text(each) for each in (node.elts if isinstance(node, ast.Tuple) else [node])]
    types = [each.type for each in site.program.nodes(ast.ExceptHandler) if each.type is not None]
    parts = [part for each in types for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    named = [site.text(part) for part in parts]
    others = [other for other in dict.fromkeys((*named, *WIDER)) if other not in own]
    for other in others:
        yield site.edit(f"({', '.join((*own, other))})", "caught wider", 3.0)
    for one, other in combinations((other for other in others if other in WIDER), 2):
        yield site.edit(f"({', '.join((*own, one, other))})", "caught wider", 1.5)


# --- what a loop begins with, a sign that stands for nothing, a function that asks itself ---------------


def begun_alike(site: EditSite) -> Iterator[CodeEdit]:
    """What begins beside another before a loop begins anew beside it inside, too."""
    node, loop = site.node, site.parent
    while loop is not None and not isinstance(loop, ast.For | ast.While | Definition):
        loop = site.program.parent.get(loop)
    if (
        not isinstance(node, ast.Assign)
        or not isinstance(loop, ast.For | ast.While)
        or node not in block_of(site)
    ):
        return
    changed = {n.id for n in within(loop.body) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    starts = [
        site.text(each)
        for each in site.facts.nodes_in(site.function)
        if isinstance(each, ast.Assign)
        and each.lineno < loop.lineno
        and isinstance(each.value, START)
        and isinstance(each.targets[0], ast.Name)
        and each.targets[0].id in changed
    ]
    set_inside = {site.text(each) for each in within(loop.body) if isinstance(each, ast.Assign)}
    for text in starts if site.text(node) in starts else ():
        if text not in set_inside and "\n" not in text:
            yield CodeEdit((after(site, node, text),), "defect", 3.0)


def marked(site: EditSite) -> Iterator[CodeEdit]:
    """A sign in the place of a number is nothing: the round is left, or the function where it answers nothing."""
    node = site.node
    if not isinstance(node, ast.Assign | ast.AugAssign) or node not in block_of(site):
        return
    answers = any(
        isinstance(n, ast.Return) and n.value is not None for n in site.facts.nodes_in(site.function)
    )
    if not in_loop(site) and (answers or site.function is None):
        return
    way = "continue" if in_loop(site) else "return"
    calls = [call for call in ast.walk(node.value) if isinstance(call, ast.Call) and len(call.args) == 1]
    for call in (call for call in calls if site.text(call.func) in AMOUNTS):
        for sign in site.facts.given.signs:
            step = f"if {side(site, call.args[0])} == {sign!a}:\n    {way}"
            yield CodeEdit((before(site, node, step),), "marked")


def by_itself(site: EditSite) -> Iterator[CodeEdit]:
    """A function asks itself for the opposite of what it is given, or for its parts."""
    function, node = site.function, site.node
    if function is None or node is not first_statement(site) or function.name == "run":
        return
    given = function.args
    if not given.args or given.vararg or given.kwarg or given.args[0].arg in ("self", "cls"):
        return
    name = given.args[0].arg
    rest = [a.arg for a in given.args[1:]] + [f"{a.arg}={a.arg}" for a in given.kwonlyargs]

    def asked(argument: str) -> str:
        return f"{function.name}({', '.join((argument, *rest))})"

    assert isinstance(node, ast.stmt)
    kind, answer = site.scope.kinds.get(name, ""), _answer(function)
    ways: list[tuple[str, str]] = []
    if kind in ("", *AMOUNTS):
        ways += [(f"{name} < 0", f'"-" + {asked(f"-{name}")}')] if answer in ("", "str") else []
        ways += [(f"{name} < 0", f"-{asked(f'-{name}')}")] if answer in ("", *AMOUNTS) else []
    if kind in ("", "str") and answer in ("", *AMOUNTS):
        ways += [
            (f'{name}.startswith("-")', f"-{asked(f'{name}[1:]')}"),
            (f'" " in {name}.strip()', f"sum({asked('part')} for part in {name}.split())"),
            (f'"+" in {name}', f'sum({asked("part")} for part in {name}.split("+"))'),
            (f"{name}[-1:].isdigit()", f"int({name})"),
        ]
    for test, result in ways if kind or answer else ():  # of which nothing is known: too many ways
        likely = 1.0 if kind and answer else 0.3
        yield CodeEdit((before(site, node, f"if {test}:\n    return {result}"),), "asks itself", likely)


def _answer(function: Definition) -> str:
    """The kind that it says it returns."""
    node = function.returns
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


SEVERAL = (marked, by_itself)  # a person is asked about what they make
