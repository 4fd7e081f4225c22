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
    {"replace", "split", "rsplit", "partition", "rpartition", "isdigit", "startswith", "endswith"}
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
    for form in ALIKE:
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
        for sign in "#;-*>%'":
            yield site.edit(f"({site.text(node)}, {sign!r})", "field", 0.3)
