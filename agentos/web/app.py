"""The addresses of the page: which function gathers what is shown there, and which forms do something."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from agentos.daemon.people.answers import chosen as valid_answer
from agentos.daemon.people.answers import give
from agentos.daemon.people.feedback import FeedbackDetails, speak
from agentos.daemon.scheduling.schedules import pause, resume, run_now
from agentos.daemon.views.loop_health import measure
from agentos.daemon.views.schedule_view import next_due, when_text
from agentos.domain import EvolutionState, Question, Rating, Result, TaskState
from agentos.errors import AgentOSError, Conflict, NotFound, Unavailable, UserError
from agentos.evolver.watch.health import Health
from agentos.ledger.listing import (
    data_version,
    evolution_page,
    evolutions_with,
    failure_groups,
    run_page,
    sightings_of,
    state_counts,
    task_page,
    tasks_with,
)
from agentos.ledger.store import Ledger
from agentos.settings import load_settings
from agentos.web import acts, evolutions, inbox, resources, runs, tables
from agentos.web.api.door import ApiDoor
from agentos.web.api.operations import ApiHome
from agentos.web.api.routes import with_api
from agentos.web.context import HERE, WebContext
from agentos.web.guard import Guard, read_form
from agentos.web.live import changes, page_version

ROWS = 50  # of a list on a page
_NEEDS_S, _HEALTH_S = 5.0, 30.0  # for which what was gathered for a page may serve others
_HITS = 10  # of each kind, of a search
_STATIC = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
_STATUS = {NotFound: 404, Conflict: 409, UserError: 400, Unavailable: 503}
_DID = {
    "approve": "You approved it; the daemon promotes it now.",
    "reject": "You declined it.",
    "revert": "It is taken back.",
    "reconsider": "This takes the same evidence up again.",
    "answer": "Your answer is kept; the daemon goes on with the task.",
    "good": "Your word is kept.",
    "bad": "Your word is kept; it becomes evidence where the failure can be told.",
    "pin": "It is pinned.",
    "unpin": "It is pinned no longer.",
    "restore": "It has that content again, as a new version.",
    "pause": "It is paused.",
    "resume": "It goes on from the next time on.",
    "run": "A run is queued.",
}

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
        show("/", _inbox),
        show("/evolutions", _evolutions),
        show("/evolutions/{id}", _evolution),
        show("/evolutions/{id}/{act}", _before_evolution),
        do("/evolutions/{id}/{act}", _do_evolution),
        show("/runs", _runs),
        show("/runs/{id}", _run),
        show("/runs/{id}/files/{number:int}", _file),
        show("/runs/{id}/steps/{number:int}/{side}", _step),
        do("/runs/{id}/word", _word),
        do("/questions/{id}", _answer),
        show("/tasks", _tasks),
        show("/tasks/{id}", _task),
        do("/schedules/{id}/{act}", _do_schedule),
        show("/resources", _resources),
        show("/resources/{kind}/{name}", _resource),
        show("/resources/{kind}/{name}/{act}", _before_resource),
        do("/resources/{kind}/{name}/{act}", _do_resource),
        show("/failures", _failures),
        show("/failures/{id}", _failure),
        show("/health", _health),
        show("/health.svg", _health_picture),
        show("/search", _search),
        show("/tables/{name}.csv", _csv),
        show("/tables/{name}.json", _json),
        do("/leave", _leave),
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


def _page(site: WebContext, request: Request, template: str, **values: Any) -> Response:
    """A page with the bar above it, and with what was done last."""
    path = request.url.path
    needs = values.pop("needs", None) or _needs(site)
    return site.page(
        request,
        template,
        said=_DID.get(request.query_params.get("did", ""), ""),
        needs=needs,
        live=page_version(site, path),
        query=request.query_params,
        **values,
    )


def _needs(site: WebContext) -> inbox.Inbox:
    """For the number in the bar: as it was a moment ago, where nothing was written since."""
    return site.kept.get("inbox", data_version(site.reader), _NEEDS_S, lambda: inbox.look(site))


def _loop(site: WebContext) -> Health:
    """How the loop does: it reads all evolutions, and its picture is asked for right after it."""
    return site.kept.get("health", None, _HEALTH_S, lambda: measure(site.home, datetime.now(UTC)))


def _before(request: Request) -> int:
    given = request.query_params.get("before", "")
    return int(given) if given.isdecimal() and len(given) < 16 else 0


# --- pages ------------------------------------------------------------------------------------


def _inbox(site: WebContext, request: Request) -> Response:
    found = inbox.look(site)
    states = state_counts(site.reader, "evolution")
    stands = states.get("promoted", 0) + states.get("probation", 0)
    tasks = sum(state_counts(site.reader, "task").values())
    return _page(site, request, "inbox.html", needs=found, tasks=tasks, stands=stands)


def _evolutions(site: WebContext, request: Request) -> Response:
    state = request.query_params.get("state", "")
    state = state if state in set(EvolutionState) else ""
    resource = request.query_params.get("resource", "")
    found = evolution_page(site.reader, ROWS, _before(request), state=state, resource=resource)
    counts = state_counts(site.reader, "evolution")
    rows = [
        row | {"reason": tables.with_names(site, row["reason"])}
        for row in tables.evolution_rows(site, found.rows)
    ]
    return _page(
        site,
        request,
        "evolutions.html",
        rows=rows,
        older=found.older,
        state=state,
        resource=resource,
        counts=counts,
    )


def _evolution(site: WebContext, request: Request) -> Response:
    evolution_id = site.reader.resolve("evolution", request.path_params["id"])
    rank = request.query_params.get("candidate", "")
    found = evolutions.evolution_page(site, evolution_id, int(rank) if rank.isdecimal() else 0)
    possible = acts.evolution_acts(found.scene.story)
    return _page(
        site,
        request,
        "evolution.html",
        it=found,
        scene=found.scene,
        evolution=found.scene.story.evolution,
        acts=possible,
        lived=evolutions.live_results(found.scene),
    )


def _runs(site: WebContext, request: Request) -> Response:
    result = request.query_params.get("result", "")
    result = result if result in set(Result) else ""
    found = run_page(site.reader, ROWS, _before(request), result=result)
    return _page(
        site,
        request,
        "runs.html",
        rows=tables.run_rows(site, found.rows),
        older=found.older,
        result=result,
        counts=dict.fromkeys(Result),
    )


def _run(site: WebContext, request: Request) -> Response:
    found = runs.run_page(site, site.reader.resolve("run", request.path_params["id"]))
    return _page(site, request, "run.html", it=found, run=found.run, task=found.view.task)


def _file(site: WebContext, request: Request) -> Response:
    """A file that a run left, by its place in the list: no path comes from the address."""
    run = site.reader.run(request.path_params["id"])
    number = request.path_params["number"]
    if not 0 <= number < len(run.outputs):
        raise NotFound(f"{run.id} left {len(run.outputs)} files.")
    file = run.outputs[number]
    name = quote(PurePosixPath(file.path).name, safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(site.blobs.get(file.sha256), media_type="application/octet-stream", headers=headers)


def _step(site: WebContext, request: Request) -> Response:
    """What went into a step or came out of it, whole and as plain text."""
    run_id, number = request.path_params["id"], request.path_params["number"]
    step = next(iter(site.reader.steps(run_id, after=number - 1)), None)
    side = request.path_params["side"]
    if step is None or step.index != number or side not in ("in", "out"):
        raise NotFound(f"{run_id} has no such step.")
    value = site.blobs.expand(step.action if side == "in" else step.observation)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return PlainTextResponse(text)


def _tasks(site: WebContext, request: Request) -> Response:
    state = request.query_params.get("state", "")
    state = state if state in set(TaskState) else ""
    found = task_page(site.reader, ROWS, _before(request), state=state)
    newest = {view.task.id: site.reader.runs(view.task.id, limit=1) for view in found.rows}
    lines = inbox.schedule_lines(site.reader)
    schedules = [(line, when_text(line.view.task), next_due(line.view.task)) for line in lines]
    return _page(
        site,
        request,
        "tasks.html",
        rows=found.rows,
        older=found.older,
        newest=newest,
        state=state,
        schedules=schedules,
        counts=state_counts(site.reader, "task"),
    )


def _task(site: WebContext, request: Request) -> Response:
    view = site.reader.task_view(site.reader.resolve("task", request.path_params["id"]))
    found = site.reader.runs(view.task.id, limit=ROWS)
    return _page(
        site, request, "task.html", view=view, task=view.task, rows=tables.run_rows(site, found), older=0
    )


def _resources(site: WebContext, request: Request) -> Response:
    return _page(site, request, "resources.html", lines=resources.resource_lines(site))


def _name(request: Request) -> str:
    return f"{request.path_params['kind']}/{request.path_params['name']}"


def _resource(site: WebContext, request: Request) -> Response:
    found = resources.resource_page(site, _name(request))
    new, old = request.query_params.get("to", ""), request.query_params.get("from", "")
    files = resources.version_difference(site, found.name, old, new) if new else []
    past = evolution_page(site.reader, ROWS, resource=found.name).rows
    return _page(site, request, "resource.html", it=found, new=new, old=old, files=files, past=past)


def _failures(site: WebContext, request: Request) -> Response:
    return _page(site, request, "failures.html", groups=failure_groups(site.reader, ROWS))


def _failure(site: WebContext, request: Request) -> Response:
    found = sightings_of(site.reader, request.path_params["id"], ROWS)
    if not found:
        raise NotFound("There is no such failure.")
    tried = evolution_page(site.reader, ROWS, fingerprint_id=request.path_params["id"]).rows
    names = {item.task_id: site.reader.task(item.task_id).name for item in found}
    return _page(site, request, "failure.html", found=found, tried=tried, names=names)


def _health(site: WebContext, request: Request) -> Response:
    return _page(site, request, "health.html", health=_loop(site))


def _health_picture(site: WebContext, request: Request) -> Response:
    from agentos.web.health_picture import picture

    return Response(picture(_loop(site)), media_type="image/svg+xml")


def _search(site: WebContext, request: Request) -> Response:
    text = request.query_params.get("q", "").strip()[:200]
    reader = site.reader
    for kind in ("run", "evolution", "task"):
        if text.startswith(("run-", "evo-", "task-")):
            try:
                found = reader.resolve(kind, text)
            except UserError:
                continue
            return RedirectResponse(f"/{kind}s/{found}", 303)
    tasks = tasks_with(reader, text, _HITS) if text else []
    past = evolutions_with(reader, text, _HITS) if text else []
    lines = [it for it in resources.resource_lines(site) if text and text.lower() in it.name][:_HITS]
    return _page(site, request, "search.html", text=text, tasks=tasks, past=past, lines=lines)


def _csv(site: WebContext, request: Request) -> Response:
    name = request.path_params["name"]
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    text = tables.as_csv(tables.table(site, name))
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def _json(site: WebContext, request: Request) -> Response:
    rows = tables.table(site, request.path_params["name"])
    return Response(tables.as_json(rows), media_type="application/json")


# --- what does something ----------------------------------------------------------------------


def _before_evolution(site: WebContext, request: Request) -> Response:
    act, subject = request.path_params["act"], site.reader.resolve("evolution", request.path_params["id"])
    return _before_act(site, request, act, subject, acts.evolution_effect(site, act, subject))


def _before_resource(site: WebContext, request: Request) -> Response:
    act, name = request.path_params["act"], _name(request)
    version = request.query_params.get("version", "")
    effect = acts.resource_effect(site, act, name, version)
    return _before_act(site, request, act, name, effect, version)


def _before_act(
    site: WebContext, request: Request, act: str, subject: str, effect: acts.ActEffect, version: str = ""
) -> Response:
    nonce = site.sessions.intend(request.scope["session"], act, subject, effect.bound)
    return _page(site, request, "act.html", effect=effect, nonce=nonce, act=act, of_version=version)


def _do_evolution(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, subject = request.path_params["act"], request.path_params["id"]
    effect = acts.evolution_effect(site, act, subject)
    site.sessions.redeem(request.scope["session"], said.get("nonce", ""), act, subject, effect.bound)
    return acts.do_evolution(site, act, subject, effect.bound, said.get("reason", ""))


def _do_resource(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, name = request.path_params["act"], _name(request)
    effect = acts.resource_effect(site, act, name, said.get("version", ""))
    site.sessions.redeem(request.scope["session"], said.get("nonce", ""), act, name, effect.bound)
    return acts.do_resource(site, act, name, said, effect.bound)


def _answer(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    question = site.reader.get(Question, request.path_params["id"])
    give(site.home, question, valid_answer(question, said.get("answer", ""), 0))
    return "/?did=answer"


def _word(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    rating, run_id = said.get("rating", ""), request.path_params["id"]
    if rating not in set(Rating):
        raise UserError("A run is good or bad.")
    speak(site.home, run_id, Rating(rating), FeedbackDetails(because=said.get("because", "")))
    return f"/runs/{quote(run_id)}?did={rating}"


def _do_schedule(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, now = request.path_params["act"], datetime.now(UTC)
    ledger = Ledger(site.home.ledger)
    try:
        view = ledger.task_view(request.path_params["id"])
        if not view.task.recurs:
            raise UserError(f"{view.task.id} is no schedule.")
        if act == "pause":
            pause(ledger, view.task)
        elif act == "resume":
            resume(ledger, view.task, now)
        elif act == "run":
            run_now(ledger, view, now, load_settings(site.home.settings).hold_out)
        else:
            raise NotFound(f"There is nothing named {act[:40]!r} to be done.")
    finally:
        ledger.close()
    return f"/tasks?did={act}"


def _leave(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    site.sessions.close(request.cookies.get(site.cookie, ""))
    return "/"
