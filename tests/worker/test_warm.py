"""What boxes are forked from has imported what runs need, and not what nobody asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOOK = """
import sys
import agentos.worker.warm
wanted, unwanted = {"langgraph.graph"}, {"langsmith.types.agent", "langgraph_sdk.client", "rich", "httpx._main", "httpx2._main"}
print(*sorted((wanted | unwanted) & {*sys.modules}))
from langsmith.types import Agent, Trace
import langsmith.types.trace
print(Trace is langsmith.types.trace.Trace, hasattr(langsmith.types, "NoSuchName"))
import langgraph_sdk
print(langgraph_sdk.get_client.__name__, langgraph_sdk.auth.Auth.__name__)
import asyncio, pydantic
from langchain_core.runnables import RunnableLambda
from langsmith.schemas import Feedback
print(pydantic.BaseModel.model_config, Feedback.__pydantic_complete__)
async def events():
    return [event["event"] async for event in RunnableLambda(lambda given: given).astream_events(1, version="v2")]
print(*asyncio.run(events()))
try:
    Feedback(key=[])
except pydantic.ValidationError as error:
    print({tuple(fault["loc"]) for fault in error.errors()} >= {("id",), ("key",)})
"""


@pytest.mark.slow
def test_what_is_put_off_is_there_when_it_is_asked_for() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", LOOK], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "langgraph.graph",
        "True False",
        "get_client Auth",
        "{} False",
        "on_chain_start on_chain_stream on_chain_end",
        "True",
    ]
