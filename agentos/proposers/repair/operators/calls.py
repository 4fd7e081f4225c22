"""Calls and sub-expressions: wrapped, unwrapped, with another argument; slices and subscripts."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agentos.proposers.repair.operators.arithmetic import side
from agentos.proposers.repair.operators.conditions import joined
from agentos.proposers.repair.scope import COLLECTIONS, SEQUENCES, called_name, is_target
from agentos.proposers.repair.site import EditSite, FileFacts, is_library
from agentos.proposers.repair.source import CodeEdit

OF_ONE_MAX = 6
# function -> kinds of value that it is put around
WRAPS: dict[str, tuple[frozenset[str], float]] = {
    "abs": (frozenset({"", "int", "float"}), 1.0),
    "len": (frozenset({"", *COLLECTIONS}), 1.0),
    "int": (frozenset({"", "str", "float", "bool"}), 0.8),
    "str": (frozenset({"", "int", "float"}), 0.8),
    "float": (frozenset({"", "str", "int"}), 0.5),
    "round": (frozenset({"", "float"}), 0.4),
    "bool": (frozenset({"", "int", "list", "str"}), 0.1),
    "sorted": (frozenset({"", "list", "set", "dict"}), 0.8),
    "set": (frozenset({"", "list", "str"}), 0.8),
    "list": (frozenset({"", "set", "dict", "str"}), 0.5),
    "sum": (frozenset({"", "list"}), 0.6),
    "max": (frozenset({"", "list", "set"}), 0.4),
    "min": (frozenset({"", "list", "set"}), 0.4),
    "reversed": (frozenset({"", "list", "str"}), 0.3),
    "enumerate": (frozenset({"", "list", "str"}), 0.2),
}
STRING_METHODS = {
    ".strip()": 1.0, ".lower()": 1.0, ".upper()": 0.5, ".rstrip()": 0.3, ".encode()": 0.4,
    ".split()": 0.4, ".splitlines()": 0.2, ".casefold()": 0.2, ".lstrip()": 0.2,
}  # fmt: skip

AWAITED = ("sleep", "gather", "wait_for", "wait", "to_thread", "open_connection", "create_subprocess_exec")
WAITING = frozenset(
    {"run", "gather", "wait_for", "wait", "create_task", "ensure_future", "shield", "as_completed"}
)


KEEPING = ("append", "add", "insert", "appendleft", "put", "setdefault")
CHANGING = frozenset(
    {"append", "add", "insert", "extend", "update", "pop", "remove", "discard", "clear", "sort", "reverse"}
)


def wraps(site: EditSite) -> Iterator[CodeEdit]:
    """A conversion, a method or a slice around a value."""
    node = site.node
    if not _is_value(site):
        return
    assert isinstance(node, ast.expr)
    kind, text = site.kind(node), site.text(node)
    around = site.text(site.parent.func) if isinstance(site.parent, ast.Call) else ""
    for name, (kinds, weight) in WRAPS.items():
        if kind in kinds and around != name:
            usual = name == "abs" and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
            yield site.edit(f"{name}({text})", "wrap", 3 * weight if usual else weight)
    yield from _copied(site, kind, text)
    if kind in ("", "list", "str"):
        yield site.edit(f"sorted(set({text}))", "wrap", 0.1)
    simple = isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
    grouped = text if simple else f"({text})"
    if kind in ("", "str"):
        for method, weight in STRING_METHODS.items():
            yield site.edit(f"{grouped}{method}", "method", weight)
    for function in dict.fromkeys((*site.scope.of_one, *_of_one(site.facts))):
        yield site.edit(f"{function}({text})", "wrap", 0.5)
    if kind in ("", "str", "list", "tuple"):
        yield from _slices(site, grouped)


@lru_cache(maxsize=1)
def _of_one(facts: FileFacts) -> Sequence[str]:
    """Functions of libraries that the file calls with one value, those that it calls most first: ``re.escape``."""
    modules, names = facts.libraries
    known = {*modules.values(), *names.values()}
    calls = (n for n in facts.nodes if isinstance(n, ast.Call) and len(n.args) == 1 and not n.keywords)
    called = Counter(
        facts.program.text(c.func) for c in calls if isinstance(c.func, ast.Name | ast.Attribute)
    )
    return [name for name, _ in called.most_common() if name.partition(".")[0] in known][:OF_ONE_MAX]


ALIKE = {"int({})": 1.0, "float({})": 0.5, "str({})": 0.3, "{}.lower()": 0.7, "{}.strip()": 0.7}


def all_alike(site: EditSite) -> Iterator[CodeEdit]:
    """A conversion of the first values of a tuple that are alike, or of all: ``(int(major), int(minor), label)``."""
    node = site.node
    if not isinstance(node, ast.Tuple) or not isinstance(node.ctx, ast.Load):
        return
    plain = [e for e in node.elts if isinstance(e, ast.Name | ast.Subscript | ast.Attribute)]
    texts = [e for e in plain if site.kind(e) in ("", "str")]
    leading = len(texts) if texts == node.elts[: len(texts)] else 0
    for count in range(leading, 1, -1):
        for form, weight in ALIKE.items():
            splices = tuple(site.program.replace(e, form.format(site.text(e))) for e in texts[:count])
            # what is alike is seldom meant to become something else in part
            yield CodeEdit(splices, "wrap", weight if count == leading else 0.3 * weight)


def in_parts(site: EditSite) -> Iterator[CodeEdit]:
    """A function of the file for two values that are put together, its own within a function: ``f(a, b)`` for ``{**a, **b}``."""
    node = site.node
    if isinstance(node, ast.Dict) and len(node.keys) == 2 and not any(node.keys):
        parts = node.values
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.Add):
        parts = [node.left, node.right]
    else:
        return
    for function in (f for f in site.program.functions if f.name in site.scope.functions):
        if len(function.args.args) == 2 and not function.args.kwonlyargs:
            likely = 3.0 if function is site.function else 0.5
            yield site.edit(f"{function.name}({', '.join(map(site.text, parts))})", "wrap", likely)


def _is_value(site: EditSite) -> bool:
    node, above = site.node, site.parent
    if isinstance(node, ast.Attribute):
        called = isinstance(above, ast.Call) and above.func is node
        if called:
            return False
    elif not isinstance(node, ast.Name | ast.Call | ast.Subscript | ast.BinOp | ast.ListComp | ast.Constant):
        return False
    if is_target(node):
        return False
    if isinstance(node, ast.Constant) and not isinstance(above, ast.Return | ast.Call):
        return False
    return not (isinstance(above, ast.Call) and above.func is node) and not isinstance(above, ast.Expr)


def _is_kept(site: EditSite) -> bool:
    """Whether it becomes part of something that may outlive what it holds now."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return False
    if isinstance(above, ast.Call):
        return getattr(above.func, "attr", "") in KEEPING
    if isinstance(above, ast.Assign):  # ``kept[key] = now``, ``self.kept = now``
        return above.value is node and any(
            isinstance(t, ast.Subscript | ast.Attribute) for t in above.targets
        )
    return isinstance(above, ast.Tuple | ast.List | ast.Dict | ast.Return | ast.Yield)


