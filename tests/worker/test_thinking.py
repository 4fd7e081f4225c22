"""The harness that ships, where a model decides: what it is told, what is done, and when it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentos.messages import Ask, WireFault

Tool = Callable[..., str]
Said = dict[str, Any]
PROBE = "tool/probe/tool.py"
HARNESS = Path(__file__).parents[2] / "registry" / "harness" / "default"
AGENT = 'description = "For a test."\n'


def says(text: str) -> Said:
    return {"content": text}


def calls(*asked: tuple[str, dict[str, Any] | str]) -> Said:
    """A reply that asks for these calls; a text stands for arguments as they are."""
    return {
        "content": None,
        "tool_calls": [
            {
                "id": f"id-{number}",
                "type": "function",
                "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)},
            }
            for number, (name, args) in enumerate(asked)
        ],
    }


def fault(kind: str, message: str = "the reason") -> WireFault:
    return WireFault(type=kind, message=message, where="", resource="")


class Script:
    """Answers model calls one after another, the last one again and again; other asks by name."""

    def __init__(self, *replies: Said | WireFault, usage: int = 0, **others: Any) -> None:
        self._replies = list(replies)
        self._usage = {"total_tokens": usage}
        self._others = others

    def __call__(self, ask: Ask) -> dict[str, Any] | WireFault:
        if ask.what != "model":
            found = self._others.get(ask.what, fault("not_available"))
            return found(ask.body) if callable(found) else found
        said = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(said, WireFault):
            return said
        choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": "stop"}
        return {"reply": {"choices": [choice], "usage": self._usage}}


@pytest.fixture
def think(workers: Callable[[], Any], tool: Tool) -> Callable[..., Any]:
    """``think(script, files, …)``: a run of the default harness with a model of 32,768 tokens."""

    def think(
        script: Callable[[Ask], Any],
        files: dict[str, str] | None = None,
        inputs: dict[str, bytes] | None = None,
        context_tokens: int = 32_768,
        **given: Any,
    ) -> Any:
        files = {PROBE: tool("probe", "return Output(n=input.n * 2)"), **(files or {})}
        files.setdefault("agent/default/resource.toml", AGENT)
        models = [{"name": "fake", "context_tokens": context_tokens}]
        given = {"effects": ["pure", "read", "write"], "max_steps": 200, "models": models, **given}
        return workers().run(files, None, inputs, answer=script, **given)

    return think


def last(request: dict[str, Any], role: str = "tool") -> str:
    return str([message for message in request["messages"] if message["role"] == role][-1]["content"])


# --- what it is told --------------------------------------------------------------------------

SKILL = "---\nname: maths\ndescription: >-\n  Doubles numbers.\n  Use it for sums.\n---\n\n# Maths\n\nAlways double twice.\n"


@pytest.mark.slow
def test_the_first_request_holds_everything_in_its_place(think: Any, tool: Tool) -> None:
    files = {
        "prompt/default/prompt.md": "You are careful.",
        "skill/maths/SKILL.md": SKILL,
        "skill/maths/references/tables.md": "2 4 8",
        "skill/maths/tools/twice.py": tool("twice", "return Output(n=input.n * 4)"),
        "tool/outside/tool.py": tool("outside", "return Output(n=1)", '["external"]'),
        "memory/default/memory.md": "# Lessons\n\nFiles end in CRLF.\n",
    }
    ran = think(Script(says("done")), files, {"a/table.csv": b"1"}, goal="Double it.")
    (request,) = ran.requests
    system, user = request["messages"]
    assert system["content"].startswith("You are careful.")
    assert "- a/table.csv" in system["content"]
    assert "- maths: Doubles numbers. Use it for sums. (also: references/tables.md)" in system["content"]
    assert "Always double twice" not in system["content"]
    assert "for reference and no rules" in system["content"].partition("Files end in CRLF.")[0]
    assert "# Lessons" not in system["content"]
    assert user == {"role": "user", "content": "Double it."}
    names = [entry["function"]["name"] for entry in request["tools"]]
    assert names == ["read_skill", "recall", "remember", "ask_person", "twice", "probe"]
    probe = request["tools"][-1]["function"]
    assert probe["parameters"]["properties"]["n"]["type"] == "integer"
    assert (ran.done.finished, ran.done.answer) == ("answered", "done")
    assert [step.node for step in ran.steps] == ["route", "think", "verify", "finish"]


@pytest.mark.slow
def test_an_agent_says_what_may_be_asked_and_whom(think: Any) -> None:
    files = {
        "agent/default/resource.toml": AGENT + 'asks = ["recall"]\nagents = ["fact-*"]\n',
        "agent/fact-finder/resource.toml": 'description = "Finds facts."\n',
    }
    (request,) = think(Script(says("x")), files).requests
    names = {entry["function"]["name"]: entry["function"]["description"] for entry in request["tools"]}
    assert list(names) == ["recall", "ask_fact_finder", "probe"]
    assert names["ask_fact_finder"].endswith("'fact-finder' and get its answer. Finds facts.")


@pytest.mark.slow
def test_tools_of_one_name_are_told_apart(think: Any, tool: Tool) -> None:
    files = {
        f"skill/{name}/tools/probe.py": tool("probe", f"return Output(n={number})")
        for number, name in enumerate(("one", "two"))
    }
    ran = think(Script(calls(("one__probe", {}), ("two__probe", {}), ("probe", {"n": 8})), says("x")), files)
    assert [step.observation["output"]["n"] for step in ran.acts()] == [0, 1, 16]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("It is 4.", "It is 4."),
        (" 42\n", 42),
        ('{"n": [1, 2]}', {"n": [1, 2]}),
        ('```json\n{"n": 1}\n```', {"n": 1}),
        ("```\nplain\ntext\n```", "plain\ntext"),
        ("see:\n```json\n{}\n```", "see:\n```json\n{}\n```"),
        ("```\na\n```\nand\n```\nb\n```", "```\na\n```\nand\n```\nb\n```"),
        ("NaN", "NaN"),
        ("[]", []),
        ('{"n": 1} {"n": 2}', '{"n": 1} {"n": 2}'),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_the_answer_is_the_json_value_that_the_whole_text_is(parts: Any, text: str, answer: Any) -> None:
    assert parts.replies.answer_of(text) == answer


# --- what is done -----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_result_goes_back_under_the_id_of_its_call(think: Any) -> None:
    ran = think(Script(calls(("probe", {"n": 21})), says("42")))
    assert ran.requests[1]["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": calls(("probe", {"n": 21}))["tool_calls"]},
        {"role": "tool", "tool_call_id": "id-0", "content": '{"n": 42}'},
    ]
    assert [step.node for step in ran.steps] == ["route", "think", "act", "think", "verify", "finish"]
    assert ran.done.answer == 42
    assert ran.done.resources == ["agent/default", "harness/default", "tool/probe"]


@pytest.mark.slow
def test_parallel_results_keep_the_order_of_their_calls(think: Any, tool: Tool) -> None:
    """Each waits for the one after it: they end in the reverse order, and only if they run side by side."""
    body = """
