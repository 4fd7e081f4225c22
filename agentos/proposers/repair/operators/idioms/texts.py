"""Texts as people write them: cleaned of separators and signs, compared without case; field names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import CodeEdit

CLEANINGS = (".replace(',', '')", ".replace(',', '.')", ".replace(' ', '')", ".replace('-', '')", ".replace('.', '')",
             ".rstrip('%')", ".lstrip('$')", ".strip('\"')", ".rstrip('.')", ".lstrip('0')", ".rstrip('\\n')",
             ".replace('_', ' ')", ".split()[0]", ".split()[-1]", ".rstrip(',')", ".lstrip('#')")  # fmt: skip
CHAINED = frozenset(
    {"replace", "split", "rsplit", "partition", "rpartition", "isdigit", "startswith", "endswith", "strip"}
)
ALIKE = (
    "{}.lower()",
    "{}.strip()",
    "{}.casefold()",
    "{}.strip().lower()",
    "int({})",
    "float({})",
    "str({})",
    "set({})",
)


def cleaned(site: EditSite) -> Iterator[CodeEdit]:
    """A value without what does not belong to it, where it is converted, kept or compared."""
    node = site.node
    if not isinstance(node, ast.Name | ast.Subscript | ast.Call | ast.Attribute):
        return
    if not (_is_read(site) or _begins_chain(site)):
        return
    if site.kind(node) not in ("", "str"):
        return
    above = site.parent
    name = above.func.id if isinstance(above, ast.Call) and isinstance(above.func, ast.Name) else ""
    text, likely = site.text(node), 0.5 if name in ("int", "float", "Decimal") else 0.15
    for cleaning in CLEANINGS:
        yield site.edit(f"{text}{cleaning}", "cleaned", likely)
    yield site.edit(f"{text}.strip().lower()", "cleaned", 1.0)
    for sign in site.facts.given.signs:
        for form in (".split({})[0]", ".split({})[-1]", ".replace({}, '')", ".strip({})"):
            yield site.edit(text + form.format(repr(sign)), "cleaned", 0.1)
    for name in site.facts.idle:
        yield site.edit(f"{text}.strip({name})", "cleaned", 0.5)
        yield site.edit(f"{text} in {name}", "cleaned", 0.5)
        yield site.edit(f"{name}[{text}]", "cleaned", 0.5)


def _is_read(site: EditSite) -> bool:
    node, above = site.node, site.parent
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del) or isinstance(
        above, ast.Attribute | ast.Expr
    ):
        return False
    return not (isinstance(above, ast.Call) and above.func is node)


def _begins_chain(site: EditSite) -> bool:
    """``text`` of ``text.replace(",", ".")``: what is taken away first is another thing than what is last."""
    node, above = site.node, site.parent
    plain = isinstance(node, ast.Name | ast.Subscript) and isinstance(node.ctx, ast.Load)
    return plain and isinstance(above, ast.Attribute) and above.attr in CHAINED


def compared_alike(site: EditSite) -> Iterator[CodeEdit]:
    """Both sides of a comparison changed in the same way."""
    node = site.node
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return
    left, right = node.left, node.comparators[0]
    if isinstance(left, ast.Constant) or isinstance(right, ast.Constant):
        return
    named = [f"{function}({{}})" for function in site.scope.of_one]
    named += [f"{holder}.index({{}})" for holder in site.facts.idle]
    for form in (*ALIKE, *named):
        new = tuple(form.format(_tight(site, side)) for side in (left, right))
        splices = (site.program.replace(left, new[0]), site.program.replace(right, new[1]))
        yield CodeEdit(splices, "wrap", 0.5)


def _tight(site: EditSite, node: ast.expr) -> str:
    simple = isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
    return site.text(node) if simple else f"({site.text(node)})"


def distinct(site: EditSite) -> Iterator[CodeEdit]:
    """Each thing once, in the order in which they came."""
    node = site.node
    if (
        isinstance(node, ast.Name | ast.ListComp | ast.Call)
        and _is_read(site)
        and site.kind(node) in ("", "list")
    ):
        yield site.edit(f"list(dict.fromkeys({site.text(node)}))", "wrap", 0.2)


def fields(site: EditSite) -> Iterator[CodeEdit]:
    """The name of a column or key as the inputs of failing calls have it."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    is_key = isinstance(above, ast.Subscript) and above.slice is node
    is_key = is_key or (isinstance(above, ast.Call) and node in above.args[:1])
    if is_key or isinstance(above, ast.Compare | ast.Dict | ast.Tuple | ast.List):
        for name in site.facts.given.fields:
            if name != node.value:
                yield site.edit(repr(name), "field", 1.0 if name.casefold() == node.value.casefold() else 0.3)


def prefixes(site: EditSite) -> Iterator[CodeEdit]:
    """One of several: ``startswith(("a", "b"))`` and ``in ("a", "b")`` for a single text."""
    node, above = site.node, site.parent
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    name = above.func.attr if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) else ""
    if name in ("startswith", "endswith"):
        for other in site.facts.constants:
            if isinstance(other, str) and other != node.value and len(other) < 20:
                yield site.edit(f"({site.text(node)}, {other!r})", "field", 0.3)
        for sign in "#;-*>%'\t":
            yield site.edit(f"({site.text(node)}, {sign!r})", "field", 0.3)


def one_of(site: EditSite) -> Iterator[CodeEdit]:
    """``x in (a, b)`` where ``x == a`` is asked, with a text that the file has."""
    node = site.node
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
        word = "in" if isinstance(node.ops[0], ast.Eq) else "not in"
        left, right = site.text(node.left), site.text(node.comparators[0])
        for other in site.facts.constants:
            if isinstance(other, str) and len(other) < 20 and repr(other) != right:
                yield site.edit(f"{left} {word} ({right}, {other!r})", "field", 0.2)


# --- By what things are ordered: the key of ``sorted``, ``sort``, ``min`` and ``max`` ------------


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
        yield from _both_directions(site, node, key)
    else:
        for text in (*PLAIN, *site.scope.of_one):
            yield site.edit(text, "sort key", 0.5, node=key)


def in_order(site: EditSite) -> Iterator[CodeEdit]:
    """Both of a pair put in order; what is given back, sorted by a field."""
    node, above = site.node, site.parent
    if isinstance(above, ast.Assign) and isinstance(node, ast.Tuple) and len(node.elts) == 2:
        pair = ", ".join(site.text(part) for part in node.elts)
        yield site.edit(f"sorted(({pair}))", "sort key", 0.7)
        yield site.edit(f"sorted(({pair}), reverse=True)", "sort key", 0.7)
    elif isinstance(above, ast.Return) and isinstance(node, ast.Name) and site.kind(node) in ("", "list"):
        for body in _elements(site, "item")[:15]:
            yield site.edit(f"sorted({site.text(node)}, key=lambda item: {body})", "sort key", 0.3)


def _both_directions(site: EditSite, node: ast.Call, key: ast.Lambda) -> Iterator[CodeEdit]:
    """``reverse=True`` for one of several criteria only."""
    turned = next((keyword for keyword in node.keywords if keyword.arg == "reverse"), None)
    if turned is None or not isinstance(key.body, ast.Tuple):
        return
    texts = [site.text(part) for part in key.body.elts]
    rest = [site.text(a) for a in node.args]
    for index, text in enumerate(texts):
        body = _tuple([*texts[:index], f"-{text}", *texts[index + 1 :]])
        written = ", ".join([*rest, f"key=lambda {key.args.args[0].arg}: {body}"])
        yield site.edit(f"{site.text(node.func)}({written})", "sort key", 2.0)


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
