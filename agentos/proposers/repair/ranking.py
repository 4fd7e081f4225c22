"""Which of several edits that pass the evidence is meant: by behaviour, by prior, by what reads naturally.

Edits with the same outputs on all generated inputs are one hypothesis; its weight is the sum of
theirs. So what many likely edits agree on wins over a lone oddity.
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentos.benches import Bench, error_of
from agentos.domain import Json, canonical
from agentos.evolver.propose.input_variation import same
from agentos.ports import Brief, Proposal
from agentos.proposers.repair.search import Mover, Nearness, Plausible, Search
from agentos.proposers.repair.source import Program, TextFile
from agentos.syntax import Definition, parse

# Of 285 faults of one edit in the looked-at tools 4 are mended by leaving something out, and of 258 one by a condition turned
# into its opposite: a fifth of what the table of edit kinds gives to such edits.
SELDOM = 0.2
NEUTRAL: dict[type[ast.operator], tuple[int, ...]]
NEUTRAL = {ast.Add: (0,), ast.Sub: (0,), ast.Mult: (0, 1), ast.Div: (1,), ast.FloorDiv: (1,), ast.Pow: (0, 1)}
STILL_FAILS, MOST = 0.4, 6  # for each input on which the evidence's own exception is left, up to so many


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One behaviour: its simplest edit, its share of all weight, and how many edits give it."""

    best: Plausible
    share: float
    edits: int
    # share of the generated inputs that worked and now have another answer; 1 where none worked
    changed: float = 0.0


