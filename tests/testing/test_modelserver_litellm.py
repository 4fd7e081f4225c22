"""The model server as the real litellm sees it: one process, because its import takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from agentos.testing import ModelServer, call, say

pytestmark = pytest.mark.slow

CLIENT = r"""
import json, sys
import litellm

litellm.suppress_debug_info = True

def ask(**more):
    return litellm.completion(
        model="openai/scripted", api_base=sys.argv[1], api_key="none", num_retries=0, max_retries=0,
        messages=[{"role": "user", "content": "hi"}], timeout=1,
        _skip_mcp_handler=True,  # with tools, litellm would import its optional mcp
        **more)

def streamed(**more):
    return litellm.stream_chunk_builder(list(ask(stream=True, stream_options={"include_usage": True}, **more)))

def outcome(kind, **more):
    try:
        return ask(extra_headers={"X-Scripted-Fault": kind}, **more).model_dump()
    except Exception as error:
        return type(error).__name__

print(json.dumps({
    "whole": ask().model_dump(),
    "streamed": streamed().model_dump(),
    "calls": streamed(tools=[{"type": "function", "function": {"name": "sum", "parameters": {}}}]).model_dump(),
    "choices": ask(n=3).model_dump(),
    "keyed": [ask(extra_headers={"Idempotency-Key": "k"}).id for _ in range(2)],
    **{kind: outcome(kind) for kind in sys.argv[2:]},
}))
"""

ERRORS = {
    "rate_limit": "RateLimitError",
    "server_error": "InternalServerError",
    "overloaded": "ServiceUnavailableError",
    "unauthorized": "AuthenticationError",
    "context_length": "ContextWindowExceededError",
    "hang": "Timeout",
    "reset": "InternalServerError",
    "malformed": "InternalServerError",
    "html": "InternalServerError",
}


@pytest.fixture(scope="module")
def seen() -> Any:
    """What the client got, and the server's counts."""
    env = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
        "HF_HUB_OFFLINE": "1",
    }
    replies = [say("a whole answer"), say("a streamed answer"), call("sum", {"a": 1}, ("sum", {"a": 2}))]
    with ModelServer(replies, policy=lambda request, number: say(f"number {number}")) as server:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, server.base_url, *ERRORS],
            capture_output=True,
            text=True,
            timeout=600,
            env=env,
        )
        assert done.returncode == 0, done.stderr
        return {**json.loads(done.stdout), "stats": server.stats()}


@pytest.mark.slow
def test_answers_whole_and_streamed(seen: Any) -> None:
    assert seen["whole"]["choices"][0]["message"]["content"] == "a whole answer"
    assert seen["whole"]["system_fingerprint"] == "agentos-scripted"
    assert seen["streamed"]["choices"][0]["message"]["content"] == "a streamed answer"
    assert seen["streamed"]["usage"]["total_tokens"] > 10
    assert len(seen["choices"]["choices"]) == 3


def test_calls_of_tools_are_put_together_from_a_stream(seen: Any) -> None:
    (choice,) = seen["calls"]["choices"]
    assert choice["finish_reason"] == "tool_calls"
    functions = [one["function"] for one in choice["message"]["tool_calls"]]
    assert functions == [{"name": "sum", "arguments": f'{{"a": {number}}}'} for number in (1, 2)]


def test_a_key_is_honoured_and_everything_counted(seen: Any) -> None:
    first, second = seen["keyed"]
    assert first == second
    # whole, streamed, calls, choices, keyed; and what is paid though it is lost: reset and malformed
    assert (seen["stats"]["paid"], seen["stats"]["repeated"]) == (5 + 2, 1)


@pytest.mark.parametrize("kind", ERRORS)
def test_each_fault_is_the_error_that_a_provider_causes(kind: str, seen: Any) -> None:
    assert seen[kind] == ERRORS[kind]
