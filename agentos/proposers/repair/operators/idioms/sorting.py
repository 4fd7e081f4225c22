"""By what things are ordered: the key of ``sorted``, ``sort``, ``min`` and ``max``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

ORDERING = frozenset({"sorted", "sort", "min", "max"})
PLAIN = ("str.lower", "str.casefold", "len", "int", "float")


def sort_keys(site: EditSite) -> Iterator[CodeEdit]:
    """A key where there is none; another one; one with a second criterion, or another direction."""
    node = site.node
    if not isinstance(node, ast.Call):
        return
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name not in ORDERING:
        return
    key = next((keyword.value for keyword in node.keywords if keyword.arg == "key"), None)
    if key is None:
        yield from _new_keys(site, node)
    elif isinstance(key, ast.Lambda) and len(key.args.args) == 1:
        for text in _other_bodies(site, key):
            yield site.edit(text, "sort key", 1.0, node=key.body)
    else:
        for text in (*PLAIN, *site.scope.of_one):
            yield site.edit(text, "sort key", 0.5, node=key)


def _new_keys(site: EditSite, node: ast.Call) -> Iterator[CodeEdit]:
    parts = [site.text(a) for a in node.args]
    parts += [f"{k.arg}={site.text(k.value)}" for k in node.keywords if k.arg]
    for key in (*PLAIN, *site.scope.of_one, *(f"lambda item: {body}" for body in _elements(site, "item"))):
        yield site.edit(f"{site.text(node.func)}({', '.join([*parts, f'key={key}'])})", "sort key", 0.7)


def _elements(site: EditSite, name: str) -> list[str]:
    """What a thing may be ordered by: its places, and the keys and attributes that the file uses."""
    found = {f"{name}[0]": None, f"{name}[1]": None, f"{name}[-1]": None, f"-{name}[1]": None}
    found[f"(-{name}[1], {name}[0])"] = None
    for node in site.facts.nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            found[f"{name}[{node.slice.value!r}]"] = None
        elif isinstance(node, ast.Attribute) and not isinstance(site.program.parent.get(node), ast.Call):
            found[f"{name}.{node.attr}"] = None
    return list(found)[:40]


def _other_bodies(site: EditSite, key: ast.Lambda) -> Iterator[str]:
    name, body = key.args.args[0].arg, key.body
    elements = _elements(site, name)
    present = body.elts if isinstance(body, ast.Tuple) else [body]
    texts = [site.text(part) for part in present]
    for index, text in enumerate(texts):
        turned = text[1:] if text.startswith("-") else f"-{text}"
        for other in (turned, f"{text}.lower()", f"{text}.casefold()", f"int({text})", f"float({text})"):
            yield _tuple([*texts[:index], other, *texts[index + 1 :]])
    if len(texts) > 1:
        yield _tuple(texts[::-1])
        for index in range(len(texts)):
            yield _tuple([*texts[:index], *texts[index + 1 :]])
    for element in (*elements, name, f"len({name})"):
        if element not in texts:
            yield _tuple([*texts, element])
            yield _tuple([element, *texts])
            yield element


def _tuple(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