def _copied(site: EditSite, kind: str, text: str) -> Iterator[CodeEdit]:
    if kind in ("", "list", "set", "dict"):
        likely = 3.0 if _is_changed_later(site) else 0.5 if _is_kept(site) else 0.0
        if likely:
            yield site.edit(f"{text}.copy()", "wrap", likely)


def _is_changed_later(site: EditSite) -> bool:
    """Whether it gets a name of its own, and what has that name is changed in place: whoever else has it sees that."""
    node, above = site.node, site.parent
    looked_up = isinstance(node, ast.Call) and called_name(node) in ("get", "setdefault")
    if not isinstance(above, ast.Assign) or not (
        looked_up or isinstance(node, ast.Attribute | ast.Subscript)
    ):
        return False
    named = {target.id for target in above.targets if isinstance(target, ast.Name)}
    for each in site.facts.nodes_in(site.function):
        if isinstance(each, ast.AugAssign):
            changed: ast.expr | None = each.target
        elif (
            isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGING
        ):
            changed = each.func.value
        else:
            continue
        if isinstance(changed, ast.Name) and changed.id in named:
            return True
    return False


def _slices(site: EditSite, text: str) -> Iterator[CodeEdit]:
    node = site.node
    if isinstance(node, ast.Constant | ast.BinOp) or isinstance(site.parent, ast.Subscript):
        return
    for part, weight in (("[1:]", 1.0), ("[:-1]", 1.0), ("[::-1]", 0.7), ("[0]", 0.7), ("[-1]", 0.7)):
        yield site.edit(text + part, "slice", weight)
    for name in site.variables():
        if site.scope.kinds.get(name, "") in ("", "int") and name != text:
            yield site.edit(f"{text}[{name}:]", "slice", 0.3)
            yield site.edit(f"{text}[:{name}]", "slice", 0.3)
            yield site.edit(f"{text}[{name}]", "slice", 0.3)


