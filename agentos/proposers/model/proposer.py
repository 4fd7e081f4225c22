"""Asks for one edit at a time. An answer that is no edit is repaired once, then told as one that is none."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentos.domain import Kind, Layer, ResourceId
from agentos.errors import ModelFailed
from agentos.evolver.advice import (
    NAME,
    NARROW,
    TINY,
    WIDE,
    BriefLimits,
    Declined,
    EditReply,
    RequestDraft,
    choice,
    chosen_number,
    parse,
    rule_choice,
    talk,
    tasks_named,
    texts,
    told_of,
)
from agentos.evolver.memory.lessons import added, changed, lessons_in, removed
from agentos.models.requests import Unusable
from agentos.ports import Adviser, Brief, Proposal, Snapshots
from agentos.proposers.model.choosing import LAYERS as CHOOSING
from agentos.proposers.model.choosing import rules_for, with_rule
from agentos.resources import examine, name_fault
from agentos.resources.documents import DOCUMENT

DOCUMENTS = (Layer.AGENT, Layer.ENVIRONMENT)  # of which the document alone is edited
LAYERS = (Layer.MEMORY, Layer.PROMPT, Layer.SKILL, Layer.TOOL, *DOCUMENTS, Layer.HARNESS)
PURPOSE = "propose"
REPAIRS = 1
# Proposals in a row that were no edit, each asked for twice: in one layer, and in all of an evolution.
UNUSABLE_IN_LAYER, UNUSABLE_MAX = 2, 5
# a text fits into a JSON object; code is better off in a block
AS_TEXT = frozenset({Layer.MEMORY, Layer.PROMPT, Layer.SKILL})
_CHOICE_TOKENS = 256
_LESS = frozenset({"context", "slow"})  # a shorter request, and a shorter answer, may mend these
# Failures that are the answer's own: the model is told, as of one that cannot be read.
_OWN = {
    "cut": "it was too long and was cut off; answer much shorter",
    "empty": "it was empty",
    "malformed": "it could not be read",
    "refused": "it was a refusal; the task is to improve a program, and nothing else is asked for",
}
# Line by line, and no part reaches into the next one: the time grows with the length of the answer alone.
_HUNK = re.compile(
    r"^<{5,} ?SEARCH\n(?P<old>(?:(?!<{5,} ?SEARCH$|={5,}$).*\n)*)={5,}\n"
    r"(?P<new>(?:(?!<{5,} ?SEARCH$|>{5,} ?REPLACE[ \t\r]*$).*\n)*)>{5,} ?REPLACE[ \t\r]*$",
    re.MULTILINE,
)
_HEADER = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_LIST_MARK = re.compile(r"^[-*+]\s+")
NEW = frozenset({Layer.SKILL, Layer.TOOL})  # layers in which a new resource can be the edit


class ModelProposer:
    """Implements ``ports.Proposer`` for one model. ``form`` is "diff" or "whole": how it writes changes."""

    name = NAME

    def __init__(self, adviser: Adviser, snapshots: Snapshots, form: str) -> None:
        self._adviser = adviser
        self._snapshots = snapshots
        self._form = form
        self._failed: tuple[str, int] = ("", 0)  # the evolution, and its replies without an edit in a row

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """One edit for each request; whoever takes more than ``max_candidates`` had one refused.

        Raises ModelFailed when the model cannot be asked any more (its budget is used up, it is not set
        up, it cannot write edits), and Unavailable while it cannot be reached.
        """
        if brief.layer not in LAYERS or not (brief.path or brief.layer in NEW):
            return
        if brief.layer in DOCUMENTS and brief.path != f"{brief.resource}/{DOCUMENT}":
            return
        if brief.layer is Layer.MEMORY and self._adviser.small and len(rules_for(brief)) > 1:
            return  # there is a rule to choose, and a small model follows the prompt, not notes
        deadline = time.monotonic() + brief.budget_s
        own: list[str] = []
        known: list[Mapping[str, str]] = []
        in_layer = 0
        names = self._snapshots.names(brief.base)
        for _ in range(brief.max_candidates + 1):
            if own and time.monotonic() > deadline:
                return
            try:
                proposal = _Sitting(self._adviser, brief, self._form, names).proposal(own)
            except Declined:  # it would say so again, and each time costs
                return
            if proposal.files in known:
                proposal = replace(proposal, files={}, unusable="no edit: it proposed this one already")
            own += [proposal.summary, *(other.summary for other in proposal.beside)]
            known += [proposal.files] if proposal.files else []
            yield proposal
            in_layer = 0 if proposal.files else in_layer + 1
            self._count(brief.evolution_id, proposal)
            if in_layer >= UNUSABLE_IN_LAYER:
                return

    def _count(self, evolution_id: str, proposal: Proposal) -> None:
        """Raises ModelFailed("no_edits") once it is clear that more questions are a waste."""
        before = self._failed[1] if self._failed[0] == evolution_id else 0
        self._failed = (evolution_id, 0 if proposal.files else before + 1)
        if self._failed[1] >= UNUSABLE_MAX:
            raise ModelFailed(
                "no_edits",
                f"{UNUSABLE_MAX} proposals in a row were no edit, so the model {self._adviser.name} is not asked again; "
                "name one that can write edits under [propose] model in policy.toml",
            )


def _own_fault(error: ModelFailed) -> str:
    """What the model is told of it; raises the error where it is not the answer's own fault."""
    if error.kind not in _OWN and error.kind != "context":
        raise error
    return _OWN.get(error.kind, str(error))


