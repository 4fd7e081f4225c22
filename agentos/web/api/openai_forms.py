"""OpenAI's forms: what a request may say, and how replies and their pieces look. What is not honoured is refused."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentos.web.api.conversations import ASSISTANT, USER, Dialogue, Turn, TurnEnd, TurnUsage
from agentos.web.api.problems import ApiRefusal

# Parameters that clients send though they mean nothing: with these values, or None, they are taken.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "temperature": (1,), "top_p": (1,), "n": (1,), "presence_penalty": (0,), "frequency_penalty": (0,),
    "tools": ([],), "functions": ([],), "tool_choice": ("auto", "none"), "parallel_tool_calls": (True, False),
    "response_format": ({"type": "text"},), "text": ({"format": {"type": "text"}},), "logprobs": (False,),
    "logit_bias": ({},), "service_tier": ("auto", "default"), "store": (True,), "truncation": ("disabled",),
    "background": (False,), "include": ([],), "modalities": (["text"],), "stop": ([],), "reasoning": ({},),
}  # fmt: skip
_LABELS = frozenset({"user", "metadata", "safety_identifier", "prompt_cache_key"})  # they change nothing
Text = Annotated[str, Field(max_length=1_000_000)]


class _Asked(BaseModel):
    """What else is said is in ``model_extra``."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)


class Part(_Asked):
    type: str
    text: Text | None = None


class Message(_Asked):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | list[Part] | None = None
    type: str = "message"


class StreamOptions(_Asked):
    include_usage: bool = False


class ChatBody(_Asked):
    model: str = Field(max_length=200)
    messages: list[Message] = Field(min_length=1, max_length=1_000)
    stream: bool | None = None
    stream_options: StreamOptions | None = None


class ResponsesBody(_Asked):
    model: str = Field(max_length=200)
    input: Text | list[Message] = Field(min_length=1)
    instructions: Text | None = None
    previous_response_id: str | None = Field(None, max_length=200)
    stream: bool | None = None
    stream_options: StreamOptions | None = None


def refuse_what_is_not_honoured(body: ChatBody | ResponsesBody) -> None:
    """Raises ApiRefusal for the first parameter that would change nothing though it asks for something."""
    for name, value in (body.model_extra or {}).items():
        if value is None or name in _LABELS or value in _NEUTRAL.get(name, ()):
            continue
        raise _unsupported(
            name, f"`{name}` is not honoured: an agent has its own model, tools and limits. Leave it out."
        )


def _unsupported(param: str, sentence: str) -> ApiRefusal:
    return ApiRefusal(400, "unsupported_parameter", sentence, param=param)


def conversation_of(agent: str, messages: list[Message], instructions: str = "") -> Dialogue:
    """What was said, from messages. Raises ApiRefusal."""
    told, turns = [instructions] if instructions else [], []
    for message in messages:
        text = _text(message)
        if message.role in ("system", "developer"):
            told.append(text)
        elif message.role in (USER, ASSISTANT):
            turns.append(Turn(message.role, text))
        else:
            raise _unsupported(
                "messages", "Results of tools are not taken: the agent calls its own, in its sandbox."
            )
    if not turns or turns[-1].role != USER:
        raise ApiRefusal(400, "no_user_message", "The last message is the user's.", param="messages")
    return Dialogue(agent, turns, "\n\n".join(told))


def _text(message: Message) -> str:
    extra = message.model_extra or {}
    if message.type != "message" or extra.get("tool_calls") or extra.get("function_call"):
        raise _unsupported(
            "messages", "Calls of tools are not taken: the agent calls its own, in its sandbox."
        )
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    for part in message.content:
        if part.type not in ("text", "input_text", "output_text") or part.text is None:
            sentence = f"A part of type {part.type[:40]!r} is not taken: messages are text. `POST /api/v1/tasks` takes files."
            raise _unsupported("messages", sentence)
    return "\n".join(part.text or "" for part in message.content)


# --- chat completions -------------------------------------------------------------------------


def facts(end: TurnEnd) -> dict[str, str]:
    """What OpenAI's forms have no place for."""
    return {"task": end.task_id, "run": end.run_id, "result": end.result}


def completion(id: str, model: str, end: TurnEnd) -> dict[str, Any]:
    """A whole reply."""
    message = {"role": ASSISTANT, "content": end.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    told = {"id": id, "object": "chat.completion", "created": int(time.time()), "model": model}
    return {**told, "choices": [choice], "usage": chat_usage(end.usage), "agentos": facts(end)}


def chunk(
    id: str, model: str, delta: dict[str, Any], finish: str | None = None, **more: Any
) -> dict[str, Any]:
    """A piece of a reply."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    told = {"id": id, "object": "chat.completion.chunk", "created": int(time.time()), "model": model}
    return {**told, "choices": [choice], **more}


def chat_usage(usage: TurnUsage) -> dict[str, int]:
    """Of chat completions."""
    whole = usage.input + usage.output
    return {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": whole}


# --- responses --------------------------------------------------------------------------------


def message_item(id: str, text: str | None) -> dict[str, Any]:
    """The reply among the output; ``text`` None while it is not there."""
    content = [] if text is None else [text_part(text)]
    status = "in_progress" if text is None else "completed"
    return {"type": "message", "id": f"msg_{id}", "status": status, "role": ASSISTANT, "content": content}


def text_part(text: str) -> dict[str, Any]:
    """The content of a reply."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def response(
    id: str, body: ResponsesBody, end: TurnEnd | None, error: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A response: under way, completed, or failed."""
    output = [message_item(id, end.text)] if end and end.text is not None else []
    status = "failed" if error else "completed" if end else "in_progress"
    told: dict[str, Any] = {
        "id": f"resp_{id}",
        "object": "response",
        "created_at": int(time.time()),
        "status": status,
    }
    told |= {
        "error": error and {"code": "server_error", "message": error["message"]},
        "incomplete_details": None,
    }
    told |= {
        "instructions": body.instructions,
        "max_output_tokens": None,
        "model": body.model,
        "output": output,
    }
    told |= {"parallel_tool_calls": True, "previous_response_id": body.previous_response_id, "store": True}
    told |= {"temperature": 1.0, "top_p": 1.0, "tool_choice": "auto", "tools": [], "truncation": "disabled"}
    told |= {"text": {"format": {"type": "text"}}, "metadata": (body.model_extra or {}).get("metadata") or {}}
    return told | ({"usage": _response_usage(end.usage), "agentos": facts(end)} if end else {"usage": None})


def _response_usage(usage: TurnUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }
