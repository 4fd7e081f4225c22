"""A place to edit, with what the operators need to know about it."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

from agentos.proposers.repair.scope import (
    CUTTING,
    FUNCTIONS_MAX,
    NOTHING_GIVEN,
    GivenNames,
    Scope,
    idle_names,
    is_target,
    scope_of,
)
from agentos.proposers.repair.source import (
    CONTRACT,
    CodeEdit,
    Program,
    Splice,
    children,
    first_line,
    is_docstring,
)
from agentos.syntax import Definition

CONSTANTS_MAX = 120
TYPES_MAX = 6
SEPARATORS_MAX = 4
# What may be written twice with the same slip. Not every use of a name is one slip.
TIGHT = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript)
TWINS = (ast.Attribute, ast.Subscript, ast.Call, ast.Compare, ast.BinOp)
TWINS_MAX = 4
OF_ONE_MAX = 6

_Node = TypeVar("_Node", bound=ast.expr)


@dataclass(frozen=True, slots=True)
class _ByLine:
    """Some nodes by their line: ``places`` are their numbers, in the order of ``lines``."""

    lines: Sequence[int]
    places: Sequence[int]

    @classmethod
    def of(cls, nodes: Sequence[ast.expr]) -> _ByLine:
        places = sorted(range(len(nodes)), key=lambda place: nodes[place].lineno)
        return cls([nodes[place].lineno for place in places], places)

    def near(self, line: int, most: int) -> list[int]:
        """The numbers of those nearest to the line, in their order."""
        at = bisect_left(self.lines, line)
        among = self.places[max(0, at - most) : at + most]
        lines = self.lines[max(0, at - most) : at + most]
        nearest = sorted(zip(lines, among, strict=True), key=lambda pair: (abs(pair[0] - line), pair[1]))
        return sorted(place for _, place in nearest[:most])


class FileFacts:
    """What the whole file offers as ingredients."""

    def __init__(self, program: Program, given: GivenNames = NOTHING_GIVEN) -> None:
        self.program = program
        self.given = given
        self._scopes: dict[Definition | None, Scope] = {}
        self.conditions_at: dict[object, dict[str, float]] = {}  # what was thought of, by function and names
        self._by_function: dict[Definition | None, list[ast.AST]] = {}
        self._by_line: dict[int, _ByLine] = {}
        self._twins: dict[Definition | None, Mapping[str, Sequence[ast.expr]]] = {}
        self._wanted: dict[ast.AST, frozenset[str]] = {}
        self._given: dict[Definition | None, dict[str, ast.expr | None]] = {}

    def scope(self, function: Definition | None) -> Scope:
        """The names that the function (None: the module) can use."""
        if function not in self._scopes:
            self._scopes[function] = scope_of(self.program, function)
        return self._scopes[function]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node that may be edited or copied: all but the contract, signatures and docstrings."""
        return tuple(chain.from_iterable(self.by_statement.values()))

    @cached_property
    def by_statement(self) -> dict[ast.stmt, Sequence[ast.AST]]:
        """The same by the statement of the module that they are in, top to bottom."""
        return {node: self._inside(node) for node in self.program.tree.body if not _is_contract(node)}

    def _inside(self, statement: ast.stmt) -> list[ast.AST]:
        found: list[ast.AST] = []
        waiting: deque[ast.AST] = deque([statement])
        while waiting:
            node = waiting.popleft()
            if isinstance(node, ast.Import | ast.ImportFrom | ast.arguments | ast.Global):
                continue
            if isinstance(node, ast.JoinedStr):
                waiting.extendleft(reversed(self.program.put_in(node)))
                continue
            if isinstance(node, ast.Expr) and is_docstring(self.program, node.value):
                continue
            found.append(node)
            if isinstance(node, Definition):
                inner = list[ast.AST](node.body)
            elif _waits(node):
                continue
            elif isinstance(node, ast.AnnAssign):
                inner = [node.value] if node.value else []
            else:
                inner = list(children(node))
            waiting.extendleft(reversed(inner))
        return found

    def nodes_in(self, function: Definition | None) -> Sequence[ast.AST]:
        """The nodes of the function, without those of functions inside it; None stands for the module."""
        if function not in self._by_function:
            among = chain.from_iterable(self._around(function))
            self._by_function[function] = [n for n in among if self.program.function_of(n) is function]
        return self._by_function[function]

    def _around(self, function: Definition | None) -> Iterator[Sequence[ast.AST]]:
        """All nodes among which those of the function are."""
        if function is None:  # of a function of the module, only itself stands in the module
            for statement, inside in self.by_statement.items():
                yield inside[:1] if isinstance(statement, Definition) else inside
            return
        top: ast.AST = function
        while (above := self.program.parent[top]) is not self.program.tree:
            top = above
        assert isinstance(top, ast.stmt)
        yield self.by_statement.get(top, ())

    def meant_by(self, node: ast.expr, function: Definition | None) -> ast.expr | None:
        """What a name stands for that its function, or else the module, binds once only, and by an assignment."""
        if not isinstance(node, ast.Name):
            return None
        if function not in self._given:
            self._given[function] = self._bound_once(function)
        given = self._given[function]
        if node.id in given or function is None:
            return given.get(node.id)
        return self.meant_by(node, None)

    def _bound_once(self, function: Definition | None) -> dict[str, ast.expr | None]:
        """The expression by name; None for what is bound otherwise or more than once."""
        arguments = [n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)] if function else []
        given: dict[str, ast.expr | None] = dict.fromkeys(arguments)
        for node in self.nodes_in(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                above = self.program.parent.get(node)
                plain = isinstance(above, ast.Assign) and above.targets == [node] and node.id not in given
                value = above.value if plain and isinstance(above, ast.Assign) else None
                # which may lead back to this one
                given[node.id] = None if isinstance(value, ast.Name) else value
        return given

    def bound_beside(self, name: str, function: Definition | None) -> Sequence[str]:
        """The other name of each pair that is bound together with this one: ``start, end = ...``."""
        pairs = [
            [item.id for item in node.elts if isinstance(item, ast.Name)]
            for node in self.nodes_in(function)
            if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store)
        ]
        return list(
            dict.fromkeys(n for pair in pairs if len(pair) > 1 and name in pair for n in pair if n != name)
        )

    def twins(self, site: EditSite) -> Sequence[Sequence[ast.expr]]:
        """The node and those written alike, of its function and of the file; none where it is not its function's first."""
        node, functions = site.node, self.program.functions
        if not isinstance(node, TWINS):
            return ()
        text = self.program.text(node)
        own = self._alike(site.function).get(text, ())
        if own[:1] != [node]:
            return ()
        found = [own]
        if isinstance(node, ast.Call | ast.Compare | ast.BinOp) and len(functions) <= FUNCTIONS_MAX:
            found.append(
                [each for function in (None, *functions) for each in self._alike(function).get(text, ())]
            )
        return [same for same in found[: 1 + (found[-1] != own)] if 1 < len(same) <= TWINS_MAX]

    def _alike(self, function: Definition | None) -> Mapping[str, Sequence[ast.expr]]:
        """The nodes of the function by how they are written."""
        if function not in self._twins:
            by_text: dict[str, list[ast.expr]] = {}
            for node in self.nodes_in(function):
                if isinstance(node, TWINS) and not is_target(node):
                    by_text.setdefault(self.program.text(node), []).append(node)
            self._twins[function] = by_text
        return self._twins[function]

    @cached_property
    def attributes(self) -> tuple[ast.Attribute, ...]:
        """Every use of an attribute."""
        return tuple(node for node in self.nodes if isinstance(node, ast.Attribute))

    def near(self, nodes: Sequence[_Node], line: int, most: int) -> Sequence[_Node]:
        """Of the nodes, which the file offers, those nearest to the line, in their order."""
        if len(nodes) <= most:
            return nodes
        if id(nodes) not in self._by_line:
            self._by_line[id(nodes)] = _ByLine.of(nodes)
        return [nodes[place] for place in self._by_line[id(nodes)].near(line, most)]

    @cached_property
    def imported(self) -> tuple[str, ...]:
        """Names that the file takes from other modules."""
        return tuple(
            alias.asname or alias.name
            for node in self.program.nodes(ast.ImportFrom)
            if node.module not in ("__future__", "typing", "pydantic")
            for alias in node.names
        )

    @cached_property
    def libraries(self) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
        """What the file calls each module that it imports, and each name that it takes from one."""
        whole = [alias for node in self.program.nodes(ast.Import) for alias in node.names]
        taken = [(n.module or "", alias) for n in self.program.nodes(ast.ImportFrom) for alias in n.names]
        modules = {alias.name: alias.asname or alias.name for alias in whole}
        modules |= {f"{of}.{alias.name}": alias.asname or alias.name for of, alias in taken}
        return modules, {(of, alias.name): alias.asname or alias.name for of, alias in taken}

    @cached_property
    def of_one(self) -> tuple[str, ...]:
        """Functions of libraries that the file calls with one value, those that it calls most first: ``re.escape``."""
        modules, names = self.libraries
        known = {*modules.values(), *names.values()}
        calls = (n for n in self.nodes if isinstance(n, ast.Call) and len(n.args) == 1 and not n.keywords)
        called = Counter(
            self.program.text(c.func) for c in calls if isinstance(c.func, ast.Name | ast.Attribute)
        )
        return tuple(
            [name for name, _ in called.most_common() if name.partition(".")[0] in known][:OF_ONE_MAX]
        )

    @cached_property
    def modules(self) -> frozenset[str]:
        """Modules that the file imports, or takes names from."""
        modules, names = self.libraries
        return frozenset({name.partition(".")[0] for name in modules} | {module for module, _ in names})

    @cached_property
    def constants(self) -> tuple[object, ...]:
        """Distinct literals of the file, in order; of a long file those that it has most often."""
        values = [n.value for n in self.nodes if isinstance(n, ast.Constant)]
        kinds = [(type(v), v) for v in values]
        kept = {kind for kind, _ in Counter(kinds).most_common(CONSTANTS_MAX)}
        return tuple({kind: kind[1] for kind in kinds if kind in kept}.values())

    @cached_property
    def numbers(self) -> tuple[ast.Constant, ...]:
        """Whole numbers above two, wherever they stand."""
        literals = (n for n in self.nodes if isinstance(n, ast.Constant))
        return tuple(n for n in literals if type(n.value) is int and n.value > 2)

    @cached_property
    def periods(self) -> frozenset[str]:
        """Numbers after which the file begins anew somewhere: ``weekday % 7``."""
        divisions = (n for n in self.nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod))
        return frozenset(self.program.text(n.right) for n in divisions if isinstance(n.right, ast.Constant))

    @cached_property
    def conditions(self) -> tuple[ast.expr, ...]:
        """Comparisons, and what stands as a condition, without ``and`` and ``or`` around it."""
        found: list[ast.expr] = []
        for node in self.nodes:
            if isinstance(node, ast.Compare):
                found.append(node)
            elif isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_compound(node.test):
                found.append(node.test)
        return tuple({self.program.text(n): n for n in found}.values())

    @cached_property
    def expressions(self) -> tuple[ast.expr, ...]:
        """Distinct compound expressions of up to 40 characters."""
        shapes = ast.Call | ast.BinOp | ast.Subscript | ast.Attribute | ast.List | ast.Dict | ast.UnaryOp
        found = [
            node
            for node in self.nodes
            if isinstance(node, shapes)
            and not isinstance(getattr(node, "ctx", None), ast.Store)
            and not (
                isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and self._called(node)
            )
        ]
        return tuple({t: n for n in found if len(t := self.program.text(n)) <= 40 and "\n" not in t}.values())

    def _called(self, node: ast.expr) -> bool:
        above = self.program.parent.get(node)
        return isinstance(above, ast.Call) and above.func is node

    @cached_property
    def idle(self) -> tuple[str, ...]:
        """Constants of the module that nothing reads: somebody meant to use them."""
        return tuple(name for name in sorted(self.unread) if name.isupper())

    @cached_property
    def unread(self) -> frozenset[str]:
        """Names that the file makes and does not use."""
        return idle_names(self.program) | {f"input.{name}" for name in idle_names(self.program)}

    @cached_property
    def separators(self) -> tuple[str, ...]:
        """Signs at which the file cuts texts, those that it cuts at most first."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call) and node.args]
        cut = [c.args[0] for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in CUTTING]
        texts = [arg.value for arg in cut if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        signs = Counter(text for text in texts if text.strip() and not any(map(str.isalnum, text)))
        return tuple(sign for sign, _ in signs.most_common(SEPARATORS_MAX))

    @cached_property
    def asked_types(self) -> tuple[str, ...]:
        """Types that ``isinstance`` asks for in the file, those it asks for most first, and the usual two."""
        calls = [node for node in self.nodes if isinstance(node, ast.Call) and len(node.args) == 2]
        asked = [c.args[1] for c in calls if isinstance(c.func, ast.Name) and c.func.id == "isinstance"]
        parts = [part for each in asked for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
        names = Counter(self.program.text(part) for part in parts)
        return tuple(dict.fromkeys([name for name, _ in names.most_common(TYPES_MAX)] + ["str", "dict"]))

    @cached_property
    def module_numbers(self) -> tuple[str, ...]:
        """Names that the module gives to numbers."""
        kinds = self.scope(None).kinds
        return tuple(name for name, kind in kinds.items() if kind in ("int", "float") and name.isupper())

    @cached_property
    def bound(self) -> frozenset[str]:
        """Every name that the file binds anywhere: one of these is not a builtin or an import."""
        return frozenset(n.id for n in self.program.nodes(ast.Name) if isinstance(n.ctx, ast.Store)) | {
            a.arg for a in self.program.nodes(ast.arg)
        }

    def wanted_by(self, node: ast.AST) -> frozenset[str]:
        """Names that the node uses and the file binds elsewhere."""
        if node not in self._wanted:
            names = [n for n in ast.walk(node) if isinstance(n, ast.Name)]
            own = {n.id for n in names if isinstance(n.ctx, ast.Store)}
            self._wanted[node] = self.bound.intersection(n.id for n in names) - own
        return self._wanted[node]

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of the docstrings and of the function names."""
        names = {part for f in self.program.functions for part in f.name.lower().split("_")}
        return self.program.words | names