@dataclass(slots=True)
class _Sitting:
    """One edit in the making."""

    adviser: Adviser
    brief: Brief
    form: str
    names: Sequence[ResourceId]
    room: BriefLimits = WIDE
    answered_by: str = ""

    def proposal(self, own: list[str]) -> Proposal:
        """As ``edit``; a small model, which writes for minutes what is no edit, is first asked to choose.

        Where it names no number the rules are tried as they stand, those first that speak to most failures.
        """
        if self.adviser.small:
            self.room = TINY
            if chosen := self._chosen(own):
                return chosen
            if len(rules := self._left(own)) > 1:
                first, *others = (self._of_rule(rule, "rule", "the model chose none") for rule in rules)
                return replace(first, beside=tuple(others))
        return self.edit(own)

    def edit(self, own: list[str]) -> Proposal:
        """The edit, or one that says why there is none. Raises Declined."""
        if self.brief.layer is Layer.HARNESS:
            self.brief = self._at_the_right_file()
        asked = self._talk(own)
        faults: list[str] = []
        while True:
            answer = ""
            try:
                answer = self._ask(asked)
                parsed = parse(answer)
                files = edited(self.brief, parsed, self.form, self.names)
                return self._proposal(parsed, files)
            except Unusable as error:
                faults.append(str(error))
            except ModelFailed as error:
                if error.kind in _LESS and self.room is WIDE:
                    self.room = NARROW
                    asked = self._talk(own)
                    continue
                if error.kind == "request" and asked.one_object:
                    asked.one_object = False  # a server that knows no schemas
                    continue
                # it may be quick enough for that
                if error.kind == "slow" and (chosen := self._chosen_late(own)):
                    return chosen
                faults.append(_own_fault(error))
            if len(faults) > REPAIRS:
                return self._chosen_late(own) or self._none(faults, len(own) + 1)
            asked.one_object = self.brief.layer in AS_TEXT
            asked.again(
                faults[-1], answer, texts()["propose"]["repair_object" if asked.one_object else "repair"]
            )

    def _left(self, own: Sequence[str]) -> list[str]:
        """What may be chosen from beside what was proposed; nothing where a line more is no edit."""
        if self.brief.layer not in CHOOSING or not self.brief.path:
            return []
        return [rule for rule in rules_for(self.brief) if rule not in own]

    def _chosen_late(self, own: list[str]) -> Proposal | None:
        """The same once it has shown that it writes none; a small model was asked before."""
        return None if self.adviser.small else self._chosen(own)

    def _chosen(self, own: list[str]) -> Proposal | None:
        """One of the kernel's rules, by the model's choice; None where there is none to choose, or no choice."""
        rules = self._left(own)
        if len(rules) < 2:
            return None
        told = told_of(self.brief, NARROW)
        try:
            said = self._reply(rule_choice(self.brief, told, rules), _CHOICE_TOKENS)
        except ModelFailed as error:
            if error.kind not in _OWN and error.kind != "context":
                raise
            return None
        number = chosen_number(said, len(rules))
        if not number:
            return None
        chosen = rules.pop(number - 1)
        # Which rule helps is measured: a small model's choice is little more than an order.
        others = (self._of_rule(rule, "rule", "the model chose another one") for rule in rules)
        return replace(
            self._of_rule(chosen, "choice", "the model chose it among others"), beside=tuple(others)
        )

    def _of_rule(self, rule: str, how: str, why: str) -> Proposal:
        return Proposal(
            cause="the answers are not in the form that is asked for, or a step was left out",
            summary=rule,
            operator=f"{NAME} {how} ({self._model()})",
            files={self.brief.path: with_rule(self.brief, rule)},
            why_this_layer=f"a rule of one line that the kernel made; {why}",
            predicted_fixes=tuple(told_of(self.brief, NARROW).labels.values()),
            model=self._model(),
        )

    def _talk(self, own: list[str]) -> RequestDraft:
        return talk(self.brief, self.room, self.form, own, self.names)

    def _ask(self, asked: RequestDraft) -> str:
        longest = self.room.answer_tokens
        if self.form == "whole":
            longest += len(self.brief.source) // 3
        return self._reply(asked, longest)

    def _reply(self, asked: RequestDraft, longest: int) -> str:
        reply = self.adviser.ask(self.brief.evolution_id, PURPOSE, asked.request(longest))
        self.answered_by = reply.model
        return str(reply.body["choices"][0]["message"].get("content") or "")

    def _at_the_right_file(self) -> Brief:
        """The brief with the harness' file that the model names, where it is not known which is at fault."""
        own = {
            path: text
            for path, text in self.brief.files.items()
            if path.startswith(f"{self.brief.resource}/") and path.endswith(".py")
        }
        if len(own) < 2 or not self.brief.path.endswith("/harness.py"):
            return self.brief
        firsts = {path: text.lstrip().partition("\n")[0].strip('"') for path, text in own.items()}
        try:
            said = self._ask(choice(self.brief, told_of(self.brief, NARROW), firsts))
        except ModelFailed as error:
            if error.kind not in _OWN and error.kind != "context":
                raise
            return self.brief
        named = {path: re.escape(path.rpartition("/")[2]) for path in own}
        found = (path for path, name in named.items() if re.search(rf"(?<![\w-]){name}\b", said))
        path = next(found, self.brief.path)
        return replace(self.brief, path=path, source=own.get(path, self.brief.source))

    def _proposal(self, answer: EditReply, files: Mapping[str, str]) -> Proposal:
        labels = told_of(self.brief, self.room).labels
        findings = answer.findings
        return Proposal(
            cause=findings.cause,
            summary=findings.summary,
            operator=self._operator(),
            files=files,
            why_this_layer=findings.why_this_layer,
            predicted_fixes=tasks_named(findings.predicted_fixes, labels),
            tasks_at_risk=tasks_named(findings.tasks_at_risk, labels),
            parents=tuple(parent.candidate_id for parent in self.brief.parents),
            model=self._model(),
        )

    def _none(self, faults: list[str], number: int) -> Proposal:
        why = f"no edit: {faults[0]}" + (f"; asked again: {faults[-1]}" if len(faults) > 1 else "")
        return Proposal(
            cause="",
            summary=f"answer {number} for the {self.brief.layer.value} layer was no edit",
            operator=self._operator(),
            unusable=why[:500],
            model=self._model(),
        )

    def _operator(self) -> str:
        return f"{NAME} ({self._model()})"

    def _model(self) -> str:
        return self.answered_by or self.adviser.name


