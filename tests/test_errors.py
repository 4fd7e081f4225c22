"""Values as they stand in a sentence."""

from __future__ import annotations

import pytest

from agentos.errors import shown


@pytest.mark.parametrize("value", ["x" * 100, "it's " * 30, ["a"] * 50, {"a": "b" * 90}])
def test_what_is_cut_keeps_its_closing_mark(value: object) -> None:
    told = shown(value, 60)
    assert len(told) == 60
    assert (told[0], told[-1]) == (repr(value)[0], repr(value)[-1])
    assert "…" in told


def test_what_fits_is_whole() -> None:
    assert (shown("short"), shown(10**6), shown(None)) == ("'short'", "1000000", "None")
