"""The addresses of the page: which function shows each, and which forms do something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from agentos.errors import AgentOSError, Conflict, NotFound, Unavailable, UserError
from agentos.web import forms, views
from agentos.web.api.door import FAILED_BURST, FAILED_RATE
from agentos.web.api.operations import ApiHome, writing
from agentos.web.api.problems import ApiRefusal
from agentos.web.api.routes import with_api
from agentos.web.api.tokens import Token, TokenScope, known_token, note_entry
from agentos.web.context import HERE, WebContext
from agentos.web.guard import Guard, read_fields, read_form, session_of
from agentos.web.live import changes
from agentos.web.pages.installed import installed_page
from agentos.web.reach import BehindProxy
from agentos.web.sessions import WebSession

_STATIC = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
_STATUS = {NotFound: 404, Conflict: 409, UserError: 400, Unavailable: 503}

View = Callable[[WebContext, Request], Response]
Act = Callable[[WebContext, Request, Mapping[str, str]], str]


def make_app(site: WebContext, is_ending: Callable[[], bool]) -> ASGIApp:
    """The application behind its guard, with the API beside it. ``is_ending``: streams end then."""
    routes = [*_ways_in(site, is_ending), *_shown(site), *_done(site)]
    page = Guard(Starlette(routes=routes), site)
    app = with_api(ApiHome(site.home, site.reader, site.registry), page, site.reach.hosts, is_ending)
    return BehindProxy(app, site.reach) if site.reach.header else app


def _ways_in(site: WebContext, is_ending: Callable[[], bool]) -> list[Route]:
    return [
        Route("/enter", _entering(site), methods=["GET"]),
        Route("/enter", _entered(site), methods=["POST"]),
        Route("/static/{name}", _static(), methods=["GET"]),
        Route("/events", _events(site, is_ending), methods=["GET"]),
    ]


def _shown(site: WebContext) -> list[Route]:
    """What is looked at; what an act would do is shown to those who may do it."""

    def show(path: str, view: View, scope: TokenScope = TokenScope.LOOK) -> Route:
        def shown(request: Request) -> Response:
            return _told(site, request, scope, lambda: view(site, request))

        return Route(path, shown, methods=["GET"])

    return [
        show("/", views.inbox_view),
        show("/evolutions", views.evolutions_view),
        show("/evolutions/{id}", views.evolution_view),
        show("/evolutions/{id}/{act}", forms.before_evolution, TokenScope.APPROVE),
        show("/runs", views.runs_view),
        show("/runs/{id}", views.run_view),
        show("/runs/{id}/files/{number:int}", views.output_file),
        show("/runs/{id}/steps/{number:int}/{side}", views.step_value),
        show("/runs/{id}/compare", views.comparison),
        show("/tasks", views.tasks_view),
        show("/tasks/new", views.new_task, TokenScope.FILE),
        show("/tasks/{id}", views.task_view),
        show("/resources", views.resources_view),
        show("/resources/{kind}/{name}", views.resource_view),
        show("/resources/{kind}/{name}/blame", views.blame_view),
        show("/resources/{kind}/{name}/{act}", forms.before_resource, TokenScope.ADMINISTER),
        show("/failures", views.failures_view),
        show("/failures/{id}", views.failure_view),
        show("/health", views.health_view),
        show("/health.svg", views.health_svg),
        show("/plugins/{name}", installed_page),
        show("/search", views.search_view),
        show("/tables/{name}.csv", views.csv_table),
        show("/tables/{name}.json", views.json_table),
    ]


def _done(site: WebContext) -> list[Route]:
    """What is done: each act with the scope that it needs, and what the audit log calls it."""

    def do(path: str, doing: Act, scope: TokenScope, act: str) -> Route:
        async def done(request: Request) -> Response:
            try:
                said = await read_form(request)
            except UserError as error:
                return _failed(site, request, error)

            def work() -> Response:
                address = doing(site, request, said)
                _note(site, request, act.format(**request.path_params), address)
                return RedirectResponse(address, 303)

            return await run_in_threadpool(_told, site, request, scope, work)

        return Route(path, done, methods=["POST"])

    look, file = TokenScope.LOOK, TokenScope.FILE
    approve, administer = TokenScope.APPROVE, TokenScope.ADMINISTER
    return [
        do("/evolutions/{id}/{act}", forms.do_evolution, approve, "evolutions.{act}"),
        do("/runs/{id}/word", forms.word, file, "runs.feedback"),
        do("/runs/{id}/again", forms.run_again, file, "runs.again"),
        do("/runs/{id}/correct", forms.correct, file, "runs.correct"),
        do("/questions/{id}", forms.answer, file, "questions.answer"),
        do("/tasks/new", forms.add_task, file, "tasks.add"),
        do("/schedules/{id}/run", forms.run_schedule, file, "schedules.run"),
        do("/schedules/{id}/{act}", forms.do_schedule, administer, "schedules.{act}"),
        do("/proposals/{id}/{act}", forms.do_proposal, approve, "proposals.{act}"),
        do("/resources/{kind}/{name}/{act}", forms.do_resource, administer, "resources.{act}"),
        do("/failures/{id}/{act}", forms.do_failure, administer, "failures.{act}"),
        do("/models/{act}", forms.do_models, administer, "models.{act}"),
        do("/leave", forms.leave, look, "session.leave"),
    ]


def _note(site: WebContext, request: Request, act: str, address: str) -> None:
    """On record: who did it. ``address`` is where the act led, of a new task its own."""
    session: WebSession = request.scope["session"]
    found = request.path_params
    subject = found.get("id") or "/".join(found[name] for name in ("kind", "name") if name in found)
    said = {"act": act, "principal": session.principal, "given": session.given}
    with writing(site.home) as ledger:
        led_to = address.partition("?")[0].rpartition("/")[2]
        ledger.note("page.act", subject or led_to or act.partition(".")[0], said)


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

        def is_over() -> bool:
            return is_ending() or session_of(site, request.headers) is None

        stream = changes(site, request.query_params.get("path", ""), since, is_over)
        return StreamingResponse(stream, media_type="text/event-stream")

    return events


def _entering(site: WebContext) -> Callable[[Request], Response]:
    def enter(request: Request) -> Response:
        plain = {"Referrer-Policy": "no-referrer"}
        if "once" not in request.query_params:
            return site.page(request, "enter.html", sentence="")
        if not site.links.redeem(request.query_params.get("once", "")):
            sentence = "This link was used, or is too old: `agentos web` prints a new one.\n"
            return PlainTextResponse(sentence, 401, headers=plain)
        response = RedirectResponse("/", 303, headers=plain)
        _let_in(site, response, None)
        return response

    return enter


def _entered(site: WebContext) -> Callable[[Request], Awaitable[Response]]:
    """A user gives their token, which is looked at as that of a program is."""

    def let_in(request: Request, text: str) -> Response:
        token = known_token(site.home, text.strip())
        if wait := site.buckets.take(f"enter {token.id if token else ''}", FAILED_RATE, FAILED_BURST):
            sentence = f"That was tried too often: try again in {wait:.0f} s."
            return site.page(request, "enter.html", 429, sentence=sentence)
        if token is None or TokenScope.LOOK not in token.scopes:
            sentence = "That token is unknown, revoked or expired, or may not look."
            return site.page(request, "enter.html", 401, sentence=sentence)
        response = RedirectResponse("/", 303)
        note_entry(site.home, token)
        _let_in(site, response, token)
        return response

    async def entered(request: Request) -> Response:
        try:
            said = await read_fields(request)
        except UserError as error:
            return site.page(request, "enter.html", 400, sentence=str(error))
        return await run_in_threadpool(let_in, request, said.get("token", ""))

    return entered


def _let_in(site: WebContext, response: Response, token: Token | None) -> None:
    response.set_cookie(
        site.reach.cookie,
        site.sessions.open(token),
        httponly=True,
        secure=not site.reach.is_local,
        samesite="strict",
        path="/",
    )


def _told(site: WebContext, request: Request, scope: TokenScope, work: Callable[[], Response]) -> Response:
    session: WebSession = request.scope["session"]
    try:
        if scope not in session.scopes:
            raise ApiRefusal(
                403, "wrong_scope", f"{session.principal} may not do that: it needs the scope {scope.value}."
            )
        return work()
    except AgentOSError as error:
        return _failed(site, request, error)


def _failed(site: WebContext, request: Request, error: AgentOSError) -> Response:
    known = (code for kind, code in _STATUS.items() if isinstance(error, kind))
    status = error.status if isinstance(error, ApiRefusal) else next(known, 500)
    return site.page(request, "failed.html", status, sentence=str(error), code=status)
