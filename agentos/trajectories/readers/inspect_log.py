"""Logs of inspect_ai: each sample is a run (inspect.aisi.org.uk/eval-logs.html).

A log is {"eval", "samples", …} in one JSON file, or a zip file (``.eval``) with ``header.json`` and
``samples/ID_epoch_N.json``. A sample passed if every score that says something says so; a score by name or
number alone (a dictionary, a text other than C, I, P, N) leaves the outcome unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentos.domain import Json, Result
from agentos.errors import Invalid, shown
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
from agentos.trajectories.readers.records import RECORD_MAX

_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_RESULTS = {"time": Result.TIMEOUT, "working": Result.TIMEOUT}
_ASIDE = "attachment://"
_ABOUT_MAX = 1_000  # characters of what the header says: each sample repeats it
_KEPT = ("id", "epoch", "target", "scores", "metadata", "uuid")


def inspect_log(record: Mapping[str, Json]) -> list[ChatConversation]:
    """All samples of a log, or the one that was read from a zip file."""
    samples, header = record["samples"], record["eval"]
    if not isinstance(samples, list) or not all(isinstance(sample, dict) for sample in samples):
        raise Invalid("record", ["'samples' must be a list of objects"])
    said = {key: header[key] for key in ("task", "model", "run_id") if key in header} if header else {}
    about = {key: value for key, value in said.items() if len(str(value)) <= _ABOUT_MAX}
    return [_sample(sample, about) for sample in samples]


def _sample(sample: Mapping[str, Json], about: Mapping[str, Json]) -> ChatConversation:
    if isinstance(kept := sample.get("attachments"), dict) and kept:
        aside = _Attachments(kept)
        sample = {**sample, **{key: aside.put_back(sample.get(key)) for key in ("input", "messages")}}
    log = MessageLog()
    for number, message in enumerate(sample.get("messages") or []):
        role = part_of(message, "role")
        if role == "tool":
            failed = bool(message.get("error"))
            told = message["error"].get("message") if failed and isinstance(message["error"], dict) else ""
            log.answer(str(message.get("tool_call_id")), message.get("content") or told or "", failed=failed)
        elif role in ("system", "user", "assistant"):
            log.say(role, message.get("content"), number)
            for call in message.get("tool_calls") or []:
                if not isinstance(call, dict):
                    raise Invalid("record", [f"message {number} has a tool call that is no object"])
                log.call(str(call.get("id")), str(call.get("function")), call.get("arguments"), number)
        else:
            raise Invalid("record", [f"message {number} has the role {shown(role, 40)}"])
    messages = log.messages()
    given = sample.get("input")
    return ChatConversation(
        goal=given if isinstance(given, str) else first_request(messages),
        messages=checked_messages(messages),
        ended=_ended(sample),
        rest={**{key: sample[key] for key in _KEPT if sample.get(key) is not None}, "inspect": dict(about)},
    )


class _Attachments:
    """Texts that the log keeps aside. Each may be named as often as one likes, so all that is put back is counted."""

    def __init__(self, kept: Mapping[str, Json]) -> None:
        self._kept = kept
        self._room = RECORD_MAX

    def put_back(self, value: Json) -> Json:
        """The value with each text where it is named. Raises Invalid where that grows beyond a record."""
        if isinstance(value, dict):
            return {key: self.put_back(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.put_back(item) for item in value]
        if not isinstance(value, str) or not value.startswith(_ASIDE):
            return value
        found = self._kept.get(value.removeprefix(_ASIDE))
        if not isinstance(found, str):
            return value
        self._room -= len(found)
        if self._room < 0:
            raise Invalid("record", [f"its attachments come to more than {RECORD_MAX >> 20} MB"])
        return found


def _ended(sample: Mapping[str, Json]) -> ConversationEnd:
    scores = sample.get("scores") if isinstance(sample.get("scores"), dict) else {}
    told = [(name, score) for name, score in (scores or {}).items() if isinstance(score, dict)]
    values = {name: _number(score.get("value")) for name, score in told}
    known = {name: value for name, value in values.items() if value is not None}
    if known:
        missed = [name for name, value in known.items() if value < 1]
        why = "; ".join(
            f"{name}: {text_of(score.get('explanation')) or score.get('value')}"[:300]
            for name, score in told
            if name in missed
        )
        score = min(max(sum(known.values()) / len(known), 0.0), 1.0)
        return ConversationEnd(Result.FAILED if missed else Result.PASSED, score, why)
    limit, error = sample.get("limit"), sample.get("error")
    if isinstance(limit, dict):
        kind = str(limit.get("type"))
        return ConversationEnd(_RESULTS.get(kind, Result.BUDGET), 0.0, f"it reached its limit: {kind}")
    why = str(error.get("message") or "")[:300] if isinstance(error, dict) else ""
    return ConversationEnd(UNKNOWN.result, 0.0, why)


def _number(value: Json) -> float | None:
    if isinstance(value, str):
        return _LETTERS.get(value)
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None
