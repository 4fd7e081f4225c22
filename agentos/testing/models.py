"""Fake of ``ports.Models``: answers by a function, no process, no socket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentos.domain import Json, Reply
from agentos.ports import Grant


class FakeModels:
    """``answer(request, number)`` gives the assistant message of the number-th call (from 0), or raises
    ModelFailed. ``grants`` and ``requests`` keep what was asked."""

    def __init__(self, answer: Callable[[Mapping[str, Any], int], Mapping[str, Json]]) -> None:
        self._answer = answer
        self.grants: list[Grant] = []
        self.requests: list[Mapping[str, Any]] = []
        self.closed = 0

    def open(self, grant: Grant) -> FakeSession:
        """See ``ports.Models``."""
        self.grants.append(grant)
        return FakeSession(self)

    def close(self) -> None:
        """See ``ports.Models``."""


class FakeSession:
    """One run's way to a FakeModels."""

    def __init__(self, models: FakeModels) -> None:
        self._models = models

    def complete(self, request: Json, deadline: float) -> Reply:
        """See ``ports.ModelSession``."""
        number = len(self._models.requests)
        self._models.requests.append(request)
        message = {"role": "assistant", **self._models._answer(request, number)}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        body = {"choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        return Reply(f"call-{number}", body, 10, 5, 0.001, 1.0, recorded=False, model="fake")

    def close(self) -> None:
        """See ``ports.ModelSession``."""
        self._models.closed += 1
