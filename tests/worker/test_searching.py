"""The job ``search``: what each source gives, and that a bad one costs its limit and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from agentos.benches import error_of
from agentos.messages import SearchJob, TriedFrame, TrySource

PATH = "skill/demo/tools/probe.py"
Tool = Callable[..., str]


class Bench:
    """The kernel's end of a search."""

    def __init__(self, worker: Any) -> None:
        self.worker = worker

    def start(
        self, source: str, cases: list[dict[str, Any]], extra: dict[str, str] | None = None, **given: Any
    ) -> None:
        files = {PATH: source, **(extra or {})}
        inputs = [content for case in cases for content in case["inputs"].values()]
        places = iter(range(len(inputs)))
        job = {"path": PATH, "timeout_s": 0.3, "memory_mb": 128, **given}
        wire = [{**case, "inputs": {name: next(places) for name in case["inputs"]}} for case in cases]
        self.worker.send(
            SearchJob(files=list(files), **job),
            *(text.encode() for text in files.values()),
            json.dumps(wire).encode(),
            *inputs,
        )
        assert self.worker.receive().head == {"type": "ready"}

    def tried(self, source: str, **given: Any) -> TriedFrame:
        self.worker.send(TrySource(source=source, **given))
        return TriedFrame.model_validate(self.worker.receive().head)


def case(n: int, expected: Any, inputs: dict[str, bytes] | None = None) -> dict[str, Any]:
    check = {"kind": "equals", "spec": {"path": "n", "value": expected}}
    return {"args": {"n": n}, "inputs": inputs or {}, "checks": [check]}


@pytest.fixture
def bench(worker: Any) -> Bench:
    return Bench(worker)


def test_scores_outputs_and_lines(bench: Bench, tool: Tool) -> None:
    source = tool("probe", "if input.n > 5:\n    return Output(n=0)\nreturn Output(n=input.n)")
    bench.start(source, [case(1, 1), case(9, 9), {"args": {"n": 2}, "inputs": {}, "checks": []}])
    tried = bench.tried(source)
    assert (tried.passed, tried.scores) == ([True, False, True], [1.0, 0.0, 1.0])
    assert tried.outputs == [{"n": 1}, {"n": 0}, {"n": 2}]
    assert tried.lines == []

    first = source[: source.index("    if input")].count("\n") + 1
    tried = bench.tried(source, trace=True, cases=[1, 0])
    assert tried.lines == [[first, first + 1], [first, first + 2]]
    assert bench.tried(source.replace("> 5", "> 50")).passed == [True] * 3
    assert bench.tried(source, cases=[]).passed == []


HELPER = "skill/demo/tools/_steps.py"


def test_a_helper_module_is_tried_in_its_place_and_followed(bench: Bench, tool: Tool) -> None:
    source = tool("probe", "from _steps import step\nreturn Output(n=step(input.n))")
    helper = "def step(n):\n    if n > 5:\n        return 0\n    return n\n"
    bench.start(source, [case(1, 1), case(6, 6)], {HELPER: helper}, path=HELPER, tool=PATH)
    tried = bench.tried(helper, trace=True)
    assert (tried.passed, tried.lines) == ([True, False], [[1, 2, 4], [1, 2, 3]])
    for number in (9, 6, 5, 8) * 3:  # of one length, within one second
        assert bench.tried(helper.replace("5", str(number))).passed == [True, number >= 6]
    raising = bench.tried(helper.replace("return n", "return n / 0"), trace=True)
    assert (raising.raised, raising.passed) == ([4, 0], [False, False])
    assert bench.tried("def step(n) return n").passed == [False, False]


