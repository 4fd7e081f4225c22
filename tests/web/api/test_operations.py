"""The API by its client: it tells what ``--json`` tells, and does what the commands do."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import socket
import time
from http.client import HTTPResponse
from typing import Any

import httpx
import pytest

from agentos.client import ApiError, Client
from agentos.daemon.control.tokens import known_token
from agentos.domain import (
    Consent,
    Evolution,
    EvolutionState,
    Feedback,
    Outcome,
    Result,
    RunEnd,
    Share,
    TaskState,
)
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.command_server import command_server
from tests.web.api.conftest import token_for
from tests.web.conftest import Served, a_run, a_task


def typed(served: Served, *words: str) -> Any:
    """What a command prints with ``--json``."""
    done = command_server().run("--home", str(served.home.root), *words, "--json", env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def kind_of(error: pytest.ExceptionInfo[ApiError]) -> tuple[int, str]:
    return error.value.status, error.value.kind


@pytest.mark.slow
def test_it_tells_what_the_commands_tell(served: Served, program: Client) -> None:
    evolution = served.evolution.id
    run = next(program.runs(task="task-hostile"))["id"]
    pairs = [
        (list(program.tasks()), [*reversed(typed(served, "task", "list", "--all"))]),
        (program.task("task-ask"), typed(served, "task", "show", "task-ask")),
        (list(program.runs()), typed(served, "run", "list", "--limit", "1000")),
        (program.run(run), typed(served, "run", "show", run)),
        (list(program.evolutions()), typed(served, "evolution", "list")),
        (program.resources(), typed(served, "registry", "list")),
        (program.resource("skill/calc"), typed(served, "registry", "show", "skill/calc")),
        (program.versions("skill/calc"), typed(served, "registry", "log", "skill/calc")),
        (program.schedules(), typed(served, "schedule", "list")),
        (program.questions(), typed(served, "run", "answer")),
    ]
    for told, printed in pairs:
        assert told == printed
    whole = program.evolution(evolution)
    assert whole.pop("etag")
    assert whole == typed(served, "evolution", "show", evolution)
    assert "share" not in json.dumps(program.run(run)["run"])


def test_lists_come_in_pages(served: Served, program: Client) -> None:
    whole = [task["task"]["id"] for task in program.tasks()]
    assert len(whole) > 4
    assert [task["task"]["id"] for task in program.tasks(limit=2)] == whole
    done = [task["task"]["id"] for task in program.tasks(state="done", limit=3)]
    assert done == [one for one in whole if Reader(served.home.ledger).task_view(one).state is TaskState.DONE]


def test_a_task_is_filed_with_its_files_and_cancelled(served: Served, program: Client) -> None:
    said = {"call": {"tool": "word_count", "args": {"path": "a.txt"}}, "limits": {"wall_s": 5.5, "steps": 7}}
    added = program.add_task(files={"a.txt": "some words", "b.bin": b"\xff\0"}, **said)
    assert added["state"] == "queued"
    assert (added["task"]["limits"]["wall_s"], added["task"]["limits"]["steps"]) == (5.5, 7)
    assert {file["path"]: file["size"] for file in added["task"]["inputs"]} == {"a.txt": 10, "b.bin": 2}
    assert program.cancel(added["task"]["id"])["state"] == "cancelled"
    with pytest.raises(ApiError) as error:
        program.cancel(added["task"]["id"])
    assert kind_of(error) == (409, "conflict")


def test_a_word_on_a_run_is_its_makers(served: Served, program: Client) -> None:
    run = next(program.runs(task="task-nightly-2"))["id"]
    (word,) = program.rate(run, "bad", because="no feed")
    kept = Reader(served.home.ledger).get(Feedback, word["id"])
    assert (kept.because, kept.run_id) == ("no feed", run)
    assert kept.principal.startswith("person:")
    assert kept.principal.endswith(",token=program")


def test_an_error_says_what_to_type_next(program: Client) -> None:
    with pytest.raises(ApiError) as error:
        program.task("nothing")
    assert (kind_of(error), error.value.type_next) == ((404, "not_found"), ("agentos task list",))


@pytest.mark.parametrize("body", [b"null", b'"busy"', b"[]", b"<html>"])
def test_what_another_server_answers_is_an_error_of_the_api_too(body: bytes) -> None:
    """A proxy that said `null` ended a program by an AttributeError."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        response = HTTPResponse(ours)
        response.begin()
        with response, pytest.raises(ApiError) as error:
            Client("http://127.0.0.1:8420", "token")._answer(response)
    assert kind_of(error) == (502, "no_api")


def test_a_question_is_answered_once(program: Client) -> None:
    with pytest.raises(ApiError) as error:
        program.answer("question-1", "neither")
    assert kind_of(error) == (400, "refused")
    assert program.answer("question-1", "in")["answer"] == "in"
    with pytest.raises(ApiError) as error:
        program.answer("question-1", "out")
    assert kind_of(error) == (409, "decided")


def test_a_consent_says_who_made_the_token_and_how_it_came(served: Served, program: Client) -> None:
    seen = program.evolution(served.evolution.id)
    given = program.decide("approve", seen)
    (consent,) = Reader(served.home.ledger).find(Consent)
    assert consent.given == "token program"
    assert consent.principal == given["principal"]
    assert consent.principal.startswith("person:")
    (entry,) = [one for one in Reader(served.home.ledger).entries() if one.event == "api.act"]
    assert entry.subject == served.evolution.id
    assert (entry.detail["act"], entry.detail["token"]) == ("evolutions.approve", "program")


