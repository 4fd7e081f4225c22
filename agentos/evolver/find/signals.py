"""Signals: cheap attributes of a trajectory, computed without a model, in one pass over its steps.

They mark a run as worth looking at; they are no measure of quality. The rules follow "Signals"
(arXiv 2604.00356) with two changes learnt from its misfires: a failure is read from the step's
structured fault, never from quoted text, and calls of tools that only read do not count as drift.

``deviation`` compares what a run changed with what other runs of its task changed, and looks at no outcome. Of all
that was measured (docs/understand/signals.md) it tells most of failure, and mostly of the task.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import fmean
from typing import Any

from agentos.domain import Fault, Json, Step, canonical, is_reference

LOOP_MIN = 3  # equal calls in a row
CYCLE_MIN = 3  # repetitions of a pattern of calls
CYCLE_PERIODS = range(2, 6)
FORGOTTEN_MIN = 3  # calls from one to its equal
STAGNANT_MIN = 3  # equal observations in a row, of differing calls

OTHERS_MAX = 20  # newest runs of the task that a run is compared with

_EXHAUSTION = frozenset({"timeout", "memory", "limit", "budget", "signal", "killed"})
_CHANGES = re.compile(
    r"(?:^|[_\W])(?:add|apply|append|book|buy|cancel|commit|create|delete|edit|exchange|insert|modify|move"
    r"|multiedit|notebookedit|patch|post|put|remove|rename|replace|return|send|set|submit|update|write)",
    re.IGNORECASE,
)
_READS = frozenset({"view", "read", "open", "list"})  # commands of an editor that does both
_PATHS = ("path", "file_path", "filename", "file", "notebook_path")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\+\+\+ (?:b/)?(\S+)", re.MULTILINE)
_SHELL = re.compile(
    r"\bsed -i\b[^|;&]*?(\S+)\s*$|>>?\s*([\w./-]+\.\w+)|\b(?:tee|patch)\s+(?:-a\s+)?(\S+)", re.M
)


class Signal(StrEnum):
    """What a trajectory shows."""

    FAILURE = "failure"  # a step failed by its own account
    RETRY_LOOP = "retry_loop"  # the same call, again and again
    OSCILLATION = "oscillation"  # a short pattern of calls, again and again
    DRIFT = "drift"  # the same tool with ever other arguments, each failing
    STAGNATION = "stagnation"  # differing calls, the same observation
    EXHAUSTION = "exhaustion"  # a limit was reached
    FORGOTTEN = "forgotten"  # the same call with the same result once more, long after the first


@dataclass(frozen=True, slots=True)
class SignalHit:
    """One signal, the step that shows it, and the step that it began with."""

    signal: Signal
    step: int
    since: int
    detail: str = ""


def read_signals(steps: Iterable[Step]) -> tuple[SignalHit, ...]:
    """All signals of one trajectory: faults in order, then loops and stagnation."""
    found: list[SignalHit] = []
    acts: list[Step] = []
    for step in steps:
        fault = fault_in(step)
        if fault is not None:
            kind = Signal.EXHAUSTION if fault.type in _EXHAUSTION else Signal.FAILURE
            found.append(SignalHit(kind, step.index, step.index, fault.type))
        if step.node == "act":
            acts.append(step)
    if len(acts) >= LOOP_MIN:
        loops = _loops(acts)
        found += loops
        found += _stagnation(acts)
        found += [] if loops else _forgotten(acts)
    return tuple(found)


def _loops(acts: Sequence[Step]) -> list[SignalHit]:
    """Retry loops, then drift, then oscillation; a later kind only where no earlier one covers it."""
    found: list[SignalHit] = []
    start = 0
    for position in range(1, len(acts) + 1):
        if position < len(acts) and tool_of(acts[position]) == tool_of(acts[start]):
            continue
        streak = acts[start:position]
        start = position
        if len(streak) < LOOP_MIN:
            continue
        if all(step.action == streak[0].action for step in streak):
            found.append(_sign(Signal.RETRY_LOOP, streak, f"{len(streak)} equal calls"))
        elif all(fault_in(step) is not None for step in streak):
            found.append(_sign(Signal.DRIFT, streak, f"{len(streak)} calls, none worked"))
    return found or _oscillation(acts)


def _oscillation(acts: Sequence[Step]) -> list[SignalHit]:
    tools = [tool_of(step) for step in acts]
    for period in CYCLE_PERIODS:
        length = period * CYCLE_MIN
        for start in range(len(tools) - length + 1):
            pattern = tools[start : start + period]
            if len(set(pattern)) > 1 and tools[start : start + length] == pattern * CYCLE_MIN:
                return [_sign(Signal.OSCILLATION, acts[start : start + length], " → ".join(pattern))]
    return []


def _stagnation(acts: Sequence[Step]) -> list[SignalHit]:
    streak = 1
    for place, (before, step) in enumerate(pairwise(acts), start=1):
        same = _result(step) == _result(before) and step.action != before.action
        streak = streak + 1 if same else 1
        if streak == STAGNANT_MIN:
            shown = acts[place - streak + 1 : place + 1]
            return [_sign(Signal.STAGNATION, shown, f"{streak} calls, one observation")]
    return []


def _sign(signal: Signal, streak: Sequence[Step], detail: str) -> SignalHit:
    return SignalHit(signal, streak[-1].index, streak[0].index, detail)


def _forgotten(acts: Sequence[Step]) -> list[SignalHit]:
    """What was known already was asked again: it was lost from view, or from mind."""
    found: list[SignalHit] = []
    last: dict[str, int] = {}
    for place, step in enumerate(acts):
        call = repr(step.action)  # a tenth of what a canonical form costs; arguments come in one order
        before = last.get(call, place)
        if place - before >= FORGOTTEN_MIN and _result(acts[before]) == _result(step):
            first = acts[before].index
            found.append(SignalHit(Signal.FORGOTTEN, step.index, first, f"as {place - before} calls before"))
        last[call] = place
    return found


def _result(step: Step) -> Json:
    """What a call gave, without what differs from call to call whatever it gave (the ids of imports)."""
    if isinstance(step.observation, dict) and "output" in step.observation:
        return step.observation["output"]
    return step.observation


# --- compared with other runs of the task ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far a run's changes are from those of ``others`` runs: 0 (the same) to 1 (none in common), on average."""

    share: float
    others: int


