"""The pages over HTTP: what each shows, and what its buttons do."""

from __future__ import annotations

import csv
import io
import re
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime
from html import unescape

import httpx
import pytest

from agentos.cli.evolutions.screen import draw
from agentos.daemon.control.workers import ClusterView, WorkerView
from agentos.daemon.offline import offline_context
from agentos.daemon.views.evolution_view import scene_of
from agentos.daemon.views.loop_health import FITTED
from agentos.domain import (
    Candidate,
    Consent,
    Cost,
    Evidence,
    Evolution,
    EvolutionState,
    Feedback,
    Outcome,
    Question,
    Rating,
    Result,
    RunEnd,
    Share,
    Step,
    SupervisorWorth,
    TaskState,
    Trigger,
    Watch,
)
from agentos.evolver.promote.consent import PAGE, person
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.plaintext import json_text
from agentos.registry.store import Registry
from agentos.web.acts import REASON_MAX
from agentos.web.context import environment
from agentos.web.pages import health
from agentos.web.pages.tables import COLUMNS, as_csv
from tests.web.conftest import Served, a_run, a_task


def reader(served: Served) -> Reader:
    return Reader(served.home.ledger)


def fields(page: str, action: str = "") -> dict[str, str]:
    """The hidden fields of the first form, or of the one that goes to ``action``."""
    forms = re.findall(r"<form[^>]*method=\"post\"[^>]*>.*?</form>", page, re.DOTALL)
    form = next(form for form in forms if f'action="{action}"' in form)
    return {
        name: unescape(value)
        for name, value in re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    }


def act(browser: httpx.Client, address: str, **said: str) -> httpx.Response:
    """See what it would do, and do it."""
    shown = browser.get(address)
    assert shown.status_code == 200, shown.text
    return browser.post(address.partition("?")[0], data=fields(shown.text, address.partition("?")[0]) | said)


PAGES = ("/", "/evolutions", "/runs", "/tasks", "/resources", "/failures", "/health", "/search?q=calc", "/health.svg",
         "/runs/run-hostile", "/runs/run-ask", "/runs/run-1", "/tasks/task-nightly", "/tasks/task-hostile",
         "/resources/skill/calc", "/resources/skill/calc?to=1.0.0", "/tables/runs.json")  # fmt: skip


def test_every_page_answers_and_says_nothing_of_what_is_hidden(browser: httpx.Client, served: Served) -> None:
    for address in (*PAGES, f"/evolutions/{served.evolution.id}"):
        page = browser.get(address)
        assert page.status_code == 200, (address, page.text)
        assert "hold-out-" not in page.text
        assert "share" not in page.text.replace("shared", "")


def test_the_inbox_counts_what_waits_and_names_it(browser: httpx.Client) -> None:
    page = browser.get("/").text
    # a consent, a question, a refused skill, a failing schedule, and no daemon
    assert "<title>(5) Inbox" in page
    for words in (
        "skill/calc",
        "50 points pass",
        "Which folder?",
        "Nightly report",
        "A skill was refused",
        "No daemon",
    ):
        assert words in page


def test_the_inbox_asks_what_the_evolution_asks_and_opens_without_a_policy(
    browser: httpx.Client, served: Served
) -> None:
    policy = served.home.root / "policy.toml"
    policy.write_text('[consent]\nmedium = "ask"\n')
    assert "Your policy leaves medium-risk edits to you." in browser.get("/").text
    policy.write_text("[consent\n")
    assert browser.get("/").status_code == 200


def test_two_sentences_of_the_inbox_have_a_blank_between_them() -> None:
    drawn = environment()
    source, _, _ = drawn.loader.get_source(drawn, "inbox.html")  # type: ignore[union-attr]
    lead = source[source.index('<p class="lead">') : source.index("</p>")]
    for code, running in ((0, ()), (0, ("run-1",)), (1, ())):
        needs = {"daemon": {"code": code}, "running": running, "under_way": ()}
        told = drawn.from_string(lead).render(needs=needs, tasks=35, stands=0)
        assert re.search(r"\.\s+35 tasks", told)


def test_the_evolution_shows_its_proof(browser: httpx.Client, served: Served) -> None:
    page = browser.get(f"/evolutions/{served.evolution.id}").text
    assert "&gt;<mark>=</mark> 50" in page or "<mark>&gt;=</mark>" in page or "<mark>=</mark>" in page
    assert 'class="chip good">fixed' in page
    assert "Its tasks are named nowhere" in page
    assert "Predicted, and what came" in page
    for stage in ("found", "reproduced", "proposed", "replayed", "consent"):
        assert f"<strong>{stage}</strong>" in page
    for hidden in ("45 points", "80 points", "51 points"):
        assert hidden not in page