FORGED = """
import struct, json
head = json.dumps({{"score": 1, "lines": [], "raised": 0, "cpu_s": {cpu_s!r}, "stained": True, "blobs": [{size}]}}).encode()
os.write(3, struct.pack(">I", len(head)) + head + {blob})
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("cpu_s", "blob"), [("inf", b"1"), ("0", b"NaN"), ("0", b"1e999"), ("0", b"[" * 300 + b"]" * 300)]
)
def test_a_source_that_forges_what_no_frame_holds_fails_alone(
    bench: Bench, tool: Tool, cpu_s: str, blob: bytes
) -> None:
    good = tool("probe", "return Output(n=input.n)")
    bench.start(good, [case(1, 1)])
    forged = tool("probe", FORGED.format(cpu_s=cpu_s, size=len(blob), blob=blob))
    tried = bench.tried(forged, trace=True)
    assert (tried.passed, tried.outputs[0]["error"]) == ([False], "protocol")
    assert bench.tried(good).passed == [True]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("return Output(n=1 // 0)", "ZeroDivisionError"),
        ("return 3", "output"),
        ("return nothing", "NameError"),
        ("sys.exit()", "exit"),
        ("os._exit(0)", "died"),
        ("os.kill(os.getpid(), 9)", "died"),
        ("while True: pass", "timeout"),
        ("while True:\n    try:\n        while True: pass\n    except BaseException: pass", "timeout"),
        ("signal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass", "timeout"),
        ("time.sleep(60)", "timeout"),
        ("return Output(n=len([0] * 10**9))", "memory"),
        ("return run(input)", "RecursionError"),
    ],
)
def test_a_bad_source_fails_alone(bench: Bench, tool: Tool, body: str, error: str) -> None:
    good = tool("probe", "return Output(n=input.n)")
    bad = tool(
        "probe",
        "if input.n == 1:\n"
        + "\n".join(f"    {line}" for line in body.splitlines())
        + "\nreturn Output(n=input.n)",
    )
    bench.start(good, [case(1, 1), case(2, 2)])
    tried = bench.tried(bad)
    assert tried.passed == [False, True]
    assert tried.outputs[0]["error"] == error
    assert bench.tried(good).passed == [True, True]


def test_a_source_that_does_not_load(bench: Bench, tool: Tool) -> None:
    good = tool("probe", "return Output(n=input.n)")
    bench.start(good, [case(1, 1)])
    for bad in ("def (", "\0", "import no_such_module", good.replace("class Input", "class Inputs")):
        assert bench.tried(bad).outputs[0]["error"] == "load"
    assert bench.tried(good).passed == [True]


def test_what_a_source_leaves_behind_is_put_back(bench: Bench, tool: Tool) -> None:
    helper = {"skill/demo/tools/counting.py": "seen = []\n"}
    look = """
