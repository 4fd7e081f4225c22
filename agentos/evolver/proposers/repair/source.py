"""One source file under repair: its tree, its text by node, and edits that keep comments and layout.

An edit is a set of splices of the text at node positions, so whatever it does not touch stays as the
author wrote it. (A syntax-tree printer would lose layout; libcst keeps it, and costs 40 times the
time of ``ast`` for each candidate.)
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agentos.syntax import parse, parse_expression

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
class Edit:
    """One logical change. ``weight`` compares it with others of the same operator, 1 being usual."""

    splices: tuple[Splice, ...]
    operator: str
    weight: float = 1.0


class Program:
    """A parsed source. Raises SyntaxError when it is not Python."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.tree = parse(source)
        self.data = source.encode()
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self.parent: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parent[child] = node
        self.words = _words_of_docstrings(self.tree)

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Byte offsets of the node's first character and behind its last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The node as the author wrote it."""
        start, end = self.span(node)
        return self.data[start:end].decode()

    def line_of(self, offset: int) -> int:
        """The line number, from 1, that a byte offset lies in."""
        return self.data.count(b"\n", 0, offset) + 1

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Splice:
        """The splice that puts ``text`` where the node stands."""
        return Splice(*self.span(node), text, isinstance(node, ast.expr))

    def lines_span(self, node: ast.stmt) -> tuple[int, int]:
        """Offsets of the node's whole lines with a trailing comment, when nothing else is on them."""
        start, end = self.span(node)
        line_start = self.data.rfind(b"\n", 0, start) + 1
        newline = self.data.find(b"\n", end)
        line_end = len(self.data) if newline < 0 else newline + 1
        before, behind = self.data[line_start:start].strip(), self.data[end:line_end].strip()
        if before or (behind and not behind.startswith(b"#")):
            return start, end
        return line_start, line_end

    def apply(self, edit: Edit) -> str | None:
        """The new source; None when it is not Python any more or the same program as before."""
        bare = self._spliced(edit, parenthesised=False)
        tree = _parsed(bare)
        if all(not s.expression or is_atom(s.text) for s in edit.splices):
            return bare if tree is not None else None
        wrapped = self._spliced(edit, parenthesised=True)
        wanted = _parsed(wrapped)
        if wanted is None:
            return bare if tree is not None else None
        if tree is not None and ast.dump(tree) == ast.dump(wanted):
            return bare
        return wrapped

    def _spliced(self, edit: Edit, *, parenthesised: bool) -> str:
        data = self.data
        for splice in sorted(edit.splices, key=lambda s: s.start, reverse=True):
            wrap = parenthesised and splice.expression and not is_atom(splice.text)
            text = f"({splice.text})" if wrap else splice.text
            data = data[: splice.start] + text.encode() + data[splice.end :]
        return data.decode()

    def functions(self) -> Iterator[ast.FunctionDef]:
        """Every function that is not part of the contract's classes."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and not self._in_contract(node):
                yield node

    def _in_contract(self, node: ast.AST) -> bool:
        above: ast.AST | None = node
        while above is not None:
            if isinstance(above, ast.ClassDef) and above.name in CONTRACT:
                return True
            above = self.parent.get(above)
        return False

    def function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        """The innermost function around the node."""
        above = self.parent.get(node)
        while above is not None and not isinstance(above, ast.FunctionDef):
            above = self.parent.get(above)
        return above


def is_atom(text: str) -> bool:
    """Whether the text is an expression that binds tighter than any operator."""
    try:
        return isinstance(parse_expression(text), ATOMS)
    except SyntaxError:
        return False


def _parsed(source: str) -> ast.Module | None:
    try:
        return parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _words_of_docstrings(tree: ast.Module) -> frozenset[str]:
    """Lower-case words of all docstrings: what the author said the code is for."""
    words: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            words.update(re.findall(r"[a-z]+|\d+", (ast.get_docstring(node) or "").lower()))
    return frozenset(words)


def is_docstring(program: Program, node: ast.AST) -> bool:
    """Whether the constant stands alone as a statement."""
    return isinstance(node, ast.Constant) and isinstance(program.parent.get(node), ast.Expr)
