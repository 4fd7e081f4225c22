"""An evolution whose sandbox is away waits, says so, and goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentos.daemon import service
from agentos.daemon.run.tasks import Stopping
from agentos.errors import Unavailable
from agentos.testing import Undurable


def test_a_step_is_tried_again_until_the_machinery_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_PATIENCE_S", (0.0, 0.0, 0.0))
    said: list[str] = []
    answers: list[Any] = [Unavailable("the engine is away"), Unavailable("the engine is away"), 42]

    def work() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Unavailable):
            raise answer
        return int(answer)

    steps: Any = Undurable()
    assert service._Held(steps, Stopping(), said.append).step("replay", work) == 42
    assert said == ["the engine is away"] * 2
    assert steps.names == ["replay"], "one durable step, however often it was tried"


def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_PATIENCE_S", (0.0,))
    steps: Any = Undurable()

    def work() -> None:
        raise Unavailable("gone for good")

    ignore: Callable[[str], None] = lambda why: None  # noqa: E731
    with pytest.raises(Unavailable, match="gone for good"):
        service._Held(steps, Stopping(), ignore).step("replay", work)
