"""One source file under repair: its tree, its text by node, and edits that keep comments and layout.

An edit is a set of splices of the text at node positions, so whatever it does not touch stays as the
author wrote it. (A syntax-tree printer would lose layout; libcst keeps it, and costs 40 times the
time of ``ast`` for each candidate.)
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeVar

from agentos.programs import widened
from agentos.syntax import Definition, parse, parse_expression

# The public contract of a tool: never a place to edit.
CONTRACT = frozenset({"TOOL", "Input", "Output"})

# What stands where anything may stand: no parentheses needed around it.
ATOMS = (
    ast.Name,
    ast.Constant,
    ast.Call,
    ast.Attribute,
    ast.Subscript,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
)


BELOW = re.compile(
    rb"(?:[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z))+([ \t]*)"
)  # from the end of a line to the next with code
BLANKS = re.compile(rb"\s*")
OVER_LINES = re.compile(r"\"\"\"|\'\'\'|\\\n")  # in a text that may go over several lines

# Fields of nodes that hold no expression or statement: the marks in them are shared by the whole tree.
_MARKS = frozenset({"ctx", "op", "ops"})

_Node = TypeVar("_Node", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace the bytes from ``start`` to ``end`` by ``text``.

    ``expression`` says that both are one expression, so that parentheses may be put around it.
    """

    start: int
    end: int
    text: str
    expression: bool = True


@dataclass(frozen=True, slots=True)
class CodeEdit:
    """One logical change. ``weight`` compares it with others of the same operator, 1 being usual."""

    splices: tuple[Splice, ...]
    operator: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Family:
    """Many edits of one operator at one place, made as they are asked for, the likeliest first.

    ``total`` is the sum of their weights without what else speaks for single ones, ``most`` the weight of the
    likeliest, so that none is made before its turn.
    """

    operator: str
    total: float
    most: float
    edits: Iterator[CodeEdit]


