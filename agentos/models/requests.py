"""What a run may ask: the rules for a request, which comes from inside a sandbox."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from agentos.domain import Json, ModelSpec, canonical, digest

MESSAGES_MAX = 10_000
CHOICES_MAX = 16
TOKENS_MAX = 1 << 24  # of one call, asked or answered
ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_PARTS = frozenset({"text", "image_url", "input_audio", "refusal", "thinking"})
# What litellm stumbles over by itself would look like a provider that is away, and void the run.
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "frequency_penalty": (int, float),
    "logit_bias": Mapping,
    "logprobs": bool,
    "parallel_tool_calls": bool,
    "presence_penalty": (int, float),
    "reasoning_effort": str,
    "response_format": Mapping,
    "seed": int,
    "stop": (str, list),
    "stream_options": Mapping,
    "temperature": (int, float),
    "tool_choice": (str, Mapping),
    "top_k": int,
    "top_logprobs": int,
    "top_p": (int, float),
}
_BYTES_PER_TOKEN = 3.5  # of English and JSON with the usual tokenizers; low, so that more is reserved
_OUTPUT_TOKENS = 2_048  # reserved for an answer whose length nobody limited


def request_fault(request: Any) -> str:
    """ "" when it may be sent on, else a sentence. It must not make anybody fetch or search anything:
    pictures come as ``data:`` URLs, and tools are functions of the run's own."""
    if not isinstance(request, Mapping):
        return "the request must be a JSON object"
    if fault := _parameter_fault(request):
        return fault
    messages = request.get("messages")
    if not isinstance(messages, list) or not 1 <= len(messages) <= MESSAGES_MAX:
        return f"'messages' must be a list of 1 to {MESSAGES_MAX} messages"
    choices = request.get("n")
    if choices is not None and (type(choices) is not int or not 1 <= choices <= CHOICES_MAX):
        return f"'n' must be a whole number from 1 to {CHOICES_MAX}"
    for key in ("max_tokens", "max_completion_tokens"):
        limit = request.get(key)
        if limit is not None and (type(limit) is not int or not 1 <= limit <= TOKENS_MAX):
            return f"'{key}' must be a whole number from 1"
    return next((fault for message in messages if (fault := _message_fault(message))), "") or _tools_fault(
        request.get("tools")
    )


def _parameter_fault(request: Mapping[str, Any]) -> str:
    try:
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError):
        return (
            "the request must be plain JSON: no NaN, no half of a surrogate pair, nothing nested too deeply"
        )
    for key, allowed in _TYPES.items():
        value = request.get(key)
        if value is not None and not isinstance(value, allowed):
            return f"'{key}' cannot be {json.dumps(value)[:60]}"
    stop = request.get("stop")
    if isinstance(stop, list) and not all(isinstance(text, str) for text in stop):
        return "'stop' must be a text or a list of texts"
    return ""


def _message_fault(message: Any) -> str:
    if not isinstance(message, Mapping) or not _is_one_of(message.get("role"), ROLES):
        return f"a message must be an object with a 'role' of {', '.join(sorted(ROLES))}"
    calls = message.get("tool_calls")
    if calls is not None and not (isinstance(calls, list) and all(_is_call(call) for call in calls)):
        return "'tool_calls' of a message must be a list of calls with 'id' and 'function'"
    content = message.get("content")
    if content is None or isinstance(content, str):
        return ""
    if not isinstance(content, list):
        return "the 'content' of a message must be a text or a list of parts"
    return next((fault for part in content if (fault := _part_fault(part))), "")


def _is_one_of(value: Any, known: frozenset[str]) -> bool:
    return isinstance(value, str) and value in known


def _is_call(call: Any) -> bool:
    return isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)


