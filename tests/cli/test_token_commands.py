"""`agentos token …`, as typed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from agentos.daemon.control.tokens import token_of
from agentos.home import Home
from agentos.ledger.reading import Reader


def test_a_token_is_shown_once_and_then_listed_and_revoked(agentos: Callable[..., Any], home: Home) -> None:
    shown = agentos("token", "add", "laptop", "--scope", "look", "--scope", "file", "--days", "3")
    text = shown.stdout.split()[0]
    found = token_of(home, text, datetime.now(UTC))
    assert found is not None
    (listed,) = json.loads(agentos("token", "list", "--json").stdout)
    assert (listed["name"], listed["scopes"]) == ("laptop", ["look", "file"])
    assert listed["principal"].startswith("person:")
    assert text[-43:] not in agentos("token", "list").stdout
    agentos("token", "add", "laptop", code=1)
    agentos("token", "revoke", "laptop")
    assert token_of(home, text, datetime.now(UTC)) is None
    agentos("token", "revoke", "laptop", code=1)
    assert json.loads(agentos("token", "list", "--json").stdout) == []
    events = [(entry.event, entry.subject) for entry in Reader(home.ledger).entries()]
    assert [one for one in events if one[0].startswith("token.")] == [
        ("token.added", "laptop"),
        ("token.revoked", "laptop"),
    ]


def test_a_role_is_scopes_in_one_word(agentos: Callable[..., Any]) -> None:
    for role in ("look", "approve", "administer"):
        agentos("token", "add", role, "--role", role)
    agentos("token", "add", "both", "--role", "look", "--scope", "talk")
    scopes = {it["name"]: it["scopes"] for it in json.loads(agentos("token", "list", "--json").stdout)}
    assert scopes == {
        "look": ["look"],
        "approve": ["look", "file", "approve"],
        "administer": ["look", "talk", "file", "approve", "administer"],
        "both": ["look", "talk"],
    }


def test_what_cannot_be_is_said(agentos: Callable[..., Any]) -> None:
    agentos("token", "add", "../x", code=1)
    agentos("token", "add", "x", "--days", "0", code=1)
    agentos("token", "add", "x", "--scope", "everything", code=2)
    agentos("token", "add", "x", "--role", "king", code=2)


def test_neither_commands_nor_the_client_import_the_server() -> None:
    code = (
        "import sys, agentos.cli.main, agentos.cli.tasks.task, agentos.cli.runs.run, agentos.cli.connections.token, agentos.client\n"
        "heavy = {'starlette', 'uvicorn', 'jinja2', 'httpx', 'pydantic', 'sqlalchemy', 'pygit2'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
