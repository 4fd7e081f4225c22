"""Session logs of Claude Code and of Codex, and files that are one list of messages.

Neither log has a published schema. Claude Code: a line an event, ``type`` user or assistant with a message in
Anthropic's form (one answer of the model over several lines of one ``message.id``), others are bookkeeping;
``isSidechain`` marks the talk of a helper. Codex: {"timestamp", "type", "payload"}, where ``response_item``
holds items of OpenAI's Responses; before September 2025 the items stood in the lines themselves.
A session says nothing of whether the person got what was wanted, so its outcome is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from agentos.domain import Json
from agentos.errors import Invalid, shown
from agentos.trajectories.conversations import (
    UNKNOWN,
    ChatConversation,
    MessageLog,
    checked_messages,
    first_request,
    part_of,
    text_of,
)
from agentos.trajectories.readers.records import plain_json

_ABOUT = ("sessionId", "cwd", "version", "gitBranch")
_NO_GOAL = (
    "<command-name>",
    "<command-message>",
    "# AGENTS.md",
    "[Request interrupted",
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
)
_TAGGED = re.compile(
    r"\A\s*<([\w-]+)(?:\s[^>]*)?>.*</\1>\s*\Z", re.DOTALL
)  # what a program adds to a request
_EXITED = re.compile(r"^(?:Exit code: ?|Process exited with code )(-?\d+)$", re.MULTILINE)
_OUTPUT = re.compile(r"^Output:\s*", re.MULTILINE)


def claude_code(record: Mapping[str, Json]) -> list[ChatConversation]:
    """One session; helpers' talk (sidechains), what the program told itself and what a person took back are left
    out."""
    lines = [line for line in _without_rewound(_lines(record)) if line.get("type") in ("user", "assistant")]
    own = [line for line in lines if not line.get("isSidechain")] or lines  # a helper has a file of its own
    log = MessageLog()
    seen: set[Json] = set()
    for line in own:
        message = line.get("message")
        if not isinstance(message, dict) or line.get("isMeta") or line.get("uuid") in seen:
            continue
        if isinstance(line.get("uuid"), str):
            seen.add(line["uuid"])  # a session that was taken up again repeats lines
        _anthropic(log, message, message.get("id") if line["type"] == "assistant" else None)
    about = next((line for line in own if "sessionId" in line), {})
    return [_session(log, {key: about[key] for key in _ABOUT if key in about})]


def _without_rewound(lines: Sequence[Mapping[str, Json]]) -> Iterator[Mapping[str, Json]]:
    """Where a person went back and asked anew after the same message, only the last request and what followed it."""
    last = {line["parentUuid"]: line.get("uuid") for line in lines if _asks(line) and line.get("parentUuid")}
    gone: set[Json] = set()
    for line in lines:
        above = line.get("parentUuid") or line.get("logicalParentUuid")
        name = line.get("uuid")
        if above in gone or (_asks(line) and above in last and last[above] != name):
            gone.add(name)
        else:
            yield line


def _asks(line: Mapping[str, Json]) -> bool:
    """Is it a person's own message (and no answer of a tool)?"""
    message = line.get("message")
    if line.get("type") != "user" or line.get("isMeta") or not isinstance(message, dict):
        return False
    return isinstance(line.get("uuid"), str) and not _has_blocks(message)


def codex(record: Mapping[str, Json]) -> list[ChatConversation]:
    """One rollout file."""
    log = MessageLog()
    about: dict[str, Json] = {}
    for line in _lines(record):
        kind, payload = line.get("type"), line.get("payload")
        if kind == "session_meta" and isinstance(payload, dict):
            about = {key: payload[key] for key in ("id", "cwd", "cli_version", "git") if payload.get(key)}
        elif kind == "response_item" and isinstance(payload, dict):
            _codex_item(log, payload)
        elif "payload" not in line:
            _codex_item(log, line)
    return [_session(log, about)]


def _codex_item(log: MessageLog, item: Mapping[str, Json]) -> None:
    kind, call_id = item.get("type"), str(item.get("call_id") or item.get("id"))
    if kind == "message" and item.get("role") in ("user", "assistant", "system", "developer"):
        content = item.get("content")
        log.say(item["role"], text_of(content) if isinstance(content, list) else content)
    elif kind == "function_call":
        log.call(call_id, str(item.get("name")), item.get("arguments"))
    elif kind == "custom_tool_call":
        log.call(call_id, str(item.get("name")), {"input": item.get("input")})
    elif kind == "local_shell_call":
        log.call(call_id, "shell", item.get("action"))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        content, failed = _codex_output(item.get("output"))
        log.answer(call_id, content, failed=failed)


def _codex_output(output: Json) -> tuple[Json, bool]:
    """What a call gave and whether it says that it failed: as text, parts or an object, or packed as JSON text."""
    if isinstance(output, str) and output.startswith('{"output"'):
        try:
            output = plain_json(output)
        except ValueError:
            return output, False
    if isinstance(output, dict):
        about = output.get("metadata")
        code = part_of(about, "exit_code")
        content = output.get("output", output.get("content", output))
        silent = code == 1 and not content  # grep, diff and test say "no" so
        failed = output.get("success") is False or (isinstance(code, int) and code != 0 and not silent)
        return ("" if content is None else content), failed
    if isinstance(output, list):
        output = text_of(output) or output
    if not isinstance(output, str):
        return ("" if output is None else output), False
    head, told = ([*_OUTPUT.split(output, maxsplit=1), ""])[:2]
    exited = _EXITED.search(head)
    code = int(exited[1]) if exited else 0
    return output, code not in (0, 1) or (code == 1 and bool(told.strip()))


def in_openai_form(messages: Json) -> Json:
    """The messages; those with Anthropic's blocks in OpenAI's form. What is no list is left as it is."""
    if not isinstance(messages, list) or not any(_has_blocks(message) for message in messages):
        return messages
    log = MessageLog()
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            raise Invalid("record", [f"message {number} is no object"])
        _anthropic(log, message, number)
    return log.messages()


def _has_blocks(message: Json) -> bool:
    content = part_of(message, "content")
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and part.get("type") in ("tool_use", "tool_result") for part in parts)


def _anthropic(log: MessageLog, message: Mapping[str, Json], turn: Json) -> None:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise Invalid("record", [f"a message has the role {shown(role, 40)}"])
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        kind = part_of(block, "type")
        if kind == "text":
            log.say(role, block.get("text"), turn)
        elif kind == "tool_use":
            log.call(str(block.get("id")), str(block.get("name")), block.get("input"), turn)
        elif kind == "tool_result":
            told = block.get("content")
            told = text_of(told) if isinstance(told, list) else told
            log.answer(str(block.get("tool_use_id")), told or "", failed=block.get("is_error") is True)


def _session(log: MessageLog, about: Mapping[str, Json]) -> ChatConversation:
    messages = log.messages()
    asked = [item for item in messages if not _is_added(text_of(item.get("content")))]
    if log.stray:
        about = {**about, "stray_answers": log.stray}
    goal = first_request(asked) or first_request(messages)
    return ChatConversation(goal, checked_messages(messages), UNKNOWN, rest=about)


def _is_added(text: str) -> bool:
    return text.lstrip().startswith(_NO_GOAL) or _TAGGED.match(text) is not None


def _lines(record: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    lines = record.get("lines")
    if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
        raise Invalid("record", ["it is no session log: 'lines' must be a list of objects"])
    return lines
