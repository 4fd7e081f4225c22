"""The job ``run``: the default harness, every way in which a tool can fail, what is left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentos.worker.tools import programs

PATH = "skill/demo/tools/probe.py"
CALL = {"tool": "probe", "args": {"n": 4}}
Tool = Callable[..., str]


def test_a_call_runs_through_the_whole_graph(worker: Any, tool: Tool) -> None:
    ran = worker.run({PATH: tool("probe", "print('counting')\nreturn Output(n=input.n + 1)")}, CALL)

    assert [step.node for step in ran.steps] == ["route", "call", "act", "observe", "verify", "finish"]
    assert ran.act.action == {"tool": "probe", "args": {"n": 4}, "path": PATH}
    assert ran.act.observation["output"] == {"n": 5}
    assert ran.act.observation["stdout"] == {"head": "counting\n", "tail": "", "size": 9}
    assert (ran.done.finished, ran.done.answer, ran.done.fault) == ("answered", {"n": 5}, None)
    assert ran.done.resources == ["agent/default", "harness/default", "skill/demo"]
    assert worker.ended() == "good"


def test_without_a_call_the_failure_is_clean(worker: Any) -> None:
    ran = worker.run()
    assert [step.node for step in ran.steps] == ["route", "think", "finish"]
    assert ran.done.finished == "failed"
    assert ran.done.fault.type == "no_model"
    assert ran.done.fault.message == "no model is set up (agentos model add), and the task has no call"


HANG = "time.sleep(60)"
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)
return Output(n=os.getpid())
"""

FAULTS = {
    "raises": ("return Output(n=[][input.n])", "IndexError", "list index out of range"),
    "its input": ("return Output(n=1)", "input", "n: Input should be a valid integer"),
    "its output": ("return Output(n='many')", "output", "n: Input should be a valid integer"),
    "changed output": ("out = Output(n=1)\nout.n = 'x'\nreturn out", "output", "n: Input should be"),
    "another type": ("return {'n': 1}", "output", "run returned dict, not its Output"),
    "nothing": ("pass", "output", "run returned NoneType"),
    "sys.exit": ("sys.exit(3)", "exit", "sys.exit(3)"),
    "os._exit": ("os._exit(3)", "exit", "status 3"),
    "a signal": ("os.kill(os.getpid(), signal.SIGSEGV)", "signal", "SIGSEGV"),
    "memory": ("return Output(n=len([0] * 10**10))", "memory", "more memory"),
    "kept memory": ("global k\nk = []\nwhile True: k.append(bytearray(1 << 16))", "memory", "more memory"),
    "sleeps": (HANG, "timeout", "did not end within 1 s"),
    "ignores signals": (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass",
        "timeout",
        "did not end within 1 s",
    ),
    "prints without end": ("while True: print('x' * 1000)", "limit", "more than 100000 bytes"),
    "an error without text": (
        "class E(Exception):\n    def __str__(self): raise KeyError\nraise E",
        "E",
        "cannot be shown",
    ),
    "endless recursion": ("return run(input)", "RecursionError", "recursion"),
    "kills its host": (
        "os.kill(os.getppid(), 9)\ntime.sleep(60)",
        "signal",
        "the process that runs the tools",
    ),
    "writes to the pipe": ("os.write(3, bytes(8))\ntime.sleep(60)", "protocol", "the worker's own pipe"),
    "a half result": ("os.write(3, b'\\0\\0\\0\\0\\0\\0\\0\\x05{')\nos._exit(0)", "exit", "status 0"),
    "an endless result": ("while True: os.write(3, b'\\x7f' * 4096)", "limit", "100000 bytes"),
}


@pytest.mark.parametrize("way", FAULTS)
def test_every_way_to_fail_is_a_fault(worker: Any, tool: Tool, way: str) -> None:
    body, kind, message = FAULTS[way]
    call = {"tool": "demo/probe", "args": {"n": "many" if way == "its input" else 4}}

    wall_s = 1.0 if kind == "timeout" else 60.0  # else it is patience
    ran = worker.run({PATH: tool("probe", body)}, call, tool_wall_s=wall_s, output_bytes=100_000)

    assert ran.done.finished == "failed"
    assert ran.act.fault.type == kind
    assert message in ran.act.fault.message
    assert ran.act.fault.resource == "skill/demo"
    assert ran.done.fault.type == kind
    assert ran.steps[-1].node == "finish"


