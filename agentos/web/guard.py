"""What every request has to pass, and what every answer carries. Written for a browser that is used against us.

Another site may make the browser send requests here (cross-site forms, pictures, a name of its own that resolves to
127.0.0.1), show us in a frame, and guess at addresses. It cannot set Host, Origin or Sec-Fetch-Site.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentos.daemon.control.tokens import still_stands
from agentos.errors import UserError
from agentos.web.api.door import BURST, RATE, has_token_in_address
from agentos.web.context import WebContext
from agentos.web.sessions import WebSession

FORM_MAX = 128 << 10  # bytes of a form; an answer has 20,000 characters
FORM_S = 30.0  # in which it comes: the way in takes one from anybody
_FIELDS_MAX = 50
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # ``no-referrer`` would make browsers send ``Origin: null`` with our own forms
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_ONLY_TLS = {"Strict-Transport-Security": "max-age=31536000"}
ACT_RATE, ACT_BURST = 2.0, 40.0  # acts a second of one session in the long run, and at once
_NOT_IN = "You are not let in, or no longer"
_OPEN = ("/enter", "/static/")  # without a session: the way in, and files that hold nothing of the home


class Guard:
    """ASGI middleware of the page."""

    def __init__(self, app: ASGIApp, site: WebContext) -> None:
        self._app = app
        self._site = site
        self._reach = site.reach
        self._headers = HEADERS if site.reach.is_local else {**HEADERS, **_ONLY_TLS}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = await run_in_threadpool(self._refused, scope)
        await (refused or self._app)(scope, receive, with_headers)

    def _refused(self, scope: MutableMapping[str, Any]) -> Response | None:
        headers = Headers(scope=scope)
        if headers.get("host", "") not in self._reach.hosts:
            return _no(421, "This page answers under its own address only; `agentos web` prints it.")
        if has_token_in_address(scope):
            return _no(400, "A token never goes into an address: revoke it by `agentos token revoke NAME`.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _no(405, "Only GET, HEAD and POST are understood.")
        if scope["method"] == "POST" and (response := self._refused_post(headers)):
            return response
        session = scope["session"] = session_of(self._site, headers)
        if scope["path"].startswith(_OPEN):
            return None
        if session is None:
            if scope["method"] == "POST":
                return _no(401, f"{_NOT_IN}: load the page again.")
            return self._site.page(Request(scope), "enter.html", 401, sentence=f"{_NOT_IN}.")
        name, *rate = (
            (f"act {session.csrf}", ACT_RATE, ACT_BURST)
            if scope["method"] == "POST"
            else (session.csrf, RATE, BURST)
        )
        if wait := self._site.buckets.take(name, *rate):
            again = {"Retry-After": f"{int(wait) + 1}"}
            return _no(429, f"That was too often: try again in {wait:.1f} s.", again)
        return None

    def _refused_post(self, headers: Headers) -> Response | None:
        if headers.get("origin") not in self._reach.origins:
            return _no(403, "This did not come from a form of this page.")
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return _no(403, "This came from another site.")
        length = headers.get("content-length", "")
        if not length.isdecimal():
            return _no(411, "A form says how long it is.")
        if int(length) > FORM_MAX:
            return _no(413, f"A form has at most {FORM_MAX:,} bytes.")
        return None


def session_of(site: WebContext, headers: Headers) -> WebSession | None:
    """Whose request it is; None without a session that stands, and a token that does where it came with one."""
    session = site.sessions.find(_cookies(headers).get(site.reach.cookie, ""))
    stands = session is not None and (
        session.token is None or still_stands(site.home, session.token.name, session.token.id)
    )
    return session if stands else None


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a form of ours. Raises UserError for what is none, or has not the session's token."""
    fields = await read_fields(request)
    session: WebSession = request.scope["session"]
    given = fields.get("csrf", "").partition(".")[0]  # what follows tells pages apart
    if not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise UserError("This form is not of your session: go back, load the page again, and repeat it.")
    return fields


async def read_fields(request: Request) -> Mapping[str, str]:
    """The fields of a form, whoever sent it. Raises UserError for what is none."""
    content = bytearray()
    try:
        async with asyncio.timeout(FORM_S):
            async for chunk in request.stream():
                content += chunk
                if len(content) > FORM_MAX:
                    raise UserError(f"A form has at most {FORM_MAX:,} bytes.")
    except TimeoutError:
        raise UserError(f"A form comes within {FORM_S:g} s.") from None
    if request.headers.get("content-type", "").split(";")[0] != "application/x-www-form-urlencoded":
        raise UserError("A form was expected.")
    try:
        return dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX))
    except ValueError as error:
        raise UserError(f"The form cannot be read: {error}.") from None


def _cookies(headers: Headers) -> dict[str, str]:
    pairs = (part.partition("=") for part in headers.get("cookie", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _no(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"{sentence}\n", status, headers=headers)
