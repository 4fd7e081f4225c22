"""The manifest of a repair: in sentences, what is wrong, what was changed, and what that predicts."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentos.ports import Brief, Proposal
from agentos.proposers.repair.ranking import Hypothesis
from agentos.proposers.repair.search import Plausible, Search
from agentos.proposers.repair.source import Program

# A pair of edits is believed in no more than this: how often such pairs are right is not known from tools that
# nobody looked at, so it stays below the policy's ``prior_min``, and a person is asked.
PAIR_MAX = 1e-5
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
    return Proposal(
        cause=_cause(plausible, place, search.tried, found, len(fixed)),
        summary=f"{place}: {change(program, plausible)}{share}",
        operator=f"{edit.operator} ({plausible.ranked.kind})",
        files={brief.path: plausible.source},
        why_this_layer=f"The failing calls run {brief.path}, and an edit there alone changes their outcome.",
        predicted_fixes=fixed,
        tasks_at_risk=tuple(task for task, ran in found.working_lines if lines & set(ran)),
        weight=_in_three_digits(hypothesis.share),
        prior=_in_three_digits(plausible.ranked.probability),
    )


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


def touched(program: Program, plausible: Plausible) -> set[int]:
    """Numbers of the original lines that the edit changes."""
    found: set[int] = set()
    for splice in plausible.ranked.edit.splices:
        first, last = program.line_of(splice.start), program.line_of(max(splice.start, splice.end - 1))
        found.update(range(first, last + 1))
    return found


def change(program: Program, plausible: Plausible) -> str:
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


def _function_at(program: Program, line: int) -> str:
    inside = [f for f in program.functions if f.lineno <= line <= (f.end_lineno or f.lineno)]
    innermost: ast.FunctionDef | None = max(inside, key=lambda f: f.lineno, default=None)
    return innermost.name if innermost else ""