def test_an_asynchronous_tool_is_waited_for(worker: Any, tool: Tool) -> None:
    source = tool(
        "probe", "import asyncio\nawait asyncio.sleep(0)\nreturn Output(n=input.n + [1][input.n - 4])"
    )
    ran = worker.run({PATH: source.replace("def run", "async def run")}, CALL)
    assert (ran.done.answer, ran.done.fault) == ({"n": 5}, None)


def test_an_asynchronous_tool_fails_where_it_fails(worker: Any, tool: Tool) -> None:
    source = tool("probe", "return Output(n=[][input.n])").replace("def run", "async def run")
    fault = worker.run({PATH: source}, CALL).act.fault
    assert (fault.type, fault.where) == ("IndexError", f"{PATH}:run")


@pytest.mark.parametrize("value", ["float('nan')", "[1, {'a': float('-inf')}]"])
def test_no_number_is_never_told_as_nothing(worker: Any, tool: Tool, value: str) -> None:
    """In a field without a type pydantic makes null of it."""
    source = tool("probe", f"return Output(n={value})").replace(
        "class Output(BaseModel):\n    n: int", "class Output(BaseModel):\n    n: object"
    )
    fault = worker.run({PATH: source}, CALL).act.fault
    assert (fault.type, fault.where) == ("output", f"{PATH}:run")
    assert "not JSON" in fault.message


ASKS = """
def run(sdk):
    made = [sdk.call_tool(tool, args) for tool, args in {calls!r}]
    sdk.finish([made.output if made.ok else [made.fault.type, made.fault.resource] for made in made])
"""


def answers(worker: Any, files: dict[str, str | bytes], *calls: tuple[str, dict[str, Any]]) -> Any:
    """What each call gave, or the type and the resource of its fault."""
    files |= {"skill/kit/SKILL.md": "---\nname: kit\ndescription: for a test\n---\n\nIt has scripts.\n"}
    files |= {"harness/default/harness.py": ASKS.format(calls=[*calls])}
    return worker.run(files, effects=["pure", "read", "write"]).done.answer


def test_a_script_need_not_be_utf8(worker: Any) -> None:
    """Its bytes are the interpreter's business; one that is a program of the machine is none of text at all."""
    scripts = {"latin.sh": b"# caf\xe9\necho hi\n", "program": Path("/bin/echo").read_bytes()}
    files = {f"skill/kit/scripts/{name}": content for name, content in scripts.items()}
    asked = [(f"kit/scripts/{name}", {"args": ["hi"]}) for name in scripts]
    assert answers(worker, {**files}, *asked) == [{"stdout": "hi\n", "stderr": ""}] * 2


def test_a_first_line_with_an_open_quote_is_taken_as_words(worker: Any) -> None:
    source = "#!/bin/sh -e 'x\necho $0 | tail -c 6\n"
    (said,) = answers(worker, {"skill/kit/scripts/odd": source}, ("kit/scripts/odd", {}))
    assert said == ["exit", "skill/kit"]  # what the shell says of such a word


def test_what_no_command_line_can_hold_is_the_callers_fault(worker: Any) -> None:
    asked = [("kit/scripts/a.sh", {"args": [word]}) for word in ("a\0b", "x" * 200_000)]
    assert answers(worker, {"skill/kit/scripts/a.sh": "echo"}, *asked) == [["input", "skill/kit"]] * 2


def test_blank_lines_among_a_scripts_errors_cost_no_time() -> None:
    began = time.process_time()
    said = "\n" * 100_000 + '  File "/snapshot/a.py", line 3, in main\n'
    assert [found.groups() for found in programs._FRAME.finditer(said)] == [("/snapshot/a.py", "main")]
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize("byte", ["\\x00", "\\xff"])
def test_a_program_may_print_bytes_that_are_no_text(worker: Any, byte: str) -> None:
    """In the header of a frame each would take six bytes, and two streams be too many for one."""
    both = f"import sys; [s.buffer.write(b'{byte}' * 900_000) for s in (sys.stdout, sys.stderr)]"
    ran = worker.run(command=["{python}", "-c", both])
    (step,) = ran.steps
    assert step.observation["stdout"]["size"] == step.observation["stderr"]["size"] == 900_000
    assert ran.done.fault.type == "limit"  # of the answer, which is what was printed