@dataclass(frozen=True)
class EditSite:
    """One node with its surroundings."""

    facts: FileFacts
    node: ast.AST
    function: Definition | None

    @property
    def program(self) -> Program:
        return self.facts.program

    @property
    def scope(self) -> Scope:
        return self.facts.scope(self.function)

    @property
    def parent(self) -> ast.AST | None:
        return self.program.parent.get(self.node)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The node as written."""
        return self.program.text(node)

    def tight(self, node: ast.expr) -> str:
        """The node as written, in brackets where an operator, a dot or a call beside it would take it apart."""
        return self.text(node) if isinstance(node, TIGHT) else f"({self.text(node)})"

    def arguments(self, call: ast.Call) -> tuple[list[str], list[str]]:
        """As written, those by place and those by name."""
        named = [
            f"{k.arg}={self.text(k.value)}" if k.arg else f"**{self.text(k.value)}" for k in call.keywords
        ]
        return [self.text(argument) for argument in call.args], named

    def between(self, one: ast.expr, other: ast.expr) -> tuple[int, int, str]:
        """What stands behind the one and before the other: from, to, the text."""
        start, end = self.program.span(one)[1], self.program.span(other)[0]
        return start, end, self.program.data[start:end].decode()

    def kind(self, node: ast.expr) -> str:
        """What the expression probably holds."""
        return self.scope.kind(node)

    def meant_by(self, node: ast.expr) -> ast.expr | None:
        """What a name stands for that is bound once only."""
        return self.facts.meant_by(node, self.function)

    def variables(self) -> list[str]:
        """Variables that may be bound here, ``input.field`` included."""
        return self.scope.variables_at(self.program, self.node)

    def near(self, nodes: Sequence[_Node], most: int) -> Sequence[_Node]:
        """Of these nodes those nearest to the site, in their order: a long file has more than can be tried."""
        return self.facts.near(nodes, getattr(self.node, "lineno", 0), most)

    def visible(self, node: ast.AST) -> bool:
        """Whether everything that a node from elsewhere names is known here."""
        wanted = self.facts.wanted_by(node)
        return not wanted or wanted <= self._known

    @cached_property
    def _known(self) -> frozenset[str]:
        """Names that may be used here."""
        known = {*self.variables(), *self.scope.functions}
        return frozenset(known | {name.partition(".")[0] for name in known})

    def edit(
        self, text: str, operator: str, weight: float = 1.0, *, node: ast.expr | None = None
    ) -> CodeEdit:
        """Replace the site's node (or one inside it) by ``text``."""
        target = node if node is not None else self.node
        assert isinstance(target, ast.expr | ast.stmt)
        return CodeEdit((self.program.replace(target, text),), operator, weight)