def hypotheses(
    program: Program | TextFile,
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
    for plausible in found:  # where nothing was generated, nothing tells that two texts do the same
        told = list(plausible.outputs) or [
            ast.dump(parse(plausible.source)) if program.is_python else plausible.source
        ]
        clusters[canonical([told, list(plausible.passed)])].append(plausible)
    total = sum(weights.values()) or 1.0
    ranked = [
        Hypothesis(
            max(c, key=lambda each: _plainness(each) * _seldom(program, each.source)),
            sum(weights[id(p)] for p in c) / total,
            len(c),
            _changed(old, c[0].outputs),
        )
        for c in clusters.values()
    ]
    left = [sum(error_of(output) in failures for output in h.best.outputs) for h in ranked]
    least = min(left, default=0)
    order = {
        id(h): h.share * STILL_FAILS ** min(MOST, more - least) for h, more in zip(ranked, left, strict=True)
    }
    return sorted(ranked, key=lambda h: -order[id(h)])


def _changed(old: Sequence[Json], new: Sequence[Json]) -> float:
    healthy = [index for index, output in enumerate(old) if not is_error(output)]
    if not healthy:
        return 1.0  # nothing tells that it changes few
    return sum(not same(new[index], old[index]) for index in healthy) / len(healthy)


def raised(outputs: Sequence[Json]) -> frozenset[str]:
    """The exceptions among these outputs."""
    return frozenset(filter(None, map(error_of, outputs)))


def _plainness(plausible: Plausible) -> float:
    """Among edits of one behaviour, the one that is likely by itself: small, and of a frequent kind."""
    ranked = plausible.ranked
    return (ranked.plain or ranked.probability) * math.exp(
        -0.02 * sum(len(s.text) for s in ranked.edit.splices)
    )


def credibility(program: Program | TextFile, old: Sequence[Json], plausible: Plausible) -> float:
    """A factor on the prior: new crashes, and expressions that nobody writes, count against an edit."""
    healthy = [index for index, output in enumerate(old) if not is_error(output)]
    crashes = sum(is_error(plausible.outputs[index]) for index in healthy) / max(1, len(healthy))
    odd = 0
    if program.is_python:
        odd = max(0, oddities(parse(plausible.source)) - oddities(program.tree))
    return math.exp(-3.0 * crashes - 2.0 * odd) * _seldom(program, plausible.source)


def _seldom(program: Program | TextFile, source: str) -> float:
    """A factor for what is seldom the repair of a slip: a condition turned into its opposite, a computation left out."""
    if not program.is_python:
        return 1.0
    return (
        SELDOM
        if turns_a_condition(program.source, source) or drops_a_computation(program.source, source)
        else 1.0
    )


def is_error(output: Json) -> bool:
    """Whether a bench's output says that the tool raised."""
    return bool(error_of(output))


def oddities(tree: ast.AST) -> int:
    """How many expressions compare, combine or choose between equal things, or do nothing."""
    return sum(_is_odd(node) for node in ast.walk(tree))


def _is_odd(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return _has_twins(sides) or all(map(_is_constant, sides)) or _turns_around(node)
    if isinstance(node, ast.BinOp):
        return _is_odd_arithmetic(node)
    if isinstance(node, ast.BoolOp):
        return _has_twins(node.values) or any(map(_is_constant, node.values[:-1]))
    if isinstance(node, ast.IfExp):
        return _has_twins([node.body, node.orelse]) or _is_constant(node.test)
    if isinstance(node, ast.If | ast.While):
        return isinstance(node.test, ast.Constant) and node.test.value is not True
    if isinstance(node, ast.Call):
        return _has_twins(node.args)
    if isinstance(node, ast.Assign):
        return any(ast.dump(t).replace("Store", "Load") == ast.dump(node.value) for t in node.targets)
    return isinstance(node, ast.comprehension) and any(map(_is_constant, node.ifs))


def _has_twins(nodes: Sequence[ast.expr]) -> bool:
    """Whether two of them are written alike."""
    return len(set(map(ast.dump, nodes))) < len(nodes)


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


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
    values = [side.value for side in (left, right) if isinstance(side, ast.Constant)]
    return any(value in NEUTRAL.get(type(node.op), ()) for value in values)


# --- The manifest of a repair: in sentences, what is wrong, what was changed, and what that predicts


# A pair of edits is believed in no more than this: how often such pairs are right is not known from tools that
# nobody looked at, so it stays below the policy's ``luck_min``, and a person is asked.
PAIR_MAX = 1e-5
MOVED_FIRSTS = 6  # first edits that only move the failure: one for each behaviour, as far as the time lasts
# A condition turned into its opposite is believed in no more than this, which is below ``prior_min`` as well: of 258
# faults of one edit in the looked-at tools one is mended so; of four wrong patches of library functions one did so.
OPPOSITE_MAX = 1e-4
# So is one that leaves a computation out, with nothing in its place, and thereby changes more than this share of the
# answers to generated inputs: it pleases one case at the cost of all others.
DROPPED_MAX, MOST_ANSWERS = 1e-4, 0.5
# So is every edit of a text beside the code, below ``luck_min`` as well: nobody has measured yet how often one that
# passes is right, and what is held against an edit of code (mutants, lines that working calls run) is not made of texts.
TEXT_MAX = 1e-5
# And every edit of several places that is made for a family of faults: of six that passed on tools which nobody had
# looked at four were right.
SEVERAL_MAX = 1e-4
_PARTIAL = " (partial: "
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class SearchFindings:
    """What the search as a whole says beside the single edit."""

    evidence_ids: tuple[str, ...]  # of the failing calls
    suspicion: Mapping[int, float]  # by line
    working_lines: Sequence[tuple[str, tuple[int, ...]]]  # task id, lines that its call runs
    alternatives: int = 0  # other behaviours that pass as well


def proposal_of(brief: Brief, search: Search, hypothesis: Hypothesis, found: SearchFindings) -> Proposal:
    """The proposal for one behaviour among the plausible edits."""
    plausible, program = hypothesis.best, search.program
    edit = plausible.ranked.edit
    lines = touched(program, plausible)
    ids = found.evidence_ids
    fixed = tuple(task for task, ok in zip(ids, plausible.passed, strict=True) if ok)
    place = f"line {min(lines)}" + (f", in {name}" if (name := _function_at(program, min(lines))) else "")
    share = "" if plausible.full else f"{_PARTIAL}{len(fixed)} of {len(ids)} failing tasks)"
    prior, tried = plausible.ranked.probability, search.before + search.tried
    cause = _cause(plausible, place, tried, found, len(fixed))
    if not program.is_python:
        prior = min(TEXT_MAX, prior)
        cause += " Unsure: it is an edit of a text, of which no trace tells what runs it."
    elif plausible.ranked.kind == "several places":
        prior = min(SEVERAL_MAX, prior)
        cause += (
            " Unsure: it changes several places at once, which passes by luck more often than one change."
        )
    elif turns_a_condition(program.source, plausible.source):
        prior = min(OPPOSITE_MAX, prior)
        cause += " Unsure: it turns a condition into its opposite, which seldom is the repair of a slip."
    elif hypothesis.changed > MOST_ANSWERS and drops_a_computation(program.source, plausible.source):
        prior = min(DROPPED_MAX, prior)
        cause += (
            f" Unsure: it leaves a computation out, and as far as can be told {hypothesis.changed:.0%} of the answers to"
            " generated inputs become others."
        )
    return Proposal(
        cause=cause,
        summary=f"{place}: {change(program, plausible)}{share}",
        operator=f"{edit.operator} ({plausible.ranked.kind})",
        files={brief.path: plausible.source},
        why_this_layer=f"The failing calls run {brief.path}, and an edit there alone changes their outcome.",
        predicted_fixes=fixed,
        tasks_at_risk=tuple(task for task, ran in found.working_lines if lines & set(ran)),
        weight=_in_three_digits(hypothesis.share),
        prior=_in_three_digits(prior),
    )


_OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.In: ast.NotIn, ast.Is: ast.IsNot,
}  # fmt: skip
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}


