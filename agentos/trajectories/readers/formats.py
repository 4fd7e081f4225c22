"""The forms in which other systems write their runs down, each read into conversations.

- ``openai-chat``: {"messages", "outcome", "goal"?, "tools"?, "checks"?} and whatever else; what
  `agentos trajectory export` writes
- ``tau-bench``: tau-bench's results: {"traj", "reward", "info"} (github.com/sierra-research/tau-bench)
- ``whowhen``: failed runs of several agents with the decisive mistake marked: {"history",
  "question", "mistake_step", "mistake_agent", "mistake_reason"} (Who&When, arXiv 2505.00212)
- ``sft``: {"messages"}, each one an example of how to do it right
- ``grpo``: {"prompt", "completions", "rewards"}: several tries at one task
- ``swe-agent``, ``mini-swe-agent``: their trajectory files; ``inspect``: logs of inspect_ai
- ``otel``: OpenTelemetry's spans for generative AI, as OTLP in JSON
- ``claude-code``, ``codex``: session logs; ``messages``: a file that is one list of messages
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agentos.domain import Check, Json, Result
from agentos.errors import Invalid, UserError, shown
from agentos.plugins.checks import faults
from agentos.plugins.registry import attempted, said
from agentos.trajectories.conversations import (
    ROLES,
    SAYS_NOTHING,
    UNKNOWN,
    BlamedMessage,
    ChatConversation,
    ConversationEnd,
    checked_messages,
    first_request,
    part_of,
)
from agentos.trajectories.readers import inspect_log, sessions, spans_read, swe_agent
from agentos.trajectories.readers.records import RECORD_MAX

Convert = Callable[[Json], Json]
LOGS = ("claude-code", "codex", "messages", "otel")  # formats of which a file is one run
LOG = {"log", "lines"}  # a file that is one run, as ``records`` gathers it
MARK = "agentos"  # where an export says which run it was; no part of the conversation
_ENDS = (Result.PASSED, Result.FAILED, Result.TIMEOUT, Result.BUDGET, Result.CANCELLED, Result.UNKNOWN)
_OUTCOMES = ("outcome", "reward", "score", "passed", "success", "is_correct")
_GOALS = ("goal", "task", "question")


def read(record: Mapping[str, Json], format: str = "auto") -> Sequence[ChatConversation]:
    """The conversations in a record. Raises Invalid with one sentence for why there is none."""
    name = detect(record) if format == "auto" else format
    try:
        found = READERS[name](record)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        why = f"it is not in the form {name}: {type(error).__name__}: {error}"
        raise Invalid("record", [why[:300]]) from None
    for conversation in found:
        if not conversation.goal.strip():
            raise Invalid("record", ["it has no goal: neither 'goal' nor a user's message"])
    return found


def detect(record: Mapping[str, Json]) -> str:
    """The name of the record's format. Raises Invalid, which names the formats, when it is none of them."""
    if record.keys() >= LOG and isinstance(log := record["log"], str) and log in READERS:
        return log
    # an export, with all that the record held
    if isinstance(record.get(MARK), dict) and "messages" in record:
        return "openai-chat"
    if _is_mini_swe_agent(record):
        return "mini-swe-agent"
    if "question" not in record and _has_actions(record.get("history")):
        return "swe-agent"
    for name, keys in _SIGNS.items():
        if keys <= record.keys():
            return name
    has = ", ".join(f"{key:.40}" for key in list(record)[:6]) or "no keys"
    raise Invalid(
        "record", [f"it is in no known format (it has {has}); the formats are {', '.join(READERS)}"]
    )


def _is_mini_swe_agent(record: Mapping[str, Json]) -> bool:
    """Files of its first versions do not name their format."""
    info = record.get("info")
    return "messages" in record and isinstance(info, dict) and {"exit_status", "submission"} <= info.keys()


def _has_actions(history: Json) -> bool:
    return isinstance(history, list) and any(isinstance(item, dict) and "action" in item for item in history)


def _openai_chat(record: Mapping[str, Json]) -> list[ChatConversation]:
    key = next((name for name in _OUTCOMES if record.get(name) is not None), "")
    return [_chat(record, _ended(record[key], key) if key else UNKNOWN, {"outcome"})]


def _sft(record: Mapping[str, Json]) -> list[ChatConversation]:
    return [_chat(record, ConversationEnd(Result.PASSED, 1.0), set())]


