"""Programs that talk to the server of a home in which an edit waits for consent (``tests/web/conftest.py``)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from agentos.client import Client
from agentos.daemon.control.tokens import TokenScope, add
from agentos.home import Home
from tests.web.conftest import Served, home, served, serving, waiting_home  # noqa: F401 - fixtures

EVERY = tuple(TokenScope)


def token_for(served: Served, *scopes: TokenScope, name: str = "program") -> str:  # noqa: F811
    """The text of a new token."""
    return add(served.home, name, scopes or EVERY, 1, datetime.now(UTC))[1]


@pytest.fixture
def token(served: Served) -> str:  # noqa: F811
    """That may everything."""
    return token_for(served)


@pytest.fixture(scope="module")
def shared(waiting_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:  # noqa: F811
    """One server for the tests of a module whose requests are all refused."""
    home = Home(tmp_path_factory.mktemp("shared") / "home")  # noqa: F811
    shutil.copytree(waiting_home, home.root)
    with serving(home) as found:
        yield found


@pytest.fixture
def program(served: Served, token: str) -> Iterator[Client]:  # noqa: F811
    with Client(served.address, token) as client:
        yield client


@pytest.fixture
def raw(served: Served) -> Iterator[Callable[[str], httpx.Client]]:  # noqa: F811
    """Plain HTTP with this in ``Authorization``."""
    with ExitStack() as stack:

        def make(authorization: str) -> httpx.Client:
            headers = {"Authorization": authorization} if authorization else {}
            return stack.enter_context(httpx.Client(base_url=served.address, headers=headers, timeout=60))

        yield make
