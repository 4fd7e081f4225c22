"""The probe: it passes on a sound sandbox, and names exactly the wall that is missing."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.ports import Box
from agentos.sandboxes import probe
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.probe import Guarantee
from agentos.wire import Channel
from tests.command_server import command_server

pytestmark = pytest.mark.sandbox


def test_every_promise_holds(sandbox: Bubblewrap) -> None:
    claims = sandbox.examine()
    assert [claim for claim in claims if not claim.held] == []
    assert len(claims) >= 17
    assert sandbox.level == "namespace"


@pytest.mark.parametrize(
    ("wall", "promises"),
    [
        ("seccomp", {"has its system calls filtered", "reaches no vsock, netlink or io_uring"}),
        ("namespaces", {"sees no process but its own", "leaves nothing running"}),
        ("rlimits", {"is held to its memory, each process"}),
    ],
)
def test_a_missing_wall_is_named(
    wall: str, promises: set[str], weakened: Callable[[str], Bubblewrap]
) -> None:
    broken = {claim.promise for claim in weakened(wall).examine() if not claim.held}
    assert promises <= broken


def test_a_broken_promise_ends_in_refusal(
    make: Callable[..., Bubblewrap], monkeypatch: pytest.MonkeyPatch
) -> None:
    with make() as sandbox:
        monkeypatch.setattr(sandbox, "examine", lambda: (Guarantee("reads no host file", False, "it did"),))
        with pytest.raises(Unavailable, match="reads no host file \\(it did\\)"):
            sandbox.start()
        assert sandbox.level == "unprobed"
        monkeypatch.undo()
        with pytest.raises(Unavailable, match="reads no host file"):  # still, and with the reason
            sandbox.start()


@pytest.mark.parametrize("silent", [1, 2, 3])
def test_a_box_that_is_silent_shows_nothing_and_another_is_tried(
    silent: int, sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits, made = probe.LIMITS, []
    monkeypatch.setattr(probe, "LIMITS", replace(limits, wall_s=0))

    def opened(_: Limits, entry: str) -> Box:
        made.append(entry)
        if len(made) > silent:
            monkeypatch.setattr(probe, "LIMITS", limits)
        return sandbox.open_entry(limits, entry)

    if silent == 3:
        with pytest.raises(Unavailable, match=f"silent at: {', '.join(['its start'] * 3)}"):
            probe.probe(opened, grouped=False)
    else:
        assert all(claim.held for claim in probe.probe(opened, grouped=False))
    assert len(made) == min(silent + 1, 3)


def test_a_box_that_falls_silent_shows_at_what(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LIMITS", replace(probe.LIMITS, wall_s=0.2))
    with ExitStack() as stack:

        def opened(*_: object) -> Box:
            ours, theirs = socket.socketpair()
            stack.enter_context(ours)
            stack.enter_context(theirs)
            channel = Channel(theirs)
            channel.send({"at": "disk"})
            channel.send({"at": "forks"})
            box = SimpleNamespace(channel=Channel(ours))
            return cast("Box", nullcontext(box))

        with pytest.raises(Unavailable, match="silent at: forks, forks, forks"):
            probe.probe(opened, grouped=False)


def agentos(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return command_server().run(*arguments, env={**os.environ, "AGENTOS_HOME": str(home)})


def test_the_command_prints_what_holds(sandbox: Bubblewrap, tmp_path: Path, run_uid: int | None) -> None:
    given = ["--run-uid", str(run_uid)] if run_uid else []
    done = agentos(tmp_path, "sandbox", "check", "bubblewrap", "--quick", "--json", *given)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["sandboxes"]
    assert (found["sandbox"], found["level"]) == ("bubblewrap", "namespace")
    assert all(claim["held"] for claim in found["claims"])


@pytest.mark.skipif(os.geteuid() != 0, reason="about root only")
def test_the_command_says_in_one_sentence_what_is_missing(tmp_path: Path) -> None:
    done = agentos(tmp_path, "sandbox", "check", "bubblewrap")
    assert done.returncode == 1
    assert "run_uid" in done.stderr
    assert "Traceback" not in done.stderr
