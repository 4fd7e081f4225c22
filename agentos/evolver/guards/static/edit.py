"""The record of a source edit that all static rules read: its files before and after, each parsed once.

Of each file it is known, without running it, what names stand for, which expressions are constant, and what is
ever reached. All of it errs on the side of seeing more: a name stands for everything that it is bound to
anywhere in the file, whatever the scope.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from agentos.domain import Kind
from agentos.syntax import UNKNOWN, fold, is_python, parse

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_KINDS = (Kind.TOOL, Kind.SKILL, Kind.HARNESS)

_FAR = frozenset({"os", "sys", "time"})
_BUILTINS = frozenset(dir(builtins))
NAMED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
)


@dataclass(frozen=True)
class SourceEdit:
    """The Python files of the resources that an edit touches, by registry path."""

    before: Mapping[str, ParsedSource]  # the base's
    after: Mapping[str, ParsedSource]  # with the edit: those that it writes, and those that it leaves
    written: tuple[str, ...]  # paths, in the order of the edit

    @property
    def old(self) -> list[ParsedSource]:
        """What it writes, as that was before; nothing of new files."""
        return [self.before[path] for path in self.written if path in self.before]

    @property
    def new(self) -> list[ParsedSource]:
        """What it writes."""
        return [self.after[path] for path in self.written]


def is_source(path: str) -> bool:
    """Whether rules on source look at this file."""
    return path.endswith(".py") and path.split("/")[0] in _KINDS


def source_edit(old: Mapping[str, str], new: Mapping[str, str]) -> SourceEdit:
    """The record. ``old`` holds the base's texts of the resources, ``new`` whole new ones.

    A text of the base that is not Python (a script of Python 2, a template) is left out: nothing imports it, and one
    that is edited counts as new. Raises SyntaxError, ValueError, RecursionError or MemoryError.
    """
    before = {path: read(path, text) for path, text in old.items() if is_source(path) and is_python(text)}
    after = {path: read(path, text) for path, text in new.items() if is_source(path)}
    return SourceEdit(before, {**before, **after}, tuple(after))


@dataclass
class ParsedSource:
    """One file. ``names`` maps a name to the dotted paths that it may stand for. Nobody changes its tree."""

    path: str
    source: str
    tree: ast.Module
    nodes: list[ast.AST] = field(default_factory=list)  # as ``ast.walk`` gives them
    names: dict[str, set[str]] = field(default_factory=dict)
    values: dict[str, list[ast.expr]] = field(default_factory=dict)  # what assignments give a name
    loose: set[str] = field(default_factory=set)  # names that something else binds: a parameter, a loop
    constants: dict[str, object] = field(default_factory=dict)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)

    def dotted(self, node: ast.AST) -> set[str]:
        """The dotted paths that an expression may stand for; empty when nothing is known of it."""
        if isinstance(node, ast.Name):
            own = self.names.get(node.id, set())
            return own | {f"builtins.{node.id}"} if node.id in _BUILTINS else own
        if isinstance(node, ast.Attribute):
            return _through({f"{path}.{node.attr}" for path in self.dotted(node.value)})
        if isinstance(node, ast.NamedExpr):
            return self.dotted(node.value)
        return {path for part in _choices(node) for path in self.dotted(part)}

    def fold(self, node: ast.AST) -> object:
        """The value of an expression made of constants alone, else UNKNOWN."""
        try:
            return fold(node, self.constants)
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
            return UNKNOWN

    def truth(self, node: ast.AST) -> bool | None:
        """Whether a condition always or never holds, None where that depends."""
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(value) for value in node.values]
            decides = isinstance(node.op, ast.Or)
            if decides in parts:
                return decides
            return None if None in parts else not decides
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            held = self.truth(node.operand)
            return None if held is None else not held
        value = self.fold(node)
        return None if value is UNKNOWN else bool(value)

    @cached_property
    def reached(self) -> list[ast.AST]:
        """Every node that is not shut off by a constant condition or by an end before it."""
        return list(self._body(self.tree.body))

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Those with a name."""
        return [node for node in self.nodes if isinstance(node, FUNCTIONS)]

    def outlasts(self, name: ast.Name) -> bool:
        """Whether what a function names so is there after its call: the module's, or a default that may be changed."""
        node: ast.AST = name
        inside = False
        while (above := self.parents.get(node)) is not None:
            if isinstance(above, (*FUNCTIONS, ast.Lambda)) and node is not above.args:
                around, inside = inside, True
                given = {arg for arg, value in _perhaps(above.args) if isinstance(value, _CHANGEABLE)}
                own = (part for child in ast.iter_child_nodes(above) for part in ast.walk(child))
                if name.id in given or any(name.id in _bound(part) for part in own):
                    return name.id in given or (around and self.lives_on(above))
            node = above
        return inside and any(name.id in _kept_by(top) for top in self.tree.body)

    def lives_on(self, function: ast.AST | None) -> bool:
        """Whether the module calls the function while it is loaded: what it binds is there as long as what it gave."""
        return isinstance(function, FUNCTIONS) and function.name in self._loaded

    @cached_property
    def _loaded(self) -> frozenset[str]:
        """Names that the module itself looks up, also as decorators."""
        made = [node for node in self.tree.body if not isinstance(node, (*FUNCTIONS, ast.ClassDef))]
        parts: list[ast.AST] = [*made, *(item for node in self.functions for item in node.decorator_list)]
        return frozenset(node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name))

    def is_kept(self, node: ast.AST, seen: set[tuple[ast.AST | None, str]] | None = None) -> bool:
        """Whether an expression within a function stands for what is there after its call, also by a name of its own."""
        # each name once: of many names for each other there are more ways than time
        seen = set() if seen is None else seen
        if isinstance(node, ast.Attribute):
            return self._of_class(node) or self.is_kept(node.value, seen)
        if isinstance(node, ast.Subscript):  # a slice is a copy
            return not isinstance(node.slice, ast.Slice) and self.is_kept(node.value, seen)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                return node.func.attr in _HANDS_OUT and self.is_kept(node.func.value, seen)
            return "builtins.type" in self.dotted(node.func) or self._is_cached(node.func)
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.NamedExpr):
            return any(self.is_kept(part, seen) for part in _choices(node))
        if not isinstance(node, ast.Name) or (own := (self.around(node), node.id)) in seen:
            return False
        seen.add(own)
        return self.outlasts(node) or any(self.is_kept(value, seen) for value in self._aliases.get(own, ()))

    def around(self, node: ast.AST) -> ast.AST | None:
        """The innermost function around a node, None where there is none."""
        above = self.parents.get(node)
        while above is not None and not isinstance(above, (*FUNCTIONS, ast.Lambda)):
            above = self.parents.get(above)
        return above

    @cached_property
    def _aliases(self) -> dict[tuple[ast.AST | None, str], list[ast.expr]]:
        """By function and name, what the name is given there, or what is taken out of."""
        found: dict[tuple[ast.AST | None, str], list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.comprehension):
                value = getattr(node, "value", None) or getattr(node, "iter", None)
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for part, given in (pair for target in targets for pair in _taken(target, value)):
                    found.setdefault((self.around(part), part.id), []).append(given)
        return found

    def _of_class(self, node: ast.Attribute) -> bool:
        """Whether it is a list or table that a class has, and not each of its objects."""
        owner = node.value.func if isinstance(node.value, ast.Call) else node.value
        name = owner.id if isinstance(owner, ast.Name) else ""
        own = name in ("self", "cls")
        return any(
            node.attr in _shared_by(one) and (one.name == name or (own and node in ast.walk(one)))
            for one in self.tree.body
            if isinstance(one, ast.ClassDef)
        )

    def _is_cached(self, func: ast.expr) -> bool:
        """Whether it is called once for all and gives the same object each time."""
        made = [one for one in self.functions if isinstance(func, ast.Name) and one.name == func.id]
        decorators = [item for one in made if one in self.tree.body for item in one.decorator_list]
        return any(self.dotted(getattr(item, "func", item)) & _CACHES for item in decorators)

    def runs_out(self, name: ast.Name) -> bool:
        """Whether it is an iterator of the module: what one call takes of it the next one does not get."""
        made = self.values.get(name.id, ())
        paths = {path for value in made if isinstance(value, ast.Call) for path in self.dotted(value.func)}
        drawn = any(path in _ITERATORS or path.startswith("itertools.") for path in paths)
        return (drawn or any(isinstance(value, ast.GeneratorExp) for value in made)) and self.outlasts(name)

    @cached_property
    def _given(self) -> tuple[str, frozenset[str]]:
        """How a tool's ``run`` calls its input, "" where that may be something else; and the fields of ``Input``."""
        runs = [node for node in self.tree.body if isinstance(node, FUNCTIONS) and node.name == "run"]
        named = [node.args.args[0].arg for node in runs if len(node.args.args) == 1]
        again = any(
            isinstance(node, ast.Name) and _is_bound(node) and node.id in named for node in self.nodes
        )
        fields = (
            part.target.id
            for node in self.tree.body
            if isinstance(node, ast.ClassDef) and node.name == "Input"
            for part in node.body
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        )
        return named[0] if len(named) == 1 and not again else "", frozenset(fields)

    def is_input(self, node: ast.Attribute) -> bool:
        """Whether it reads a field of a tool's input. What is called is none."""
        name, fields = self._given
        above = self.parents.get(node)
        called = isinstance(above, ast.Call) and above.func is node
        plain = isinstance(node.value, ast.Name) and node.value.id == name and isinstance(node.ctx, ast.Load)
        return plain and node.attr in fields and not called

    def _body(self, body: list[ast.stmt]) -> Iterator[ast.AST]:
        for statement in body:
            yield from self._node(statement)
            if self._ends(statement):
                return

    def _node(self, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        held = self.truth(node.test) if isinstance(node, ast.If | ast.While | ast.IfExp) else None
        for name, value in ast.iter_fields(node):
            if (name == "body" and held is False) or (name == "orelse" and held is True):
                continue
            if isinstance(node, ast.BoolOp) and name == "values":
                yield from self._operands(node)
            elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self._body(value)
            else:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from self._node(child)

    def _operands(self, node: ast.BoolOp) -> Iterator[ast.AST]:
        decides = isinstance(node.op, ast.Or)
        for value in node.values:
            yield from self._node(value)
            if self.truth(value) is decides:
                return

    def _ends(self, node: ast.stmt) -> bool:
        """Nothing after this statement in its block is ever reached."""
        if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
            return True
        if isinstance(node, ast.If):
            held = self.truth(node.test)
            branches = [
                branch for branch, shut in ((node.body, False), (node.orelse, True)) if held is not shut
            ]
            return all(any(map(self._ends, branch)) for branch in branches)
        if isinstance(node, ast.While) and self.truth(node.test):
            return not any(isinstance(inner, ast.Break) for inner in ast.walk(node))
        if isinstance(node, ast.With | ast.AsyncWith):  # which may end what is raised in it, and goes on then
            raised = [any(isinstance(inner, ast.Raise) for inner in ast.walk(part)) for part in node.body]
            return any(self._ends(part) and not fails for part, fails in zip(node.body, raised, strict=True))
        if isinstance(node, ast.Try | ast.TryStar):
            blocks = [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)]
            return all(map(self._one_ends, blocks)) or self._one_ends(node.finalbody)
        if isinstance(node, ast.Match):
            last = node.cases[-1]
            always = isinstance(last.pattern, ast.MatchAs) and not (last.pattern.pattern or last.guard)
            return always and all(self._one_ends(case.body) for case in node.cases)
        return False

    def _one_ends(self, body: Iterable[ast.stmt]) -> bool:
        return any(map(self._ends, body))


