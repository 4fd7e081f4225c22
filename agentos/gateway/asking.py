"""Asks a provider through litellm: retries, fallbacks, and what went wrong in our own words.

litellm's own retries are off: with them a failing call is sent up to five times, a refused key
three times. Whatever is worth retrying is retried here, always with the same idempotency key.
"""

from __future__ import annotations

import asyncio
import functools
import json
import math
import os
import re
import ssl
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import litellm
import openai
from litellm import exceptions
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from agentos.domain import ModelSpec, Price
from agentos.errors import ModelFailed
from agentos.gateway.setup import ProviderTarget
from agentos.gateway.transport import REPLY_MAX, ReplyTooLong
from agentos.models.requests import texts, tokens_of
from agentos.wire import LEVELS_MAX, is_deeper

TRIES_MAX = 5
_RETRY_AFTER_MAX_S = 60.0
# Never reached. litellm's timeout is for each read rather than the whole call, and it makes (and leaks)
# a new client with its own connections for each value that it is given.
_LITELLM_TIMEOUT_S = 24 * 3600.0
_RETRIED = frozenset({"overloaded", "unreachable", "timeout", "malformed"})
_AWAY = _RETRIED - {"malformed"}
# After these nobody knows whether the provider counted the call.
_UNCERTAIN = frozenset({"timeout", "malformed"})
_READING = frozenset({"convert_to_model_response_object", "transform_response"})  # litellm's functions
_BUGS = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
# litellm's words where nothing is sent for want of something that a person has to set up
_NO_PROVIDER = "LLM Provider NOT provided"
_NOT_SET_UP = (_NO_PROVIDER, "Missing credentials", "Unable to locate credentials")
_MISSING = (
    "look whether the provider has a model of that name, and whether its api_base is whole (most end in /v1)"
)
_ELSEWHERE = (
    "its server redirects to another one, which is not followed: set the api_base of its provider to where it is "
    "reached now, if you trust that"
)
_ALIVE_S = 5.0  # for an idle word of a server that works on an answer
# names of litellm's classes
_PREFIX = re.compile(r"^((litellm\.)?\w+(Error|Exception): )*(\w+Exception - )?")


litellm.suppress_debug_info = True
litellm.drop_params = True  # one request fits all models: what a provider does not know is left out
litellm.turn_off_message_logging = True


