"""What failing calls were given: names of fields that a program may have to know, and what only tells tasks apart."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentos.ports import Case
from agentos.proposers.repair.source import Program

NAMES_MAX = 40
_HEAD = 2_000  # bytes of a file in which names of fields are looked for
_LINES = 20
_SIGNS = "+-.'&/#%_*~!"
_NAME = re.compile(r"[A-Za-z_][\w .-]{0,38}")
_ASSIGNED = re.compile(r"\s*([A-Za-z_][\w.-]{0,38})\s*[=:]")


@dataclass(frozen=True, slots=True)
class GivenNames:
    """``fields``: names of columns and keys. ``identifying``: parameters that name an input file.

    What identifies an input is no ingredient: a repair that depends on it would know the task, not mend it.
    """

    fields: tuple[str, ...] = ()
    identifying: frozenset[str] = frozenset()
    signs: str = ""  # punctuation within what they were given


NOTHING_GIVEN = GivenNames()


def given_names(cases: Sequence[Case]) -> GivenNames:
    """From the arguments and the input files of the cases; values are not looked at, only what they are called."""
    found: dict[str, None] = {}
    for case in cases:
        for value in case.call.args.values():
            found.update(dict.fromkeys(_keys(value, 0)))
        for data in case.inputs.values():
            found.update(dict.fromkeys(_fields(data)))
    identifying = {
        name
        for case in cases
        for name, value in case.call.args.items()
        if isinstance(value, str) and value in case.inputs
    }
    return GivenNames(tuple(found)[:NAMES_MAX], frozenset(identifying), _signs(cases))


def _signs(cases: Sequence[Case]) -> str:
    texts = [value for case in cases for value in case.call.args.values() if isinstance(value, str)]
    texts += [data[:_HEAD].decode("utf-8", "ignore") for case in cases for data in case.inputs.values()]
    return "".join(sorted({char for text in texts for char in text if char in _SIGNS}))


def _keys(value: object, depth: int) -> Iterator[str]:
    if depth > 3:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if _NAME.fullmatch(str(key)):
                yield str(key)
            yield from _keys(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value[:3]:
            yield from _keys(inner, depth + 1)


def _fields(data: bytes) -> Iterator[str]:
    try:
        yield from _keys(json.loads(data), 0)
        return
    except ValueError:
        pass
    lines = data[:_HEAD].decode("utf-8-sig", "replace").splitlines()[:_LINES]
    if not lines:
        return
    cells = [cell.strip().strip('"') for cell in re.split(r"[,;\t|]", lines[0])]
    if len(cells) > 1 and all(_NAME.fullmatch(cell) for cell in cells):
        yield from cells
    for line in lines:
        if match := _ASSIGNED.match(line):
            yield match.group(1)


# --- Names that a file makes and does not use: what somebody meant to use is often what is missing


_CONTRACT = frozenset({"TOOL", "Input", "Output"})


def idle_names(program: Program) -> frozenset[str]:
    """Constants of the module, variables, parameters and fields of ``Input`` that nothing reads."""
    read = {n.id for n in program.nodes(ast.Name) if isinstance(n.ctx, ast.Load)}
    read |= {n.attr for n in program.nodes(ast.Attribute)}
    made = frozenset(_made(program))
    return frozenset(name for name in made if name not in read and not name.startswith("_")) - _CONTRACT


def _made(program: Program) -> Iterator[str]:
    classes = [node for node in program.tree.body if isinstance(node, ast.ClassDef)]
    fields = [(klass, field) for klass in classes for field in _fields_read(klass)]
    of_classes = {field for _, field in fields}
    yield from (n.id for n in program.nodes(ast.Name) if isinstance(n.ctx, ast.Store) and n not in of_classes)
    yield from (argument.arg for argument in program.nodes(ast.arg))
    yield from (field.id for klass, field in fields if klass.name == "Input")


def _fields_read(klass: ast.ClassDef) -> Iterator[ast.Name]:
    for statement in klass.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target
