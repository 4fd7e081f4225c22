"""A source in pieces: of an edited one only the piece that differs is compiled.

A piece is one function or class of the module, or the other statements between two of them. Code of the
pieces, run one after the other in one namespace, does what code of the whole does: a module's statements share
nothing but its namespace. So decorators, closures and what runs on import are no exceptions.

A class of fields alone (``Input`` and ``Output`` of most tools) takes longer to make than its tool takes to run, and
is the same each time. It is made once and put into each namespace after the first.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import warnings
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from operator import is_
from types import CodeType
from typing import Any, TypeGuard

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# What a class of fields may be made with: whatever runs beside these could give another class each time.
_LIBRARIES = frozenset(
    {"__future__", "collections.abc", "datetime", "decimal", "pathlib", "pydantic", "typing", "uuid"}
)
_CALLED = frozenset({"ConfigDict", "Field"})
_OF_ITS_OWN = (ast.Lambda, ast.NamedExpr, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
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
        texts = [source[start:end] for start, end in pairwise(self._starts)]
        self._codes = [
            self._compiled(text, line, self._flags) for line, text in zip(self._firsts, texts, strict=True)
        ]
        self._future = max((place for place, text in enumerate(texts) if "__future__" in text), default=-1)
        self._pieces: list[Piece] = [*self._codes]
        above: list[FieldClass] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [*_field_classes(tree, texts)]
        for number, name in found:
            self._pieces[number] = made = FieldClass(name, self._codes[number], tuple(above))
            above.append(made)

    def codes(self, source: str) -> list[Piece]:
        """Of this source, in the order in which they run (``run``). Raises what ``compile`` raises."""
        first, last = self._differing(source)
        if first == last:
            return self._pieces
        behind = len(self._source) - self._starts[last]
        text = source[self._starts[first] : len(source) - behind]
        # before such an import nothing may stand
        if first <= self._future or "__future__" in text or (behind and not text.endswith("\n")):
            return [self._compiled(source)]
        try:
            made = self._compiled(text, self._firsts[first], self._flags)
        except SyntaxError:  # perhaps it goes on in the next piece
            return [self._compiled(source)]
        if first and "__doc__" in made.co_names:  # a text at its head would become the module's docstring
            return [self._compiled(source)]
        return [*self._pieces[:first], made, *self._codes[last:]]

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


class FieldClass:
    """Called with a namespace, it puts its class there: that of the first time, unless somebody changed it."""

    def __init__(self, name: str, code: CodeType, above: Sequence[FieldClass]) -> None:
        self.name, self._code = name, code
        self._above = above  # in the file: it can have those in its fields
        self._made: tuple[Any, ...] = ()  # the class, what stood in it at first, and the classes above it

    def __call__(self, namespace: dict[str, Any]) -> None:
        above = [namespace.get(each.name) for each in self._above]
        if self._made:
            known, content, then = self._made
            if vars(known) == content and all(map(is_, above, then)):
                namespace[self.name] = known
                return
        run([self._code], namespace)
        made = namespace[self.name]
        self._made = (made, dict(vars(made)), above) if made.__pydantic_complete__ else ()


Piece = CodeType | FieldClass


def run(pieces: Iterable[Piece], namespace: dict[str, Any]) -> None:
    """Execute them, one after the other. What they raise is their own."""
    for piece in pieces:
        if isinstance(piece, FieldClass):
            piece(namespace)
        else:
            exec(piece, namespace)  # noqa: S102


def _field_classes(tree: ast.Module, texts: list[str]) -> Iterator[tuple[int, str]]:
    """Number and name of each piece that is a class of fields, made of nothing that could be another each time."""
    bound = Counter(_bound(tree))
    known = {name for name in dir(builtins) if name not in bound} | {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module in _LIBRARIES and not node.level
        for alias in node.names
        if bound[alias.name] == 1 and not alias.asname
    }
    models = known & {"BaseModel"}
    for number, text in enumerate(texts):
        if not text.startswith("class "):
            continue
        node, *others = ast.parse(text).body
        if others or not isinstance(node, ast.ClassDef) or bound[node.name] > 1:
            continue
        if _of_fields(node, known, models):
            known.add(node.name)
            models.add(node.name)
            yield number, node.name


def _bound(tree: ast.Module) -> Iterator[str]:
    """Each name that is given something, wherever."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, _DEFINITIONS):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.partition(".")[0]
        elif isinstance(node, ast.Global):
            yield from node.names


def _of_fields(node: ast.ClassDef, known: set[str], models: set[str]) -> bool:
    """Whether it is a model with fields and settings, and nothing else."""
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    if not bases or len(bases) < len(node.bases) or not models.issuperset(bases):
        return False
    return all(_is_field(each) for each in node.body) and all(
        _the_same(each, known) for each in ast.walk(node)
    )


def _is_field(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if not isinstance(node, ast.AnnAssign):
        return isinstance(node, ast.Assign | ast.Pass)
    # A text in an annotation may name anything, but for the values of Literal.
    values = [each.slice for each in ast.walk(node.annotation) if _is_literal(each)]
    plain = {inner for value in values for inner in ast.walk(value)}
    return not any(_is_text(each) and each not in plain for each in ast.walk(node.annotation))


def _is_literal(node: ast.AST) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _the_same(node: ast.AST, known: set[str]) -> bool:
    """Whether it is so each time that it is evaluated."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _CALLED
    if isinstance(node, ast.Name):
        return not isinstance(node.ctx, ast.Load) or node.id in known
    return not isinstance(node, _OF_ITS_OWN)


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
