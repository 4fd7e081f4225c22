"""From the block of an answer to the new text of files. The model names no path: only a new resource's name."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

from agentos.domain import Kind, Layer, ResourceId
from agentos.evolver.advice import EditReply, Unusable
from agentos.evolver.memory.lessons import added, changed, lessons_in
from agentos.ports import Brief
from agentos.resources import examine, name_fault
from agentos.resources.documents import DOCUMENT

# Line by line, and no part reaches into the next one: the time grows with the length of the answer alone.
_HUNK = re.compile(
    r"^<{5,} ?SEARCH\n(?P<old>(?:(?!<{5,} ?SEARCH$|={5,}$).*\n)*)={5,}\n"
    r"(?P<new>(?:(?!<{5,} ?SEARCH$|>{5,} ?REPLACE[ \t\r]*$).*\n)*)>{5,} ?REPLACE[ \t\r]*$",
    re.MULTILINE,
)
_HEADER = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)
_LIST_MARK = re.compile(r"^[-*+]\s+")
NEW = frozenset({Layer.SKILL, Layer.TOOL})  # layers in which a new resource can be the edit


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
    lines = source.splitlines()
    for number, hunk in enumerate(hunks, 1):
        old, new = hunk["old"].splitlines(), hunk["new"].splitlines()
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


def _memory(source: str, block: str) -> str:
    """One lesson more, or one with other words, whose id stays."""
    hunks = list(_HUNK.finditer(block))
    if not hunks:
        return added(source, _one_line(block))
    if len(hunks) > 1:
        raise Unusable("it changes more than one lesson; one at a time can be measured")
    old, new = _one_line(hunks[0]["old"]), _one_line(hunks[0]["new"])
    known = {lesson.text: lesson.id for lesson in lessons_in(source)}
    if old not in known:
        raise Unusable("the SEARCH line stands nowhere in the file; copy one lesson exactly")
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