open(f'began-{input.n}', 'w').close()
while input.n < 4 and not os.path.exists(f'ended-{input.n + 1}'):
    time.sleep(0.001)
open(f'ended-{input.n}', 'w').close()
return Output(n=input.n)
"""
    files = {"tool/chain/tool.py": tool("chain", body.strip())}
    ran = think(Script(calls(*[("chain", {"n": n}) for n in range(1, 5)]), says("x")), files)
    assert [step.observation["output"]["n"] for step in ran.acts()] == [1, 2, 3, 4]
    told = [message["content"] for message in ran.requests[1]["messages"] if message["role"] == "tool"]
    assert told == [f'{{"n": {n}}}' for n in range(1, 5)]


@pytest.mark.slow
def test_a_tool_that_writes_runs_in_its_turn(think: Any, tool: Tool) -> None:
    files = {
        "tool/put/tool.py": tool("put", "time.sleep(0.2)\nopen('f', 'a').write(str(input.n))\nreturn Output(n=0)", '["write"]'),
        "tool/get/tool.py": tool("get", "return Output(n=int('0' + open('f').read() if os.path.exists('f') else 0))", '["read"]'),
    }  # fmt: skip
    asked = [("get", {}), ("put", {"n": 1}), ("get", {}), ("put", {"n": 2}), ("get", {}), ("get", {})]
    ran = think(Script(calls(*asked), says("x")), files)
    read = [step.observation["output"]["n"] for step in ran.acts() if step.action["tool"] == "get"]
    assert read == [0, 1, 12, 12]


def test_a_skill_is_read_on_demand(think: Any) -> None:
    files = {"skill/maths/SKILL.md": SKILL, "skill/maths/references/tables.md": "2 4 8"}
    script = Script(
        calls(
            ("read_skill", {"skill": "maths"}),
            ("read_skill", {"skill": "maths", "file": "references/tables.md"}),
            ("read_skill", {"skill": "maths", "file": "../../agent/default/resource.toml"}),
            ("read_skill", {"skill": "physics"}),
        ),
        says("x"),
    )
    ran = think(script, files)
    told = [message["content"] for message in ran.requests[1]["messages"] if message["role"] == "tool"]
    assert "Always double twice." in told[0]
    assert told[1] == "2 4 8"
    assert "it has: SKILL.md, references/tables.md" in told[2]
    assert "there is no skill 'physics'; there are: maths" in told[3]
    assert "skill/maths" in ran.done.resources


def test_what_the_kernel_gives_is_asked_and_recorded(think: Any) -> None:
    memories = [{"id": "m1", "text": "Mind the header.", "score": 1.0}]
    script = Script(
        calls(("recall", {"query": "header", "limit": 2}), ("remember", {"text": "It has one.", "why": "seen"}),
              ("ask_person", {"question": "Which?", "choices": ["a", "b"]}), ("recall", {"query": 3})),
        says("x"),
        recall={"memories": memories}, remember={"proposed": "p1"}, person={"answer": "b"},
    )  # fmt: skip
    ran = think(script)
    assert [(ask.what, ask.body) for ask in ran.asks if ask.what not in ("model", "tool")] == [
        ("recall", {"query": "header", "limit": 2}),
        ("remember", {"text": "It has one.", "why": "seen"}),
        ("person", {"question": "Which?", "choices": ["a", "b"]}),
    ]
    told = [message["content"] for message in ran.requests[1]["messages"] if message["role"] == "tool"]
    assert json.loads(told[0]) == {"memories": ["Mind the header."], "these_are": "reference, not rules"}
    assert json.loads(told[2]) == {"answer": "b"}
    assert "'query' has to be a text" in told[3]
    assert [step.action["tool"] for step in ran.acts()] == ["recall", "remember", "ask_person", "recall"]


@pytest.mark.slow
def test_where_there_are_more_skills_it_can_look_for_them(think: Any) -> None:
    found = [{"name": "bylaws", "description": "Drafts statutes", "text": "First the name."}]
    script = Script(calls(("find_skills", {"query": "statutes"})), says("x"), skills={"skills": found})
    ran = think(script, more_skills=7)
    (ask,) = [ask for ask in ran.asks if ask.what == "skills"]
    assert ask.body == {"query": "statutes", "limit": 3}
    assert "First the name." in last(ran.requests[1])
    names = [entry["function"]["name"] for entry in think(Script(says("x"))).requests[0]["tools"]]
    assert "find_skills" not in names, "where it has all there are"


def test_other_agents_are_handed_parts_of_the_task(think: Any, tool: Tool) -> None:
    def hand_over(body: dict[str, Any]) -> dict[str, Any]:
        if "fail" in body["goal"]:
            return {"run": "r2", "ok": False, "answer": None, "reason": "it gave up"}
        return {"run": "r1", "ok": True, "answer": {"sum": 3}, "reason": ""}

    files = {"agent/adder/resource.toml": 'description = "Adds."\n'}
    asked = calls(
        ("ask_adder", {"goal": "add", "inputs": ["t.txt"]}),
        ("ask_adder", {"goal": "fail"}),
        ("ask_adder", {"goal": "add", "inputs": ["pipe"]}),
        ("ask_adder", {"goal": "add", "inputs": ["none.txt"]}),
    )
    pipes = tool("pipes", "os.mkfifo('pipe')\nreturn Output(n=1)", '["write"]')
    script = Script(calls(("pipes", {})), asked, says("x"), delegate=hand_over)
    ran = think(script, files | {"tool/pipes/tool.py": pipes}, {"t.txt": b"1 2"})
    assert not ran.files  # and the pipe was left behind
    delegated = [ask.body for ask in ran.asks if ask.what == "delegate"]
    assert {"agent": "adder", "goal": "add", "inputs": {"t.txt": "1 2"}} in delegated
    assert len(delegated) == 2
    told = [message["content"] for message in ran.requests[2]["messages"] if message["role"] == "tool"][1:]
    assert told[0] == '{"sum": 3}'
    assert "adder did not succeed: it gave up" in told[1]
    assert "'pipe' is no plain file" in told[2]
    assert "'none.txt' cannot be read" in told[3]


# --- what is long, and what fails -------------------------------------------------------------

LONG = """
print('a warning')
return Output(n='first line\\n' + 'x' * 50_000 + '\\nthe middle\\n' + 'y' * 50_000 + '\\nlast line')
"""


def long_tool(tool: Tool) -> dict[str, str]:
    source = tool("long", LONG.strip()).replace(
        "class Output(BaseModel):\n    n: int", "class Output(BaseModel):\n    n: str"
    )
    return {"tool/long/tool.py": source}


def test_a_long_result_keeps_head_and_tail_and_can_be_read_on(think: Any, tool: Tool) -> None:
    page = ("read_output", {"reference": "output:1", "offset": 50_000, "limit": 100})
    script = Script(calls(("long", {})), calls(page, ("read_output", {"reference": "output:9"})), says("x"))
    ran = think(script, long_tool(tool))
    told = last(ran.requests[1])
    assert len(told) <= 12_000
    assert told.startswith("n:\nfirst line\n")
    assert "last line\n[printed]\na warning\n" in told
    assert "left out; the whole is output:1, see read_output" in told
    first, second = [
        message["content"] for message in ran.requests[2]["messages"] if message["role"] == "tool"
    ][1:]
    assert "the middle" in first
    assert "characters follow: offset 50100]" in first
    assert "there is no 'output:9'; kept are: output:1" in second


@pytest.mark.slow
def test_what_fails_is_told_with_a_note_that_grows(think: Any, tool: Tool) -> None:
    files = {"tool/bad/tool.py": tool("bad", "return [][input.n]")}
    script = Script(
        calls(("bad", {"n": 1})), calls(("bad", {"n": 1})), calls(("bad", {"n": 2})), calls(("bad", {"n": "x"})),
        calls(("probe", {})), calls(("bad", {"n": 9})), says("x"),
    )  # fmt: skip
    ran = think(script, files)
    told = [last(request) for request in ran.requests[1:]]
    assert told[0].startswith(
        "It failed: IndexError: bad: list index out of range (at tool/bad/tool.py:run)\nNote: "
    )
    assert "The same call with the same arguments will fail again" in told[0]
    assert "This exact call has failed before" in told[1]
    assert "failed 3 times in a row" in told[2]
    assert "n: Input should be a valid integer" in told[3]
    assert "Note" not in told[4]
    assert "failed 2 times in a row" not in told[5]
    assert [step.fault.type for step in ran.acts() if step.fault] == ["IndexError"] * 3 + [
        "input",
        "IndexError",
    ]
    assert ran.done.answer == "x"


NONSENSE = {
    "unknown_tool": ("no_such_tool", {}),
    "bad_arguments": ("probe", '{"n": '),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_calls_that_cannot_be_made_are_told_and_then_end_the_run(think: Any, kind: str) -> None:
    ran = think(Script(calls(NONSENSE[kind])))
    assert (ran.done.finished, ran.done.fault.type) == ("failed", kind)
    assert len(ran.requests) == 3
    told = last(ran.requests[1])
    assert ("there are: read_output, recall" if kind == "unknown_tool" else "not JSON") in told
    sent_back = ran.requests[1]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent_back) == {}
    assert [step.fault.type for step in ran.acts()] == [kind] * 3


def test_sense_between_nonsense_is_enough_to_go_on(think: Any) -> None:
    bad = calls(("probe", "[1]"))
    ran = think(Script(bad, bad, calls(("probe", {"n": 1})), bad, bad, says("done")))
    assert ran.done.answer == "done"
    assert "the arguments are list" in last(ran.requests[1])


@pytest.mark.parametrize("kind", ["empty", "cut", "malformed"])
@pytest.mark.slow
def test_an_unusable_reply_is_answered_with_advice(think: Any, kind: str) -> None:
    ran = think(Script(fault(kind), fault(kind), says("done")))
    assert ran.done.answer == "done"
    assert [step.fault.type for step in ran.steps if step.node == "think" and step.fault] == [kind, kind]
    assert "Your last reply" in last(ran.requests[2], "user")
    ran = think(Script(fault(kind)))
    assert (ran.done.finished, ran.done.fault.type, len(ran.requests)) == ("failed", kind, 3)


@pytest.mark.parametrize("kind", ["refused", "request"])
def test_what_no_advice_helps_ends_the_run(think: Any, kind: str) -> None:
    ran = think(Script(fault(kind, "no such thing")))
    assert (ran.done.fault.type, ran.done.fault.message, len(ran.requests)) == (kind, "no such thing", 1)


@pytest.mark.slow
def test_blank_text_is_no_answer(think: Any) -> None:
    ran = think(Script(says(" \n")))
    assert (ran.done.fault.type, len(ran.requests)) == ("empty", 3)
    ran = think(Script({"content": None}, {}, says("now")))
    assert ran.done.answer == "now"


@pytest.mark.slow
def test_a_request_that_the_provider_finds_too_long_is_made_smaller(think: Any, tool: Tool) -> None:
    script = Script(
        *[calls(("long", {"n": n})) for n in range(6)], fault("context"), fault("context"), says("x")
    )
    ran = think(script, long_tool(tool))
    sizes = [len(json.dumps(request)) for request in ran.requests]
    assert sizes[6] > sizes[7] > sizes[8]
    assert ran.done.answer == "x"
    ran = think(Script(fault("context")))
    assert (ran.done.fault.type, len(ran.requests)) == ("context", 4)


# --- when it ends -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_call_with_the_same_result_is_a_loop(think: Any) -> None:
    ran = think(Script(calls(("probe", {"n": 1}))))
    assert (ran.done.finished, ran.done.fault.type) == ("failed", "loop")
    assert len(ran.requests) == 6
    assert "going in circles" in last(ran.requests[3], "user")
    assert [step.observation["circles"] for step in ran.steps if step.node == "observe"] == ["tell", "stop"]


@pytest.mark.slow
def test_a_loop_of_long_results_is_seen_too(think: Any, tool: Tool) -> None:
    assert think(Script(calls(("long", {}))), long_tool(tool)).done.fault.type == "loop"


@pytest.mark.slow
def test_a_pattern_is_a_loop_and_a_changing_result_is_none(think: Any, tool: Tool) -> None:
    two = [calls(("probe", {"n": 1})), calls(("probe", {"n": 2}))]
    ran = think(Script(*two * 12))
    assert (ran.done.fault.type, len(ran.requests)) == ("loop", 12)
    count = "k = len(os.listdir('.'))\nopen(f'f{k}', 'w').close()\nreturn Output(n=k)"
    files = {"tool/count/tool.py": tool("count", count, '["write"]')}
    ran = think(Script(*[calls(("count", {}))] * 12, says("done")), files)
    assert ran.done.answer == "done"


@pytest.mark.slow
def test_a_word_of_warning_can_help(think: Any) -> None:
    same = calls(("probe", {"n": 1}))
    ran = think(Script(same, same, same, calls(("probe", {"n": 2})), same, same, says("done")))
    assert ran.done.answer == "done"


@pytest.mark.parametrize("steps", [0, 1, 3, 4, 5, 6, 7, 20])  # a call takes three steps
def test_near_the_step_limit_there_is_one_last_word(think: Any, steps: int) -> None:
    def script(ask: Ask) -> dict[str, Any]:
        said = calls(("probe", {"n": len(str(ask.body))})) if "tools" in ask.body else says("what I have")
        return {"reply": {"choices": [{"message": {"role": "assistant", **said}}]}}

    ran = think(script, max_steps=steps)
    assert len(ran.steps) <= steps
    if steps >= 4:
        assert (ran.done.finished, ran.done.answer) == ("answered", "what I have")
        assert "nearly spent" in last(ran.requests[-1], "user")
        assert sum("tools" not in request for request in ran.requests) == 1
    else:
        assert (ran.done.finished, ran.done.fault.type) == ("limit", "steps")


@pytest.mark.slow
def test_a_flood_of_calls_is_cut_to_the_steps_that_are_left(think: Any) -> None:
    script = Script(calls(*[("probe", {"n": n}) for n in range(50)]), says("x"))
    ran = think(script, max_steps=20)
    assert len(ran.acts()) == 20 - 6 - 2
    assert "too few steps are left" in last(ran.requests[1])
    assert ran.done.answer == "x"


def test_calls_in_the_last_word_are_not_made(think: Any) -> None:
    ran = think(Script(calls(("probe", {"n": 1}))), max_steps=6)
    assert (ran.done.finished, ran.done.fault.type) == ("failed", "limit")
    assert not ran.acts()


@pytest.mark.parametrize(
    ("limits", "usage", "requests"), [({"max_calls": 3}, 0, 3), ({"max_tokens": 60_000}, 14_000, 4)]
)
def test_what_a_run_may_use_ends_in_a_last_word(
    think: Any, limits: dict[str, int], usage: int, requests: int
) -> None:
    replies: Sequence[Said] = [calls(("probe", {"n": n})) for n in range(requests - 1)]
    ran = think(Script(*replies, says("what I have"), usage=usage), **limits)
    assert (ran.done.answer, len(ran.requests)) == ("what I have", requests)
    assert "tools" not in ran.requests[-1]


@pytest.mark.slow
def test_a_reply_that_cannot_be_used_counts_as_a_call(think: Any) -> None:
    step = calls(("probe", {"n": 1}))
    ran = think(Script(fault("cut"), fault("cut"), step, says("what I have")), max_calls=4)
    assert (ran.done.answer, len(ran.requests)) == ("what I have", 4)
    assert "tools" not in ran.requests[-1]


@pytest.mark.slow
def test_no_more_may_be_answered_than_the_run_has_left(think: Any) -> None:
    step = calls(("probe", {"n": 1}))
    ran = think(Script(step, says("what I have"), usage=12_000), max_tokens=18_000)
    first, final = (request["max_tokens"] for request in ran.requests)
    assert first == 8_192
    assert "tools" not in ran.requests[1]
    assert 4_000 < final < 6_000


@pytest.mark.slow
def test_two_equal_runs_ask_the_same_byte_for_byte(think: Any, tool: Tool) -> None:
    script = [calls(("probe", {"n": 1}), ("long", {})), calls(("bad", {}), ("nothing", {})), says("x")]
    files = {"tool/bad/tool.py": tool("bad", "return [][9]"), **long_tool(tool)}
    first, second = (think(Script(*script), files, {"b": b"", "a": b""}) for _ in range(2))
    assert json.dumps(first.requests) == json.dumps(second.requests)
    assert [(step.node, step.action, step.observation) for step in first.steps] == [
        (step.node, step.action, step.observation) for step in second.steps
    ]


def test_hooks_see_each_call_of_a_thinking_run(think: Any) -> None:
    files = {f"harness/default/{path.name}": path.read_text() for path in HARNESS.glob("*.*")}
    files["harness/default/hooks.py"] += """
