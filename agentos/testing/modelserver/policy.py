"""A small deterministic model that is as good as what it has been told.

It can do four things with a goal: ``total`` (or sum, add) numbers, ``sort`` items, ``count`` words
or lines, and ``say "text"``. Untaught it makes the mistakes that such models make:

- it takes numbers in the unit in which they stand           (a memory: "Amounts are in cents.")
- it answers with the bare result                            (a prompt: "Always answer in JSON.")
- it sorts numbers as text: 10 before 9                      (a skill: "When sorting, compare as numbers.")
- it guesses a count of more than five                       (a tool: ``word_count``)
- it forgets the last of more than four numbers              (a prompt: "Always verify.")

It reads rules in every message but its own, one sentence each; other text says nothing to it. The one read last holds::

    When <words>, <action>.        for goals in which all the words occur
    Always <action>.               for every goal
    <words> are in <unit>.         cents, percent, grams, metres, milliseconds

An action is one of ``answer "<text>"``, ``answer in JSON`` (``upper case``, ``lower case``), ``answer with
<number> decimals``, ``answer with the unit <word>``, ``use <tool>``, ``read the skill <name>``, ``compare as
numbers``, ``verify``. A tool is called when a rule names it or when all words of its name are in the goal; a
listed skill ("- name: description") is read when two of its words are in the goal and there is a tool with
"skill" in its name. What follows the first colon of the goal is data, not wording; so are the files that it
names, which it reads with a tool ``read``.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TypeAlias

from agentos.domain import Json, digest
from agentos.testing.modelserver.replies import ServerReply, call, say

Value: TypeAlias = "Decimal | str"

IGNORANCE = "I do not know."
_DECIMALS = {"one": 1, "two": 2, "three": 3}
_RELIABLE_COUNT = 5
_RELIABLE_TOTAL = 4


class Rules:
    """A policy for ModelServer. ``knows`` are rules that it follows without being told.

    With ``noise`` an answer becomes a wrong one with that probability: always the same for equal
    seed, request (ids of calls aside), how often it was asked before, and choice.
    """

    def __init__(self, *knows: str, noise: float = 0.0, seed: int = 0) -> None:
        if not 0 <= noise <= 1:
            raise ValueError(f"expected a noise from 0 to 1; found {noise}")
        self.knows = knows
        self.noise = noise
        self.seed = seed
        self._asked: Counter[str] = Counter()

    def __call__(self, request: Json, number: int) -> list[ServerReply]:
        """One reply for each choice that the request wants."""
        now = situation(request, self.knows)
        choices = range(request.get("n") or 1)
        if step := next_call(now):
            return [step for _ in choices]
        slips = self._slips(request, len(choices))
        return [say(dressed(slipped(answer(now)) if slip else answer(now), now)) for slip in slips]

    def _slips(self, request: Json, choices: int) -> list[bool]:
        if not self.noise:
            return [False] * choices
        asked = digest([_without_ids(request["messages"]), request.get("tools")])
        occurrence = self._asked[asked]
        self._asked[asked] += 1
        draws = (digest([self.seed, asked, occurrence, choice]) for choice in range(choices))
        return [int(draw[:12], 16) / 16**12 < self.noise for draw in draws]


def load(path: Path) -> Rules:
    """Rules from a TOML file: ``knows`` (sentences), ``noise``, ``seed``. Raises OSError, ValueError."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    if strange := set(found) - {"knows", "noise", "seed"}:
        raise ValueError(f"{path}: expected knows, noise and seed; found {', '.join(sorted(strange))}")
    knows, noise = found.get("knows", []), found.get("noise", 0.0)
    if not isinstance(knows, list) or not all(isinstance(one, str) for one in knows):
        raise ValueError(f"{path}: expected knows as a list of sentences; found {knows!r}")
    if not isinstance(noise, float | int):
        raise ValueError(f"{path}: expected noise as a number; found {noise!r}")
    return Rules(*knows, noise=noise, seed=found.get("seed", 0))


