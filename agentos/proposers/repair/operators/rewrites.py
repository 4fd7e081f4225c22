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
from itertools import chain
from pathlib import Path
from typing import Any

from agentos import shipped
from agentos.errors import Invalid
from agentos.proposers.repair.operators.statements import differing_lines, in_loop
from agentos.proposers.repair.scope import NUMBERS, called_name, compatible, is_target
from agentos.proposers.repair.site import EditSite, is_library, library_text
from agentos.proposers.repair.source import ATOMS, CodeEdit, Splice
from agentos.syntax import parse

ONE_MORE_IMPORT = 0.7
UNKNOWN = 0.5  # for each gap that wants a kind of value, and is given something of which nothing is known
GAP = re.compile(r"\$(\*?)(\w+)(?::([a-z]+))?")
ONE, MANY = "one_gap_", "many_gap_"
MARKS = frozenset({"ctx", "type_comment", "kind", "lineno", "col_offset", "end_lineno", "end_col_offset"})
SHAPES: dict[str, type[ast.expr] | tuple[type[ast.expr], ...]] = {
    "name": ast.Name, "call": ast.Call, "lookup": ast.Subscript, "sum": ast.BinOp,
    "plain": (ast.Name, ast.Attribute, ast.Subscript), "test": (ast.Compare, ast.BoolOp, ast.UnaryOp),
}  # fmt: skip
LITERALS: dict[str, type | tuple[type, ...]] = {"text": str, "number": (int, float)}
TURNED = (ast.Compare, ast.BinOp)
MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq, ast.NotEq: ast.NotEq, ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip
# Arguments that are given by place or by name, by what is called.
POSITIONS = {
    "split": ("sep", "maxsplit"), "rsplit": ("sep", "maxsplit"), "round": ("number", "ndigits"), "int": ("", "base"),
    "encode": ("encoding", "errors"), "decode": ("encoding", "errors"), "enumerate": ("iterable", "start"),
    "sum": ("", "start"), "sub": ("pattern", "repl", "string", "count", "flags"), "to_bytes": ("length", "byteorder"),
    "from_bytes": ("bytes", "byteorder"), "groupby": ("iterable", "key"), "fromtimestamp": ("timestamp", "tz"),
}  # fmt: skip
MODULES = ("os.path", "urllib.parse", "email.utils", "email.header", "xml.sax.saxutils", "html.parser")


@dataclass(frozen=True, slots=True)
class Filling:
    """What stands in a gap. Of many, ``keywords`` are the names of the arguments among them; a ``block`` is of statements."""

    text: str
    tight: bool = True
    keywords: frozenset[str] = frozenset()
    block: bool = False


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
        first, *more = parse(self.text).body
        alone = isinstance(first, ast.Expr) and not isinstance(first.value, ast.Starred) and not more
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
    needs: str = ""  # a module that the file imports

    @cached_property
    def telling(self) -> float:
        """How much it says that the pattern fits: a name of a library much, two operands and a sign little."""
        if any(not what.startswith("$") for _, _, what, _ in self.old.parts):
            return 2.0
        fixed = re.search(r"(?<![$\w*])[A-Za-z0-9_\"']", GAP.sub("", self.old.written))
        return 1.0 if fixed else 0.5

    @cached_property
    def pattern(self) -> ast.expr | ast.stmt:
        """What it is laid over: where a statement is put, a statement."""
        old, new = self.old.node, self.new.node
        return ast.Expr(old) if isinstance(old, ast.expr) and isinstance(new, ast.stmt) else old

    @cached_property
    def jumps(self) -> bool:
        """Whether it leaves the round of a loop around it."""
        kinds = {type(node) for node in ast.walk(parse(self.new.text))}
        return not kinds.isdisjoint((ast.Continue, ast.Break)) and kinds.isdisjoint((ast.For, ast.While))

    def edits(self, site: EditSite) -> Iterator[CodeEdit]:
        """The rewrite of the site's node, if it fits there."""
        if (self.needs and self.needs not in site.facts.modules) or (self.jumps and not in_loop(site)):
            return
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
                splice = differing_lines(site, node, text)
            weight = self.weight * self.telling * fit.weight * (ONE_MORE_IMPORT if imports else 1.0)
            yield CodeEdit((splice, *imports.values()), self.operator, weight)


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
            return isinstance(node, ast.expr) and is_library(self.site, node, *library)
        if type(form) is not type(node):
            meant = self.site.meant_by(node) if isinstance(node, ast.Name) else None
            return meant is not None and self.matches(form, meant)
        if not isinstance(node, TURNED):
            return self._fields(form, node)
        found, weight = dict(self.found), self.weight
        if self._fields(form, node):
            return True
        self.found, self.weight = found, weight
        return (turned := _turned(node)) is not None and self._fields(form, turned)

    def _fields(self, form: ast.AST, node: ast.AST) -> bool:
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
        if isinstance(node, ast.Starred | ast.Slice) or not isinstance(node, SHAPES.get(wanted, ast.expr)):
            return False
        if wanted in LITERALS:
            meant = self.site.meant_by(node) or node
            if not isinstance(meant, ast.Constant) or not isinstance(meant.value, LITERALS[wanted]):
                return False
        elif wanted and wanted not in SHAPES:
            kind = self.site.kind(node)
            if not compatible(kind, "int" if wanted in NUMBERS else wanted):
                return False
            self.weight *= 1.0 if kind else UNKNOWN
        text, tight = self.site.text(node), isinstance(node, ATOMS)
        if "\n" in text and (not tight or isinstance(node, ast.Constant)):
            text, tight = f"({text})", True
        return self._keeps(name, Filling(text, tight))

    def _called(self, form: ast.Call, node: ast.Call) -> bool:
        """Positional arguments in their order, those by name in any; what is left goes to the many."""
        given = list(node.args)
        if not self.matches(form.func, node.func):
            compiled = _compiled(self.site, form.func, node.func)
            if compiled is None:
                return False
            given.insert(0, compiled)
        named = {keyword.arg: keyword for keyword in node.keywords}
        for name in POSITIONS.get(called_name(form), ())[len(given) : len(form.args)]:
            if name not in named:
                break
            given.append(named.pop(name).value)
        for keyword in form.keywords:
            other = named.pop(keyword.arg, None)
            if other is None or not self.matches(keyword.value, other.value):
                return False
        return self._all(form.args, given, list(named.values()))

    def _all(self, form: list[Any], nodes: list[Any], more: Sequence[ast.keyword] = ()) -> bool:
        """Item by item. One of the form may stand for many."""
        many = next((at for at, item in enumerate(form) if _many(item)), None)
        if many is None:
            return len(form) == len(nodes) and not more and all(map(self.matches, form, nodes))
        behind = len(form) - many - 1
        if len(nodes) < len(form) - 1:
            return False
        rest = nodes[many : len(nodes) - behind]
        around = [*form[:many], *form[many + 1 :]]
        ends = zip(around, [*nodes[:many], *nodes[len(nodes) - behind :]], strict=True)
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
        if program.data[first:].startswith(b"elif"):
            start, deep = first + len("el"), program.indent(nodes[0])
            return Filling(f"{deep}{program.data[start:end].decode()}", block=True)
        if program.data[start:first].strip():
            return Filling(program.data[first:end].decode(), block=True)
        while start:
            above = program.data.rfind(b"\n", 0, start - 1) + 1
            if program.data[above:start].strip()[:1] not in (b"#", b""):
                break
            start = above
        return Filling(program.data[start:end].decode(), block=True)


