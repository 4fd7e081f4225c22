"""Rewrites from a catalogue: Python with gaps, and what is meant where that was written.

The catalogue is ``evolver/rewrites.toml``. ``$x`` fits an expression (``$x:str`` one that is probably a text),
``$*x`` the rest of the arguments or items, or the statements of a block. A name of the standard library fits however
the file imports it, and is imported where the rewrite needs it.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from agentos import shipped
from agentos.errors import Invalid
from agentos.proposers.repair.scope import NUMBERS, compatible
from agentos.proposers.repair.site import EditSite
from agentos.proposers.repair.source import ATOMS, CodeEdit, Splice
from agentos.syntax import parse

UNKNOWN = 0.5  # for each gap that wants a kind of value, and is given something of which nothing is known
GAP = re.compile(r"\$(\*?)(\w+)(?::([a-z]+))?")
ONE, MANY = "one_gap_", "many_gap_"
MARKS = frozenset({"ctx", "type_comment", "kind", "lineno", "col_offset", "end_lineno", "end_col_offset"})
SHAPES: dict[str, type[ast.expr] | tuple[type[ast.expr], ...]] = {
    "name": ast.Name, "call": ast.Call, "lookup": ast.Subscript, "sum": ast.BinOp,
    "plain": (ast.Name, ast.Attribute, ast.Subscript),
}  # fmt: skip
LITERALS: dict[str, type | tuple[type, ...]] = {"text": str, "number": (int, float)}
MODULES = ("os.path", "urllib.parse", "email.utils", "email.header", "xml.sax.saxutils", "html.parser")


@dataclass(frozen=True, slots=True)
class Filling:
    """What stands in a gap. Of many, ``keywords`` are the names of the arguments among them; ``column`` is a block's."""

    text: str
    tight: bool = True
    keywords: frozenset[str] = frozenset()
    column: int | None = None


@dataclass(frozen=True)
class Form:
    """Python with gaps, parsed."""

    written: str

    @cached_property
    def text(self) -> str:
        """As it is parsed: a name for each gap."""
        return GAP.sub(lambda gap: f"*{MANY}{gap[2]}" if gap[1] else f"{ONE}{gap[2]}", self.written)

    @cached_property
    def node(self) -> ast.expr | ast.stmt:
        """The expression, or the first statement."""
        first = parse(self.text).body[0]
        alone = isinstance(first, ast.Expr) and not isinstance(first.value, ast.Starred)
        return first.value if alone and isinstance(first, ast.Expr) else first

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """What each gap wants, by its name."""
        return {gap[2]: gap[3] for gap in GAP.finditer(self.written) if gap[3]}

    @cached_property
    def keywords(self) -> frozenset[str]:
        """Arguments by name that stand beside many others."""
        calls = [node for node in ast.walk(parse(self.text)) if isinstance(node, ast.Call)]
        return frozenset(
            k.arg or "" for c in calls if any(isinstance(a, ast.Starred) for a in c.args) for k in c.keywords
        )

    @cached_property
    def parts(self) -> Sequence[tuple[int, int, str, bool]]:
        """Where gaps and library names stand: from, to, what, whether nothing is needed around an expression there."""
        tree = parse(self.text)
        starts = [0, *(match.end() for match in re.finditer("\n", self.text))]
        found, loose = [], set[ast.AST]()
        for node in ast.walk(tree):
            loose.update(_loose(node))
            if not isinstance(node, ast.expr):
                continue
            what = _gap(node) or ".".join(_library_name(node))
            if what and node.end_lineno and node.end_col_offset is not None:
                start = starts[node.lineno - 1] + node.col_offset
                end = starts[node.end_lineno - 1] + node.end_col_offset
                found.append((start, end, what, node in loose))
        return sorted(found)


@dataclass(frozen=True)
class Rewrite:
    """One line of the catalogue: what is written, what may be meant, and how likely that is among such edits."""

    old: Form
    new: Form
    operator: str
    weight: float

    @cached_property
    def pattern(self) -> ast.expr | ast.stmt:
        """What it is laid over: where a statement is put, a statement."""
        old, new = self.old.node, self.new.node
        return ast.Expr(old) if isinstance(old, ast.expr) and isinstance(new, ast.stmt) else old

    def edits(self, site: EditSite) -> Iterator[CodeEdit]:
        """The rewrite of the site's node, if it fits there."""
        fit = _Fit(site, self.old.kinds)
        node = site.node
        if not fit.matches(self.pattern, node) or self.new.keywords & fit.given:
            return
        assert isinstance(node, ast.expr | ast.stmt)
        imports: dict[str, Splice] = {}
        text = _filled(self.new, fit.found, site, imports)
        if text is not None:
            splice = site.program.replace(node, text)
            if isinstance(node, ast.stmt) and "\n" in text:
                splice = _least(site, node, text)
            yield CodeEdit((splice, *imports.values()), self.operator, self.weight * fit.weight)