class CallFailed(ModelFailed):
    """A try that failed. ``retry_after_s`` is what the provider asked to wait, 0 when it did not."""

    def __init__(self, kind: str, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(kind, message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Completion:
    """A chat completion as a plain object, whatever it says. ``usd`` by litellm's price list."""

    body: dict[str, Any]
    spec: ModelSpec
    usd: float | None


@dataclass(slots=True)
class AttemptTally:
    """What was sent, also for a call that ends in an exception. ``uncertain``: nobody knows whether a provider counted it.

    ``given_up`` are models that were too late, and may have counted it beside the one that answers.
    """

    tries: int = 0
    uncertain: bool = False
    given_up: int = 0


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What a model is asked, and until when, on the ``time.monotonic`` clock; the tally counts what was sent for it."""

    asked: Mapping[str, Any]
    idempotency: str
    deadline: float
    tally: AttemptTally


class Providers:
    """Where each provider is reached, and with which key."""

    def __init__(self, providers: Mapping[str, ProviderTarget], keys: Mapping[str, str]) -> None:
        self._providers = providers
        self._keys = keys

    def arguments(self, spec: ModelSpec) -> dict[str, Any]:
        """litellm's ``api_base`` and ``api_key``; raises ModelFailed("auth") with what is missing."""
        if "://" in spec.model:
            # litellm sends the request, and a key, to an address that stands in a model's name
            raise ModelFailed(
                "auth", f"the model '{spec.name}' ({spec.model}) names an address; only api_base may"
            )
        if not spec.provider:
            return {}
        where = self._providers.get(spec.provider)
        if where is None:
            raise ModelFailed(
                "auth",
                f"the model '{spec.name}' wants the provider '{spec.provider}', but agentos.toml has no "
                f"[providers.{spec.provider}]",
            )
        if not where.api_base and spec.model.split("/")[0] != spec.provider:
            # else whoever edits the registry could send one provider's key to another
            raise ModelFailed(
                "auth",
                f"the model '{spec.name}' ({spec.model}) wants the provider '{spec.provider}', which has no "
                f"api_base in agentos.toml and so is for models that begin with '{spec.provider}/' only",
            )
        base = {"api_base": where.api_base} if where.api_base else {}
        if not where.key_env:
            # never litellm's own choice: that would send OPENAI_API_KEY to any server that speaks OpenAI
            return {**base, "api_key": "none"} if base else base
        key = os.environ.get(where.key_env) or self._keys.get(where.key_env)
        if not key:
            raise ModelFailed(
                "auth",
                f"the provider '{spec.provider}' needs a key: set {where.key_env} in the daemon's environment "
                "or in keys.toml of the home",
            )
        if not (key.isascii() and key.isprintable()) or key != key.strip():
            raise ModelFailed(
                "auth", f"the key in {where.key_env} has a blank or a line break too much: set it again"
            )
        return {**base, "api_key": key}


async def ask(spec: ModelSpec, call: ModelCall, providers: Providers) -> Completion:
    """Ask the model, then its fallbacks in order while the machinery of each is away.

    Each model gets its share of the time that is left. Raises ModelFailed, of the first model where no other could
    be asked.
    """
    chain = (spec, *spec.fallbacks)
    first: ModelFailed | None = None
    for place, model in enumerate(chain):
        now = time.monotonic()
        share = max(0.0, call.deadline - now) / (len(chain) - place)
        alive_s = min(_ALIVE_S, share / 10)
        # a provider keeps one answer for one key, so each model needs its own
        own_key = call.idempotency if place == 0 else f"{call.idempotency}-{place}"
        own = replace(call, idempotency=own_key, deadline=now + share - alive_s)
        try:
            return await _with_retries(model, own, providers.arguments(model))
        except ModelFailed as error:
            api_base = providers.arguments(model).get("api_base", "") if error.kind == "timeout" else ""
            if api_base and await _is_alive(api_base, alive_s):
                error = ModelFailed("slow", _too_slow(model, call.asked, time.monotonic() - now))
            first = first or error
            if error.kind not in _AWAY | {"slow"}:
                raise error from None
            call.tally.given_up += error.kind in ("timeout", "slow")
    raise first or ModelFailed("unreachable", "no model was asked")


async def _is_alive(api_base: str, within_s: float) -> bool:
    """Whether the server there still talks, so that a late answer is slowness and no outage.

    Asked only of a server that stands in agentos.toml; of a provider that litellm knows, no address is known here.
    """
    try:
        async with (
            httpx.AsyncClient(timeout=within_s) as client,
            asyncio.timeout(within_s),  # httpx waits so long for each byte, and an answer may have no end
            client.stream("GET", f"{api_base.rstrip('/')}/models"),
        ):
            return True
    except (httpx.HTTPError, TimeoutError):
        return False


def _too_slow(spec: ModelSpec, asked: Mapping[str, Any], seconds: float) -> str:
    size = tokens_of(sum(len(text) for text in texts([asked["messages"], asked.get("tools")])))
    return (
        f"{spec.model} works, but had no answer to about {size:,} tokens after {seconds:.0f} s; give the run more "
        "time (limits: wall_s), the agent fewer tools, or take a faster model"
    )


async def _with_retries(spec: ModelSpec, call: ModelCall, where: Mapping[str, Any]) -> Completion:
    wait = wait_random_exponential(multiplier=0.25, max=20)

    def pause(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        least = error.retry_after_s if isinstance(error, CallFailed) else 0.0
        return max(wait(state), least)

    def enough(state: RetryCallState) -> bool:
        return state.attempt_number >= TRIES_MAX or time.monotonic() + state.upcoming_sleep >= call.deadline

    async for attempt in AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, CallFailed) and error.kind in _RETRIED),
        wait=pause,
        stop=enough,
        reraise=True,
    ):
        with attempt:
            call.tally.tries += 1
            try:
                return await _once(spec, call, where)
            except ModelFailed as error:
                call.tally.uncertain = call.tally.uncertain or error.kind in _UNCERTAIN
                raise
    raise AssertionError("tenacity ends with a result or an exception")


