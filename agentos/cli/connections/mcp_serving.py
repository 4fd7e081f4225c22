"""``agentos mcp serve``: the tools of a home over standard streams, or over HTTP to who has the token."""

from __future__ import annotations

import functools
import hmac
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentos import __version__
from agentos.cli.connections.mcp_tools import HomeTools
from agentos.errors import AgentOSError, Unavailable, UserError, missing_extra
from agentos.home import Home
from agentos.ledger.postgres.address import has_ledger
from agentos.models.keys import read_private

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken
    from mcp.server.mcpserver import MCPServer

_LOOPBACK = ("127.0.0.1", "localhost")
_INSTRUCTIONS = (
    "A home of agentos: a daemon that runs tasks, keeps each run on record, and repairs by measurement what makes "
    "them fail. Queue work by add_task, look at it by show_task and show_run, and say by rate_run whether it was right."
)


def serve(home: Home, client: str, http: str) -> None:
    """Until the client hangs up, or Ctrl-C. ``http`` is HOST:PORT, "" for standard streams. Raises UserError."""
    from agentos.settings import load_settings

    if not has_ledger(home.ledger):
        raise UserError(f"{home.root} is no home yet; type: agentos init")
    tools = HomeTools(home, client, may_approve=client in load_settings(home.settings).mcp.approve)
    if not http:
        _server(tools).run("stdio")
        return
    host, _, port = http.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise UserError(f"--http is HOST:PORT, such as 127.0.0.1:8765; found '{http}'")
    if host not in _LOOPBACK:  # the token would go over the wire for everybody to read
        raise UserError(
            f"--http listens on this machine alone ({', '.join(_LOOPBACK)}); for another one forward the port: "
            f"ssh -L {port}:127.0.0.1:{port} HOST"
        )
    path, token = _token(home, client)
    print(
        f"http://{http}/mcp serves the client {client}; its token is in {path}", file=sys.stderr, flush=True
    )
    _server(tools, _Verifier(token, client), f"http://{http}").run(
        "streamable-http", host=host, port=int(port)
    )


def _server(tools: HomeTools, verifier: _Verifier | None = None, url: str = "") -> MCPServer:
    try:
        from mcp.server.auth.settings import AuthSettings
        from mcp.server.mcpserver import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError:
        raise Unavailable(missing_extra("mcp", "The MCP server")) from None
    from pydantic import AnyHttpUrl

    auth = (
        AuthSettings(issuer_url=AnyHttpUrl(url), resource_server_url=AnyHttpUrl(f"{url}/mcp"))
        if url
        else None
    )
    server = MCPServer(
        "agentos",
        instructions=_INSTRUCTIONS,
        version=__version__,
        auth=auth,
        token_verifier=verifier,
        log_level="ERROR",
    )
    for tool in tools.reading():
        server.add_tool(_told(tool), annotations=ToolAnnotations(read_only_hint=True))
    for tool in tools.acting():
        server.add_tool(_told(tool), annotations=ToolAnnotations(destructive_hint=False))
    return server


def _told(tool: Callable[..., Any]) -> Callable[..., Any]:
    """With our own errors as sentences for the client; anything else is a bug, and said to be one."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def told(*args: Any, **more: Any) -> Any:
        try:
            return tool(*args, **more)
        except AgentOSError as error:
            raise ToolError(str(error)) from None

    return told


class _Verifier:
    """Lets in who sends the one token."""

    def __init__(self, token: str, client: str) -> None:
        self._token = token
        self._client = client

    async def verify_token(self, token: str) -> AccessToken | None:
        """See ``TokenVerifier``."""
        from mcp.server.auth.provider import AccessToken

        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return None
        return AccessToken(token=token, client_id=self._client, scopes=[])


def _token(home: Home, client: str) -> tuple[Path, str]:
    """Where the client's token lies, and it; made at the first time, with mode 0600."""
    path = home.tokens / client
    home.tokens.mkdir(mode=0o700, exist_ok=True)
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32))
    token = read_private(path).decode().strip()
    if not token:
        raise UserError(f"{path} is empty: remove it, and a new token is made")
    return path, token
