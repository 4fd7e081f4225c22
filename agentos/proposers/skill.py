"""The proposer of skills from what worked: a way that passing runs of several tasks took becomes a page.

No model is asked. A run of successful tool calls that came in the same order in different tasks is written
down with what those tasks were about, where each argument came from, and what to check; whether a run that
reads the page does better is measured like any edit. A page that says nearly the same is not put beside
one that is there: the two are made one, which has to pass the tests of both (``inherited``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from agentos.domain import Json, Layer, Step, is_reference
from agentos.ports import Brief, ObservedRun, Proposal, Snapshots

DESCRIPTION_MAX = 1_024  # characters, of the Agent Skills format
LONGEST = 6  # calls of one way
TASKS_MIN = 2
_WORDS_MAX = 4  # by which a task is told to be of the kind
_LITERAL_MAX = 60  # characters of an argument that is always the same
_SMALL_WORDS = """
the and are for how not you has had was can all any its but who why our out use per one two
about after also answer back been before both each every file files from give have into more most must only
other over please result same should show some task tell than that their them then there these they this
those through under until using what when where which while will with without work write your
"""
_SMALL = frozenset(_SMALL_WORDS.split())
_WHEN = re.compile(r"^- When a task is about (.+?), use ", re.MULTILINE)
_DESCRIPTION = re.compile(r'\A---\n(?:.*\n)*?description: (".*")$', re.MULTILINE)
_STEP = re.compile(r"^\d+\. Call `([\w/-]+)`", re.MULTILINE)
_TOOL = re.compile(r"[\w/-]{1,200}")  # a harness writes the steps: what is no name does not reach a page


@dataclass(frozen=True, slots=True)
class SuccessfulCall:
    """One successful tool call."""

    tool: str
    args: Mapping[str, Json]
    gave: str


@dataclass(frozen=True, slots=True)
class CallSequence:
    """Calls in a row that passing runs of several tasks made; one occurrence for each task."""

    tools: tuple[str, ...]
    seen: tuple[tuple[ObservedRun, tuple[SuccessfulCall, ...]], ...]

    @property
    def worth(self) -> tuple[int, int]:
        """Longer ways of more tasks first."""
        return (len(self.seen) * (len(self.tools) - 1), len(self.tools))


class SkillProposer:
    """Implements ``ports.Proposer``; ``snapshots`` tells which names are taken."""

    name = "skill"

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """One page a way, the most worth first; none that has nothing in common with the failing tasks."""
        if brief.layer is not Layer.SKILL or brief.path:
            return
        passing = [*brief.successes, *(seen for seen in brief.runs if seen.run.passed)]
        failing = [seen for seen in brief.runs if not seen.run.passed]
        wanted = [words(seen.task.goal) for seen in failing]
        pages = {
            path: content.decode("utf-8", "replace")
            for path, content in self._snapshots.files(brief.base, "skill").items()
            if path.endswith("/SKILL.md")
        }
        for way in (nearest(way, wanted) for way in ways(passing)):
            about = [word for word in common(way) if any(word in goal for goal in wanted)]
            fitting = [seen for seen, goal in zip(failing, wanted, strict=True) if {*about} & {*goal}]
            if about and (files := _files(way, about[:_WORDS_MAX], pages)):
                yield _proposal(way, files, fitting)


def ways(passing: Sequence[ObservedRun]) -> list[CallSequence]:
    """What several tasks did alike, the most worth first; none that is a part of one that as many did."""
    found: dict[tuple[str, ...], dict[str, tuple[ObservedRun, tuple[SuccessfulCall, ...]]]] = {}
    for seen in passing:
        done = list(did(seen.steps))
        for size in range(2, LONGEST + 1):
            for at in range(len(done) - size + 1):
                part = tuple(done[at : at + size])
                own = found.setdefault(tuple(call.tool for call in part), {})
                own.setdefault(seen.task.key, (seen, part))
    several = [CallSequence(tools, tuple(by.values())) for tools, by in found.items() if len(by) >= TASKS_MIN]
    whole = [
        way
        for way in several
        if not any(
            len(way.tools) < len(other.tools)
            and len(way.seen) <= len(other.seen)
            and _within(way.tools, other.tools)
            for other in several
        )
    ]
    # A tool that is called again and again is no way.
    whole = [way for way in whole if len([*groupby(way.tools)]) > 1]
    return sorted(whole, key=lambda way: (way.worth, way.tools), reverse=True)


def nearest(way: CallSequence, wanted: Sequence[Sequence[str]]) -> CallSequence:
    """The way as those tasks took it that are most like the failing ones, if there are several such.

    Otherwise work of another kind that takes the same steps leaves only words that say nothing.
    """
    alike = [
        max((len({*words(seen.task.goal)} & {*goal}) for goal in wanted), default=0) for seen, _ in way.seen
    ]
    most = tuple(one for one, count in zip(way.seen, alike, strict=True) if count == max(alike))
    return replace(way, seen=most) if len(most) >= TASKS_MIN else way


def _within(short: Sequence[str], long: Sequence[str]) -> bool:
    return any(tuple(long[at : at + len(short)]) == tuple(short) for at in range(len(long) - len(short) + 1))


def did(steps: Sequence[Step]) -> Iterator[SuccessfulCall]:
    """The calls of tools of the registry that worked, in order."""
    for step in steps:
        action = step.action
        if step.node != "act" or step.fault is not None or not isinstance(action, Mapping):
            continue
        tool, args = action.get("tool"), action.get("args")
        if isinstance(action.get("path"), str) and isinstance(args, Mapping) and _TOOL.fullmatch(str(tool)):
            yield SuccessfulCall(str(tool), args, _gave(step.observation))


def _gave(observation: Json) -> str:
    if is_reference(observation):
        return f"{observation['head']}{observation['tail']}"
    return json.dumps(observation, ensure_ascii=False, sort_keys=True)


def words(text: str) -> list[str]:
    """The words of a goal by which a kind of work is told, up to its first colon: what follows is data."""
    said = text.partition(":")[0] if text.partition(":")[0].strip() else text
    found = re.findall(r"[a-z]{3,}", said.lower())
    return [word for word in dict.fromkeys(found) if word not in _SMALL]


def common(way: CallSequence) -> list[str]:
    """The words that all of its tasks have, in the order of the first one."""
    goals = [words(seen.task.goal) for seen, _ in way.seen]
    return [word for word in goals[0] if all(word in goal for goal in goals)]


# --- the page ---------------------------------------------------------------------------------


def _files(way: CallSequence, about: Sequence[str], pages: Mapping[str, str]) -> dict[str, str]:
    """The new page, or a wider one of the skill that has these steps; {} where that says it all already."""
    near = next((path for path, page in pages.items() if tuple(_STEP.findall(page)) == way.tools), "")
    if near:
        wider = _widened(pages[near], about, way)
        return {near: wider} if wider != pages[near] else {}
    name = _free_name(about, pages)
    return {f"skill/{name}/SKILL.md": page_of(name, way, about)}


def _free_name(about: Sequence[str], pages: Mapping[str, str]) -> str:
    stem = "-".join(about)[:40].strip("-")
    number = 1
    while f"skill/{stem}{f'-{number}' if number > 1 else ''}/SKILL.md" in pages:
        number += 1
    return f"{stem}-{number}" if number > 1 else stem


def _widened(page: str, about: Sequence[str], way: CallSequence) -> str:
    """The page for these tasks too: one more line of when it holds."""
    known = [{*_listed(found)} for found in _WHEN.findall(page)]
    if any(words <= {*about} for words in known):
        return page
    lines = page.splitlines()
    at = next((number for number, line in enumerate(lines) if _WHEN.match(line)), None)
    if at is None:
        return page
    lines.insert(at + 1, _when(about, way))
    return _announced("\n".join(lines) + "\n", about)


def _announced(page: str, about: Sequence[str]) -> str:
    """The page with these tasks in its description too, which is all that an agent sees before it reads."""
    found = _DESCRIPTION.search(page)
    try:
        said = json.loads(found[1]) if found else None
    except ValueError:
        said = None
    if found is None or not isinstance(said, str):
        return page
    wider = f"{said} Also for tasks about {' and '.join(about)}."
    if len(wider) > DESCRIPTION_MAX:
        return page
    return f"{page[: found.start(1)]}{json.dumps(wider)}{page[found.end(1) :]}"


def _listed(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.replace(" and ", " "))


def page_of(name: str, way: CallSequence, about: Sequence[str]) -> str:
    """The page as the Agent Skills format has it."""
    chain = ", then ".join(f"`{tool}`" for tool in way.tools)
    topic = " and ".join(about)
    description = f"How to do tasks about {topic}: {chain.replace('`', '')}. Read it for tasks about {topic}."
    steps = [_step(way, number) for number in range(len(way.tools))]
    return "\n".join(
        [
            "---",
            f"name: {name}",
            f"description: {json.dumps(description)}",
            "---",
            "",
            f"# {topic.capitalize()}",
            "",
            "## When",
            "",
            _when(about, way),
            f"- These tools are at hand: {', '.join(f'`{tool}`' for tool in dict.fromkeys(way.tools))}.",
            "",
            "## Steps",
            "",
            *(f"{number}. {step}" for number, step in enumerate(steps, 1)),
            "",
            "## Check",
            "",
            "- Each step gave a result and no error; if one failed, mend its arguments and do it again.",
            f"- {_ending(way)}",
            "",
        ]
    )


def _when(about: Sequence[str], way: CallSequence) -> str:
    return f"- When a task is about {' and '.join(about)}, use `{way.tools[0]}`."


def _step(way: CallSequence, number: int) -> str:
    """One call, with where its arguments come from in all of the runs."""
    calls = [part[number] for _, part in way.seen]
    names = [
        name for name in calls[0].args if all(name in call.args for call in calls) and _TOOL.fullmatch(name)
    ]
    told = [f"`{name}` {_source(way, number, name)}" for name in sorted(names)]
    return f"Call `{way.tools[number]}`" + (f" with {'; '.join(told)}." if told else ".")


def _source(way: CallSequence, number: int, name: str) -> str:
    values = [part[number].args[name] for _, part in way.seen]
    if all(_says(seen.task.goal, value) for value, (seen, _) in zip(values, way.seen, strict=True)):
        return "as the task gives it"
    for earlier in range(number - 1, -1, -1):
        gave = [part[earlier].gave for _, part in way.seen]
        if all(_says(text, value) for value, text in zip(values, gave, strict=True)):
            return f"from what step {earlier + 1} gave"
    literal = json.dumps(values[0], ensure_ascii=False)
    # A page with a sign that shows as nothing, such as half a character, would be refused.
    if all(value == values[0] for value in values) and len(literal) <= _LITERAL_MAX and literal.isprintable():
        return f"always {literal}"
    return "as the task needs it"


def _says(text: str, value: Json) -> bool:
    """Whether the value stands in a goal or in a result's JSON, not as a part of a longer word or number."""
    plain = json.dumps(value, ensure_ascii=False, sort_keys=True).strip('"')
    return bool(plain) and re.search(rf"(?<![\w.]){re.escape(plain)}(?![\w]|\.\d)", text) is not None


def _ending(way: CallSequence) -> str:
    """What the answers of the runs say of the last step."""
    if all(_says(part[-1].gave, seen.run.answer) for seen, part in way.seen):
        return f"The answer is what step {len(way.tools)} gave, unchanged."
    return "The answer follows from these results; hold it against the task before you give it."


def _proposal(way: CallSequence, files: Mapping[str, str], failing: Sequence[ObservedRun]) -> Proposal:
    chain = " → ".join(way.tools)
    return Proposal(
        cause=f"passing runs of {len(way.seen)} tasks did {chain}, and these tasks, which are alike, failed",
        summary=f"a skill of what worked: {chain}",
        operator="skill template",
        files=files,
        why_this_layer="a way that worked in several tasks can be read where it fits, and costs nothing elsewhere",
        predicted_fixes=tuple(dict.fromkeys(seen.task.id for seen in failing)),
    )