async def _once(spec: ModelSpec, call: ModelCall, where: Mapping[str, Any]) -> Completion:
    left = call.deadline - time.monotonic()
    if left <= 0:
        raise CallFailed("timeout", f"no time was left to ask {spec.model}")
    try:
        async with asyncio.timeout(left):
            response = await litellm.acompletion(
                model=spec.model,
                timeout=_LITELLM_TIMEOUT_S,
                num_retries=0,
                max_retries=0,
                _skip_mcp_handler=True,  # else tools make it import an optional library, and look for servers
                extra_headers={"Idempotency-Key": call.idempotency},
                **where,
                **call.asked,
            )
    except TimeoutError:
        raise CallFailed("timeout", f"{spec.model} did not answer in {left:.1f} s") from None
    except openai.OpenAIError as error:
        if (bound := next((one for one in _chain(error) if isinstance(one, ReplyTooLong)), None)) is not None:
            raise _unusable(spec, str(bound)) from None
        raise _failure(spec, error) from None
    except ReplyTooLong as error:
        raise _unusable(spec, str(error)) from None
    except _BUGS as error:  # over an answer that is there: what goes wrong before is an OpenAIError, too
        raise _unusable(spec, f"cannot be read: {error}") from None
    listed = getattr(response, "_hidden_params", {}).get("response_cost")
    return Completion(_body(spec, response), spec, listed if listed_price(spec.model) else None)


def _body(spec: ModelSpec, response: Any) -> dict[str, Any]:
    """As plain JSON that can be stored and handed on. Raises ModelFailed("malformed")."""
    try:
        dumped = json.dumps(response.model_dump(exclude_none=True), ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise _unusable(spec, f"is not JSON: {error}") from None
    # half of a surrogate pair, which JSON may spell, can neither be sent on nor stored
    encoded = dumped.encode("utf-8", "replace")
    if len(encoded) > REPLY_MAX:
        raise _unusable(spec, f"has more than {REPLY_MAX:,} bytes")
    body = json.loads(encoded)
    if is_deeper(body, LEVELS_MAX, encoded):
        raise _unusable(spec, f"is nested more than {LEVELS_MAX} levels deep")
    return _plain(body)


def _unusable(spec: ModelSpec, why: str) -> ModelFailed:
    return ModelFailed("malformed", f"the reply of {spec.model} {why}"[:1000])


@functools.lru_cache(maxsize=1024)
def listed_price(model: str) -> Price | None:
    """As litellm's price list has it; None for what it lacks, which is not the same as free."""
    for name in (model, model.partition("/")[2]):
        entry = litellm.model_cost.get(name, {})
        if "input_cost_per_token" in entry and "output_cost_per_token" in entry:
            cached = entry.get("cache_read_input_token_cost")
            return Price(
                entry["input_cost_per_token"] * 1e6,
                entry["output_cost_per_token"] * 1e6,
                None if cached is None else cached * 1e6,
            )
    return None


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    """The completion as OpenAI has it: litellm moves what it does not know into fields of its own."""
    for choice in body.get("choices") or ():
        choice.pop("provider_specific_fields", None)
        message = choice.get("message") or {}
        extra = message.pop("provider_specific_fields", None) or {}
        if extra.get("refusal"):
            message["refusal"] = extra["refusal"]
    return body


def _failure(spec: ModelSpec, error: openai.OpenAIError) -> CallFailed:
    said = str(error).partition("Traceback (most recent call last)")[0].strip()
    said = _PREFIX.sub("", said)[:1000]
    kinds: tuple[tuple[type[Exception], str], ...] = (
        (exceptions.ContextWindowExceededError, "context"),
        (exceptions.ContentPolicyViolationError, "refused"),
        (exceptions.AuthenticationError, "auth"),
        (exceptions.PermissionDeniedError, "auth"),
        (exceptions.NotFoundError, "auth"),  # the model, or the address: no request says which
        (exceptions.RateLimitError, "overloaded"),
        (exceptions.Timeout, "timeout"),
        (exceptions.ServiceUnavailableError, "overloaded"),
    )
    kind = next((kind for type_, kind in kinds if isinstance(error, type_)), "")
    if any(words in said for words in _NOT_SET_UP):
        kind = "auth"
    status = getattr(error, "status_code", None)
    if not kind and any(map(_is_redirect, _chain(error))):
        kind, said = "auth", _ELSEWHERE
    # 422 is also litellm's own word, for a reply that it cannot read
    if not kind and isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 422, 429):
        kind = "request"
    if not kind:
        kind = _stumble(error) or ("request" if status == 422 else "unreachable")
    if _NO_PROVIDER in said:
        said = "its name begins with no provider: write PROVIDER/NAME, such as openai/… or ollama_chat/…"
    if isinstance(error, exceptions.NotFoundError):
        said += f"; {_MISSING}"
    if kind == "unreachable" and (why := _why_unreachable(error)) and why not in said:
        said += f" ({why})"
    told = "its reply cannot be read as a chat completion: " if kind == "malformed" else ""
    return CallFailed(kind, f"{spec.model}: {told}{said}", _retry_after(error))


