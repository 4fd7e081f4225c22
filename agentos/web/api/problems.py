"""How the API says that something went wrong: problem details (RFC 9457) under ``/api``, OpenAI's error object under ``/v1``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agentos.errors import AgentOSError, Conflict, HomeBusy, Invalid, NotFound, Unavailable, UserError

_KINDS: tuple[tuple[type[AgentOSError], int, str], ...] = (
    (NotFound, 404, "not_found"),
    (Conflict, 409, "conflict"),
    (HomeBusy, 409, "busy"),
    (Invalid, 422, "invalid"),
    (UserError, 400, "refused"),
    (Unavailable, 503, "unavailable"),
)
# What OpenAI's clients know as the type of an error, by status; the rest is ``invalid_request_error``.
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error", 503: "server_error"}


class ApiRefusal(AgentOSError):
    """Something is refused for a reason that only HTTP knows. ``kind`` is for programs, the sentence for people."""

    def __init__(
        self, status: int, kind: str, sentence: str, headers: Mapping[str, str] | None = None, param: str = ""
    ) -> None:
        self.status, self.kind, self.param = status, kind, param
        self.headers = dict(headers or {})
        super().__init__(sentence)


def problem(request: Request, error: AgentOSError) -> Response:
    """The answer that tells the error."""
    headers: dict[str, str] = {}
    param = ""
    if isinstance(error, ApiRefusal):
        status, kind, headers, param = error.status, error.kind, error.headers, error.param
    else:
        status, kind = next(
            ((code, word) for type_, code, word in _KINDS if isinstance(error, type_)), (500, "error")
        )
    faults = error.faults if isinstance(error, Invalid) else []
    return told(request.url.path, status, kind, str(error), headers=headers, faults=faults, param=param)


def told(
    path: str,
    status: int,
    kind: str,
    sentence: str,
    *,
    headers: Mapping[str, str] | None = None,
    faults: list[str] | None = None,
    param: str = "",
) -> Response:
    """An error in the form that callers of ``path`` expect."""
    if path.startswith("/v1/"):
        body: dict[str, Any] = {"error": error_object(status, kind, sentence, param)}
        # what we refuse is refused again: their clients else repeat 409, 429 and 503 by themselves
        again = {"x-should-retry": "true" if status == 429 else "false"}
        return JSONResponse(body, status, headers={**again, **(headers or {})})
    body = {"type": "about:blank", "title": kind.replace("_", " "), "status": status, "kind": kind}
    body |= {"detail": sentence, "faults": faults or []}
    return JSONResponse(body, status, headers=dict(headers or {}), media_type="application/problem+json")


def error_object(status: int, kind: str, sentence: str, param: str = "") -> dict[str, Any]:
    """As OpenAI's clients read it."""
    type_ = _TYPES.get(status, "invalid_request_error")
    return {"message": sentence, "type": type_, "param": param or None, "code": kind}