def plus_one(turn): turn.args["n"] += 1
def hide(turn): turn.answer = {"n": "hidden"}
def sign(turn): turn.answer = [turn.answer, "signed"]
before_act.append(plus_one)
after_observe.append(hide)
on_finish.append(sign)
"""
    ran = think(Script(calls(("probe", {"n": 1})), says("x")), files)
    assert ran.act.action["args"] == {"n": 2}
    assert last(ran.requests[1]) == '{"n": "hidden"}'
    assert ran.done.answer == ["x", "signed"]


# --- a long past ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_long_past_becomes_a_line_each(think: Any, tool: Tool) -> None:
    body = "return Output(n=str(input.n) + ' ' + 'word ' * 1000)"
    files = {
        "tool/talk/tool.py": tool("talk", body).replace(
            "BaseModel):\n    n: int\n", "BaseModel):\n    n: str\n"
        )
    }
    ran = think(
        Script(*[calls(("talk", {"n": n})) for n in range(20)], says("x")), files, context_tokens=8_192
    )
    asked = ran.requests[-1]["messages"]
    assert asked[0]["content"].startswith("a test\n\nWhat you did so far, in short")
    assert '- talk({"n": 10}) → {"n": "10 word word' in asked[0]["content"]
    roles = [message["role"] for message in asked]
    assert roles[1:] == ["assistant", "tool"] * (len(roles[1:]) // 2)
    assert asked[-1]["content"].startswith('{"n": "19 word')
    steps = [step.action["compacted"] for step in ran.steps if step.node == "think"]
    assert 1 < len(set(steps)) < 12  # rarely, and several at a time


@pytest.mark.slow
def test_a_model_may_write_the_summary(think: Any, tool: Tool) -> None:
    def script(ask: Ask) -> dict[str, Any]:
        first = ask.body["messages"][0]["content"]
        if first.startswith("You are in the middle of a task"):
            assert "tools" not in ask.body
            assert ask.body["max_tokens"] == 2_048
            said = says("So far: all went well.")
        else:
            n = sum(message["role"] == "tool" for message in ask.body["messages"])
            said = says("x") if "all went well" in str(ask.body) else calls(("long", {"n": n}))
        return {"reply": {"choices": [{"message": {"role": "assistant", **said}}]}}

    files = {"agent/default/resource.toml": AGENT + 'compaction = "model"\n', **long_tool(tool)}
    ran = think(script, files, context_tokens=8_192)
    assert ran.done.answer == "x"
    assert "So far: all went well." in ran.requests[-1]["messages"][0]["content"]


@pytest.mark.slow
@pytest.mark.parametrize("max_calls", [4, 5, 6, 7])
def test_a_summary_does_not_take_the_call_of_the_last_word(think: Any, tool: Tool, max_calls: int) -> None:
    """The run asked once more than it may, and ended without an answer."""

    def script(ask: Ask) -> dict[str, Any]:
        first = ask.body["messages"][0]["content"]
        if "tools" not in ask.body:
            is_summary = first.startswith("You are in the middle of a task")
            said = says("So far so good." if is_summary else "what I have")
        else:
            said = calls(("long", {"n": len(str(ask.body))}))
        return {"reply": {"choices": [{"message": {"role": "assistant", **said}}]}}

    files = {"agent/default/resource.toml": AGENT + 'compaction = "model"\n', **long_tool(tool)}
    ran = think(script, files, context_tokens=8_192, max_calls=max_calls)
    assert ran.done.answer == "what I have"
    assert len(ran.requests) <= max_calls


@pytest.mark.slow
def test_a_model_reads_a_skill_with_a_script_and_runs_that(think: Any) -> None:
    files = {
        "skill/forms/SKILL.md": "---\nname: forms\ndescription: Use when: a form is filled.\n---\n\n# Forms\n\n"
        "Run `python {baseDir}/scripts/fill.py FORM NAME`.\n",
        "skill/forms/scripts/fill.py": "import sys\nprint(open(sys.argv[1]).read().format(name=sys.argv[2]))\n",
        "skill/forms/assets/form.txt": "Dear {name}",
    }
    script = Script(
        calls(("read_skill", {"skill": "forms"})),
        calls(("run_script", {"skill": "forms", "script": "./scripts/fill.py", "args": ["my.txt", "Ada"]})),
        calls(
            (
                "run_script",
                {"skill": "forms", "script": "scripts/fill.py", "args": ["assets/form.txt", "Bob"]},
            )
        ),
        calls(("run_script", {"skill": "forms", "script": "scripts/none.py"})),
        calls(("read_skill", {"skill": "forms", "file": "scripts/fill.py"})),
        says("Hello Ada"),
    )
    ran = think(script, files, {"my.txt": b"Hello {name}"})
    told = [last(request) for request in ran.requests[1:]]
    assert "Use when: a form is filled." in ran.requests[0]["messages"][0]["content"]
    assert "{baseDir}" not in told[0]
    assert "/skill/forms/scripts/fill.py FORM NAME" in told[0]
    assert "assets/form.txt, scripts/fill.py" in told[0]
    assert "Hello Ada" in told[1]
    assert "Dear Bob" in told[2]
    assert "unknown_tool" in told[3]
    assert "sys.argv" in told[4]
    assert ran.done.answer == "Hello Ada"
    assert [step.action.get("path") for step in ran.acts()][1] == "skill/forms/scripts/fill.py"


def test_without_scripts_that_may_run_none_are_offered(think: Any) -> None:
    files = {
        "skill/forms/SKILL.md": "---\nname: forms\ndescription: x\nallowed-tools: Read\n---\n",
        "skill/forms/scripts/fill.py": "print(1)\n",
    }
    ran = think(Script(says("Done")), files)
    names = [tool["function"]["name"] for tool in ran.requests[0]["tools"]]
    assert "read_skill" in names
    assert "run_script" not in names


# --- as small models answer --------------------------------------------------------------------

AS_TEXT = {
    "fenced": 'I will call it:\n```json\n{"name": "probe", "arguments": {"n": 4}}\n```\nThen I answer.',
    "bare": '{"name": "probe", "parameters": {"n": 4}}',
    "listed": '[{"name": "probe", "arguments": {"n": 4}}]',
    "encoded": '{"type": "function", "function": {"name": "probe", "arguments": "{\\"n\\": 4}"}}',
    "hermes": '<tool_call>\n{"name": "probe", "arguments": {"n": 4}}\n</tool_call>',
    "unclosed": '<tool_call>{"name": "probe", "arguments": {"n": 4}}',
    "llama": '<function=probe>{"n": 4}</function>',
    "coder": "<tool_call>\n<function=probe>\n<parameter=n>\n4\n</parameter>\n</function>\n</tool_call>",
    "coder, unclosed": "<tool_call>\n<function=probe>\n<parameter=n>\n4\n</function>\n</tool_call>",
    "mistral": '[TOOL_CALLS][{"name": "probe", "arguments": {"n": 4}}]',
    "mistral, new": '[TOOL_CALLS]probe[ARGS]{"n": 4}',
    "after a thought": '<think>\nShould I say {"name": "probe"}?\n</think>\n{"name": "probe", "arguments": {"n": 4}}',
}


def reply(text: str) -> Said:
    """As the provider's."""
    return {"choices": [{"message": {"role": "assistant", "content": text}}]}