def _waits(node: ast.AST) -> bool:
    """Whether it is a pause. How long it is changes no answer, and a longer one eats the time of the search."""
    func = node.func if isinstance(node, ast.Call) else None
    return "sleep" in (getattr(func, "attr", ""), getattr(func, "id", ""))


def _is_contract(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return node.name in CONTRACT
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Name) and t.id in CONTRACT for t in node.targets)
    if isinstance(node, ast.If):  # if __name__ == "__main__":
        return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_compound(test: ast.expr) -> bool:
    """Whether the condition has parts, or binds a name: then it is not copied as a whole."""
    return isinstance(test, ast.BoolOp) or any(isinstance(node, ast.NamedExpr) for node in ast.walk(test))


def sites(facts: FileFacts, lines: Collection[int] | None = None) -> Iterator[EditSite]:
    """All places of the file, top to bottom; only in statements of the module that are on some of the ``lines``."""
    wanted = sorted(lines or ())
    for statement, nodes in facts.by_statement.items():
        if lines is not None:
            at = bisect_left(wanted, first_line(statement))
            if at == len(wanted) or wanted[at] > (statement.end_lineno or 0):
                continue
        for node in nodes:
            if isinstance(node, ast.expr | ast.stmt):
                yield EditSite(facts, node, facts.program.function_of(node))