def turns_a_condition(old: str, new: str) -> bool:
    """Whether all that differs is one condition, which is now its opposite."""
    pairs = list(_differing(parse(old), parse(new)))
    return len(pairs) == 1 and any(_is_opposite(*pair) for pair in (pairs[0], pairs[0][::-1]))


def _is_opposite(one: ast.AST, other: ast.AST) -> bool:
    if isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        return ast.dump(other.operand) == ast.dump(one)
    return _OPPOSITE.get(type(one)) is type(other)


def drops_a_computation(old: str, new: str) -> bool:
    """Whether all that differs is one call, operand or statement that is left out."""
    return _dropped_in(parse(old), parse(new))


def _dropped_in(one: ast.AST, other: ast.AST) -> bool:
    if _is_dropped(one, other):
        return True
    mine, theirs = list(ast.iter_child_nodes(one)), list(ast.iter_child_nodes(other))
    if type(one) is not type(other) or len(mine) != len(theirs):
        return False
    pairs = [pair for pair in zip(mine, theirs, strict=True) if ast.dump(pair[0]) != ast.dump(pair[1])]
    return len(pairs) == 1 and _dropped_in(*pairs[0])


def _is_dropped(one: ast.AST, other: ast.AST) -> bool:
    """Whether the other is what is left of the one: an argument, an operand, a body with a statement less."""
    if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not) and isinstance(one.operand, ast.Call):
        one = one.operand  # ``not f(a)``, and now ``a``; the call itself is the opposite
        if ast.dump(one) == ast.dump(other):
            return False
    if isinstance(one, ast.Call | ast.BinOp | ast.BoolOp):
        left = ast.dump(other)
        if any(
            ast.dump(part) == left for part in ast.walk(one) if part is not one and isinstance(part, ast.expr)
        ):
            return True
    if isinstance(one, ast.Subscript) and ast.dump(one.slice) == ast.dump(other):
        return True  # the key stands for what it was looked up for
    if type(one) is not type(other):
        return False
    for name in ("values", "body", "orelse", "finalbody"):
        mine, theirs = getattr(one, name, None), getattr(other, name, None)
        if isinstance(mine, list) and isinstance(theirs, list) and len(mine) > len(theirs):
            rest = iter(ast.dump(each) for each in mine)
            return all(ast.dump(each) in rest for each in theirs)
    return False