class Program:
    """A parsed source. Raises SyntaxError when it is not Python."""

    is_python = True

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = parse(source)
        self.data = source.encode()
        self._starts: list[int] = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = len(self._starts) if self.data.endswith(b"\n") else len(self._starts) - 1
        self._known: dict[tuple[int, int], str] = {}
        self._quotes: dict[tuple[int, int], str] = {}  # of an f-string, around what stands from here to there
        self.parent: dict[ast.AST, ast.AST] = {}
        self._nodes: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        found: list[ast.AST] = [self.tree]
        for node in found:  # which grows: the order is that of ast.walk
            self._nodes[type(node)].append(node)
            for child in children(node):
                self.parent[child] = node
                found.append(child)

    def nodes(self, kind: type[_Node]) -> list[_Node]:
        """All nodes of this kind, outer ones first."""
        return self._nodes.get(kind, [])  # type: ignore[return-value]  # they are kept by their kind

    @cached_property
    def words(self) -> frozenset[str]:
        """Lower-case words of all docstrings: what the author said the code is for."""
        found: set[str] = set()
        holders = [n for n in ast.walk(self.tree) if isinstance(n, ast.Module | Definition | ast.ClassDef)]
        for node in holders:
            found.update(re.findall(r"[a-z]+|\d+", (ast.get_docstring(node) or "").lower()))
        return frozenset(found)

    @cached_property
    def _cuts(self) -> list[int]:
        """Offsets of lines at which the file may be cut: each part between two of them can be parsed alone."""
        found = [0]
        for above, node in pairwise(self.tree.body):
            first = first_line(node)
            if first > (above.end_lineno or first):
                found.append(self._starts[first - 1])
        return [*found, len(self.data)]

    @cached_property
    def _tops(self) -> list[int]:
        """Offsets at which the statements of the module begin."""
        return [self.span(node)[0] for node in self.tree.body]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Byte offsets of the node's first character and behind its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def indent(self, node: ast.stmt) -> str:
        """The blanks and tabs before the node, or as many blanks where something else begins its line."""
        start = self._starts[node.lineno - 1]
        before = self.data[start : start + node.col_offset].decode()
        return " " * node.col_offset if before.strip() else before

    def has_own_lines(self, node: ast.stmt) -> bool:
        """Whether nothing but a comment stands beside it, as does what is behind a colon or a semicolon."""
        before = self.data[self.offset(node.lineno, 0) : self.span(node)[0]].strip()
        return not before and self.rest_of_line(self.span(node)[1]).strip()[:1] in (b"", b"#")

    def rest_of_line(self, offset: int) -> bytes:
        """From there to the end of the line, without it."""
        return self.data[offset : self.data.find(b"\n", offset) + 1 or None].rstrip()

    def offset(self, line: int, column: int) -> int:
        """The byte offset of a place as the syntax tree gives it."""
        return self._starts[line - 1] + column

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The node as the author wrote it."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def line_of(self, offset: int) -> int:
        """The line number, from 1, that a byte offset lies in."""
        return bisect_right(self._starts, offset, 0, self._lines)

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Splice:
        """The splice that puts ``text`` where the node stands."""
        start, end = self.span(node)
        if self._quotes and (
            quote := next((q for (a, b), q in self._quotes.items() if a <= start and end <= b), "")
        ):
            other = "'" if quote == '"' else '"'
            text = text if other in text else text.replace(quote, other)
            text = f" {text}" if text.startswith("{") else text
        return Splice(start, end, text, isinstance(node, ast.expr))

    def put_in(self, string: ast.JoinedStr) -> list[ast.expr]:
        """The expressions of an f-string whose places the tree knows: before Python 3.12 not all are told rightly."""
        first, last = self.span(string)
        written = re.match(rb"\w*([\"'])", self.data[first:last])
        found = []
        for part in string.values:
            if not isinstance(part, ast.FormattedValue):
                continue
            start, end = self.span(part.value) if part.value.lineno < len(self._starts) else (0, 0)
            before, behind = self.data[first:start].rstrip()[-1:], self.data[end:last].lstrip()[:1]
            if not first < start < end < last or before != b"{" or behind not in (b"}", b"!", b":", b"="):
                continue
            text = self.data[start:end].decode(errors="replace")
            if _dumped(text, parse_expression) == ast.dump(part.value):
                self._quotes[start, end] = written[1].decode() if written else ""
                found.append(part.value)
        return found

    def lines_span(self, node: ast.stmt) -> tuple[int, int]:
        """Offsets of the node's whole lines with decorators and a trailing comment, when nothing else is on them."""
        start, end = self.offset(first_line(node), node.col_offset), self.span(node)[1]
        line_start = self.data.rfind(b"\n", 0, start) + 1
        line_end = self.data.find(b"\n", end) + 1 or len(self.data)
        before, behind = self.data[line_start:start].strip(), self.data[end:line_end].strip()
        if before or (behind and not behind.startswith(b"#")):
            return start, end
        return line_start, line_end

    def apply(self, edit: CodeEdit) -> str | None:
        """The new source; None when it is not Python any more."""
        made = self.change(edit)
        return made[0] if made else None

    def change(self, edit: CodeEdit) -> tuple[str, tuple[int, str]] | None:
        """The new source, and what tells it apart: where it differs, and the tree of that part.

        Only the statement that changes is parsed and compared, so that an edit of a long file costs no
        more than one of a short file. None when the statement is not Python any more.
        """
        edit = self._with_texts_kept(edit)
        added = self._added(edit)
        if added is not None:
            if self.data[edit.splices[0].start :].startswith(b"elif"):
                return None
            tree = _dumped(added[1]) and f"+{len(added[0])} {_dumped(added[1])}"
            next_one = BLANKS.match(self.data, edit.splices[0].start)  # behind one is before the next
            where = next_one.end() if next_one else 0
            return (self._spliced(edit, parenthesised=False), (where, tree)) if tree else None
        start, end, holder = self._region(edit)
        bare = self._part(edit, start, end, holder, parenthesised=False)
        tree = _dumped(bare)
        if all(not s.expression or is_atom(s.text) for s in edit.splices):
            return (self._spliced(edit, parenthesised=False), (start, tree)) if tree else None
        wanted = _dumped(self._part(edit, start, end, holder, parenthesised=True))
        if wanted is not None and tree != wanted:
            return self._spliced(edit, parenthesised=True), (start, wanted)
        return (self._spliced(edit, parenthesised=False), (start, tree)) if tree else None

    def _with_texts_kept(self, edit: CodeEdit) -> CodeEdit:
        """The edit such that no text over several lines gets another one by how far its statement is indented."""
        if not any(OVER_LINES.search(splice.text) for splice in edit.splices):
            return edit
        own = [t for t in self._long_texts if any(s.start <= t[0] < s.end for s in edit.splices)]
        own = own or [*self._long_texts]
        known = {text for _, _, text in own}
        for _, anyhow, text in own:
            made = [anyhow.sub(lambda m, t=text: m[0] if m[0] in known else t, s.text) for s in edit.splices]  # type: ignore[misc]
            splices = (replace(s, text=each) for s, each in zip(edit.splices, made, strict=True))
            edit = replace(edit, splices=tuple(splices))
        return edit

    @cached_property
    def _long_texts(self) -> Sequence[tuple[int, re.Pattern[str], str]]:
        """Texts over several lines: where, what finds each however its lines are indented, and as it is written."""
        found = []
        for node in (*self.nodes(ast.Constant), *self.nodes(ast.JoinedStr)):
            within = isinstance(self.parent[node], ast.JoinedStr | ast.FormattedValue)
            if (node.end_lineno or 0) > node.lineno and not within:
                first, *lines = (text := self.text(node)).split("\n")
                rest = (r"\n[ \t]*" + re.escape(line.lstrip(" \t")) for line in lines)
                found.append((self.span(node)[0], re.compile(re.escape(first) + "".join(rest)), text))
        return found

    def unchanged(self, edit: CodeEdit) -> tuple[int, str] | None:
        """What ``change`` would say of the part of the edit if nothing changed there."""
        if self._added(edit) is not None:
            return None
        start, end, holder = self._region(edit)
        if (start, end) not in self._known:
            same = CodeEdit((Splice(start, start, "", expression=False),), "")
            self._known[start, end] = _dumped(self._part(same, start, end, holder, parenthesised=False)) or ""
        return start, self._known[start, end]

    def _added(self, edit: CodeEdit) -> tuple[str, str] | None:
        """The statements that the edit only adds: behind which blanks, and such that they can be parsed alone."""
        splice = edit.splices[0]
        if len(edit.splices) > 1 or splice.start != splice.end or "\n" not in splice.text:
            return None
        line = self._starts[self.line_of(splice.start) - 1]
        indent = above = self.data[line : splice.start].decode()
        if splice.text.startswith("\n"):
            indent = splice.text[1 : len(splice.text) - len(splice.text.lstrip())]
            below = BELOW.match(self.data, splice.start)
            if below is None or not (above.startswith(indent) or below[1].decode() == indent):
                return None
        return None if indent.strip() else (indent, _placed(splice.text.strip(), indent))

    def _region(self, edit: CodeEdit) -> tuple[int, int, ast.stmt | None]:
        """Offsets of the smallest statement that holds the whole edit, only its head where that is enough."""
        first, last = min(s.start for s in edit.splices), max(s.end for s in edit.splices)
        holder = self.holder(first, last, whole=True)
        one = holder and self.span(holder) == (first, last)  # a statement, for which one may be put
        one = one and all(s.text.strip() and not re.search(r"[\n;]", s.text) for s in edit.splices)
        if not one and not all(s.expression for s in edit.splices):
            holder = self.holder(first, last, whole=False)
        if holder is None:
            cuts = self._cuts
            below = bisect_right(cuts, first) - 1
            above = min(max(bisect_left(cuts, last), below + 1), len(cuts) - 1)
            return cuts[below], cuts[above], None
        start, end = self.span(holder)
        body = getattr(holder, "body", None)
        if body and last < self.span(body[0])[0] and body[0].lineno > holder.lineno:
            return start, self._head_end(body[0]), holder
        return start, end, holder

    def _head_end(self, first: ast.stmt) -> int:
        """Where the head of the statement ends whose body begins with ``first``, decorators included."""
        return self._starts[first_line(first) - 1]

    def holder(self, first: int, last: int, *, whole: bool) -> ast.stmt | None:
        """The smallest statement around these offsets; they may be all of it only if ``whole``."""
        found: ast.stmt | None = None
        at = bisect_right(self._tops, first)
        block: list[ast.stmt] = self.tree.body[max(0, at - 1) : at]
        while True:
            inside = None
            for node in block:
                start, end = self.span(node)
                strictly = start < first and last < end
                if strictly or (whole and start <= first and last <= end):
                    inside = node
                    break
            if inside is None:
                return found
            found, block = inside, blocks_of(inside)

    def _part(
        self, edit: CodeEdit, start: int, end: int, holder: ast.stmt | None, *, parenthesised: bool
    ) -> str:
        """The text from ``start`` to ``end`` after the edit, such that it can be parsed alone."""
        text = spliced(self.data[start:end], edit, parenthesised=parenthesised, base=start)
        if holder is None:
            return text
        indent = self.indent(holder)
        if end < self.span(holder)[1]:
            text = f"{text}{indent} pass"
        return _placed(text.removeprefix("el") if text.startswith("elif") else text, indent)

    def _spliced(self, edit: CodeEdit, *, parenthesised: bool) -> str:
        return spliced(self.data, edit, parenthesised=parenthesised)

    @cached_property
    def functions(self) -> tuple[Definition, ...]:
        """Every function that is not part of the contract's classes."""
        found: list[Definition] = [*self.nodes(ast.FunctionDef), *self.nodes(ast.AsyncFunctionDef)]
        return tuple(node for node in found if not self._in_contract(node))

    def _in_contract(self, node: ast.AST) -> bool:
        above: ast.AST | None = node
        while above is not None:
            if isinstance(above, ast.ClassDef) and above.name in CONTRACT:
                return True
            above = self.parent.get(above)
        return False

    def function_of(self, node: ast.AST) -> Definition | None:
        """The innermost function around the node."""
        above = self.parent.get(node)
        while above is not None and not isinstance(above, Definition):
            above = self.parent.get(above)
        return above


