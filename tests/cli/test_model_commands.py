"""``agentos model``: what a person types to have a model, and what is said when it does not answer."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from agentos.home import Home
from agentos.registry.store import Registry
from agentos.testing import ModelServer, say
from tests.refusals import assert_golden

Ran = subprocess.CompletedProcess[str]
Agentos = Callable[..., Ran]


@pytest.mark.slow
def test_the_first_model_becomes_the_default_and_comments_stay(home: Home, agentos: Agentos) -> None:
    assert "There is no model" in agentos("model", "list").stdout
    before = home.settings.read_text()
    agentos(
        *("model", "add", "main", "--model", "openai/qwen3", "--provider", "local"),
        *("--api-base", "http://127.0.0.1:9/v1", "--parameter", "temperature=0.2"),
    )
    after = home.settings.read_text()
    settings = tomllib.loads(after)
    assert settings["model"] == "main"
    assert settings["providers"] == {"local": {"api_base": "http://127.0.0.1:9/v1"}}
    kept = [line for line in before.splitlines() if line.startswith("#") and "model = " not in line]
    assert [line for line in kept if line not in after] == []
    agentos(
        *("model", "add", "dear", "--model", "openai/gpt-5", "--provider", "openai"),
        *("--key-env", "SOME_API_KEY", "--fallback", "main", "--input-price", "1.25", "--output-price", "10"),
    )
    found = {line["name"]: line for line in json.loads(agentos("model", "list", "--json").stdout)}
    assert (found["main"]["default"], found["dear"]["default"]) == (True, False)
    assert (found["main"]["key"], found["dear"]["key"]) == ("", "no")
    assert found["dear"]["price"] == {"input": 1.25, "output": 10.0, "cached": None}
    home.keys.write_text('SOME_API_KEY = "sk-never-shown-0123456789"\n')
    home.keys.chmod(0o600)
    shown = agentos("model", "list").stdout
    assert "yes" in shown
    assert "never-shown" not in shown
    assert "model/dear" in agentos("registry", "list").stdout
    assert "unchanged" in agentos("model", "add", "main", "--model", "openai/qwen3", "--provider", "local",
                                  "--parameter", "temperature=0.2").stdout  # fmt: skip


@pytest.mark.slow
def test_what_is_left_out_stays_as_it_is(home: Home, agentos: Agentos) -> None:
    agentos("model", "add", "spare", "--model", "openai/spare")
    agentos(
        *("model", "add", "main", "--model", "openai/old", "--input-price", "1", "--output-price", "2"),
        *("--parameter", "seed=7", "--context", "9000"),
    )
    agentos("model", "add", "main", "--model", "openai/new", "--fallback", "spare", "--default")
    found = {line["name"]: line for line in json.loads(agentos("model", "list", "--json").stdout)}["main"]
    assert (found["model"], found["default"], found["context_tokens"]) == ("openai/new", True, 9000)
    assert found["price"] == {"input": 1.0, "output": 2.0, "cached": None}
    shown = agentos("registry", "show", "model/main").stdout
    assert "seed = 7" in shown
    assert 'fallbacks = ["spare"]' in shown
    assert "The model openai/new" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Bad_Name", "--model", "openai/x"], "letters"),
        (["m", "--model", "openai/x", "--provider", "p"], "agentos.toml has no [providers.p]"),
        (["m", "--model", "openai/x", "--api-base", "http://x"], "--provider"),
        (["m", "--model", "openai/x", "--parameter", "api_base=http://evil"], "no parameter"),
        (["m", "--model", "openai/x", "--parameter", "temperature"], "KEY=VALUE"),
        (["m", "--model", "openai/x", "--parameter", "seed=null"], "--parameter seed"),
        (["m", "--model", "openai/x", "--parameter", "temperature=NaN"], "--parameter temperature"),
        (["m", "--model", "openai/x", "--fallback", "none"], "No model 'none'"),
        (["m", "--model", "openai/x", "--input-price", "1"], "together"),
        (
            ["m", "--model", "openai/x", "--provider", "p", "--api-base", "ftp://x"],
            "--api-base as an address",
        ),
        (["m", "--model", "openai/x", "--provider", "p", "--api-base", "127.0.0.1:80"], "http://127.0"),
        (["m", "--model", "openai/x", "--context", "5"], "context_tokens"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    home: Home, agentos: Agentos, arguments: list[str], words: str
) -> None:
    before = home.settings.read_text()
    assert words in agentos("model", "add", *arguments, code=1).stderr
    assert home.settings.read_text() == before
    assert agentos("model", "list", "--json").stdout.strip() == "[]"
    assert not list(home.root.glob("*.new"))


@pytest.mark.slow
def test_a_model_is_tried_through_a_real_gateway(home: Home, agentos: Agentos) -> None:
    with ModelServer(lambda request, number: say("ok")) as server:
        agentos("model", "add", "main", "--model", "openai/scripted", "--provider", "local",
                "--api-base", server.base_url)  # fmt: skip
        assert "'main' answered in" in agentos("model", "test").stdout
        server.fault_next("unauthorized")
        said = agentos("model", "test", "main", code=1).stderr
        assert "(auth)" in said
        assert "Incorrect API key" in said
        assert server.paid == 1
    found = json.loads(agentos("model", "list", "--json").stdout)[0]
    assert (found["calls"], found["faults"], found["usd"]) == (2, {"auth": 1}, None)
    agentos("model", "stop")
    said = agentos("model", "test", code=1).stderr
    assert "agentos model resume" in said
    assert "api_base" not in said, "nothing is wrong with the server"
    agentos("model", "resume")
    assert sorted(os.listdir(home.run)) == []
    assert_golden("model_test.no_model_nope", agentos("model", "test", "nope", code=1).stderr)


def add(agentos: Agentos, name: str, *more: str) -> None:
    agentos("model", "add", name, "--model", f"openai/{name}", "--provider", "local",
            "--api-base", "http://127.0.0.1:9/v1", *more)  # fmt: skip


@pytest.mark.slow
def test_a_model_that_is_removed_is_asked_no_more_and_has_its_history(home: Home, agentos: Agentos) -> None:
    add(agentos, "main")
    add(agentos, "spare")
    assert_golden("model_remove.needs_an_answer", agentos("model", "remove", "main", code=1).stderr)
    assert "There is none" not in agentos("model", "list").stdout
    done = agentos("model", "remove", "main", "--yes").stdout
    assert "there is none now" in done
    assert "model" not in tomllib.loads(home.settings.read_text())
    assert [line["name"] for line in json.loads(agentos("model", "list", "--json").stdout)] == ["spare"]
    assert "Retire model/main" in agentos("registry", "log", "model/main").stdout
    assert_golden("model_remove.no_model_main", agentos("model", "remove", "main", "--yes", code=1).stderr)
    assert "No model 'main'" in agentos("model", "remove", "main", code=1).stderr, "nobody is asked first"
    assert_golden("model_test.no_model_is_set_up", agentos("model", "test", code=1).stderr)


@pytest.mark.slow
def test_a_model_that_others_stand_on_is_not_removed(home: Home, agentos: Agentos) -> None:
    add(agentos, "main")
    add(agentos, "big", "--fallback", "main")
    refused = agentos("model", "remove", "main", "--yes", code=1).stderr
    assert "model/big falls back to it" in refused
    assert tomllib.loads(home.settings.read_text())["model"] == "main", "nothing was changed"
    agentos("model", "remove", "big", "--yes")
    registry = Registry(home.registry)
    path = "agent/default/resource.toml"
    text = registry.files(registry.stable(), path)[path]
    assert b'model = "default"' in text
    registry.commit({path: text.replace(b'model = "default"', b'model = "main"')}, "names it", "edit")
    assert_golden(
        "model_remove.agent_default_names_it", agentos("model", "remove", "main", "--yes", code=1).stderr
    )


@pytest.mark.slow
def test_the_default_is_changed_and_cleared(home: Home, agentos: Agentos) -> None:
    add(agentos, "main")
    add(agentos, "spare")
    assert "'spare' now" in agentos("model", "default", "spare").stdout
    assert tomllib.loads(home.settings.read_text())["model"] == "spare"
    assert "so already" in agentos("model", "default", "spare").stdout
    assert_golden("model_default.no_model_nobody", agentos("model", "default", "nobody", code=1).stderr)
    agentos("model", "default", "")
    assert "model" not in tomllib.loads(home.settings.read_text())
    assert tomllib.loads(home.settings.read_text())["providers"], "the rest stays"


def test_the_settings_keep_whatever_else_a_person_gave_them(
    home: Home, tmp_path: Path, agentos: Agentos
) -> None:
    add(agentos, "main")
    add(agentos, "spare")
    own = tmp_path / "own.toml"
    own.write_bytes(b'\xef\xbb\xbfmodel = "main"\r\n# model = "old"\r\nparallel = 1\r\n')
    own.chmod(0o600)
    home.settings.unlink()
    home.settings.symlink_to(own)
    agentos("model", "default", "spare")
    assert own.read_bytes() == b'model = "spare"\r\n# model = "old"\r\nparallel = 1\r\n'
    assert own.stat().st_mode & 0o777 == 0o600
    assert home.settings.is_symlink()
    own.write_text("model = ")
    assert "not TOML" in agentos("model", "default", "main", code=1).stderr
