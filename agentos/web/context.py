"""What every page is made with: the home's readers, the templates, and how values are written for a person."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from secrets import token_urlsafe
from threading import Thread
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agentos import __version__
from agentos.domain import Json, Result, Trial, is_reference
from agentos.errors import AgentOSError, UserError
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.listing import data_version, last_step
from agentos.ledger.reading import Reader
from agentos.plaintext import clean, counted
from agentos.plugins.registry import installed
from agentos.registry.store import Registry
from agentos.web.api.door import Buckets
from agentos.web.sessions import LoginLinks, Sessions, WebSession

V = TypeVar("V")
_log = logging.getLogger("uvicorn.error")  # which ``server`` writes to the home

HERE = Path(__file__).parent
_SHOWN = 6_000  # characters of a value on a page; the rest is a link away
GOOD, BAD, WARN, BUSY, QUIET = "good", "bad", "warn", "busy", "quiet"
TONES = {
    "promoted": GOOD, "probation": GOOD, "passed": GOOD, "done": GOOD, "passes": GOOD, "promote": GOOD,
    "pass": GOOD, "works": GOOD, "accepted": GOOD, "good": GOOD, "effective": GOOD,
    "awaiting_consent": WARN, "held": WARN, "hold": WARN, "waiting": WARN, "flaky": WARN, "infra": WARN,
    "warn": WARN, "paused": WARN, "low": WARN, "partly": WARN, "mixed": WARN, "open": WARN,
    "rejected": BAD, "cannot_fix": BAD, "circuit_broken": BAD, "failed": BAD, "timeout": BAD, "budget": BAD,
    "fails": BAD, "reject": BAD, "fail": BAD, "rolled_back": BAD, "damaged": BAD, "failing": BAD, "bad": BAD,
    "silent": BAD, "absent": BAD, "killed": BAD, "harmful": BAD, "ineffective": BAD,
    "running": BUSY, "mined": BUSY, "reproducing": BUSY, "proposing": BUSY, "replaying": BUSY,
    "promoting": BUSY, "queued": BUSY, "scheduled": BUSY, "starting": BUSY,
}  # fmt: skip


class Kept:
    """What took a while to gather, until what it was made of changes or it is too old."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[object, float, Any]] = {}
        self._making: set[str] = set()

    def get(self, name: str, of: object, seconds: float, make: Callable[[], V]) -> V:
        """What ``make`` gave for the same ``of``, at most ``seconds`` ago; else what it gives now."""
        now = time.monotonic()
        known = self._found.get(name)
        if known is not None and known[0] == of and now - known[1] < seconds:
            return cast(V, known[2])
        made = make()
        self._found[name] = (of, now, made)
        return made

    def late(self, name: str, seconds: float, make: Callable[[], V]) -> V:
        """What ``make`` gave at most ``seconds`` ago; older, while a thread makes it anew; waits for the first one only."""
        known = self._found.get(name)
        if known is None:
            return self.get(name, None, seconds, make)
        if time.monotonic() - known[1] >= seconds and name not in self._making:
            self._making.add(name)
            Thread(target=self._make, args=(name, make), name=f"make {name}", daemon=True).start()
        return cast(V, known[2])

    def _make(self, name: str, make: Callable[[], object]) -> None:
        try:
            self._found[name] = (None, time.monotonic(), make())
        except AgentOSError as error:
            _log.warning("%s could not be made: %s", name, error)
        finally:
            self._making.discard(name)


