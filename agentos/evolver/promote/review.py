"""Review: a second model reads an edit that the trials would promote. It can hold it back, and promotes none.

It is shown the diff, the evidence and the objective, never what the author says of the edit: not its
cause, its summary, its predictions, nor the trials. Whoever cannot be asked, or gives no opinion that can
be read, has not passed it: where the policy wants a review, a missing one holds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from agentos.domain import (
    Candidate,
    Evidence,
    Evolution,
    Json,
    Refusal,
    RefusalKind,
    Review,
    ReviewOpinion,
)
from agentos.errors import ModelFailed
from agentos.evolver.advice import WIDE, RequestDraft, quoted, texts, told, with_data
from agentos.evolver.find.triage import runs_of, shown_part
from agentos.evolver.promote import ReviewContext
from agentos.evolver.promote.consent import stored_review
from agentos.models.requests import Line, Unusable, json_in, spoken

PURPOSE = "review"
ANSWER_TOKENS = 4_096
REASONS_MAX = 10
REASON_MAX = 500
REPAIRS = 1
_FENCED = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)
_OWN = {
    "cut": "it was too long and was cut off",
    "empty": "it was empty",
    "malformed": "it could not be read",
}


def held_back(parts: ReviewContext, evolution: Evolution, candidate: Candidate) -> Refusal | None:
    """Why the candidate is not promoted for now; None when its review does not fail it."""
    review = stored_review(parts.records, candidate) or _reviewed(parts, evolution, candidate)
    if review.opinion is not ReviewOpinion.FAIL:
        return None
    said = f"the review of {candidate.id} by {review.model or 'nobody'} fails it: {'; '.join(review.reasons)}"
    return Refusal(RefusalKind.REVIEW, said)


def _reviewed(parts: ReviewContext, evolution: Evolution, candidate: Candidate) -> Review:
    evidence = parts.records.get(Evidence, evolution.evidence_id)
    # What it says ends up in reasons, and those in the briefs of later evolutions.
    heard = _ask(parts, shown_part(evidence, evolution.held_back), candidate)
    review = Review(
        id=f"review-{candidate.id.removeprefix('cand-')}",
        evolution_id=evolution.id,
        candidate_id=candidate.id,
        candidate_tree=candidate.snapshot.tree,
        evidence_sha256=evidence.sha256,
        model=heard.model,
        opinion=heard.opinion,
        reasons=heard.reasons,
        at=parts.now(),
    )
    said = {"candidate": candidate.id, "opinion": review.opinion.value}
    parts.audit.note("review", evolution.id, said, (review,))
    return review


# --- asking -----------------------------------------------------------------------------------


def _upper(value: Json) -> Json:
    return value.strip().upper() if isinstance(value, str) else value


class _Said(BaseModel):
    verdict: Annotated[Literal["PASS", "WARN", "FAIL"], BeforeValidator(_upper)]
    reasons: list[Line] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Heard:
    """Who answered, what, and why."""

    model: str
    opinion: ReviewOpinion
    reasons: tuple[str, ...]


def _ask(parts: ReviewContext, evidence: Evidence, candidate: Candidate) -> _Heard:
    reviewer = parts.reviewer
    if reviewer is None:
        return _Heard("", ReviewOpinion.FAIL, ("the policy wants a review, and no reviewer is set up",))
    diff = _diff(parts, candidate)
    if len(diff) > parts.policy.review.max_diff:
        why = f"its diff has {len(diff)} characters, at most {parts.policy.review.max_diff} are reviewed"
        return _Heard("", ReviewOpinion.FAIL, (why,))
    shown = told(runs_of(parts, parts.tasks(evidence.task_ids)), WIDE).text
    talk = RequestDraft(with_data(texts()["review"]["system"]), f"{shown}\n\nThe edit:\n{quoted(diff)}")
    faults: list[str] = []
    while len(faults) <= REPAIRS:
        answer = ""
        try:
            reply = reviewer.ask(candidate.evolution_id, PURPOSE, talk.request(ANSWER_TOKENS))
            answer = str(reply.body["choices"][0]["message"].get("content") or "")
            said = _read(answer)
            reasons = tuple(reason[:REASON_MAX] for reason in said.reasons[:REASONS_MAX])
            return _Heard(reply.model, ReviewOpinion(said.verdict.lower()), reasons or ("it gave no reason",))
        except Unusable as error:
            faults.append(str(error))
        except ModelFailed as error:
            if error.kind not in _OWN:
                return _Heard("", ReviewOpinion.FAIL, (f"the reviewer could not be asked: {error}",))
            faults.append(_OWN[error.kind])
        talk.again(faults[-1], answer, texts()["review"]["repair"])
    return _Heard(reviewer.name, ReviewOpinion.FAIL, (f"it gave no opinion that can be read: {faults[-1]}",))


def _read(answer: str) -> _Said:
    """The answer is one JSON object and nothing else: where there are two, nobody could say which is meant."""
    text = spoken(answer).strip()
    if fenced := _FENCED.match(text):
        text = fenced[1].strip()
    said, rest = json_in(text, _Said)
    if not text.startswith("{") or rest.strip():
        raise Unusable("there is something beside the JSON object in it")
    return said


def _diff(parts: ReviewContext, candidate: Candidate) -> str:
    lines: list[str] = []
    brought = candidate.migration.files if candidate.migration else {}
    for path, new in sorted([*candidate.edit.files.items(), *brought.items()]):
        old = _base_text(parts, candidate, path)
        lines += difflib.unified_diff(
            old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm="", n=10
        )
    return "\n".join(lines)


def _base_text(parts: ReviewContext, candidate: Candidate, path: str) -> str:
    files: Mapping[str, bytes] = parts.snapshots.files(candidate.base, path)
    return files.get(path, b"").decode("utf-8", "replace")
