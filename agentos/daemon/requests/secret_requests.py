"""Puts secrets into requests that runs make: what a run writes is ``{{secret:NAME}}``, and it never holds more.

A value goes out only where a tool that the run was given declares it, the task (or the secret itself) allows it,
and the request goes to a host that the secret is bound to; into the value of a header, the query or the body, never
into a path, which servers log. Whatever comes back is stripped of it, in the spellings that ``redaction`` knows.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, quote_plus

from agentos.daemon.requests.run_requests import Denied, RunContext, Ungranted
from agentos.domain import Json
from agentos.errors import NotFound, UserError
from agentos.home import Home
from agentos.models.redaction import Redactor
from agentos.models.secrets import secrets_of, value_of
from agentos.resources import is_tool_file, tool_path
from agentos.syntax import parse

_NAME = "[A-Za-z][A-Za-z0-9_]{0,63}"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_PLAIN = re.compile(rf"\{{\{{secret:({_NAME})\}}\}}")
_QUOTED = re.compile(rf"(?:\{{\{{|%7B%7B)secret(?::|%3A)({_NAME})(?:\}}\}}|%7D%7D)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """An HTTP request to the outside; ``target`` is its URL, taken apart."""

    method: str
    target: SplitResult
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class FilledRequest:
    """A request with its secrets in it. Nothing of this may be recorded but what ``redact`` returns."""

    request: OutgoingRequest
    redact: Callable[[Json], Json]


def fill(
    home: Home | None,
    asking: RunContext,
    request: OutgoingRequest,
    granted: frozenset[str] | None = None,
) -> FilledRequest:
    """The request as it goes out; ``granted`` are the secrets of the MCP server that makes it, None where a tool of the
    run does. Raises Denied for a secret that may not go there, Unavailable.
    """
    target, headers = request.target, request.headers
    body = request.content.decode("latin-1")  # byte for byte: what a placeholder stands among may be anything
    form = _form(headers)
    kind = _QUOTED if form == "form" else _PLAIN
    outside = target._replace(query="").geturl()
    if _QUOTED.search(outside) or any(map(_PLAIN.search, headers)):
        raise Denied(
            "effect", "a secret goes into the value of a header, the query or the body, and nowhere else"
        )
    names = {*_QUOTED.findall(target.query), *kind.findall(body)}
    names |= {name for value in headers.values() for name in _PLAIN.findall(value)}
    if not names:
        return FilledRequest(request, lambda value: value)
    values = {name: _allowed(home, asking, target, name, granted) for name in sorted(names)}
    spelt: Mapping[str, Callable[[str], str]] = {
        "form": quote_plus,
        "json": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
        "": str,
    }
    query = _QUOTED.sub(lambda found: quote(values[found[1]], safe=""), target.query)
    filled = {
        name: _PLAIN.sub(lambda found: values[found[1]], value).encode().decode("latin-1")
        for name, value in headers.items()
    }
    data = kind.sub(lambda found: spelt[form](values[found[1]]).encode().decode("latin-1"), body)
    whole = OutgoingRequest(request.method, target._replace(query=query), filled, data.encode("latin-1"))
    return FilledRequest(whole, Redactor(list(values.items())).value)


def _form(headers: Mapping[str, str]) -> str:
    told = next((value for name, value in headers.items() if name.strip().lower() == "content-type"), "")
    return "form" if "x-www-form-urlencoded" in told.lower() else "json" if "json" in told.lower() else ""


def _allowed(
    home: Home | None, asking: RunContext, target: SplitResult, name: str, granted: frozenset[str] | None
) -> str:
    """The value, where everybody agrees that it may go there. Raises Denied."""
    try:
        secret = secrets_of(home).get(name) if home else None
    except UserError as error:
        raise Denied("effect", str(error)) from None
    if granted is not None and name not in granted:
        raise Ungranted(
            f"this MCP server was not given the secret {name}: name it by `agentos mcp add --secret`",
        )
    if granted is None and name not in _declared(asking):
        raise Denied("effect", f"no tool of this run declares the secret {name}: add it to TOOL's 'secrets'")
    if secret is None:
        raise Ungranted(f"there is no secret {name}; a person types: agentos secret set {name} --host HOST")
    if not secret.any_task and name not in asking.task.secrets:
        raise Ungranted(f"the task does not allow the secret {name}: add it to its 'secrets'")
    host, place = place_of(target)
    if not secret.is_for(target.scheme, place):
        where = f"{target.scheme}://{place}"
        told = f"the secret {name} is not bound to {where}: it goes to {', '.join(secret.hosts)}"
        if host in _LOOPBACK and target.scheme == "http" and secret.is_for("https", place):
            # the server is meant; elsewhere nobody is advised to send a secret for all to read
            told += f" by https; a person types: agentos secret set {name} --host {where}"
        raise Ungranted(told)
    assert home is not None
    try:
        return value_of(home, name)
    except NotFound as error:
        raise Denied("effect", str(error)) from None


def place_of(target: SplitResult) -> tuple[str, str]:
    """The host in lower case, and the ``host`` or ``host:port`` that it is named by, an IPv6 address in brackets."""
    host = (target.hostname or "").removesuffix(".")
    named = f"[{host}]" if ":" in host else host
    return host, named if target.port is None else f"{named}:{target.port}"


def _declared(asking: RunContext) -> frozenset[str]:
    """Secrets that the tools of this run declare; where the task names its tool, that tool alone."""
    files = asking.bundle.files
    tools = [path for path in files if is_tool_file(path)]
    if asking.task.call is not None:
        try:
            tools = [tool_path(asking.task.call.tool, tools)]
        except UserError:
            return frozenset()
    return frozenset(name for path in tools for name in secrets_in(files[path]))


def secrets_in(source: bytes) -> frozenset[str]:
    """What ``TOOL`` declares, read without running anything; nothing where it cannot be read."""
    found: Json = {}
    try:
        for node in parse(source.decode("utf-8")).body:
            if isinstance(node, ast.Assign) and any(
                isinstance(one, ast.Name) and one.id == "TOOL" for one in node.targets
            ):
                found = ast.literal_eval(node.value)
        return frozenset(map(str, found.get("secrets", ())))
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError, MemoryError):
        return frozenset()