@dataclass(frozen=True, slots=True)
class WebContext:
    """Shared by all requests; every part is safe from any thread."""

    home: Home
    reader: Reader
    registry: Registry
    blobs: BlobStore
    sessions: Sessions
    links: LoginLinks
    reach: Reach
    kept: Kept = field(default_factory=Kept)
    buckets: Buckets = field(default_factory=Buckets)

    def page(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """An HTML page. Every value is escaped, whoever wrote it."""
        session: WebSession | None = request.scope.get("session")
        known = {
            "csrf": f"{session.csrf}.{token_urlsafe(9)}" if session else "",
            "may": session.scopes if session else frozenset(),
            "user": session.token.name if session and session.token else "",
            "path": request.url.path,
            "said": "",
            "version": __version__,
            "home": str(self.home.root),
            "plugin_pages": [found.name for found in installed("pages") if not found.fault],
        }
        text = environment().get_template(template).render(known | values)
        return HTMLResponse(text, status)


@cache
def environment() -> Environment:
    """Templates that escape everything and fail at a name that is not there."""
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    found.filters |= {
        "when": when, "duration": duration, "tone": tone, "words": words, "value": value_text, "bytes": size_text,
        "ticks": ticks, "sentence": sentence, "is_reference": is_reference, "plural": counted, "passes": passes,
    }  # fmt: skip
    return found


def _shown(value: Any) -> Any:
    """What stands on the page for a value: control and direction characters made visible, None as nothing."""
    if value is None:
        return ""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def when(moment: datetime | str | None) -> Markup:
    """Local time of this machine, as short as it says the day; in full for who points at it."""
    if not moment:
        return Markup("")
    local = (datetime.fromisoformat(moment) if isinstance(moment, str) else moment).astimezone()
    today = datetime.now(UTC).astimezone()
    short = f"{local:%H:%M:%S}" if local.date() == today.date() else f"{local:%d %b %H:%M}"
    if local.year != today.year:
        short = f"{local:%Y-%m-%d}"
    full = f"{local:%Y-%m-%d %H:%M:%S %Z}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(local.isoformat(), full, short)


def duration(seconds: float | None) -> str:
    """For a person: 12 ms, 3.4 s, 5 min, 2.5 h, 3 d."""
    if seconds is None:
        return ""
    for limit, factor, unit in ((1, 0.001, "ms"), (120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            number = seconds / factor
            return f"{number:.0f} {unit}" if number >= 10 or unit == "ms" else f"{number:.1f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def tone(word: object) -> str:
    """How a state or a result is meant: good, bad, warn, busy or quiet. Never told by colour alone."""
    return TONES.get(str(word), QUIET)


def words(state: object) -> str:
    """A state as words."""
    return str(state).replace("_", " ")


def passes(trials: Sequence[Trial]) -> str:
    """How many of them passed: 3/12."""
    return f"{sum(trial.outcome.result is Result.PASSED for trial in trials)}/{len(trials)}"


def value_text(value: Json, most: int = _SHOWN) -> str:
    """A value of a step or an answer as text, cut where it is long."""
    if isinstance(value, dict) and is_reference(value):
        left = int(str(value["size"])) - len(str(value["head"])) - len(str(value["tail"]))
        return f"{value['head']}\n… {left:,} more …\n{value['tail']}" if left > 0 else str(value["head"])
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most:,} more …"


def ticks(text: str) -> Markup:
    """The text with what stands between backticks as code."""
    pieces = clean(text).split("`")
    if len(pieces) % 2 == 0:
        return escape(clean(text))
    marked = (Markup("<code>{}</code>").format(it) if n % 2 else escape(it) for n, it in enumerate(pieces))
    return Markup("").join(marked)


def sentence(text: str) -> Markup:
    """What the command line says with a capital and a full stop, as it does there."""
    first = text.split(" ", 1)[0]
    whole = text[:1].upper() + text[1:] if first.isalpha() else text
    return ticks(whole if whole.endswith((".", "?", "!", "…")) else f"{whole}.")


def size_text(count: int) -> str:
    """Bytes for a person."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


# -------------------------------------------------------------------------------------------------
# Tells open pages that what they show has changed: server-sent events, which resume where they were
# cut off.


EVERY_S = 1.0  # at most one change a second is told
_ALIVE_EVERY = 20  # rounds without a change, after which a comment keeps the connection


def page_version(site: WebContext, path: str) -> str:
    """Another text after what the page at ``path`` shows has changed."""
    parts = path.strip("/").split("/")
    try:
        if parts[0] == "runs" and len(parts) == 2:
            run = site.reader.run(parts[1])
            return f"{last_step(site.reader, run.id)}.{run.outcome.result.value if run.outcome else ''}"
        return ".".join(map(str, data_version(site.reader)))
    except AgentOSError:
        return "unknown"


async def changes(
    site: WebContext, path: str, since: str, is_ending: Callable[[], bool]
) -> AsyncIterator[str]:
    """An event for each change of the page after version ``since``, until the server ends."""
    yield "retry: 2000\n\n"
    rounds = 0
    while not is_ending():
        now = await run_in_threadpool(page_version, site, path)
        rounds += 1
        if now != since:
            since, rounds = now, 0
            yield f"id: {now}\ndata: changed\n\n"
        elif rounds >= _ALIVE_EVERY:
            rounds = 0
            yield ": \n\n"
        await asyncio.sleep(EVERY_S)


# -------------------------------------------------------------------------------------------------
# Under which address the page is reached, and what ends the encryption on the way: this process, or a
# proxy that is named.
# Without ``--bind`` it is loopback. Anything else needs TLS here, or a proxy that has TLS and says so in a header: nothing
# that could be read on the way is answered.


LOOPBACK = "127.0.0.1"
_DOCS = "docs/use/web.md says how to serve it to others"
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
# a browser sends these
_CLIENTS = frozenset({"host", "origin", "cookie", "authorization", "referer", "user-agent"})


@dataclass(frozen=True, slots=True)
class Reach:
    """``address`` is what stands before the path in a browser; "" until the port of loopback is known.

    With ``header``, only the peer ``proxy`` is answered, where that header of its request is ``https``.
    """

    bind: str = LOOPBACK
    address: str = ""
    certificate: Path | None = None
    key: Path | None = None
    header: str = ""
    proxy: str = ""
    port: int = 0  # where it listens at ``bind``; 0 is any that is free

    @property
    def is_local(self) -> bool:
        """Whether browsers of this machine alone come to it, without TLS."""
        return not self.address.startswith("https:")

    @property
    def hosts(self) -> frozenset[str]:
        """The values of Host under which it answers."""
        own = urlsplit(self.address)
        return frozenset({own.netloc, f"localhost:{own.port}"} if self.is_local else {own.netloc})

    @property
    def origins(self) -> frozenset[str]:
        """The values of Origin that forms of its own have."""
        return frozenset(f"{'http' if self.is_local else 'https'}://{host}" for host in self.hosts)

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers let no other name, and no page without TLS, set one with this prefix."""
        return f"agentos_{urlsplit(self.address).port}" if self.is_local else "__Host-agentos"

    def on(self, port: int) -> Reach:
        """As it is once the port is known."""
        return self if self.address else replace(self, address=f"http://{LOOPBACK}:{port}")


def served_to_others(asked: Reach) -> Reach:
    """What the options of `agentos web` say, checked; loopback without ``bind``. Raises UserError with what to type."""
    bind, address, header = asked.bind, asked.address, asked.header
    certificate, key, proxy = asked.certificate, asked.key, asked.proxy
    if not bind:
        if address or certificate or key or header:
            raise UserError(f"That goes with `--bind ADDRESS`, such as --bind 0.0.0.0; {_DOCS}.")
        return Reach(port=asked.port)
    for what, text in (("--bind", bind), ("--proxy-from", proxy)):
        if not _is_ip(text):
            raise UserError(f"{what} takes an IP address, such as 0.0.0.0 or 10.0.0.5; found {text[:60]!r}.")
    if not (certificate or key or header):
        raise UserError(
            "Without TLS everybody on the way could read it and act as you. Add `--certificate FILE --key FILE`, or, "
            f"behind a proxy that has TLS, `--proxy-header X-Forwarded-Proto`; {_DOCS}."
        )
    if header and (certificate or key):
        raise UserError(
            "Either this process has TLS (--certificate, --key) or a proxy (--proxy-header), not both."
        )
    if header and (not _HEADER.fullmatch(header) or header.lower() in _CLIENTS):
        raise UserError(
            f"--proxy-header names a header that only the proxy sets, such as X-Forwarded-Proto; found {header[:60]!r}."
        )
    if certificate or key:
        _require_pair(certificate, key)
    return replace(asked, address=_address(address))


def _is_ip(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _address(text: str) -> str:
    try:
        found = urlsplit(text.rstrip("/").lower())
        _ = found.port  # one that is none raises only now
    except ValueError:
        found = urlsplit("")
    if found.scheme != "https" or not found.hostname or found.path or found.query or "@" in found.netloc:
        raise UserError(
            f"Say under which address browsers reach it, such as `--address https://agentos.example.org`; found {text[:100]!r}."
        )
    return f"https://{found.netloc.removesuffix(':443')}"


def _require_pair(certificate: Path | None, key: Path | None) -> None:
    if certificate is None or key is None:
        raise UserError("A certificate and its key go together: `--certificate FILE --key FILE`.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: b"")
    except OSError as error:  # of which ssl.SSLError is one
        why = error.strerror or str(error)
        raise UserError(f"{certificate} with {key} is no certificate and key to serve with: {why}.") from None


class BehindProxy:
    """ASGI: only what the named proxy passed on, and came to it encrypted."""

    def __init__(self, app: ASGIApp, reach: Reach) -> None:
        self._app, self._reach = app, reach

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        peer = (scope.get("client") or ("",))[0]
        said = Headers(scope=scope).getlist(self._reach.header)
        if peer == self._reach.proxy and said == ["https"]:
            await self._app(scope, receive, send)
            return
        sentence = f"This answers the proxy {self._reach.proxy} alone, where it says `{self._reach.header}: https`.\n"
        await PlainTextResponse(sentence, 403)(scope, receive, send)