def test_where_is_the_innermost_frame_inside_the_resource(worker: Any, tool: Tool) -> None:
    helper = "import json\ndef parse(text):\n    return json.loads(text)\n"
    body = "import counting\nreturn Output(n=counting.parse('{'))"
    ran = worker.run({PATH: tool("probe", body), "skill/demo/tools/counting.py": helper}, CALL)
    assert ran.done.fault.type == "JSONDecodeError"
    assert ran.done.fault.where == "skill/demo/tools/counting.py:parse"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def run(:", "line 3: invalid syntax"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("TOOL = {'name': 'probe', 'description': 'x', 'effects': ['pure']}", "class Input(BaseModel)"),
        ("raise SystemExit(1)", "exit"),
        ("\0", "not Python"),
    ],
)
def test_a_file_that_does_not_load(worker: Any, source: str, message: str) -> None:
    head = '"""A tool."""\nTOOL = {"name": "probe", "description": "x", "effects": ["pure"]}\n'
    ran = worker.run({PATH: head + source}, CALL)
    assert ran.done.fault.type == "load"
    assert message in ran.done.fault.message
    assert ran.done.fault.resource == "skill/demo"


@pytest.mark.slow
def test_unknown_and_ambiguous_tools(workers: Callable[[], Any], tool: Tool) -> None:
    body = "return Output(n=1)"
    ran = workers().run({PATH: tool("probe", body)}, {"tool": "prob", "args": {}})
    assert (ran.done.fault.type, "did you mean 'probe'?" in ran.done.fault.message) == ("unknown_tool", True)

    both = {PATH: tool("probe", body), "skill/other/tools/probe.py": tool("probe", "return Output(n=2)")}
    ran = workers().run(both, CALL)
    assert "ask for demo/probe or other/probe" in ran.done.fault.message
    assert workers().run(both, {"tool": "other/probe", "args": {}}).done.answer == {"n": 2}

    both["tool/pro-be/tool.py"] = tool("pro_be", "return Output(n=3)")
    assert workers().run(both, {"tool": "pro-be", "args": {}}).done.answer == {"n": 3}


@pytest.mark.parametrize(
    ("declared", "allowed", "passes"),
    [
        ('["pure"]', [], True),
        ('["read"]', ["pure"], False),
        ('["read", "write"]', ["read"], False),
        ('["write"]', ["write"], True),
        ('["external"]', ["read"], False),
    ],
)
def test_effects_are_refused_before_the_tool_is_loaded(
    worker: Any, tool: Tool, declared: str, allowed: list[str], passes: bool
) -> None:
    source = tool("probe", "return Output(n=1)", declared) + "open('loaded', 'w').close()\n"
    ran = worker.run({PATH: source}, CALL, effects=allowed)
    assert (ran.done.finished == "answered") is passes
    assert ("loaded" in ran.files) is passes
    if not passes:
        assert ran.act.fault.type == "effect"


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.slow
def test_what_a_tool_started_does_not_outlive_the_call(worker: Any, tool: Tool) -> None:
    body = """
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open('pids', 'a') as file:
                file.write(f"{os.getpid()}\\n")
            time.sleep(600)
        os._exit(0)
while len(open('pids').readlines() if os.path.exists('pids') else []) < 20:
    time.sleep(0.01)
return Output(n=20)
"""
    ran = worker.run({PATH: tool("probe", body.strip(), '["write"]')}, CALL, effects=["write"])
    pids = [int(line) for line in ran.files["pids"].split()]
    assert len(pids) == 20
    assert not [pid for pid in pids if alive(pid)]


def test_a_grandchild_cannot_hold_the_result_back(worker: Any, tool: Tool) -> None:
    started = time.monotonic()
    ran = worker.run({PATH: tool("probe", DAEMON.strip())}, CALL, tool_wall_s=20.0)
    assert ran.done.finished == "answered"
    assert time.monotonic() - started < 10


def test_the_kernels_socket_is_not_open_in_a_tool(worker: Any, tool: Tool) -> None:
    body = "print(sorted(os.listdir('/proc/self/fd')))\nreturn Output(n=1)"
    ran = worker.run({PATH: tool("probe", body)}, CALL)
    # 3 the result, 4 the listing
    assert ran.act.observation["stdout"]["head"] == "['0', '1', '2', '3', '4']\n"