def program_of(source: str) -> Program | None:
    """The source, parsed; None when it is not Python."""
    try:
        return Program(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


class TextFile:
    """A text beside the code: data, a shell script, or the document of a program. It takes the place of a ``Program``.

    ``code`` is the Python source that reads it, or "".
    """

    is_python = False
    functions: Sequence[Definition] = ()

    def __init__(self, path: str, source: str, code: str = "") -> None:
        self.path, self.source, self.code = path, source, code
        self.data = source.encode()
        self._ends = [*accumulate(len(line) for line in self.data.splitlines(keepends=True))]
        try:
            self.tree = parse(code)
        except (SyntaxError, ValueError, RecursionError):
            self.tree = parse("")

    def line_of(self, offset: int) -> int:
        """The line number, from 1, that a byte offset lies in."""
        return min(bisect_right(self._ends, offset) + 1, max(1, len(self._ends)))

    def change(self, edit: CodeEdit) -> tuple[str, tuple[int, str]] | None:
        """The new text, and what tells it apart; None where it cannot be read any more, or widens anything."""
        made = spliced(self.data, edit, parenthesised=False)
        if not _reads(self.path, made) or widened(self.path, self.source, made):
            return None
        return made, (0, made)

    def unchanged(self, edit: CodeEdit) -> tuple[int, str]:
        """What ``change`` would say if nothing changed."""
        return 0, self.source


def _reads(path: str, text: str) -> bool:
    reader = json.loads if path.endswith(".json") else tomllib.loads if path.endswith(".toml") else None
    try:
        return reader is None or reader(text) is not None
    except (ValueError, RecursionError):
        return False


def is_atom(text: str) -> bool:
    """Whether the text is an expression that binds tighter than any operator."""
    try:
        return isinstance(parse_expression(text), ATOMS)
    except SyntaxError:
        return False


def spliced(data: bytes, edit: CodeEdit, *, parenthesised: bool, base: int = 0) -> str:
    """The text after the edit; ``data`` begins at the offset ``base`` of the file."""
    for splice in sorted(edit.splices, key=lambda s: s.start, reverse=True):
        wrap = parenthesised and splice.expression and not is_atom(splice.text)
        text = f"({splice.text})" if wrap else splice.text
        data = data[: splice.start - base] + text.encode() + data[splice.end - base :]
    return data.decode()


def _placed(text: str, indent: str) -> str:
    """A statement that stood behind these blanks, so that it can be parsed without what is around it."""
    return f"if 1:\n{indent}{text}" if indent else text


def _dumped(source: str, parsed: Callable[[str], ast.AST] = parse) -> str | None:
    try:
        return ast.dump(parsed(source))
    except (SyntaxError, ValueError, RecursionError):
        return None


def children(node: ast.AST) -> Iterator[ast.AST]:
    """As ``ast.iter_child_nodes``, without operators and contexts, and in half the time."""
    for name in node._fields:
        if name in _MARKS:
            continue
        value = getattr(node, name, None)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    yield item
        elif isinstance(value, ast.AST):
            yield value


def first_line(node: ast.stmt) -> int:
    """The line on which the statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def blocks_of(node: ast.stmt) -> list[ast.stmt]:
    """The statements that stand directly inside this one."""
    if isinstance(node, ast.Match):
        return [statement for case in node.cases for statement in case.body]
    found = [*getattr(node, "body", []), *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
    for handler in getattr(node, "handlers", []):
        found += handler.body
    return found


def is_docstring(program: Program, node: ast.AST) -> bool:
    """Whether the constant stands alone as a statement."""
    return isinstance(node, ast.Constant) and isinstance(program.parent.get(node), ast.Expr)
