"""The one form in which all runs of other systems are looked at: a conversation with its outcome."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from agentos.domain import Check, Json, Result
from agentos.errors import Invalid, shown

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


# Ends that an export of ours may name and that say nothing of the agent: taken in, they are ``unknown``.
SAYS_NOTHING = (Result.INFRA, Result.FLAKY, Result.WAITING, Result.NOT_REPLAYABLE)


@dataclass(frozen=True, slots=True)
class ConversationEnd:
    """How a conversation ended."""

    result: Result
    score: float  # 0 to 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BlamedMessage:
    """Somebody's word that a message was the decisive mistake."""

    message: int  # counted from 0
    agent: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChatConversation:
    """Messages in OpenAI's form, what came of them, and whatever else the record held (``rest``)."""

    goal: str
    messages: tuple[Json, ...]
    ended: ConversationEnd
    tools: tuple[Json, ...] = ()
    checks: tuple[Check, ...] = ()
    blame: BlamedMessage | None = None
    rest: Mapping[str, Json] = field(default_factory=dict)


UNKNOWN = ConversationEnd(Result.UNKNOWN, 0.0)


class MessageLog:
    """Puts what a log tells in pieces into OpenAI's order: an assistant's message, then its calls' answers.

    Pieces of one ``turn`` make one message. A call that was never answered gets an answer that says so,
    unless the log ends there; an answer to no call is left out and counted in ``stray``.
    """

    def __init__(self) -> None:
        self.stray = 0
        self._done: list[Json] = []
        self._open = False  # whether a message of the assistant's is under way; of it:
        self._said: list[Json] = []
        self._calls: dict[tuple[str, str], Json] = {}  # by id and tool
        self._tools: dict[str, str] = {}  # by id
        self._waiting: dict[str, dict[str, None]] = {}  # by tool, ids without an answer
        self._answers: dict[str, Json] = {}  # by id
        self._turn: Json = None

    def say(self, role: str, content: Json, turn: Json = None) -> None:
        """A text, or a list of parts; what is empty is passed over."""
        if not content:
            return
        if role == "assistant":
            self._assistant(turn)
            self._said.append(content)
        else:
            self._close(goes_on=True)
            self._done.append({"role": role, "content": content})

    def call(self, id: str, name: str, arguments: Json, turn: Json = None) -> None:
        """A call of a tool; ``arguments`` as an object or as JSON text. Logs that repeat a line repeat its calls."""
        self._assistant(turn)
        if (id, name) in self._calls:
            return
        function = {"name": name, "arguments": arguments if isinstance(arguments, str | dict) else "{}"}
        self._calls[id, name] = {"id": id, "type": "function", "function": function}
        if self._tools.setdefault(id, name) == name:
            self._waiting.setdefault(name, {})[id] = None

    def answer(self, id: str, content: Json, *, failed: bool = False) -> None:
        """What a call of the message under way gave."""
        if id not in self._tools or id in self._answers:
            self.stray += 1
            return
        content = content if isinstance(content, str | list) else json.dumps(content, ensure_ascii=False)
        message = {"role": "tool", "tool_call_id": id, "content": content}
        self._answers[id] = {**message, "is_error": True} if failed else message
        del self._waiting[self._tools[id]][id]

    def waiting(self, tool: str) -> Collection[str]:
        """Ids of the calls of that tool in the message under way that have no answer yet, in their order."""
        return self._waiting.get(tool, {}).keys()

    def messages(self) -> list[Json]:
        """All of it; the log is over."""
        self._close(goes_on=False)
        return self._done

    def _assistant(self, turn: Json) -> None:
        same = turn is not None and turn == self._turn
        if not self._open or (self._answers and not same) or (turn is not None and not same):
            self._close(goes_on=True)
            self._open, self._turn = True, turn

    def _close(self, *, goes_on: bool) -> None:
        if not self._open:
            return
        calls = [*self._calls.values()]
        if len(self._tools) != len(calls):
            raise Invalid("record", ["two calls of one message have the same id"])
        said = self._said[0] if len(self._said) == 1 else "\n".join(map(text_of, self._said)) or None
        self._done.append({"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})})
        for call in calls:
            absent = {"role": "tool", "tool_call_id": call["id"], "content": "(no answer on record)"}
            found = self._answers.get(call["id"]) or (absent if goes_on else None)
            self._done += [found] if found else []
        self._open, self._turn, self._said = False, None, []
        self._calls, self._tools, self._waiting, self._answers = {}, {}, {}, {}


def checked_messages(value: Json) -> tuple[Json, ...]:
    """``value`` as messages: known roles, texts, and each tool answer to a call that was made.

    A conversation may break off after a call, but not go on without its answer. Raises Invalid
    with the first fault, which names the message by its place from 0.
    """
    if not isinstance(value, list) or not value:
        raise Invalid("record", ["'messages' must be a list with at least one message"])
    waiting: Counter[str] = Counter()
    for number, message in enumerate(value):
        if fault := _fault(message) or _fault_of_order(message, waiting):
            raise Invalid("record", [f"message {number} {fault}"])
    if not any(message["role"] == "assistant" for message in value):
        raise Invalid("record", ["no message is the assistant's"])
    return tuple(value)


def part_of(value: Json, key: str) -> Json:
    """What a record or a step has there, None where it is no mapping: others wrote it, so it may be anything."""
    return value.get(key) if isinstance(value, dict) else None


def is_message(value: Json) -> bool:
    """Does it have the form of one message?"""
    return not _fault(value)


def _fault(message: Json) -> str:
    if not isinstance(message, dict):
        return "is no object"
    if message.get("role") not in ROLES:
        return f"has the role {shown(message.get('role'), 40)}; the roles are {', '.join(ROLES)}"
    content = message.get("content")
    if not (content is None or isinstance(content, str) or _are_parts(content)):
        return "has a content that is neither a text nor a list of parts"
    if content is None and message["role"] != "assistant":
        return "has no content"
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list) or not all(_is_call(call) for call in calls):
        return 'has a tool call that is not {"id", "function": {"name", "arguments"}}'
    if content is None and not calls and not isinstance(message.get("function_call"), dict | type(None)):
        return "has a function_call that is no object"
    return ""


def _are_parts(content: Json) -> bool:
    return isinstance(content, list) and all(isinstance(part, dict) for part in content)


def _is_call(call: Json) -> bool:
    return (
        isinstance(call, dict)
        and isinstance(call.get("id"), str)
        and isinstance(call.get("function"), dict)
        and isinstance(call["function"].get("name"), str)
        and isinstance(call["function"].get("arguments"), str | dict)
    )


def _fault_of_order(message: Json, waiting: Counter[str]) -> str:
    """Keeps the book of calls that wait for their answers in ``waiting``."""
    if message["role"] == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or call_id not in waiting:
            return f"answers the tool call {shown(call_id)}, which was not made just before"
        waiting[call_id] -= 1
        if not waiting[call_id]:
            del waiting[call_id]
    elif waiting:
        return f"comes before the tool call {shown(next(iter(waiting)))} is answered"
    waiting.update(call["id"] for call in message.get("tool_calls") or [])
    return ""


def text_of(content: Json) -> str:
    """The text of a message's content, its parts one below another."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def first_request(messages: Sequence[Json]) -> str:
    """What the first user message asks for, "" when there is none."""
    return next((text_of(item.get("content")) for item in messages if item["role"] == "user"), "")


# --- What a person put right in a conversation, as texts that the right answer holds -------------
# Only what the conversation itself bears out: said in a sentence that objects, missing in the answer before it, and
# there in the answer that ended it. A question that goes on ("and for 2025?") objects to nothing.


MOST = 5
LONGEST = 200  # characters of a value
_TRIED = 200  # of a conversation: somebody may have pasted a table
_OBJECTS = re.compile(
    r"\b(no|not|wrong|incorrect|instead|should|must|actually|correct|rather|expected|isn't|aren't|wasn't)\b",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED = re.compile(r'"([^"\n]{1,200})"|“([^”\n]{1,200})”|`([^`\n]{1,200})`')
_NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:[.,:/-]\d+)*(?![\w])")


def corrected_values(messages: Sequence[Json]) -> list[str]:
    """Texts that the answer lacked, a person asked for, and the last answer has; in the order said."""
    spoken = [(message["role"], text_of(message.get("content")).strip()) for message in messages]
    spoken = [(role, text) for role, text in spoken if role in ("user", "assistant") and text]
    if not spoken or spoken[-1][0] != "assistant":
        return []
    last, before, tried = spoken[-1][1], "", list[tuple[str, str]]()
    for role, text in spoken[:-1]:
        if role == "assistant":
            before = text
        elif before:
            said = (value for sentence in _SENTENCE.split(text) for value in _values(sentence))
            tried += ((before, value) for value in islice(said, _TRIED - len(tried)))
    found = dict.fromkeys(value for old, value in tried if not _holds(old, value) and _holds(last, value))
    return [*found][:MOST]


def _values(sentence: str) -> list[str]:
    """What is quoted, and numbers of two digits and more, of a sentence that objects."""
    if not _OBJECTS.search(sentence):
        return []
    quoted = ["".join(groups).strip() for groups in _QUOTED.findall(sentence)]
    numbers = [
        text for text in _NUMBER.findall(_QUOTED.sub(" ", sentence)) if sum(map(str.isdigit, text)) > 1
    ]
    return [value for value in (*quoted, *numbers) if 0 < len(value) <= LONGEST]


def _holds(text: str, value: str) -> bool:
    """As a word of its own, so that 41 is not in 1415 and not in 41.30."""
    return re.search(rf"(?<![\w])(?<!\d[.,]){re.escape(value)}(?![\w]|[.,]\d)", text) is not None