# --- names of the standard library ------------------------------------------------------------


def is_library(site: EditSite, node: ast.expr, module: str, name: str) -> bool:
    """Whether the file means this by the expression."""
    modules, names = site.facts.libraries
    if isinstance(node, ast.Name):
        return names.get((module, name)) == node.id
    return (
        isinstance(node, ast.Attribute) and node.attr == name and site.text(node.value) == modules.get(module)
    )


def library_text(site: EditSite, module: str, name: str, imports: dict[str, Splice]) -> str | None:
    """How the file may call it, with the import that it lacks; None where the name means something else there."""
    modules, names = site.facts.libraries
    if known := names.get((module, name)):
        return known
    if module in modules:
        return f"{modules[module]}.{name}"
    tree, program = site.program.tree, site.program
    from_it: list[ast.stmt]
    from_it = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == module]
    whole = f"from {module} import {name}" if from_it else f"import {module}"
    if (name if from_it else module.partition(".")[0]) in site.facts.bound:
        return None
    imported: list[ast.stmt] = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    above = from_it or imported
    if above:
        end = program.span(above[-1])[1]
        imports[whole] = Splice(end, end, f"\n{whole}", expression=False)
    else:
        first = tree.body[1 if ast.get_docstring(tree) and len(tree.body) > 1 else 0]
        start = program.offset(first_line(first), first.col_offset)
        imports[whole] = Splice(start, start, f"{whole}\n", expression=False)
    return name if from_it else f"{module}.{name}"