def _message_list(record: Mapping[str, Json]) -> list[ChatConversation]:
    """A file that is one list of messages, in OpenAI's form or Anthropic's."""
    found = sessions.in_openai_form(record.get("lines", record.get("messages")))
    return [ChatConversation(first_request(found), checked_messages(found), UNKNOWN)]


def _chat(record: Mapping[str, Json], ended: ConversationEnd, used: set[str]) -> ChatConversation:
    messages = checked_messages(sessions.in_openai_form(record.get("messages")))
    key = next((name for name in _GOALS if isinstance(record.get(name), str)), "")
    rest = _without(record, {"messages", "tools", "checks", "goal"} | used)
    return ChatConversation(
        goal=record[key] if key else first_request(messages),
        messages=messages,
        ended=ended,
        tools=_tools(record.get("tools")),
        checks=_checks(record.get("checks")),
        blame=_blame(record, len(messages)),
        rest=rest,
    )


def _tau_bench(record: Mapping[str, Json]) -> list[ChatConversation]:
    info = record.get("info")
    task = part_of(info, "task")
    messages = checked_messages(record["traj"])
    goal = part_of(task, "instruction")
    return [
        ChatConversation(
            goal=goal if isinstance(goal, str) else first_request(messages),
            messages=messages,
            ended=_ended(record["reward"], "reward"),
            rest=_without(record, {"traj"}),
        )
    ]


def _whowhen(record: Mapping[str, Json]) -> list[ChatConversation]:
    history = record["history"]
    if not isinstance(history, list):
        raise Invalid("record", ["'history' must be a list of messages"])
    messages = checked_messages([_as_chat(message) for message in history])
    right = record.get("is_correct", record.get("is_corrected", False))
    truth = record.get("ground_truth")
    ended = _ended(right, "is_correct")
    reason = record.get("mistake_reason")
    if ended.result is not Result.PASSED and isinstance(reason, str):
        ended = ConversationEnd(ended.result, ended.score, reason)
    return [
        ChatConversation(
            goal=record["question"] if isinstance(record["question"], str) else "",
            messages=messages,
            ended=ended,
            checks=(Check("contains", {"value": truth}),) if isinstance(truth, str) and truth else (),
            blame=_blame(record, len(messages)),
            rest=_without(record, {"history"}),
        )
    ]


