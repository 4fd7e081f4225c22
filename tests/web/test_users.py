"""Users of a page that serves others: what their role lets them do, what they try beyond it, and what is on record."""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pytest

from agentos.daemon.control import tokens
from agentos.daemon.control.tokens import TokenRole, TokenScope
from agentos.domain import Consent, Feedback, MemoryProposal
from agentos.errors import UserError
from agentos.evolver.promote.consent import person
from agentos.ledger.blobs import BlobStore
from agentos.ledger.listing import failure_groups
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.web.api.chat import chat_routes
from agentos.web.api.door import FAILED_BURST
from agentos.web.api.home import ApiHome
from agentos.web.api.operations import OPERATIONS
from agentos.web.api.routes import guarded
from agentos.web.app import _done
from agentos.web.context import Reach, WebContext, served_to_others
from agentos.web.guard import ACT_BURST
from agentos.web.sessions import LoginLinks, Sessions
from tests.loopback import held_port
from tests.web.conftest import Served, serving
from tests.web.test_pages import fields
from tests.web.test_server import PATIENCE_S

SERVER = "https://agents.example.org"
LetIn = Callable[..., httpx.Client]


@pytest.fixture
def let_in(served: Served) -> Iterator[LetIn]:
    """A browser of a user with these scopes, who gave their token."""
    with ExitStack() as stack:

        def make(*scopes: TokenScope, name: str = "ada") -> httpx.Client:
            text = tokens.add(served.home, name, scopes, 1, datetime.now(UTC))[1]
            headers = {"Origin": served.address}
            client = stack.enter_context(httpx.Client(base_url=served.address, headers=headers, timeout=60))
            assert client.post("/enter", data={"token": text}).status_code == 303
            return client

        yield make


def acts_of(served: Served) -> list[tuple[str, str, dict[str, Any]]]:
    """Address with something that is there, scope, and fields of each act of the page."""
    failure = failure_groups(Reader(served.home.ledger), 1)[0].fingerprint.id
    ledger = Ledger(served.home.ledger)
    for number in (1, 2):
        ledger.put(
            MemoryProposal(f"prop-{number}", "run-1", "key", f"Lesson {number}", "", datetime.now(UTC))
        )
    ledger.close()
    evolution = f"/evolutions/{served.evolution.id}"
    skill = "/resources/skill/calc"
    return [
        ("/questions/question-1", "file", {"answer": "in"}),
        ("/runs/run-1/word", "file", {"rating": "bad", "because": "wrong"}),
        ("/runs/run-1/again", "file", {}),
        ("/runs/run-2/correct", "file", {"answer": '{"grade": "other"}', "because": "so"}),
        ("/tasks/new", "file", {"goal": "Count"}),
        ("/schedules/task-nightly/run", "file", {}),
        ("/schedules/task-nightly/pause", "administer", {}),
        ("/schedules/task-nightly/resume", "administer", {}),
        ("/proposals/prop-1/accept", "approve", {}),
        ("/proposals/prop-2/turn-down", "approve", {}),
        (f"/failures/{failure}/mute", "administer", {}),
        (f"/failures/{failure}/unmute", "administer", {}),
        ("/models/stop", "administer", {}),
        ("/models/resume", "administer", {}),
        (f"{evolution}/retry", "approve", {}),
        (f"{skill}/pin", "administer", {}),
        (f"{skill}/unpin", "administer", {}),
        (f"{skill}/restore", "administer", {"version": "1.0.0"}),
        ("/leave", "look", {}),
    ]


def csrf_of(browser: httpx.Client) -> dict[str, str]:
    """The token of its session, which stands in the form to leave."""
    return fields(browser.get("/").text, "/leave")


def site_of(served: Served) -> WebContext:
    home = served.home
    return WebContext(
        home=home, reader=Reader(home.ledger), registry=Registry(home.registry), blobs=BlobStore(home.blobs),
        sessions=Sessions(), links=LoginLinks(b"k" * 32), reach=Reach().on(1),
    )  # fmt: skip


