"""Spans of OpenTelemetry's conventions for generative AI, read as runs: each trace is one.

OTLP in its JSON form, as a collector's file exporter and ``agentos trajectory export --format otel
--content`` write it. Messages are those of ``gen_ai.input.messages`` and ``gen_ai.output.messages`` ({"role",
"parts"}, or OpenAI's form); where a span has none, the texts of a trace were not sent and it cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentos.domain import Json, Result
from agentos.errors import Invalid
from agentos.trajectories.conversations import (
    SAYS_NOTHING,
    UNKNOWN,
    ChatConversation,
    ConversationEnd,
    MessageLog,
    checked_messages,
    first_request,
    part_of,
)
from agentos.trajectories.readers import genai
from agentos.trajectories.readers.records import plain_json

_WHOLE = re.compile(r"-?[0-9]{1,20}")
_ERROR = (2, "STATUS_CODE_ERROR")
_TALKS = ("chat", "text_completion", "generate_content")
_PASSED, _FAILED = ("passed", "pass", "correct", "true"), ("failed", "fail", "incorrect", "false")


def otel(record: Mapping[str, Json]) -> list[ChatConversation]:
    """The traces of one export request, or of a file of them. Raises Invalid where one has no messages."""
    traces: dict[str, list[Mapping[str, Json]]] = {}
    for request in record.get("lines", [record]):
        for span in _spans(request):
            traces.setdefault(str(span.get("traceId")), []).append(span)
    found = [_trace(name, spans) for name, spans in traces.items() if any(_is_genai(span) for span in spans)]
    if not found:
        raise Invalid("record", ["no span in it is of generative AI (gen_ai.operation.name)"])
    return found


def _spans(request: Json) -> Iterator[Mapping[str, Json]]:
    for resource in _list(request, "resourceSpans"):
        for scope in _list(resource, "scopeSpans"):
            for span in _list(scope, "spans"):
                if isinstance(span, dict):
                    yield {**span, "attributes": _attributes(span)}


def _list(value: Json, key: str) -> list[Json]:
    found = part_of(value, key)
    return found if isinstance(found, list) else []


def _attributes(span: Mapping[str, Json]) -> dict[str, Json]:
    pairs = [item for item in _list(span, "attributes") if isinstance(item, dict)]
    return {str(item.get("key")): _value(item.get("value")) for item in pairs}


def _value(value: Json) -> Json:
    if not isinstance(value, dict) or not value:
        return None
    kind, found = next(iter(value.items()))
    if kind == "arrayValue":
        return [_value(item) for item in _list(found, "values")]
    if kind == "kvlistValue":
        return {str(item.get("key")): _value(item.get("value")) for item in _list(found, "values")}
    return int(found) if kind == "intValue" and _WHOLE.fullmatch(str(found)) else found


def _is_genai(span: Mapping[str, Json]) -> bool:
    return bool(_operation(span))


def _operation(span: Mapping[str, Json]) -> str:
    """As it is named, or as older instrumentations tell it: by the attributes that a request has."""
    attributes = span["attributes"]
    if isinstance(named := attributes.get(genai.OPERATION), str):
        return named
    if genai.TOOL_NAME in attributes:
        return genai.EXECUTE_TOOL
    keys = (genai.INPUT_MESSAGES, genai.OUTPUT_MESSAGES, "gen_ai.prompt.0.role", "gen_ai.completion.0.role")
    return "chat" if any(key in attributes for key in keys) else ""


def _start(span: Mapping[str, Json]) -> int:
    text = str(span.get("startTimeUnixNano", "0"))
    return int(text) if _WHOLE.fullmatch(text) else 0


def _trace(name: str, spans: list[Mapping[str, Json]]) -> ChatConversation:
    spans = sorted(spans, key=_start)
    log = MessageLog()
    talks = _TALKS if any(_operation(span) in _TALKS for span in spans) else ("invoke_agent",)
    told = 0  # messages of the conversation so far: each request repeats those before it
    for number, span in enumerate(spans):
        attributes = span["attributes"]
        operation = _operation(span)
        if operation in talks:
            asked = _messages(attributes.get(genai.INPUT_MESSAGES)) or _numbered(attributes, "gen_ai.prompt")
            for message in asked[told:]:
                _say(log, message, None if message.get("role") != "assistant" else f"in {number}")
            answered = _messages(attributes.get(genai.OUTPUT_MESSAGES))
            answered = answered or _numbered(attributes, "gen_ai.completion")
            for message in answered:
                _say(log, {**message, "role": "assistant"}, number)
            told = len(asked) + len(answered) if asked else told
        elif operation == genai.EXECUTE_TOOL:
            _tool(log, attributes, number, span)
    messages = log.messages()
    if not any(message["role"] == "assistant" for message in messages):
        raise Invalid("record", [f"trace {name:.32} holds no messages: they were not sent with the spans"])
    goal = first_request(messages)
    if not goal:  # agentos' own spans do not hold the request
        root = next((span for span in spans if not span.get("parentSpanId")), spans[0])
        goal = str(root.get("name"))
        messages = [{"role": "user", "content": goal}, *messages]
    return ChatConversation(goal, checked_messages(messages), _ended(spans), rest={"trace": name})


def _messages(value: Json) -> list[Mapping[str, Json]]:
    try:
        found = plain_json(value) if isinstance(value, str) else value
    except ValueError:
        return []
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _numbered(attributes: Mapping[str, Json], name: str) -> list[Mapping[str, Json]]:
    """Messages as one attribute a field: ``gen_ai.prompt.0.content`` (OpenLLMetry), in OpenAI's form."""
    found: list[Mapping[str, Json]] = []
    while (role := attributes.get(f"{name}.{len(found)}.role")) is not None:
        at = f"{name}.{len(found)}"
        message = {"role": role, "content": attributes.get(f"{at}.content")}
        calls: list[Json] = []
        while (tool := attributes.get(f"{at}.tool_calls.{len(calls)}.name")) is not None:
            call = f"{at}.tool_calls.{len(calls)}"
            function = {"name": tool, "arguments": attributes.get(f"{call}.arguments")}
            calls.append({"id": attributes.get(f"{call}.id"), "function": function})
        found.append({**message, "tool_calls": calls, "tool_call_id": attributes.get(f"{at}.tool_call_id")})
    return found