# --- From the block of an answer to the new text of files. The model names no path: only a new resource's name.


def edited(brief: Brief, answer: EditReply, form: str, taken: Collection[ResourceId]) -> Mapping[str, str]:
    """Registry path -> new text. ``form`` is the policy's; ``taken`` are the resources that there are.

    Raises Unusable.
    """
    if not brief.path:
        return _new(brief.layer, answer, taken)
    if brief.layer is Layer.MEMORY:
        text = _memory(brief.source, answer.block)
    elif form == "diff" or _HUNK.search(answer.block):
        text = replaced(brief.source, answer.block)
    else:
        text = answer.block.rstrip() + "\n"
    if text == brief.source:
        raise Unusable("the edit changes nothing")
    return {brief.path: text}


def replaced(source: str, block: str) -> str:
    """The source with each SEARCH part replaced; spaces at the ends of lines do not count."""
    hunks = list(_HUNK.finditer(block))
    if not hunks:
        raise Unusable("the block has no part of the form <<<<<<< SEARCH … ======= … >>>>>>> REPLACE")
    lines = _lines(source)
    for number, hunk in enumerate(hunks, 1):
        old, new = _lines(hunk["old"]), _lines(hunk["new"])
        if not any(line.strip() for line in old):
            lines += new
            continue
        wanted = [line.rstrip() for line in old]
        there = [line.rstrip() for line in lines]
        places = [at for at in range(len(lines)) if there[at : at + len(wanted)] == wanted]
        if len(places) != 1:
            found = f"{len(places)} times" if places else "nowhere"
            raise Unusable(
                f"the SEARCH lines of part {number} stand {found} in the file; copy whole lines that "
                "stand there once"
            )
        lines[places[0] : places[0] + len(wanted)] = new
    return "\n".join(lines).rstrip("\n") + "\n"