@pytest.mark.parametrize("form", AS_TEXT)
def test_a_call_that_was_written_as_text_is_read(parts: Any, form: str) -> None:
    (call,) = parts.replies.exchange_of(reply(AS_TEXT[form]), 1, ["probe"]).asked
    assert (call.name, call.args, call.wrong) == ("probe", {"n": 4}, "")


@pytest.mark.parametrize("begun", ["<tool_call>{", "<function=probe>{", "[TOOL_CALLS]"])
def test_many_blanks_in_what_begins_as_a_call_cost_no_time(parts: Any, begun: str) -> None:
    """At 64,000 of them, as a small model writes that lost its way, it took half a minute."""
    began = time.process_time()
    assert parts.replies.exchange_of(reply(begun + " " * 64_000 + "x"), 1, ["probe"]).asked == []
    assert time.process_time() - began < 1.0


def test_many_parameters_without_an_end_cost_no_time(parts: Any) -> None:
    """8,000 of them took six seconds."""
    began = time.process_time()
    said = parts.replies.exchange_of(reply("<function=probe>" + "<parameter=n>" * 8_000), 1, ["probe"])
    assert [call.name for call in said.asked] == ["probe"]
    assert time.process_time() - began < 1.0


def test_the_name_of_a_call_goes_back_as_providers_take_it(parts: Any) -> None:
    said = calls(("multi_tool_use.parallel", {}), ("x" * 100, {}))
    exchange = parts.replies.exchange_of({"choices": [{"message": said}]}, 1, ["probe"])
    assert exchange.asked[0].name == "multi_tool_use.parallel"
    told = [call["function"]["name"] for call in exchange.message["tool_calls"]]
    assert told == ["multi_tool_use_parallel", "x" * 64]


