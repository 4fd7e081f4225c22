"""What is shown at each address: gathered by ``pages``, drawn by ``templates``."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from agentos.daemon.control.workers import cluster_view
from agentos.daemon.views.evolution_view import OpenQuestions, open_questions
from agentos.daemon.views.json_views import next_due, when_text
from agentos.domain import EvolutionState, MemoryProposal, ProposalState, Result, TaskState
from agentos.errors import AgentOSError, NotFound, UserError
from agentos.ledger.listing import (
    data_version,
    evolution_page,
    evolutions_with,
    run_page,
    sightings_of,
    state_counts,
    task_page,
    tasks_with,
)
from agentos.web import acts
from agentos.web.context import WebContext, page_version
from agentos.web.pages import charts, evolutions, health, resources, runs, tables, tasks

ROWS = 50  # of a list on a page
_NEEDS_S = 5.0  # for which what was gathered for a page may serve others
_HITS = 10  # of each kind, of a search
_ASKED_MAX = 5  # edits whose questions the inbox tells: each is computed from all its trials
DID = {
    "approve": "You approved it; the daemon promotes it now.",
    "reject": "You declined it.",
    "revert": "It is taken back.",
    "retry": "This takes the same evidence up again.",
    "answer": "Your answer is kept; the daemon goes on with the task.",
    "good": "Your word is kept.",
    "bad": "Your word is kept; it becomes evidence where the failure can be told.",
    "pin": "It is pinned.",
    "unpin": "It is pinned no longer.",
    "restore": "It has that content again, as a new version.",
    "pause": "It is paused.",
    "resume": "It goes on from the next time on.",
    "run": "A run is queued.",
    "again": "It is queued once more, as a task of its own.",
    "correct": "Your answer is kept; what you changed becomes evidence, what you left has to stay.",
    "added": "It is queued.",
    "mute": "It is muted: no evolution is opened for it.",
    "unmute": "It is muted no longer.",
    "stop": "No model is asked from now on.",
    "models": "Models are asked again.",
    "accept": "It is remembered from now on.",
    "turn-down": "It is turned down, and not proposed again.",
}


def show(site: WebContext, request: Request, template: str, **values: Any) -> Response:
    """A page with the bar above it, and with what was done last."""
    path = request.url.path
    needs = values.pop("needs", None) or _needs(site)
    did = request.query_params.get("did", "")
    late = did == "approve" and needs.daemon.code
    return site.page(
        request,
        template,
        said="You approved it; the daemon promotes it once it works." if late else DID.get(did, ""),
        needs=needs,
        live=page_version(site, path),
        query=request.query_params,
        **values,
    )


def _needs(site: WebContext) -> tasks.Inbox:
    """For the number in the bar: as it was a moment ago, where nothing was written since."""
    return site.kept.get("inbox", data_version(site.reader), _NEEDS_S, lambda: tasks.look(site))


def _number(request: Request, name: str) -> int:
    """A number of the query, 0 for what is none."""
    given = request.query_params.get(name, "")
    return int(given) if given.isdecimal() and len(given) < 16 else 0


def inbox_view(site: WebContext, request: Request) -> Response:
    found = tasks.look(site)
    states = state_counts(site.reader, "evolution")
    stands = states.get("promoted", 0) + states.get("probation", 0)
    known = sum(state_counts(site.reader, "task").values())
    waiting = [item.evolution.id for item in found.consents if not item.approved][:_ASKED_MAX]
    asked = {name: _asked(site, name) for name in waiting}
    return show(site, request, "inbox.html", needs=found, tasks=known, stands=stands, asked=asked)


def _asked(site: WebContext, evolution_id: str) -> OpenQuestions | None:
    """None where it cannot be told, by a policy that cannot be read, say: its own page says why."""
    try:
        return open_questions(site.home, site.reader.story(evolution_id))
    except AgentOSError:
        return None


def evolutions_view(site: WebContext, request: Request) -> Response:
    state = request.query_params.get("state", "")
    state = state if state in set(EvolutionState) else ""
    resource = request.query_params.get("resource", "")
    found = evolution_page(site.reader, ROWS, _number(request, "before"), state=state, resource=resource)
    counts = state_counts(site.reader, "evolution")
    rows = [
        row | {"reason": tables.with_names(site, row["reason"])}
        for row in tables.evolution_rows(site, found.rows)
    ]
    return show(
        site,
        request,
        "evolutions.html",
        rows=rows,
        older=found.older,
        state=state,
        resource=resource,
        counts=counts,
    )


def evolution_view(site: WebContext, request: Request) -> Response:
    evolution_id = site.reader.resolve("evolution", request.path_params["id"])
    found = evolutions.evolution_page(site, evolution_id, _number(request, "candidate"))
    possible = acts.evolution_acts(found.scene.story)
    return show(
        site,
        request,
        "evolution.html",
        it=found,
        scene=found.scene,
        evolution=found.scene.story.evolution,
        acts=possible,
        lived=evolutions.live_results(found.scene),
        course_chart=charts.course_chart,
        course_title=charts.course_title,
        watch_chart=charts.watch_chart,
        watch_title=charts.watch_title,
    )


def runs_view(site: WebContext, request: Request) -> Response:
    result = request.query_params.get("result", "")
    result = result if result in set(Result) else ""
    found = run_page(site.reader, ROWS, _number(request, "before"), result=result)
    return show(
        site,
        request,
        "runs.html",
        rows=tables.run_rows(site, found.rows),
        older=found.older,
        result=result,
        counts=dict.fromkeys(Result),
    )


def run_view(site: WebContext, request: Request) -> Response:
    found = runs.run_page(site, site.reader.resolve("run", request.path_params["id"]))
    return show(site, request, "run.html", it=found, run=found.run, task=found.view.task)


def comparison(site: WebContext, request: Request) -> Response:
    reader = site.reader
    left = reader.resolve("run", request.path_params["id"])
    right = reader.resolve("run", request.query_params.get("with", "").strip()[:200])
    return show(site, request, "comparison.html", it=runs.compare_runs(site, left, right))


def output_file(site: WebContext, request: Request) -> Response:
    """A file that a run left, by its place in the list: no path comes from the address."""
    run = site.reader.run(request.path_params["id"])
    number = request.path_params["number"]
    if not 0 <= number < len(run.outputs):
        raise NotFound(f"{run.id} left {len(run.outputs)} files.")
    file = run.outputs[number]
    name = quote(PurePosixPath(file.path).name, safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(site.blobs.get(file.sha256), media_type="application/octet-stream", headers=headers)


def step_value(site: WebContext, request: Request) -> Response:
    """What went into a step or came out of it, whole and as plain text."""
    run_id, number = request.path_params["id"], request.path_params["number"]
    step = next(iter(site.reader.steps(run_id, after=number - 1)), None)
    side = request.path_params["side"]
    if step is None or step.index != number or side not in ("in", "out"):
        raise NotFound(f"{run_id} has no such step.")
    value = site.blobs.expand(step.action if side == "in" else step.observation)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return PlainTextResponse(text.encode("utf-8", "backslashreplace"))  # a box may say half a character


def tasks_view(site: WebContext, request: Request) -> Response:
    state = request.query_params.get("state", "")
    state = state if state in set(TaskState) else ""
    found = task_page(site.reader, ROWS, _number(request, "before"), state=state)
    newest = {view.task.id: site.reader.runs(view.task.id, limit=1) for view in found.rows}
    lines = tasks.schedule_lines(site.reader)
    schedules = [(line, when_text(line.view.task), next_due(site.reader, line.view.task)) for line in lines]
    return show(
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


def new_task(site: WebContext, request: Request) -> Response:
    tool = request.query_params.get("tool", "").strip()[:200]
    return show(site, request, "new_task.html", form=tasks.task_form(site, tool))


def task_view(site: WebContext, request: Request) -> Response:
    view = site.reader.task_view(site.reader.resolve("task", request.path_params["id"]))
    found = site.reader.runs(view.task.id, limit=ROWS + 1)
    rows, more = tables.run_rows(site, found[:ROWS]), len(found) > ROWS
    return show(site, request, "task.html", view=view, task=view.task, rows=rows, more=more)


def resources_view(site: WebContext, request: Request) -> Response:
    proposals = site.reader.find(MemoryProposal, state=ProposalState.OPEN)
    return show(site, request, "resources.html", lines=resources.resource_lines(site), proposals=proposals)


def resource_name(request: Request) -> str:
    return f"{request.path_params['kind']}/{request.path_params['name']}"


def resource_view(site: WebContext, request: Request) -> Response:
    found = resources.resource_page(site, resource_name(request))
    new, old = request.query_params.get("to", ""), request.query_params.get("from", "")
    files = resources.version_difference(site, found.name, old, new) if new else []
    past = evolution_page(site.reader, ROWS, resource=found.name).rows
    return show(site, request, "resource.html", it=found, new=new, old=old, files=files, past=past)


def blame_view(site: WebContext, request: Request) -> Response:
    found = resources.blame(site, resource_name(request), request.query_params.get("file", ""))
    return show(site, request, "blame.html", it=found)


def failures_view(site: WebContext, request: Request) -> Response:
    lines = tables.failure_lines(site, ROWS + 1)
    return show(site, request, "failures.html", lines=lines[:ROWS], more=len(lines) > ROWS)


def failure_view(site: WebContext, request: Request) -> Response:
    line = tables.failure_line(site, request.path_params["id"])
    found = sightings_of(site.reader, line.group.fingerprint.id, ROWS)
    names = {item.task_id: site.reader.task(item.task_id).name for item in found}
    return show(site, request, "failure.html", line=line, found=found, names=names)


def health_view(site: WebContext, request: Request) -> Response:
    values = {"health": health.loop_health(site), "spending": health.spending(site)}
    return show(site, request, "health.html", cluster=cluster_view(site.home), **values)


def health_svg(site: WebContext, request: Request) -> Response:
    from agentos.web.health_picture import picture

    return Response(picture(health.loop_health(site)), media_type="image/svg+xml")


def search_view(site: WebContext, request: Request) -> Response:
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
    return show(site, request, "search.html", text=text, tasks=tasks, past=past, lines=lines)


def csv_table(site: WebContext, request: Request) -> Response:
    name = request.path_params["name"]
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    text = tables.as_csv(tables.table(site, name), tables.COLUMNS[name])
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def json_table(site: WebContext, request: Request) -> Response:
    rows = tables.table(site, request.path_params["name"])
    return Response(tables.as_json(rows), media_type="application/json")