def deviation(steps: Sequence[Step], others: Iterable[Sequence[Step]]) -> Deviation | None:
    """None where there is no other run to compare with, or where none of them changed anything."""
    own = changes(steps)
    beside = [changes(other) for other in others]
    if not beside or not (own or any(beside)):
        return None
    return Deviation(fmean(_distance(own, other) for other in beside), len(beside))


def _distance(one: Counter[str], other: Counter[str]) -> float:
    """Jaccard's, over multisets."""
    union = (one | other).total()
    return 1 - (one & other).total() / union if union else 0.0


def changed_names(step: Step) -> Iterator[str]:
    """Tools that change something, with the files they named; a call that failed changed nothing."""
    tool, files = tool_of(step), _files(step)
    if files is not None:
        yield from (f"{tool} {name}" for name in files)
        if not files and _is_change(step):
            yield tool


def changes(steps: Sequence[Step]) -> Counter[str]:
    """Each change of a run and how often it was made: the tool and the file that it edited; where no file is
    named, the tool and its arguments."""
    found: Counter[str] = Counter()
    for step in steps:
        files = _files(step) if step.node == "act" else None
        if files:
            found.update(f"{tool_of(step)} {name}" for name in files)
        elif files is not None and _is_change(step):
            said = canonical(step.action).decode("utf-8", "surrogatepass")
            found[f"{tool_of(step)} {said}"] += 1
    return found


def _files(step: Step) -> list[str] | None:
    """The files that a call names as changed; None for one that changed nothing."""
    args = _args(step)
    texts = [_command(args.get(key)) for key in ("command", "cmd", "input", "patch")]
    if fault_in(step) is not None or texts[0] in _READS:
        return None
    files = [name for text in texts for found in _PATCHED.findall(text) for name in found if name]
    files += [name for text in texts for found in _SHELL.findall(text) for name in found if name]
    if _is_change(step):
        files += [path for key in _PATHS if isinstance(path := args.get(key), str)]
    return [_base(name) for name in files]


def _is_change(step: Step) -> bool:
    return _CHANGES.search(tool_of(step)) is not None or isinstance(_args(step).get("old_str"), str)


def _args(step: Step) -> Mapping[str, Any]:
    args = step.action.get("args") if isinstance(step.action, Mapping) else None
    return args if isinstance(args, Mapping) else {}


def _command(value: Json) -> str:
    """A command as text, also one that is given as a list of words; "" for anything else."""
    words = value if isinstance(value, list) else [value]
    return " ".join(word for word in words if isinstance(word, str))


def _base(path: str) -> str:
    """The last part of a path: what is above it differs from machine to machine."""
    return path.strip("'\"").rstrip("/").rpartition("/")[2]


# --- What a step says of its own failure, told apart from trouble that it merely quotes ----------
# A "timeout" in a log that is being read is no timeout. So a step counts as failed only by what says how
# *it* went: its fault, the exit status that a tool reports, or, where a run was made elsewhere and
# nothing is structured, the head of a tool's answer. The kind of failure is read from the one line that
# reports it, never from the rest of the text.


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
    r"\A[^\n]{0,60}?\bexit(?:ed with)?[ _]?(?:\w+ )?(?:exit )?(?:code|status)(?:: ?|=| )(-?\d{1,10})\b",
    re.IGNORECASE,
)
_HEAD = re.compile(
    r"\A\W{0,3}(?:fatal |internal )?(?:\w+\.)*\w*(?:error|exception|failed|failure|fatal)\b\W{0,2}[:\n]", re.I
)
_TAGS = re.compile(r"</?\w+>")  # around what a tool says, in some logs
_CUT_EXIT = re.compile(r'\A\{"ok": ?true, ?"output": ?\{"exit": ?(-?\d{1,10})\b')
_EXITS = ("exit", "exit_code", "exitcode", "returncode")
_TELLS = ("error", "stderr", "message", "stdout", "output")
_READING = re.compile(r"(?:^|[_\W])(?:read|cat|view|head|tail|grep|logs?)(?:$|[_\W])")  # names of tools


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
            return (
                None if "ok" in seen else _of_text(output, reads=_READING.search(tool_of(step)) is not None)
            )
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
