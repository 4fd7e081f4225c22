"""The addresses of the page: which function shows each, and which forms do something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from agentos.daemon import model_stop
from agentos.daemon.control.tokens import Token, TokenScope, known_token, note_entry
from agentos.daemon.intake.filing import find_schedule, queue_again
from agentos.daemon.offline import offline_context
from agentos.daemon.people.answers import chosen, give
from agentos.daemon.people.feedback import FeedbackDetails, speak
from agentos.daemon.people.remembering import accept, turn_down
from agentos.daemon.scheduling.schedules import pause, resume, run_now
from agentos.domain import MemoryProposal, ProposalState, Question, Rating, digest
from agentos.errors import AgentOSError, Conflict, NotFound, Unavailable, UserError
from agentos.evolver.find.triage import mute, unmute
from agentos.ledger.listing import failure_group
from agentos.settings import load_settings
from agentos.web import acts, views
from agentos.web.api.door import FAILED_BURST, FAILED_RATE, ApiRefusal
from agentos.web.api.home import ApiHome, writing
from agentos.web.api.routes import with_api
from agentos.web.context import HERE, BehindProxy, WebContext, changes
from agentos.web.guard import Guard, read_fields, read_form, session_of
from agentos.web.pages import tasks
from agentos.web.pages.runs import corrected_answer
from agentos.web.pages.tables import installed_page
from agentos.web.sessions import WebSession
from agentos.web.views import resource_name, show

_STATIC = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
_STATUS = {NotFound: 404, Conflict: 409, UserError: 400, Unavailable: 503}

View = Callable[[WebContext, Request], Response]
Act = Callable[[WebContext, Request, Mapping[str, str]], str]


def make_app(site: WebContext, is_ending: Callable[[], bool]) -> ASGIApp:
    """The application behind its guard, with the API beside it. ``is_ending``: streams end then."""
    routes = [*_ways_in(site, is_ending), *_shown(site), *_done(site)]
    handlers: Mapping[Any, Any] = {HTTPException: _nothing_there(site), Exception: _broken(site)}
    page = Guard(Starlette(routes=routes, exception_handlers=handlers), site)
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
        show("/evolutions/{id}/{act}", before_evolution, TokenScope.APPROVE),
        show("/runs", views.runs_view),
        show("/runs/{id}", views.run_view),
        show("/runs/{id}/files/{number:place}", views.output_file),
        show("/runs/{id}/steps/{number:place}/{side}", views.step_value),
        show("/runs/{id}/compare", views.comparison),
        show("/tasks", views.tasks_view),
        show("/tasks/new", views.new_task, TokenScope.FILE),
        show("/tasks/{id}", views.task_view),
        show("/resources", views.resources_view),
        show("/resources/{kind}/{name}", views.resource_view),
        show("/resources/{kind}/{name}/blame", views.blame_view),
        show("/resources/{kind}/{name}/{act}", before_resource, TokenScope.ADMINISTER),
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

            def act_now() -> str:
                address = doing(site, request, said)
                _note(site, request, act.format(**request.path_params), address)
                return address

            def work() -> Response:
                if "nonce" in said:  # of an act that was shown first, which says itself that it was done
                    return RedirectResponse(act_now(), 303)
                sent = digest([request.url.path, *said.items()])
                return RedirectResponse(_session(request).once(sent, act_now), 303)

            return await run_in_threadpool(_told, site, request, scope, work)

        return Route(path, done, methods=["POST"])

    look, file = TokenScope.LOOK, TokenScope.FILE
    approve, administer = TokenScope.APPROVE, TokenScope.ADMINISTER
    return [
        do("/evolutions/{id}/{act}", do_evolution, approve, "evolutions.{act}"),
        do("/runs/{id}/word", word, file, "runs.feedback"),
        do("/runs/{id}/again", run_again, file, "runs.again"),
        do("/runs/{id}/correct", correct, file, "runs.correct"),
        do("/questions/{id}", answer, file, "questions.answer"),
        do("/tasks/new", add_task, file, "tasks.add"),
        do("/schedules/{id}/run", run_schedule, file, "schedules.run"),
        do("/schedules/{id}/{act}", do_schedule, administer, "schedules.{act}"),
        do("/proposals/{id}/{act}", do_proposal, approve, "proposals.{act}"),
        do("/resources/{kind}/{name}/{act}", do_resource, administer, "resources.{act}"),
        do("/failures/{id}/{act}", do_failure, administer, "failures.{act}"),
        do("/models/{act}", do_models, administer, "models.{act}"),
        do("/leave", leave, look, "session.leave"),
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


def _nothing_there(site: WebContext) -> Callable[[Request, HTTPException], Awaitable[Response]]:
    """An address that is none, or one that a form is sent to, as who reloads an error asks for it."""

    async def told(request: Request, error: HTTPException) -> Response:
        sentence = "There is no such page." if error.status_code == 404 else "This is no page to look at."
        shown = await run_in_threadpool(
            site.page, request, "failed.html", error.status_code, sentence=sentence, code=error.status_code
        )
        shown.headers.update(error.headers or {})
        return shown

    return told


def _broken(site: WebContext) -> Callable[[Request, Exception], Response]:
    """A bug of ours, which the log tells."""

    def told(request: Request, error: Exception) -> Response:
        sentence = (
            f"This is a bug of agentos ({type(error).__name__}); {site.home.logs / 'web.log'} tells where"
        )
        return site.page(request, "failed.html", 500, sentence=sentence, code=500)

    return told


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
        if request.method == "HEAD":  # a chat or a mail program looks ahead so, and uses nothing up
            return PlainTextResponse("", headers=plain)
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


# --- What is done at each address: every act goes through the function that the command line uses


def _session(request: Request) -> WebSession:
    session: WebSession = request.scope["session"]
    return session


def before_evolution(site: WebContext, request: Request) -> Response:
    act, subject = request.path_params["act"], site.reader.resolve("evolution", request.path_params["id"])
    effect = acts.evolution_effect(site, act, subject, _session(request).principal)
    return _before_act(site, request, subject, effect)


def before_resource(site: WebContext, request: Request) -> Response:
    act, name = request.path_params["act"], resource_name(request)
    effect = acts.resource_effect(site, act, name, request.query_params.get("version", ""))
    return _before_act(site, request, name, effect)


def _before_act(site: WebContext, request: Request, subject: str, effect: acts.ActEffect) -> Response:
    act, version = request.path_params["act"], request.query_params.get("version", "")
    nonce = site.sessions.intend(_session(request), act, subject, effect.bound)
    return show(site, request, "act.html", effect=effect, nonce=nonce, act=act, of_version=version)


def _redeemed(site: WebContext, confirmed: acts.ConfirmedAct) -> acts.ConfirmedAct:
    nonce = confirmed.said.get("nonce", "")
    site.sessions.redeem(confirmed.who, nonce, confirmed.act, confirmed.subject, confirmed.bound)
    return confirmed


def do_evolution(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, subject = request.path_params["act"], request.path_params["id"]
    effect = acts.evolution_effect(site, act, subject, _session(request).principal)
    confirmed = acts.ConfirmedAct(act, subject, effect.bound, said, _session(request))
    return acts.do_evolution(site, _redeemed(site, confirmed))


def do_resource(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, name = request.path_params["act"], resource_name(request)
    effect = acts.resource_effect(site, act, name, said.get("version", ""))
    confirmed = acts.ConfirmedAct(act, name, effect.bound, said, _session(request))
    return acts.do_resource(site, _redeemed(site, confirmed))


def answer(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    question = site.reader.get(Question, request.path_params["id"])
    give(site.home, question, chosen(question, said.get("answer", ""), 0))
    return "/?did=answer"


def word(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    rating, run_id = said.get("rating", ""), request.path_params["id"]
    if rating not in set(Rating):
        raise UserError("A run is good or bad.")
    details = FeedbackDetails(because=said.get("because", ""))
    speak(site.home, run_id, Rating(rating), details, _session(request).principal)
    return f"/runs/{quote(run_id)}?did={rating}"


def run_again(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    task = queue_again(site.home, site.reader.run(request.path_params["id"]).task_id)
    return f"/tasks/{quote(task.id)}?did=again"


def correct(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    run_id = request.path_params["id"]
    answer = corrected_answer(site, run_id, said.get("answer", ""))
    details = FeedbackDetails(said.get("because", ""), corrected=(answer,))
    speak(site.home, run_id, Rating.BAD, details, _session(request).principal)
    return f"/runs/{quote(run_id)}?did=correct"


def do_schedule(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act = request.path_params["act"]
    with writing(site.home) as ledger:
        task = find_schedule(ledger, request.path_params["id"]).task
        if act == "pause":
            pause(ledger, task)
        elif act == "resume":
            resume(ledger, task, datetime.now(UTC))
        else:
            raise NotFound(f"There is nothing named {act[:40]!r} to be done.")
    return f"/tasks?did={act}"


def run_schedule(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    hold_out = load_settings(site.home.settings).hold_out
    with writing(site.home) as ledger:
        run_now(ledger, find_schedule(ledger, request.path_params["id"]), datetime.now(UTC), hold_out)
    return "/tasks?did=run"


def leave(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    site.sessions.close(request.cookies.get(site.reach.cookie, ""))
    return "/"


def do_failure(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, name = request.path_params["act"], request.path_params["id"]
    turn = {"mute": mute, "unmute": unmute}.get(act)
    if turn is None:
        raise NotFound(f"There is nothing named {act[:40]!r} to be done.")
    found = failure_group(site.reader, name).fingerprint.id
    with offline_context(site.home) as parts:
        turn(parts.cursor, found, _session(request).principal, acts.reason_of(said))
    return f"/failures/{quote(found)}?did={act}"


def do_models(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act = request.path_params["act"]
    turn = {"stop": model_stop.stop, "resume": model_stop.resume}.get(act)
    if turn is None:
        raise NotFound(f"There is nothing named {act[:40]!r} to be done.")
    turn(site.home, _session(request).principal, acts.reason_of(said))
    return f"/health?did={'stop' if act == 'stop' else 'models'}"


def add_task(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    if said.get("schedule", "").strip() and TokenScope.ADMINISTER not in _session(request).scopes:
        raise ApiRefusal(403, "wrong_scope", "A schedule needs the scope administer; leave the field empty.")
    return f"/tasks/{tasks.add_task(site, said)}?did=added"


def do_proposal(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, proposal = request.path_params["act"], site.reader.get(MemoryProposal, request.path_params["id"])
    if proposal.state is not ProposalState.OPEN:
        raise Conflict("It was answered already.")
    if act == "accept":
        accept(site.home, proposal, _session(request).author)
    elif act == "turn-down":
        turn_down(site.home, proposal, acts.reason_of(said))
    else:
        raise NotFound(f"There is nothing named {act[:40]!r} to be done.")
    return f"/resources?did={act}"