def _why_unreachable(error: BaseException) -> str:
    """What the system says of the way to the server, which "Connection error." leaves out."""
    first = next((one for one in reversed([*_chain(error)]) if isinstance(one, OSError)), None)
    if isinstance(first, ssl.SSLCertVerificationError):
        return (
            f"{first.verify_message}; SSL_CERT_FILE in the daemon's environment names certificates to trust"
        )
    return str(first or "")[:200]


def _stumble(error: BaseException) -> str:
    """The kind where litellm's own code stumbled, over the reply or before anything was sent; "" where it did not.

    litellm tells of either as of a server that is away, which would void the run and ask again for ever.
    """
    chain = list(_chain(error))
    if any(isinstance(one, OSError | httpx.HTTPError) for one in chain):
        return ""
    code = {frame.f_code for one in chain for frame, _ in traceback.walk_tb(one.__traceback__)}
    if any(one.co_name in _READING or one.co_filename.endswith("httpx/_models.py") for one in code):
        # an error of the server's, sent with the status of an answer
        is_told = any(type(one) is Exception and hasattr(one, "status_code") for one in chain)
        return "unreachable" if is_told else "malformed"
    if any(isinstance(one, UnicodeEncodeError) for one in chain):
        return "malformed"  # half of a character, which stands in no request that comes here
    if any(isinstance(one, ImportError) for one in chain):
        return "auth"  # a library that a person has to install
    if "Empty or invalid response" in str(error):
        return "malformed"
    own = any(type(one) is Exception or (isinstance(one, _BUGS) and _is_plain(one)) for one in chain)
    return "request" if own else ""


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _is_redirect(error: BaseException) -> bool:
    status = getattr(getattr(error, "response", None), "status_code", None)
    return isinstance(status, int) and 300 <= status < 400


def _is_plain(error: BaseException) -> bool:
    """Whether no library of the way to a server made it."""
    return type(error).__module__.partition(".")[0] in ("builtins", "json", "pydantic_core")


def _retry_after(error: BaseException) -> float:
    """Seconds that the provider asked to wait, capped; it says them, or the moment. 0 where it said neither."""
    headers = getattr(error, "litellm_response_headers", None) or {}
    said = str(headers.get("retry-after", "0"))
    try:
        seconds = (
            parsedate_to_datetime(said).timestamp() - time.time() if " " in said.strip() else float(said)
        )
    except (ValueError, OverflowError):
        return 0.0
    return min(max(seconds, 0.0), _RETRY_AFTER_MAX_S) if math.isfinite(seconds) else 0.0
