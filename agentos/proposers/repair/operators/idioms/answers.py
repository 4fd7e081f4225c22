"""What a function answers, at all of its ends: asked for parts of what it is given, all for the first, ties, nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from agentos.proposers.repair.operators.idioms.loops import is_loop
from agentos.proposers.repair.operators.statements import (
    after,
    before,
    first_statement,
    fresh_name,
    in_template,
    reads,
    together,
    within,
)
from agentos.proposers.repair.scope import NUMBERS, names_in, target_names
from agentos.proposers.repair.site import EditSite, library_text
from agentos.proposers.repair.source import CodeEdit, Splice
from agentos.syntax import Definition

Loop = ast.For | ast.While
AMOUNTS = NUMBERS | {"Decimal", "Fraction"}
LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Raise)
NEVER = ("run",)  # is asked by the program, and with its whole input


def by_itself(site: EditSite) -> Iterator[CodeEdit]:
    """A function asks itself for the parts of what it is given, or for the opposite."""
    function, node = site.function, site.node
    if function is None or node is not first_statement(site) or function.name in NEVER:
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
    if not kind and not answer:
        return  # of which nothing is known: too many ways
    likely = 1.0 if kind and answer else 0.3
    for test, result in _selves(site, name, kind, answer):
        text = re.sub(r"SELF\(([^@]*?)@\)", lambda match: asked(match[1]), result)
        yield together((before(site, node, f"if {test}:\n    return {text}"),), "asks itself", likely)
    if kind in ("", "str") and answer in ("", *AMOUNTS):
        imports: dict[str, Splice] = {}
        findall = library_text(site, "re", "findall", imports)
        parts = fresh_name(site, "parts", "pieces")
        if findall:
            text = f'{parts} = {findall}(r"[\\d.,]+\\s*[^\\W\\d]+", {name})\nif len({parts}) > 1:\n'
            text += f"    return sum({asked('part')} for part in {parts})"
            yield together((before(site, node, text), *imports.values()), "asks itself", likely)


def _answer(function: Definition) -> str:
    """The kind that it says it returns."""
    node = function.returns
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _selves(site: EditSite, name: str, kind: str, answer: str) -> Iterator[tuple[str, str]]:
    """Tests of what is given, and answers in which ``SELF(x@)`` is the function's own for x."""
    text, number = kind in ("", "str"), kind in ("", *AMOUNTS)
    if text and answer in ("", *AMOUNTS):
        yield f'" " in {name}.strip()', f"sum(SELF(part@) for part in {name}.split())"
        yield f'"+" in {name}', f'sum(SELF(part@) for part in {name}.split("+"))'
        yield f'{name}.startswith("-")', f"-SELF({name}[1:]@)"
        yield f'{name}.endswith("-")', f"-SELF({name}[:-1]@)"
        yield f'{name}.startswith("(")', f'-SELF({name}.strip("()")@)'
        yield f'{name}[-1:] in ("S", "W")', f"-SELF({name}[:-1]@)"
        yield f'{name}.endswith("%")', f"SELF({name}[:-1]@) / 100"
        yield f'"/" in {name}', f'SELF({name}.partition("/")[0]@) / SELF({name}.partition("/")[2]@)'
        yield f"{name}[-1:].isdigit()", f"int({name})"
        yield f"{name}[-1:].isdigit()", f"float({name})"
        for unit in _units(site):
            yield f"{name}[-1:].isdigit()", f"SELF({name} + {unit!r}@)"
    if text and answer in ("", "list", "tuple"):
        for sign in (",", ";", " "):
            parts = f"{name}.split({sign!r})"
            yield f"{sign!r} in {name}", f"[each for part in {parts} for each in SELF(part.strip()@)]"
    if number and answer in ("", "str"):
        yield f"{name} < 0", f'"-" + SELF(-{name}@)'
        yield f"{name} < 0", f'"(" + SELF(-{name}@) + ")"'
    if number and answer in ("", *AMOUNTS):
        yield f"{name} < 0", f"-SELF(-{name}@)"
        yield f"{name} < 0", f"SELF(-{name}@)"
    if kind not in AMOUNTS:
        yield f"isinstance({name}, list)", f"[SELF(each@) for each in {name}]"
        yield f"isinstance({name}, list)", f"sum(SELF(each@) for each in {name})"
        yield f"isinstance({name}, dict)", f"{{key: SELF(each@) for key, each in {name}.items()}}"


def _units(site: EditSite) -> list[str]:
    """Short texts that the module's tables know."""
    tables = [
        n.value for n in site.program.tree.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Dict)
    ]
    found = [k.value for table in tables for k in table.keys if isinstance(k, ast.Constant)]
    return [k for k in dict.fromkeys(found) if isinstance(k, str) and len(k) <= 3 and k.isalpha()][:6]