def test_only_plain_files_come_out(worker: Any, tool: Tool) -> None:
    body = """
os.symlink('/etc/shadow', 'shadow')
os.symlink('/etc', 'etc')
os.mkfifo('pipe')
os.mkdir('sub')
open('sub/new.txt', 'w').write('new')
open('same.txt', 'w').write('same')
open('changed.txt', 'a').write('!')
open('bad\\nname', 'w').close()
open(b'\\xff', 'w').close()
open('sparse', 'w').truncate(1 << 40)
os.makedirs('/'.join('d' * 30))
open('.git/same', 'w').write('same')
open('.git/config', 'w').close()
os.makedirs('/'.join(['n' * 250] * 5))
open('/'.join(['n' * 250] * 5 + ['x']), 'w').close()
return Output(n=1)
"""
    inputs = {"same.txt": b"same", ".git/same": b"same", "changed.txt": b"old", "untouched.txt": b"x"}
    ran = worker.run({PATH: tool("probe", body.strip(), '["write"]')}, CALL, inputs, effects=["write"])

    assert ran.files == {"sub/new.txt": b"new", "changed.txt": b"old!"}
    refused = ran.steps[-1]
    assert (refused.node, refused.fault.type) == ("outputs", "refused")
    sentences = "\n".join(refused.observation["refused"])
    for part in (
        "shadow: a symbolic link",
        "etc: a symbolic link",
        "pipe: a fifo",
        "unprintable",
        "too large",
        "deeper",
        ".git/config: ",
        "longer than",
    ):
        assert part in sentences
    assert ".git/same" not in sentences


def test_a_long_print_is_kept_by_head_and_tail(worker: Any, tool: Tool) -> None:
    ran = worker.run({PATH: tool("probe", "print('a' * 9000 + 'b' * 9000)\nreturn Output(n=1)")}, CALL)
    clip = ran.act.observation["stdout"]
    assert (clip["head"], clip["tail"], clip["size"]) == ("a" * 4096, "b" * 4095 + "\n", 18001)


def test_an_output_near_the_limit_is_an_answer_and_a_cut_step(worker: Any, tool: Tool) -> None:
    source = tool("probe", "return Output(n='x' * 980)").replace("n: int\n", "n: str\n", 2)
    source = source.replace("n: int = 1", "n: int = 1").replace(
        "class Input(BaseModel):\n    n: str", "class Input(BaseModel):\n    n: int"
    )
    ran = worker.run({PATH: source}, {"tool": "probe", "args": {}}, output_bytes=1000)
    assert ran.done.answer == {"n": "x" * 980}
    assert "larger than the 1000 bytes" in ran.act.observation["cut"]


@pytest.mark.parametrize(
    ("harness", "kind", "part"),
    [
        ("def run(sdk): raise ValueError('no')", "ValueError", "no"),
        ("def run(sdk): pass", "no_answer", "without an answer"),
        ("x = 1", "load", "def run(sdk)"),
        ("import nowhere", "load", "nowhere"),
        ("def run(sdk):\n    sdk.finish(float('nan'))", "output", "not JSON"),
        ("def run(sdk):\n    sdk.finish('x' * 2000)", "limit", "larger than"),
        ("def run(sdk):\n    sdk.finish('\\ud800')", "output", "not JSON"),
        ("def run(sdk):\n    sdk.finish({1, 2})", "output", "not JSON"),
        ("def run(sdk):\n    import sys\n    sys.exit(1)", "exit", "sys.exit(1)"),
    ],
)
def test_a_bad_harness_is_a_failed_run(worker: Any, harness: str, kind: str, part: str) -> None:
    ran = worker.run({"harness/default/harness.py": harness}, output_bytes=1000)
    assert (ran.done.finished, ran.done.fault.type) == ("failed", kind)
    assert part in ran.done.fault.message
    assert worker.ended() == "good"


def test_the_step_budget_cannot_be_swallowed(worker: Any) -> None:
    harness = """
def run(sdk):
    while True:
        try:
            sdk.step("again", {"left": sdk.steps_left})
        except Exception:
            pass
        if sdk.steps_left == 0:
            sdk.finish("late")
"""
    ran = worker.run({"harness/default/harness.py": harness}, max_steps=7)
    assert [step.action["left"] for step in ran.steps] == [7, 6, 5, 4, 3, 2, 1]
    assert (ran.done.finished, ran.done.fault.type) == ("limit", "steps")


def test_values_that_are_not_json_are_cut_in_a_step(worker: Any) -> None:
    harness = "def run(sdk):\n    sdk.step('odd', {1, 2}, float('inf'))\n    sdk.finish(1)"
    ran = worker.run({"harness/default/harness.py": harness})
    assert "not JSON" in ran.steps[0].action["cut"]
    assert ran.steps[0].observation["head"] == "inf"


