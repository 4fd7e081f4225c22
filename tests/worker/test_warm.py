"""What boxes are forked from has imported what runs need, and not what nobody asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOOK = """
import sys
import agentos.worker.warm
print(*sorted({"langgraph.graph", "langsmith.types.agent", "rich"} & {*sys.modules}))
from langsmith.types import Agent, Trace
import langsmith.types.trace
print(Trace is langsmith.types.trace.Trace, hasattr(langsmith.types, "NoSuchName"))
import httpx
print(httpx.Client.__name__, "httpx._main" in sys.modules)
"""


@pytest.mark.slow
def test_what_is_put_off_is_there_when_it_is_asked_for() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", LOOK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["langgraph.graph", "True False", "Client False"]
