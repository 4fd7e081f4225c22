"""The models that the evolver asks: through the gateway like any run's, within an evolution's budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from agentos.domain import Budget, Json, Mode, ModelSpec, Reply
from agentos.errors import ModelAway, ModelFailed, NotFound
from agentos.gateway.calls import CallReading
from agentos.gateway.speed import KNOWN_S, ModelSpeed
from agentos.home import Home
from agentos.models.requests import output_limit, texts, tokens_of
from agentos.ports import Grant, Models

_ANSWER_SHARE = 4  # of a model's context, which an answer may take
_SMALL_CONTEXT = 8_192  # tokens; agents send a smaller frame to such models, too
_AWAY = frozenset({"unreachable", "overloaded", "timeout"})


def another(find: Callable[[str], ModelSpec], name: str, author: str) -> ModelSpec:
    """The model ``name``, found by ``find``.

    Raises NotFound, and ModelFailed where it, or one that it falls back to, is one that the author's does:
    nobody reviews what he wrote. The same model of another provider is the same model.
    """
    found = find(name)
    try:
        own = _models_of(find(author))
    except NotFound:
        return found
    if same := _models_of(found) & own:
        raise ModelFailed(
            "not_allowed",
            f"the reviewer '{name}' is the model that writes the edits ({', '.join(sorted(same))}); name one "
            "of another family under [review] model in policy.toml",
        )
    return found


def _models_of(spec: ModelSpec) -> set[str]:
    return {one.model.rpartition("/")[2] for one in (spec, *spec.fallbacks)}


class Advice:
    """Implements ``ports.Adviser``. ``spec`` finds the model as it is set up now; raises NotFound.

    ``speed`` is how quick a model of that name was of late: an answer is waited for as long as it needs.
    """

    def __init__(
        self,
        name: str,
        models: Models,
        spec: Callable[[], ModelSpec],
        budget: Budget,
        speed: Callable[[str], ModelSpeed] = lambda _: ModelSpeed(()),
    ) -> None:
        self.name = name
        self._models = models
        self._spec = spec
        self._budget = budget
        self._speed = speed

    @property
    def small(self) -> bool:
        """See ``ports.Adviser``."""
        try:
            return self._spec().context_tokens <= _SMALL_CONTEXT
        except NotFound:
            return False

    def ask(self, evolution_id: str, purpose: str, request: Json) -> Reply:
        """See ``ports.Adviser``."""
        try:
            spec = self._spec()
        except NotFound as error:
            raise ModelFailed("no_model", str(error)) from None
        grant = Grant(
            run_id=f"{evolution_id}-{purpose}",
            mode=Mode.RECORD,  # under one run id: what was answered before a crash is not asked again
            models=(spec,),
            budget=self._budget,
            evolution_id=evolution_id,
        )
        asked = dict(request)
        if (longest := asked.get("max_tokens")) is not None:  # as of an agent: a small model never ends else
            asked["max_tokens"] = min(longest, spec.context_tokens // _ANSWER_SHARE)
        session = self._models.open(grant)
        try:
            return session.complete(asked, time.monotonic() + self._patience_s(spec, asked))
        except ModelFailed as error:
            if error.kind in _AWAY:
                raise ModelAway(f"no model could be asked ({error.kind}): {error}") from None
            raise
        finally:
            session.close()

    def _patience_s(self, spec: ModelSpec, asked: Mapping[str, Any]) -> float:
        size = tokens_of(sum(len(text) for text in texts([asked.get("messages"), asked.get("tools")])))
        return self._speed(spec.name).patience_s(size, output_limit(asked))


def speed_in(home: Home, model: str) -> ModelSpeed:
    """How quick the model was in the last day, as the home's record of calls has it."""
    reading = CallReading(home.calls)
    try:
        return reading.speed(model, time.time() - KNOWN_S)
    finally:
        reading.close()
