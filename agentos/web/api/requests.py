"""What a request says, held against its form: so much of it, in JSON, and nothing that the form does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from agentos.errors import Invalid
from agentos.web.api.door import BODY_MAX
from agentos.web.api.problems import ApiRefusal


def read_query(request: Request, form: type[BaseModel] | None) -> Any:
    """The query, held against its form. Raises Invalid."""
    given = request.query_params.multi_items()
    if len({name for name, _ in given}) != len(given):
        raise Invalid("the query", ["a name is given twice"])
    return held_against(form or _Nothing, lambda model: model.model_validate(dict(given)), "the query")


class _Nothing(BaseModel, extra="forbid"):
    """No fields."""


async def read_body(request: Request, form: type[BaseModel]) -> Any:
    """The body, held against its form. Raises ApiRefusal and Invalid."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise ApiRefusal(415, "not_json", "The body is JSON: send `Content-Type: application/json`.")
    data = await _read(request, BODY_MAX)
    return held_against(form, lambda model: model.model_validate_json(data, strict=False), "the body")


async def no_body(request: Request) -> object:
    """Nothing is expected, and what comes is not kept."""
    await _read(request, 1 << 16)
    return None


async def _read(request: Request, most: int) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most:
            raise ApiRefusal(
                413, "too_large", f"This request has at most {most:,} bytes.", {"Connection": "close"}
            )
    return bytes(data)


def held_against(form: type[BaseModel], read: Callable[[type[BaseModel]], BaseModel], what: str) -> BaseModel:
    """What ``read`` makes of the form; Invalid with a sentence for each fault."""
    try:
        return read(form)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, one['loc'])) or what}: {one['msg']}"
            for one in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise Invalid(what, faults[:50]) from None