@pytest.mark.parametrize("form", ["fenced", "hermes"])
def test_a_call_that_was_written_as_text_is_made(think: Any, form: str) -> None:
    ran = think(Script(says(AS_TEXT[form]), says("8")))
    assert [(step.action["args"], step.observation["ok"]) for step in ran.acts()] == [({"n": 4}, True)]
    told = ran.requests[1]["messages"]
    assert [message["role"] for message in told] == ["user", "assistant", "user"], (
        "the server knows no other calls"
    )
    assert told[-1]["content"].startswith("Result of probe:")
    assert "8" in told[-1]["content"]
    assert ran.done.answer == 8


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "Ada", "input": "probe"}',
        '{"name": "Ada", "tool": "hammer"}',
        '{"name": "probe"}',
        '[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]',
        '```json\n{"name": "probe", "arguments": {"n": 1}}\n```\nor\n```json\n{"name": "probe", "arguments": {"n": 2}}\n```',
        "Use probe with n = 4.",
    ],
)
def test_what_only_looks_like_a_call_is_none(parts: Any, text: str) -> None:
    assert parts.replies.exchange_of(reply(text), 1, ["probe"]).asked == []


def test_an_answer_that_only_looks_like_a_call_is_the_answer(think: Any) -> None:
    ran = think(Script(says('[{"name": "a", "arguments": {}}, {"name": "b", "arguments": {}}]')))
    assert ran.acts() == []
    assert ran.done.finished == "answered"