def _turned(node: ast.AST) -> ast.expr | None:
    """The same with its operands the other way round, where that is the same."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in MIRRORED:
        return ast.Compare(node.comparators[0], [MIRRORED[type(node.ops[0])]()], [node.left])
    number = (
        isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and type(node.left.value) is int
    )
    if isinstance(node, ast.BinOp) and (
        isinstance(node.op, ast.Mult) or (number and isinstance(node.op, ast.Add))
    ):
        return ast.BinOp(node.right, node.op, node.left)
    return None


def _compiled(site: EditSite, form: ast.expr, func: ast.expr) -> ast.expr | None:
    """The pattern, where the form says ``re.sub`` and the file a compiled pattern's ``sub``."""
    if not isinstance(func, ast.Attribute) or _library_name(form) != ("re", func.attr):
        return None
    made = site.meant_by(func.value) or func.value
    is_made = isinstance(made, ast.Call) and called_name(made) == "compile"
    return func.value if is_made else None


def _many(node: object) -> str:
    """The name of a gap for many."""
    if isinstance(node, ast.Expr):
        node = node.value
    inner = node.value if isinstance(node, ast.Starred) else None
    return inner.id.removeprefix(MANY) if isinstance(inner, ast.Name) and inner.id.startswith(MANY) else ""


def _gap(node: ast.expr) -> str:
    name = node.id if isinstance(node, ast.Name) else ""
    found = name.removeprefix(ONE) if name.startswith(ONE) else _many(node)
    return f"${found}" if found else ""


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
        if filling.block:
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
        text = text.replace("\n", "\n" + site.program.indent(site.node))
    return text


def _moved(block: Filling, text: str) -> str:
    """The block where the text ends, without the depth that the statement has, which all of it gets afterwards."""
    deep = len(text) - text.rfind("\n") - 1
    lines = textwrap.dedent(block.text).splitlines()
    return ("\n" + " " * deep).join(lines)


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
    said = str(group["by"]), float(group.get("weight", 1.0)), str(group.get("needs", ""))
    for row in group.get("rewrites", ()):
        for old in map(Form, [row[0]] if isinstance(row[0], str) else row[0]):
            yield from (Rewrite(old, Form(new), *said) for new in row[1:] if new != old.written)
    for row in group.get("swaps", ()):
        for old in map(Form, row):
            yield from (Rewrite(old, Form(new), *said) for new in row if new != old.written)


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
        name = called_name(node)
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
    if is_target(node):
        return
    catalogue = shipped_rewrites()
    keys = [_key(node)]
    if isinstance(node, ast.Call):
        keys.append((ast.Call, ""))
    elif isinstance(node, ast.Compare) and (turned := _turned(node)) and _key(turned) != keys[0]:
        keys.append(_key(turned))
    for rewrite in chain.from_iterable(catalogue.get(key, ()) for key in keys):
        yield from rewrite.edits(site)
