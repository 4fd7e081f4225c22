"""What is done at each address: every act goes through the function that the command line uses."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from agentos.daemon import model_stop
from agentos.daemon.intake.again import queue_again
from agentos.daemon.intake.filing import find_schedule
from agentos.daemon.offline import offline_context
from agentos.daemon.people.answers import chosen as valid_answer
from agentos.daemon.people.answers import give
from agentos.daemon.people.feedback import FeedbackDetails, speak
from agentos.daemon.people.remembering import accept, turn_down
from agentos.daemon.scheduling.schedules import pause, resume, run_now
from agentos.domain import MemoryProposal, ProposalState, Question, Rating
from agentos.errors import Conflict, NotFound, UserError
from agentos.evolver.find.triage import mute, unmute
from agentos.ledger.listing import failure_group
from agentos.settings import load_settings
from agentos.web import acts
from agentos.web.api.operations import writing
from agentos.web.api.problems import ApiRefusal
from agentos.web.api.tokens import TokenScope
from agentos.web.context import WebContext
from agentos.web.pages import tasks
from agentos.web.pages.runs import corrected_answer
from agentos.web.sessions import WebSession
from agentos.web.views import resource_name, show


def _session(request: Request) -> WebSession:
    session: WebSession = request.scope["session"]
    return session


def before_evolution(site: WebContext, request: Request) -> Response:
    act, subject = request.path_params["act"], site.reader.resolve("evolution", request.path_params["id"])
    effect = acts.evolution_effect(site, act, subject, _session(request).principal)
    return _before_act(site, request, act, subject, effect)


def before_resource(site: WebContext, request: Request) -> Response:
    act, name = request.path_params["act"], resource_name(request)
    version = request.query_params.get("version", "")
    effect = acts.resource_effect(site, act, name, version)
    return _before_act(site, request, act, name, effect, version)


def _before_act(
    site: WebContext, request: Request, act: str, subject: str, effect: acts.ActEffect, version: str = ""
) -> Response:
    nonce = site.sessions.intend(_session(request), act, subject, effect.bound)
    return show(site, request, "act.html", effect=effect, nonce=nonce, act=act, of_version=version)


def do_evolution(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, subject = request.path_params["act"], request.path_params["id"]
    effect = acts.evolution_effect(site, act, subject, _session(request).principal)
    site.sessions.redeem(_session(request), said.get("nonce", ""), act, subject, effect.bound)
    return acts.do_evolution(site, act, subject, effect.bound, said.get("reason", ""), _session(request))


def do_resource(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    act, name = request.path_params["act"], resource_name(request)
    effect = acts.resource_effect(site, act, name, said.get("version", ""))
    site.sessions.redeem(_session(request), said.get("nonce", ""), act, name, effect.bound)
    return acts.do_resource(site, act, name, said, effect.bound, _session(request))


def answer(site: WebContext, request: Request, said: Mapping[str, str]) -> str:
    question = site.reader.get(Question, request.path_params["id"])
    give(site.home, question, valid_answer(question, said.get("answer", ""), 0))
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
