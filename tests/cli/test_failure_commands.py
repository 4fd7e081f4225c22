"""``agentos failure`` and ``agentos model stop``: what a person leaves alone, and stops."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

from agentos.home import Home

Agentos = Callable[..., CompletedProcess[str]]


def test_a_failure_is_muted_by_the_start_of_its_id(home: Home, evolved_home: Path, agentos: Agentos) -> None:
    shutil.rmtree(home.root)
    shutil.copytree(evolved_home, home.root)
    (known, *_) = json.loads(agentos("failure", "list", "--json").stdout)
    name = known["fingerprint"]["id"]
    assert not known["muted"]
    assert json.loads(agentos("failure", "mute", name[:8], "-m", "theirs", "--json").stdout)["muted"]
    assert json.loads(agentos("failure", "list", "--json").stdout)[0]["muted"]
    assert "muted already" in agentos("failure", "mute", name, code=1).stderr
    agentos("failure", "unmute", name)
    assert "failure list" in agentos("failure", "mute", "zzz", code=1).stderr
    assert [it["event"] for it in json.loads(agentos("audit", "list", "--json").stdout)][-2:] == [
        "failure.muted",
        "failure.unmuted",
    ]


def test_models_are_stopped_until_they_are_let_go_on(agentos: Agentos) -> None:
    assert json.loads(agentos("model", "stop", "-m", "dear", "--json").stdout)["stopped"]
    assert "model resume" in agentos("model", "list").stdout
    assert "already" in agentos("model", "stop", code=1).stderr
    agentos("model", "resume")
    agentos("model", "resume", code=1)


def test_an_empty_list_says_no_more_than_it_knows(agentos: Agentos) -> None:
    assert "looked at once no task waits" in agentos("failure", "list").stdout
