"""What a file gives a name and never reads: a sign that something is still missing where an edit was made.

A function that is passed the number of a set and never looks at it was meant to; an edit of that function that passes all
tasks and still leaves the number unread mended what was shown. Read off the text; nothing is run.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Set

from agentos.syntax import Definition, tree_of

_FIXED = frozenset(
    {"int", "float", "str", "bool", "bytes", "tuple"}
)  # types of which a value stays what it is
_LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)


def unread(old: str, new: str, *, helper: bool = False) -> str:
    """A name that the edit leaves unread, in words; "" where there is none, or a text is no Python.

    That is a parameter or variable of a function that it changes, a field of ``Input``, or a name of the module. Unread by intent
    are names that begin with "_", and parameters of methods, which others may have to pass. Names of a ``helper`` module,
    which a tool imports, are read there.
    """
    tree = tree_of(new)
    if tree is None:
        return ""
    lines = _written(old, new)
    methods = {id(part) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for part in node.body}
    found = [
        f"{what} of {function.name}"
        for function in ast.walk(tree)
        if isinstance(function, Definition) and not lines.isdisjoint(_span(function))
        for what in _unread_in(function, with_parameters=id(function) not in methods)
    ]
    of_module = [] if helper else [*_unread_fields(tree), *_unread_in_module(tree)]
    return next(iter([*found, *of_module]), "")


def _written(old: str, new: str) -> set[int]:
    """Numbers of the new text's lines that the edit writes, or beside which it leaves something out."""
    before, after = old.split("\n"), new.split("\n")
    found: set[int] = set()
    for tag, _, _, since, to in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag != "equal":
            found |= {*range(since + 1, to + 1)} or {since, since + 1}
    return found


def _span(function: Definition) -> range:
    return range(function.lineno, (function.end_lineno or function.lineno) + 1)


def _unread_in(function: Definition, *, with_parameters: bool) -> Iterator[str]:
    """Its parameters, then what it assigns. A tool's ``run`` has to take an input, whether it looks at it or not."""
    read = _read(function) | _filled(function) | ({"input"} if function.name == "run" else set())
    shared = {
        name
        for node in ast.walk(function)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    for node in ast.walk(function.args) if with_parameters else ():
        if isinstance(node, ast.arg) and _matters(node.arg, read):
            yield f"the parameter {node.arg}"
    # `for i in range(3)`
    counts = {id(node.target) for node in ast.walk(function) if isinstance(node, _LOOPS)}
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in counts
            and _matters(node.id, read | shared)
        ):
            yield f"the variable {node.id}"


def _filled(function: Definition) -> set[str]:
    """Parameters that ``+=`` may change where the caller has them: its own number or text nobody can change for it."""
    given = {
        arg.arg
        for arg in ast.walk(function.args)
        if isinstance(arg, ast.arg)
        and not (isinstance(arg.annotation, ast.Name) and arg.annotation.id in _FIXED)
    }
    targets = (node.target for node in ast.walk(function) if isinstance(node, ast.AugAssign))
    return given & {target.id for target in targets if isinstance(target, ast.Name)}


def _unread_fields(tree: ast.Module) -> Iterator[str]:
    """Fields of ``Input``; nothing where an input is passed on as a whole."""
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    taken = [id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    given = {
        arg.arg
        for function in tree.body
        if isinstance(function, Definition) and function.name == "run"
        for arg in function.args.args
    }
    whole = any(
        isinstance(node, ast.Name) and node.id in given and id(node) not in taken for node in ast.walk(tree)
    )
    if whole or any(name.startswith(("model_", "__")) for name in named):
        return
    parts = [
        part
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "Input"
        for part in node.body
    ]
    for part in parts:
        target = part.target if isinstance(part, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and _matters(target.id, named):
            yield f"the field {target.id} of Input"


def _unread_in_module(tree: ast.Module) -> Iterator[str]:
    """Names that it assigns, but for those that the program reads."""
    read = _read(tree) | {"TOOL"}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets if isinstance(node, ast.Assign | ast.AnnAssign) else ():
            if isinstance(target, ast.Name) and _matters(target.id, read):
                yield f"the constant {target.id}"


def _read(tree: ast.AST) -> set[str]:
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store)
    }


def _matters(name: str, read: Set[str]) -> bool:
    return not name.startswith("_") and name not in read and name not in ("self", "cls")