def next_call(now: ConversationState) -> ServerReply | None:
    """The tool calls that come before an answer; none is made twice."""
    if "answer" in now.habits:
        return None
    skill_tool = next((name for name in now.tools if "skill" in name), "")
    skill = now.habits.get("skill") or fitting_skill(now.asked, now.skills)
    if skill and skill_tool and not now.called(skill_tool):
        name = next(iter(now.tools[skill_tool].get("properties") or {}), "name")
        return call(skill_tool, {name: skill})
    tool = chosen_tool(now)
    if now.files and now.reader and not (tool and now.file_argument(tool)) and not now.called(now.reader):
        first, *others = ((now.reader, {now.file_argument(now.reader): file}) for file in now.files)
        return call(*first, *others)
    if tool and not now.called(tool):
        return call(tool, now.arguments(tool))
    return None


def chosen_tool(now: ConversationState) -> str:
    """The tool that a rule names, else the one whose name fits the goal; "" when there is none."""
    named = now.habits.get("tool")
    return (named and same_tool(named, now.tools)) or fitting_tool(now.asked, now.tools)


def answer(now: ConversationState) -> Value:
    """The result that the model comes to."""
    if "answer" in now.habits:
        return now.habits["answer"]
    used = now.called(chosen_tool(now))
    value = number_or_text(plain(used.result)) if used and not used.failed else work(now)
    scale = now.habits.get("scale")
    if scale and isinstance(value, Decimal):
        places = Decimal(1).scaleb(1 - len(str(SCALES[scale])))
        return (value / SCALES[scale]).quantize(places)
    return value


