"""Names and constants: another variable, function, attribute, method or literal, and the order of arguments and targets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.scope import COLLECTIONS, SEQUENCES, compatible
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

COMMON_STRINGS = ("", " ", ",", "\n", "\t", ";", ".", "-", "_", ":", "/")
LARGE = 10**100  # numbers beyond it have no neighbours
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "ascii")

# What is confused with what: members of a family stand for one another.
FAMILIES = (
    ("lower", "upper", "swapcase", "title", "capitalize", "casefold"),
    ("strip", "lstrip", "rstrip"),
    ("startswith", "endswith"),
    ("find", "rfind", "index", "rindex"),
    ("split", "rsplit", "splitlines", "partition", "rpartition"),
    ("isdigit", "isalpha", "isalnum", "isnumeric", "isupper", "islower", "isspace"),
    ("append", "extend", "add", "update", "insert"),
    ("keys", "values", "items"),
    ("removeprefix", "removesuffix"),
    ("union", "intersection", "difference", "symmetric_difference"),
    ("read", "readline", "readlines"),
    ("search", "match", "fullmatch", "findall"),
    ("ljust", "rjust", "center", "zfill"),
    ("name", "stem", "suffix", "parent"),
    ("year", "month", "day"),
    ("hour", "minute", "second"),
    ("min", "max", "sum", "len"),
    ("any", "all"),
    ("floor", "ceil", "round", "int", "trunc"),
    ("int", "float", "str"),
    ("sorted", "reversed", "list", "set", "tuple"),
    ("mean", "median", "mode"),
    ("pop", "remove", "discard"),
    ("chr", "ord"),
    ("bin", "hex", "oct"),
    ("map", "filter"),
    ("abs", "round"),
)


def relatives(name: str) -> list[str]:
    """The other members of the families that a function or method belongs to."""
    return list(dict.fromkeys(n for family in FAMILIES if name in family for n in family if n != name))


def names(site: EditSite) -> Iterator[CodeEdit]:
    """Another variable or field in the place of this one, or an element of one."""
    node = site.node
    if not _is_variable(site):
        return
    assert isinstance(node, ast.Name | ast.Attribute)
    own, kind = site.text(node), site.kind(node) or site.scope.kinds.get(site.text(node), "")
    called = isinstance(site.parent, ast.Call) and site.parent.func is node
    if called:
        yield from _functions(site, own)
        return
    for other in site.variables():
        if other != own:
            fits = compatible(kind, site.scope.kinds.get(other, ""))
            yield site.edit(other, "name", 1.0 if fits else 0.2)
    yield from _elements(site, own, kind)


def _is_variable(site: EditSite) -> bool:
    node = site.node
    if isinstance(node, ast.Attribute):
        return site.text(node) in site.scope.kinds
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
        return False
    return not isinstance(site.parent, ast.Attribute) or site.text(site.parent) not in site.scope.kinds


def _functions(site: EditSite, own: str) -> Iterator[CodeEdit]:
    for other in relatives(own):
        if other not in ("ceil", "floor", "trunc", "mean", "median", "mode") or other in site.facts.imported:
            yield site.edit(other, "function", 2.0)
    for other in (*site.scope.functions, *site.facts.imported):
        if other != own:
            yield site.edit(other, "function", 0.5)


def _elements(site: EditSite, own: str, kind: str) -> Iterator[CodeEdit]:
    """``items[i]`` where a plain value stands, for what is indexed by what in this file."""
    for node in site.near(site.facts.expressions, 60):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and site.visible(node):
            yield site.edit(site.text(node), "element", 0.6)
    if kind in COLLECTIONS:
        return
    variables = site.variables()
    for holder in variables:
        if site.scope.kinds.get(holder, "") in SEQUENCES | {"", "dict"} and holder != own:
            for key in variables:
                if site.scope.kinds.get(key) == "int" and key != holder:
                    yield site.edit(f"{holder}[{key}]", "element", 0.4)


def attributes(site: EditSite) -> Iterator[CodeEdit]:
    """A related method, or another attribute that the file uses on the same kind of thing."""
    node = site.node
    if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
        return
    receiver = site.text(node.value)
    weights = dict.fromkeys(relatives(node.attr), 2.0)
    called = isinstance(site.parent, ast.Call) and site.parent.func is node
    for other in site.near(site.facts.attributes, 60):
        if other.attr != node.attr:
            above = site.program.parent.get(other)
            if (isinstance(above, ast.Call) and above.func is other) == called:
                near = site.text(other.value) == receiver
                weights.setdefault(other.attr, 1.0 if near else 0.3)
    for name, weight in weights.items():
        yield site.edit(f"{receiver}.{name}", "attribute", weight)


def order(site: EditSite) -> Iterator[CodeEdit]:
    """Arguments, tuple items and targets in another order; neighbours exchanged."""
    node = site.node
    items: list[ast.expr] = []
    if isinstance(node, ast.Call):
        items = [a for a in node.args if not isinstance(a, ast.Starred)]
    elif isinstance(node, ast.Tuple | ast.List):
        items = node.elts if len(node.elts) <= 6 else []
    for one in range(len(items)):
        for two in range(one + 1, len(items)):
            if ast.dump(items[one]) != ast.dump(items[two]):
                first, second = site.text(items[one]), site.text(items[two])
                splices = (site.program.replace(items[one], second), site.program.replace(items[two], first))
                yield CodeEdit(splices, "order", 1.0)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript):
        inner = node.value
        splices = (
            site.program.replace(inner.slice, site.text(node.slice)),
            site.program.replace(node.slice, site.text(inner.slice)),
        )
        yield CodeEdit(splices, "order", 1.0)


def targets(site: EditSite) -> Iterator[CodeEdit]:
    """Another variable on the left of an assignment."""
    node = site.node
    if isinstance(node, ast.Assign | ast.AugAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Name):
            for other in site.variables():
                if other != target.id and "." not in other:
                    yield site.edit(other, "target", 0.5, node=target)


def swaps(site: EditSite) -> Iterator[CodeEdit]:
    """Two names exchanged throughout one expression or statement."""
    node = site.node
    if not isinstance(node, ast.Compare | ast.BinOp | ast.Return | ast.Assign | ast.IfExp):
        return
    loads = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    used = sorted({n.id for n in loads} & set(site.variables()))
    for index, one in enumerate(used):
        for two in used[index + 1 :]:
            other = {one: two, two: one}
            splices = tuple(site.program.replace(n, other[n.id]) for n in loads if n.id in other)
            yield CodeEdit(splices, "names exchanged", 0.7)


def constants(site: EditSite) -> Iterator[CodeEdit]:
    """Another literal in the place of this one."""
    node = site.node
    if not isinstance(node, ast.Constant) or _is_key_of_contract(site):
        return
    for text, weight in _alternatives(site, node):
        yield site.edit(text, "constant", weight)
    yield from _everywhere(site, node)
    if isinstance(node.value, str):
        yield from _name_in_quotes(site, node.value)
    elif node.value is not None and not isinstance(node.value, bool):
        for name in site.variables():
            if site.scope.kinds.get(name, "") not in COLLECTIONS:
                yield site.edit(name, "constant to name", 0.3)


def _is_key_of_contract(site: EditSite) -> bool:
    return isinstance(site.parent, ast.keyword) and site.parent.arg in ("sep", "end")


def _alternatives(site: EditSite, node: ast.Constant) -> Iterator[tuple[str, float]]:
    value = node.value
    weights: dict[str, float] = {}
    if isinstance(value, bool):
        weights[str(not value)] = 2.0
    elif isinstance(value, int | float):
        weights = _numbers(site, value)
    elif isinstance(value, str):
        weights = _strings(site, value)
    elif value is None:
        weights = {"0": 0.5, "''": 0.5, "[]": 0.5, "False": 0.5, "-1": 0.3}
    weights.pop(repr(value), None)
    yield from weights.items()


def _numbers(site: EditSite, value: float) -> dict[str, float]:
    weights: dict[str, float] = {}
    for other in site.facts.constants:
        if isinstance(other, int | float) and not isinstance(other, bool) and abs(other) < LARGE:
            weights[repr(other)] = 0.6
            weights[repr(other + 1)] = weights.get(repr(other + 1), 0.1)
    for word in sorted(site.facts.words):
        if word.isdigit() and len(word) <= 6:
            weights[str(int(word))] = max(0.5, weights.get(word, 0))
    near = 1.0 if abs(value) <= 5 else 0.2
    for other, weight in (
        (0, 1.5 * near),
        (1, 1.5 * near),
        (2, 0.7 * near),
        (-1, 0.5 * near),
        *(((value - 2, 0.2), (value + 2, 0.2)) if abs(value) < LARGE else ()),
    ):
        weights[repr(other)] = max(weight, weights.get(repr(other), 0))
    if not abs(value) < LARGE:  # infinite, or longer than a float can say
        return weights
    weights[repr(value + 1)] = weights[repr(value - 1)] = 3.0
    if isinstance(site.parent, ast.Subscript):  # a place that is counted from the other end
        weights |= {repr(other): max(2.0, weights.get(repr(other), 0)) for other in (-1, -2)}
    if value == 0:
        weights |= {"float('-inf')": 0.2, "float('inf')": 0.2}
    for other in (value * 10, value / 10, value * 60, value * 100, value * 1000, -value, float(value)):
        weights.setdefault(repr(int(other) if isinstance(value, int) and other == int(other) else other), 0.2)
    return weights


def _strings(site: EditSite, value: str) -> dict[str, float]:
    weights = {repr(other): 0.2 for other in COMMON_STRINGS}
    for other in site.facts.constants:
        if isinstance(other, str) and len(other) < 40:
            weights[repr(other)] = 0.7 if (len(other) == 1) == (len(value) == 1) else 0.3
    for other in (value.lower(), value.upper(), value.strip(), value[1:], value[:-1], value.title()):
        weights[repr(other)] = 1.0
    weights.update(
        {
            repr(""): 1.0,
            repr(" "): 1.0,
            repr(value + " "): 0.2,
            repr(" " + value): 0.2,
            repr(value + "s"): 0.1,
        }
    )
    if value.lower().replace("_", "-") in ENCODINGS:
        weights.update({repr(other): 1.0 for other in ENCODINGS})
    return weights


def _everywhere(site: EditSite, node: ast.Constant) -> Iterator[CodeEdit]:
    """The same change at every place of the function that holds the same literal, or the same case."""
    twins = [
        other
        for other in site.facts.nodes_in(site.function)
        if isinstance(other, ast.Constant) and type(other.value) is type(node.value)
    ]
    same = [twin for twin in twins if twin.value == node.value]
    if len(same) > 1 and same[0] is node:
        for text, weight in _alternatives(site, node):
            splices = tuple(site.program.replace(twin, text) for twin in same)
            yield CodeEdit(splices, "constant everywhere", weight * 0.3)
    if isinstance(node.value, str) and len(twins) > 1 and twins[0] is node:
        for change in (str.lower, str.upper, str.title):
            changed = [t for t in twins if isinstance(t.value, str) and change(t.value) != t.value]
            if len(changed) > 1:
                splices = tuple(site.program.replace(t, repr(change(str(t.value)))) for t in changed)
                yield CodeEdit(splices, "letter case", 0.3)
    if isinstance(node.value, bool) and len(twins) > 1 and twins[0] is node:
        swapped = tuple(site.program.replace(t, str(not t.value)) for t in twins if _is_result(site, t))
        if len(swapped) > 1:
            yield CodeEdit(swapped, "truth values swapped", 3.0)


def _is_result(site: EditSite, node: ast.Constant) -> bool:
    return isinstance(site.program.parent.get(node), ast.Return)


def _name_in_quotes(site: EditSite, value: str) -> Iterator[CodeEdit]:
    if value in site.variables():
        yield site.edit(value, "name in quotes", 3.0)
        yield site.edit(f"{value}.encode()", "name in quotes", 2.0)
