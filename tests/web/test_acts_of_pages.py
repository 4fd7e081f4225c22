"""What can be done on a run, a task, a resource, a failure and on models: each act, and what refuses it."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from urllib.parse import quote

import httpx
import pytest

from agentos.daemon.job.tool_schemas import _CARDS, _key
from agentos.domain import (
    MUTED_CURSOR,
    Candidate,
    Evidence,
    Evolution,
    EvolutionState,
    Feedback,
    Json,
    MemoryProposal,
    Outcome,
    ProposalState,
    Rating,
    Result,
    RunEnd,
    Share,
    TaskState,
)
from agentos.evolver.promote.consent import person
from agentos.ledger.listing import failure_groups, odd_cursors
from agentos.ledger.store import Ledger
from agentos.messages import ToolCard
from agentos.models.stop import model_stop
from agentos.registry.store import Registry
from agentos.retrieval.storage import Storage
from agentos.web.pages.runs import ANSWER_MAX
from agentos.web.pages.tasks import declared_schema
from tests.web.conftest import SCRIPT, Served, a_run, a_task, add_varying_evolution
from tests.web.test_pages import fields, reader

SCHEMA = {
    "type": "object",
    "properties": {
        "points": {"type": "integer", "description": f"How many {SCRIPT}"},
        "strict": {"type": "boolean", "default": True},
        "scale": {"$ref": "#/$defs/Scale"},
        "notes": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["points"],
    "$defs": {"Scale": {"enum": ["ten", "hundred"]}},
}


@pytest.fixture
def token(browser: httpx.Client) -> dict[str, str]:
    """The hidden field of any form."""
    return fields(browser.get("/tasks/new").text, "/tasks/new")


def events(served: Served) -> list[str]:
    """Of the acts themselves; that the page was where they were done is said beside each."""
    return [entry.event for entry in reader(served).entries(limit=5) if entry.event != "page.act"]


@pytest.mark.slow
def test_a_failure_is_muted_and_unmuted(browser: httpx.Client, served: Served, token: dict[str, str]) -> None:
    (group,) = failure_groups(reader(served), 5)
    address = f"/failures/{group.fingerprint.id}"
    assert 'class="spark"' in browser.get(address).text
    assert browser.post(f"{address}/mute", data=token | {"reason": "known"}).status_code == 303
    assert odd_cursors(reader(served), MUTED_CURSOR) == {group.fingerprint.id}
    entry, _ = reader(served).entries(limit=2)
    assert (entry.event, entry.detail) == ("failure.muted", {"principal": person(), "reason": "known"})
    assert "muted" in browser.get("/failures").text
    assert browser.post(f"{address}/mute", data=token).status_code == 409
    assert browser.post(f"{address}/unmute", data=token).status_code == 303
    assert odd_cursors(reader(served), MUTED_CURSOR) == frozenset()
    assert browser.post("/failures/none/mute", data=token).status_code == 404
    assert browser.post(f"{address}/dance", data=token).status_code == 404


def test_models_are_stopped_and_go_on(browser: httpx.Client, served: Served, token: dict[str, str]) -> None:
    assert browser.post("/models/stop", data=token | {"reason": "too dear"}).status_code == 303
    stopped = model_stop(served.home)
    assert stopped is not None
    assert (stopped.principal, stopped.reason) == (person(), "too dear")
    assert "too dear" in browser.get("/health").text
    assert browser.post("/models/stop", data=token).status_code == 409
    assert browser.post("/models/resume", data=token).status_code == 303
    assert model_stop(served.home) is None
    assert events(served)[-2:] == ["models.stopped", "models.resumed"]


def test_a_run_is_made_again(browser: httpx.Client, served: Served, token: dict[str, str]) -> None:
    done = browser.post("/runs/run-1/again", data=token)
    assert done.status_code == 303
    (view,) = reader(served).tasks(TaskState.QUEUED)
    first = reader(served).task("task-1")
    assert (view.task.key, view.task.name) == (first.key, first.name)
    assert view.task.id in done.headers["location"]
    assert events(served)[-1] == "task.again"


def test_a_corrected_answer_is_evidence(browser: httpx.Client, served: Served, token: dict[str, str]) -> None:
    assert 'name="answer"' in browser.get("/runs/run-1").text
    said = token | {"answer": '{"grade": "other"}', "because": "50 is enough"}
    refused = browser.post("/runs/run-1/correct", data=token | {"answer": "{"})
    assert refused.status_code == 400
    done = browser.post("/runs/run-1/correct", data=said)
    if done.status_code == 303:
        words = reader(served).find(Feedback, run_id="run-1")
        assert (words[0].rating, words[0].because) == (Rating.BAD, "50 is enough")
    else:  # the task's own check says otherwise, which is told
        assert done.status_code == 400
        assert "check" in done.text


def test_two_runs_stand_side_by_side(browser: httpx.Client) -> None:
    page = browser.get("/runs/run-1/compare?with=run-hostile")
    assert page.status_code == 200
    assert 'class="differs"' in page.text
    assert SCRIPT not in page.text
    assert browser.get("/runs/run-1/compare?with=run-none").status_code == 404
    assert browser.get("/runs/run-1/compare").status_code == 404


def test_a_task_is_queued_from_its_goal(browser: httpx.Client, served: Served, token: dict[str, str]) -> None:
    said = token | {"goal": "Count the letters", "expect": "3", "schedule": ""}
    done = browser.post("/tasks/new", data=said)
    assert done.status_code == 303, done.text
    (view,) = reader(served).tasks(TaskState.QUEUED)
    assert (view.task.name, view.task.checks[0].kind) == ("Count the letters", "equals")
    assert view.task.checks[0].spec["value"] == 3
    scheduled = browser.post("/tasks/new", data=said | {"schedule": "0 7 * * *"})
    assert scheduled.status_code == 303
    wrong = browser.post("/tasks/new", data=said | {"schedule": "at noon"})
    assert wrong.status_code == 400
    assert browser.post("/tasks/new", data=token).status_code == 400


def test_a_tools_form_is_made_of_its_schema(
    browser: httpx.Client, served: Served, token: dict[str, str]
) -> None:
    know_the_tool(served)
    page = browser.get("/tasks/new?tool=calc/grade").text
    for piece in ('type="number" step="1"', 'type="checkbox"', "<select", "<textarea", "&lt;script&gt;"):
        assert piece in page
    assert SCRIPT not in page
    said = token | {"tool": "calc/grade", "arg.points": "51", "arg.scale": '"ten"', "arg.notes": '["a"]'}
    done = browser.post("/tasks/new", data=said)
    assert done.status_code == 303, done.text
    (view,) = reader(served).tasks(TaskState.QUEUED)
    assert view.task.call is not None
    assert dict(view.task.call.args) == {"points": 51, "strict": False, "scale": "ten", "notes": ["a"]}
    for wrong in ({"arg.points": ""}, {"arg.points": "many"}, {"tool": "calc/none"}):
        assert browser.post("/tasks/new", data=said | wrong).status_code in (400, 404)


def know_the_tool(served: Served) -> None:
    """As after a run that loaded it: its card is in the index."""
    registry = Registry(served.home.registry)
    files = registry.files(registry.stable(), "skill/calc")
    card = ToolCard(
        path="skill/calc/tools/grade.py", name="grade", description="Grades.", effects=[], dependencies=[],
        input_schema=SCHEMA, output_schema={},
    )  # fmt: skip
    row = (_key(dict(files)), _CARDS.dump_json([card]).decode())
    Storage(served.home.index).use(lambda db: _insert(db, row))


def _insert(db: sqlite3.Connection, row: tuple[str, str]) -> None:
    db.execute("INSERT OR REPLACE INTO cards VALUES (?, ?)", row)
    db.commit()


def test_without_a_schema_the_arguments_are_json(
    browser: httpx.Client, served: Served, token: dict[str, str]
) -> None:
    registry = Registry(served.home.registry)
    path = "skill/calc/tools/grade.py"
    odd = registry.files(registry.stable(), path)[path].replace(
        b"class Input(BaseModel)", b"class Input(Other)"
    )
    registry.commit({path: b"from pydantic import BaseModel as Other\n" + odd}, "Another base", "edit")
    assert "as JSON" in browser.get("/tasks/new?tool=calc/grade").text
    said = token | {"tool": "calc/grade", "arg.": json.dumps({"points": 3})}
    assert browser.post("/tasks/new", data=said).status_code == 303
    assert browser.post("/tasks/new", data=said | {"arg.": "{"}).status_code == 400


def test_each_line_is_told_by_the_version_that_brought_it(browser: httpx.Client, served: Served) -> None:
    registry = Registry(served.home.registry)
    path = "skill/calc/SKILL.md"
    text = registry.files(registry.stable(), path)[path] + SCRIPT.encode() + b"\n"
    registry.commit({path: text}, f"More {SCRIPT}", "edit")
    page = browser.get("/resources/skill/calc/blame").text
    lines = page.split('<div class="line')[1:]
    assert "1.0.0" in lines[0]
    assert "1.1.0 edit" in lines[-1] or "edit" in lines[-1]
    assert SCRIPT not in page
    for file in ("skill/calc/none.md", "../../consent.key", "/etc/passwd", "memory/x/memory.md"):
        assert browser.get(f"/resources/skill/calc/blame?file={quote(file)}").status_code == 404


def test_any_two_versions_are_compared(browser: httpx.Client, served: Served) -> None:
    registry = Registry(served.home.registry)
    for text in ("One.", "Two."):
        page = f"---\nname: calc\ndescription: {text}\n---\n".encode()
        registry.commit({"skill/calc/SKILL.md": page}, text, "edit")
    numbers = [
        it.number
        for it in registry.versions(next(n for n in registry.names(registry.stable()) if n.name == "calc"))
    ]
    page = browser.get(f"/resources/skill/calc?from={numbers[0]}&to={numbers[-1]}").text
    assert "Show what differs" in page
    assert f"{numbers[0]} → {numbers[-1]}" in page


def test_a_proposed_memory_is_answered_once(
    browser: httpx.Client, served: Served, token: dict[str, str]
) -> None:
    ledger = Ledger(served.home.ledger)
    for number in (1, 2):
        proposal = MemoryProposal(
            f"prop-{number}", "run-1", "key", f"Lesson {number} {SCRIPT}", "", datetime.now(UTC)
        )
        ledger.put(proposal)
    ledger.close()
    page = browser.get("/resources").text
    assert "Lesson 1" in page
    assert SCRIPT not in page
    assert browser.post("/proposals/prop-1/accept", data=token).status_code == 303
    assert browser.post("/proposals/prop-2/turn-down", data=token | {"reason": "no"}).status_code == 303
    states = {it.id: it.state for it in reader(served).find(MemoryProposal)}
    assert states == {"prop-1": ProposalState.ACCEPTED, "prop-2": ProposalState.REJECTED}
    assert browser.post("/proposals/prop-1/turn-down", data=token).status_code == 409


def test_the_test_of_tasks_that_vary_is_drawn(browser: httpx.Client, served: Served) -> None:
    page = browser.get(f"/evolutions/{add_varying_evolution(served.home)}").text
    assert page.count('<svg class="course"') == 2  # evidence and guards
    assert "what it had to show is shown" in page
    assert "/12 → " in page
    plain = browser.get("/evolutions/evo-varying?candidate=1").text
    assert "there is no sequential test" not in plain


@pytest.mark.parametrize(
    "address", ["/tasks/new", "/models/stop", "/runs/run-1/again", "/runs/run-1/correct", "/proposals/p/accept", "/failures/f/mute"]
)  # fmt: skip
def test_no_act_is_done_for_another_site(
    browser: httpx.Client, served: Served, token: dict[str, str], address: str
) -> None:
    head = reader(served).head()
    assert browser.post(address, data=token, headers={"Origin": "http://evil.example"}).status_code == 403
    assert browser.post(address, data={"csrf": "x"}).status_code == 400
    assert browser.get(address).status_code in (200, 404, 405)
    assert reader(served).head() == head


def test_a_form_that_is_sent_twice_is_done_once(browser: httpx.Client, served: Served) -> None:
    def sent(page: str, **said: str) -> httpx.Response:
        return browser.post("/tasks/new", data=fields(page, "/tasks/new") | said)

    before = len(reader(served).tasks())
    first, second = (browser.get("/tasks/new").text for _ in range(2))
    assert sent(first, goal="").status_code == 400
    led = [sent(page, goal="Count").headers["location"] for page in (first, first, second)]
    assert led[0] == led[1] != led[2]
    assert len(reader(served).tasks()) == before + 2
    assert sent(first, goal="Count more").headers["location"] not in led, "another form of the same page"


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        ("\n  first\nsecond", True),
        ({"name": "x\u202ey\x00", "n": 1}, True),
        ("x\u202ey", False),
        ("one\r\ntwo", False),
        ("x" * (ANSWER_MAX + 1), False),
    ],
)
def test_an_answer_that_nobody_changes_comes_back_as_it_was(
    browser: httpx.Client, served: Served, answer: Json, whole: bool
) -> None:
    ledger = Ledger(served.home.ledger)
    task = a_task("task-odd", "Odd")
    ledger.add_task(task, Share.OPEN)
    run = a_run(ledger, task, Registry(served.home.registry).stable(), "run-odd")
    ledger.finish_run(run.id, Outcome(Result.FAILED, 0.0, "no"), RunEnd(answer))
    ledger.close()
    found = re.search(r"<textarea[^>]*>\n(.*?)</textarea>", browser.get("/runs/run-odd").text, re.DOTALL)
    assert bool(found) == whole
    if found:
        typed = unescape(found[1])
        assert (typed if isinstance(answer, str) else json.loads(typed)) == answer


def test_a_tools_file_is_read_and_not_run() -> None:
    source = """