def slices(site: EditSite) -> Iterator[CodeEdit]:
    """The bounds of a slice, and whether it is one at all."""
    node = site.node
    if not isinstance(node, ast.Subscript) or isinstance(node.ctx, ast.Store):
        return
    base = site.tight(node.value)
    if not isinstance(node.slice, ast.Slice):
        index = key_text(site, node.slice)
        if isinstance(node.ctx, ast.Load):
            yield site.edit(f"{base}.get({index})", "default", 0.5)
            for default in ("0", "''", "[]"):
                yield site.edit(f"{base}.get({index}, {default})", "default", 0.5)
            for name in ("sum", "max", "min", "len"):
                yield site.edit(f"{name}({base})", "wrap", 0.3)
            for key in ("len", "lambda item: item[1]", "lambda item: item[0]"):
                yield site.edit(f"max({base}, key={key})", "sort key", 0.2)
                yield site.edit(f"min({base}, key={key})", "sort key", 0.2)
            yield site.edit(f"{base}[:{index}]", "slice", 0.3)
            yield site.edit(f"{base}[{index}:]", "slice", 0.3)
        return
    lower = site.text(node.slice.lower) if node.slice.lower else ""
    upper = site.text(node.slice.upper) if node.slice.upper else ""
    step = f":{site.text(node.slice.step)}" if node.slice.step else ""
    bounds = {(upper, lower): 0.5, ("", upper): 1.0, (lower, ""): 1.0, ("1", upper): 0.7, (lower, "-1"): 0.7}
    for (first, last), weight in bounds.items():
        if (first, last) != (lower, upper):
            yield site.edit(f"{base}[{first}:{last}{step}]", "slice", weight)
    if step:
        yield site.edit(f"{base}[{lower}:{upper}]", "slice", 0.7)
    else:
        yield site.edit(f"{base}[{lower}:{upper}:-1]", "slice", 0.3)
        yield site.edit(f"{base}[{lower}:{upper}][::-1]", "slice", 0.3)


def key_text(site: EditSite, node: ast.expr) -> str:
    """What is looked up by, as one argument of a call."""
    text = site.text(node)
    return f"({text})" if isinstance(node, ast.Tuple) and not text.startswith("(") else text


def arguments(site: EditSite) -> Iterator[CodeEdit]:
    """One argument more or less, or two values for ``min`` and ``max``."""
    node = site.node
    if not isinstance(node, ast.Call):
        return
    name = called_name(node)
    func, (written, keywords) = site.tight(node.func), site.arguments(node)
    everything = written + keywords
    for index in range(len(everything)):
        rest = everything[:index] + everything[index + 1 :]
        yield site.edit(f"{func}({', '.join(rest)})", "argument dropped", 1.0)
    if name in ("min", "max"):
        yield from _pairs(site, func, written)
    if name == "range" and len(written) == 1 and not isinstance(node.args[0], ast.Starred):
        yield site.edit(f"{func}(1, {written[0]})", "argument", 1.0)
        yield site.edit(f"{func}(1, {side(site, node.args[0])} + 1)", "argument", 1.0)
        yield site.edit(f"{func}({written[0]}, -1, -1)", "argument", 0.2)
    for other in (*site.variables(), "1", "''", "None"):
        yield site.edit(f"{func}({', '.join([*written, other, *keywords])})", "argument", 0.2)


def _pairs(site: EditSite, func: str, written: list[str]) -> Iterator[CodeEdit]:
    variables = site.variables()
    for index, one in enumerate(variables):
        for two in variables[index + 1 :]:
            if (
                not {site.scope.kinds.get(one), site.scope.kinds.get(two)} & COLLECTIONS
                and [one, two] != written
            ):
                yield site.edit(f"{func}({one}, {two})", "argument", 0.6)


def drops(site: EditSite) -> Iterator[CodeEdit]:
    """A part of an expression in the place of the whole; an operand of a condition left out."""
    node = site.node
    if isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = [v for number, v in enumerate(node.values) if number != index]
            word = "and" if isinstance(node.op, ast.And) else "or"
            yield site.edit(joined(site, word, rest), "operand dropped", 1.5)
    if not isinstance(node, ast.BinOp | ast.Call | ast.Subscript | ast.IfExp | ast.UnaryOp | ast.Compare):
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            yield from _filters_dropped(site, node)
        return
    if is_target(node):
        return
    for part, depth in _parts(node, 0):
        yield site.edit(site.text(part), "part for whole", (1.5, 0.7, 0.4, 0.2)[depth])