def _lines(text: str) -> list[str]:
    """As Python counts them: what else ``splitlines`` takes for the end of one may stand in a text of the file."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def _memory(source: str, block: str) -> str:
    """One lesson more, one with other words, whose id stays, or one less."""
    hunks = list(_HUNK.finditer(block))
    if not hunks:
        return added(source, _one_line(block))
    if len(hunks) > 1:
        raise Unusable("it changes more than one lesson; one at a time can be measured")
    old = _one_line(hunks[0]["old"])
    known = {lesson.text: lesson.id for lesson in lessons_in(source)}
    if old not in known:
        raise Unusable("the SEARCH line stands nowhere in the file; copy one lesson exactly")
    if not hunks[0]["new"].strip():
        return removed(source, known[old])
    new = _one_line(hunks[0]["new"])
    return source if old == new else changed(source, known[old], new)


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        raise Unusable(f"it must be one line, a lesson; there are {len(lines)}")
    return _LIST_MARK.sub("", lines[0])


def _new(layer: Layer, answer: EditReply, taken: Collection[ResourceId]) -> Mapping[str, str]:
    findings = answer.findings
    resource = ResourceId(Kind(layer.value), findings.name)
    if fault := name_fault(findings.name):
        raise Unusable(f"'name': {fault}")
    if resource in taken:
        raise Unusable(
            f"'name': there is a {layer.value} {findings.name} already; give a new one its own name"
        )
    if not findings.description:
        raise Unusable("'description': a sentence is missing, which says what it is for")
    # A JSON text is a YAML and a TOML text too.
    said = json.dumps(findings.description, ensure_ascii=False)
    body = answer.block.strip("\n") + "\n"
    if layer is Layer.SKILL:
        page = _HEADER.sub("", body, count=1).lstrip("\n")
        files = {f"{resource}/SKILL.md": f"---\nname: {findings.name}\ndescription: {said}\n---\n\n{page}"}
    else:
        files = {f"{resource}/tool.py": body, f"{resource}/{DOCUMENT}": f"description = {said}\n"}
    if faults := examine(resource, {path: text.encode() for path, text in files.items()}).faults:
        raise Unusable("; ".join(faults[:3]))
    return files
