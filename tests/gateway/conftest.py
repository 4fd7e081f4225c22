"""One gateway process and one model server for all tests of a worker: importing litellm takes seconds."""

from __future__ import annotations

import atexit
import itertools
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Budget, Json, Mode, ModelSpec, Reply
from agentos.gateway.calls import CallReading, ProviderCall
from agentos.gateway.client import GatewayModels, GatewaySession
from agentos.home import Home
from agentos.ports import Grant
from agentos.settings import Settings
from agentos.testing import ModelServer, say
from tests.command_server import ForkedPopen

KEY = "sk-a-key-of-the-tests-0123456789"
SPEC = ModelSpec("main", "openai/scripted", "local", {})
_MUTE = socket.create_server(("127.0.0.1", 0))  # takes connections, and never says a word
atexit.register(_MUTE.close)
_number = itertools.count(1)


# A gateway that is not ready by then is ended and started again, for the next test as well.
def within(seconds: float = 170.0) -> float:
    return time.monotonic() + seconds


def asking(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


def said(reply: Reply) -> str:
    return str(reply.body["choices"][0]["message"]["content"])


def echo(request: Json, number: int) -> Any:
    """What the server says to everything: the last words and the number of the paid call."""
    text = str(request["messages"][-1]["content"])
    return say(f"{text} #{number}", delay_s=1.0 if text.startswith("slow") else 0.0)


def make_home(root: Path) -> Home:
    home = Home(root)
    for folder in (home.root, home.run, home.logs):
        folder.mkdir(mode=0o700)
    return home


def settings_for(server: ModelServer, **more: Any) -> Settings:
    providers = {
        "local": {"api_base": server.base_url, "key_env": "GATEWAY_TEST_API_KEY"},
        "open": {"api_base": server.base_url},
        "mute": {"api_base": f"http://127.0.0.1:{_MUTE.getsockname()[1]}/v1"},
        "away": {"api_base": "http://127.0.0.1:9/v1"},
        "keyless": {"api_base": server.base_url, "key_env": "GATEWAY_NO_SUCH_KEY"},
        "spaced": {"api_base": server.base_url, "key_env": "GATEWAY_SPACED_KEY"},
        "openai": {"key_env": "GATEWAY_TEST_API_KEY"},
    }
    return Settings(providers=providers, **more)


@dataclass
class Bench:
    """What a test needs: runs of its own on what all share."""

    home: Home
    server: ModelServer
    models: GatewayModels
    sessions: list[GatewaySession] = field(default_factory=list)

    def new_run(self) -> str:
        return f"run-{next(_number)}"

    def open(
        self,
        run_id: str = "",
        mode: Mode = Mode.RECORD,
        recordings: tuple[str, ...] = (),
        *,
        budget: Budget | None = None,
        specs: tuple[ModelSpec, ...] = (SPEC,),
        evolution_id: str = "",
        goes_on: bool = False,
    ) -> GatewaySession:
        run_id = run_id or self.new_run()
        grant = Grant(run_id, mode, specs, budget or Budget(), evolution_id, recordings, goes_on)
        session = self.models.open(grant)
        self.sessions.append(session)
        return session

    def calls(self, run_id: str) -> list[ProviderCall]:
        reading = CallReading(self.home.calls)
        try:
            return list(reading.calls(run_id))
        finally:
            reading.close()


@pytest.fixture(scope="module", autouse=True)
def _started() -> Iterator[None]:
    """Gateways are started here as they are for users, and not forked as elsewhere in the suite."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ForkedPopen, "forks", False)
        yield


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways of this test are forked after all: how they start is not its matter."""
    monkeypatch.setattr(ForkedPopen, "forks", True)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    home = make_home(tmp_path_factory.mktemp("gateway") / "home")
    with pytest.MonkeyPatch.context() as patch, ModelServer(echo) as server:
        patch.setenv("GATEWAY_TEST_API_KEY", KEY)
        patch.setenv("OPENAI_API_KEY", "sk-not-for-servers-of-others-0123")
        patch.setenv("GATEWAY_SPACED_KEY", "sk-ends-with-a-line-break\n")
        patch.setenv("UNRELATED_SECRET", "the-secret-of-somebody-else")
        models = GatewayModels(home, settings_for(server, budget={"run_calls": 0, "evolution_calls": 4}))
        models.process(within())  # what a test measures is no start
        yield Bench(home, server, models)
        models.close()


@pytest.fixture
def bench(shared: Bench) -> Iterator[Bench]:
    yield shared
    while shared.sessions:
        shared.sessions.pop().close()


@pytest.fixture
def paid(bench: Bench) -> Callable[[], int]:
    """How many calls were paid since the test began."""
    before = bench.server.paid
    return lambda: bench.server.paid - before
