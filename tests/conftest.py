"""The whole suite: the user's home and the network are out of reach, and what is missing is said.

A test marked ``sandbox`` (or docker, postgres, browser) needs a part of the machine. Where that is
missing the test is skipped with a reason; ``AGENTOS_REQUIRE=bubblewrap,…`` turns the skip into a
failure, and ``everything`` does so for any skip at all, which is how CI runs.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import ipaddress
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import certifi
import pytest
from _pytest.assertion import rewrite

from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.choice import Choice
from agentos.settings import load_settings
from tests.command_server import ForkedPopen, command_server, share
from tests.postgres import PostgresServer, programs

# What takes longest, or holds what does, as the beginnings of names; one at a time that begins last is waited for alone.
LONGEST = (
    "tests/test_source_evolution.py",
    "tests/torture/",
    "tests/daemon/test_agents_together.py::test_a_planted_fault",
    "tests/test_week.py",
    "tests/sandboxes/test_conformance.py",
    "tests/daemon/test_same_inside.py",
    "tests/web/test_browser.py",
    "tests/daemon/test_skills_whole.py",
    "tests/daemon/test_evolutions.py",
    "tests/daemon/test_swap_kills.py",
    "tests/daemon/test_models_replay.py",
    "tests/test_docs.py",
)

# Fixture -> mark of the tests that use it.
_MARKED_BY = {"daemon": "daemon", "docker_image": "docker", "sandbox": "sandbox", "weakened": "sandbox"}
_MARKS = re.compile(r"^pytestmark = (.+)", re.MULTILINE)

gc.disable()  # what is collected and imported stays: looking through it for what may go takes a fifth of the time


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Workers are forked with their imports done, but where these are to be counted as covered."""
    if config.getoption("cov_source", default=None):
        return
    subprocess.Popen = ForkedPopen  # type: ignore[misc]
    for spec in specs:
        spec.python = f"{sys.executable} -m tests.forked_worker"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """One process forks for all workers of xdist, and imports meanwhile what they would each import."""
    node.workerinput["door"] = command_server().door


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        share(config.workerinput["door"])


def pytest_collection(session: pytest.Session) -> None:
    """Each worker does its part of what they would each do for all files: on a fresh clone, most of collecting."""
    given = getattr(session.config, "workerinput", None)
    if given is None or sys.dont_write_bytecode:
        return
    asked = [Path(word.partition("::")[0]).resolve() for word in session.config.args]
    here = Path(__file__).parent
    files = sorted({*here.rglob("test_*.py"), *here.rglob("conftest.py")})
    wanted = [
        path
        for path in files
        if any(path.is_relative_to(place) for place in asked) and not _is_left_out(path, session.config)
    ]
    rewrite_asserts(wanted[int(given["workerid"].removeprefix("gw")) :: given["workercount"]], session.config)


def rewrite_asserts(paths: list[Path], config: pytest.Config) -> None:
    """Write what pytest imports in place of these test modules, where that is not there or of another text."""
    for path in paths:
        compiled = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(path, compiled) is None:
            compiled.parent.mkdir(parents=True, exist_ok=True)
            source, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, compiled)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@functools.cache
def _engine_answers() -> bool:
    """A socket may outlive its engine, so it is asked."""
    with socket.socket(socket.AF_UNIX) as engine:
        engine.settimeout(10)
        try:
            engine.connect("/var/run/docker.sock")
            engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return b"200 OK" in engine.recv(4096)
        except OSError:
            return False