def do(browser: httpx.Client, address: str, said: dict[str, Any]) -> httpx.Response:
    """Its effect is shown first, where it has one to be shown."""
    query = f"?version={said['version']}" if "version" in said else ""
    found = browser.get(address + query)
    hidden = (
        fields(found.text, address)
        if found.status_code == 200 and 'name="nonce"' in found.text
        else csrf_of(browser)
    )
    return browser.post(address, data=hidden | said)


@pytest.mark.parametrize("by", ["link", "token"])
@pytest.mark.slow
def test_each_act_of_the_page_is_on_record_with_who_did_it(
    served: Served, browser: httpx.Client, let_in: LetIn, by: str
) -> None:
    client = browser if by == "link" else let_in(*TokenRole.ADMINISTER.scopes)
    who = person() if by == "link" else f"{person()},token=ada"
    registry = Registry(served.home.registry)
    text = b"---\nname: calc\ndescription: Grades otherwise.\n---\n"
    registry.commit({"skill/calc/SKILL.md": text}, "A change", "edit")  # so that there is what to restore
    done = acts_of(served)
    for address, _, said in done:
        before = Reader(served.home.ledger).head().count
        answer = do(client, address, said)
        assert answer.status_code == 303, (address, answer.text)
        entries = [
            entry
            for entry in Reader(served.home.ledger).entries_after(before, 100)
            if entry.event == "page.act"
        ]
        assert [entry.detail["principal"] for entry in entries] == [who], address
        assert entries[0].subject
    # each route that does something is among them
    known = {re.sub(r"\{\w+\}", "[^/]+", route.path) for route in _done(site_of(served))}
    assert {path for path in known if not any(re.fullmatch(path, it[0]) for it in done)} == set()


@pytest.mark.slow
def test_each_act_of_the_api_is_on_record(served: Served) -> None:
    """Operations that change something answer with ``Done``, which is noted where it is served."""
    changing = [it for it in OPERATIONS if it.method != "GET"]
    assert all(it.scope not in (None, TokenScope.LOOK) for it in changing)
    text = tokens.add(served.home, "program", tuple(TokenScope), 1, datetime.now(UTC))[1]
    evolution = served.evolution.id
    bodies: dict[str, Any] = {
        "tasks.add": {"goal": "Count", "name": "n"}, "runs.feedback": {"rating": "bad", "because": "x"},
        "questions.answer": {"answer": "in"}, "schedules.add": {"goal": "g", "name": "s", "schedule": "0 7 * * *"},
    }  # fmt: skip
    there = {
        "runs": "run-1", "questions": "question-1", "schedules": "task-nightly", "evolutions": evolution,
        "tasks": "task-hostile",
    }  # fmt: skip
    # approve and revert need other states
    last = ["evolutions.approve", "evolutions.revert", "schedules.remove"]
    with httpx.Client(base_url=served.address, headers={"Authorization": f"Bearer {text}"}) as client:
        for it in sorted(changing, key=lambda it: it.id in last):
            noun = it.id.partition(".")[0]
            path = it.path.format(id=there.get(noun, ""), kind="skill", name="calc")
            headers = {}
            if it.bound:
                headers["If-Match"] = client.get(f"/api/v1/evolutions/{evolution}").headers["etag"]
            before = Reader(served.home.ledger).head().count
            body = bodies.get(it.id, {}) if it.body else None
            answer = client.request(it.method, f"/api/v1{path}", json=body, headers=headers, timeout=60)
            noted = [
                entry.detail["act"]
                for entry in Reader(served.home.ledger).entries_after(before, 100)
                if entry.event == "api.act"
            ]
            assert noted == ([it.id] if answer.is_success else []), (it.id, answer.text)
            if it.id not in ("evolutions.approve", "evolutions.revert", "evolutions.retry"):
                assert answer.is_success or answer.status_code == 409, (it.id, answer.text)
    site = ApiHome(served.home, Reader(served.home.ledger), Registry(served.home.registry))
    talks = {
        route.path for route in chat_routes(site, lambda: False, guarded) if "POST" in (route.methods or ())
    }
    # noted in ``conversations.begin`` and ``chat._rate``: test_chat
    assert talks == {"/v1/chat/completions", "/v1/responses", "/v1/feedback"}


