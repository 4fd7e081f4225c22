"""What an edit of source changes, and which functions have to be entered so that the change ran.

Read off both texts; nothing is executed. The unit is the innermost function. A name that a module binds
(a constant, a table, an import) runs where a function looks it up, and so does a function that is used
while the module is loaded and nowhere else. What cannot be traced to any function is shown by none.
"""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from agentos.domain import EditedName
from agentos.evolver.guards.static.edit import FUNCTIONS, NAMED, ParsedSource, source_edit
from agentos.syntax import Function, functions


def edited_parts(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[EditedName, ...]:
    """What differs. ``old`` holds the base's Python files of the resources, ``new`` whole new texts.

    Raises SyntaxError, ValueError, RecursionError or MemoryError.
    """
    edit = source_edit(old, new)
    after = {path: _File(source) for path, source in edit.after.items()}
    found: list[EditedName] = []
    for path in sorted(edit.written):
        before = _File(edit.before[path]) if path in edit.before else None
        found += _of_file(before, after[path], after)
    return tuple(found)


@dataclass
class _File:
    """One file: its functions by label, what each looks up, and what its module binds."""

    source: ParsedSource
    labels: dict[Function, str] = field(default_factory=dict)
    looks_up: dict[Function, set[str]] = field(default_factory=dict)
    attributes: dict[Function, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.labels = dict(functions(self.source.tree, self.source.path))
        self.looks_up = {node: _looks_up(node) for node in self.labels}
        self.attributes = {node: _attributes(node) for node in self.labels}

    @cached_property
    def statements(self) -> list[tuple[ast.stmt, set[str], set[str]]]:
        """Those of the module, each with the names that it looks up while it is loaded, and those that it binds."""
        return [(item, _loaded(_outside_functions(item)), {*_bound(item)}) for item in self.source.tree.body]

    def using(self, names: Set[str]) -> set[str]:
        """Top-level functions, by name, that look one of these up."""
        return {
            node.name
            for node in self.source.tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and self.looks_up[node] & names
        }

    @property
    def module(self) -> str:
        return PurePosixPath(self.source.path).stem

    def shells(self) -> list[tuple[str, str]]:
        """(label without its line, what the function says itself), in their order."""
        return [(_name(label), _said(node)) for node, label in self.labels.items()]


def _of_file(before: _File | None, after: _File, files: Mapping[str, _File]) -> Iterator[EditedName]:
    known = Counter(before.shells() if before else ())
    names = _names_changed(before.source.tree.body if before else [], after.source.tree.body)
    for node, label in after.labels.items():
        shell = (_name(label), _said(node))
        if known[shell]:
            known[shell] -= 1
            continue
        shown = {label}
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node in after.source.tree.body
            and not _looked_up(node.name, files)
        ):
            shown |= _shown(after, {node.name}, files)
        yield EditedName(label, tuple(sorted(shown)), before is None)
    for name in sorted(names):
        shown = _shown(after, {name}, files)
        if shown or _mentioned(name, after, files) or name == _NOWHERE:
            yield EditedName(f"{after.source.path}:{name}", tuple(sorted(shown)), before is None)


_NOWHERE = "(module)"  # a change that binds no name


def _name(label: str) -> str:
    path, _, name = label.split(":", 2)
    return f"{path}:{name.partition('@')[0]}"


def _said(node: ast.AST) -> str:
    """The node without the insides of functions below it, which are parts of their own."""
    return ast.dump(_Shell(node).made)


class _Shell(ast.NodeTransformer):
    def __init__(self, root: ast.AST) -> None:
        self.root = root
        self.made = self.generic_visit(_copied(root))

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Lambda):
            return ast.Lambda(node.args, ast.Constant(None))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return ast.Global([node.name, *map(ast.dump, (node.args, *node.decorator_list))])
        return self.generic_visit(node)


def _copied(node: ast.AST) -> ast.AST:
    """New nodes all the way down, sharing nothing that a transformer would change."""
    fields: dict[str, Any] = {}
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            fields[name] = [_copied(item) if isinstance(item, ast.AST) else item for item in value]
        else:
            fields[name] = _copied(value) if isinstance(value, ast.AST) else value
    return type(node)(**fields)


