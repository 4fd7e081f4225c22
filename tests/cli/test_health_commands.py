"""`agentos evolution health` and `calibration`: a table, one JSON document, a picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess
from xml.etree import ElementTree

import pytest

from agentos.domain import (
    Arm,
    Attestation,
    Candidate,
    Cost,
    Decision,
    Diagnosis,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Layer,
    Manifest,
    Outcome,
    Result,
    SafetyRate,
    Sighting,
    Snapshot,
    Trial,
    TrialSet,
    Verdict,
)
from agentos.evolver.watch.health import EvolutionCost, Health, ResourceCounts, mended, series
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import KnownLesson
from agentos.registry.store import Registry
from agentos.web.health_picture import picture
from tests.refusals import assert_golden

Agentos = Callable[..., CompletedProcess[str]]
NOW = datetime.now(UTC)
PRINT = Fingerprint("f" * 16, "tool/x", "exception", "x")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def ledger(home: Home) -> Iterator[Ledger]:
    opened = Ledger(home.ledger)
    yield opened
    opened.close()


def promote(ledger: Ledger, base: Snapshot, name: str) -> None:
    """An evolution from its sighting to its end, as the loop leaves it."""
    fingerprint = replace(PRINT, id=name * 16)
    ledger.put(Sighting(f"run-{name}", "task", "key", fingerprint, NOW - timedelta(hours=2)))
    ledger.put(Evidence(f"evd-{name}", fingerprint, (f"run-{name}",), ("task",), NOW, ""))
    diagnosis = Diagnosis(Layer.TOOL, "tool/x", "tool/x/tool.py", "why")
    evolution = Evolution(
        f"evo-{name}",
        f"evd-{name}",
        fingerprint.id,
        EvolutionState.PROMOTED,
        base,
        diagnosis=diagnosis,
        candidate_id=f"cand-{name}",
        promoted=base,
        created_at=NOW,
        ended_at=NOW,
    )
    manifest = Manifest(f"evd-{name}", "c", "e", ("tool/x/tool.py",), ("task", "other"), (), Layer.TOOL, "w")
    edit = Edit({"tool/x/tool.py": name}, "an edit", "compare")
    ledger.put(
        Candidate(
            f"cand-{name}", evolution.id, "model", 1, manifest, edit, base, base, created_at=NOW, model="gpt"
        )
    )
    ledger.put(evolution)
    ledger.note("evolution.probation", evolution.id, {})
    outcome = Outcome(Result.PASSED, 1.0, "passed", cost=Cost(cpu_s=1.5))
    for repeat in range(2):
        ledger.put(
            Trial(
                f"trial-{name}-{repeat}", evolution.id, "", "task", TrialSet.EVIDENCE, Arm.BASE, repeat, base,
                outcome, "", "fake", "none",
            )
        )  # fmt: skip
    ledger.put(
        Verdict(
            f"verdict-{name}", evolution.id, f"cand-{name}", Decision.PROMOTE, ("good",), ("task",), (), (),
            "t", "t", "m", "t", "p",
        )
    )  # fmt: skip
    ledger.put(Attestation(f"att-{name}", evolution.id, ("task", "other"), ("task",), (), (), "partly"))


def test_a_fresh_home_says_what_there_is_to_say(agentos: Agentos, tmp_path: Path) -> None:
    said = agentos("evolution", "health").stdout
    assert "What became of evolutions\nNo evolution has ended yet." in said
    assert "Nothing is remembered yet." in said
    assert "No edit was proposed yet." in agentos("evolution", "calibration").stdout
    assert json.loads(agentos("evolution", "calibration", "--json").stdout) == []
    agentos("evolution", "health", "--svg", "page.svg")
    ElementTree.parse(tmp_path / "page.svg")


def test_health_adds_up_what_the_ledger_has(agentos: Agentos, ledger: Ledger, home: Home) -> None:
    registry = Registry(home.registry)
    base = registry.stable()
    for name in ("a", "b"):
        promote(ledger, base, name)
    ledger.put(Sighting("run-again", "task", "key", replace(PRINT, id="a" * 16), NOW + timedelta(hours=1)))
    rate = SafetyRate(
        "s1", "evo-a", "", Arm.BASE, base, "default", True, ("p1", "p2"), ("p1",), (), "", "bubblewrap", NOW
    )
    ledger.put(rate)
    ledger.put(replace(rate, id="s2", evolution_id="evo-b"))
    found = json.loads(agentos("evolution", "health", "--json").stdout)
    assert found["states"] == {"promoted": 2}
    assert found["price"]["fixes"] == 2
    assert found["price"]["trials"] == 4
    assert found["price"]["cpu_s_per_fix"] == 3.0
    since_s = (datetime.now(UTC) - NOW).total_seconds()  # it was imported, which may be long ago
    assert 2 * 3600 - 60 < found["took_s"] < 2 * 3600 + since_s + 60
    assert found["recurred"] == 1
    assert sum(period["promoted"] for period in found["series"]) == 2
    assert {shelf["kind"]: shelf["created"] for shelf in found["library"]}["tool"] == 0
    assert [(item["rate"], item["learnt"]) for item in found["safety"]] == [(0.5, True)]
    said = agentos("evolution", "health").stdout
    assert "2 promoted" in said
    assert "1 of 2" in said


def test_an_evolution_that_was_taken_back_counts_once() -> None:
    came_to = {("evo-a", "probation"): NOW, ("evo-a", "rolled_back"): NOW + timedelta(days=9)}
    periods, _ = series(came_to, NOW + timedelta(days=10))
    assert sum(item.promoted for item in periods) == 0
    assert sum(item.rolled_back for item in periods) == 1


def test_calibration_by_proposer_model_and_layer(agentos: Agentos, ledger: Ledger, home: Home) -> None:
    promote(ledger, Registry(home.registry).stable(), "a")
    said = agentos("evolution", "calibration").stdout
    assert "model (gpt)" in said
    assert "1 of 2" in said
    assert "in live use" in said
    assert all(len(line) <= 80 for line in agentos("evolution", "calibration").stdout.splitlines())
    assert "1 partly" in said
    (row,) = json.loads(agentos("evolution", "calibration", "--json").stdout)
    assert (row["model"], row["layer"], row["precision"], row["recall"]) == ("gpt", "tool", 0.5, 1.0)


def test_an_evolution_without_edit_and_verdict_says_so(agentos: Agentos, ledger: Ledger, home: Home) -> None:
    base = Registry(home.registry).stable()
    ledger.put(Evidence("evd-none", PRINT, ("run",), ("task",), NOW, ""))
    ledger.put(
        Evolution(
            "evo-none", "evd-none", PRINT.id, EvolutionState.CANNOT_FIX, base, reason="nothing was found"
        )
    )
    assert_golden(
        "evolution_diff.has_no_edit_nothing_was_found",
        agentos("evolution", "diff", "evo-none", code=1).stderr,
    )
    assert "has no verdict" in agentos("evolution", "verify", "evo-none").stdout
    promote(ledger, base, "a")
    assert_golden(
        "evolution_diff.evo_a_has_no_candidate_7_it_has",
        agentos("evolution", "diff", "evo-a", "--candidate", "7", code=1).stderr,
    )


def test_a_picture_that_cannot_be_written_is_said_in_a_sentence(agentos: Agentos) -> None:
    done = agentos("evolution", "health", "--svg", "no/such/folder/page.svg", code=1)
    assert_golden("health.no_such_file", done.stderr)
    assert "Traceback" not in done.stderr


def full(count: int = 40) -> Health:
    """A page with something in each card."""
    base = Snapshot("c" * 40, "t" * 40)
    evolutions = [
        Evolution(f"evo-{n}", f"evd-{n}", f"print-{n}", EvolutionState.PROMOTED, base) for n in range(count)
    ]
    batches = [Evidence(f"evd-{n}", PRINT, (f"run-{n}",), (), NOW, "") for n in range(count)]
    came_to = {(f"evo-{n}", "probation"): NOW + timedelta(days=n) for n in range(count)}
    came_to |= {("evo-3", "rolled_back"): NOW + timedelta(days=9), ("evo-x", "held"): NOW}
    seen = [(f"run-{n}", f"print-{n}", NOW - timedelta(seconds=10 ** (n % 6))) for n in range(count)]
    seen += [("again", "print-1", NOW + timedelta(days=30))]
    periods, step = series(came_to, NOW)
    rates = tuple(
        SafetyRate(
            f"s{n}", "", "", Arm.BASE, base, "default", n % 2 == 0, ("a", "b"), ("a",) * (n % 3 == 0), (), "", "",
            NOW + timedelta(days=n),
        )
        for n in range(8)
    )  # fmt: skip
    return Health(
        at=NOW,
        states={"promoted": count},
        series=periods,
        step_s=step.total_seconds(),
        mended=tuple(mended(evolutions, batches, came_to, seen)),
        price=EvolutionCost(1.0, 10, 3.0, count),
        library=(ResourceCounts("tool", 3, 2, 1), ResourceCounts("skill", 0, 0, 0)),
        memories=(
            KnownLesson("memory/x/memory.md", "m-1", "<script>alert('&')</script>\x1b[2J" * 9, 4, 1, 0.3),
        ),
        safety=rates,
    )


def test_a_picture_is_well_formed_draws_all_and_runs_nothing() -> None:
    tree = ElementTree.fromstring(picture(full()))
    assert tree.tag == f"{SVG}svg"
    kinds = {element.tag for element in tree.iter()}
    assert kinds <= {
        f"{SVG}{name}" for name in ("svg", "g", "rect", "text", "title", "line", "circle", "polyline")
    }
    assert len(tree.findall(f".//{SVG}circle")) == 40 + 8
    words = " ".join(element.text or "" for element in tree.iter(f"{SVG}text"))
    for title in (
        "What became of evolutions",
        "From failure to promoted fix",
        "The library",
        "Lessons",
        "Safety",
    ):
        assert title in words
    assert "\\x1b" in words or "<script>" in words


def test_everything_stays_within_the_page() -> None:
    tree = ElementTree.fromstring(picture(full(2500)))
    for circle in tree.iter(f"{SVG}circle"):
        assert 0 < float(circle.attrib["cx"]) < 480
        assert 0 < float(circle.attrib["cy"]) < 230
    for box in tree.iter(f"{SVG}rect"):
        assert float(box.attrib["width"]) >= 0
        assert float(box.attrib["height"]) >= 0


def test_an_empty_page_is_a_picture_too() -> None:
    empty = Health(NOW, {}, (), 60.0, (), EvolutionCost(0.0, 0, 0.0, 0), (), (), ())
    words = picture(empty)
    ElementTree.fromstring(words)
    assert "No evolution has ended yet." in words
