"""What a run may ask of models, and what it got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from agentos.identity import Json


class Mode(StrEnum):
    """Where the answers to a run's model calls, and its external effects, come from."""

    LIVE = "live"  # asked; counted, but the texts are not kept
    RECORD = "record"  # asked, and kept
    REPLAY = "replay"  # from the recording alone: the first call that it lacks ends the run
    REPLAY_THEN_LIVE = "replay-then-live"  # from the recording up to the first call that it lacks


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None  # of input that the provider had in its cache; None: as ``input``


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model resource, resolved at a snapshot. Where its provider is reached is no part of it."""

    name: str  # of the resource
    model: str  # as litellm names it: "openai/gpt-5", "anthropic/…", "ollama_chat/…"
    provider: str  # of the settings' [providers.NAME]; "" means litellm's own defaults for ``model``
    parameters: Mapping[str, Json]  # sent with each request unless the request says otherwise
    fallbacks: tuple[ModelSpec, ...] = ()
    price: Price | None = None  # None: litellm's price list; where that has none, unknown
    context_tokens: int = 32_768


@dataclass(frozen=True, slots=True)
class Budget:
    """What model calls may use, counting those in flight. 0 means: no limit of this kind."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered model call."""

    call_id: str  # in the record of calls
    body: Json  # as OpenAI's chat completion object
    input_tokens: int
    output_tokens: int
    usd: float | None  # None: the price is not known
    latency_ms: float
    recorded: bool  # served from a recording: nothing was asked or paid
    model: str  # name of the model resource that answered