# one edit is looked at by many rules: proposed, at consent, at its probe, at promotion
@lru_cache(maxsize=32)
def read(path: str, source: str) -> ParsedSource:
    """Raises SyntaxError, ValueError, RecursionError or MemoryError."""
    tree = parse(source)
    reading = ParsedSource(path, source, tree, list(ast.walk(tree)))
    bound: Counter[str] = Counter()
    assigned: list[tuple[str, ast.expr]] = []
    perhaps: list[tuple[str, ast.expr]] = []
    for node in reading.nodes:
        for child in ast.iter_child_nodes(node):
            reading.parents[child] = node
        bound.update(_bound(node))
        assigned += _assigned(node)
        perhaps += _perhaps(node)
        for name, dotted in _imported(node):
            reading.names.setdefault(name, set()).update(_through([dotted]))
    for name, value in assigned:
        reading.values.setdefault(name, []).append(value)
    made = [node for node in reading.nodes if isinstance(node, ast.ClassDef | ast.alias)]
    defined = Counter(name for node in made for name in _bound(node))
    reading.loose = {
        name for name, count in bound.items() if count > defined[name] + len(reading.values.get(name, ()))
    }
    for _ in range(3):  # x = os; y = x; z = y
        for name, value in (*assigned, *perhaps):
            if known := reading.dotted(value):
                reading.names.setdefault(name, set()).update(known)
        for name, value in assigned:
            if bound[name] == 1 and (folded := reading.fold(value)) is not UNKNOWN:
                reading.constants[name] = folded
    return reading


