"""The gateway dies in the middle of a stream that it gives: the call is on record, and paid once."""

from __future__ import annotations

import http.client
import json
import os
import signal
from pathlib import Path

import pytest

from agentos.gateway.client import GatewayModels
from agentos.testing import ModelServer, say
from tests.gateway.conftest import Bench, asking, make_home, said, settings_for, within

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]


def test_a_stream_that_is_cut_is_given_again_from_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TEST_API_KEY", "sk-for-the-streams-0123456789")
    long = "word " * 500_000  # more than fits into the buffers of a socket
    home = make_home(tmp_path / "home")
    with ModelServer(lambda request, number: say(long)) as server:
        models = GatewayModels(home, settings_for(server, budget={"run_tokens": 0}))
        bench = Bench(home, server, models)
        try:
            session = bench.open("run-s")
            process, token = session._opened(within())
            connection = process._connection(20.0)
            body = json.dumps(asking("at length", stream=True))
            connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            assert answer.read(2_000).startswith(b"data: ")
            assert models.pid is not None
            os.kill(models.pid, signal.SIGKILL)
            with pytest.raises((http.client.IncompleteRead, ConnectionError)):
                answer.read()
            connection.close()
            # A socket that still takes connections while its process ends would make a lost call of the next one.
            process._child.wait(20)
            assert (server.paid, server.repeated) == (1, 0)
            reply = session.complete(asking("at length"), within(60))
            assert said(reply) == long
            assert reply.recorded
            assert server.paid == 1
            assert [row.state for row in bench.calls("run-s")] == ["done"]
        finally:
            models.close()
