"""Other protocols as chat completions: what clients of Anthropic's Messages and OpenAI's Responses send and read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentos.worker.dialects import messages, responses

CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}},
    {"id": "c2", "type": "function", "function": {"name": "patch", "arguments": '{"input": "*** Begin"}'}},
]
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def answer(content: str | None, calls: list[Any] | None = None, finish: str = "stop") -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "x1", "object": "chat.completion", "created": 5, "choices": [choice], "usage": USAGE}


# --- Anthropic's Messages -------------------------------------------------------------------------


def test_a_conversation_with_tools_becomes_a_chat() -> None:
    image = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    asked = messages.request(
        {
            "model": "m",
            "max_tokens": 99,
            "stop_sequences": ["END"],
            "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "hello"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "text", "text": "I look"},
                        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "and?"},
                        {"type": "tool_result", "tool_use_id": "t1", "content": "a b", "is_error": True},
                    ],
                },
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "see"}, {"type": "image", "source": image}],
                },
            ],
            "tools": [
                {"name": "Bash", "description": "runs", "input_schema": {"type": "object"}},
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            "tool_choice": {"type": "tool", "name": "Bash"},
            "thinking": {"type": "enabled"},
            "metadata": {},
            "stream": True,
        }
    )
    call = {"id": "t1", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
    assert asked == {
        "model": "m",
        "max_tokens": 99,
        "stop": ["END"],
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "I look", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "content": "The call failed: a b"},
            {"role": "user", "content": "and?"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ],
            },
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "Bash", "description": "runs", "parameters": {"type": "object"}},
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "Bash"}},
    }


def test_pictures_come_along_from_results_too_and_by_address_to_be_refused() -> None:
    inline = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    away = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "read"}, inline]},
        {"type": "tool_result", "tool_use_id": "t2", "content": "done"},
    ]
    asked = messages.request({"messages": [{"role": "user", "content": [*results, away]}]})["messages"]
    assert [message["role"] for message in asked] == ["tool", "tool", "user"]
    assert [message["content"] for message in asked[:2]] == ["read", "done"]
    addresses = [part["image_url"]["url"] for part in asked[2]["content"]]
    assert addresses == ["data:image/png;base64,AAAA", "https://example.org/a.png"]


def test_what_both_protocols_have_goes_over() -> None:
    asked = messages.request(
        {
            "messages": [{"role": "user", "content": "x"}],
            "top_k": 5,
            "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        }
    )
    assert (asked["top_k"], asked["tool_choice"], asked["parallel_tool_calls"]) == (5, "required", False)


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), (None, "end_turn")],
)
def test_an_answer_becomes_a_message(finish: str, stop: str) -> None:
    told = messages.reply(answer("hi", finish=finish), "m")
    assert (told["type"], told["role"], told["model"], told["stop_reason"]) == (
        "message",
        "assistant",
        "m",
        stop,
    )
    assert told["content"] == [{"type": "text", "text": "hi"}]
    assert told["usage"] == {"input_tokens": 11, "output_tokens": 7}


def test_a_streamed_message_is_the_same_message() -> None:
    given = answer("I look", CALLS, "tool_calls")
    whole = messages.reply(given, "m")
    blocks: list[dict[str, Any]] = []
    names = []
    for name, event in messages.events(given, "m"):
        assert event["type"] == name
        names.append(name)
        if name == "content_block_start":
            assert event["index"] == len(blocks)
            blocks.append(dict(event["content_block"]))
        elif name == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "text_delta":
                blocks[-1]["text"] += delta["text"]
            else:
                blocks[-1]["input"] = json.loads(delta["partial_json"])
        elif name == "message_delta":
            assert event["delta"]["stop_reason"] == "tool_use"
            assert event["usage"]["output_tokens"] == 7
    assert blocks == whole["content"]
    assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_use"]
    assert (names[0], names[-1]) == ("message_start", "message_stop")


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", "[" * 100_000, '{"a": NaN}'])
def test_arguments_that_are_no_object_are_handed_on(arguments: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "Bash", "arguments": arguments}}
    (block,) = messages.reply(answer(None, [call]), "m")["content"]
    assert block["input"] == {"not_json": arguments}


# --- OpenAI's Responses -----------------------------------------------------------------------------

TOOLS = [
    {
        "type": "function",
        "name": "shell",
        "description": "runs",
        "parameters": {"type": "object"},
        "strict": False,
    },
    {"type": "custom", "name": "patch", "description": "edits", "format": {"definition": "start: LF"}},
    {"type": "web_search"},
]


def test_items_become_a_chat() -> None:
    asked = responses.request(
        {
            "model": "m",
            "instructions": "be brief",
            "max_output_tokens": 99,
            "store": False,
            "reasoning": {"effort": "low"},
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": TOOLS,
            "input": [
                {
                    "type": "message",
                    "role": "developer",
                    "content": [{"type": "input_text", "text": "rules"}],
                },
                {"role": "user", "content": "hello"},
                {"type": "reasoning", "summary": [], "encrypted_content": "?"},
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "I look"}],
                },
                {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"command": "ls"}'},
                {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin"},
                {"type": "function_call_output", "call_id": "c1", "output": "a b"},
                {
                    "type": "custom_tool_call_output",
                    "call_id": "c2",
                    "output": [{"type": "input_text", "text": "ok"}],
                },
                {"type": "function_call", "call_id": "c3", "name": "shell", "arguments": "{}"},
            ],
        }
    )
    third = {"id": "c3", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    assert asked["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "I look", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "c1", "content": "a b"},
        {"role": "tool", "tool_call_id": "c2", "content": "ok"},
        {"role": "assistant", "content": None, "tool_calls": [third]},
    ]
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["shell", "patch"]
    assert "start: LF" in asked["tools"][1]["function"]["description"]
    assert (asked["max_tokens"], asked["tool_choice"], asked["parallel_tool_calls"]) == (99, "auto", False)
    assert not {"store", "reasoning", "instructions", "input"} & set(asked)


def test_a_text_and_a_schema_become_a_chat() -> None:
    form = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    asked = responses.request({"input": "hello", "text": {"format": form}, "tools": []})
    assert asked == {
        "messages": [{"role": "user", "content": "hello"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        },
    }


def test_a_streamed_response_is_the_same_response() -> None:
    body = {"model": "m", "tools": TOOLS}
    given = answer("I look", CALLS, "tool_calls")
    whole = responses.reply(given, body)
    assert [item["type"] for item in whole["output"]] == ["message", "function_call", "custom_tool_call"]
    assert whole["output"][2]["input"] == "*** Begin"
    assert whole["usage"]["total_tokens"] == 18
    told = list(responses.events(given, body))
    assert all(event["type"] == name for name, event in told)
    done = [event["item"] for name, event in told if name == "response.output_item.done"]
    assert done == whole["output"]
    assert told[0][1]["response"]["status"] == "in_progress"
    assert told[-1] == ("response.completed", {"type": "response.completed", "response": whole})
    assert "".join(event["delta"] for name, event in told if name == "response.output_text.delta") == "I look"


def test_a_response_that_was_cut_says_so() -> None:
    told = list(responses.events(answer("half", finish="length"), {}))
    name, event = told[-1]
    assert name == "response.incomplete"
    assert event["response"]["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_free_text_that_came_otherwise_is_handed_on() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "patch", "arguments": "*** raw"}}
    (item,) = responses.reply(answer(None, [call]), {"tools": TOOLS})["output"]
    assert item["input"] == "*** raw"