@pytest.mark.slow
def test_a_call_as_text_of_what_is_not_offered_gets_one_word_of_advice(think: Any) -> None:
    wrong = says('<tool_call>{"name": "browse", "arguments": {}}</tool_call>')
    ran = think(Script(wrong, says("8")))
    assert "there is no tool 'browse'; there are:" in ran.requests[1]["messages"][-1]["content"]
    assert ran.done.answer == 8
    ran = think(Script(wrong))
    assert (len(ran.requests), ran.done.fault.type) == (2, "unknown_tool")
    assert "--jinja" in ran.done.fault.message


def test_a_call_as_text_where_nothing_is_offered(think: Any) -> None:
    files = {"agent/default/resource.toml": AGENT + "asks = []\n", PROBE: ""}
    wrong = says('{"name": "read_output", "arguments": {"reference": "x"}}')
    ran = think(Script(wrong, says("Paris")), files)
    assert all("tools" not in request for request in ran.requests)
    assert ran.done.answer == "Paris"
    assert think(Script(wrong), files).done.fault.type == "call_as_text"


@pytest.mark.parametrize(
    ("text", "answer"),
    [("<think>hm\n</think>\n\n42", 42), ("first this, then that</think>42", 42), ("<think>hm", None)],
)
def test_thoughts_aloud_are_no_part_of_the_answer(think: Any, text: str, answer: Any) -> None:
    ran = think(Script(says(text)))
    assert ran.done.answer == answer
    assert (ran.done.fault is None) == (answer is not None)