def test_consent_is_given_by_the_uid_and_kept(browser: httpx.Client, served: Served) -> None:
    name = served.evolution.id
    shown = browser.get(f"/evolutions/{name}/approve").text
    assert unescape(person()) in unescape(shown)
    assert '<div class="old' in shown  # the edit
    done = act(browser, f"/evolutions/{name}/approve")
    assert (done.status_code, done.headers["location"]) == (303, f"/evolutions/{name}?did=approve")
    (consent,) = reader(served).find(Consent)
    assert (consent.principal, consent.given) == (person(), PAGE)
    assert "Approved; the daemon promotes it" in browser.get("/").text


def test_declining_keeps_the_reason(browser: httpx.Client, served: Served) -> None:
    name = served.evolution.id
    assert act(browser, f"/evolutions/{name}/reject", reason="not like this").status_code == 303
    ended = served.evolution
    assert ended.state is EvolutionState.REJECTED
    assert ended.reason == f"declined by {person()}: not like this"


def test_an_edit_that_was_taken_back_is_called_so(browser: httpx.Client, served: Served) -> None:
    with closing(Ledger(served.home.ledger)) as ledger:
        ended = datetime.now(UTC)
        for state in (EvolutionState.PROMOTED, EvolutionState.ROLLED_BACK):
            ledger.put(replace(served.evolution, state=state, promoted=served.evolution.base, ended_at=ended))
            page = browser.get(f"/evolutions/{served.evolution.id}").text
            since = page.partition('id="since"')[2]
            assert ("taken back" in since[:200]) is (state is EvolutionState.ROLLED_BACK)


def test_measuring_again_makes_the_old_one_stale(browser: httpx.Client, served: Served) -> None:
    old = served.evolution
    done = act(browser, f"/evolutions/{old.id}/retry")
    assert done.status_code == 303
    states = {item.id: item.state for item in reader(served).find(Evolution)}
    assert states[old.id] is EvolutionState.STALE
    assert len(states) == 2
    assert browser.get(done.headers["location"]).status_code == 200


def test_what_is_not_possible_is_said(browser: httpx.Client, served: Served) -> None:
    answer = browser.get(f"/evolutions/{served.evolution.id}/revert")
    assert answer.status_code == 409
    assert "there is nothing to revert" in answer.text
    for address, status in (("/nothing", 404), ("/evolutions/evo-nothing", 404), ("/runs/run-1/word", 405)):
        answer = browser.get(address)
        assert (answer.status_code, 'href="/">To the inbox' in answer.text) == (status, True), address
    assert browser.get(f"/evolutions/{served.evolution.id}/dance").status_code == 404
    assert "promotes it now" not in browser.get("/?did=approve").text, "no daemon runs here"
    with closing(Ledger(served.home.ledger)) as ledger:
        ledger.set_kv("skills.refused", 1)  # as no release writes it
    broken = browser.get("/")
    assert (broken.status_code, "web.log" in broken.text) == (500, True)


def test_two_edits_that_wait_and_act_on_the_same_work_name_each_other(
    browser: httpx.Client, served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(Ledger(served.home.ledger)) as ledger:
        (known,) = ledger.find(Evolution)
        assert known.diagnosis is not None
        evidence = ledger.get(Evidence, known.evidence_id)
        ledger.put(replace(evidence, id="evd-apart", run_ids=("run-ask",)))
        for name, evidence_id in (("helper", known.evidence_id), ("apart", "evd-apart")):
            where = replace(known.diagnosis, resource=f"tool/{name}")
            edit = ledger.get(Candidate, known.candidate_id)
            edit = replace(edit, id=f"cand-{name}", evolution_id=f"evo-{name}")
            other = replace(known, id=edit.evolution_id, candidate_id=edit.id, evidence_id=evidence_id)
            ledger.put(edit)
            ledger.put(replace(other, diagnosis=where))
    page = browser.get(f"/evolutions/{known.id}").text
    assert '<a href="/evolutions/evo-helper">' in page
    assert f'<a href="/evolutions/{known.id}">' in browser.get("/evolutions/evo-helper").text
    assert "/evolutions/evo-apart" not in page
    with closing(reader(served)) as open_reader:
        draw(scene_of(served.home, open_reader, open_reader.story(known.id)), proof=False)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("Beside"))
    assert "evo-helper" in line