def _as_chat(message: Json) -> Json:
    """A role that names an agent becomes the assistant's (or, ``human``, the user's); it is kept."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str) or message["role"] in ROLES:
        return message
    return {
        **message,
        "role": "user" if message["role"] == "human" else "assistant",
        "agent": message["role"],
    }


def _grpo(record: Mapping[str, Json]) -> list[ChatConversation]:
    prompt, completions, rewards = (record[name] for name in ("prompt", "completions", "rewards"))
    if not (isinstance(prompt, list) and isinstance(completions, list) and isinstance(rewards, list)):
        raise Invalid("record", ["'prompt', 'completions' and 'rewards' must be lists"])
    if len(completions) != len(rewards):
        raise Invalid("record", [f"it has {len(completions)} completions and {len(rewards)} rewards"])
    rest = _without(record, {"prompt", "completions", "rewards"})
    if len(json.dumps([prompt, rest])) * len(completions) > RECORD_MAX:  # each is kept with its own copy
        raise Invalid("record", [f"its prompt for each completion comes to more than {RECORD_MAX >> 20} MB"])
    found = []
    for number, (completion, reward) in enumerate(zip(completions, rewards, strict=True)):
        if not isinstance(completion, list):
            raise Invalid("record", [f"completion {number} is no list of messages"])
        one = {**rest, "messages": [*prompt, *completion], "completion": number}
        found.append(_chat(one, _ended(reward, f"reward {number}"), set()))
    return found


READERS: Mapping[str, Callable[[Mapping[str, Json]], Sequence[ChatConversation]]] = {
    "openai-chat": _openai_chat,
    "tau-bench": _tau_bench,
    "whowhen": _whowhen,
    "sft": _sft,
    "grpo": _grpo,
    "messages": _message_list,
    "swe-agent": swe_agent.swe_agent,
    "mini-swe-agent": swe_agent.mini_swe_agent,
    "inspect": inspect_log.inspect_log,
    "otel": spans_read.otel,
    "claude-code": sessions.claude_code,
    "codex": sessions.codex,
}
_SIGNS = {
    "swe-agent": {"trajectory", "info"},
    "mini-swe-agent": {"messages", "info", "trajectory_format"},
    "inspect": {"eval", "samples"},
    "otel": {"resourceSpans"},
    "tau-bench": {"traj", "reward"},
    "whowhen": {"history", "question"},
    "grpo": {"prompt", "completions", "rewards"},
    "openai-chat": {"messages"},
}


def _ended(value: Json, key: str) -> ConversationEnd:
    """An outcome said in any of the usual ways: a word, a truth value, a reward, or an object."""
    if isinstance(value, dict):
        word, reason = value.get("result"), value.get("reason", "")
        reason = reason if isinstance(reason, str) else ""
        if word in SAYS_NOTHING:
            return ConversationEnd(Result.UNKNOWN, 0.0, f"{word}: {reason}".removesuffix(": "))
        ended = _ended(word, f"{key}.result")
        score = _ended(value["score"], f"{key}.score").score if "score" in value else ended.score
        return ConversationEnd(ended.result, score, reason)
    if isinstance(value, bool):
        return ConversationEnd(Result.PASSED, 1.0) if value else ConversationEnd(Result.FAILED, 0.0)
    if isinstance(value, str) and value in _ENDS:
        return ConversationEnd(Result(value), 1.0 if value == Result.PASSED else 0.0)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        passed = value >= 1
        score = float(min(max(value, 0), 1))
        return ConversationEnd(
            Result.PASSED if passed else Result.FAILED, score, "" if passed else f"reward {score:g}"
        )
    raise Invalid(
        "record", [f"'{key}' must be a number, true, false or one of {', '.join(_ENDS)}, not {shown(value)}"]
    )


def _blame(record: Mapping[str, Json], count: int) -> BlamedMessage | None:
    try:
        number = int(record.get("mistake_step", ""))
    except (TypeError, ValueError):
        return None
    said = (str(record.get(key) or "") for key in ("mistake_agent", "mistake_reason"))
    return BlamedMessage(number, *said) if 0 <= number < count else None


def _tools(value: Json) -> tuple[Json, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(tool, dict) for tool in value):
        raise Invalid("record", ["'tools' must be a list of tool definitions"])
    return tuple(value)


def _checks(value: Json) -> tuple[Check, ...]:
    """Checks as in a task file: each an object with one key, its kind."""
    if value is None:
        return ()
    found = []
    for number, item in enumerate(value if isinstance(value, list) else [None], start=1):
        pairs = list(item.items()) if isinstance(item, dict) else []
        if len(pairs) != 1 or not isinstance(pairs[0][1], dict):
            raise Invalid("record", [f"check {number} must be an object {{kind: {{…}}}}"])
        ((kind, spec),) = pairs
        if wrong := faults(kind, spec):
            raise Invalid("record", [f"check {number}: {wrong[0]}"])
        found.append(Check(kind, spec))
    return tuple(found)


def _without(record: Mapping[str, Json], used: set[str]) -> dict[str, Json]:
    return {key: value for key, value in record.items() if key not in used | {MARK}}


# --- Formats of third parties. A function installed as a plug-in of the kind ``trajectories`` (its name is the format's), or
# named as ``module:function``, gets a record as it was read (for a file that is one log, {"log", "lines"}) and gives one
# in the form ``openai-chat``, several, or None for what it does not know. It has the rights of the person who imports.


def converter(place: str) -> Convert:
    """The function at ``module:function``, also of the current folder. Raises UserError."""
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name) if module and name else None
    except (ImportError, AttributeError, SyntaxError, ValueError) as error:
        raise UserError(f"'{place}' cannot be imported: {error}; write module:function.") from None
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise UserError(f"'{place}' is no function; write module:function.")
    convert: Convert = found
    return convert


def converted(record: Json, convert: Convert) -> Sequence[ChatConversation]:
    """The conversations that a third party's function makes of a record. Raises Invalid, whatever it does."""
    given, error = attempted(lambda: convert(record))
    if isinstance(error, Exception):
        raise Invalid("record", [f"the converter failed: {said(error)}"])
    if error is not None:
        raise error
    if given is None:
        raise Invalid("record", ["the converter does not know it"])
    return [conversation for one in _each(given) for conversation in read(one, "openai-chat")]


def _each(given: Json) -> Iterator[Mapping[str, Json]]:
    for one in given if isinstance(given, list | tuple) else [given]:
        if not isinstance(one, dict):
            raise Invalid("record", [f"the converter gave {type(one).__name__}, and no record"])
        yield one