@pytest.mark.parametrize("scope", list(TokenScope))
@pytest.mark.slow
def test_a_user_does_what_their_scopes_say_and_nothing_else(
    served: Served, let_in: LetIn, scope: TokenScope
) -> None:
    browser = let_in(TokenScope.LOOK, scope)
    for address, needed, said in acts_of(served):
        if needed in (scope, "look"):
            continue
        head = Reader(served.home.ledger).head()
        assert browser.post(address, data=csrf_of(browser) | said).status_code == 403, address
        assert Reader(served.home.ledger).head() == head
    shown = [browser.get(address).text for address in ("/", "/tasks", "/health", "/runs/run-1", "/resources")]
    buttons = set(re.findall(r'action="/(\w+)/', " ".join(shown))) - {"static"}
    if scope in (TokenScope.LOOK, TokenScope.TALK):
        assert buttons <= {"runs"}, buttons  # the form to compare two, which is a GET
        assert not re.search(r'method="post" action="/(?!leave)', " ".join(shown))


def test_who_may_look_cannot_approve_whatever_they_send(served: Served, let_in: LetIn) -> None:
    looks, approves = let_in(TokenScope.LOOK), let_in(TokenScope.LOOK, TokenScope.APPROVE, name="bob")
    address = f"/evolutions/{served.evolution.id}/approve"
    assert looks.get(address).status_code == 403
    assert "/approve" not in looks.get(f"/evolutions/{served.evolution.id}").text
    mine, theirs = csrf_of(looks), fields(approves.get(address).text, address)
    forged = {
        "role": "administer",
        "scope": "approve",
        "scopes": "approve",
        "user": "bob",
        "principal": "person:root(0)",
    }
    for said in (
        mine,
        mine | {"nonce": theirs["nonce"]},  # a stolen nonce
        theirs,  # and the token of that session
        mine | {"nonce": theirs["nonce"]} | forged,
    ):
        assert looks.post(address, data=said).status_code in (400, 403)
    for headers in (
        {"X-Forwarded-User": "bob", "X-Remote-User": "bob", "Remote-User": "bob"},
        {"X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1;proto=https"},
        {"X-HTTP-Method-Override": "GET"},
        {"Authorization": "Bearer nothing"},
    ):
        assert looks.post(address, data=mine, headers=headers).status_code == 403
    assert looks.post(address, data=mine, params={"role": "administer"}).status_code == 403
    assert Reader(served.home.ledger).find(Consent) == []
    assert approves.post(address, data=theirs).status_code == 303
    (consent,) = Reader(served.home.ledger).find(Consent)
    assert (consent.principal, consent.given) == (f"{person()},token=bob", "page, token bob")


def test_a_schedule_is_not_smuggled_in_as_a_task(served: Served, let_in: LetIn) -> None:
    browser = let_in(TokenScope.LOOK, TokenScope.FILE)
    said = csrf_of(browser) | {"goal": "Count", "schedule": "* * * * *"}
    assert browser.post("/tasks/new", data=said).status_code == 403
    assert Reader(served.home.ledger).tasks_named("Count") == []
    assert browser.post("/tasks/new", data=said | {"schedule": ""}).status_code == 303


def test_a_word_on_a_run_is_the_users(served: Served, let_in: LetIn) -> None:
    browser = let_in(TokenScope.LOOK, TokenScope.FILE)
    assert browser.post("/runs/run-1/word", data=csrf_of(browser) | {"rating": "bad"}).status_code == 303
    (word,) = Reader(served.home.ledger).find(Feedback, run_id="run-1")
    assert word.principal == f"{person()},token=ada"


