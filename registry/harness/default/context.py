"""Puts together what the model is told, never more than its context takes.

The parts that stand fast come first and are cut to their shares once: the prompt with what belongs to
it, the goal, the tools. What is left is for the history; when that runs over, its oldest exchanges
become a line each (compaction.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compaction import bounded, lines_of, shorten
from history import Exchange, tokens
from observations import TOLD_MAX, Outputs, clipped
from tool_catalog import ToolCatalog

from agentos.worker.sdk import Sdk

BUDGET_MIN = 256  # tokens; there is nothing sensible to say in less
REPLY_MIN = 256  # tokens; whoever may say no more is better told that there is no room
RESERVE_MAX = 8_192  # tokens kept free for the reply, which may take no more, or a quarter of the context
SMALL_WINDOW = 8_192  # tokens: such a model gets lost in, and waits minutes for, what others read in passing
_SMALL_FRAME = 600  # tokens of all that stands fast, but for the goal
_SYSTEM, _GOAL, _TOOLS = 0.30, 0.15, 0.30  # of the budget, at most
_AFTER = 0.6  # of the room for history that is used after a compaction, so that it is rare
_DIGEST = 0.25  # of that room, at most, for what was compacted


@dataclass
class Material:
    """What the system message is made of, a line an item; lists are cut from their ends."""

    prompt: str
    files: list[str] = field(default_factory=list)
    skills: list[str] = field(default_factory=list)
    memories: list[str] = field(default_factory=list)

    def text(self, most: int) -> tuple[str, dict[str, int]]:
        """At most ``most`` tokens, and how much of each list was left out: memories first."""
        # What changes from task to task stands last: a server keeps the beginning that it has read before.
        kept = {"skills": list(self.skills), "memories": list(self.memories), "files": list(self.files)}
        over = tokens(self._joined(self.prompt, kept)) - most
        for lines in (kept["memories"], kept["files"], kept["skills"]):
            while lines and over > 0:
                over -= len(lines.pop().encode("utf-8", "replace")) // 3
        text = self._joined(self.prompt, kept)
        left_out = {name: len(getattr(self, name)) - len(lines) for name, lines in kept.items()}
        return _cut(text, most), {name: count for name, count in left_out.items() if count}

    @staticmethod
    def _joined(prompt: str, kept: dict[str, list[str]]) -> str:
        sections = [prompt.strip()]
        for name, heading in _HEADINGS.items():
            if kept[name]:
                sections.append("\n".join([heading, *kept[name]]))
        return "\n\n".join(section for section in sections if section)


_LESSON_ID = re.compile(r"<!--\s*m-[0-9a-f]+\s*-->$")  # by which the evolver knows a lesson again
_HEADINGS = {
    "skills": "## Skills\n\nRead the one that fits with read_skill before you use its tools.",
    "memories": (
        "## Notes from earlier tasks\n\nThese are for reference and no rules: they may be wrong, or of another "
        "case. What you see in this task counts more."
    ),
    "files": "## Files in the workspace",
}


class Context:
    """What one run tells its model. ``summarise`` writes a text about exchanges that have to go."""

    def __init__(
        self,
        material: Material,
        goal: str,
        catalog: ToolCatalog,
        outputs: Outputs,
        window: int,
        summarise: Callable[[list[Exchange]], str] | None = None,
    ) -> None:
        self._material = material
        self._goal = goal
        self._catalog = catalog
        self._outputs = outputs
        self._goal_whole = outputs.keep(goal) if tokens(goal) > int(window * 0.7 * _GOAL) else ""
        self._summarise = summarise
        self.exchanges: list[Exchange] = []
        self.compacted = 0  # exchanges so far
        self._asked_last = 0  # tokens of the last request
        self._lines: list[str] = []
        self._summary = ""
        self._small = window <= SMALL_WINDOW
        self.reply_max = min(RESERVE_MAX, window // 4)
        self.budget = window - self.reply_max
        self._frame()

    def _frame(self) -> None:
        """The parts that stand fast, for this budget."""
        system, tools = int(self.budget * _SYSTEM), int(self.budget * _TOOLS)
        if self._small:  # the prompt as it is, the rest as far as there is room beside it
            system = min(system, max(_SMALL_FRAME * 2 // 3, tokens(self._material.prompt)))
        text, self.left_out = self._material.text(system)
        self._system = {"role": "system", "content": text}
        if self._small:
            tools = min(tools, max(_SMALL_FRAME - tokens(self._system), _SMALL_FRAME // 3))
        self._reading_on = bool(self._outputs)
        self.tools = self._offered(tools)
        if missing := len(self._catalog.told(reading_on=self._reading_on)) - len(self.tools):
            self.left_out["tools"] = missing
        self._asked = _cut(self._goal, int(self.budget * _GOAL), self._goal_whole)
        self._fixed = (
            tokens(self._system) + tokens(self.tools) + tokens({"role": "user", "content": self._asked})
        )

    def _offered(self, most: int) -> list[dict[str, Any]]:
        """The tools in at most ``most`` tokens: all, all in brief, or in brief those that fit the goal best."""
        for brief in (False, True):
            told = self._catalog.told(reading_on=self._reading_on, brief=brief or self._small)
            if tokens(told) <= most:
                return told
        about = " ".join([self._goal, *self._material.files])
        told = self._catalog.told(reading_on=self._reading_on, brief=True, goal=about)
        while told and tokens(told) > most:
            told.pop()
        return told

    @property
    def told_max(self) -> int:
        """Bytes that the results of one exchange may take together."""
        return max(600, (self.budget - self._fixed) * 3 // 2)

    def narrow(self) -> None:
        """The provider counts more than we do: make do with two thirds of what was too much."""
        self.budget = max(BUDGET_MIN, min(self.budget, self._asked_last) * 2 // 3)
        self._frame()

    def request(self, last_word: str = "", left: int = 0) -> dict[str, Any]:
        """The next request; with ``last_word`` it offers no tools and says why.

        ``left`` are the tokens that the run may still use, 0 without a limit: whatever may be answered is set aside
        before it is asked, so that more than there is would be refused.
        """
        after = [{"role": "user", "content": last_word}] if last_word else []
        if self._outputs and not self._reading_on:
            self._frame()
        self._make_room(sum(tokens(message) for message in after))
        said = [message for exchange in self.exchanges for message in exchange.messages()]
        asked = {"role": "user", "content": self._asked + self._digest()}
        before = [self._system] if self._system["content"] else []
        self._asked_last = self._fixed + self._used()
        room = (left - self._asked_last) // (1 if last_word else 2) if left else self.reply_max
        request: dict[str, Any] = {
            "messages": [*before, asked, *said, *after],
            "max_tokens": min(self.reply_max, max(REPLY_MIN, room)),  # a small model babbles on without end
        }
        if self.tools and not last_word:
            request["tools"] = self.tools
        return request

    def _make_room(self, extra: int) -> None:
        room = self.budget - self._fixed - extra
        if self._used() <= room:
            return
        going: list[Exchange] = []
        while len(self.exchanges) > 1 and self._used() > room * _AFTER:
            going.append(self._fold())
        most = TOLD_MAX
        while self.exchanges and self._used() > room and most > 200:
            most //= 2
            shorten(self.exchanges[-1], most)
        if self.exchanges and self._used() > room:
            going.append(self._fold())
        if going and self._summarise is not None:
            self._summary = self._summarise(going) or self._summary

    def _fold(self) -> Exchange:
        gone = self.exchanges.pop(0)
        self._lines += lines_of(gone)
        self.compacted += 1
        return gone

    def _used(self) -> int:
        return sum(exchange.size for exchange in self.exchanges) + tokens(self._digest())

    def _digest(self) -> str:
        if not self._lines:
            return ""
        most = int((self.budget - self._fixed) * _DIGEST)
        summary = _cut(self._summary, most // 2)
        text = bounded(self._lines, (most - (tokens(summary) if summary else 0)) * 3)
        return "".join(f"\n\n{part}" for part in (summary, text) if part)


def material_of(sdk: Sdk, catalog: ToolCatalog) -> Material:
    """What this run has to tell."""
    skills = []
    for skill in catalog.skills:
        texts = [file for file in skill.files[1:] if file.endswith((".md", ".txt"))]
        others = f" (also: {', '.join(texts)})" if texts else ""
        skills.append(f"- {skill.name}: {skill.description}{others}")
    notes = [
        _LESSON_ID.sub("", line.strip()).rstrip()
        for path in sdk.paths("memory/")
        if path.endswith("/memory.md")
        for line in sdk.read(path).splitlines()
        if line.strip() and not line.startswith("#")
    ]
    return Material(sdk.prompt, [f"- {name}" for name in sdk.inputs], skills, notes)


def _cut(text: str, most: int, reference: str = "") -> str:
    """At most ``most`` tokens of it, as they count within a message."""
    size = most * 3
    while text and tokens({"role": "system", "content": text}) > most:
        # What is mostly escapes counts six bytes a sign: then there may be no room to say what is left out.
        text = clipped(text, size, reference) if size > 100 else text[: len(text) * 3 // 4]
        size = size * 3 // 4
    return text