def test_a_question_is_answered(browser: httpx.Client, served: Served) -> None:
    token = fields(browser.get("/").text, "/questions/question-1")
    wrong = browser.post("/questions/question-1", data=token | {"answer": "elsewhere"})
    assert wrong.status_code == 400
    assert browser.post("/questions/question-1", data=token | {"answer": "out"}).status_code == 303
    (question,) = reader(served).find(Question)
    assert question.answer == "out"
    assert reader(served).task_view("task-ask").state is TaskState.QUEUED


def test_a_word_on_a_run_is_kept(browser: httpx.Client, served: Served) -> None:
    token = fields(browser.get("/runs/run-1").text, "/runs/run-1/word")
    said = token | {"rating": "bad", "because": "it should be lower"}
    assert browser.post("/runs/run-1/word", data=said).status_code == 303
    (word,) = reader(served).find(Feedback, run_id="run-1")
    assert (word.rating, word.because, word.principal) == (Rating.BAD, "it should be lower", person())
    assert "it should be lower" in browser.get("/runs/run-1").text


def test_a_run_that_a_person_graded_anew_names_the_one_that_it_grades(
    browser: httpx.Client, served: Served
) -> None:
    with closing(Ledger(served.home.ledger)) as ledger:
        run = ledger.run("run-1")
        assert run.outcome is not None
        anew = replace(ledger.task(run.task_id), id="task-anew")
        ledger.add_past(anew, replace(run, id="run-anew", task_id=anew.id, regrades=run.id), [])
    assert {row["id"]: row["regrades"] for row in browser.get("/tables/runs.json").json()}[
        "run-anew"
    ] == "run-1"
    assert 'what a person said of <a href="/runs/run-1"' in browser.get("/runs").text
    assert '<a href="/runs/run-1">' in browser.get("/runs/run-anew").text
    assert 'what a person said of <a href="/runs/run-1"' in browser.get("/tasks").text


def test_what_files_start_has_no_button_to_run_it_now(browser: httpx.Client, served: Served) -> None:
    with closing(Ledger(served.home.ledger)) as ledger:
        nightly = ledger.task("task-nightly")
        watch = Trigger(watch=Watch("/srv/inbox"))
        inbox = replace(nightly, id="task-inbox", name="inbox", schedule=None, trigger=watch)
        ledger.add_task(inbox, Share.OPEN, TaskState.SCHEDULED)
        copy = replace(inbox, id="task-inbox-1", trigger=None, schedule_id=inbox.id)
        ledger.add_task(copy, Share.OPEN)
        failed = replace(ledger.run("run-nightly-2"), id="run-inbox", task_id=copy.id, outcome=None)
        ledger.begin_run(failed)
        ledger.finish_run(failed.id, Outcome(Result.FAILED, 0.0, "no"))
    page = browser.get("/").text
    assert "/schedules/task-nightly/run" in page
    assert "/schedules/task-inbox/pause" in page
    assert "/schedules/task-inbox/run" not in page


def test_a_schedule_is_paused_resumed_and_run(browser: httpx.Client, served: Served) -> None:
    token = fields(browser.get("/tasks").text, "/schedules/task-nightly/run")
    assert browser.post("/schedules/task-nightly/run", data=token).status_code == 303
    assert browser.post("/schedules/task-nightly/pause", data=token).status_code == 303
    assert reader(served).task_view("task-nightly").state is TaskState.PAUSED
    assert browser.post("/schedules/task-nightly/resume", data=token).status_code == 303
    queued = reader(served).tasks(TaskState.QUEUED)
    assert "task-nightly" in {view.task.schedule_id for view in queued}
    assert browser.post("/schedules/task-hostile/pause", data=token).status_code == 404


def test_a_resource_is_pinned_and_restored(browser: httpx.Client, served: Served) -> None:
    assert act(browser, "/resources/skill/calc/pin", reason="mine").status_code == 303
    registry = Registry(served.home.registry)
    assert registry.pinned()["skill/calc"] == "mine"
    assert act(browser, "/resources/skill/calc/unpin").status_code == 303
    assert "skill/calc" not in registry.pinned()
    assert act(browser, "/resources/skill/calc/pin", reason="x" * (REASON_MAX + 1)).status_code == 400
    assert "skill/calc" not in registry.pinned()
    page = b"---\nname: calc\ndescription: Other words.\n---\n"
    registry.commit({"skill/calc/SKILL.md": page}, "Other words", "edit")
    first = registry.versions(registry.names(registry.stable())[-1])
    assert first
    done = act(browser, "/resources/skill/calc/restore?version=1.0.0", reason="it was better")
    assert done.status_code == 303, done.text
    assert b"Grades." in registry.files(registry.stable(), "skill/calc/SKILL.md")["skill/calc/SKILL.md"]