_HANDS_OUT = frozenset({"get", "setdefault", "items", "values"})  # of a table: what it holds, and no copy
_CACHES = frozenset({"functools.cache", "functools.lru_cache"})
_ITERATORS = frozenset(
    f"builtins.{name}" for name in ("enumerate", "filter", "iter", "map", "reversed", "zip")
)


def _shared_by(node: ast.ClassDef) -> set[str]:
    """Names of a plain class whose lists and tables all of its objects share; pydantic and dataclasses make one for each."""
    if node.bases or node.keywords or node.decorator_list:
        return set()
    pairs = [pair for item in node.body for pair in _assigned(item)]
    own = {
        part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
    }
    return {name for name, value in pairs if isinstance(value, _CHANGEABLE)} - own


_CHANGEABLE = (ast.List, ast.Dict, ast.Set, ast.Call, ast.ListComp, ast.DictComp, ast.SetComp)


def _kept_by(node: ast.stmt) -> set[str]:
    """Names that a statement of the module binds, but for those of modules."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    parts = [node] if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else ast.walk(node)
    return {name for part in parts for name in _bound(part)}


def leaving(node: ast.AST, *, in_loop: bool = False) -> Iterator[ast.stmt]:
    """What leaves the block that the node stands in; a loop or function of its own it may leave as it likes."""
    if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not in_loop):
        yield node
    for name, value in ast.iter_fields(node) if not isinstance(node, (*FUNCTIONS, ast.Lambda)) else ():
        within = in_loop or (isinstance(node, ast.For | ast.AsyncFor | ast.While) and name == "body")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from leaving(child, in_loop=within)


def _through(paths: Iterable[str]) -> set[str]:
    """The paths, and the module that each may lead to through another one: ``tarfile.time`` is ``time``.

    A helper of one's own may have a function by the name of a module; there only what leads far counts.
    """
    found = set(paths)
    for path in paths:
        root, _, below = path.partition(".")
        name = below.rpartition(".")[2]
        foreign = root in sys.stdlib_module_names or root == "pydantic"
        if name in (sys.stdlib_module_names if foreign else _FAR) and root not in ("builtins", "sys"):
            found.add(name)
    return found


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and _is_bound(node):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).split(".")[0]
    elif isinstance(node, NAMED) and node.name:
        yield node.name
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
        yield from node.names  # bound elsewhere: no constant


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names with the value that this statement gives them."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _pairs(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield from _pairs(node.target, node.value)


def _perhaps(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names with a value that they may have: a loop's and a parameter's default."""
    if isinstance(node, ast.For | ast.comprehension):
        for value in _choices(node.iter):
            yield from _pairs(node.target, value)
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        late = zip(reversed(positional), reversed(node.defaults), strict=False)
        named = zip(node.kwonlyargs, node.kw_defaults, strict=True)
        yield from ((arg.arg, value) for arg, value in (*late, *named) if value is not None)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, part in zip(target.elts, value.elts, strict=False):
            yield from _pairs(one, part)


def _taken(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Each name of a target, and the expression that it is or is taken out of."""
    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        for one, part in zip(target.elts, value.elts, strict=False):
            yield from _taken(one, part)
    elif value is not None:
        names = (part for part in ast.walk(target) if isinstance(part, ast.Name) and _is_bound(part))
        yield from ((part, value) for part in names)


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.split(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (root, root)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name, f"{node.module or ''}.{alias.name}"


def _choices(node: ast.AST) -> list[ast.expr]:
    """The expressions one of which this one gives."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Subscript):
        return _choices(node.value)
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, ast.Await | ast.Starred | ast.NamedExpr):
        return [node.value]
    return []
