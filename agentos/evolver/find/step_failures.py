"""What a step says of its own failure, told apart from trouble that it merely quotes.

A "timeout" in a log that is being read is no timeout. So a step counts as failed only by what says how
*it* went: its fault, the exit status that a tool reports, or, where a run was made elsewhere and
nothing is structured, the head of a tool's answer. The kind of failure is read from the one line that
reports it, never from the rest of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agentos.domain import Fault, Json, Step, is_reference

LINE_MAX = 300
_READ_MAX = 4_000  # characters of the reporting line
_JSON_MAX = 20_000  # characters; a longer answer is content

# What a line that reports a failure may be about; the first that fits. Kinds, not causes.
_KINDS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("timeout", r"\btim(?:ed|e|ing)[ -]?out\b|timeouterror|deadline exceeded"),
        ("rate_limit", r"rate.?limit|too many requests|\b429\b|quota exceeded"),
        (
            "denied",
            r"permission ?denied|unauthori[sz]ed|forbidden|\b40[13]\b|not (?:authorized|permitted|allowed)"
            r"|authentication|invalid (?:api[ _-]?)?(?:key|token|credentials)",
        ),
        (
            "network",
            r"connection (?:refused|reset|aborted|error|failed)|unreachable|name resolution"
            r"|\bdns\b|establish a (?:new )?connection",
        ),
        ("not_found", r"not found|no such|does not exist|no module named|\b404\b|cannot find|filenotfound"),
        ("memory", r"memoryerror|out of memory|cannot allocate"),
        ("state", r"\balready\b|not enough|insufficient|not available|\bconflict\b|\bcannot be\b|in use"),
        (
            "arguments",
            r"\binvalid\b|\brequired\b|\bmissing\b|must be|unexpected (?:keyword|argument)|not valid"
            r"|validationerror|decoding json|unrecogni[sz]ed (?:option|argument)",
        ),
    )
)
_EXCEPTION = re.compile(r"^(?:\w+\.)*([A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout))\b.*$", re.MULTILINE)
# "exitcode: 1 (…)", "The script ran, then exited with Unix exit code: 1", "exit status 2"
_EXIT = re.compile(
    r"\A[^\n]{0,60}?\bexit(?:ed with)?[ _]?(?:\w+ )?(?:exit )?(?:code|status)(?:: ?|=| )(-?\d+)\b",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"\A\W{0,3}(?:fatal |internal )?(?:\w+\.)*\w*(?:error|exception|failed|failure|fatal)\b\W{0,2}[:\n]", re.I
)
_TAGS = re.compile(r"</?\w+>")  # around what a tool says, in some logs
_CUT_EXIT = re.compile(r'\A\{"ok": ?true, ?"output": ?\{"exit": ?(-?\d+)')
_EXITS = ("exit", "exit_code", "exitcode", "returncode")
_TELLS = ("error", "stderr", "message", "stdout", "output")
_READS = re.compile(r"(?:^|[_\W])(?:read|cat|view|head|tail|grep|logs?)(?:$|[_\W])")  # names of tools


def fault_in(step: Step) -> Fault | None:
    """Why the step failed by its own account: its fault, or one made of what it observed; else None."""
    if step.fault is not None:
        return step.fault
    seen = step.observation
    if not isinstance(seen, dict):
        return None
    if step.node == "act":
        if "blob" in seen and is_reference(seen):
            return _cut(seen)
        output = seen.get("output")
        if isinstance(output, str) and _told_as_error(seen.get("message")):
            text = _TAGS.sub("", output).strip()
            whole = _EXIT.match(text) or "Traceback" in text
            return _made(_conclusion(text) if whole else text.partition("\n")[0])
        if isinstance(output, str):
            # Tools of this home raise: what they give as text is content, whatever it begins with.
            return None if "ok" in seen else _of_text(output, reads=_READS.search(tool_of(step)) is not None)
        return _of_record(output) if isinstance(output, dict) else None
    return _of_speaker(seen.get("message"))


def speaker_of(step: Step) -> str:
    """Who spoke, in an imported run of several agents; "" where nobody is named."""
    if step.node == "act":
        return ""  # the name there is the tool's
    message = step.observation.get("message") if isinstance(step.observation, dict) else None
    if not isinstance(message, dict):
        return ""
    name = message.get("agent") or message.get("name")
    return name.partition(" (")[0] if isinstance(name, str) else ""


def tool_of(step: Step) -> str:
    """The tool that an ``act`` step called."""
    return str(step.action.get("tool", "")) if isinstance(step.action, dict) else str(step.action)


def _told_as_error(message: Json) -> bool:
    """Does the log that the run was read from say that the call failed?"""
    return isinstance(message, dict) and message.get("is_error") is True


def _cut(reference: Mapping[str, Any]) -> Fault | None:
    """Of a large observation only head and tail are here; the exit status of a command comes first."""
    found = _CUT_EXIT.match(str(reference["head"]))
    code = int(found[1]) if found else 0
    return None if code in (0, 1) else _made(f"exit status {code}")


def _of_speaker(message: Json) -> Fault | None:
    """A terminal that is one of the speakers says how a program ended; any other speaker may quote."""
    if not isinstance(message, dict) or not (message.get("agent") or message.get("name")):
        return None
    content = message.get("content")
    if not isinstance(content, str):
        return None
    found = _EXIT.match(content)
    return _made(_conclusion(content)) if found and int(found[1]) else None


def _of_record(output: Mapping[str, Any]) -> Fault | None:
    """An answer with fields: an exit status, a time that ran out, or an error."""
    if output.get("timed_out") is True:
        return Fault("timeout", "the command did not end in time")
    told = next((text for key in _TELLS if (text := _words(output.get(key)))), "")
    for key in _EXITS:
        code = output.get(key)
        if isinstance(code, int) and not isinstance(code, bool) and code:
            # grep, diff and test say "no" with 1, in silence
            return None if code == 1 and not _words(output.get("stderr")) else _made(_conclusion(told))
    if output.get("error") or output.get("ok") is False or output.get("success") is False:
        return _made(told.strip().partition("\n")[0])
    return None


def _of_text(text: str, *, reads: bool) -> Fault | None:
    if text.startswith("{") and len(text) <= _JSON_MAX:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            return _of_record(record)
    if found := _EXIT.match(text):
        return _made(_conclusion(text)) if int(found[1]) else None
    if reads:
        return None
    if text.startswith("Traceback (most recent call last)"):
        return _made(_conclusion(text))
    return _made(text.strip().partition("\n")[0]) if _HEAD.match(f"{text[:LINE_MAX]}\n") else None


def _words(value: Json) -> str:
    if isinstance(value, dict):
        value = value.get("message") or value.get("type")
    return value.strip() if isinstance(value, str) else ""


def _conclusion(text: str) -> str:
    """The line that a failed program ends with: of its last exception, else the last one."""
    exceptions = list(_EXCEPTION.finditer(text)) if "Traceback" in text or "Error" in text else []
    return exceptions[-1][0] if exceptions else text.strip().rpartition("\n")[2]


def _made(line: str) -> Fault:
    line = line.strip()[:_READ_MAX]
    kind = next((name for name, pattern in _KINDS if pattern.search(line)), "")
    raised = _EXCEPTION.match(line)
    return Fault(kind or (raised[1] if raised else "error"), line[:LINE_MAX])