@dataclass(slots=True)
class _Fit:
    """One attempt to lay a form over a node: what was found in its gaps."""

    site: EditSite
    kinds: Mapping[str, str]
    found: dict[str, Filling] = field(default_factory=dict)
    weight: float = 1.0

    @property
    def given(self) -> frozenset[str]:
        """Arguments by name among the many."""
        return frozenset().union(*(filling.keywords for filling in self.found.values()))

    def matches(self, form: Any, node: Any) -> bool:
        """Whether the form fits; what it finds is noted even if in the end it does not."""
        if isinstance(form, list):
            return isinstance(node, list) and self._all(form, node)
        if isinstance(form, str):
            return self._named(form, node)
        if not isinstance(form, ast.AST):
            return type(form) is type(node) and form == node
        if isinstance(form, ast.Name) and form.id.startswith(ONE):
            return isinstance(node, ast.expr) and self._takes(form.id.removeprefix(ONE), node)
        if library := _library_name(form):
            return isinstance(node, ast.expr) and _is_library(self.site, node, *library)
        if type(form) is not type(node):
            return False
        if isinstance(form, ast.Call) and isinstance(node, ast.Call):
            return self._called(form, node)
        return all(
            self.matches(getattr(form, name, None), getattr(node, name, None))
            for name in form._fields
            if name not in MARKS
        )

    def _named(self, form: str, node: object) -> bool:
        if not form.startswith(ONE):
            return form == node
        return isinstance(node, str) and self._keeps(form.removeprefix(ONE), Filling(node))

    def _keeps(self, name: str, filling: Filling) -> bool:
        """The same gap twice wants the same twice."""
        return self.found.setdefault(name, filling).text == filling.text

    def _takes(self, name: str, node: ast.expr) -> bool:
        wanted = self.kinds.get(name, "")
        if isinstance(node, ast.Starred | ast.Slice):
            return False
        if wanted in SHAPES:
            if not isinstance(node, SHAPES[wanted]):
                return False
        elif wanted in LITERALS:
            if not isinstance(node, ast.Constant) or not isinstance(node.value, LITERALS[wanted]):
                return False
        elif wanted:
            kind = self.site.kind(node)
            if not compatible(kind, "int" if wanted in NUMBERS else wanted):
                return False
            self.weight *= 1.0 if kind else UNKNOWN
        return self._keeps(name, Filling(self.site.text(node), isinstance(node, ATOMS)))

    def _called(self, form: ast.Call, node: ast.Call) -> bool:
        """Positional arguments in their order, those by name in any; what is left goes to the many."""
        if not self.matches(form.func, node.func):
            return False
        named = {keyword.arg: keyword for keyword in node.keywords}
        for keyword in form.keywords:
            other = named.pop(keyword.arg, None)
            if other is None or not self.matches(keyword.value, other.value):
                return False
        return self._all(form.args, node.args, list(named.values()))

    def _all(self, form: list[Any], nodes: list[Any], more: Sequence[ast.keyword] = ()) -> bool:
        """Item by item. One of the form may stand for many."""
        many = next((at for at, item in enumerate(form) if _many(item)), None)
        if many is None:
            return len(form) == len(nodes) and not more and all(map(self.matches, form, nodes))
        behind = len(form) - many - 1
        if len(nodes) < len(form) - 1:
            return False
        rest = nodes[many : len(nodes) - behind]
        ends = zip(
            [*form[:many], *form[many + 1 :]], [*nodes[:many], *nodes[len(nodes) - behind :]], strict=True
        )
        return all(self.matches(*pair) for pair in ends) and self._keeps(
            _many(form[many]),
            self._block(rest) if rest and isinstance(rest[0], ast.stmt) else self._list(rest, more),
        )

    def _list(self, nodes: Sequence[ast.expr], more: Sequence[ast.keyword]) -> Filling:
        texts = [self.site.text(node) for node in nodes]
        texts += [
            f"{k.arg}={self.site.text(k.value)}" if k.arg else f"**{self.site.text(k.value)}" for k in more
        ]
        return Filling(", ".join(texts), keywords=frozenset(k.arg or "" for k in more))

    def _block(self, nodes: Sequence[ast.stmt]) -> Filling:
        """With the lines of comments above it."""
        program = self.site.program
        first, end = program.span(nodes[0])[0], program.span(nodes[-1])[1]
        start = program.data.rfind(b"\n", 0, first) + 1
        if program.data[start:first].strip():
            return Filling(program.data[first:end].decode(), column=0)
        while start:
            above = program.data.rfind(b"\n", 0, start - 1) + 1
            if program.data[above:start].strip()[:1] not in (b"#", b""):
                break
            start = above
        return Filling(program.data[start:end].decode(), column=nodes[0].col_offset)


