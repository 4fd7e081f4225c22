"""What runs of one task changed, compared: no outcome is looked at."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.domain import Fault, Step
from agentos.evolver.find.signals import changes, deviation

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def act(tool: str, args: Any = None, fault: Fault | None = None) -> Step:
    return Step("run-1", 0, "act", {"tool": tool, "args": args or {}}, {"output": "ok"}, fault, NOW, 0.0)


BOOK, SEAT = act("book_flight", {"to": "OSL"}), act("update_seat", {"seat": 3})
READ = act("get_user", {"id": 1})


@pytest.mark.parametrize(
    ("steps", "others", "share"),
    [
        ([BOOK], [[BOOK, READ], [READ, BOOK]], 0.0),
        ([BOOK], [[SEAT]], 1.0),
        ([BOOK], [[BOOK], [SEAT]], 0.5),
        ([BOOK, SEAT], [[BOOK]], 0.5),
        ([READ], [[BOOK]], 1.0),
        ([BOOK, BOOK], [[BOOK]], 0.5),
        ([BOOK], [[act("book_flight", {"to": "BGO"})]], 1.0),
        ([BOOK], [[BOOK, act("update_seat", {}, Fault("state", "taken"))]], 0.0),
    ],
)
def test_the_share_that_differs(steps: list[Step], others: list[list[Step]], share: float) -> None:
    found = deviation(steps, others)
    assert found is not None
    assert (found.share, found.others) == (share, len(others))


@pytest.mark.parametrize("others", [[], [[READ], []]])
def test_nothing_to_compare(others: list[list[Step]]) -> None:
    assert deviation([READ], others) is None


def test_an_edit_is_told_by_its_file_and_anything_else_by_its_arguments() -> None:
    edit = {"path": "/a/x.py", "old_str": "a", "new_str": "b"}
    other = {"path": "/b/x.py", "old_str": "a", "new_str": "c"}
    assert changes([act("str_replace_editor", edit)]) == changes([act("str_replace_editor", other)])
    assert changes([act("bash", {"command": "sed -i s/a/b/ src/y.py"})]) == {"bash y.py": 1}
    assert not changes(
        [act("bash", {"command": "ls"}), act("str_replace_editor", {"command": "view", "path": "x"})]
    )


def test_a_change_may_hold_half_a_character() -> None:
    edit = Step(
        "run-1", 0, "act", {"tool": "write", "args": {"text": "\ud800"}}, {"ok": True}, None, NOW, 1.0
    )
    found = deviation([edit], [[edit]])
    assert found is not None
    assert found.share == 0.0
