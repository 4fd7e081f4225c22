"""OpenAI's endpoints: agents of this home as models, for any front end or SDK that speaks that API."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import ExitStack, aclosing
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agentos.daemon.control.tokens import Token, TokenScope
from agentos.domain import Kind, ResourceId, Result, Step
from agentos.errors import AgentOSError, NotFound, UserError
from agentos.plaintext import clean, json_text
from agentos.web.api.conversations import (
    ASSISTANT,
    USER,
    Begun,
    Dialogue,
    Turn,
    TurnEnd,
    TurnUsage,
    begin,
    follow,
    past_of,
    task_of,
    turn_end,
)
from agentos.web.api.documents import FeedbackBody
from agentos.web.api.door import ApiRefusal, EventStream, error_object, read_body
from agentos.web.api.home import ApiHome, note_act
from agentos.web.api.operations import rate

OPEN_MAX = 32  # turns that are followed at a time
_CHAT, _RESPONSE = "chatcmpl-", "resp_"
Guarded = Callable[[TokenScope | None, Callable[[Request], Any]], Callable[[Request], Any]]


class _RatedReply(FeedbackBody):
    """A person's word on a reply: ``id`` is the completion's or the response's."""

    id: str


def chat_routes(site: ApiHome, is_ending: Callable[[], bool], guarded: Guarded) -> list[Route]:
    """All under ``/v1``, each for tokens with the scope ``talk``."""
    chat = _Chat(site, is_ending)

    def route(path: str, serve: Callable[[Request], Any], method: str = "POST") -> Route:
        return Route(f"/v1/{path}", guarded(TokenScope.TALK, serve), methods=[method])

    return [
        route("models", chat.models, "GET"),
        route("models/{id}", chat.model, "GET"),
        route("chat/completions", chat.completions),
        route("responses", chat.responses),
        route("responses/{id}", chat.kept_response, "GET"),
        route("feedback", chat.feedback),
    ]