def _say(log: MessageLog, message: Mapping[str, Json], turn: Json) -> None:
    role = str(message.get("role"))
    parts = message.get("parts")
    if not isinstance(parts, list):  # OpenAI's form
        if role == "tool":
            log.answer(str(message.get("tool_call_id")), message.get("content") or "")
        elif role in ("system", "user", "assistant", "developer"):
            log.say(role, message.get("content"), turn)
            for call in _list(message, "tool_calls"):
                function = part_of(call, "function")
                if isinstance(function, dict):
                    log.call(str(call.get("id")), str(function.get("name")), function.get("arguments"), turn)
        return
    for part in parts:
        kind = part_of(part, "type")
        if kind == "text" and role in ("system", "user", "assistant"):
            log.say(role, part.get("content"), turn)
        elif kind == "tool_call":
            log.call(str(part.get("id")), str(part.get("name")), part.get("arguments") or {}, turn)
        elif kind == "tool_call_response":
            log.answer(str(part.get("id")), part.get("response", part.get("result")) or "")


def _tool(log: MessageLog, attributes: Mapping[str, Json], number: int, span: Mapping[str, Json]) -> None:
    """The call's answer, where the messages do not tell it themselves."""
    call_id = attributes.get("gen_ai.tool.call.id")
    result, failed = attributes.get(genai.TOOL_RESULT), _failed(span)
    waiting = log.waiting(str(attributes.get(genai.TOOL_NAME)))
    if not isinstance(call_id, str) or call_id not in waiting:
        call_id = next(iter(waiting), "")
    if not call_id:
        call_id = f"span-{number}"
        log.call(call_id, str(attributes.get(genai.TOOL_NAME)), attributes.get(genai.TOOL_ARGUMENTS), call_id)
    error = attributes.get(genai.ERROR_TYPE)
    log.answer(call_id, result if result is not None else f"{error}" if failed else "", failed=failed)


def _failed(span: Mapping[str, Json]) -> bool:
    status = span.get("status")
    return isinstance(status, dict) and status.get("code") in _ERROR


def _ended(spans: list[Mapping[str, Json]]) -> ConversationEnd:
    """What agentos wrote, what evaluations say, or that the agent's own span failed; else nobody knows."""
    for span in spans:
        said = span["attributes"].get("agentos.run.result")
        if said in SAYS_NOTHING:
            return ConversationEnd(Result.UNKNOWN, 0.0, said)
        if said in tuple(Result):
            score = span["attributes"].get("agentos.run.score")
            # first, for a whole number may be too large for a float
            score = min(max(score, 0), 1) if isinstance(score, int | float) else 0
            return ConversationEnd(Result(said), float(score))
    labels = [
        str(_attributes(event).get(genai.EVALUATION_LABEL)).lower()
        for span in spans
        for event in _list(span, "events")
        if isinstance(event, dict) and event.get("name") == genai.EVALUATION
    ]
    known = [label in _PASSED for label in labels if label in (*_PASSED, *_FAILED)]
    if known:
        passed = all(known)
        return ConversationEnd(Result.PASSED if passed else Result.FAILED, sum(known) / len(known))
    failed = [span for span in spans if _failed(span) and not span.get("parentSpanId")]
    if failed:
        why = failed[0]["attributes"].get(genai.ERROR_TYPE) or failed[0]["status"].get("message") or ""
        return ConversationEnd(Result.FAILED, 0.0, str(why)[:300])
    return UNKNOWN
