"""What another site, a tool, a model or a file could try against who looks at the page. Each attack is made for real."""

from __future__ import annotations

import http.client
import re
import socket
import threading
import time
from contextlib import suppress

import httpx
import pytest

from agentos.domain import Consent
from agentos.errors import Conflict, ErrorKind
from agentos.ledger.reading import Reader
from agentos.web import guard, listening
from agentos.web.guard import FORM_MAX
from agentos.web.sessions import INTENT_S, LINK_S, LoginLinks, Sessions
from tests.refusals import raises
from tests.web.conftest import FILES, OVERRIDE, SCRIPT, Served
from tests.web.test_pages import PAGES, fields


def test_without_the_link_nothing_is_shown(served: Served) -> None:
    with httpx.Client(base_url=served.address) as stranger:
        for address in PAGES:
            answer = stranger.get(address)
            assert answer.status_code == 401
            assert "calc" not in answer.text


def test_a_link_works_once_and_lets_in_by_a_cookie_that_scripts_and_sites_cannot_use(
    served: Served,
) -> None:
    link = served.link
    with httpx.Client() as client:
        looked = client.head(link)  # as a chat does for a picture of it
        assert "set-cookie" not in looked.headers
        cookie = client.get(link).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    with httpx.Client() as second:
        assert second.get(link).status_code == 401


def test_a_made_up_link_lets_nobody_in(served: Served) -> None:
    for given in ["", "a", "1.b.c", "é.ü", "9999999999.x." + "0" * 64]:
        with httpx.Client(base_url=served.address) as client:
            assert client.get("/enter", params={"once": given}).status_code == 401, given


def test_a_link_and_an_intent_end_with_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    links, sessions = LoginLinks(b"k" * 32), Sessions()
    link = links.make()
    session = sessions.find(sessions.open())
    assert session is not None
    nonce = sessions.intend(session, "approve", "evo-1", "d")
    late = time.time() + max(LINK_S, INTENT_S) + 1
    monkeypatch.setattr(time, "time", lambda: late)
    assert not links.redeem(link)
    with raises(Conflict, ErrorKind.STALE):
        sessions.redeem(session, nonce, "approve", "evo-1", "d")


def test_a_name_that_was_rebound_to_this_machine_is_refused(served: Served, browser: httpx.Client) -> None:
    for host in ["evil.example", "evil.example:80", "127.0.0.1", "[::1]", ""]:
        assert browser.get("/", headers={"Host": host}).status_code == 421, host
        assert browser.get("/enter", headers={"Host": host}).status_code == 421
        answer = browser.post("/leave", headers={"Host": host, "Origin": f"http://{host}"}, data={})
        assert answer.status_code == 421, host


def test_a_form_of_another_site_does_nothing(browser: httpx.Client, served: Served) -> None:
    for headers in [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port of this machine
    ]:
        shown = browser.get(f"/evolutions/{served.evolution.id}/approve").text
        address = f"/evolutions/{served.evolution.id}/approve"
        assert browser.post(address, data=fields(shown, address), headers=headers).status_code == 403, headers
        assert Reader(served.home.ledger).find(Consent) == []


def test_a_form_without_the_sessions_token_does_nothing(browser: httpx.Client, served: Served) -> None:
    for token in ["", "x", None]:
        address = f"/evolutions/{served.evolution.id}/approve"
        said = fields(browser.get(address).text, address)
        other = {**said, "csrf": token} if token is not None else {"nonce": said["nonce"]}
        assert browser.post(address, data=other).status_code == 400, token
        with served.browser() as another:  # the token of one session is nothing to another
            assert another.post(address, data=said).status_code == 400
        assert Reader(served.home.ledger).find(Consent) == []


@pytest.mark.slow
def test_a_get_changes_nothing(browser: httpx.Client, served: Served) -> None:
    head = Reader(served.home.ledger).head()
    for address in (*PAGES, f"/evolutions/{served.evolution.id}/approve", "/leave", "/questions/question-1"):
        browser.get(address)
    assert Reader(served.home.ledger).head() == head
    assert browser.put("/questions/question-1").status_code == 405


def test_no_answer_may_be_framed_kept_or_run_scripts_of_others(browser: httpx.Client, served: Served) -> None:
    for address in (
        *PAGES,
        "/static/style.css",
        "/nothing",
        "/runs/run-hostile/files/1",
        "/runs/run-hostile/steps/0/out",
    ):
        headers = browser.get(address).headers
        assert headers["x-frame-options"] == "DENY"
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] in ("same-origin", "no-referrer")


def test_what_others_wrote_is_text(browser: httpx.Client, served: Served) -> None:
    """Names, goals, tool calls, answers, file names, reasons: nothing of them becomes an element or a link."""
    for address in (*PAGES, "/tasks?state=done", "/search?q=" + SCRIPT):
        page = browser.get(address)
        if not page.headers["content-type"].startswith("text/html"):
            continue
        assert SCRIPT not in page.text
        assert re.findall(r"<script\b[^>]*>", page.text) == ['<script src="/static/live.js" defer>']
        assert not re.search(r"<[^>]+\son\w+=", page.text)
        assert not re.search(r'<[^>]+(href|src)="(?!/|\?|#)', page.text)
        assert OVERRIDE[0] not in page.text


def test_a_script_in_a_diff_is_text(browser: httpx.Client, served: Served) -> None:
    from agentos.registry.store import Registry

    registry = Registry(served.home.registry)
    page = f"---\nname: calc\ndescription: Grades.\n---\n{SCRIPT}\n"
    registry.commit({"skill/calc/SKILL.md": page.encode()}, f"A change {SCRIPT}", "edit")
    newest = registry.versions(next(it for it in registry.names(registry.stable()) if it.name == "calc"))[0]
    shown = browser.get(f"/resources/skill/calc?from=1.0.0&to={newest.number}").text
    assert "&lt;script&gt;" in shown
    assert SCRIPT not in shown


