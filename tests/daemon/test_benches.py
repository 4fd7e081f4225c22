"""A bench in real boxes, and in some that are gone under it."""

from __future__ import annotations

import os
import signal
from contextlib import closing, suppress
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


def bench_of(home: Home, sandbox: Any) -> tuple[Any, str]:
    """A bench, and the source as it is."""
    registry = Registry(home.registry)
    base = registry.stable()
    source = registry.files(base, PATH)[PATH].decode()
    return BoxBenches(registry, PlacesHere(sandbox)).bench(base, PATH, [CASE], 2.0), source


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