def test_revoked_they_are_out_at_once_and_a_token_of_the_same_name_is_another(
    served: Served, let_in: LetIn
) -> None:
    browser = let_in(TokenScope.LOOK)
    assert browser.get("/").status_code == 200
    tokens.revoke(served.home, "ada")
    assert browser.get("/").status_code == 401
    tokens.add(served.home, "ada", TokenRole.ADMINISTER.scopes, 1, datetime.now(UTC))
    assert browser.get("/").status_code == 401
    assert browser.post("/models/stop", data={"csrf": "x"}).status_code == 401


def test_what_is_followed_ends_with_the_token(served: Served, let_in: LetIn) -> None:
    browser = let_in(TokenScope.LOOK)
    text = tokens.add(served.home, "program", (TokenScope.LOOK,), 1, datetime.now(UTC))[1]
    key = {"Authorization": f"Bearer {text}"}
    with (
        browser.stream("GET", "/events?path=/runs&since=") as page,
        httpx.stream("GET", f"{served.address}/api/v1/events", headers=key, timeout=60) as program,
    ):
        pieces, events = page.iter_text(), program.iter_text()
        assert "retry" in next(pieces)
        assert "retry" in next(events)
        for name in ("ada", "program"):
            tokens.revoke(served.home, name)
        until = time.monotonic() + 50
        for _ in chain(pieces, events):  # both come to their end; one that goes on says so now and then
            assert time.monotonic() < until


def test_a_made_up_token_lets_nobody_in(served: Served) -> None:
    for given in ["", "x", "agentos_ada_" + "x" * 43, "é" * 50]:
        with httpx.Client(base_url=served.address, headers={"Origin": served.address}) as stranger:
            answer = stranger.post("/enter", data={"token": given})
            assert answer.status_code == 401, given
            assert "set-cookie" not in answer.headers
            assert stranger.get("/").status_code == 401


def test_a_token_lets_in_by_the_form_alone(served: Served) -> None:
    text = tokens.add(served.home, "ada", TokenRole.ADMINISTER.scopes, 1, datetime.now(UTC))[1]
    talks = tokens.add(served.home, "talks", (TokenScope.TALK,), 1, datetime.now(UTC))[1]
    with httpx.Client(base_url=served.address) as stranger:
        for address in (f"/enter?token={text}", f"/?q={text}", f"/enter?once={text}", f"/{text}"):
            answer = stranger.get(address)
            assert answer.status_code == 400, address
            assert "revoke" in answer.text
        assert stranger.get("/", headers={"Authorization": f"Bearer {text}"}).status_code == 401
        assert stranger.post("/enter", data={"token": text}).status_code == 403  # no Origin: not our form
        own = {"Origin": served.address}
        assert stranger.post("/enter", data={"token": talks}, headers=own).status_code == 401  # may not look
        assert stranger.post("/enter", data={"token": text}, headers=own).status_code == 303
    assert [entry.event for entry in Reader(served.home.ledger).entries(limit=1)] == ["token.entered"]


def test_who_guesses_is_slowed_down_and_who_knows_is_let_in(served: Served) -> None:
    text = tokens.add(served.home, "ada", (TokenScope.LOOK,), 1, datetime.now(UTC))[1]
    with httpx.Client(base_url=served.address, headers={"Origin": served.address}) as stranger:
        tried = {
            stranger.post("/enter", data={"token": f"no-{n}"}).status_code
            for n in range(int(3 * FAILED_BURST))
        }
        assert tried == {401, 429}
        assert stranger.post("/enter", data={"token": text}).status_code == 303


@pytest.mark.slow
def test_who_comes_again_and_again_drives_nobody_else_out(
    browser: httpx.Client, served: Served, let_in: LetIn
) -> None:
    first = let_in(TokenScope.LOOK)
    text = tokens.add(served.home, "bob", (TokenScope.LOOK,), 1, datetime.now(UTC))[1]
    with httpx.Client(base_url=served.address, headers={"Origin": served.address}) as client:
        found = [client.post("/enter", data={"token": text}) for _ in range(int(3 * FAILED_BURST))]
    assert {it.status_code for it in found} == {303, 429}
    entered = [it.headers["set-cookie"].partition(";")[0] for it in found if it.status_code == 303]
    status = [httpx.get(served.address, headers={"Cookie": cookie}).status_code for cookie in entered]
    assert status == [401] * (len(entered) - 8) + [200] * 8
    assert first.get("/").status_code == browser.get("/").status_code == 200