def _many(node: object) -> str:
    """The name of a gap for many."""
    if isinstance(node, ast.Expr):
        node = node.value
    inner = node.value if isinstance(node, ast.Starred) else None
    return inner.id.removeprefix(MANY) if isinstance(inner, ast.Name) and inner.id.startswith(MANY) else ""


def _gap(node: ast.expr) -> str:
    name = node.id if isinstance(node, ast.Name) else ""
    return (
        f"${name.removeprefix(ONE)}" if name.startswith(ONE) else f"${many}" if (many := _many(node)) else ""
    )


def _loose(node: ast.AST) -> Iterator[ast.AST]:
    """Parts that may be any expression without parentheses around it."""
    if isinstance(node, ast.Call):
        yield from node.args
    elif isinstance(node, ast.Subscript):
        yield node.slice
    elif isinstance(node, ast.keyword | ast.Return | ast.Assign | ast.AugAssign | ast.Expr):
        yield node.value  # type: ignore[misc]  # what is returned may be nothing, which no gap is
    elif isinstance(node, ast.List | ast.Set):
        yield from node.elts
    elif isinstance(node, ast.If | ast.While):
        yield node.test
    elif isinstance(node, ast.For):
        yield node.iter


# --- names of the standard library ------------------------------------------------------------


@lru_cache(maxsize=1 << 12)
def _library_name(node: ast.AST) -> tuple[str, str] | tuple[()]:
    """Module and name, where a form says ``re.escape``; nothing elsewhere."""
    if not isinstance(node, ast.Attribute):
        return ()
    module = ast.unparse(node.value)
    known = module in MODULES or (
        module in sys.stdlib_module_names and f"{module}.{node.attr}" not in MODULES
    )
    return (module, node.attr) if known else ()


def _is_library(site: EditSite, node: ast.expr, module: str, name: str) -> bool:
    """Whether the file means this by the expression."""
    modules, names = site.facts.libraries
    if isinstance(node, ast.Name):
        return names.get((module, name)) == node.id
    return (
        isinstance(node, ast.Attribute) and node.attr == name and site.text(node.value) == modules.get(module)
    )


def library_text(site: EditSite, module: str, name: str, imports: dict[str, Splice]) -> str | None:
    """How the file may call it, with the import that it lacks; None where the name means something else there."""
    modules, names = site.facts.libraries
    if known := names.get((module, name)):
        return known
    if module in modules:
        return f"{modules[module]}.{name}"
    tree, program = site.program.tree, site.program
    from_it: list[ast.stmt]
    from_it = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == module]
    whole = f"from {module} import {name}" if from_it else f"import {module}"
    if (name if from_it else module.partition(".")[0]) in site.facts.bound:
        return None
    imported: list[ast.stmt] = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    above = from_it or imported
    if above:
        end = program.span(above[-1])[1]
        imports[whole] = Splice(end, end, f"\n{whole}", expression=False)
    else:
        start = program.span(tree.body[1 if ast.get_docstring(tree) and len(tree.body) > 1 else 0])[0]
        imports[whole] = Splice(start, start, f"{whole}\n", expression=False)
    return name if from_it else f"{module}.{name}"


# --- writing ----------------------------------------------------------------------------------


