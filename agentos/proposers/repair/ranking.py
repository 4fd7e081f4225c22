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
from agentos.proposers.repair.search import Plausible
from agentos.proposers.repair.source import Program
from agentos.syntax import parse

STILL_FAILS, MOST = 0.4, 6  # for each input on which the evidence's own exception is left, up to so many


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One behaviour: its simplest edit, its share of all weight, and how many edits give it."""

    best: Plausible
    share: float
    edits: int


def hypotheses(
    program: Program,
    old: Sequence[Json],
    found: Sequence[Plausible],
    failures: frozenset[str] = frozenset(),
) -> list[Hypothesis]:
    """The behaviours among plausible edits, the most credible first.

    ``old`` is what the original answers on the generated inputs. ``failures`` are the exceptions of the evidence:
    what leaves fewer of them there comes first, whatever its share.
    """
    weights = {id(p): p.ranked.probability * credibility(program, old, p) for p in found}
    clusters: dict[bytes, list[Plausible]] = defaultdict(list)
    for plausible in found:
        clusters[canonical([list(plausible.outputs), list(plausible.passed)])].append(plausible)
    total = sum(weights.values()) or 1.0
    ranked = [
        Hypothesis(max(c, key=_plainness), sum(weights[id(p)] for p in c) / total, len(c))
        for c in clusters.values()
    ]
    left = [sum(_raised(output) in failures for output in h.best.outputs) for h in ranked]
    least = min(left, default=0)
    order = {
        id(h): h.share * STILL_FAILS ** min(MOST, more - least) for h, more in zip(ranked, left, strict=True)
    }
    return sorted(ranked, key=lambda h: -order[id(h)])


def raised(outputs: Sequence[Json]) -> frozenset[str]:
    """The exceptions among these outputs."""
    return frozenset(filter(None, map(_raised, outputs)))


def _raised(output: Json) -> str:
    return str(output["error"]) if isinstance(output, dict) and "error" in output else ""


def _plainness(plausible: Plausible) -> float:
    """Among edits of one behaviour, the one that is likely by itself: small, and of a frequent kind."""
    ranked = plausible.ranked
    return (ranked.plain or ranked.probability) * math.exp(
        -0.02 * sum(len(s.text) for s in ranked.edit.splices)
    )


def credibility(program: Program, old: Sequence[Json], plausible: Plausible) -> float:
    """A factor on the prior: new crashes, and expressions that nobody writes, count against an edit."""
    healthy = [index for index, output in enumerate(old) if not is_error(output)]
    crashes = sum(is_error(plausible.outputs[index]) for index in healthy) / max(1, len(healthy))
    odd = max(0, oddities(parse(plausible.source)) - oddities(program.tree))
    return math.exp(-3.0 * crashes - 2.0 * odd)


def is_error(output: Json) -> bool:
    """Whether a bench's output says that the tool raised."""
    return isinstance(output, dict) and "error" in output


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
