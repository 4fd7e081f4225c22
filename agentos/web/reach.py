"""Under which address the page is reached, and what ends the encryption on the way: this process, or a proxy that is named.

Without ``--bind`` it is loopback. Anything else needs TLS here, or a proxy that has TLS and says so in a header: nothing
that could be read on the way is answered.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agentos.errors import UserError

LOOPBACK = "127.0.0.1"
_DOCS = "docs/use/web.md says how to serve it to others"
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,60}")
_CLIENTS = frozenset(
    {"host", "origin", "cookie", "authorization", "referer", "user-agent"}
)  # a browser sends these


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


def served_to_others(
    bind: str, address: str, certificate: Path | None, key: Path | None, header: str, proxy: str
) -> Reach:
    """What the options of `agentos web` say; loopback without any. Raises UserError with what to type."""
    if not bind:
        if address or certificate or key or header:
            raise UserError(f"That goes with `--bind ADDRESS`, such as --bind 0.0.0.0; {_DOCS}.")
        return Reach()
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
    return Reach(bind, _address(address), certificate, key, header, proxy)


def _is_ip(text: str) -> bool:
    try:
        return bool(ipaddress.ip_address(text))
    except ValueError:
        return False


def _address(text: str) -> str:
    found = urlsplit(text.rstrip("/").lower())
    try:
        port = found.port
    except ValueError:
        port = -1
    if (
        found.scheme != "https"
        or not found.hostname
        or found.path
        or found.query
        or "@" in found.netloc
        or port == -1
    ):
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