def _part_fault(part: Any) -> str:
    if not isinstance(part, Mapping) or not _is_one_of(part.get("type"), _PARTS):
        return f"a part of a message must be an object with a 'type' of {', '.join(sorted(_PARTS))}"
    if part["type"] == "text" and not isinstance(part.get("text"), str):
        return "a part of the type 'text' needs its text"
    if part["type"] != "image_url":
        return ""
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    if not isinstance(url, str) or not url.startswith("data:"):
        return "a picture must be given as a data: URL; nothing is fetched for a run"
    return ""


def _tools_fault(tools: Any) -> str:
    if tools is None:
        return ""
    if not isinstance(tools, list) or not all(
        isinstance(tool, Mapping)
        and tool.get("type") == "function"
        and isinstance(tool.get("function"), Mapping)
        and isinstance(tool["function"].get("name"), str)
        for tool in tools
    ):
        return "'tools' must be a list of tools of the type 'function', each with a name"
    return ""


def tool_names(request: Mapping[str, Any]) -> frozenset[str]:
    """The tools that a reply may call."""
    return frozenset(tool["function"]["name"] for tool in request.get("tools") or ())


def tokens_of(size: int) -> int:
    """About how many tokens ``size`` bytes of text are."""
    return int(size / _BYTES_PER_TOKEN) + 1


def output_limit(asked: Mapping[str, Any]) -> int:
    """How many tokens may be answered at most, as far as somebody said so. Of two limits nobody knows
    which one a provider keeps to."""
    limits = [asked.get("max_completion_tokens") or 0, asked.get("max_tokens") or 0]
    return int(max(limits) or _OUTPUT_TOKENS) * int(asked.get("n") or 1)


def texts(value: Any) -> Iterator[str]:
    """Every text within a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


# --- What is wrong with a model's reply, and what it used: nothing is trusted that a provider sends


# Kinds of ModelFailed that a reply itself can be, in the order in which they are looked for.
FAULTS = ("empty", "refused", "cut", "malformed")
UNKNOWN_TOOL = "unknown_tool"  # counted only: the agent is told by whoever is asked to call it


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call. ``cached`` are those of ``input`` that the provider had at hand."""

    input: int
    output: int
    cached: int = 0
    estimated: bool = False  # the provider did not say


@dataclass(frozen=True, slots=True)
class ReplyFinding:
    """``fault`` is "" for a reply that can be used, UNKNOWN_TOOL for one that only names a wrong tool."""

    fault: str = ""
    message: str = ""