NEEDS: dict[str, tuple[str, Callable[[], bool]]] = {
    "sandbox": ("bubblewrap", lambda: shutil.which("bwrap") is not None),
    "docker": ("docker", _engine_answers),
    "postgres": ("postgres", lambda: programs() is not None),
    "browser": (
        "browser",
        lambda: importlib.util.find_spec("playwright") is not None and shutil.which("chromium") is not None,
    ),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    required = os.environ.get("AGENTOS_REQUIRE", "").split(",")
    for marker, (part, present) in NEEDS.items():
        if item.get_closest_marker(marker) and not present():
            if part in required:
                pytest.fail(f"{part} is required here and is missing", pytrace=False)
            pytest.skip(f"needs {part}")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A module of which ``-m "not … and not …"`` leaves nothing is not even imported, by each worker."""
    return _is_left_out(collection_path, config) or None


def _is_left_out(collection_path: Path, config: pytest.Config) -> bool:
    words = config.option.markexpr.split(" and ")
    if collection_path.suffix != ".py" or not all(word.startswith("not ") for word in words):
        return False
    marks = _MARKS.search(collection_path.read_text())
    unwanted = {word.removeprefix("not ") for word in words}
    return bool(marks and unwanted.intersection(re.findall(r"pytest\.mark\.(\w+)", marks[1])))


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, marker in _MARKED_BY.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
    items[:] = longest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def longest_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """An equal part for each worker, as xdist deals them out, begun with its share of the longest files.

    What is short can be stolen at the end; a long test that begins then is what one core waits for.
    """
    long = {name: [item for item in items if item.nodeid.startswith(name)] for name in LONGEST}
    dealt = [[item for name in LONGEST[number::workers] for item in long[name]] for number in range(workers)]
    rest = (item for item in items if not item.nodeid.startswith(LONGEST))
    share, more = divmod(len(items), workers)
    for number, part in enumerate(dealt):
        part += islice(rest, max(0, share + (number >= workers - more) - len(part)))
    return [*(item for part in dealt for item in part), *rest]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """With ``everything`` demanded, as in CI, no test may pass by being skipped, whatever its reason."""
    outcome: Any = yield
    report = outcome.get_result()
    if report.skipped and "everything" in os.environ.get("AGENTOS_REQUIRE", "").split(","):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where nothing may be: {report.longrepr}"


class NetworkUsed(AssertionError):
    """A test tried to leave the machine."""


def _is_local(family: int, address: Any) -> bool:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return True
    try:
        return ipaddress.ip_address(str(address[0])).is_loopback
    except ValueError:
        return str(address[0]) == "localhost"


def _guarded(original: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def connect(self: socket.socket, address: Any) -> Any:
        if not _is_local(self.family, address):
            raise NetworkUsed(f"a test tried to reach {address!r}")
        return original(self, address)

    return connect


def _made_once(make: Callable[..., ssl.SSLContext]) -> Callable[..., ssl.SSLContext]:
    """A client reads a thousand public certificates as it is made, which nothing here has; they are read once."""
    public = functools.cache(make)

    def made(*given: Any, **named: Any) -> ssl.SSLContext:
        asked = not given and named == {"cafile": certifi.where()}
        return (public if asked else make)(*given, **named)

    return made


@pytest.fixture(scope="session", autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No real home, no network, no git or agentos settings of the person who runs the suite."""
    place = tmp_path_factory.mktemp("nobody")
    (place / "no-home-was-set").write_text("a test that needs a home makes one in its tmp_path\n")
    with pytest.MonkeyPatch.context() as patch:
        for name in [*os.environ]:
            if name.startswith(("GIT_", "AGENTOS_", "PG")) and name != "AGENTOS_REQUIRE":
                patch.delenv(name)
        patch.setenv("HOME", str(place))
        patch.setenv("XDG_CONFIG_HOME", str(place / "config"))
        # Below a plain file: whoever uses it gets NotADirectoryError instead of a shared home.
        patch.setenv("AGENTOS_HOME", str(place / "no-home-was-set" / "home"))
        patch.setattr(socket.socket, "connect", _guarded(socket.socket.connect))
        patch.setattr(socket.socket, "connect_ex", _guarded(socket.socket.connect_ex))
        patch.setattr(subprocess, "Popen", ForkedPopen)
        patch.setattr(ssl, "create_default_context", _made_once(ssl.create_default_context))
        yield


@pytest.fixture(scope="session")
def first_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An initialised home, to copy."""
    from tests import homes

    return homes.first(tmp_path_factory.mktemp("first") / "home")


@pytest.fixture(scope="session")
def choice(first_home: Path) -> Iterator[Choice]:
    """For a service inside a test whose matter is not how sandboxes start: that takes more than a second."""
    settings = load_settings(first_home / "agentos.toml")
    opened = Choice(first_home, settings.run_uid, settings.sandbox)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def sandbox(choice: Choice) -> Bubblewrap:
    """That of ``choice``, with the real worker inside: one template for all whose matter is what runs in a box."""
    chosen = choice.choose("bubblewrap")
    assert isinstance(chosen, Bubblewrap)
    return chosen


@pytest.fixture(scope="session")
def evolved_home(first_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with an evolution that was promoted, to copy."""
    from tests import homes

    return homes.evolved(tmp_path_factory.mktemp("evolved") / "home", first_home)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL of this process of the suite, begun by the first test that wants one."""
    with PostgresServer.start() as server:
        yield server


@pytest.fixture
def postgres_address(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of a database with an empty ledger, of one test."""
    with postgres_server.database() as address:
        yield address


@pytest.fixture
def deep_tree(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file at its top, and another one deeper than Python's stack."""
    top = tmp_path / "deep"
    top.mkdir()
    (top / "a.jsonl").write_text("{}\n")
    below = os.open(top, os.O_RDONLY)
    for _ in range(1_200):
        os.mkdir("d", dir_fd=below)
        above, below = below, os.open("d", os.O_RDONLY, dir_fd=below)
        os.close(above)
    os.close(os.open("x.jsonl", os.O_CREAT | os.O_WRONLY, dir_fd=below))
    os.close(below)
    yield top
    # pytest's own way of removing it is recursive too
    subprocess.run(["rm", "-rf", top], check=True)