def test_no_address_leads_out_of_what_a_run_left(browser: httpx.Client, served: Served) -> None:
    for place in [
        "..%2f..%2fconsent.key",
        "%2e%2e/%2e%2e/consent.key",
        "0/../../../consent.key",
        "-1",
        "1e3",
    ]:
        secret = served.home.consent_key.read_bytes()
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        for folder in ("/runs/run-hostile/files/", "/static/", "/resources/skill/", "/tables/"):
            # not by httpx, which tidies an address up before it is sent
            cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
            connection.request("GET", folder + place, headers={"Cookie": cookie})
            answer = connection.getresponse()
            assert secret not in answer.read()
            assert answer.status in (400, 404), folder + place
        connection.close()


def test_a_number_that_is_no_int_is_no_page(browser: httpx.Client) -> None:
    for page in ("files/{}", "steps/{}/action"):
        assert browser.get(f"/runs/run-hostile/{page.format('9' * 5000)}").status_code == 404


def test_a_file_with_a_bad_name_cannot_write_headers(browser: httpx.Client) -> None:
    for number, path in enumerate(FILES):
        headers = browser.get(f"/runs/run-hostile/files/{number}").headers
        assert "x-evil" not in headers
        assert "\\" not in headers["content-disposition"], path
        assert "/" not in headers["content-disposition"]


def test_a_consent_is_given_once_and_only_for_what_was_shown(browser: httpx.Client, served: Served) -> None:
    address = f"/evolutions/{served.evolution.id}/approve"
    said = fields(browser.get(address).text, address)
    for other in ("reject", "retry"):  # a nonce is for its act alone
        assert browser.post(f"/evolutions/{served.evolution.id}/{other}", data=said).status_code == 409
    said = fields(browser.get(address).text, address)
    assert browser.post(address, data=said).status_code == 303
    assert browser.post(address, data=said).status_code == 409
    assert len(Reader(served.home.ledger).find(Consent)) == 1


def test_a_consent_for_what_changed_meanwhile_is_refused(browser: httpx.Client, served: Served) -> None:
    address = f"/evolutions/{served.evolution.id}/approve"
    first, second = (fields(browser.get(address).text, address) for _ in range(2))
    reject = f"/evolutions/{served.evolution.id}/reject"
    declined = fields(browser.get(reject).text, reject)
    assert browser.post(address, data=first).status_code == 303  # from another tab
    assert browser.post(address, data=second).status_code == 409
    answer = browser.post(reject, data=declined)
    assert answer.status_code == 409
    assert "changed since you looked" in answer.text


def test_a_huge_upload_is_refused_unread(browser: httpx.Client, served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=60) as raw:
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        raw.sendall(
            f"POST /questions/question-1 HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nOrigin: {served.address}\r\n"
            f"Cookie: {cookie}\r\nContent-Length: {200 << 20}\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\n\r\n".encode()
        )
        assert b" 413 " in raw.recv(4096).partition(b"\r\n")[0]
    chunked = browser.post("/questions/question-1", content=(b"x" * 1024 for _ in range(4)))
    assert chunked.status_code == 411
    assert browser.post("/questions/question-1", content=b"csrf=" + b"x" * FORM_MAX).status_code == 413
    many = browser.post("/questions/question-1", data={f"f{n}": "" for n in range(100)})
    assert many.status_code == 400


def test_the_head_of_a_request_has_an_end(served: Served) -> None:
    """Without a token it grew as long as the connection lived, in the memory of the page."""
    with socket.create_connection(("127.0.0.1", served.port), 60.0) as flood:
        flood.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        with suppress(ConnectionError):
            for _ in range(256):
                flood.sendall(b"a" * (1 << 16))
            pytest.fail("16 MB of one header were taken")


def test_many_stalled_connections_do_not_keep_others_out(browser: httpx.Client, served: Served) -> None:
    stalled = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(60)]
    for one in stalled:
        one.sendall(b"GET / HTTP/1.1\r\nHost: ")
    assert browser.get("/").status_code == 200
    for one in stalled:
        one.close()


@pytest.mark.parametrize(
    "asked",
    [
        "GET / HTTP/1.1\r\nHost: ",
        "GET /enter HTTP/1.1\r\nHost: {host}\r\n\r\nGET / HTTP/1.1\r\n",
        "POST /enter HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: 9\r\n\r\nto",
    ],
)
def test_who_does_not_finish_a_request_keeps_no_place(
    served: Served, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(listening, "HEAD_S", 0.2)
    monkeypatch.setattr(listening, "LOOK_TICKS", 1)
    monkeypatch.setattr(guard, "FORM_S", 0.2)
    with socket.create_connection(("127.0.0.1", served.port), timeout=4) as raw:
        raw.sendall(asked.replace("{host}", f"127.0.0.1:{served.port}").encode())
        with suppress(ConnectionResetError):
            while raw.recv(65_536):
                pass


def test_followers_do_not_keep_others_out(browser: httpx.Client, served: Served) -> None:
    """Each open page holds a stream; pages are still answered, and a change is told."""
    told = threading.Event()

    def follow() -> None:
        with browser.stream("GET", "/events?path=/runs&since=") as stream:
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    told.set()
                    return

    threads = [threading.Thread(target=follow) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert browser.get("/").status_code == 200
    for thread in threads:
        thread.join(60)
    assert told.is_set()
