"""What the model is told fits into its context, whatever the run has been through."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.refusals import raises

WINDOWS = (512, 2_048, 8_192, 32_768)

# Plain words, but also what takes more room than it shows: quotes, control characters, other scripts.
TEXT = st.text(st.sampled_from('a b\n"\\\x00\x1bé漢😀'), max_size=40)
LONG = st.builds(lambda text, times: (text or "x") * times, TEXT, st.integers(0, 400))
ARGS = st.dictionaries(st.sampled_from(["n", "path", "content"]), st.one_of(st.integers(), LONG), max_size=3)
CALL = st.tuples(st.sampled_from(["read_file", "shell"]), ARGS, LONG, st.booleans())
EXCHANGE = st.tuples(
    st.one_of(st.none(), LONG), st.lists(CALL, max_size=5), st.sampled_from(["", "Mind this."])
)


def catalog_of(parts: Any, tools: int) -> Any:
    # without a run to ask for its tools
    catalog = parts.tool_catalog.ToolCatalog.__new__(parts.tool_catalog.ToolCatalog)
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "title": "N", "description": "d" * 300}},
    }
    catalog.skills = []
    catalog.entries = {
        f"tool_{n}": parts.tool_catalog.Entry(
            f"tool_{n}", "tool", f"tool_{n}", "It does something." * 4, schema
        )
        for n in range(tools)
    }
    return catalog


def add(parts: Any, context: Any, outputs: Any, given: Any) -> None:
    said, calls, note = given
    asked = [parts.history.Asked(f"id-{n}", name, args) for n, (name, args, _, _) in enumerate(calls)]
    most = min(parts.observations.TOLD_MAX, context.told_max // max(1, len(calls)))
    message = {"role": "assistant", "content": said}
    if asked:
        message["tool_calls"] = [
            {
                "id": one.id,
                "type": "function",
                "function": {"name": one.name, "arguments": json.dumps(one.args)},
            }
            for one in asked
        ]
    exchange = parts.history.Exchange(message, asked, note=note)
    for _, _, text, ok in calls:
        reference = outputs.keep(text) if len(text.encode()) > most else ""
        shown = parts.observations.clipped(text, most, reference)
        exchange.seen.append(parts.history.Seen(ok, shown, "", reference))
    context.exchanges.append(exchange)


@settings(max_examples=60, deadline=None)
@given(
    window=st.sampled_from(WINDOWS),
    prompt=LONG,
    goal=LONG,
    tools=st.integers(0, 60),
    lists=st.tuples(*[st.lists(TEXT, max_size=60)] * 3),
    past=st.lists(EXCHANGE, max_size=12),
    narrow=st.integers(0, 3),
    last_word=st.booleans(),
)
@example(  # nothing but escapes: six bytes for each of its signs
    window=512,
    prompt="\\\x1b" * 17,
    goal="\x1b" * 117,
    tools=1,
    lists=([], [], []),
    past=[],
    narrow=0,
    last_word=False,
)
@pytest.mark.slow
def test_no_request_is_ever_above_the_budget(
    parts: Any,
    window: int,
    prompt: str,
    goal: str,
    tools: int,
    lists: Any,
    past: Any,
    narrow: int,
    last_word: bool,
) -> None:
    outputs = parts.observations.Outputs()
    material = parts.context.Material(prompt, *map(list, lists))
    context = parts.context.Context(material, goal, catalog_of(parts, tools), outputs, window)
    for number, exchange in enumerate([None, *past]):
        if exchange is not None:
            add(parts, context, outputs, exchange)
        if number == 2:
            for _ in range(narrow):
                context.narrow()
        request = context.request("Give your answer now." if last_word else "")
        size = sum(parts.history.tokens(message) for message in request["messages"])
        size += parts.history.tokens(request["tools"]) if "tools" in request else 0
        assert size <= context.budget
        well_formed(request["messages"])


def well_formed(messages: list[dict[str, Any]]) -> None:
    """Each result follows the reply that asked for it, and none is missing: providers refuse anything else."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert not waiting


