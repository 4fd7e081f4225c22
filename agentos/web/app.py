"""The addresses of the page: which function shows each, and which forms do something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from agentos.errors import AgentOSError, Conflict, NotFound, Unavailable, UserError
from agentos.web import forms, views
from agentos.web.api.door import ApiDoor
from agentos.web.api.operations import ApiHome
from agentos.web.api.routes import with_api
from agentos.web.context import HERE, WebContext
from agentos.web.guard import Guard, read_form
from agentos.web.live import changes
from agentos.web.pages.installed import installed_page

_STATIC = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
_STATUS = {NotFound: 404, Conflict: 409, UserError: 400, Unavailable: 503}

View = Callable[[WebContext, Request], Response]
Act = Callable[[WebContext, Request, Mapping[str, str]], str]


def make_app(site: WebContext, hosts: frozenset[str], is_ending: Callable[[], bool]) -> ApiDoor:
    """The application behind its guard, with the API beside it. ``hosts``: the values of Host under which it is reached; ``is_ending``: streams end then."""

    def show(path: str, view: View) -> Route:
        def shown(request: Request) -> Response:
            return _told(site, request, lambda: view(site, request))

        return Route(path, shown, methods=["GET"])

    def do(path: str, doing: Act) -> Route:
        async def done(request: Request) -> Response:
            try:
                said = await read_form(request)
            except UserError as error:
                return _failed(site, request, error)
            return await run_in_threadpool(
                _told, site, request, lambda: RedirectResponse(doing(site, request, said), 303)
            )

        return Route(path, done, methods=["POST"])

    routes = [
        Route("/enter", _entering(site), methods=["GET"]),
        Route("/static/{name}", _static(), methods=["GET"]),
        Route("/events", _events(site, is_ending), methods=["GET"]),
        show("/", views.inbox_view),
        show("/evolutions", views.evolutions_view),
        show("/evolutions/{id}", views.evolution_view),
        show("/evolutions/{id}/{act}", forms.before_evolution),
        do("/evolutions/{id}/{act}", forms.do_evolution),
        show("/runs", views.runs_view),
        show("/runs/{id}", views.run_view),
        show("/runs/{id}/files/{number:int}", views.output_file),
        show("/runs/{id}/steps/{number:int}/{side}", views.step_value),
        show("/runs/{id}/compare", views.comparison),
        do("/runs/{id}/word", forms.word),
        do("/runs/{id}/again", forms.run_again),
        do("/runs/{id}/correct", forms.correct),
        do("/questions/{id}", forms.answer),
        show("/tasks", views.tasks_view),
        show("/tasks/new", views.new_task),
        do("/tasks/new", forms.add_task),
        show("/tasks/{id}", views.task_view),
        do("/schedules/{id}/{act}", forms.do_schedule),
        show("/resources", views.resources_view),
        show("/resources/{kind}/{name}", views.resource_view),
        show("/resources/{kind}/{name}/blame", views.blame_view),
        do("/proposals/{id}/{act}", forms.do_proposal),
        show("/resources/{kind}/{name}/{act}", forms.before_resource),
        do("/resources/{kind}/{name}/{act}", forms.do_resource),
        show("/failures", views.failures_view),
        show("/failures/{id}", views.failure_view),
        do("/failures/{id}/{act}", forms.do_failure),
        do("/models/{act}", forms.do_models),
        show("/health", views.health_view),
        show("/health.svg", views.health_svg),
        show("/plugins/{name}", installed_page),
        show("/search", views.search_view),
        show("/tables/{name}.csv", views.csv_table),
        show("/tables/{name}.json", views.json_table),
        do("/leave", forms.leave),
    ]
    page = Guard(Starlette(routes=routes), hosts, site.sessions, site.cookie)
    return with_api(ApiHome(site.home, site.reader, site.registry), page, hosts, is_ending)


def _static() -> Callable[[Request], Response]:
    assets = {name: (HERE / "static" / name).read_bytes() for name in _STATIC}

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in assets:
            return PlainTextResponse("There is no such file.\n", 404)
        return Response(assets[name], media_type=_STATIC[name])

    return static


def _events(site: WebContext, is_ending: Callable[[], bool]) -> Callable[[Request], Awaitable[Response]]:
    async def events(request: Request) -> Response:
        since = request.headers.get("last-event-id") or request.query_params.get("since", "")
        stream = changes(site, request.query_params.get("path", ""), since, is_ending)
        return StreamingResponse(stream, media_type="text/event-stream")

    return events


def _entering(site: WebContext) -> Callable[[Request], Response]:
    def enter(request: Request) -> Response:
        plain = {"Referrer-Policy": "no-referrer"}
        if not site.links.redeem(request.query_params.get("once", "")):
            sentence = "This link was used, or is too old: `agentos web` prints a new one.\n"
            return PlainTextResponse(sentence, 401, headers=plain)
        response = RedirectResponse("/", 303, headers=plain)
        response.set_cookie(site.cookie, site.sessions.open(), httponly=True, samesite="strict", path="/")
        return response

    return enter


def _told(site: WebContext, request: Request, work: Callable[[], Response]) -> Response:
    try:
        return work()
    except AgentOSError as error:
        return _failed(site, request, error)


def _failed(site: WebContext, request: Request, error: AgentOSError) -> Response:
    status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    return site.page(request, "failed.html", status, sentence=str(error), code=status)
