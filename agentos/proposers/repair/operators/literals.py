"""Constants: neighbours of a number, other literals of the file, common strings, the other truth value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.scope import COLLECTIONS
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

COMMON_STRINGS = ("", " ", ",", "\n", "\t", ";", ".", "-", "_", ":", "/")
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "ascii")


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
        if isinstance(other, int | float) and not isinstance(other, bool):
            weights[repr(other)] = 0.6
            weights[repr(other + 1)] = weights.get(repr(other + 1), 0.1)
    for word in site.facts.words:
        if word.isdigit() and len(word) <= 6:
            weights[str(int(word))] = max(0.5, weights.get(word, 0))
    near = 1.0 if abs(value) <= 5 else 0.2
    for other, weight in (
        (0, 1.5 * near),
        (1, 1.5 * near),
        (2, 0.7 * near),
        (-1, 0.5 * near),
        (value - 2, 0.2),
        (value + 2, 0.2),
    ):
        weights[repr(other)] = max(weight, weights.get(repr(other), 0))
    weights[repr(value + 1)] = weights[repr(value - 1)] = 3.0
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