def test_memories_go_before_files_and_files_before_skills(parts: Any) -> None:
    material = parts.context.Material("Prompt.", ["- file"] * 20, ["- skill"] * 20, ["note"] * 20)
    whole, left_out = material.text(10_000)
    assert left_out == {}
    for less, gone in (
        (10, ["memories"]),
        (50, ["memories", "files"]),
        (100, ["memories", "files", "skills"]),
    ):
        text, left_out = material.text(parts.history.tokens(whole) - less)
        assert set(left_out) == set(gone)
        assert text.startswith("Prompt.")
        assert len(text) < len(whole)


def test_what_many_tools_take_is_cut_by_descriptions_then_by_number(parts: Any) -> None:
    outputs = parts.observations.Outputs()
    contexts = [
        parts.context.Context(parts.context.Material(""), "g", catalog_of(parts, 60), outputs, window)
        for window in (65_536, 32_768, 4_096)
    ]
    described = [json.dumps(context.tools).count('"description": "ddd') for context in contexts]
    assert described[0] == 60
    assert described[1] == described[2] == 0
    assert [len(context.tools) for context in contexts][:2] == [60, 60]
    assert contexts[2].left_out["tools"] == 60 - len(contexts[2].tools) > 0


def test_a_goal_that_is_too_long_can_be_read_on(parts: Any) -> None:
    outputs = parts.observations.Outputs()
    goal = "Begin. " + "x" * 90_000 + " End."
    context = parts.context.Context(parts.context.Material(""), goal, catalog_of(parts, 1), outputs, 8_192)
    (message,) = context.request()["messages"]
    assert message["content"].startswith("Begin.")
    assert message["content"].endswith("End.")
    assert "the whole is output:1" in message["content"]
    assert outputs.page("output:1", 90_000, 100) == "x" * 7 + " End.\n[end]"


def test_a_property_may_be_called_title_or_description(parts: Any) -> None:
    schema = {
        "title": "Input",
        "properties": {"title": {"type": "string", "title": "Title", "description": "x"}},
    }
    entry = parts.tool_catalog.Entry("a", "tool", "a", "d", schema)
    assert entry.told(brief=False)["function"]["parameters"] == {
        "properties": {"title": {"type": "string", "description": "x"}}
    }
    assert entry.told(brief=True)["function"]["parameters"] == {"properties": {"title": {"type": "string"}}}


def test_the_oldest_of_what_was_cut_are_let_go(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.observations, "_KEPT_MAX", 100)
    outputs = parts.observations.Outputs()
    references = [outputs.keep("x" * 40) for _ in range(4)]
    with raises(LookupError, names=[f"{references[2]}, {references[3]}"]):
        outputs.page(references[0], 0, 10)
    assert outputs.page(references[3], 38, 10) == "xx\n[end]"


def test_ids_that_are_missing_or_given_twice_are_made(parts: Any) -> None:
    function = {"name": "probe", "arguments": {"n": 1}}
    calls = [
        {"function": function},
        {"id": "a", "function": function},
        {"id": "a", "function": function},
        "nonsense",
    ]
    body = {"choices": [{"message": {"content": "", "tool_calls": calls, "thinking_blocks": [{"x": 1}]}}]}
    exchange = parts.replies.exchange_of(body, 3)
    assert [asked.id for asked in exchange.asked] == ["call_3_0", "a", "call_3_2", "call_3_3"]
    assert [asked.args for asked in exchange.asked] == [{"n": 1}] * 3 + [{}]
    assert [call["id"] for call in exchange.message["tool_calls"]] == [
        "call_3_0",
        "a",
        "call_3_2",
        "call_3_3",
    ]
    assert exchange.message["thinking_blocks"] == [{"x": 1}]


def test_blanks_within_a_memory_cost_no_time(parts: Any) -> None:
    began = time.process_time()
    for text, told in (("a" + " " * 100_000 + "b", None), ("- Sort.  <!-- m-12ab -->", "- Sort.")):
        assert parts.context._LESSON_ID.sub("", text).rstrip() == (told or text)
    assert time.process_time() - began < 1.0
