"""Pages of other distributions: they give words and cells, which the template escapes, and no HTML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from agentos.errors import NotFound, UserError
from agentos.plugins import registry
from agentos.web.context import WebContext

_ROWS = 500
_CELLS = 20


def installed_page(site: WebContext, request: Request) -> Response:
    """What a plug-in's ``show(reader, query)`` gives: a mapping with "lead", "columns" and "rows", each optional."""
    try:
        plugin = registry.named("pages", request.path_params["name"])
    except UserError as error:
        raise NotFound(str(error)) from None
    page = registry.load(plugin)
    query = dict(request.query_params)

    def shown() -> Mapping[str, Any]:
        told = dict(page.show(site.reader, query))
        rows = [[str(cell) for cell in row][:_CELLS] for row in told.get("rows", ())][:_ROWS]
        columns = [str(column) for column in told.get("columns", ())][:_CELLS]
        title = str(getattr(page, "title", plugin.name))
        return {"title": title, "lead": str(told.get("lead", "")), "columns": columns, "rows": rows}

    return site.page(request, "installed.html", plugin=str(plugin), **registry.call(plugin, shown))
