"""What the rule-following model takes from a request: goal, tools, listed skills, what was done."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentos.domain import Json
from agentos.testing.modelserver.rules import habits, rules_in, words

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
    except ValueError:
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