def test_reading_on_is_offered_once_something_was_cut(think: Any, tool: Tool) -> None:
    ran = think(Script(calls(("long", {})), says("x")), long_tool(tool))
    offered = [{entry["function"]["name"] for entry in request["tools"]} for request in ran.requests]
    assert ["read_output" in names for names in offered] == [False, True]


@pytest.mark.slow
def test_a_reply_may_be_as_long_as_what_was_kept_for_it(think: Any) -> None:
    for window, most in ((4_096, 1_024), (32_768, 8_192), (200_000, 8_192)):
        (request,) = think(Script(says("x")), context_tokens=window).requests
        assert request["max_tokens"] == most


@pytest.mark.slow
def test_a_small_window_gets_a_small_frame_with_what_fits_the_goal(think: Any, tool: Tool) -> None:
    many = {f"tool/other-{n}/tool.py": tool(f"other-{n}", "return Output(n=1)") for n in range(20)}
    many["prompt/default/prompt.md"] = (HARNESS.parents[1] / "prompts/default/prompt.md").read_text()
    files = {
        f"tool/{name}/tool.py": path.read_text()
        for name in ("read-file", "word-count")
        if (path := HARNESS.parents[1] / "tools" / name / "tool.py")
    }
    ran = think(Script(says("x")), many | files, goal="Count the words of notes.txt", context_tokens=8_192)
    (request,) = ran.requests
    frame = json.dumps([request["messages"][0], request["tools"]])
    assert len(frame) < 600 * 4
    names = [entry["function"]["name"] for entry in request["tools"]]
    assert "word_count" in names
    assert len(names) < 20