def all_of_them(site: EditSite) -> Iterator[CodeEdit]:
    """Not the first that is found, but all of them: each ``return`` yields, and whoever asks takes a list."""
    function = site.function
    if function is None or site.node is not first_statement(site) or function.name in NEVER:
        return
    given = [n for n in site.facts.nodes_in(function) if isinstance(n, ast.Return)]
    some = [n for n in given if n.value is not None and site.text(n.value) not in ("None", "''", '""')]
    calls = [
        n for n in site.program.nodes(ast.Call) if isinstance(n.func, ast.Name) and n.func.id == function.name
    ]
    if len(some) < 2 or (len(some) == len(given) and function.body[-1] in some) or not calls:
        return
    begun = [site.program.span(n)[0] for n in some]
    splices = [Splice(at, at + len("return"), "yield", expression=False) for at in begun]
    splices += [site.program.replace(n, "pass") for n in given if n not in some]
    for call in calls:
        start, end = site.program.span(call)  # which may hold another one
        splices += [Splice(start, start, "list(", expression=False), Splice(end, end, ")", expression=False)]
        kept = site.program.parent.get(call)
        target = kept.targets[0] if isinstance(kept, ast.Assign) else None
        if isinstance(target, ast.Name):
            alone = f"[{target.id}] if {target.id} else []"
            choices = [n for n in site.program.nodes(ast.IfExp) if site.text(n) == alone]
            splices += [site.program.replace(choice, target.id) for choice in choices]
    yield together(splices, "all of them")


def numbered(site: EditSite) -> Iterator[CodeEdit]:
    """Ranks: the place, not how many values differ."""
    loop = site.node
    if not isinstance(loop, ast.For) or not is_loop(site):
        return
    place, target = fresh_name(site, "place", "number", "position"), site.text(loop.target)
    shown = f"({target})" if isinstance(loop.target, ast.Tuple) and not target.startswith("(") else target
    counted = [
        site.program.replace(loop.target, f"{place}, {shown}"),
        site.program.replace(loop.iter, f"enumerate({site.text(loop.iter)}, 1)"),
    ]
    for node in within(loop.body):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and site.text(node.right) == "1":
            if isinstance(node.left, ast.Name):
                yield together([*counted, site.program.replace(node, place)], "numbered", 0.5)
        elif isinstance(node, ast.AugAssign) and site.text(node.value) == "1":
            step = site.program.replace(node, f"{site.text(node.target)} = {place}")
            yield together([*counted, step], "numbered", 0.5)


def last_one_too(site: EditSite) -> Iterator[CodeEdit]:
    """What a branch of the loop does, done once more behind it with what the file has for that and does not use."""
    loop = site.node
    if not isinstance(loop, Loop) or not is_loop(site) or not isinstance(loop, ast.For):
        return
    own = set(target_names(loop.target))
    given = [each.arg for each in site.function.args.args] if site.function else []
    idle = [name for name in given if site.function and not reads(site.function.body, name)]
    for inner in (n for n in within(loop.body) if isinstance(n, ast.If)):
        steps = [s for s in inner.body if isinstance(s, ast.Expr | ast.Assign | ast.AugAssign)]
        yield from _all_of_body(site, loop, inner)
        for step in steps:
            for name in reads([step], min(own & names_in(step), default="")):
                for other in idle:
                    start = site.program.span(name)[0] - site.program.span(step)[0]
                    data = site.text(step).encode()
                    text = (data[:start] + other.encode() + data[start + len(name.id.encode()) :]).decode()
                    for test in sorted(names_in(step) & set(site.variables()) - own):
                        yield together((after(site, loop, f"if {test}:\n    {text}"),), "last one too")


def _all_of_body(site: EditSite, loop: ast.For, inner: ast.If) -> Iterator[CodeEdit]:
    """All that a branch does when a group ends, or all but its last step, which begins the next."""
    own = set(target_names(loop.target))
    for steps in (inner.body, inner.body[:-1]):
        if len(steps) < 2 or any(own & names_in(s) or isinstance(s, LEAVING) for s in steps):
            continue
        start, end = site.program.span(steps[0])[0], site.program.span(steps[-1])[1]
        text = site.program.data[start:end].decode().replace("\n" + site.program.indent(steps[0]), "\n    ")
        known = set(site.variables()) - own
        for test in sorted({name for s in steps for name in names_in(s)} & known):
            yield together((after(site, loop, f"if {test}:\n    {text}"),), "last one too")


def visited(site: EditSite) -> Iterator[CodeEdit]:
    """A function that asks itself does not go where it has been: what it came by is handed on."""
    function = site.function
    if function is None or site.node is not first_statement(site) or not function.args.args:
        return
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call) and site.text(n.func) == function.name]
    if not calls or function.args.vararg or function.args.kwarg or any(in_template(site, c) for c in calls):
        return
    assert isinstance(site.node, ast.stmt)
    name, way = function.args.args[0].arg, fresh_name(site, "way", "passed_by")
    last = (function.args.kwonlyargs or function.args.args)[-1]
    end = site.program.span(last)[1] if isinstance(last, ast.expr) else None
    defaults = [d for d in (*function.args.defaults, *function.args.kw_defaults) if d is not None]
    at = max(
        site.program.offset(last.end_lineno or 0, last.end_col_offset or 0),
        *(site.program.span(d)[1] for d in defaults),
        end or 0,
    )
    splices = [Splice(at, at, f", {way}=()", expression=False)]
    for call in calls:
        stop = site.program.span(call)[1] - 1
        splices.append(Splice(stop, stop, f", {way}=(*{way}, {name})", expression=False))
    for nothing in ("None", "[]", "0", "set()", "{}", "False"):
        guard = before(site, site.node, f"if {name} in {way}:\n    return {nothing}")
        yield together([*splices, guard], "visited", 0.5)


ANSWERS = (by_itself, all_of_them, numbered, last_one_too, visited)
