"""What is read of a tool's arguments without running it: whatever stands there, it is JSON or nothing."""

from __future__ import annotations

import json

import pytest

from agentos.web.pages.tasks import declared_schema

CLASS = "from pydantic import BaseModel, Field\nclass Input(BaseModel):\n    x: {}\n"


@pytest.mark.parametrize(
    "field",
    [
        *("set[int] = {1, 2}", "bytes = b'a'", "complex = 1j", "dict = {(1, 2): 3}", "dict = {[]: 1}"),
        *("tuple = (1, {2})", "str = '\\ud800'", "set[int] = Field({1, 2})", "Literal[b'a', 'b'] = 'b'"),
    ],
)
def test_a_default_that_is_no_json_is_left_to_the_tool(field: str) -> None:
    found = declared_schema(CLASS.format(field).encode())
    assert found is not None
    assert found["required"] == []
    json.dumps(found, ensure_ascii=False).encode()


@pytest.mark.parametrize("field", ["int", "int = ...", "int = Field(...)"])
def test_what_has_no_default_is_needed(field: str) -> None:
    found = declared_schema(CLASS.format(field).encode())
    assert found is not None
    assert found["required"] == ["x"]


@pytest.mark.parametrize("source", [b"\xff", b"\0", CLASS.format(f"int = {'-' * 5_000}1").encode()])
def test_what_cannot_be_read_tells_nothing(source: bytes) -> None:
    assert declared_schema(source) is None