def work(now: ConversationState) -> Value:
    """What it can do without a tool, typical mistakes included."""
    asked, data = now.asked.lower(), now.data
    if quoted := re.search(r'\bsay "(.*)"', now.goal, re.IGNORECASE):
        return quoted[1]
    if re.search(r"\b(total|sum|add)\b", asked):
        return total(data, careful="verify" in now.habits)
    if re.search(r"\bsort\b", asked):
        return ", ".join(in_order(items_of(data), as_numbers="compare" in now.habits))
    if re.search(r"\b(count|how many)\b", asked):
        size = len(data.splitlines() if "line" in asked else data.split())
        return Decimal(size if size <= _RELIABLE_COUNT else size // 5 * 5 + 5)
    return IGNORANCE


def total(data: str, *, careful: bool) -> Decimal:
    """The sum of the numbers; without care the last of a long list is forgotten."""
    numbers = numbers_in(data)
    if not careful and len(numbers) > _RELIABLE_TOTAL:
        numbers.pop()
    return sum((Decimal(one) for one in numbers), Decimal(0))


def in_order(items: list[str], *, as_numbers: bool) -> list[str]:
    """Sorted; items that are no numbers come last where numbers are compared."""
    if not as_numbers:
        return sorted(items)
    values = {item: number_or_text(item) for item in items}

    def place(item: str) -> tuple[bool, Json]:
        return isinstance(values[item], str), values[item]

    return sorted(items, key=place)


def number_or_text(text: str) -> Value:
    """A finite number, or the text."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        return text
    return value if value.is_finite() else text


def slipped(value: Value) -> Value:
    """A wrong result of the same kind."""
    if isinstance(value, Decimal):
        return value + 1
    return value[::-1] if value != value[::-1] else f"{value}?"


def dressed(value: Value, now: ConversationState) -> str:
    """The result in the form that the rules ask for. What a rule dictates word for word stays as it is."""
    if "answer" in now.habits:
        return str(value)
    places = now.habits.get("decimals")
    if places and isinstance(value, Decimal):
        value = round(value, _DECIMALS.get(places.lower()) or int(places))
    text = f"{value:f}" if isinstance(value, Decimal) else value
    if unit := now.habits.get("unit"):
        text = f"{text} {unit}"
    form = now.habits.get("format", "").lower()
    if form == "json":
        bare = isinstance(value, Decimal) and not unit
        return f'{{"answer": {text if bare else json.dumps(text)}}}'
    return {"upper case": text.upper(), "lower case": text.lower()}.get(form, text)


def _without_ids(messages: Json) -> Json:
    """Messages without the ids of calls, which are new in each run."""
    if isinstance(messages, dict):
        return {
            name: _without_ids(one) for name, one in messages.items() if name not in ("id", "tool_call_id")
        }
    return [_without_ids(one) for one in messages] if isinstance(messages, list) else messages


# --- The grammar of what the rule-following model understands; all other text says nothing to it
# One sentence is one rule; a list mark before it is ignored, and so is case::
#
#     rule      = "When" words "," action "."     holds for goals in which all the words occur
#               | "Always" action "."             holds for every goal
#               | words "are in" unit "."         a fact: holds for goals in which the words occur
#     action    = 'answer "' text '"'             exactly that, whatever the goal asks for
#               | "answer in" ("JSON" | "upper case" | "lower case")
#               | "answer with" number "decimals"
#               | "answer with the unit" word
#               | "use" tool                      call this tool first, if there is one of that name
#               | "read the skill" name           before anything else
#               | "compare as numbers"            when sorting
#               | "verify"                        do the work twice
#     unit      = "cents" | "percent" | "grams" | "metres" | "milliseconds"
#
# Words are compared without case, plural s and small words such as "the". Where two rules speak of
# the same thing, the one read last holds.


SCALES = {"cents": 100, "percent": 100, "grams": 1000, "metres": 1000, "milliseconds": 1000}

_SMALL = frozenset(
    re.findall(
        r"\w+",
        "a an the of in on at to for from by with and or is are be it its this that all any you your i "
        "goal task asked asks about when there",
    )
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_MARK = re.compile(r"^(?:[-*+>#\s]|\d+[.)]\s)+")
_CONDITIONAL = re.compile(r"(?:when|if) ([^,]+), (.+)", re.IGNORECASE)
_ALWAYS = re.compile(r"always (.+)", re.IGNORECASE)
_FACT = re.compile(rf"(.+?) (?:are|is) (?:\w+ )?in ({'|'.join(SCALES)})", re.IGNORECASE)
_ACTIONS = {
    "answer": re.compile(r'answer "(.*)"', re.IGNORECASE),
    "format": re.compile(r"answer (?:in|as) (json|upper case|lower case)", re.IGNORECASE),
    "decimals": re.compile(r"answer with (one|two|three|\d) decimals?", re.IGNORECASE),
    "unit": re.compile(r"answer with the unit (\S+)", re.IGNORECASE),
    "tool": re.compile(r"use (?:the tool )?`?([\w/-]+)`?", re.IGNORECASE),
    "skill": re.compile(r"read the skill `?([\w-]+)`?", re.IGNORECASE),
    "compare": re.compile(r"compare (?:\w+ )?as (numbers)", re.IGNORECASE),
    "verify": re.compile(r"(verify)(?: .+)?", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class ServerRule:
    """For goals that hold all of ``words``, ``habit`` (a name of the actions, or ``scale``) is ``value``."""

    words: frozenset[str]
    habit: str
    value: str


def words(text: str) -> frozenset[str]:
    """What is compared of a text: its words and numbers in lower case, singular, without small ones."""
    found = re.findall(r"[a-z0-9]+(?:\.[0-9]+)?", text.lower())
    return frozenset(one if len(one) < 4 else one.removesuffix("s") for one in found if one not in _SMALL)


def rules_in(text: str) -> Iterator[ServerRule]:
    """The rules of a text, in order."""
    for sentence in _SENTENCE.split(text):
        if rule := _rule(_MARK.sub("", sentence).strip().removesuffix(".")):
            yield rule


def _rule(sentence: str) -> ServerRule | None:
    if match := _CONDITIONAL.fullmatch(sentence):
        return _acting(words(match[1]), match[2])
    if match := _ALWAYS.fullmatch(sentence):
        return _acting(frozenset(), match[1])
    if match := _FACT.fullmatch(sentence):
        return ServerRule(words(match[1]), "scale", match[2].lower())
    return None


def _acting(condition: frozenset[str], action: str) -> ServerRule | None:
    for habit, pattern in _ACTIONS.items():
        if match := pattern.fullmatch(action):
            return ServerRule(condition, habit, match[1])
    return None


def habits(rules: Iterable[ServerRule], goal: str) -> dict[str, str]:
    """What the rules make of a model that has this goal; later ones override."""
    there = words(goal)
    return {rule.habit: rule.value for rule in rules if rule.words <= there}


# --- What the rule-following model takes from a request: goal, tools, listed skills, what was done


_LISTED = re.compile(r"^\s*[-*]\s+\W*([a-z0-9]+(?:-[a-z0-9]+)*)\W*: +(.+)$", re.MULTILINE)
_FILE = re.compile(r"[\w./-]*\w\.[a-z]{2,5}\b")
_PATHS = ("path", "file", "filename")
_WRAPPED = ("output", "result", "answer", "value", "text", "content")


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """One tool call of this conversation; ``result`` is the text that came back."""

    tool: str
    args: str
    result: str

    @property
    def failed(self) -> bool:
        """Whether the result says so, as an object with an error or by its first word."""
        found = as_json(self.result)
        if isinstance(found, dict):
            return bool(found.get("error") or found.get("fault"))
        return self.result.lower().startswith("error")


@dataclass(frozen=True, slots=True)
class ConversationState:
    """Where a conversation stands. ``tools`` maps names to the schemas of their arguments."""

    goal: str
    habits: Mapping[str, str]
    tools: Mapping[str, Json]
    skills: Mapping[str, str]
    done: Sequence[ParsedRequest]

    @property
    def asked(self) -> str:
        """What is to be done, without the data: what precedes the goal's first colon."""
        return self.goal.partition(":")[0]

    @property
    def files(self) -> list[str]:
        """The files that the goal names."""
        return list(dict.fromkeys(_FILE.findall(self.goal)))

    @property
    def data(self) -> str:
        """What is to be worked on: the files read, else what follows the goal's first colon, else the goal."""
        read = [one.result for one in self.done if one.tool == self.reader and not one.failed]
        if read:
            return "\n".join(plain(result) for result in read)
        _, colon, rest = self.goal.partition(":")
        return rest.strip() if colon else self.goal

    @property
    def reader(self) -> str:
        """The tool that reads a file; "" when there is none."""
        return next((name for name in self.tools if name in ("read", "read_file", "read-file")), "")

    def called(self, name: str) -> ParsedRequest | None:
        """The last call of a tool in this conversation."""
        return next((one for one in reversed(self.done) if one.tool == name), None)

    def arguments(self, tool: str) -> dict[str, Json]:
        """Arguments by the types of the schema: files, texts, numbers and lists taken from the goal."""
        schema = self.tools[tool]
        properties = schema.get("properties") or {}
        wanted = schema.get("required") or list(properties)
        numbers = [as_json(one) for one in numbers_in(self.data)]
        left = iter(numbers)
        given: dict[str, Json] = {}
        for name in wanted:
            kind = properties.get(name, {}).get("type", "string")
            if name in _PATHS and self.files:
                given[name] = self.files[0]
            elif kind == "array":
                number = properties[name].get("items", {}).get("type") in ("integer", "number")
                given[name] = numbers if number else items_of(self.data)
            elif kind in ("integer", "number"):
                given[name] = next(left, 0)
            else:
                given[name] = True if kind == "boolean" else self.data
        return given

    def file_argument(self, tool: str) -> str:
        """The name of the argument in which a tool takes a file; "" when it takes none."""
        return next((name for name in _PATHS if name in (self.tools[tool].get("properties") or {})), "")


def situation(request: Json, knows: Sequence[str]) -> ConversationState:
    """Read a request. ``knows`` are sentences that the model believes from birth.

    It believes every text but its own: prompts, memories, the user, and what tools give back.
    """
    messages = request["messages"]
    believed = [plain(text_of(one)) for one in messages if one.get("role") != "assistant"]
    goal = goal_of(next((text_of(one) for one in messages if one.get("role") == "user"), ""))
    told = "\n".join(text_of(one) for one in messages if one.get("role") in ("system", "developer", "user"))
    rules = [rule for text in (*knows, *believed) for rule in rules_in(text)]
    tools = () if request.get("tool_choice") == "none" else request.get("tools") or ()
    return ConversationState(
        goal,
        habits(rules, goal),
        {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools},
        dict(_LISTED.findall(told)),
        list(_done(messages)),
    )


def goal_of(text: str) -> str:
    """The first paragraph of the user's first message that is no heading, without a label such as "Goal:"."""
    paragraphs = (part.strip() for part in text.split("\n\n"))
    first = next((part for part in paragraphs if part and not re.fullmatch(r"#.*|\w+:", part)), text)
    return re.sub(r"^(?:goal|task):\s*", "", first, flags=re.IGNORECASE)


def _done(messages: Sequence[Json]) -> Iterator[ParsedRequest]:
    results = {one.get("tool_call_id"): text_of(one) for one in messages if one.get("role") == "tool"}
    for message in messages:
        for asked in message.get("tool_calls") or ():
            if asked.get("id") in results:
                function = asked["function"]
                yield ParsedRequest(function["name"], function["arguments"], results[asked["id"]])


def text_of(message: Json) -> str:
    """A message's text; its parts are joined."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))


def as_json(text: str) -> Json:
    """The value that a text writes as JSON, or the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def plain(text: str) -> str:
    """The text that a result holds, taken out of the objects it may be wrapped in."""
    found = as_json(text)
    while isinstance(found, dict):
        inside = [found[name] for name in _WRAPPED if name in found] or list(found.values())
        found = inside[0] if inside and (len(found) == 1 or len(inside) < len(found)) else json.dumps(found)
    if isinstance(found, list):
        return ", ".join(str(one) for one in found)
    return found if isinstance(found, str) else json.dumps(found)


def numbers_in(text: str) -> list[str]:
    """The numbers of a text, as written."""
    return re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])", text)


