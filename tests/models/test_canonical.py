"""What makes two calls the same call, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from agentos.domain import ModelSpec
from agentos.models.requests import effective, request_key, run_mark

SPEC = ModelSpec("main", "openai/x", "", {"temperature": 0.5})


def key(request: dict[str, Any], run_id: str = "run-1", spec: ModelSpec = SPEC) -> str:
    return request_key(effective(request, spec), spec, run_id)


def talk(
    id: str = "a", arguments: str = '{"x": 1, "y": 2}', content: Any = "hi", **more: Any
) -> dict[str, Any]:
    call = {"id": id, "type": "function", "function": {"name": "t", "arguments": arguments}}
    return {
        "messages": [
            {"role": "user", "content": content},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id, "content": "done"},
        ],
        **more,
    }


@pytest.mark.parametrize(
    "same",
    [
        talk(id="call_ffff"),
        talk(arguments='{"y":2,"x":1}'),
        talk(content=[{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]),
        talk(stream=True, stream_options={"include_usage": True}),
        talk(temperature=0.5),
        talk(tools=None, user="somebody", store=False, metadata={"a": 1}, model="main"),
    ],
)
def test_what_means_the_same_has_the_same_key(same: dict[str, Any]) -> None:
    assert key(same) == key(talk())


@pytest.mark.parametrize(
    "other",
    [
        talk(arguments='{"x": 1, "y": 3}'),
        talk(arguments="not json"),
        talk(content="ho"),
        talk(temperature=0.6),
        talk(max_tokens=7),
        talk(seed=1),
        talk(response_format={"type": "json_object"}),
        talk(tools=[{"type": "function", "function": {"name": "t"}}]),
    ],
)
def test_what_means_something_else_has_another(other: dict[str, Any]) -> None:
    assert key(other) != key(talk())


def test_the_other_of_two_parallel_calls_stays_the_other() -> None:
    def answered(first: str, second: str) -> dict[str, Any]:
        calls = [{"id": name, "function": {"name": "t", "arguments": "{}"}} for name in ("a", "b")]
        return {
            "messages": [
                {"role": "assistant", "tool_calls": calls},
                {"role": "tool", "tool_call_id": first, "content": "1"},
                {"role": "tool", "tool_call_id": second, "content": "2"},
            ]
        }

    assert key(answered("a", "b")) != key(answered("b", "a"))


def test_a_runs_own_name_is_taken_out_as_a_whole_word_only() -> None:
    one, two = run_mark("run-1"), run_mark("run-2")
    assert key(talk(content=f"in /tmp/{one}/x"), "run-1") == key(talk(content=f"in /tmp/{two}/x"), "run-2")
    assert key(talk(arguments=f'{{"d": "{one}"}}'), "run-1") == key(
        talk(arguments=f'{{"d":"{two}"}}'), "run-2"
    )
    assert key(talk(content=f"{one}0"), "run-1") != key(talk(content=f"{two}0"), "run-2")
    assert key(talk(content="run-1"), "run-1") == key(talk(content="run-2"), "run-2")
    assert key(talk(content=one), "run-3") != key(talk(content=two), "run-3")


def test_another_model_is_another_call() -> None:
    assert key(talk(), spec=ModelSpec("main", "openai/y", "", {"temperature": 0.5})) != key(talk())
    assert key(talk(), spec=ModelSpec("second", "openai/x", "", {"temperature": 0.5})) != key(talk())
