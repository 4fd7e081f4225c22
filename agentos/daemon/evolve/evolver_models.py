"""The models that the evolver asks: through the gateway like any run's, within an evolution's budget."""

from __future__ import annotations

import time
from collections.abc import Callable

from agentos.domain import Budget, Json, Mode, ModelSpec, Reply
from agentos.errors import ModelFailed, NotFound, Unavailable
from agentos.ports import Grant, Models

PATIENCE_S = 180.0  # for one answer
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
    """Implements ``ports.Adviser``. ``spec`` finds the model as it is set up now; raises NotFound."""

    def __init__(self, name: str, models: Models, spec: Callable[[], ModelSpec], budget: Budget) -> None:
        self.name = name
        self._models = models
        self._spec = spec
        self._budget = budget

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
        session = self._models.open(grant)
        try:
            return session.complete(dict(request), time.monotonic() + PATIENCE_S)
        except ModelFailed as error:
            if error.kind in _AWAY:
                raise Unavailable(f"no model could be asked ({error.kind}): {error}") from None
            raise
        finally:
            session.close()
