"""What the API does: each operation with its address, the scope that it needs, its forms, and the function that the
command line uses for the same. ``routes.py`` serves this table and describes it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from agentos.daemon.control.tokens import Token, TokenScope
from agentos.daemon.intake.filing import cancel_task, file_task, find_schedule, remove_schedule
from agentos.daemon.offline import offline_context
from agentos.daemon.people.answers import chosen, give
from agentos.daemon.people.feedback import FeedbackDetails, speak
from agentos.daemon.scheduling.schedules import pause, resume, run_now
from agentos.daemon.views.evolution_view import resource_lines, resource_whole
from agentos.daemon.views.json_views import (
    evolution_summary,
    evolution_whole,
    run_whole,
    schedule_facts,
    task_facts,
    task_whole,
    without_share,
)
from agentos.domain import Evolution, Feedback, Question, Rating, ResourceId, Run, TaskState, Version
from agentos.errors import NotFound, UserError
from agentos.evolver.promote import promotion
from agentos.home import Home
from agentos.ledger.listing import ListPage, evolution_page, run_page, task_page
from agentos.ledger.reading import EvolutionRecords
from agentos.ledger.store import Ledger
from agentos.resources import parse_id
from agentos.settings import load_settings
from agentos.web.api import documents as forms
from agentos.web.api.door import ApiRefusal
from agentos.web.api.home import ApiHome, writing

_NO_REASON = "no reason given"


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One request, its parts held against their forms. ``seen``: the ETag of what the caller looked at."""

    site: ApiHome
    token: Token
    path: Mapping[str, str]
    query: Any
    body: Any
    seen: str
    etag: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Done:
    """What an operation that changed something tells, and what the audit log calls its subject."""

    told: Any
    subject: str


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """``returns`` is the form of the answer. ``bound``: it needs If-Match with the ETag of what was looked at."""

    id: str
    method: str
    path: str
    scope: TokenScope | None
    summary: str
    do: Callable[[ApiCall], Any]
    returns: Any
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    status: int = 200
    bound: bool = False


# --- tasks ------------------------------------------------------------------------------------


def _page(found: ListPage[Any], told: Callable[[Any], Any]) -> dict[str, Any]:
    return {"items": [told(row) for row in found.rows], "older": found.older or None}


def _tasks(call: ApiCall) -> Any:
    state = call.query.state.value if call.query.state else ""
    found = task_page(call.site.reader, call.query.limit, call.query.before, state=state)
    return _page(found, lambda view: task_facts(call.site.reader, view.task.id))


def _add_task(call: ApiCall) -> Done:
    task_id = _filed(call)
    return Done(task_facts(call.site.reader, task_id), task_id)


def _filed(call: ApiCall) -> str:
    document = call.body.model_dump(exclude_unset=True, exclude={"files"})
    files = {name: _bytes(name, given) for name, given in call.body.files.items()}
    return file_task(call.site.home, document, files).id


