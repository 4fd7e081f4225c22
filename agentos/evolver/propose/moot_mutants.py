"""Mutants that make moot what an edit newly writes: each new operand, test, call, bound and statement in turn.

In the manner of condition coverage (MC/DC): a new operand that could as well always be true, a call that could as
well not be there, a statement that could as well be gone are not pinned down by the tasks, if these pass without
them. Nothing is run here.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Iterator, Mapping

from agentos.syntax import parse

_SHOWN = 40  # characters of what is made moot
_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Break, ast.Continue, ast.Delete)
Change = tuple[str, ast.AST, str]  # what is done to a node, and the text that takes its place


def moot(old: str, new: str) -> dict[str, str]:
    """The sources, each under a few words that say what is otherwise; none where a text is no Python."""
    found: dict[str, str] = {}
    written = _newly_written(old, new)
    for node in written.values():
        for words, place, text in _made_moot(node, written):
            source = _with(new, place, text)
            if source not in (old, new) and _parses(source):
                found.setdefault(f"the same edit {words}", source)
    return found


def idle(old: str, new: str) -> dict[str, str]:
    """Each statement and operand that is newly written, and the source without it."""
    found: dict[str, str] = {}
    for node in _newly_written(old, new).values():
        if isinstance(node, _SIMPLE):
            found.setdefault(_cut(node), _with(new, node, "pass"))
        elif isinstance(node, ast.BinOp):
            for kept, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(other, ast.Constant):
                    found.setdefault(_cut(node), _with(new, node, f"({ast.unparse(kept)})"))
    return {text: source for text, source in found.items() if source != old and _parses(source)}


def _newly_written(old: str, new: str) -> dict[int, ast.AST]:
    """Nodes of the new text, by their id, that the lines which it replaces do not have."""
    try:
        before, after = parse(old), parse(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    gone, come = _changed_lines(old, new)
    known = Counter(ast.dump(node) for node in _within(before, gone))
    fresh = {}
    for node in _within(after, come):
        if known[text := ast.dump(node)]:
            known[text] -= 1
        else:
            fresh[id(node)] = node
    return fresh


def _made_moot(node: ast.AST, written: Mapping[int, ast.AST]) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        for value in node.values:
            if id(value) in written:
                yield from _decided(value)
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        if id(node.test) in written and not isinstance(node.test, ast.BoolOp):
            yield from _decided(node.test)
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            if id(test) in written and not isinstance(test, ast.BoolOp):
                yield from _decided(test)
    elif isinstance(node, ast.Call):
        inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        for kept in [*inner, *node.args][:3]:
            if not isinstance(kept, ast.Starred):
                yield f"with {_cut(kept)} for {_cut(node)}", node, ast.unparse(kept)
    elif isinstance(node, ast.BinOp):
        for kept in (node.left, node.right):
            yield f"with {_cut(kept)} for {_cut(node)}", node, f"({ast.unparse(kept)})"
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield f"with {_cut(node.operand)} for {_cut(node)}", node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Slice):
        for bound in filter(None, (node.lower, node.upper)):
            if id(bound) in written:
                yield f"without the bound {_cut(bound)}", bound, ""
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) > 1:
        for text in (node.value[1:], node.value[:-1]):
            yield f"with {text!r} for {_cut(node)}", node, repr(text)
    elif isinstance(node, _SIMPLE):
        yield f"without {_cut(node)}", node, "pass"


def _decided(test: ast.expr) -> Iterator[Change]:
    for word in ("True", "False"):
        yield f"with {_cut(test)} always {word.lower()}", test, word


def _within(tree: ast.Module, lines: set[int]) -> Iterator[ast.AST]:
    """Outer ones first, but for what holds blocks: of these the heads alone are compared."""
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            start, end = node.target.lineno, node.iter.end_lineno or 0
        elif isinstance(node, ast.stmt | ast.expr | ast.Slice):
            start, end = node.lineno, node.end_lineno or 0
        else:
            continue
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.For | ast.With | ast.Try
        ):
            continue
        if isinstance(node, ast.If | ast.While):
            end = node.test.end_lineno or start
        if not lines.isdisjoint(range(start, end + 1)):
            yield node


def _changed_lines(old: str, new: str) -> tuple[set[int], set[int]]:
    before, after = [line.strip() for line in old.splitlines()], [line.strip() for line in new.splitlines()]
    gone: set[int] = set()
    come: set[int] = set()
    for tag, start, end, since, to in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag != "equal":
            gone |= set(range(start + 1, end + 1))
            come |= set(range(since + 1, to + 1))
    return gone, come


def _with(source: str, node: ast.AST, text: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined] # of expressions and statements
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]  # type: ignore[attr-defined]
    return b"".join([*lines[:first], head, text.encode(), tail, *lines[last + 1 :]]).decode()


def _parses(source: str) -> bool:
    try:
        parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _cut(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def near_texts(old: str, new: str) -> list[str]:
    """Texts that stand in the lines that the edit writes."""
    try:
        after = parse(new)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = [
        node.value
        for node in _within(after, _changed_lines(old, new)[1])
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [*dict.fromkeys(text for text in found if 0 < len(text) <= _SHOWN)]