from typing import Literal
from pydantic import BaseModel, Field
raise SystemExit("it was run")
class Input(BaseModel):
    log: str
    most: int = Field(10, description="lines")
    how: Literal["a", "b"] = "b"
    rest: list[str] = Field(default_factory=list)
    open: dict[str, int]
    need: float = Field(..., description="x")
"""
    found = declared_schema(source.encode())
    assert found is not None
    assert found["required"] == ["log", "open", "need"]
    assert found["properties"]["most"] == {"type": "integer", "description": "lines", "default": 10}
    assert found["properties"]["how"] == {"enum": ["a", "b"], "default": "b"}
    assert [
        declared_schema(it) for it in (b"\x00", b"class Input(", b"x = 1", b"class Input(Base):\n  a: int")
    ] == [None] * 4


def test_a_probation_is_drawn_as_live_points_with_its_e_value(browser: httpx.Client, served: Served) -> None:
    registry, ledger = Registry(served.home.registry), Ledger(served.home.ledger)
    (known,) = ledger.find(Evolution)
    candidate = ledger.get(Candidate, known.candidate_id or "")
    before, evidence = ledger.run("run-1"), ledger.get(Evidence, known.evidence_id)
    files = {path: text.encode() for path, text in candidate.edit.files.items()}
    promoted = registry.commit(files, "As promoted", "evolution")
    probation = replace(known, state=EvolutionState.PROBATION, promoted=promoted, ended_at=datetime.now(UTC))
    ledger.put(probation)
    address = f"/evolutions/{known.id}"
    assert "No new, checked work has used it yet" in browser.get(address).text
    chosen = {ledger.task(task_id).key for task_id in evidence.task_ids}
    passed = next(
        run for run in ledger.runs_using("skill/calc", 50)
        if run.task_key not in chosen and run.outcome and run.outcome.result is Result.PASSED
    )  # fmt: skip
    task = ledger.task(passed.task_id)
    for number in range(3):
        copy = replace(task, id=f"task-live-{number}")
        ledger.add_task(copy, before.share)
        run = replace(
            passed, id=f"run-live-{number}", task_id=copy.id, snapshot=promoted, started_at=datetime.now(UTC),
            finished_at=None, outcome=None, outputs=(),
        )  # fmt: skip
        ledger.begin_run(run)
        result = Outcome(Result.FAILED, 0.0, f"worse {SCRIPT}")
        ledger.finish_run(run.id, result, RunEnd(resources=("skill/calc",)))
    ledger.close()
    page = browser.get(address).text
    assert page.count('<circle class="against"') >= 1
    assert "at 20 the promotion is rolled back" in page
    assert "live runs pass" in page
    assert SCRIPT not in page