def _bytes(name: str, given: str | forms.Base64Body) -> bytes:
    if isinstance(given, str):
        return given.encode("utf-8", "replace")
    try:
        return base64.b64decode(given.base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UserError(f"The file {name[:100]!r} is no base64: {error}.") from None


def _task(call: ApiCall) -> Any:
    return task_whole(call.site.reader, call.site.reader.resolve("task", call.path["id"]))


def _cancel(call: ApiCall) -> Done:
    task_id = call.site.reader.resolve("task", call.path["id"])
    with writing(call.site.home) as ledger:
        cancel_task(ledger, task_id)
    return Done(task_facts(call.site.reader, task_id), task_id)


# --- runs -------------------------------------------------------------------------------------


def _runs(call: ApiCall) -> Any:
    reader, query = call.site.reader, call.query
    of = reader.resolve("task", query.task) if query.task else ""
    result = query.result.value if query.result else ""
    return _page(run_page(reader, query.limit, query.before, task_id=of, result=result), without_share)


def _run(call: ApiCall) -> Any:
    reader = call.site.reader
    return run_whole(reader, reader.run(reader.resolve("run", call.path["id"])))


def _feedback(call: ApiCall) -> Done:
    run_id = call.site.reader.resolve("run", call.path["id"])
    return Done(rate(call.site.home, call.token, run_id, call.body), run_id)


def rate(home: Home, token: Token, run_id: str, said: forms.FeedbackBody) -> list[Feedback]:
    """Keep a person's word that came with a token: theirs who made it, and it says so."""
    corrected = (said.answer,) if "answer" in said.model_fields_set else ()
    if corrected and said.rating is not Rating.BAD:
        raise UserError("An `answer` goes with the rating `bad`: it says what the answer should have been.")
    details = FeedbackDetails(said.because, tuple(said.expect), corrected=corrected)
    return speak(home, run_id, said.rating, details, f"{token.principal},{token.given.replace(' ', '=')}")


def _questions(call: ApiCall) -> Any:
    return call.site.reader.open_questions()


def _answer(call: ApiCall) -> Done:
    reader = call.site.reader
    question = reader.get(Question, reader.resolve("question", call.path["id"]))
    give(call.site.home, question, chosen(question, call.body.answer, 0))
    return Done(reader.get(Question, question.id), question.id)


# --- evolutions -------------------------------------------------------------------------------


def _evolutions(call: ApiCall) -> Any:
    state = call.query.state.value if call.query.state else ""
    found = evolution_page(
        call.site.reader, call.query.limit, call.query.before, state=state, resource=call.query.resource
    )
    return _page(found, lambda row: evolution_summary(call.site.reader, row))


def _evolution(call: ApiCall) -> Any:
    reader = call.site.reader
    return evolution_whole(reader.story(reader.resolve("evolution", call.path["id"])))


def _decide(act: str) -> Callable[[ApiCall], Done]:
    """The act on an evolution, where it still is what the caller looked at."""

    def decided(call: ApiCall) -> Done:
        with offline_context(call.site.home) as parts:
            ledger = parts.records
            assert isinstance(ledger, Ledger)
            story = ledger.story(ledger.resolve("evolution", call.path["id"]))
            if call.seen != call.etag(evolution_whole(story)):
                raise ApiRefusal(
                    412, "changed", f"{story.evolution.id} has changed since you looked: look at it again."
                )
            who = call.token.principal
            reason = call.body.reason.strip() or _NO_REASON
            if act == "approve":
                promotion.approve(parts, story.evolution, who, call.token.given)
            elif act == "reject":
                promotion.decline(parts, story.evolution, f"{who} ({call.token.given})", reason)
            elif act == "revert":
                promotion.take_back(parts, story.evolution, f"{who} ({call.token.given})", reason)
            else:
                story = ledger.story(promotion.measure_again(parts, story.evolution).id)
            after = evolution_summary(ledger, ledger.get(Evolution, story.evolution.id))
        told = {"evolution": after, "principal": who, "given": call.token.given}
        return Done(told, story.evolution.id)

    return decided


# --- resources --------------------------------------------------------------------------------


def _resources(call: ApiCall) -> Any:
    return resource_lines(call.site.home, call.site.registry, call.query.kind)


def _name(call: ApiCall) -> ResourceId:
    return parse_id(f"{call.path['kind']}/{call.path['name']}")


def _resource(call: ApiCall) -> Any:
    return resource_whole(call.site.registry, _name(call), call.query.version or None)


def _versions(call: ApiCall) -> Any:
    found = call.site.registry.versions(_name(call))
    if not found:
        raise NotFound(f"There is no resource {_name(call)}.")
    return found


def _pin(call: ApiCall) -> Done:
    call.site.registry.pin(_name(call), call.body.reason)
    return _pinned(call)


def _unpin(call: ApiCall) -> Done:
    if not call.site.registry.versions(_name(call)):
        raise NotFound(f"There is no resource {_name(call)}.")
    call.site.registry.unpin(_name(call))
    return _pinned(call)


def _pinned(call: ApiCall) -> Done:
    name = str(_name(call))
    return Done({"resource": name, "pinned": call.site.registry.pinned().get(name)}, name)


# --- schedules --------------------------------------------------------------------------------


def _schedules(call: ApiCall) -> Any:
    reader = call.site.reader
    found = [view for state in (TaskState.SCHEDULED, TaskState.PAUSED) for view in reader.tasks(state)]
    return [schedule_facts(reader, view.task) for view in found]


def _schedule(call: ApiCall) -> Any:
    return schedule_facts(call.site.reader, find_schedule(call.site.reader, call.path["id"]).task)


def _add_schedule(call: ApiCall) -> Done:
    task_id = _filed(call)
    return Done(schedule_facts(call.site.reader, call.site.reader.task(task_id)), task_id)


def _change_schedule(act: Callable[[Ledger, Any], None]) -> Callable[[ApiCall], Done]:
    def changed(call: ApiCall) -> Done:
        with writing(call.site.home) as ledger:
            task = find_schedule(ledger, call.path["id"]).task
            act(ledger, task)
            return Done(schedule_facts(ledger, task), task.id)

    return changed


def _run_schedule(call: ApiCall) -> Done:
    hold_out = load_settings(call.site.home.settings).hold_out
    with writing(call.site.home) as ledger:
        view = find_schedule(ledger, call.path["id"])
        return Done({"task": run_now(ledger, view, datetime.now(UTC), hold_out)[0]}, view.task.id)


def _me(call: ApiCall) -> Any:
    return asdict(call.token)


_TASKS, _RUNS, _EVOLUTIONS = "/tasks", "/runs", "/evolutions"
_SCHEDULES, _RESOURCE = "/schedules", "/resources/{kind}/{name}"
LOOK, FILE, APPROVE, ADMIN = TokenScope.LOOK, TokenScope.FILE, TokenScope.APPROVE, TokenScope.ADMINISTER
Page, Fm = forms.ApiPage, forms
OPERATIONS: tuple[ApiOperation, ...] = (
    ApiOperation("token.show", "GET", "/token", None, "The token that asks.", _me, Fm.TokenFacts),
    ApiOperation("tasks.list", "GET", _TASKS, LOOK, "Tasks, newest first.", _tasks, Page[Fm.TaskFacts], Fm.TasksQuery),
    ApiOperation("tasks.add", "POST", _TASKS, FILE, "Queue a task; it is durable when this answers.", _add_task,
              Fm.TaskFacts, body=Fm.TaskBody, status=201),
    ApiOperation("tasks.show", "GET", _TASKS + "/{id}", LOOK, "A task, its runs and what it waits for.", _task, Fm.TaskWhole),
    ApiOperation("tasks.cancel", "POST", _TASKS + "/{id}/cancel", FILE, "Out of the queue, or stopped.", _cancel, Fm.TaskFacts),
    ApiOperation("runs.list", "GET", _RUNS, LOOK, "Runs, newest first.", _runs, Page[Run], Fm.RunsQuery),
    ApiOperation("runs.show", "GET", _RUNS + "/{id}", LOOK, "A run with its steps and all that was said of it.", _run, Fm.RunWhole),
    ApiOperation("runs.feedback", "POST", _RUNS + "/{id}/feedback", FILE, "A person's word on a run.", _feedback,
              list[Feedback], body=Fm.FeedbackBody, status=201),
    ApiOperation("questions.list", "GET", "/questions", LOOK, "What runs wait to be answered.", _questions, list[Question]),
    ApiOperation("questions.answer", "POST", "/questions/{id}/answer", FILE, "Answer; the task goes on.", _answer,
              Question, body=Fm.AnswerBody),
    ApiOperation("evolutions.list", "GET", _EVOLUTIONS, LOOK, "Evolutions, newest first.", _evolutions,
              Page[Evolution], Fm.EvolutionsQuery),
    ApiOperation("evolutions.show", "GET", _EVOLUTIONS + "/{id}", LOOK, "An evolution with its proof.", _evolution, EvolutionRecords),
    *(
        ApiOperation(f"evolutions.{act}", "POST", f"{_EVOLUTIONS}/{{id}}/{act}", APPROVE, summary, _decide(act),
                  Fm.EvolutionActed, body=Fm.ReasonBody, bound=True)
        for act, summary in (
            ("approve", "Consent to the promotion, as who made the token."), ("reject", "Decline it."),
            ("revert", "Take a promotion back."), ("retry", "Take the same evidence up again."),
        )
    ),
    ApiOperation("resources.list", "GET", "/resources", LOOK, "What shapes agents.", _resources,
              list[Fm.ResourceSummary], Fm.ResourcesQuery),
    ApiOperation("resources.show", "GET", _RESOURCE, LOOK, "A resource with its files.", _resource, Fm.ResourceWhole, Fm.VersionQuery),
    ApiOperation("resources.versions", "GET", _RESOURCE + "/versions", LOOK, "Its versions, newest first.", _versions, list[Version]),
    ApiOperation("resources.pin", "POST", _RESOURCE + "/pin", ADMIN, "Let no evolution touch it.", _pin,
              Fm.ResourcePinned, body=Fm.ReasonBody),
    ApiOperation("resources.unpin", "POST", _RESOURCE + "/unpin", ADMIN, "Let evolutions touch it again.", _unpin, Fm.ResourcePinned),
    ApiOperation("schedules.list", "GET", _SCHEDULES, LOOK, "All schedules.", _schedules, list[Fm.ScheduleFacts]),
    ApiOperation("schedules.add", "POST", _SCHEDULES, ADMIN, "Schedule a task.", _add_schedule, Fm.ScheduleFacts,
              body=Fm.ScheduleBody, status=201),
    ApiOperation("schedules.show", "GET", _SCHEDULES + "/{id}", LOOK, "A schedule, by id or name.", _schedule, Fm.ScheduleFacts),
    ApiOperation("schedules.pause", "POST", _SCHEDULES + "/{id}/pause", ADMIN, "Start nothing until it is resumed.",
              _change_schedule(pause), Fm.ScheduleFacts),
    ApiOperation("schedules.resume", "POST", _SCHEDULES + "/{id}/resume", ADMIN, "Go on from the next time on.",
              _change_schedule(lambda ledger, task: resume(ledger, task, datetime.now(UTC))), Fm.ScheduleFacts),
    ApiOperation("schedules.run", "POST", _SCHEDULES + "/{id}/run", FILE, "Queue a run now.", _run_schedule, Fm.TaskStarted),
    ApiOperation("schedules.remove", "DELETE", _SCHEDULES + "/{id}", ADMIN, "It comes no more.",
              _change_schedule(remove_schedule), Fm.ScheduleFacts),
)  # fmt: skip
