"""Which of several edits that pass the evidence is meant: by behaviour, by prior, by what reads naturally.

Edits with the same outputs on all generated inputs are one hypothesis; its weight is the sum of
theirs. So what many likely edits agree on wins over a lone oddity.
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from agentos.domain import Json, canonical
from agentos.evolver.proposers.repair.search import Plausible
from agentos.evolver.proposers.repair.source import Program


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One behaviour: its simplest edit, its share of all weight, and how many edits give it."""

    best: Plausible
    share: float
    edits: int


def hypotheses(
    program: Program, old: Sequence[Json], found: Sequence[Plausible], wanted: Sequence[Json]
) -> list[Hypothesis]:
    """The behaviours among plausible edits, the most credible first."""
    weights = {id(p): p.ranked.probability * credibility(program, old, p, wanted) for p in found}
    clusters: dict[bytes, list[Plausible]] = defaultdict(list)
    for plausible in found:
        clusters[canonical([list(plausible.outputs), list(plausible.passed)])].append(plausible)
    total = sum(weights.values()) or 1.0
    ranked = [
        Hypothesis(max(c, key=lambda p: weights[id(p)]), sum(weights[id(p)] for p in c) / total, len(c))
        for c in clusters.values()
    ]
    return sorted(ranked, key=lambda h: -h.share)


def credibility(program: Program, old: Sequence[Json], plausible: Plausible, wanted: Sequence[Json]) -> float:
    """A factor on the prior, from how the edit behaves and reads."""
    return math.exp(behaviour(old, plausible, wanted) + naturalness(program, plausible.source))


def behaviour(old: Sequence[Json], plausible: Plausible, wanted: Sequence[Json]) -> float:
    """Log-factor: new crashes, strange types, and answers that depend on nothing count against it."""
    if not old:
        return 0.0
    new = plausible.outputs
    healthy = [index for index, output in enumerate(old) if not is_error(output)]
    crashes = sum(is_error(new[index]) for index in healthy) / max(1, len(healthy))
    kinds = {type(value).__name__ for value in wanted} | {type(o).__name__ for o in old if not is_error(o)}
    strange = sum(type(o).__name__ not in kinds for o in new if not is_error(o)) / len(new)
    distinct_old = len({canonical(o) for o in old if not is_error(o)})
    distinct_new = len({canonical(o) for o in new if not is_error(o)})
    flat = 1.0 if distinct_new <= 1 and (distinct_old > 2 or len({canonical(w) for w in wanted}) > 1) else 0.0
    return -3.0 * crashes - 2.0 * strange - 2.0 * flat


def is_error(output: Json) -> bool:
    """Whether a bench's output says that the tool raised."""
    return isinstance(output, dict) and "error" in output


def naturalness(program: Program, source: str) -> float:
    """Log-factor: names that become used or unused, and expressions that nobody writes."""
    before, after = program.tree, ast.parse(source)
    unused_before, unused_after = unused(before), unused(after)
    score = 1.5 * len(unused_before - unused_after) - 1.0 * len(unused_after - unused_before)
    return score - 2.0 * max(0, oddities(after) - oddities(before))


def unused(tree: ast.AST) -> set[str]:
    """Names that a function binds (or functions defined inside one) and nobody reads."""
    bound: set[str] = set()
    read: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef):
            bound.update(inner.name for inner in node.body if isinstance(inner, ast.FunctionDef))
    return {name for name in bound - read if name != "_"}


def oddities(tree: ast.AST) -> int:
    """How many expressions compare, combine or choose between equal things, or do nothing."""
    return sum(_is_odd(node) for node in ast.walk(tree))


def _is_odd(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        sides = [ast.dump(side) for side in [node.left, *node.comparators]]
        constant = all(isinstance(side, ast.Constant) for side in [node.left, *node.comparators])
        return len(set(sides)) < len(sides) or constant or _turns_around(node)
    if isinstance(node, ast.BinOp):
        return _is_odd_arithmetic(node)
    if isinstance(node, ast.BoolOp):
        sides = [ast.dump(side) for side in node.values]
        return len(set(sides)) < len(sides) or any(
            isinstance(side, ast.Constant) for side in node.values[:-1]
        )
    if isinstance(node, ast.IfExp):
        return ast.dump(node.body) == ast.dump(node.orelse) or isinstance(node.test, ast.Constant)
    if isinstance(node, ast.If | ast.While):
        return isinstance(node.test, ast.Constant) and node.test.value is not True
    if isinstance(node, ast.Call):
        sides = [ast.dump(side) for side in node.args]
        return len(set(sides)) < len(sides) and len(sides) > 1
    if isinstance(node, ast.Assign):
        return any(ast.dump(t).replace("Store", "Load") == ast.dump(node.value) for t in node.targets)
    if isinstance(node, ast.comprehension):
        return any(isinstance(test, ast.Constant) for test in node.ifs)
    return False


def _turns_around(node: ast.Compare) -> bool:
    """``a < b > c``: both directions in one chain."""
    up = any(isinstance(op, ast.Lt | ast.LtE) for op in node.ops)
    return up and any(isinstance(op, ast.Gt | ast.GtE) for op in node.ops)


def _is_odd_arithmetic(node: ast.BinOp) -> bool:
    left, right = node.left, node.right
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return True
    if ast.dump(left) == ast.dump(right) and isinstance(node.op, ast.Sub | ast.Div | ast.Mod | ast.FloorDiv):
        return True
    neutral = {
        ast.Add: (0,),
        ast.Sub: (0,),
        ast.Mult: (0, 1),
        ast.Div: (1,),
        ast.FloorDiv: (1,),
        ast.Pow: (0, 1),
    }
    values = [side.value for side in (left, right) if isinstance(side, ast.Constant)]
    return any(value in neutral.get(type(node.op), ()) for value in values)