def test_an_evolution_is_declined_and_taken_up_again(served: Served, program: Client) -> None:
    told = program.decide("reject", program.evolution(served.evolution.id), "not now")
    assert told["evolution"]["state"] == "rejected"
    assert "not now" in told["evolution"]["reason"]
    fresh = program.decide("retry", program.evolution(told["evolution"]["id"]))
    assert fresh["evolution"]["id"] != told["evolution"]["id"]
    states = {one.id: one.state for one in Reader(served.home.ledger).find(Evolution)}
    assert states[told["evolution"]["id"]] is EvolutionState.REJECTED


def test_schedules_and_pins(program: Client) -> None:
    assert program.change_schedule("pause", "Nightly report")["state"] == "paused"
    assert program.change_schedule("resume", "task-nightly")["state"] == "scheduled"
    assert program.task(program.change_schedule("run", "task-nightly")["task"])["state"] == "queued"
    added = program.add_schedule("0 7 * * *", "Read the news", timezone="Europe/Berlin")
    assert added["next"]
    assert program.change_schedule("remove", added["schedule"]["id"])["state"] == "cancelled"
    assert program.pin("skill/calc", "mine")["pinned"] == "mine"
    assert program.unpin("skill/calc")["pinned"] is None


def test_an_answer_with_half_a_character_is_told(served: Served, raw: Any, token: str) -> None:
    ledger = Ledger(served.home.ledger)
    task = a_task("task-half", "half")
    ledger.add_task(task, Share.OPEN)
    run = a_run(ledger, task, Registry(served.home.registry).stable(), "run-half")
    ledger.finish_run(run.id, Outcome(Result.PASSED, 1.0, ""), RunEnd("half \ud800 of it"))
    known = known_token(served.home, token)
    assert known is not None
    ledger.note("api.act", task.id, {"act": "conversation.turn", "token_id": known.id})
    ledger.close()
    answer = raw(f"Bearer {token}").get("/v1/responses/resp_task-half-0").json()
    assert answer["output"][0]["content"][0]["text"] == "half \ud800 of it"


def test_events_go_on_where_they_were_cut_off(program: Client) -> None:
    first = [one["seq"] for one in itertools.islice(program.events(after=0), 3)]
    rest = [one["seq"] for one in itertools.islice(program.events(after=first[1]), 2)]
    assert first == [1, 2, 3]
    assert rest == [3, 4]


def test_the_steps_of_a_run_are_followed_to_its_end(program: Client) -> None:
    *steps, run = program.steps("run-hostile")
    assert [step["index"] for step in steps] == [0]
    assert run["outcome"]["result"] == "failed"


def test_files_that_a_run_left_are_named_by_their_place(program: Client) -> None:
    left = program.run("run-hostile")["run"]["outputs"]
    content = [program.file("run-hostile", number) for number in range(len(left))]
    assert [len(it) for it in content] == [file["size"] for file in left]
    with pytest.raises(ApiError) as error:
        program.file("run-hostile", len(left))
    assert kind_of(error) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/tasks/nobody", None, 404),
        ("GET", "/nothing", None, 404),
        ("PUT", "/tasks", None, 405),
        ("GET", "/tasks?state=sleeping", None, 422),
        ("GET", "/tasks?limit=2&limit=3", None, 422),
        ("GET", "/tasks?colour=red", None, 422),
        ("GET", "/resources/colour/red", None, 400),
        ("POST", "/tasks", {}, 422),
        ("POST", "/tasks", {"goal": "x", "deliver": [{"folder": "/tmp"}]}, 422),
        ("POST", "/tasks", {"goal": "x", "secrets": ["KEY"]}, 422),
        ("POST", "/tasks", {"goal": "x", "effects": ["external"]}, 422),
        ("POST", "/tasks", {"goal": "x", "inputs": ["/etc/passwd"]}, 422),
        ("POST", "/tasks", {"goal": "x", "files": {"../../x": "out"}}, 422),
        ("POST", "/tasks", {"goal": "x", "files": {"/etc/x": "out"}}, 422),
        ("POST", "/tasks", {"goal": "x", "files": {"a": {"base64": "%"}}}, 400),
        ("POST", "/runs/run-ask/feedback", {"rating": "good", "answer": 1}, 400),
        ("POST", "/tasks", [], 422),
    ],
)
def test_what_cannot_be_is_told_in_one_form(
    shared: Served, method: str, path: str, body: Any, status: int
) -> None:
    headers = {"Authorization": f"Bearer {token_for(shared, name=secrets.token_hex(8))}"}
    response = httpx.request(method, f"{shared.address}/api/v1{path}", headers=headers, json=body, timeout=60)
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    assert said["status"] == status
    assert {"type", "title", "kind", "detail", "faults"} <= set(said)
    assert said["detail"].count("the body") <= 1


@pytest.mark.slow
def test_a_program_that_was_idle_goes_on(program: Client) -> None:
    program.token()
    time.sleep(6)  # the server closes what is idle for five seconds
    assert program.pin("skill/calc", "later")["pinned"] == "later"