def test_arguments_that_cannot_be_sent_fail_their_call_alone(worker: Any, tool: Tool) -> None:
    calls = "[sdk.call_tool('probe', {'n': n}) for n in (float('nan'), 4)]"
    harness = f"def run(sdk):\n    sdk.finish([made.fault.type if made.fault else made.output for made in {calls}])\n"
    ran = worker.run({PATH: tool("probe", "return Output(n=input.n)"), "harness/default/harness.py": harness})
    assert ran.done.answer == ["request", {"n": 4}]


def test_a_file_is_handed_over_by_its_whole_path_too(worker: Any) -> None:
    harness = "import os\ndef run(sdk):\n    sdk.finish(sdk.delegate('other', 'x', ['a.txt', os.path.abspath('b/c.txt')]))"
    given = {"a.txt": b"one", "b/c.txt": b"two"}
    ran = worker.run({"harness/default/harness.py": harness}, None, given, lambda ask: {"ok": True})
    assert [ask.body["inputs"] for ask in ran.asks] == [{"a.txt": "one", "b/c.txt": "two"}]


@pytest.mark.parametrize("name", ["a\\0b", "\\ud800"])
def test_a_name_that_no_file_can_have_is_refused(worker: Any, name: str) -> None:
    """A model's reply names it: it ended the run with an error of the harness."""
    harness = (
        "from agentos.worker.sdk import Failed\n"
        "def run(sdk):\n"
        f"    try: sdk.delegate('other', 'x', ['{name}'])\n"
        "    except Failed as error: sdk.finish(error.fault.type)"
    )
    assert worker.run({"harness/default/harness.py": harness}).done.answer == "inputs"


def test_what_is_nested_too_deeply_is_cut_in_a_step(worker: Any) -> None:
    harness = (
        "def run(sdk):\n"
        "    value = []\n"
        "    for _ in range(5_000): value = [value]\n"
        "    sdk.step('deep', value, [[[1]]])\n"
        "    sdk.finish(1)"
    )
    ran = worker.run({"harness/default/harness.py": harness})
    assert "not JSON" in ran.steps[0].action["cut"]
    assert ran.done.answer == 1


def test_a_script_of_what_is_no_skill_is_refused(worker: Any) -> None:
    harness = "def run(sdk):\n    sdk.finish(sdk.call_tool('odd/scripts/go.sh', {}).fault.type)"
    files = {"harness/default/harness.py": harness, "skill/odd/scripts/go.sh": "#!/bin/sh\necho hi\n"}
    assert worker.run(files).done.answer == "effect"


def test_the_harness_sees_texts_and_tools(worker: Any, tool: Tool) -> None:
    harness = """
from agentos.worker.sdk import Sdk
def run(sdk: Sdk) -> None:
    cards = [[card.path, card.name, card.input_schema["properties"]["n"]["type"]] for card in sdk.tools()]
    sdk.finish([sdk.prompt, sdk.agent["prompt"], sdk.task.goal, cards, sdk.paths("memory/"), sdk.read("memory/m/memory.md")])
"""
    ran = worker.run(
        {
            "harness/default/harness.py": harness,
            "agent/default/resource.toml": 'description = "x"\nprompt = "terse"\n',
            "prompt/terse/prompt.md": "Be brief.",
            "memory/m/memory.md": "Lines end in CRLF.",
            PATH: tool("probe", "return Output(n=1)"),
            "skill/demo/tools/broken.py": "import",
        }
    )
    cards = [[PATH, "probe", "integer"]]
    assert ran.done.answer == [
        "Be brief.",
        "terse",
        "a test",
        cards,
        ["memory/m/memory.md"],
        "Lines end in CRLF.",
    ]
    assert {"memory/m", "prompt/terse"} <= set(ran.done.resources)


def test_executed_lines_on_request(worker: Any, tool: Tool) -> None:
    harness = """
def run(sdk):
    result = sdk.call_tool("probe", {"n": 1}, trace=True)
    sdk.finish(list(result.lines))
"""
    source = tool("probe", "if input.n > 5:\n    return Output(n=0)\nreturn Output(n=1)")
    first = source[: source.index("    if input")].count("\n") + 1
    ran = worker.run({"harness/default/harness.py": harness, PATH: source})
    assert ran.done.answer == [first, first + 2]


def test_a_job_that_makes_no_sense_is_a_fault(worker: Any) -> None:
    worker.channel.send({"job": "dance"})
    assert worker.fault().fault.type == "worker"
    assert worker.ended() == "good"


def test_the_kernel_may_go_away(worker: Any) -> None:
    worker.channel.close()
    assert worker.ended() == "good"
    assert os.path.isdir(worker.workspace)
