"""The command as a user runs it: a process of its own, on a home of the test's own.

It is forked with its imports done; with ``options`` of the interpreter it is started as it is at a shell.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer.main
import typer.testing

from agentos.home import Home
from tests.command_server import PATIENCE_S, command_server

Ran = subprocess.CompletedProcess[str]


_command = functools.cache(typer.main.get_command)


@pytest.fixture(scope="module", autouse=True)
def _built_once() -> Iterator[None]:
    """The command in this process is put together once, as in any process, and not for each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", _command)
        yield


@pytest.fixture
def home(first_home: Path, tmp_path: Path) -> Home:
    shutil.copytree(first_home, tmp_path / "home")
    return Home(tmp_path / "home")


@pytest.fixture
def agentos(home: Home, tmp_path: Path) -> Callable[..., Ran]:
    """``agentos("task", "list")``: the finished process, with its output as text."""

    def run(*arguments: str, stdin: str = "", options: tuple[str, ...] = (), code: int | None = 0) -> Ran:
        env = os.environ | {"AGENTOS_HOME": str(home.root), "COLUMNS": "160", "NO_COLOR": "1"}
        if options:
            done = subprocess.run(
                [sys.executable, *options, "-m", "agentos", *arguments],
                input=stdin,
                capture_output=True,
                text=True,
                cwd=tmp_path,
                env=env,
                timeout=PATIENCE_S,
            )
        else:
            done = command_server().run(*arguments, env=env, cwd=tmp_path, stdin=stdin)
        if code is not None:
            assert done.returncode == code, done.stderr + done.stdout
        return done

    return run