class _Chat:
    def __init__(self, site: ApiHome, is_ending: Callable[[], bool]) -> None:
        self._site, self._is_ending = site, is_ending
        self._open = 0

    # --- models -------------------------------------------------------------------------------

    async def models(self, request: Request) -> Response:
        return _json({"object": "list", "data": await run_in_threadpool(self._agents)})

    async def model(self, request: Request) -> Response:
        name = request.path_params["id"]
        found = [one for one in await run_in_threadpool(self._agents) if one["id"] == name]
        if not found:
            raise NotFound(f"There is no agent {name[:60]!r}; `GET /v1/models` lists them.")
        return _json(found[0])

    def _agents(self) -> list[dict[str, Any]]:
        registry = self._site.registry
        names: list[ResourceId] = [it for it in registry.names(registry.stable()) if it.kind is Kind.AGENT]
        found = []
        for name in names:
            version = registry.latest(name)
            created = int(version.created_at.timestamp()) if version else 0
            found.append({"id": name.name, "object": "model", "created": created, "owned_by": "agentos"})
        return found

    # --- chat completions ---------------------------------------------------------------------

    async def completions(self, request: Request) -> Response:
        body: ChatBody = await read_body(request, ChatBody)
        refuse_what_is_not_honoured(body)
        said = conversation_of(body.model, body.messages)
        begun = await self._begin(request, said)
        if body.stream:
            return EventStream(self._chunks(request, body, begun), self._leave)
        end = await self._ended(request, begun)
        return _json(completion(f"{_CHAT}{begun.id}", body.model, end))

    async def _chunks(self, request: Request, body: ChatBody, begun: Begun) -> AsyncIterator[str]:
        name, model = f"{_CHAT}{begun.id}", body.model
        usage: dict[str, Any] = (
            {"usage": None} if body.stream_options and body.stream_options.include_usage else {}
        )
        yield _data(chunk(name, model, {"role": "assistant", "content": ""}, **usage))
        following = self._follow(request, begun)
        try:
            async for found in following:
                if isinstance(found, Step):
                    yield _data(chunk(name, model, {"reasoning_content": f"{told_step(found)}\n"}, **usage))
                    continue
                yield _data(chunk(name, model, {"content": found.text}, **usage))
                yield _data(chunk(name, model, {}, "stop", agentos=facts(found), **usage))
                if usage:
                    last = chunk(name, model, {}, usage=chat_usage(found.usage))
                    yield _data({**last, "choices": []})
        except AgentOSError as error:
            yield _data({"error": _error(error)})
        finally:
            await following.aclose()
        yield "data: [DONE]\n\n"

    # --- responses ----------------------------------------------------------------------------

    async def responses(self, request: Request) -> Response:
        body: ResponsesBody = await read_body(request, ResponsesBody)
        refuse_what_is_not_honoured(body)
        messages = [Message(role="user", content=body.input)] if isinstance(body.input, str) else body.input
        said = conversation_of(body.model, messages, body.instructions or "")
        if body.previous_response_id:
            said = await run_in_threadpool(self._after, request, said, body.previous_response_id)
        begun = await self._begin(request, said)
        if body.stream:
            return EventStream(self._response_events(request, body, begun), self._leave)
        end = await self._ended(request, begun)
        return _json(response(begun.id, body, end))

    async def kept_response(self, request: Request) -> Response:
        if request.query_params:
            name = next(iter(request.query_params))[:60]
            raise ApiRefusal(
                400, "unsupported_parameter", f"`{name}` is not honoured: leave it out.", param=name
            )
        return _json(await run_in_threadpool(self._kept, request.scope["token"], request.path_params["id"]))

    def _kept(self, token: Token, id: str) -> dict[str, Any]:
        """As it was replied, without what only the caller said: instructions and labels."""
        turn = id.removeprefix(_RESPONSE)
        task = task_of(self._site, token, turn)
        end = turn_end(self._site, task, turn)
        error = None
        if end is not None and end.text is None:
            error = error_object(422, end.result, f"{end.reason or end.result} (run {end.run_id})")
        body = ResponsesBody(model=task.agent, input=task.goal, previous_response_id=None)
        told = response(turn, body, end, error)
        return told | {"created_at": int(task.created_at.timestamp())}

    def _after(self, request: Request, said: Dialogue, id: str) -> Dialogue:
        token: Token = request.scope["token"]
        task = task_of(self._site, token, id.removeprefix(_RESPONSE))
        if task.agent != said.agent:
            raise UserError(f"{id} is a reply of the agent {task.agent}, not of {said.agent}.")
        turns: list[Turn] = [*past_of(self._site, task), *said.turns]
        return Dialogue(said.agent, turns, said.instructions, task.id)

    async def _response_events(
        self, request: Request, body: ResponsesBody, begun: Begun
    ) -> AsyncIterator[str]:
        number = -1

        def event(type_: str, **more: Any) -> str:
            nonlocal number
            number += 1
            return _data({"type": type_, "sequence_number": number, **more}, type_)

        empty = response(begun.id, body, None)
        yield event("response.created", response=empty)
        yield event("response.in_progress", response=empty)
        thought = {"item_id": f"rs_{begun.id}", "output_index": 0, "summary_index": 0}
        following = self._follow(request, begun)
        try:
            async for found in following:
                if isinstance(found, Step):
                    yield event(
                        "response.reasoning_summary_text.delta", **thought, delta=f"{told_step(found)}\n"
                    )
                    continue
                place = {"item_id": f"msg_{begun.id}", "output_index": 0, "content_index": 0}
                whole, text = message_item(begun.id, found.text), found.text or ""
                yield event("response.output_item.added", output_index=0, item=message_item(begun.id, None))
                yield event("response.content_part.added", **place, part=text_part(""))
                yield event("response.output_text.delta", **place, delta=text, logprobs=[])
                yield event("response.output_text.done", **place, text=text, logprobs=[])
                yield event("response.content_part.done", **place, part=text_part(text))
                yield event("response.output_item.done", output_index=0, item=whole)
                yield event("response.completed", response=response(begun.id, body, found))
        except AgentOSError as error:
            yield event("response.failed", response=response(begun.id, body, None, _error(error)))
        finally:
            await following.aclose()

    # --- feedback -----------------------------------------------------------------------------

    async def feedback(self, request: Request) -> Response:
        body: _RatedReply = await read_body(request, _RatedReply)
        return await run_in_threadpool(self._rate, request.scope["token"], body)

    def _rate(self, token: Token, body: _RatedReply) -> Response:
        task = task_of(self._site, token, body.id.removeprefix(_CHAT).removeprefix(_RESPONSE))
        ended = [run for run in self._site.reader.runs(task.id) if run.outcome is not None]
        if not ended:
            raise UserError("It is still under way.")
        words = rate(self._site.home, token, ended[0].id, body)
        note_act(self._site, token, "conversation.rated", task.id)
        return _json({"object": "list", "data": words}, 201)

    # --- turns --------------------------------------------------------------------------------

    async def _begin(self, request: Request, said: Dialogue) -> Begun:
        """Who gets one calls ``_leave`` when it is no longer followed."""
        if self._open >= OPEN_MAX:
            raise ApiRefusal(
                429, "too_many_turns", f"{OPEN_MAX} replies are under way already.", {"Retry-After": "5"}
            )
        self._open += 1  # before anything is waited for: many come at once
        with ExitStack() as given_back:
            given_back.callback(self._leave)
            begun = await run_in_threadpool(begin, self._site, request.scope["token"], said)
            given_back.pop_all()
        return begun

    def _leave(self) -> None:
        self._open -= 1

    async def _follow(self, request: Request, begun: Begun) -> AsyncGenerator[Step | TurnEnd, None]:
        """As ``conversations.follow``; raises ApiRefusal where a turn came to no text."""
        async with aclosing(follow(self._site, begun, request, self._is_ending)) as following:
            async for found in following:
                if isinstance(found, TurnEnd) and found.text is None:
                    raise ApiRefusal(
                        422, found.result, f"{found.reason or found.result} (run {found.run_id})"
                    )
                yield found

    async def _ended(self, request: Request, begun: Begun) -> TurnEnd:
        try:
            async with aclosing(self._follow(request, begun)) as following:
                async for found in following:
                    if isinstance(found, TurnEnd):
                        return found
        finally:
            self._leave()
        raise ApiRefusal(422, Result.CANCELLED, "The caller hung up.")


def told_step(step: Step) -> str:
    """A step in one line: where, what it was about, and what went wrong."""
    action = step.action if isinstance(step.action, dict) else {}
    about = next((f" {action[key]}"[:80] for key in ("tool", "model", "agent") if key in action), "")
    fault = f": {step.fault.type}: {step.fault.message[:160]}" if step.fault else ""
    return clean(f"{step.node}{about}{fault}")


def _error(error: AgentOSError) -> dict[str, Any]:
    if isinstance(error, ApiRefusal):
        return error_object(error.status, error.kind, str(error), error.param)
    return error_object(503, "unavailable", str(error))


def _json(value: Any, status: int = 200) -> Response:
    """In ASCII: an answer comes out of a box, and may hold half a character."""
    return Response(json_text(value), status, media_type="application/json")


def _data(value: Any, event: str = "") -> str:
    return f"{f'event: {event}' + chr(10) if event else ''}data: {json.dumps(value)}\n\n"


# -------------------------------------------------------------------------------------------------
# OpenAI's forms: what a request may say, and how replies and their pieces look. What is not honoured
# is refused.


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