def _filled(
    form: Form, found: Mapping[str, Filling], site: EditSite, imports: dict[str, Splice]
) -> str | None:
    text, at = "", 0
    for start, end, what, loose in form.parts:
        if start < at:
            continue
        text += form.text[at:start]
        at = end
        if not what.startswith("$"):
            module, _, name = what.rpartition(".")
            written = library_text(site, module, name, imports)
            if written is None:
                return None
            text += written
            continue
        filling = found[what[1:]]
        if filling.column is not None:
            text += _moved(filling, text)
        elif filling.text:
            text += filling.text if filling.tight or loose else f"({filling.text})"
        elif form.text[at : at + 2] == ", ":
            at += 2
        else:
            text = text.removesuffix(", ")
    text += form.text[at:]
    text = re.sub(rf"{ONE}(\w+)", lambda gap: found[gap[1]].text, text)  # names of attributes
    if isinstance(site.node, ast.stmt):
        text = text.replace("\n", "\n" + " " * site.node.col_offset)
    return text


def _moved(block: Filling, text: str) -> str:
    """The block where the text ends, without the depth that the statement has, which all of it gets afterwards."""
    deep = len(text) - text.rfind("\n") - 1
    lines = textwrap.dedent(block.text).splitlines()
    return ("\n" + " " * deep).join(lines)


def _least(site: EditSite, node: ast.stmt, text: str) -> Splice:
    """The lines that differ: a statement that is added is told from one that is written anew."""
    start, end = site.program.span(node)
    indent = " " * node.col_offset
    old, new = f"{indent}{site.text(node)}".split("\n"), f"{indent}{text}".split("\n")
    most = min(len(old), len(new))
    same = next((at for at in range(most) if old[at] != new[at]), most)
    most -= same
    behind = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    if same:
        start += len("\n".join(old[:same]).encode()) - len(indent)
        end -= len("".join(f"\n{line}" for line in old[len(old) - behind :]).encode())
        added = "".join(f"\n{line}" for line in new[same : len(new) - behind])
        return Splice(start, end, added, expression=False)
    added = "\n".join(new[: len(new) - behind]).removeprefix(indent)
    if behind == len(old):
        return Splice(start, start, f"{added}\n{indent}", expression=False)
    end -= len("".join(f"\n{line}" for line in old[len(old) - behind :]).encode())
    return Splice(start, end, added, expression=False)


# --- the catalogue ----------------------------------------------------------------------------


def read_rewrites(path: Path) -> Sequence[Rewrite]:
    """The entries of a catalogue. Raises Invalid when it is not one."""
    try:
        groups = tomllib.loads(path.read_text(encoding="utf-8"))["group"]
        found = [rewrite for group in groups for rewrite in _of_group(group)]
        return list({(each.old.written, each.new.written): each for each in reversed(found)}.values())[::-1]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError, SyntaxError) as error:
        raise Invalid(str(path), [f"expected tables [[group]] of rewrites, found {error!r}"]) from error


def _of_group(group: Mapping[str, Any]) -> Iterator[Rewrite]:
    operator, weight = str(group["by"]), float(group.get("weight", 1.0))
    for row in group.get("rewrites", ()):
        old = Form(row[0])
        for new in row[1:]:
            yield Rewrite(old, Form(new), operator, weight)
    for row in group.get("swaps", ()):
        for old in map(Form, row):
            yield from (Rewrite(old, Form(new), operator, weight) for new in row if new != old.written)


_Key = tuple[object, ...]


@lru_cache(maxsize=1)
def shipped_rewrites() -> Mapping[_Key, Sequence[Rewrite]]:
    """The catalogue that comes with the program, by what a node has to be for a line of it."""
    found: dict[_Key, list[Rewrite]] = defaultdict(list)
    for rewrite in read_rewrites(shipped.folder("evolver") / "rewrites.toml"):
        found[_key(rewrite.pattern)].append(rewrite)
    return found


def _key(node: ast.AST) -> _Key:
    """What tells most nodes apart: the type, and what is called, operated or said."""
    if isinstance(node, ast.Call):
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        return ast.Call, "" if name.startswith(ONE) else name
    if isinstance(node, ast.Attribute):
        return ast.Attribute, node.attr
    if isinstance(node, ast.Name):
        return ast.Name, node.id
    if isinstance(node, ast.Constant):
        return ast.Constant, type(node.value), node.value
    if isinstance(node, ast.Compare):
        return ast.Compare, type(node.ops[0])
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.AugAssign):
        return type(node), type(node.op)
    return (type(node),)


def rewritten(site: EditSite) -> Iterator[CodeEdit]:
    """Each line of the catalogue that fits the site's node."""
    node = site.node
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return
    catalogue = shipped_rewrites()
    among = catalogue.get(_key(node), ())
    more = catalogue.get((ast.Call, ""), ()) if isinstance(node, ast.Call) else ()
    for rewrite in (*among, *more):
        yield from rewrite.edits(site)
