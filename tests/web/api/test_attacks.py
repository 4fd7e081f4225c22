"""What is tried against the API, on a real server."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from agentos.client import ApiError, Client
from agentos.daemon.control import tokens
from agentos.daemon.control.tokens import TokenScope
from agentos.domain import Consent, Evolution, EvolutionState
from agentos.errors import Conflict, UserError
from agentos.ledger.reading import Reader
from agentos.web.api.door import BODY_MAX, FAILED_BURST, Buckets
from agentos.web.api.operations import OPERATIONS
from agentos.web.api.routes import document
from tests.web.api.conftest import token_for
from tests.web.conftest import Served

Raw = Callable[[str], httpx.Client]


def kind(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["kind"]


def test_without_a_token_nobody_is_let_in(raw: Raw) -> None:
    for address in ["/api/v1/tasks", "/api/v1/events", "/api/v1/token", "/api/v1/nothing", "/api/"]:
        assert kind(raw("").get(address)) == (401, "no_token"), address
        assert raw("").get(address).headers["www-authenticate"].startswith("Bearer")


@pytest.mark.slow
def test_no_other_form_of_a_token_lets_in(served: Served, raw: Raw, token: str) -> None:
    for given in (
        token,
        f"Basic {token}",
        f"Bearer {token}x",
        f"Bearer {token[:-1]}",
        "Bearer",
        f"Bearer  {token},",
    ):
        assert kind(raw(given).get("/api/v1/token"))[0] == 401
    twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    assert kind(httpx.get(f"{served.address}/api/v1/token", headers=twice, timeout=60))[0] == 401
    with served.browser() as browser:  # its cookie is for the page
        assert kind(browser.get("/api/v1/tasks")) == (401, "no_token")
        assert kind(browser.post("/api/v1/tasks", json={"goal": "x"})) == (401, "no_token")
    assert raw(f"Bearer {token}").get("/").status_code == 401  # and a token is not for the page


def test_a_token_that_was_revoked_or_has_expired_is_worth_nothing(
    served: Served, raw: Raw, token: str
) -> None:
    client = raw(f"Bearer {token}")
    assert client.get("/api/v1/token").status_code == 200
    tokens.revoke(served.home, "program")
    assert kind(client.get("/api/v1/token")) == (401, "bad_token")
    again = token_for(served, TokenScope.LOOK)  # of the same name
    assert kind(client.get("/api/v1/token")) == (401, "bad_token")
    now = datetime.now(UTC)
    assert tokens.token_of(served.home, again, now) is not None
    assert tokens.token_of(served.home, again, now + timedelta(days=1, seconds=1)) is None
    old = tokens.add(served.home, "old", (TokenScope.LOOK,), 1, now - timedelta(days=2))[1]
    assert kind(raw(f"Bearer {old}").get("/api/v1/token")) == (401, "bad_token")


def test_the_home_keeps_no_token_and_nobody_else_reads_its_digests(served: Served, token: str) -> None:
    with Client(served.address, token) as client:
        client.pin("skill/calc")
        next(client.events(after=0))
    secret = token.rpartition("_")[2] if "_" not in token[-43:] else token[-43:]
    written = [path for path in served.home.root.rglob("*") if path.is_file()]
    assert [path for path in written if secret.encode() in path.read_bytes()] == []
    file = served.home.api_tokens / "program"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    file.chmod(0o644)  # whoever could write it could let themselves in
    with Client(served.address, token) as client, pytest.raises(ApiError) as error:
        client.token()
    assert error.value.status == 401


def test_a_token_in_an_address_is_refused_and_stands_nowhere(served: Served, raw: Raw, token: str) -> None:
    client = raw(f"Bearer {token}")
    for address in (
        f"/api/v1/tasks?access_token={token}",
        f"/api/v1/tasks?x={token}",
        f"/api/v1/tasks/{token}",
        "/api/v1/tasks?token=x",
        f"/v1/models?api_key={token}",
        f"/api/v1/tasks?x={token.replace('_', '%5f')}",
    ):
        response = client.get(address)
        assert response.status_code == 400, address
        assert token not in response.text
    logs = [path.read_text() for path in served.home.logs.rglob("*") if path.is_file()]
    assert not any(token in text for text in logs)


def test_a_name_that_was_rebound_is_refused(raw: Raw, token: str) -> None:
    for host in ["evil.example", "evil.example:80", "127.0.0.1", "localhost:1", ""]:
        response = raw(f"Bearer {token}").get("/api/v1/tasks", headers={"Host": host})
        assert response.status_code in (400, 421), host
        assert "task" not in response.json()


def test_another_site_may_not_read_it(raw: Raw, token: str) -> None:
    client = raw(f"Bearer {token}")
    asked = client.options(
        "/api/v1/tasks", headers={"Origin": "http://evil.example", "Access-Control-Request-Method": "GET"}
    )
    assert asked.status_code == 405
    answer = client.get("/api/v1/tasks", headers={"Origin": "http://evil.example"})
    for response in (asked, answer):
        assert not [name for name in response.headers if name.startswith("access-control")]
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("it", [one for one in OPERATIONS if one.scope], ids=lambda one: one.id)
def test_each_operation_wants_its_scope(shared: Served, it: Any) -> None:
    others = tuple(scope for scope in TokenScope if scope is not it.scope)
    headers = {"Authorization": f"Bearer {token_for(shared, *others, name=secrets.token_hex(8))}"}
    address = f"/api/v1{it.path}".format(id="x", kind="skill", name="calc", number=0)
    body = {"json": {}} if it.body else {}
    with httpx.Client(base_url=shared.address, headers=headers, timeout=60) as client:
        assert kind(client.request(it.method, address, **body)) == (403, "wrong_scope")


def test_streams_files_and_agents_want_one_too(served: Served, raw: Raw) -> None:
    client = raw(f"Bearer {token_for(served, TokenScope.FILE, TokenScope.APPROVE)}")
    for address in ["/v1/models", "/api/v1/events", "/api/v1/runs/x/events", "/api/v1/runs/x/files/0"]:
        assert client.get(address).status_code == 403, address


def test_a_huge_body_is_not_taken(served: Served, raw: Raw, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    start = f"POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n{head}"
    with socket.create_connection(("127.0.0.1", served.port), 60) as connection:  # not even waited for
        connection.sendall(f"{start}Content-Length: {1 << 40}\r\n\r\n".encode())
        assert b" 413 " in connection.recv(1 << 16)
    # one that does not say its size
    with socket.create_connection(("127.0.0.1", served.port), 60) as connection:
        connection.sendall(f"{start}Transfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        answer = b""
        try:
            for _ in range(BODY_MAX // 0x100000 + 2):
                connection.sendall(chunk)
            answer = connection.recv(1 << 16)
        except (BrokenPipeError, ConnectionResetError):
            answer = answer or b"413"
    assert b"413" in answer
    deep = b"[" * 200_000
    assert raw(f"Bearer {token}").post("/api/v1/tasks", content=deep, headers=headers).status_code == 422
    assert raw(f"Bearer {token}").post("/api/v1/tasks", content=b"a=1").status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        '{"goal": "x", "goal": "y"}',
        '{"goal": "x", "\\u0067oal": "y"}',
        '{"goal": "x", "files": {"a": "1", "a": "2"}}',
        f'{{"goal": "x", "limits": {"1" * 5000}, "goal": "y"}}',
        '{"goal": "a\nb", "goal": "y"}',
        '{"goal": NaN, "checks": [{"equals": {"value": 1, "value": 2}}]}',
    ],
    ids=["plain", "escaped", "files", "beside a number without end", "control character", "check"],
)
def test_a_body_that_gives_a_key_twice_is_refused(shared: Served, body: str) -> None:
    token = token_for(shared, name=secrets.token_hex(8))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with httpx.Client(base_url=shared.address, headers=headers, timeout=60) as client:
        assert kind(client.post("/api/v1/tasks", content=body)) == (400, "duplicate_key")
        refused = client.post("/v1/chat/completions", content=body)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "duplicate_key")


def test_who_guesses_is_slowed_down_and_others_are_not(raw: Raw, token: str) -> None:
    guessing = raw("Bearer agentos_program_" + "x" * 43)
    statuses = [guessing.get("/api/v1/token").status_code for _ in range(int(FAILED_BURST) + 10)]
    assert 429 in statuses
    assert raw(f"Bearer {token}").get("/api/v1/token").status_code == 200


def test_a_bucket_fills_again_and_each_has_its_own() -> None:
    now = [0.0]
    buckets = Buckets(lambda: now[0])
    assert [buckets.take("a", 1.0, 2.0) for _ in range(3)] == [0.0, 0.0, 1.0]
    assert buckets.take("b", 1.0, 2.0) == 0.0
    now[0] = 1.0
    assert buckets.take("a", 1.0, 2.0) == 0.0


@pytest.mark.slow
def test_a_consent_is_for_what_was_looked_at_and_is_given_once(served: Served, raw: Raw, token: str) -> None:
    client, name = raw(f"Bearer {token}"), served.evolution.id
    approve = f"/api/v1/evolutions/{name}/approve"
    assert kind(client.post(approve, json={})) == (428, "not_looked_at")
    assert kind(client.post(approve, json={}, headers={"If-Match": "*"})) == (412, "changed")
    seen = client.get(f"/api/v1/evolutions/{name}").headers["etag"]
    with served.browser() as page:  # somebody looks at the same time; that changes nothing
        page.get(f"/evolutions/{name}")
    assert client.post(approve, json={}, headers={"If-Match": seen}).status_code == 200
    assert kind(client.post(approve, json={}, headers={"If-Match": seen})) == (412, "changed")
    (consent,) = Reader(served.home.ledger).find(Consent)
    whole = client.get(f"/api/v1/evolutions/{name}")
    assert consent.token not in whole.text
    assert "token" not in whole.json()["consents"][0]


def test_what_changed_since_it_was_looked_at_is_not_approved(served: Served, program: Client) -> None:
    seen = program.evolution(served.evolution.id)
    program.decide("reject", seen)
    with pytest.raises(ApiError) as error:
        program.decide("approve", seen)
    assert (error.value.status, error.value.kind) == (412, "changed")
    assert Reader(served.home.ledger).find(Consent) == []
    assert Reader(served.home.ledger).get(Evolution, served.evolution.id).state is EvolutionState.REJECTED


@pytest.mark.slow
def test_what_the_policy_of_now_would_not_promote_is_not_approved(served: Served, program: Client) -> None:
    seen = program.evolution(served.evolution.id)
    policy = served.home.root / "policy.toml"
    policy.write_text('[surface]\nallow = ["memory/*/memory.md"]\n')
    with pytest.raises(ApiError) as error:
        program.decide("approve", seen)
    assert error.value.status == 409
    assert Reader(served.home.ledger).find(Consent) == []
    policy.unlink()
    program.decide("approve", program.evolution(served.evolution.id))
    assert len(Reader(served.home.ledger).find(Consent)) == 1


def test_another_persons_token_speaks_for_them_and_only_where_they_may(served: Served, tmp_path: Any) -> None:
    text = token_for(served, TokenScope.LOOK, TokenScope.APPROVE, name="ada")
    file = served.home.api_tokens / "ada"
    said = json.loads(file.read_text())
    file.write_text(json.dumps({**said, "principal": "person:ada(4711)"}))  # as if she had made it
    with Client(served.address, text) as client:
        client.decide("approve", client.evolution(served.evolution.id))
    (consent,) = Reader(served.home.ledger).find(Consent)
    assert (consent.principal, consent.given) == ("person:ada(4711)", "token ada")
    elsewhere = replace(served.home, root=tmp_path / "other")
    elsewhere.root.mkdir()
    assert tokens.token_of(elsewhere, text, datetime.now(UTC)) is None  # of another home
    if os.geteuid() == 0:
        os.chown(file, 12345, 12345)  # a file that somebody else put there
        with Client(served.address, text) as client, pytest.raises(ApiError) as error:
            client.token()
        assert error.value.status == 401


def test_a_tokens_name_is_no_path(served: Served) -> None:
    for name in ["../x", "a/b", "", "A", "a_b", "-a", "a" * 41, "a\n"]:
        with pytest.raises(UserError):
            tokens.add(served.home, name, (), 1, datetime.now(UTC))
        with pytest.raises(UserError):
            tokens.revoke(served.home, name)
        assert tokens.token_of(served.home, f"agentos_{name}_{'x' * 43}", datetime.now(UTC)) is None


def test_a_token_is_never_overwritten(served: Served, token: str) -> None:
    with pytest.raises(Conflict):
        token_for(served)
    assert tokens.token_of(served.home, token, datetime.now(UTC)) is not None
    assert [one.name for one in served.home.api_tokens.iterdir()] == ["program"]


def test_no_path_is_taken_from_an_address(raw: Raw, token: str) -> None:
    for path in [
        *("..%2f..%2fledger.db", "%2e%2e", "..", "run-hostile/files/..%2f0", "run-hostile/files/-1", "%00"),
        "run-hostile/files/" + "9" * 5000,
    ]:
        response = raw(f"Bearer {token}").get(f"/api/v1/runs/{path}")
        assert response.status_code in (400, 404), (path, response.text)
        assert "SQLite" not in response.text


@pytest.mark.slow
def test_the_description_holds_nothing_of_the_home(served: Served, raw: Raw) -> None:
    response = raw("").get("/api/v1/openapi.json")
    assert response.status_code == 200
    assert response.json() == document()
    assert str(served.home.root) not in response.text
