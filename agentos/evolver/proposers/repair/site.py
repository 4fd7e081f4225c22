"""A place to edit, with what the operators need to know about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from agentos.evolver.proposers.repair.scope import Scope, scope_of
from agentos.evolver.proposers.repair.source import CONTRACT, Edit, Program, is_docstring


class Facts:
    """What the whole file offers as ingredients."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._scopes: dict[ast.FunctionDef | None, Scope] = {}

    def scope(self, function: ast.FunctionDef | None) -> Scope:
        """The names that the function (None: the module) can use."""
        if function not in self._scopes:
            self._scopes[function] = scope_of(self.program, function)
        return self._scopes[function]

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node that may be edited or copied: all but the contract, signatures and docstrings."""
        found: list[ast.AST] = []
        waiting: list[ast.AST] = [node for node in self.program.tree.body if not _is_contract(node)]
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.Import | ast.ImportFrom | ast.arguments | ast.JoinedStr | ast.Global):
                continue
            if isinstance(node, ast.Expr) and is_docstring(self.program, node.value):
                continue
            found.append(node)
            if isinstance(node, ast.FunctionDef):
                waiting[:0] = node.body
            elif isinstance(node, ast.AnnAssign):
                waiting[:0] = [node.value] if node.value else []
            else:
                waiting[:0] = list(ast.iter_child_nodes(node))
        return tuple(found)

    @cached_property
    def constants(self) -> tuple[object, ...]:
        """Distinct literals of the file, in order."""
        values = [n.value for n in self.nodes if isinstance(n, ast.Constant)]
        return tuple({(type(v), v): v for v in values}.values())

    @cached_property
    def conditions(self) -> tuple[ast.expr, ...]:
        """Comparisons, and what stands as a condition, without ``and`` and ``or`` around it."""
        found: list[ast.expr] = []
        for node in self.nodes:
            if isinstance(node, ast.Compare):
                found.append(node)
            elif isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(node.test, ast.BoolOp):
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
    def bound(self) -> frozenset[str]:
        """Every name that the file binds anywhere: one of these is not a builtin or an import."""
        return frozenset(
            n.id
            for n in ast.walk(self.program.tree)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ) | {a.arg for a in ast.walk(self.program.tree) if isinstance(a, ast.arg)}

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of the docstrings and of the function names."""
        names = {part for f in self.program.functions() for part in f.name.lower().split("_")}
        return self.program.words | names


@dataclass(frozen=True, slots=True)
class Site:
    """One node with its surroundings."""

    facts: Facts
    node: ast.AST
    function: ast.FunctionDef | None

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

    def kind(self, node: ast.expr) -> str:
        """What the expression probably holds."""
        return self.scope.kind(node)

    def variables(self) -> list[str]:
        """Variables that may be bound here, ``input.field`` included."""
        return self.scope.variables_at(self.program, self.node)

    def visible(self, node: ast.AST) -> bool:
        """Whether everything that a node from elsewhere names is known here."""
        known = {*self.variables(), *self.scope.functions}
        known |= {name.partition(".")[0] for name in known}
        own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return all(
            n.id in known or n.id in own or n.id not in self.facts.bound
            for n in ast.walk(node)
            if isinstance(n, ast.Name)
        )

    def edit(self, text: str, operator: str, weight: float = 1.0, *, node: ast.expr | None = None) -> Edit:
        """Replace the site's node (or one inside it) by ``text``."""
        target = node if node is not None else self.node
        assert isinstance(target, ast.expr | ast.stmt)
        return Edit((self.program.replace(target, text),), operator, weight)


def _is_contract(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return node.name in CONTRACT
    if isinstance(node, ast.Assign):
        return any(isinstance(t, ast.Name) and t.id in CONTRACT for t in node.targets)
    if isinstance(node, ast.If):  # if __name__ == "__main__":
        return any(isinstance(n, ast.Name) and n.id == "__name__" for n in ast.walk(node.test))
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def sites(facts: Facts) -> Iterator[Site]:
    """All places of the file, top to bottom."""
    for node in facts.nodes:
        if isinstance(node, ast.expr | ast.stmt):
            yield Site(facts, node, facts.program.function_of(node))
