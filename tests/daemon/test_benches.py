"""A bench in real boxes, and in some that are gone under it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.evolve.benches import BoxBenches
from agentos.domain import Call, Check
from agentos.home import Home
from agentos.ports import Case
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.choice import PlacesHere
from agentos.testing import FakeSandbox
from agentos.wire import FrameError, WireClosed

PATH = "skill/test-kit/tools/double.py"
CASE = Case("t", Call("double", {"n": 2}), {}, (Check("equals", {"value": 4, "path": "n"}),))


def bench_of(home: Home, sandbox: Any, cases: Sequence[Case] = (CASE,)) -> tuple[Any, str]:
    """A bench, and the source as it is."""
    registry = Registry(home.registry)
    base = registry.stable()
    source = registry.files(base, PATH)[PATH].decode()
    return BoxBenches(registry, PlacesHere(sandbox)).bench(base, PATH, cases, 2.0), source


@pytest.mark.sandbox
def test_a_box_that_is_gone_says_nothing_of_the_source(home: Home, sandbox: Bubblewrap) -> None:
    made, source = bench_of(home, sandbox)
    with closing(made) as bench:
        os.kill(bench._exchange._box.pid, signal.SIGKILL)
        assert bench.try_source(source).passed == (True,)


def test_a_source_under_which_each_box_is_gone_has_failed(home: Home) -> None:
    def end(channel: Any) -> None:
        with suppress(WireClosed, FrameError):
            channel.receive()
            channel.send({"type": "ready"}, [])
            channel.receive()

    sandbox = FakeSandbox(end)
    made, source = bench_of(home, sandbox)
    with closing(made) as bench:
        done = bench.try_source(source)
    assert (done.passed, done.outputs[0]["error"]) == ((False,), "died")
    assert len(sandbox.opened) == 3


def many(count: int, **args: Any) -> list[Case]:
    checks = [(Check("equals", {"value": 2 * n, "path": "n"}),) for n in range(count)]
    return [Case(f"t{n}", Call("double", {"n": n, **args}), {}, checks[n]) for n in range(count)]


@pytest.mark.sandbox
def test_cases_that_no_header_holds_are_tried(home: Home, sandbox: Bubblewrap) -> None:
    cases = [*many(1), Case("large", Call("double", {"n": 3, "note": "x" * (9 << 20)}), {}, ())]
    made, source = bench_of(home, sandbox, cases)
    with closing(made) as bench:
        outputs = bench.try_source(source).outputs
    assert outputs[0] == {"n": 0}
    assert "died" not in str(outputs)[:500]


def test_inputs_that_no_box_holds_cost_their_cases_and_no_more(home: Home) -> None:
    sandbox = FakeSandbox(lambda channel: None)
    made, source = bench_of(home, sandbox, [replace(CASE, inputs={"a": bytes(193 << 20)})])
    with closing(made) as bench:
        done = bench.try_source(source, trace=True)
    assert (done.passed, done.outputs[0]["error"], done.lines) == ((False,), "died", ((),))
    assert "193 MB" in done.outputs[0]["message"]
    assert sandbox.opened == []


def test_one_call_that_ends_the_box_takes_no_other_with_it(home: Home) -> None:
    def end_at_three(channel: Any) -> None:
        with suppress(WireClosed, FrameError):
            channel.receive()
            channel.send({"type": "ready"}, [])
            while 3 not in (asked := channel.receive().head["cases"]):
                ones = [1.0] * len(asked)
                channel.send({"type": "tried", "passed": ones, "scores": ones, "outputs": asked}, [])

    sandbox = FakeSandbox(end_at_three)
    made, source = bench_of(home, sandbox, many(6))
    with closing(made) as bench:
        done = bench.try_source(source)
    assert done.passed == (True, True, True, False, True, True)
    assert [*done.outputs[:3], *done.outputs[4:]] == [0, 1, 2, 4, 5]
    assert done.outputs[3]["error"] == "died"
    assert len(sandbox.opened) < 9


@pytest.mark.sandbox
def test_how_much_is_shown_of_an_output_does_not_depend_on_the_number_of_cases(
    home: Home, sandbox: Bubblewrap
) -> None:
    made, source = bench_of(home, sandbox, many(60))
    long = source.replace(
        "class Output(BaseModel):\n", "class Output(BaseModel):\n    s: str = 'x' * 120_000\n"
    )
    assert long != source
    with closing(made) as bench:
        outputs = bench.try_source(long).outputs
    assert [len(output.get("s", "")) for output in outputs] == [120_000] * 60