def _differing(one: ast.AST, other: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """The smallest nodes that differ, in pairs."""
    if type(one) is not type(other):
        yield one, other
        return
    inner: list[tuple[ast.AST, ast.AST]] = []
    for name in one._fields:
        mine, theirs = getattr(one, name, None), getattr(other, name, None)
        if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
            pairs = list(zip(mine, theirs, strict=True))
        else:
            pairs = [(mine, theirs)]
        for pair in pairs:
            if isinstance(pair[0], ast.AST) and isinstance(pair[1], ast.AST):
                inner.append(pair)
            elif pair[0] != pair[1]:
                yield one, other
                return
    for two in inner:
        yield from _differing(*two)


def first_edits(
    search: Search,
    movers: Sequence[Mover],
    raised_before: Sequence[int],
    bench: Bench,
    proposal: Callable[[Hypothesis], Proposal],
) -> list[Proposal]:
    """As proposals those that break nothing, bring no failing case farther off, and raise later where they raise.

    None of them is proposed by itself.
    """
    found: list[Proposal] = []
    # what does the same is one first edit, and so are a guard's many defaults
    known: set[bytes | str] = set()
    plan, nearness = search.plan, search.nearness
    likely = sorted({each.source: each for each in movers}.values(), key=lambda each: -each.worth)
    for mover in likely if nearness else ():
        if len(found) == MOVED_FIRSTS or search.veto(mover.source):
            continue
        tried = bench.try_source(mover.source, cases=[*plan.evidence, *plan.working], trace=True)
        outputs = dict(zip([*plan.evidence, *plan.working], tried.outputs, strict=True))
        raised_at = dict(zip([*plan.evidence, *plan.working], tried.raised or (), strict=False))
        kept = all(same(outputs[case], plan.old[case]) for case in plan.working)
        raises_on = [case for case in plan.evidence if raised_at.get(case)]
        later = all(raised_at[case] > raised_before[case] > 0 for case in raises_on)
        if (
            kept
            and later
            and all(_no_farther(nearness, case, outputs[case], plan.old[case]) for case in plan.evidence)
        ):
            told: set[bytes | str] = {
                canonical([outputs[case] for case in plan.evidence]),
                mover.ranked.edit.operator,
            }
            if told & known:
                continue
            known |= told
            plausible = Plausible(mover.ranked, mover.source, (False,) * len(plan.evidence), ())
            found.append(proposal(Hypothesis(plausible, 1.0, 1)))
    return found


def _no_farther(nearness: Nearness | None, case: int, new: Json, old: Json) -> bool:
    return nearness is None or same(new, old) or nearness.gain(case, new) > 0


def both_edits(first: Proposal, second: Proposal) -> Proposal:
    """The second edit, which was made on top of the first, as one proposal: hardly likelier than any other pair."""
    return replace(
        second,
        cause=f"{first.cause} Then: {second.cause}",
        summary=f"{first.summary.partition(_PARTIAL)[0]}; then {second.summary}",
        operator=f"{first.operator} + {second.operator}",
        predicted_fixes=tuple(dict.fromkeys((*first.predicted_fixes, *second.predicted_fixes))),
        tasks_at_risk=tuple(dict.fromkeys((*first.tasks_at_risk, *second.tasks_at_risk))),
        weight=_in_three_digits(first.weight * second.weight),
        prior=min(PAIR_MAX, _in_three_digits(first.prior * second.prior)) or PAIR_MAX,
    )


def _in_three_digits(share: float) -> float:
    """In three digits, and never 0 for what is small: 0 says that nobody weighed it."""
    return float(f"{share:.3g}")


def _cause(plausible: Plausible, place: str, tried: int, found: SearchFindings, fixed: int) -> str:
    suspicion = found.suspicion.get(int(place.removeprefix("line ").partition(",")[0]), 0.0)
    highest = max(found.suspicion.values(), default=0.0)
    sentence = (
        f"The fault is probably at {place}: of {tried} edits tried, this one ({plausible.ranked.edit.operator})"
        f" makes {fixed} of {len(found.evidence_ids)} failing calls pass and keeps what works"
        f" (working calls seen: {len(found.working_lines)}); by coverage the line's suspicion is"
        f" {suspicion:.2f} (highest {highest:.2f})."
    )
    if found.alternatives:
        sentence += f" Ambiguous: it is the likeliest of {found.alternatives + 1} behaviours that pass."
    return sentence


def touched(program: Program | TextFile, plausible: Plausible) -> set[int]:
    """Numbers of the original lines that the edit changes."""
    found: set[int] = set()
    for splice in plausible.ranked.edit.splices:
        first, last = program.line_of(splice.start), program.line_of(max(splice.start, splice.end - 1))
        found.update(range(first, last + 1))
    return found


def change(program: Program | TextFile, plausible: Plausible) -> str:
    """The edit in brief: what stood there and what stands there now."""
    parts = []
    for splice in plausible.ranked.edit.splices:
        old = program.data[splice.start : splice.end].decode().strip()
        new = splice.text.strip()
        if not new or (new == "pass" and old):
            parts.append(f"without `{_short(old)}`")
        elif not old:
            parts.append(f"new `{_short(new)}`")
        else:
            parts.append(f"`{_short(old)}` → `{_short(new)}`")
    return ", ".join(parts)


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"


def _function_at(program: Program | TextFile, line: int) -> str:
    inside = [f for f in program.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
    innermost: Definition | None = max(inside, key=lambda f: f.lineno, default=None)
    return innermost.name if innermost else ""