def finding_of(body: Mapping[str, Any], request: Mapping[str, Any]) -> ReplyFinding:
    """What is wrong with a chat completion. Of several choices one that can be used is enough."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return ReplyFinding("empty", "the reply has no choices")
    findings = [_choice(choice, tool_names(request)) for choice in choices]
    return next((found for found in findings if found.fault in ("", UNKNOWN_TOOL)), findings[0])


def _choice(choice: Any, tools: frozenset[str]) -> ReplyFinding:
    message = (choice.get("message") if isinstance(choice, Mapping) else None) or {}
    finish = choice.get("finish_reason") if isinstance(choice, Mapping) else None
    calls = message.get("tool_calls") or []
    if finish == "content_filter" or message.get("refusal"):
        reason = message.get("refusal") or "the provider's filter held the answer back"
        return ReplyFinding("refused", f"the model refused: {str(reason)[:500]}")
    if finish == "length":
        return ReplyFinding(
            "cut", "the reply was cut at the limit of its length; allow more tokens or ask for less"
        )
    if not calls and not message.get("content"):
        return ReplyFinding("empty", "the reply has neither text nor tool calls")
    return next((found for call in calls if (found := _call(call, tools)).fault), ReplyFinding())


def _call(call: Any, tools: frozenset[str]) -> ReplyFinding:
    function = (call.get("function") if isinstance(call, Mapping) else None) or {}
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, str):
        return ReplyFinding("malformed", "a tool call of the reply has no name or no arguments")
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        return ReplyFinding("malformed", f"the arguments of the call of '{name}' are not JSON: {error}")
    if not isinstance(value, dict):
        return ReplyFinding("malformed", f"the arguments of the call of '{name}' must be a JSON object")
    if name not in tools:
        return ReplyFinding(UNKNOWN_TOOL, f"the reply calls '{name}', which is none of the request's tools")
    return ReplyFinding()


def usage_of(body: Mapping[str, Any], input_estimate: int) -> Usage:
    """What the provider says was used; where it says nothing, or what cannot be, an estimate that is marked as one."""
    usage = body.get("usage") or {}
    given, answered = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if given and answered:
        cached = _count((usage.get("prompt_tokens_details") or {}).get("cached_tokens"))
        return Usage(given, answered, min(cached, given))
    said = sum(len(text.encode("utf-8", "replace")) for text in texts(body.get("choices") or []))
    return Usage(given or input_estimate, answered or tokens_of(said), estimated=True)


def _count(value: Any) -> int:
    """0 for what no model reads or writes in one call: such a number would use up the budget of a day, or refill it."""
    return value if type(value) is int and 0 <= value <= TOKENS_MAX else 0


def with_usage(body: Mapping[str, Any], usage: Usage) -> Json:
    """The reply with the usage that is booked; an estimate is marked."""
    said: dict[str, Json] = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
    }
    told = {"estimated": True} if usage.estimated else body.get("usage") or {}
    return {**body, "usage": {**told, **said}}


# --- What a model says in words: thoughts left out, and the JSON object that was asked for ----------


M = TypeVar("M", bound=BaseModel)

ANSWER_MAX = 200_000  # characters of an answer that are read
BRACES_MAX = 50  # places at which the JSON object is looked for
_THOUGHTS = re.compile(r"^.*</think(?:ing)?>", re.DOTALL)  # of models that think aloud


class Unusable(Exception):
    """The answer is not what was asked for; the text says what is wrong with it, for the model that gave it."""


def _line(value: Any) -> Any:
    """On one line, and without what is no text at all: JSON may spell half of a character."""
    return " ".join(value.encode("utf-8", "replace").decode().split()) if isinstance(value, str) else value


Line = Annotated[str, BeforeValidator(_line)]


def spoken(text: str) -> str:
    """The answer without thoughts that were spoken aloud; raises Unusable when it is endless."""
    if len(text) > ANSWER_MAX:
        raise Unusable(f"it has {len(text)} characters, at most {ANSWER_MAX} are read")
    return _THOUGHTS.sub("", text, count=1).encode("utf-8", "replace").decode().replace("\r\n", "\n")


def json_in(text: str, kind: type[M]) -> tuple[M, str]:
    """The first JSON object with a key of ``kind``, and what follows it: others are quoted. Raises Unusable."""
    decoder = json.JSONDecoder(strict=False)  # models write line breaks into texts
    fault, behind = "there is no JSON object in it", 0
    for found in islice(re.finditer(r"\{", text), BRACES_MAX):
        if found.start() < behind:
            continue
        try:
            value, end = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            fault = f"its JSON object cannot be read ({error})"
            continue
        try:
            return kind.model_validate(value), text[end:]
        except ValidationError as error:
            fault, behind = "; ".join(_faults(error)), end
        if value.keys() & kind.model_fields.keys():
            break
    raise Unusable(fault)


def _faults(error: ValidationError) -> list[str]:
    return [f"'{'.'.join(map(str, one['loc']))}': {one['msg']}" for one in error.errors()[:3]]


# --- The canonical form of a request: what makes two model calls the same call -------------------
# Two requests with the same key mean the same to a model; they may differ in what a run cannot help
# (its own id, the ids of tool calls, how JSON is spelt). Recorded answers are found by this key.


# What a request may carry, and a model resource's parameters too; nothing else is ever sent on.
# An address, a key or a header among them would send our keys to whoever wrote the request.
PARAMETERS = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "stop",
        "temperature",
        "tool_choice",
        "tools",
        "top_k",
        "top_logprobs",
        "top_p",
    }
)
OUTPUT_LIMITS = frozenset({"max_tokens", "max_completion_tokens"})
# Of a model resource only: fields of one provider's own, put into the body beside the others.
RESOURCE_PARAMETERS = PARAMETERS | {"extra_body", "thinking"}


def effective(request: Mapping[str, Any], spec: ModelSpec) -> dict[str, Any]:
    """What is asked: the messages, and the resource's parameters under the request's own.

    How long an answer may be is the resource's to say, if it does: a model that reasons needs room for it.
    """
    given = {key: value for key, value in spec.parameters.items() if key in RESOURCE_PARAMETERS}
    named = OUTPUT_LIMITS if OUTPUT_LIMITS & given.keys() else frozenset()
    asked = {key: value for key, value in request.items() if key in PARAMETERS - named and value is not None}
    given |= asked
    return {"messages": request["messages"], **given}


def run_mark(run_id: str) -> str:
    """The name by which a worker knows its run; it shows in what tools and harness write."""
    return digest([run_id])[:16]


def request_key(asked: Mapping[str, Any], spec: ModelSpec, run_id: str) -> str:
    """SHA-256 of the canonical form of ``asked`` (from ``effective``), 64 hex digits."""
    return digest(canonical_form(asked, spec, run_id))


def canonical_form(asked: Mapping[str, Any], spec: ModelSpec, run_id: str) -> bytes:
    """The request as any run would have asked it."""
    ids = _numbered(asked["messages"])
    form = {
        "model": [spec.name, spec.model],
        **{key: value for key, value in asked.items() if not _empty(value)},
        "messages": [_message(message, ids) for message in asked["messages"]],
    }
    plain = canonical(form)
    marks = [mark for mark in (run_id, run_mark(run_id)) if mark and mark.encode() in plain]
    return canonical(_without(form, marks)) if marks else plain


def _numbered(messages: list[Any]) -> Mapping[str, str]:
    """Tool call ids by the order in which they appear."""
    ids: dict[str, str] = {}
    for message in messages:
        for found in _ids(message):
            ids.setdefault(found, f"call-{len(ids)}")
    return ids


def _ids(message: Any) -> Iterator[str]:
    for call in message.get("tool_calls") or ():
        yield str(call.get("id"))
    if "tool_call_id" in message:
        yield str(message["tool_call_id"])


def _message(message: Mapping[str, Any], ids: Mapping[str, str]) -> Json:
    plain = {key: value for key, value in message.items() if not _empty(value)}
    plain.pop("provider_specific_fields", None)
    if "content" in plain:
        plain["content"] = _content(plain["content"])
    if "tool_call_id" in plain:
        plain["tool_call_id"] = ids[str(plain["tool_call_id"])]
    if "tool_calls" in plain:
        plain["tool_calls"] = [_canonical_call(call, ids) for call in plain["tool_calls"]]
    return plain


def _empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}


def _content(content: Json) -> Json:
    """A list of nothing but texts is the text."""
    if isinstance(content, list) and all(
        isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    ):
        return "".join(part["text"] for part in content)
    return content


def _canonical_call(call: Mapping[str, Any], ids: Mapping[str, str]) -> Json:
    function = call.get("function") or {}
    return {
        "id": ids[str(call.get("id"))],
        "name": function.get("name"),
        "arguments": _arguments(function.get("arguments")),
    }


def _arguments(text: Any) -> Json:
    try:
        return {"json": json.loads(text)} if isinstance(text, str) else {"json": text}
    except (ValueError, RecursionError):
        return text


def _without(value: Json, marks: list[str]) -> Json:
    """The value with each whole word that names the run replaced."""
    pattern = re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(map(re.escape, marks))})(?![0-9A-Za-z])")

    def replaced(item: Json) -> Json:
        if isinstance(item, str):
            return pattern.sub("<run>", item)
        if isinstance(item, list):
            return [replaced(one) for one in item]
        if isinstance(item, dict):
            return {replaced(key): replaced(one) for key, one in item.items()}
        return item

    return replaced(value)
