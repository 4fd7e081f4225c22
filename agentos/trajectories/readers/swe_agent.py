"""Trajectories of SWE-agent (``.traj``) and mini-swe-agent (``.traj.json``).

SWE-agent: {"trajectory": [{"action", "observation", "response", "thought", …}], "history": [messages],
"info": {"exit_status", "submission", …}} (swe-agent.com, Output files). mini-swe-agent: {"messages", "info",
"trajectory_format": "mini-swe-agent-1" or "-1.1"}; in the first form, and with models without tool calls, a
command stands in the text and its output is the next user's message. What either submitted is a patch that
somebody else judges: unless the file holds the judgement, a submission's outcome is unknown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from agentos.domain import Json, Result
from agentos.errors import Invalid
from agentos.trajectories.conversations import (
    UNKNOWN,
    ChatConversation,
    ConversationEnd,
    MessageLog,
    checked_messages,
    first_request,
    part_of,
    text_of,
)

_COMMAND = re.compile(r"```(?:bash|sh|mswea_bash_command)(?>\s*\n)(.*?)\n?```", re.DOTALL)
_RETURNED = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")
# SWE-agent's commands beside the shell's
_OWN = re.compile(r"[a-z]+(?:_[a-z]+)+|edit|open|create|goto|submit")
_TASKS = ("pr_description", "task", "issue")  # tags around it
_ABOVE = re.compile(r"\AConsider the following \w+ description:")
_LIMITS = ("cost", "limit", "context", "time")


def swe_agent(record: Mapping[str, Json]) -> list[ChatConversation]:
    """One ``.traj`` file."""
    history = record.get("history") or []
    turns = record["trajectory"] if "trajectory" in record else _turns(history)
    if not isinstance(turns, list) or not isinstance(history, list):
        raise Invalid("record", ["'trajectory' and 'history' must be lists"])
    log = MessageLog()
    for message in _before_the_first_answer(history):
        log.say(message["role"], message.get("content"))
    for number, turn in enumerate(turns):
        if not isinstance(turn, dict):
            raise Invalid("record", [f"turn {number} of 'trajectory' is no object"])
        said, action = turn.get("response") or turn.get("thought"), str(turn.get("action") or "").strip()
        log.say("assistant", said if isinstance(said, str) else None, number)
        if action:
            log.call(f"turn-{number}", *_own_command(action), number)
            log.answer(f"turn-{number}", str(turn.get("observation") or ""))
        elif turn.get("observation"):
            log.say("user", str(turn["observation"]))
    return [_conversation(record, log.messages(), {"trajectory", "history"})]


def _turns(history: Json) -> list[Json]:
    """What ``trajectory`` would hold, of a file that has only the messages (demonstrations)."""
    found: list[Json] = []
    for message in history if isinstance(history, list) else []:
        if not isinstance(message, dict) or message.get("is_demo"):
            continue
        content = text_of(message.get("content"))
        if message.get("role") == "assistant":
            found.append({"response": content, "action": message.get("action")})
        elif found:
            found[-1].setdefault("observation", content)
    return found


def mini_swe_agent(record: Mapping[str, Json]) -> list[ChatConversation]:
    """One ``.traj.json`` file."""
    given = record["messages"]
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise Invalid("record", ["'messages' must be a list of objects"])
    log = MessageLog()
    asked = ""  # the id of the command in a text that waits for its output
    for number, message in enumerate(given):
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            asked = _assistant(log, message, number)
        elif role == "tool" or (role == "user" and asked):
            call_id = asked or str(message.get("tool_call_id"))
            log.answer(call_id, content, failed=_failed(text_of(content)))
            asked = ""
        elif role in ("system", "user"):
            log.say(str(role), content)
    return [_conversation(record, log.messages(), {"messages"})]


def _assistant(log: MessageLog, message: Mapping[str, Json], number: int) -> str:
    log.say("assistant", message.get("content"), number)
    calls = message.get("tool_calls") or []
    for call in calls:
        function = part_of(call, "function")
        if not isinstance(function, dict):
            raise Invalid("record", [f"message {number} has a tool call without a function"])
        log.call(str(call.get("id")), str(function.get("name")), function.get("arguments"), number)
    commands = _COMMAND.findall(text_of(message.get("content")))
    if calls or len(commands) != 1:
        return ""
    log.call(f"command-{number}", "bash", {"command": commands[0]}, number)
    return f"command-{number}"


def _failed(text: str) -> bool:
    """A command that ended with 1 and in silence (grep, diff, test) said no."""
    found = _RETURNED.search(text)
    code = int(found[1]) if found else 0
    return code not in (0, 1) or (code == 1 and bool(_within(text, "output")))


def _within(text: str, tag: str) -> str:
    """What stands between a tag and its end, "" for nothing. No pattern: spaces without an end would take it for ever."""
    inner, closed, _ = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return inner.strip() if closed else ""


def _before_the_first_answer(history: Sequence[Json]) -> list[Json]:
    """The prompt and the task, without demonstrations."""
    found = []
    for message in history:
        if not isinstance(message, dict) or message.get("role") not in ("system", "user"):
            if isinstance(message, dict) and message.get("is_demo"):
                continue
            break
        if not message.get("is_demo"):
            found.append(message)
    return found


def _own_command(action: str) -> tuple[str, Json]:
    """The tool and its arguments: SWE-agent writes its own commands like those of the shell."""
    try:
        words = shlex.split(action.partition("\n")[0])
    except ValueError:
        words = action.split()
    if not words or not _OWN.fullmatch(words[0]):
        return "bash", {"command": action}
    if words[0] == "str_replace_editor" and len(words) > 2:
        return words[0], {"command": words[1], "path": words[2], "line": action}
    return words[0], {"line": action, **({"path": words[1]} if len(words) > 1 and words[0] != "edit" else {})}


def _conversation(record: Mapping[str, Json], messages: list[Json], used: set[str]) -> ChatConversation:
    goal = next(
        (text for key in ("problem_statement", "task") if isinstance(text := record.get(key), str)), ""
    )
    asked = first_request(messages)
    tag = min(_TASKS, key=lambda name: (not _within(asked, name), asked.find(f"<{name}>")))
    task = _ABOVE.sub("", _within(asked, tag), count=1).strip()  # its instructions are the same in all tasks
    return ChatConversation(
        goal=goal or task or asked,
        messages=checked_messages(messages),
        ended=_ended(record),
        rest={key: value for key, value in record.items() if key not in used},
    )


def _ended(record: Mapping[str, Json]) -> ConversationEnd:
    info = about if isinstance(about := record.get("info"), dict) else {}
    for value in (record.get("resolved"), info.get("resolved"), record.get("target")):
        if isinstance(value, bool):
            return ConversationEnd(Result.PASSED, 1.0) if value else ConversationEnd(Result.FAILED, 0.0)
    status = str(info.get("exit_status") or "")
    if info.get("submission") or status.lower() in ("", "submitted"):
        return ConversationEnd(UNKNOWN.result, 0.0, f"exit status {status}" if status else "")
    ran_out = any(word in status.lower() for word in _LIMITS)
    return ConversationEnd(Result.BUDGET if ran_out else Result.FAILED, 0.0, f"exit status {status:.100}")