@pytest.mark.parametrize(
    "args",
    [
        '{"n": NaN}',
        '{"n": 1e999}',
        '{"n": 1, "why": "half \\ud83d"}',
        "[" * 100_000,
        "{" + '"n": ' + "[" * 300 + "]" * 300 + "}",
    ],
    ids=range(5),
)
@pytest.mark.slow
def test_arguments_that_no_message_can_carry_are_answered_as_such(think: Any, args: str) -> None:
    ran = think(Script(calls(("probe", args)), calls(("probe", {"n": 4})), says("done")))
    assert (ran.done.finished, ran.done.answer) == ("answered", "done")
    assert "not JSON" in last(ran.requests[1])
    json.dumps(ran.requests, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("text", ["1e999", '"half \\ud83d"'])
@pytest.mark.slow
def test_an_answer_that_is_no_value_is_its_text(think: Any, text: str) -> None:
    ran = think(Script(says(text)))
    assert (ran.done.finished, ran.done.answer) == ("answered", text)


@pytest.mark.slow
def test_a_call_whose_function_is_a_name_alone_is_answered(think: Any) -> None:
    odd = {"content": None, "tool_calls": [{"id": "a", "type": "function", "function": "probe"}]}
    ran = think(Script(odd, says("done")))
    assert (ran.done.finished, ran.done.answer) == ("answered", "done")