def items_of(text: str) -> list[str]:
    """The items of a list in a text: by comma or line if it has any, else by word."""
    parts = re.split(r"[,\n]", text) if re.search(r"[,\n]", text.strip()) else text.split()
    return [part.strip(" .") for part in parts if part.strip(" .")]


def same_tool(name: str, tools: Mapping[str, Json]) -> str:
    """The tool that a rule means, however its name is punctuated; "" when there is none."""

    def flat(text: str) -> str:
        return re.sub(r"[^a-z0-9]", "", text.lower())

    return next((one for one in tools if flat(one).endswith(flat(name))), "")


def fitting_tool(asked: str, tools: Mapping[str, Json]) -> str:
    """The first tool with a name of two words or more, all of which are in ``asked``; else ""."""
    there = words(asked)
    named = ((one, words(re.sub(r"[_/-]+", " ", one))) for one in tools)
    return next((one for one, parts in named if len(parts) > 1 and parts <= there), "")


def fitting_skill(asked: str, skills: Mapping[str, str]) -> str:
    """The listed skill that shares most words with ``asked``, at least two; else ""."""
    there = words(asked)
    shared = {name: len(there & words(f"{name} {about}")) for name, about in skills.items()}
    best = max(shared, key=lambda name: shared[name], default="")
    return best if shared.get(best, 0) >= 2 else ""
