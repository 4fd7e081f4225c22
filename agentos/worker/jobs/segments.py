"""A source in pieces: of an edited one only the piece that differs is compiled.

A piece is one function or class of the module, or the other statements between two of them. Code of the
pieces, run one after the other in one namespace, does what code of the whole does: a module's statements share
nothing but its namespace. So decorators, closures and what runs on import are no exceptions.
"""

from __future__ import annotations
import __future__

import ast
import warnings
from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise
from types import CodeType

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUTURE = {name: getattr(__future__, name).compiler_flag for name in __future__.all_feature_names}


class Segments:
    """One source, compiled piece by piece. Raises what ``ast.parse`` and ``compile`` raise."""

    def __init__(self, source: str, file: str) -> None:
        self._source = source
        self._file = file
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape is the author's business
            tree = ast.parse(source)
        self._flags = _flags(tree)
        self._firsts = _first_lines(tree) if "\r" not in source else [1]
        self._starts = _offsets(source, self._firsts)
        self._codes = [
            self._compiled(source[start:end], line, self._flags)
            for line, (start, end) in zip(self._firsts, pairwise(self._starts), strict=True)
        ]

    def codes(self, source: str) -> list[CodeType]:
        """Of this source, in the order in which they run. Raises what ``compile`` raises."""
        first, last = self._differing(source)
        if first == last:
            return self._codes
        behind = len(self._source) - self._starts[last]
        text = source[self._starts[first] : len(source) - behind]
        if "__future__" in text or (behind and not text.endswith("\n")):
            return [self._compiled(source)]
        try:
            made = self._compiled(text, self._firsts[first], self._flags)
        except SyntaxError:  # perhaps it goes on in the next piece
            return [self._compiled(source)]
        if first and "__doc__" in made.co_names:  # a text at its head would become the module's docstring
            return [self._compiled(source)]
        return [*self._codes[:first], made, *self._codes[last:]]

    def _differing(self, source: str) -> tuple[int, int]:
        """Numbers of the first piece that differs and of the next one that does not any more."""
        old = self._source
        if source == old:
            return 0, 0
        same = _alike(old, source)
        least = min(len(old), len(source)) - same
        behind = min(least, _alike(old[::-1], source[::-1]))
        # What is put between two pieces belongs to the one above: there its line ends.
        first = max(0, bisect_right(self._starts, same) - 1)
        first -= first > 0 and self._starts[first] == same
        last = bisect_left(self._starts, len(old) - behind)
        return first, max(first + 1, last)

    def _compiled(self, text: str, line: int = 1, flags: int = 0) -> CodeType:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            padded, file = "\n" * (line - 1) + text, self._file
            code: CodeType = compile(padded, file, "exec", flags=flags, dont_inherit=True)
            return code


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _flags(tree: ast.Module) -> int:
    flags = 0
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for alias in node.names:
                flags |= _FUTURE.get(alias.name, 0)
    return flags


def _first_lines(tree: ast.Module) -> list[int]:
    """Of each piece; a text that stands alone is left with what is above, or it would become a docstring."""
    found, end, above = [1], 0, True
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        definition = isinstance(node, _DEFINITIONS)
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if (definition or above) and not text and first > end and first > 1:
            found.append(first)
        above = definition or (above and text)
        end = node.end_lineno or first
    return found


def _offsets(source: str, firsts: list[int]) -> list[int]:
    """Where the piece of each first line begins, and behind the last one the source's length."""
    starts = list(accumulate((len(line) + 1 for line in source.split("\n")), initial=0))
    return [*(starts[line - 1] for line in firsts), len(source)]