import counting
counting.seen.append(1)
state = [len(counting.seen), os.environ.get('LEFT', ''), open('data.txt').read(), os.path.exists('new.txt')]
os.environ['LEFT'] = 'x'
open('data.txt', 'w').write('spoilt')
open('new.txt', 'w').close()
os.chdir('/')
sys.stdout.write('noise')
return Output(n=int(state == [1, '', 'clean', False]))
"""
    source = tool("probe", look.strip(), '["write"]')
    inputs = {"data.txt": b"clean"}
    bench.start(source, [case(1, 1, inputs), case(2, 1, inputs)], helper)
    for _ in range(3):
        assert bench.tried(source).passed == [True, True]


def test_a_source_that_lifts_its_memory_limit_lifts_it_for_itself(bench: Bench, tool: Tool) -> None:
    lifting = """
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
return Output(n=int(soft == hard))
"""
    source = tool("probe", lifting)
    bench.start(source, [case(1, 0), case(2, 0)])
    assert bench.tried(source).passed == [True, True]


def test_a_source_that_changes_its_arguments_changes_them_for_itself(bench: Bench, tool: Tool) -> None:
    source = tool("probe", "input.base['of'].append(input.n)\nreturn Output(n=len(input.base['of']))")
    source = source.replace("    n: int = 1\n", "    n: int = 1\n    base: dict\n")
    given = case(1, 3)
    given["args"]["base"] = {"of": [7, 8]}
    bench.start(source, [given])
    for _ in range(3):
        tried = bench.tried(source)
        assert (tried.passed, tried.outputs) == ([True], [{"n": 3}])
    assert bench.tried(source.replace("append(input.n)", "copy()")).outputs == [{"n": 2}]


def test_cases_that_cannot_lie_there_at_once_are_laid_out_one_by_one(bench: Bench, tool: Tool) -> None:
    good = tool("probe", "return Output(n=len(os.listdir('..')) if os.path.exists('data.txt') else 0)")
    there = {"data.txt": b"x"}
    bench.start(good, [case(1, 1, there), case(2, 1, {"a" * 300: b"x"}), case(3, 1, there)])
    assert bench.tried(good).passed == [True, False, True]
    bad = good.replace("    return", "    if input.n == 1:\n        os._exit(0)\n    return", 1)
    assert bench.tried(bad).passed == [False, False, True]
    assert bench.tried(good).passed == [True, False, True]


@pytest.mark.slow
def test_endless_loops_cost_their_limit_and_nothing_healthy(bench: Bench, tool: Tool) -> None:
    good = tool("probe", "return Output(n=input.n)")
    loop = tool("probe", "while True: pass")
    bench.start(good, [case(1, 1)], timeout_s=0.1)
    started = time.monotonic()
    passed = [bench.tried(loop if number % 5 == 0 else good).passed[0] for number in range(40)]
    assert passed == [number % 5 != 0 for number in range(40)]
    assert time.monotonic() - started < 8 * (0.1 + 1.75) + 5  # a busy machine may need the patience


def test_checks_of_every_kind(bench: Bench, tool: Tool) -> None:
    good = tool("probe", "open('out.txt', 'w').write(str(input.n))\nreturn Output(n=input.n)", '["write"]')
    kinds = [
        {"kind": "file", "spec": {"path": "out.txt", "equals": "1"}},
        {"kind": "command", "spec": {"argv": ["cat", "out.txt"], "stdout_contains": "1"}},
        {
            "kind": "python",
            "spec": {"code": "assert answer['n'] == int((workspace / 'out.txt').read_text())"},
        },
        {"kind": "equals", "spec": {"path": "n", "value": 2}},
    ]
    bench.start(good, [{"args": {"n": 1}, "inputs": {}, "checks": kinds}])
    assert bench.tried(good).scores == [0.75]


def test_a_large_output_is_told_by_its_digest(bench: Bench, tool: Tool) -> None:
    source = tool("probe", "return Output(n=10 ** 4000)").replace(
        "    n: int\n", "    n: int\n    s: str = 'x' * 200000\n"
    )
    bench.start(source, [{"args": {}, "inputs": {}, "checks": []}])
    first, second = bench.tried(source).outputs[0], bench.tried(source).outputs[0]
    assert first == second
    assert first["size"] > 200_000


def test_an_answer_in_the_form_of_an_error_is_told_as_an_answer(bench: Bench, tool: Tool) -> None:
    source = tool("probe", "return Output(error='died', message='it ended')").replace(
        "class Output(BaseModel):\n    n: int\n",
        "class Output(BaseModel):\n    error: str\n    message: str\n",
    )
    bench.start(source, [{"args": {}, "inputs": {}, "checks": []}])
    (output,) = bench.tried(source).outputs
    assert error_of(output) == ""
    assert output["answer"] == {"error": "died", "message": "it ended"}


@pytest.mark.parametrize("word", ["died", "timeout", "memory", "input"])
def test_an_exception_cannot_speak_for_the_bench(bench: Bench, tool: Tool, word: str) -> None:
    source = tool("probe", f"raise type({word!r}, (Exception,), {{}})()")
    bench.start(source, [case(1, 1)])
    assert error_of(bench.tried(source).outputs[0]) == f"exception {word}"


def test_a_source_cannot_speak_to_the_kernel(bench: Bench, tool: Tool) -> None:
    source = tool("probe", "return Output(n=len(os.listdir('/proc/self/fd')) - 1)")
    bench.start(source, [case(1, 4)])
    assert bench.tried(source).passed == [True]


@pytest.mark.parametrize("said", ["", "lines=[1e400]", "lines='x'", "raised=1e400", "score=None"])
def test_a_source_that_speaks_for_its_process_has_failed(bench: Bench, tool: Tool, said: str) -> None:
    good = tool("probe", "return Output(n=input.n)")
    bench.start(good, [case(1, 1), case(2, 2)])
    talk = (
        "import gc\n"
        "from agentos.wire import Channel\n"
        "verdict = dict(score=1.0, lines=[], raised=0, cpu_s=0.0, stained=False)\n"
        f"verdict |= dict({said})\n"
        "for each in [each for each in gc.get_objects() if isinstance(each, Channel)]:\n"
        f"    each.send(verdict, (b'1',) * {len(said[:1])})\n"
        "return Output(n=input.n)"
    )
    assert bench.tried(tool("probe", talk)).passed == [False, False]
    assert bench.tried(good).passed == [True, True]


def test_the_kernel_may_go_away(bench: Bench, tool: Tool) -> None:
    bench.start(tool("probe", "return Output(n=1)"), [case(1, 1)])
    bench.worker.channel.close()
    assert bench.worker.ended() == "good"


def test_the_line_that_raised_and_the_cpu_time_are_told(bench: Bench, tool: Tool) -> None:
    source = tool(
        "probe", "if input.n > 5:\n    return Output(n=int('x'))\nreturn Output(n=sum(range(input.n)))"
    )
    bench.start(source, [case(1, 0), case(9, 9)])
    tried = bench.tried(source, trace=True)
    assert tried.raised == [0, source[: source.index("int('x')")].count("\n") + 1]
    assert 0 < tried.cpu_s < 5
    plain = bench.tried(source)
    assert plain.raised == []
    assert plain.outputs == tried.outputs, "what is compared must not depend on lines"