def test_a_file_that_a_run_left_comes_as_a_download(browser: httpx.Client) -> None:
    answer = browser.get("/runs/run-hostile/files/1")
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''report.html"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert browser.get("/runs/run-hostile/files/9").status_code == 404


def test_a_long_value_is_a_link_away(browser: httpx.Client) -> None:
    assert "/runs/run-hostile/steps/0/out" in browser.get("/runs/run-hostile").text
    whole = browser.get("/runs/run-hostile/steps/0/out")
    assert whole.headers["content-type"].startswith("text/plain")
    assert len(whole.text) > 9_000


def test_half_a_character_breaks_no_page(browser: httpx.Client, served: Served) -> None:
    half = "half \ud800 of it"
    ledger = Ledger(served.home.ledger)
    task = a_task("task-half", "half", goal=half)
    ledger.add_task(task, Share.OPEN)
    run = a_run(ledger, task, Registry(served.home.registry).stable(), "run-half")
    step = Step(run.id, 0, "call", {"tool": half}, {"text": half + "x" * 9_000}, None, datetime.now(UTC), 1.0)
    ledger.append_step(step)
    ledger.finish_run(run.id, Outcome(Result.FAILED, 0.0, half), RunEnd(half))
    ledger.close()
    for address in ("/runs/run-half/steps/0/in", "/runs/run-half/steps/0/out"):
        assert "half \\ud800 of it" in browser.get(address).text
    assert browser.get("/tables/runs.json").json()[0]["reason"] == half
    for address in ("/runs/run-half", "/tasks/task-half", "/runs/run-half/compare?with=run-ask"):
        assert browser.get(address).status_code == 200


def test_json_that_is_nested_too_deeply_is_no_bug(browser: httpx.Client) -> None:
    deep = "[" * 20_000
    for shown, address, said in (
        ("/runs/run-hostile", "/runs/run-hostile/correct", {"answer": deep}),
        ("/tasks/new", "/tasks/new", {"goal": "x", "expect": deep}),
    ):
        hidden = fields(browser.get(shown).text, address)
        assert browser.post(address, data=hidden | said).status_code < 500


def test_each_table_is_csv_and_json(browser: httpx.Client) -> None:
    for name in ["evolutions", "runs", "tasks", "resources", "failures"]:
        rows = browser.get(f"/tables/{name}.json").json()
        assert list(rows[0]) == [*COLUMNS[name]]
        table = list(csv.DictReader(io.StringIO(browser.get(f"/tables/{name}.csv").text)))
        assert [row.keys() for row in table] == [row.keys() for row in rows]
        assert browser.get("/tables/secrets.csv").status_code == 404


@pytest.mark.parametrize("cell", ["=1+1", "-1", "\n=1+1", "\uff1d1+1", "\uff201"])
def test_a_spreadsheet_computes_no_cell_of_a_table(cell: str) -> None:
    (row,) = csv.DictReader(io.StringIO(as_csv([{"name": cell}], ["name"]), newline=""))
    assert row == {"name": f"'{cell}"}


def test_a_table_without_rows_has_its_heading() -> None:
    assert [as_csv([], columns).strip().split(",") for columns in COLUMNS.values()] == [*COLUMNS.values()]


def test_lists_go_on_where_they_were_cut(browser: httpx.Client) -> None:
    page = browser.get("/runs?before=3").text
    assert "run-0" in page
    assert "run-hostile" not in page
    assert "run-hostile" not in browser.get("/runs?result=passed").text


def test_a_number_without_end_is_none(browser: httpx.Client, served: Served) -> None:
    for address in (f"/evolutions/{served.evolution.id}?candidate=", "/runs?before="):
        assert browser.get(address + "9" * 5_000).text.count("<main") == 1


def test_a_run_shows_the_tree_of_what_it_handed_over(browser: httpx.Client, served: Served) -> None:
    with offline_context(served.home) as parts:
        ledger, stable, above = parts.records, parts.snapshots.stable(), ""
        assert isinstance(ledger, Ledger)
        # each handed the next one over
        for number, result in enumerate((Result.PASSED, Result.FAILED, None)):
            task = a_task(
                f"task-tree-{number}",
                f"Part {number} <b>",
                parent=f"task-tree-{number - 1}" if number else "",
            )
            ledger.add_task(task, Share.OPEN)
            run = replace(a_run(ledger, task, stable, f"run-tree-{number}"), parent=above)
            above = run.id
            if result is not None:
                ledger.finish_run(run.id, Outcome(result, 0.0, "why", cost=Cost(calls=7)))
    page = browser.get("/runs/run-tree-0").text
    (table,) = re.findall(r'<section id="handed">.*?</section>', page, re.DOTALL)
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)[1:]]
    assert [row[:1] for row in rows] == [["↳"], ["↳"]]
    assert (rows[1][1], "run-tree-2" in rows[1], "running" in rows[1]) == ("↳", True, True)
    assert {"run-tree-1", "failed", "7"} <= {*rows[0]}
    assert "<b>" not in table
    assert 'id="handed"' not in browser.get("/runs/run-tree-2").text


