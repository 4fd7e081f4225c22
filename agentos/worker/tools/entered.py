"""Notes which functions of the bundle's sources were entered in this process, in every run alike.

A source is marked when it is compiled (``agentos.syntax``): entering a function for the first time and
again costs one call of a method of a set. What runs while a module is loaded is not counted, since it says
nothing of the work at hand.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType

from agentos.syntax import LABEL_MAX, MARK, marked

BYTES_MAX = 24 << 10  # of all labels that a call, or a run, may bring
_ENTERED: set[str] = set()
_KNOWN: dict[tuple[str | bytes, str, str], CodeType] = {}

setattr(builtins, MARK, _ENTERED.add)


def compiled(source: str | bytes, filename: str, path: str) -> CodeType:
    """The code of the source at this registry path, marked; raises what ``compile`` raises."""
    if known := _KNOWN.get((source, filename, path)):
        return known
    try:
        tree = compile(source, filename, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        assert isinstance(tree, ast.Module)
        return compile(marked(tree, path), filename, "exec", dont_inherit=True)
    except RecursionError:  # a tree is deeper to walk than to compile: then nothing of it is noted
        return compile(source, filename, "exec", dont_inherit=True)


def know(sources: Mapping[str, str], root: str) -> None:
    """Compile what most jobs will bring, by registry path, before boxes are forked. None of it is executed here."""
    for path, source in sources.items():
        content, filename = source.encode(), f"{root}/{path}"
        _KNOWN[content, filename, path] = compiled(content, filename, path)


@contextmanager
def loading() -> Iterator[None]:
    """While a module is executed: what it enters is forgotten afterwards."""
    before = set(_ENTERED)
    try:
        yield
    finally:
        _ENTERED.intersection_update(before)


def begin() -> None:
    """Of what a process did before its job, nothing counts."""
    _ENTERED.clear()


def labels() -> list[str]:
    """What was entered so far, sorted, as much as may be said."""
    return fitting(set(_ENTERED))


def fitting(names: Iterable[str]) -> list[str]:
    """Of these, sorted, as many as ``BYTES_MAX`` allows."""
    kept: list[str] = []
    size = 0
    for name in sorted(names):
        size += len(name) + 4
        if size > BYTES_MAX:
            break
        if len(name) <= LABEL_MAX:
            kept.append(name)
    return kept