def _filters_dropped(site: EditSite, node: ast.ListComp | ast.GeneratorExp) -> Iterator[CodeEdit]:
    for generator in node.generators:
        for test in generator.ifs:
            yield CodeEdit((site.program.replace(test, "True"),), "condition dropped", 0.7)


def _parts(node: ast.expr, depth: int) -> Iterator[tuple[ast.expr, int]]:
    if depth > 3:
        return
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.keyword | ast.FormattedValue):
            part = part.value
        if not isinstance(part, ast.expr) or isinstance(part, ast.Slice | ast.Starred):
            continue
        if isinstance(part, ast.Attribute) and isinstance(node, ast.Call) and node.func is part:
            yield part.value, depth
            yield from _parts(part.value, depth + 1)
            continue
        if isinstance(node, ast.Call) and node.func is part:
            continue
        if not isinstance(part, ast.Constant) or depth == 0:
            yield part, depth
        yield from _parts(part, depth + 1)


def awaits(site: EditSite) -> Iterator[CodeEdit]:
    """What is called and not awaited is; what awaits a plain function does not."""
    node = site.node
    if isinstance(node, ast.Await):
        if isinstance(node.value, ast.Call) and _is_async(site, node.value) is False:
            yield site.edit(site.text(node.value), "defect", 3.0)
        return
    if not isinstance(node, ast.Call) or not _is_async(site, node) or _is_awaited_later(site, node):
        return
    if not isinstance(site.function, ast.AsyncFunctionDef):
        if "asyncio" in site.facts.modules:
            yield site.edit(f"asyncio.run({site.text(node)})", "defect", 3.0)
        return
    held = isinstance(site.parent, ast.Attribute | ast.Subscript) and site.parent.value is node
    yield site.edit(f"(await {site.text(node)})" if held else f"await {site.text(node)}", "defect", 3.0)


def _is_async(site: EditSite, call: ast.Call) -> bool | None:
    """Whether the function is a coroutine; None where the file does not tell."""
    own = [isinstance(f, ast.AsyncFunctionDef) for f in site.program.functions if f.name == called_name(call)]
    if own:
        return own[0] if len(set(own)) == 1 else None
    return True if any(is_library(site, call.func, "asyncio", each) for each in AWAITED) else None


def _is_awaited_later(site: EditSite, call: ast.Call) -> bool:
    """Whether it is awaited here, or handed to what awaits it, or kept for that."""
    above = site.parent
    while above is not None and not isinstance(above, ast.stmt):
        if isinstance(above, ast.Await) or (isinstance(above, ast.Call) and called_name(above) in WAITING):
            return True
        above = site.program.parent.get(above)
    kept = _keeper(above)
    if not kept:
        return False
    reads = [n for n in site.facts.nodes_in(site.function) if isinstance(n, ast.Await | ast.Call)]
    return any(
        isinstance(inner, ast.Name) and inner.id == kept
        for read in reads
        if isinstance(read, ast.Await) or called_name(read) in WAITING
        for inner in ast.walk(read)
    )


def _keeper(node: ast.AST | None) -> str:
    """The name that is given a value, or a list that it is put into."""
    holder = node.targets[0] if isinstance(node, ast.Assign) else None
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        func = node.value.func
        holder = func.value if isinstance(func, ast.Attribute) and func.attr in ("append", "add") else None
    return holder.id if isinstance(holder, ast.Name) else ""


def ingredients(site: EditSite) -> Iterator[CodeEdit]:
    """Another expression of the same file in the place of this one."""
    node = site.node
    if not _is_value(site) and not isinstance(node, ast.Constant):
        return
    assert isinstance(node, ast.expr)
    own, kind = site.text(node), site.kind(node)
    for other in site.near(site.facts.expressions, 60):
        text = site.text(other)
        if text == own or not site.visible(other) or (isinstance(node, ast.BinOp) and own in text):
            continue
        fits = kind == "" or site.kind(other) in ("", kind)
        same_function = site.program.function_of(other) is site.function
        yield site.edit(
            text, "expression of the file", (0.5 if fits else 0.1) * (1 if same_function else 0.3)
        )
    if isinstance(node, ast.Name | ast.Constant):
        for name in site.variables():
            if site.scope.kinds.get(name, "") in SEQUENCES | {"", "dict", "set"} and name != own:
                yield site.edit(f"len({name})", "expression", 0.3)