def test_the_health_page_says_what_each_check_of_the_supervisor_is_worth(
    browser: httpx.Client, served: Served
) -> None:
    worth = SupervisorWorth(
        "loop", runs=40, fired=4, passed=30, lost=2, saved=0.25, acts=False, why="it lost <i>2</i>"
    )
    with offline_context(served.home) as parts:
        assert isinstance(parts.records, Ledger)
        parts.records.set_kv(FITTED, {"norms": {}, "worth": [asdict(worth)]})
    page = browser.get("/health").text
    (table,) = re.findall(r'<section id="supervisor">.*?</section>', page, re.DOTALL)
    cells = [unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", table)]
    assert cells == ["loop", "40", "4", "25%", "2 of 30", "no: it lost <i>2</i>"]
    assert "<i>" not in table


def test_health_that_takes_too_long_to_measure_is_told(
    browser: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_BESIDE", 0)
    monkeypatch.setattr(health, "_PATIENCE_S", 0.01)
    assert browser.get("/health").status_code == 503


def test_the_health_page_shows_workers_and_escapes_what_they_say_of_themselves(
    browser: httpx.Client, served: Served
) -> None:
    assert "<h2>Workers</h2>" not in browser.get("/health").text
    now = datetime.now(UTC).isoformat()
    here = WorkerView("one", "works", since=now, host="<b>host</b>", boxes=4, cores=2, runs=(("run-1", now),))
    view = ClusterView(
        "https://control:8421", now, 2, (here, WorkerView("two", "held", "its image is <i>x</i>"))
    )
    (served.home.run / "workers.json").write_text(json_text(view))
    page = browser.get("/health").text
    (part,) = re.findall(r"<h2>Workers</h2>.*?</section>", page, re.DOTALL)
    assert {"one", "works", "1 of 4", "held", "run-1 since"} <= {
        *re.findall(r"[\w-]+ since|1 of 4|one|works|held", part)
    }
    assert "<b>" not in part
    assert "<i>" not in part
    (served.home.run / "workers.json").unlink()


def test_search_finds_by_name_and_by_id(browser: httpx.Client) -> None:
    assert "Nightly report" in browser.get("/search?q=nightly").text
    assert browser.get("/search?q=run-hostile").headers["location"] == "/runs/run-hostile"
    assert "Nothing has that" in browser.get("/search?q=zzzz").text


@pytest.mark.slow
def test_a_run_is_shown_whose_snapshot_or_resources_are_nowhere(
    browser: httpx.Client, served: Served
) -> None:
    with closing(Ledger(served.home.ledger)) as ledger:
        stable = Registry(served.home.registry).stable()
        for number, snapshot in enumerate((stable, replace(stable, commit="f" * 40, tree="e" * 40))):
            task = a_task(f"task-odd-{number}", "odd")
            ledger.add_task(task, Share.OPEN)
            run = a_run(ledger, task, snapshot, f"run-odd-{number}")
            used = ("no kind/x", "skill/calc")
            ledger.finish_run(run.id, Outcome(Result.PASSED, 1.0, ""), RunEnd(resources=used))
    for address in (
        "/runs/run-odd-0",
        "/runs/run-odd-1",
        "/runs/run-odd-0/compare?with=run-odd-1",
        "/resources/skill/calc",
    ):
        assert browser.get(address).status_code == 200, address


@pytest.mark.slow
def test_another_candidate_is_shown_beside_its_own_base(browser: httpx.Client, served: Served) -> None:
    path = "prompt/default/prompt.md"
    registry = Registry(served.home.registry)
    text = registry.files(registry.stable(), path)[path].decode()
    with closing(Ledger(served.home.ledger)) as ledger:
        known = ledger.get(Candidate, served.evolution.candidate_id)
        edit = replace(known.edit, files={path: f"{text}one more line\n"})
        ledger.put(replace(known, id="cand-other", rank=7, edit=edit))
    page = browser.get(f"/evolutions/{served.evolution.id}?candidate=7").text
    assert (page.count('class="pair new"'), page.count("one more line")) == (1, 1)