@pytest.mark.slow
def test_who_acts_too_often_has_to_wait(browser: httpx.Client, served: Served) -> None:
    token = csrf_of(browser)
    found = [browser.post("/runs/run-1/word", data=token) for _ in range(int(ACT_BURST) + 10)]
    assert found[-1].status_code == 429
    assert int(found[-1].headers["retry-after"]) >= 1
    assert browser.get("/").status_code == 200  # looking goes on
    with served.browser() as another:
        assert another.post("/runs/run-1/word", data=csrf_of(another) | {"rating": "bad"}).status_code == 303


# --- a server ---------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for agents.example.org, and its key."""
    files = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=agents.example.org",
               "-addext", "subjectAltName=DNS:agents.example.org", "-out", files[0], "-keyout", files[1]]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return files


def refusal(**said: Any) -> str:
    whole = {"bind": "", "address": "", "certificate": None, "key": None, "header": "", "proxy": "127.0.0.1"}
    with pytest.raises(UserError) as error:
        served_to_others(Reach(**(whole | said)))
    return str(error.value)


@pytest.mark.parametrize(
    "address", ["https://[::1", "https://h:99999", "https://h:x", "https://u@h", "https://"]
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    assert "--address" in refusal(bind="0.0.0.0", address=address, header="X-Proto")


def test_what_is_not_safe_to_serve_is_refused_with_what_to_type(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    certificate, key = pair
    tls = {"certificate": certificate, "key": key}
    assert served_to_others(Reach(bind="", proxy="127.0.0.1")) == Reach()
    for bind in ("0.0.0.0", "127.0.0.1", "::1"):
        assert "--certificate FILE --key FILE" in refusal(bind=bind, address=SERVER)
    assert "--bind" in refusal(address=SERVER)
    assert "--bind" in refusal(header="X-Forwarded-Proto")
    assert "--address https://" in refusal(bind="0.0.0.0", **tls)
    for address in (
        "http://agents.example.org",
        "agents.example.org",
        f"{SERVER}/x",
        "https://a@b",
        f"{SERVER}:x",
    ):
        assert "--address https://" in refusal(bind="0.0.0.0", address=address, **tls)
    assert "IP address" in refusal(bind="agents.example.org", address=SERVER, **tls)
    assert "not both" in refusal(bind="0.0.0.0", address=SERVER, header="X-Forwarded-Proto", **tls)
    assert "--key FILE" in refusal(bind="0.0.0.0", address=SERVER, certificate=certificate)
    assert "no certificate" in refusal(bind="0.0.0.0", address=SERVER, certificate=key, key=certificate)
    assert "no certificate" in refusal(bind="0.0.0.0", address=SERVER, certificate=tmp_path / "none", key=key)
    for header in ("Host", "origin", "a b", "X:"):
        assert "only the proxy sets" in refusal(bind="0.0.0.0", address=SERVER, header=header)
    reach = served_to_others(Reach("0.0.0.0", f"{SERVER}:443", certificate, key, "", "127.0.0.1"))
    assert (reach.hosts, reach.origins) == ({"agents.example.org"}, {SERVER})


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as held:
        yield held


@pytest.mark.slow
def test_as_a_command_it_serves_by_tls_alone(home: Any, pair: tuple[Path, Path], port: int) -> None:
    text = tokens.add(home, "ada", (TokenScope.LOOK,), 1, datetime.now(UTC))[1]
    command = [
        sys.executable,
        "-m",
        "agentos",
        "--home",
        str(home.root),
        "web",
        "--port",
        "0",
        "--bind",
        "127.0.0.1",
    ]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert refused.returncode == 1
    assert "--certificate FILE --key FILE" in refused.stderr
    address = f"https://agents.example.org:{port}"
    command[command.index("--port") + 1] = str(port)
    command += ["--address", address, "--certificate", str(pair[0]), "--key", str(pair[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            link = next(found[0] for it in process.stdout if (found := re.search(r"https://\S+", it)))
            assert link.startswith(f"{address}/enter?once=")
            trusted = ssl.create_default_context(cafile=str(pair[0]))
            here = {"Host": f"agents.example.org:{port}", "Origin": address}
            sni = {"sni_hostname": "agents.example.org"}
            with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted, headers=here) as client:
                wait_for(lambda: client.get("/enter", extensions=sni))
                entered = client.post("/enter", data={"token": text}, extensions=sni)
                cookie = entered.headers["set-cookie"]
                assert cookie.startswith("__Host-agentos=")
                for word in ("Secure", "HttpOnly", "SameSite=strict", "Path=/"):
                    assert word in cookie
                assert "max-age" in entered.headers["strict-transport-security"]
                let_in = {"Cookie": cookie.partition(";")[0]}
                assert "skill/calc" in client.get("/", headers=let_in, extensions=sni).text
                elsewhere = {"Host": f"127.0.0.1:{port}"}
                assert client.get("/", headers=let_in | elsewhere, extensions=sni).status_code == 421
            with pytest.raises(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{port}/", headers=here)
        finally:
            process.kill()
    written = [path.read_bytes() for path in home.root.rglob("*") if path.is_file()]
    for secret in (text, let_in["Cookie"].partition("=")[2]):
        assert not any(secret.encode() in data for data in written)


def wait_for(answer: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            answer()
            return
        except httpx.ConnectError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@pytest.mark.parametrize(
    ("proxy", "headers", "status"),
    [
        ("127.0.0.1", [("X-Proto", "https")], 200),
        ("127.0.0.1", [], 403),
        ("127.0.0.1", [("X-Proto", "http")], 403),
        ("127.0.0.1", [("X-Proto", "https"), ("X-Proto", "https")], 403),
        ("127.0.0.1", [("X-Forwarded-Proto", "https")], 403),  # not the one that was named
        ("10.0.0.1", [("X-Proto", "https"), ("X-Forwarded-For", "10.0.0.1"), ("X-Real-IP", "10.0.0.1")], 403),
    ],
)
def test_behind_a_proxy_only_what_came_to_it_encrypted_is_answered(
    home: Any, proxy: str, headers: list[tuple[str, str]], status: int
) -> None:
    text = tokens.add(home, "ada", (TokenScope.LOOK,), 1, datetime.now(UTC))[1]
    with serving(home, served_to_others(Reach("127.0.0.1", SERVER, None, None, "X-Proto", proxy))) as served:
        own = [("Host", "agents.example.org"), ("Origin", SERVER), *headers]
        assert httpx.get(f"{served.address}/enter", headers=own).status_code == status
        program = [*own, ("Authorization", f"Bearer {text}")]
        assert httpx.get(f"{served.address}/api/v1/token", headers=program).status_code == status
        if status == 200:
            wrong = [(name, "evil.example" if name == "Host" else value) for name, value in own]
            assert httpx.get(f"{served.address}/enter", headers=wrong).status_code == 421
            entered = httpx.post(f"{served.address}/enter", headers=own, data={"token": text})
            assert entered.headers["set-cookie"].startswith("__Host-agentos=")
            plain = [(name, served.address if name == "Origin" else value) for name, value in own]
            assert (
                httpx.post(f"{served.address}/enter", headers=plain, data={"token": text}).status_code == 403
            )


def test_without_a_named_proxy_what_a_client_says_of_itself_is_not_believed(
    browser: httpx.Client, served: Served
) -> None:
    for headers in (
        {"X-Forwarded-Host": "127.0.0.1", "Host": "evil.example"},
        {"Forwarded": f"host=127.0.0.1:{served.port}", "Host": "evil.example"},
    ):
        assert browser.get("/", headers=headers).status_code == 421
    forwarded = {"X-Forwarded-Proto": "https", "Origin": served.address.replace("http:", "https:")}
    assert browser.post("/leave", data=csrf_of(browser), headers=forwarded).status_code == 403
