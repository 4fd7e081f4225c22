"""The page in Chromium, by role and name: light and dark, on a telephone and on a desk, with and without scripts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from typing import Any

import pytest

from agentos.daemon.control import tokens
from agentos.daemon.offline import offline_context
from agentos.domain import Consent, Evolution, EvolutionState, MemoryProposal
from agentos.evolver.promote import promotion
from agentos.evolver.promote.consent import PAGE, person
from agentos.ledger.listing import failure_groups
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from tests.web.conftest import Served, add_varying_evolution

pytestmark = pytest.mark.browser

PATIENCE_MS = 30_000
TELEPHONE, DESK = (390, 844), (1280, 900)


@pytest.fixture(scope="module")  # as long as it is up, an event loop runs in this thread
def launched() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def chromium(launched: Any, served: Served) -> Iterator[Any]:
    """What a test opens is closed before its server goes: a page that is left goes on asking for it."""
    yield launched
    for context in launched.contexts:
        context.close()


class Window:
    """A page that is let in, and what its console said."""

    def __init__(self, chromium: Any, served: Served, **about: Any) -> None:
        self.context = chromium.new_context(**about)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.errors: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(served.link)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def link(self, name: str) -> Any:
        return self.page.get_by_role("link", name=name, exact=True)

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True)

    def heading(self, name: str) -> Any:
        return self.page.get_by_role("heading", name=name)


def axe() -> str:
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()


def test_every_page_fits_and_breaks_no_rule_of_accessibility(chromium: Any, served: Served) -> None:
    """Each scheme in one size; whether it fits, in both. What is no matter of colour or size is the same in the dark."""
    everything = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
    looks = everything | {"runOnly": ["color-contrast", "link-in-text-block", "target-size"]}
    window = Window(chromium, served)
    evolution = f"/evolutions/{served.evolution.id}"
    varying = f"/evolutions/{add_varying_evolution(served.home)}"
    (failure,) = failure_groups(Reader(served.home.ledger), 5)
    for address in ("/", "/evolutions", evolution, varying, f"{evolution}/approve", "/runs", "/runs/run-hostile", "/runs/run-1",
                    "/runs/run-1/compare?with=run-hostile", "/tasks", "/tasks/new", "/tasks/new?tool=calc/grade", "/resources",
                    "/resources/skill/calc", "/resources/skill/calc/blame", "/failures",
                    f"/failures/{failure.fingerprint.id}", "/health", "/search?q=calc", "/tasks/task-nightly",
                    "/resources/skill/calc/pin", "/enter"):  # fmt: skip
        window.page.goto(served.address + address)
        for closed in window.page.locator("summary").all()[:2]:
            closed.click()
        window.page.evaluate(axe())
        for scheme, sizes, rules in (
            ("light", (DESK, TELEPHONE), everything),
            ("dark", (TELEPHONE, DESK), looks),
        ):
            window.page.emulate_media(color_scheme=scheme)
            for width, height in sizes:
                window.page.set_viewport_size({"width": width, "height": height})
                assert window.page.evaluate("document.documentElement.scrollWidth") <= width, (
                    address,
                    scheme,
                )
            found = window.page.evaluate("rules => axe.run(rules)", rules)
            broken = [(item["id"], item["nodes"][0]["html"][:200]) for item in found["violations"]]
            assert broken == [], (address, scheme)
        nameless = window.page.locator("[tabindex='0']:not([role][aria-label])")
        assert nameless.count() == 0, (address, "a stop of the keyboard says what it is")
    assert window.errors == []


def test_a_page_that_has_changed_says_so_to_who_cannot_see_it(chromium: Any, served: Served) -> None:
    window = Window(chromium, served)
    before = window.page.title()
    ledger = Ledger(served.home.ledger)
    ledger.answer("question-1", "in")
    ledger.close()
    news = window.page.get_by_role("status").filter(has_text="Inbox")
    news.wait_for(state="attached")
    assert news.text_content() == window.page.title() != before


def test_on_a_telephone_all_pages_are_in_sight(chromium: Any, served: Served) -> None:
    window = Window(chromium, served, java_script_enabled=False, viewport={"width": 360, "height": 740})
    for address in ("/", "/failures", "/health"):
        window.page.goto(served.address + address)
        links = window.page.get_by_role("navigation", name="Pages").get_by_role("link").all()
        for link in links:
            box = link.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 360, (address, link.inner_text())
        assert len(links) >= 7


def test_a_question_that_was_just_answered_is_not_asked_for_again(chromium: Any, served: Served) -> None:
    """The page is told of the change before the answer to its own form is there."""

    def late(route: Any) -> None:
        answer = route.fetch(max_redirects=0)
        window.page.wait_for_timeout(1000)
        route.fulfill(response=answer)

    window = Window(chromium, served)
    window.link("Review and approve").click()
    window.heading("Approve this edit?").wait_for()
    window.page.route(
        window.page.url, lambda route: late(route) if route.request.method == "POST" else route.continue_()
    )
    window.button("Approve").click()
    window.page.get_by_role("status").get_by_text("You approved it").wait_for()
    assert window.errors == []


@pytest.mark.parametrize("scripts", [True, False])
def test_an_edit_is_approved_after_its_effect_was_shown(chromium: Any, served: Served, scripts: bool) -> None:
    window = Window(chromium, served, java_script_enabled=scripts, viewport={"width": 390, "height": 844})
    window.link("Review and approve").click()
    window.heading("Approve this edit?").wait_for()
    window.page.get_by_role("region", name="Changes of skill/calc/tools/grade.py").wait_for()
    window.button("Approve").click()
    window.page.get_by_role("status").get_by_text("You approved it").wait_for()
    (consent,) = Reader(served.home.ledger).find(Consent)
    assert consent.given == PAGE
    window.link("Inbox 4").click()
    window.page.get_by_text("Approved; the daemon promotes it.").wait_for()
    assert window.errors == []


def test_who_goes_by_the_keyboard_stays_where_they_are(chromium: Any, served: Served) -> None:
    window = Window(chromium, served)
    window.page.goto(f"{served.address}/?did=answer")
    assert window.page.url == f"{served.address}/", "what was done is told once"
    window.link("Review and approve").focus()
    ledger = Ledger(served.home.ledger)
    ledger.answer("question-1", "in")
    ledger.close()
    window.heading("Which folder?").wait_for(state="detached")
    assert window.page.evaluate("document.activeElement.textContent") == "Review and approve"
    assert window.errors == []


def test_evidence_opens_in_place_and_leads_to_the_run(chromium: Any, served: Served) -> None:
    window = Window(chromium, served, color_scheme="dark")
    window.link("See the proof").click()
    window.heading("Evidence").first.wait_for()
    window.page.locator("summary").first.click()
    window.link("The whole run").first.click()
    window.heading("Steps").wait_for()
    window.page.get_by_role("textbox", name="Why").first.fill("it should be a pass")
    window.button("Bad").click()
    window.page.get_by_role("status").get_by_text("Your word is kept").wait_for()
    window.page.wait_for_load_state()  # the page's script listens from then on
    window.page.keyboard.press("Escape")
    window.page.keyboard.press("/")
    assert window.page.evaluate("document.activeElement.name") == "q"
    window.page.keyboard.type("nightly")
    window.page.keyboard.press("Enter")
    window.link("Nightly report").first.wait_for()
    assert window.errors == []


def test_an_open_page_follows_what_happens(chromium: Any, served: Served) -> None:
    from playwright.sync_api import expect

    window = Window(chromium, served)
    expect(window.page).to_have_title(re.compile(r"^\(5\)"))
    ledger = Ledger(served.home.ledger)
    ledger.answer("question-1", "in")
    ledger.note("test.happened", "task-ask", {})
    ledger.close()
    expect(window.page).to_have_title(re.compile(r"^\(4\)"), timeout=PATIENCE_MS)  # nobody loaded it again
    assert window.page.get_by_text("Which folder?").count() == 0
    assert window.errors == []


def test_what_others_wrote_runs_nothing_and_leads_nowhere(chromium: Any, served: Served) -> None:
    window = Window(chromium, served)
    outside: list[str] = []
    window.page.on(
        "request", lambda it: outside.append(it.url) if not it.url.startswith(served.address) else None
    )
    window.page.on("dialog", lambda it: outside.append(it.message))
    for address in ("/runs/run-hostile", "/tasks/task-hostile", "/", "/runs"):
        window.page.goto(served.address + address)
        window.page.wait_for_load_state()
        assert "pwned" not in window.page.title().replace("document.title='pwned'", "")
    with window.page.expect_download() as download:
        window.page.goto(served.address + "/runs/run-hostile")
        window.link("report.html").click()
    assert download.value.suggested_filename == "report.html"
    assert outside == []
    assert window.errors == []


def test_a_person_does_what_else_there_is_to_do(chromium: Any, served: Served) -> None:
    """A task from its form, a run again, an answer put right, a failure muted, models stopped: by role and name."""
    window = Window(chromium, served)
    page = window.page

    def told(sentence: str) -> None:
        page.get_by_role("status").get_by_text(sentence).wait_for()

    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Tasks").click()
    window.link("New task").click()
    page.get_by_label("Tool").fill("calc/grade")
    window.button("Show its fields").click()
    page.get_by_label("points").fill("51")
    window.button("Queue it").click()
    told("It is queued")
    page.goto(f"{served.address}/runs/run-1")
    window.button("Run again").click()
    told("It is queued once more")
    page.goto(f"{served.address}/runs/run-1")
    page.get_by_label("Compare with the run").fill("run-2")
    window.button("Compare").click()
    window.heading("Two runs").wait_for()
    window.link("run-1").first.click()
    page.get_by_text("Put the answer right").click()
    page.get_by_label("What the answer should have been").fill('{"grade": "pass"}')
    window.button("Keep this answer").click()
    told("Your answer is kept")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Failures").click()
    window.link("wrong_answer").first.click()
    window.button("Mute").click()
    told("It is muted")
    window.button("Unmute").click()
    told("It is muted no longer")
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Health").click()
    window.button("Stop all model calls").click()
    told("No model is asked")
    window.button("Let models go on").click()
    told("Models are asked again")
    page.goto(f"{served.address}/resources/skill/calc")
    window.link("Who wrote which line").click()
    page.get_by_role("region", name="Lines of skill/calc/SKILL.md").wait_for()
    assert window.errors == []


def test_each_other_act_is_done_by_its_name(chromium: Any, served: Served) -> None:
    """Answer, decline, take up again, schedules, words, memories, pins, versions, tables, leaving: by role and name,
    and without scripts.
    """
    registry, ledger = Registry(served.home.registry), Ledger(served.home.ledger)
    registry.commit(
        {"skill/calc/SKILL.md": b"---\nname: calc\ndescription: Other.\n---\n"}, "A change", "edit"
    )
    for number in (1, 2):
        proposal = MemoryProposal(f"prop-{number}", "run-1", "key", f"Lesson {number}", "", datetime.now(UTC))
        ledger.put(proposal)
    ledger.close()
    window = Window(chromium, served, java_script_enabled=False, viewport={"width": 390, "height": 844})
    page, evolution = window.page, f"{served.address}/evolutions/{served.evolution.id}"

    def does(button: str, sentence: str) -> None:
        window.button(button).first.click()
        page.get_by_role("status").get_by_text(sentence).wait_for()

    does("in", "Your answer is kept")
    does("Pause", "It is paused")
    does("Resume", "It goes on")
    does("Run now", "A run is queued")
    page.goto(f"{served.address}/runs/run-nightly-0")
    does("Good", "Your word is kept")
    page.goto(evolution)
    window.link("Take it up again").click()
    window.heading("Take it up again?").wait_for()
    does("Take it up again", "This takes the same evidence up again")
    page.goto(f"{served.address}/resources")
    does("Remember: Lesson 1", "It is remembered")
    does("Turn down: Lesson 2", "It is turned down")
    page.goto(f"{served.address}/resources/skill/calc")
    window.link("Pin").click()
    page.get_by_text("No evolution touches skill/calc from now on").wait_for()
    page.get_by_label("Why, for the record").fill("mine")
    does("Pin", "It is pinned.")
    window.link("Unpin").click()
    does("Unpin", "It is pinned no longer")
    window.link("restore").first.click()
    page.get_by_role("region", name="Changes of skill/calc/SKILL.md").wait_for()
    does("Restore", "It has that content again")
    page.goto(f"{served.address}/runs")
    for kind in ("CSV", "JSON"):
        address = window.link(kind).get_attribute("href")
        assert page.request.get(served.address + address).ok
    window.button("Leave").click()
    window.heading("agentos").wait_for()
    assert page.request.get(served.address).status == 401
    # the 401 that says so is in the console of browsers, and is all that is
    assert [it for it in window.errors if "401" not in it] == []


def test_what_was_promoted_is_taken_back(chromium: Any, served: Served) -> None:
    with offline_context(served.home) as found:
        parts = replace(found, image_of=lambda _: "one")  # as its trials had, made without boxes
        (waits,) = parts.records.find(Evolution)
        promotion.approve(parts, waits, person())
        promoted = promotion.promote(parts, waits)
        assert promoted.state is EvolutionState.PROBATION, promoted.reason
    window = Window(chromium, served)
    page = window.page
    page.goto(f"{served.address}/evolutions/{waits.id}")
    window.link("Take it back").click()
    page.get_by_text("gets a new version with the content that it had before").wait_for()
    page.get_by_label("Why, for the record").fill("it was better before")
    window.button("Take it back").click()
    page.get_by_role("status").get_by_text("It is taken back").wait_for()
    page.get_by_text("it was better before").first.wait_for()
    assert window.errors == []


def test_an_edit_is_declined_with_a_reason(chromium: Any, served: Served) -> None:
    window = Window(chromium, served)
    window.link("Decline").click()
    window.page.get_by_text("Nothing is changed in what runs get").wait_for()
    window.page.get_by_label("Why, for the record").fill("not now")
    window.button("Decline").click()
    window.page.get_by_role("status").get_by_text("You declined it").wait_for()
    assert "not now" in Reader(served.home.ledger).get(Evolution, served.evolution.id).reason
    assert window.errors == []


def test_a_user_comes_by_their_token_and_sees_what_they_may_do(chromium: Any, served: Served) -> None:
    text = tokens.add(served.home, "ada", tokens.TokenRole.LOOK.scopes, 1, datetime.now(UTC))[1]
    page = chromium.new_context(viewport={"width": 390, "height": 844}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(f"{served.address}/enter")
    page.get_by_label("Your token").fill(text)
    page.get_by_role("button", name="Let me in").click()
    page.get_by_role("heading", name="things need you").wait_for()
    assert text not in page.url
    assert page.get_by_role("link", name="Review and approve").count() == 0
    assert [it.inner_text() for it in page.get_by_role("button").all()] == ["Leave"]
    page.get_by_role("link", name="See the proof").click()
    page.get_by_role("heading", name="Evidence").first.wait_for()
    assert page.get_by_role("link", name="Approve").count() == 0
    assert not page.evaluate("document.cookie")
