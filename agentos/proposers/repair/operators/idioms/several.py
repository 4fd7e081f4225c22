"""Several places of a function as one edit: one value for each key, a sign for nothing, a function that asks itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentos.proposers.repair.operators.arithmetic import side
from agentos.proposers.repair.operators.statements import (
    after,
    before,
    block_of,
    first_statement,
    fresh_name,
    in_loop,
    in_template,
    reads,
    together,
    within,
)
from agentos.proposers.repair.scope import NUMBERS, names_in, target_names
from agentos.proposers.repair.site import EditSite, library_text
from agentos.proposers.repair.source import CodeEdit, Splice
from agentos.syntax import Definition

KEYS_MAX, STATES_MAX, LONG = 6, 5, 40
MUTATING = frozenset(
    {"append", "add", "extend", "update", "insert", "pop", "remove", "discard", "clear", "setdefault"}
)
TAKING = frozenset({"split", "rsplit", "partition", "rpartition", "append", "add", "items", "group"})
AMOUNTS = NUMBERS | {"Decimal", "Fraction"}
NEVER = ("run",)  # is asked by the program, and with its whole input
Loop = ast.For | ast.While


def is_loop(site: EditSite) -> bool:
    node = site.node
    return isinstance(node, Loop) and node in block_of(site) and node.body[0].lineno > node.lineno


@dataclass(frozen=True, slots=True)
class _Key:
    """What tells the rounds of a loop apart, and from which statement of its body on it is known."""

    text: str
    names: frozenset[str]
    since: int


def _keys(site: EditSite, loop: Loop) -> list[_Key]:
    """Names that each round sets, and fields of them."""
    own = target_names(loop.target) if isinstance(loop, ast.For) else []
    since = {name: 0 for name in own}
    for at, statement in enumerate(loop.body):
        if isinstance(statement, ast.Assign):
            for name in (name for target in statement.targets for name in target_names(target)):
                since.setdefault(name, at + 1)
    found = {name: _Key(name, frozenset({name}), at) for name, at in since.items() if name != "_"}
    for node in within(loop.body):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.value, ast.Name):
            named = isinstance(node, ast.Attribute) or isinstance(node.slice, ast.Constant)
            called = isinstance(site.program.parent.get(node), ast.Call) and isinstance(node, ast.Attribute)
            if named and not called and node.value.id in since and not in_template(site, node):
                text, name = site.text(node), node.value.id
                found.setdefault(text, _Key(text, frozenset({name}), since[name]))
    apart = {site.text(n.func.value) for n in _calls_in(loop) if n.func.attr in TAKING}  # type: ignore[attr-defined]
    found = {text: key for text, key in found.items() if text not in apart}
    texts = [key for key in found.values() if site.scope.kinds.get(key.text, "") in ("", "str", "tuple")]
    return texts[: 2 * KEYS_MAX]


def _calls_in(loop: Loop) -> list[ast.Call]:
    """Calls of methods."""
    return [n for n in within(loop.body) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]


def _pairs(keys: Sequence[_Key]) -> list[_Key]:
    """Two names as one key."""
    plain = [key for key in keys if key.text.isidentifier()]
    pairs = [(one, two) for at, one in enumerate(plain) for two in plain[at + 1 :]][:KEYS_MAX]
    return [_Key(f"({a.text}, {b.text})", a.names | b.names, max(a.since, b.since)) for a, b in pairs]


@dataclass(frozen=True, slots=True)
class _State:
    """A variable that is set before a loop and changed in it."""

    name: str
    value: ast.expr
    behind: Sequence[ast.Name]  # its uses after the loop


def _states(site: EditSite, loop: Loop) -> list[_State]:
    changed = {name for statement in loop.body for name in _changed(statement)}
    own = set(target_names(loop.target)) if isinstance(loop, ast.For) else set()
    found: dict[str, _State] = {}
    for statement in _above(site, loop):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            pairs = [(statement.target, statement.value)]
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            pairs = [(target, value)]
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=False))
        for target, value in pairs:
            if isinstance(target, ast.Name) and target.id in changed - own and _is_start(site, value):
                found[target.id] = _State(target.id, value, _behind(site, loop, target.id))
    return list(found.values())[:STATES_MAX]


def _is_start(site: EditSite, value: ast.expr) -> bool:
    """Whether it is what something begins with, and can be written again."""
    if isinstance(value, ast.List | ast.Dict | ast.Tuple):
        return all(isinstance(n, ast.Constant | ast.expr_context | type(value)) for n in ast.walk(value))
    return isinstance(value, ast.Constant | ast.Call | ast.UnaryOp | ast.Name | ast.Attribute) and (
        len(site.text(value)) <= LONG and "\n" not in site.text(value)
    )


def _above(site: EditSite, loop: Loop) -> Iterator[ast.stmt]:
    """Statements before the loop, in its own block and those around it."""
    node: ast.AST = loop
    while node is not site.function and node in site.program.parent:
        above = site.program.parent[node]
        for field in ("body", "orelse"):
            block = getattr(above, field, None)
            if isinstance(block, list) and node in block:
                yield from block[: block.index(node)]
        node = above


def _changed(statement: ast.AST) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield from (name for name in names_in(node.value))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and node.func.attr in MUTATING:
                yield owner.id


def _behind(site: EditSite, loop: Loop, name: str) -> list[ast.Name]:
    """Uses of the name in the function after the loop."""
    within = site.function or site.program.tree
    return [n for n in reads([within], name) if n.lineno > (loop.end_lineno or 0)]


def state_by_key(site: EditSite) -> Iterator[CodeEdit]:
    """One value that is kept for all, kept for each key: ``last = None`` becomes a dict of them."""
    loop = site.node
    if not isinstance(loop, Loop) or not is_loop(site):
        return
    states = _states(site, loop)
    alone = [state for state in states if not state.behind]
    keys = _keys(site, loop)
    for key in (*keys, *_pairs(keys)):
        for state in states:
            yield from _by_key(site, loop, key, [state])
        if len(alone) > 1:
            yield from _by_key(site, loop, key, alone)


def _by_key(site: EditSite, loop: Loop, key: _Key, states: list[_State]) -> Iterator[CodeEdit]:
    names = {state.name for state in states}
    if key.names & names:
        return
    first = next((at for at, each in enumerate(loop.body) if names & names_in(each)), None)
    uses = [node for name in names for node in reads(loop.body, name)]
    if first is None or first < key.since or any(in_template(site, node) for node in uses):
        return
    splices = [site.program.replace(state.value, "{}") for state in states]
    for state in states:
        begun = f"{state.name}.setdefault({key.text}, {site.text(state.value)})"
        splices.append(before(site, loop.body[first], begun))
    splices += [site.program.replace(node, f"{node.id}[{key.text}]") for node in uses]
    behind = [node for state in states for node in state.behind]
    if not behind:
        yield together(splices, "state by key")
        return
    value = states[0].value
    number = isinstance(value, ast.Constant) and isinstance(value.value, int | float)
    ways = ["sum({}.values())", "max({}.values(), default=0)"] if number else []
    if isinstance(value, ast.List):
        ways = ["[each for part in {}.values() for each in part]"]
    for way in ways if not any(in_template(site, node) for node in behind) else ():
        also = [site.program.replace(node, way.format(node.id)) for node in behind]
        yield together([*splices, *also], "state by key", 0.3)


def begun_alike(site: EditSite) -> Iterator[CodeEdit]:
    """What begins beside another before a loop begins anew beside it inside, too."""
    node, loop = site.node, site.parent
    while loop is not None and not isinstance(loop, ast.For | ast.While | Definition):
        loop = site.program.parent.get(loop)
    if not isinstance(node, ast.Assign) or not isinstance(loop, Loop) or node not in block_of(site):
        return
    begun = [f"{state.name} = {site.text(state.value)}" for state in _states(site, loop)]
    set_inside = {site.text(each) for each in ast.walk(loop) if isinstance(each, ast.Assign)}
    for text in begun if site.text(node) in begun else ():
        if text not in set_inside:
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
            yield together((before(site, node, step),), "marked")


# --- what a function answers ---------------------------------------------------------------------------


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


SEVERAL = (state_by_key, marked, by_itself)