def _names_changed(before: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> set[str]:
    """Module names whose value an added, removed or moved statement may change; functions stand for themselves."""
    before, after = _one_by_one(before), _one_by_one(after)
    old, new = ([_statement(item) for item in body] for body in (before, after))
    changed = _others_of_a_name(before, after)
    for tag, start, end, since, to in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            added = [item for item in after[since:to] if not _is_function(item)]
            gone = [item for item in before[start:end] if not _is_function(item) or _still(item, after)]
            for item in (*added, *gone):
                changed |= _affected(item)
    return changed


def _one_by_one(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """With an import of several names as one of each: beside a new name the others are what they were."""
    found: list[ast.stmt] = []
    for item in body:
        if isinstance(item, ast.ImportFrom):
            found += [ast.ImportFrom(item.module, [name], item.level) for name in item.names]
        elif isinstance(item, ast.Import):
            found += [ast.Import([name]) for name in item.names]
        else:
            found.append(item)
    return found


def _others_of_a_name(before: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> set[str]:
    """Names of several functions of which another one is the last now, and the one that is called."""
    last: list[dict[str, str]] = []
    several = Counter(
        item.name for item in before if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    for body in (before, after):
        defined = (item for item in body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef))
        last.append({item.name: _said(item) for item in defined if several[item.name] > 1})
    return {name for name, said in last[1].items() if said != last[0][name]}


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, FUNCTIONS)


def _still(node: ast.stmt, after: Sequence[ast.stmt]) -> bool:
    """A function that is gone, where something else of its name now stands in its place."""
    same = [item for item in after if getattr(item, "name", "") == getattr(node, "name", "")]
    return not any(_said(item) == _said(node) for item in same) and not any(map(_is_function, same))


def _statement(node: ast.stmt) -> str:
    return f"def {node.name}" if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else _said(node)


def _affected(node: ast.stmt) -> set[str]:
    """What a statement of a module binds or may change."""
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return set()
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return {"__doc__"}
    names = set(_bound(node))
    if not names or isinstance(node, ast.Expr | ast.AugAssign | ast.Delete):
        names |= {item.id for item in _outside_functions(node) if isinstance(item, ast.Name)}
    return names or {_NOWHERE}


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.ClassDef):
        yield node.name
        return
    for item in _outside_functions(node):
        if isinstance(item, ast.Name) and not isinstance(item.ctx, ast.Load):
            yield item.id
        elif isinstance(item, ast.Attribute | ast.Subscript) and not isinstance(item.ctx, ast.Load):
            yield from (inner.id for inner in ast.walk(item.value) if isinstance(inner, ast.Name))
        elif isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield item.name
        elif isinstance(item, ast.alias):
            yield (item.asname or item.name).split(".")[0]


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is evaluated with it: of a function below, its decorators and defaults."""
    yield node
    for child in _evaluated(node):
        yield from _outside_functions(child)


def _evaluated(node: ast.AST) -> Iterable[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
    if isinstance(node, ast.Lambda):
        return [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    return ast.iter_child_nodes(node)


def _inside(node: Function) -> Iterator[ast.AST]:
    """What a function evaluates itself when it is entered."""
    for part in [node.body] if isinstance(node, ast.Lambda) else node.body:
        yield from _outside_functions(part)


def _own(node: Function) -> set[str]:
    """Names that are the function's own: the module's of the same name is not looked up."""
    args = node.args
    own = {arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
    own |= {arg.arg for arg in (args.vararg, args.kwarg) if arg is not None}
    shared: set[str] = set()
    for item in _inside(node):
        if isinstance(item, ast.Name) and not isinstance(item.ctx, ast.Load):
            own.add(item.id)
        elif isinstance(item, ast.alias):
            own.add((item.asname or item.name).split(".")[0])
        elif isinstance(item, NAMED) and item.name:
            own.add(item.name)
        elif isinstance(item, ast.Global | ast.Nonlocal):
            shared |= set(item.names)
    return own - shared


def _looks_up(node: Function) -> set[str]:
    return _loaded(_inside(node)) - _own(node)


def _loaded(nodes: Iterable[ast.AST]) -> set[str]:
    return {item.id for item in nodes if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)}


def _attributes(node: Function) -> set[str]:
    return {item.attr for item in _inside(node) if isinstance(item, ast.Attribute)}


def _looked_up(name: str, files: Mapping[str, _File]) -> bool:
    """Whether any function names it: then it runs only where it is entered itself."""
    return any(
        name in file.looks_up[node] or name in file.attributes[node]
        for file in files.values()
        for node in file.labels
    )


def _mentioned(name: str, own: _File, files: Mapping[str, _File]) -> bool:
    """Whether anything names it: a name that nobody looks up changes nothing."""
    return any(
        (isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.alias) and node.name == name and file is not own)
        for file in files.values()
        for node in file.source.nodes
    )


def _shown(file: _File, names: set[str], files: Mapping[str, _File]) -> set[str]:
    """Labels of the functions that look one of the names up, or what the modules make of it when loaded."""
    touched, made = _spread(file, names)
    shown = _lookers(file, touched) | made
    for other in files.values():
        if other is not file:
            taken, made = _spread(other, _taken_over(other, file.module, touched))
            shown |= _lookers(other, taken) | made
            if _imports_whole(other, file.module):
                shown |= {label for node, label in other.labels.items() if other.attributes[node] & touched}
    return shown


def _spread(file: _File, names: set[str]) -> tuple[set[str], set[str]]:
    """With what the module's own statements make of them while it is loaded; and the functions that get a
    default or a decorator by it, which are shown by nothing but themselves.
    """
    touched, made = set(names), set[str]()
    while True:
        known, using = len(touched), file.using(touched)
        for statement, loaded, bound in file.statements:
            if loaded.isdisjoint(touched) and loaded.isdisjoint(using):
                continue
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                made.add(file.labels[statement])
            else:
                touched |= bound
        if len(touched) == known:
            return touched, made


def _lookers(file: _File, names: set[str]) -> set[str]:
    found = {label for node, label in file.labels.items() if file.looks_up[node] & names}
    for statement in file.source.tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name in names:
            found.add(file.labels[statement])
        elif isinstance(statement, ast.ClassDef) and statement.name in names:
            found |= {label for node, label in file.labels.items() if node in statement.body}
    return found


def _taken_over(file: _File, module: str, names: set[str]) -> set[str]:
    return {
        alias.asname or alias.name
        for node in file.source.nodes
        if isinstance(node, ast.ImportFrom) and (node.module or "").rpartition(".")[2] == module
        for alias in node.names
        if alias.name in names
    }


def _imports_whole(file: _File, module: str) -> bool:
    return any(
        alias.name.rpartition(".")[2] == module
        for node in file.source.nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )
