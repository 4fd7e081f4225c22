"""Evolutions side by side: how many, which never, and that none of them starves another."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agentos.daemon.engine import EVOLVE, FRESH, PROMOTE, SETTLE, Steps
from agentos.daemon.evolutions import WAITING_MAX, start_due
from agentos.daemon.run.trial_execution import TrialPool
from agentos.daemon.service import Service, service
from agentos.domain import (
    Candidate,
    Check,
    Diagnosis,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Kind,
    Layer,
    Manifest,
    ResourceId,
    Share,
    Task,
)
from agentos.errors import Unavailable
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.settings import Settings, load_settings
from tests.daemon.conftest import UNCOMPARED

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Engine:
    """Knows what it was asked to start, and that it goes on until it is told otherwise."""

    def __init__(self) -> None:
        self.going: dict[str, str] = {}

    def active(self, kind: str) -> list[str]:
        return [subject for subject, of in self.going.items() if of == kind]

    def start(self, kind: str, subject: str, workflow_id: str | None = None) -> bool:
        self.going[subject] = kind
        return True


@pytest.fixture
def engine() -> Any:
    return Engine()


@pytest.fixture
def parts(home: Home) -> Iterator[Service]:
    with service(home, load_settings(home.settings)) as made:
        yield made


def opened(parts: Service, name: str, file: str = "", resource: str = "", **over: Any) -> Evolution:
    fingerprint = Fingerprint(f"print-{over.pop('print', name)}", resource, "exception", file)
    evidence = Evidence(f"evd-{name}", fingerprint, (), (), NOW, "0")
    evolution = Evolution(
        f"evo-{name}", evidence.id, fingerprint.id, EvolutionState.MINED, parts.registry.stable()
    )
    evolution = replace(evolution, **over)
    parts.ledger.put(evidence)
    parts.ledger.put(evolution)
    return evolution


def test_two_go_on_at_a_time_and_the_next_one_when_one_has_ended(parts: Service, engine: Any) -> None:
    for name in "abc":
        opened(parts, name)
    start_due(parts, engine)
    start_due(parts, engine)
    assert engine.active(EVOLVE) == ["evo-a", "evo-b"]
    del engine.going["evo-a"]
    parts.cancel_evolution("evo-a", "a test")
    start_due(parts, engine)
    assert engine.active(EVOLVE) == ["evo-b", "evo-c"]


def test_how_many_is_a_setting(parts: Service, engine: Any) -> None:
    for name in "abcd":
        opened(parts, name)
    settings: Settings = parts.settings.model_copy(update={"evolutions": 1})
    start_due(replace(parts, settings=settings), engine)
    assert engine.active(EVOLVE) == ["evo-a"]
    settings = parts.settings.model_copy(update={"evolutions": 3})
    start_due(replace(parts, settings=settings), engine)
    assert engine.active(EVOLVE) == ["evo-a", "evo-b", "evo-c"]


DIAGNOSED = Diagnosis(Layer.TOOL, "tool/x", "tool/x/tool.py", "why")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"print": "same"}, {"print": "same"}),
        ({"file": "tool/x/tool.py | a"}, {"file": "tool/x/tool.py | b"}),
        ({"resource": "tool/x"}, {"resource": "tool/x"}),
        ({"diagnosis": DIAGNOSED, "state": EvolutionState.REPLAYING}, {"resource": "tool/x"}),
    ],
    ids=["fingerprint", "file", "resource", "diagnosed"],
)
def test_never_two_at_one_place(parts: Service, engine: Any, one: Any, other: Any) -> None:
    opened(parts, "a", **one)
    opened(parts, "b", **other)
    opened(parts, "c", file="tool/y/tool.py | a", resource="tool/y")
    start_due(parts, engine)
    assert engine.active(EVOLVE) == ["evo-a", "evo-c"]
    start_due(parts, engine)
    assert "evo-b" not in engine.going


def test_what_waits_for_the_machinery_blocks_nobody_and_not_without_bound(
    parts: Service, engine: Any
) -> None:
    names = [f"{number:02}" for number in range(20)]
    for name in names:
        opened(parts, name)
    for _ in names:
        start_due(parts, engine)
        parts.waiting.update(engine.going)
    assert len(engine.going) == 2 + WAITING_MAX


def test_a_wait_is_told_to_whoever_starts_the_next_one_and_ends_with_it(parts: Service) -> None:
    evolution = opened(parts, "a")
    away = [True]

    class Direct(Steps):
        def step(self, name: str, work: Callable[[], Any]) -> Any:
            return work()

    def work() -> str:
        if away:
            raise Unavailable("the model is away")
        return "done"

    result: list[str] = []
    held = parts._held(Direct(), evolution.id)
    thread = threading.Thread(target=lambda: result.append(held.step("x", work)))
    thread.start()
    for _ in range(1_200):
        if evolution.id in parts.waiting:
            break
        thread.join(0.05)
    assert parts.waiting == {evolution.id}
    away.clear()
    thread.join(30)
    assert result == ["done"]
    assert parts.waiting == set()


def test_an_approved_promotion_at_a_place_waits_until_the_place_is_free(parts: Service, engine: Any) -> None:
    opened(parts, "a", file="tool/x/tool.py")
    engine.going["evo-a"] = PROMOTE
    opened(parts, "b", file="tool/x/tool.py")
    start_due(parts, engine)
    assert "evo-b" not in engine.going


def test_two_edits_that_wait_at_one_place_are_tried_in_turn_and_none_while_it_is_promoted(
    parts: Service, engine: Any
) -> None:
    waits = {"state": EvolutionState.AWAITING_CONSENT, "file": "tool/x/tool.py"}
    for name in "ab":
        opened(parts, name, **waits)
    parts.fresh_due.update(("evo-a", "evo-b"))
    start_due(parts, engine)
    assert engine.going == {"evo-a": FRESH}
    del engine.going["evo-a"]
    start_due(parts, engine)
    assert engine.going == {"evo-b": FRESH}
    engine.going = {"evo-b": PROMOTE}
    parts.fresh_due.add("evo-b")
    start_due(parts, engine)
    assert engine.going == {"evo-b": PROMOTE}


def test_an_edit_that_waits_is_put_on_a_newer_base_beside_the_loop_and_before_anything_else(
    parts: Service, engine: Any
) -> None:
    """It runs safety probes, for which the loop that starts tasks does not wait."""
    base = parts.registry.stable()
    skill = "---\nname: waits\ndescription: Something.\n---\n"
    files = {"skill/waits/SKILL.md": skill}
    snapshot = parts.registry.add_candidate("cand-a", base, files)
    manifest = Manifest("evd-a", "", "", tuple(files), (), (), Layer.SKILL, "")
    parts.ledger.put(
        Candidate("cand-a", "evo-a", "p", 1, manifest, Edit(files, "an edit", ""), base, snapshot)
    )
    waiting = opened(parts, "a", state=EvolutionState.AWAITING_CONSENT, candidate_id="cand-a")
    start_due(parts, engine)
    assert engine.going == {}
    other = skill.replace("waits", "other")
    parts.registry.commit({"skill/other/SKILL.md": other.encode()}, "Another skill", "edit")
    parts.fresh_due.add("evo-a")
    start_due(parts, engine)
    assert engine.going == {"evo-a": SETTLE}
    assert parts.ledger.get(Evolution, "evo-a") == waiting
    start_due(parts, engine)
    assert engine.going == {"evo-a": SETTLE}
    assert "evo-a" in parts.fresh_due


def test_an_evolution_that_the_ledger_lost_stops_nobody(parts: Service, engine: Any) -> None:
    engine.going["evo-lost"] = EVOLVE
    opened(parts, "a")
    start_due(parts, engine)
    assert engine.active(EVOLVE) == ["evo-lost", "evo-a"]


def test_trials_of_two_evolutions_take_turns(until: Callable[..., None]) -> None:
    threads, order, go = TrialPool(lambda: 2), list[str](), threading.Event()
    begun = threading.Semaphore(0)

    def long(number: int) -> int:
        begun.release()
        go.wait(20)
        order.append("long")
        return number

    results: list[Any] = []
    one = threading.Thread(target=lambda: results.append(threads.map(long, range(200))))
    one.start()
    assert begun.acquire(timeout=20)
    assert begun.acquire(timeout=20)
    other = threading.Thread(target=lambda: threads.map(lambda _: order.append("short"), [0]))
    other.start()
    until(lambda: len(threads._waiting) == 1, "the short one waits for its turn")
    go.set()
    one.join(20)
    other.join(20)
    assert order.index("short") <= 3
    assert results == [list(range(200))]


def test_all_trials_end_before_the_first_exception_is_raised() -> None:
    ended: list[int] = []

    def work(number: int) -> None:
        if number == 1:
            raise ValueError("one")
        ended.append(number)

    with pytest.raises(ValueError, match="one"):
        TrialPool(lambda: 2).map(work, range(9))
    assert sorted(ended) == [0, *range(2, 9)]


SOURCE = '''"""Whether a number of points is a pass."""

from pydantic import BaseModel

TOOL = {"name": "NAME", "description": "Whether the points pass", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    points: int
    needed: int


class Output(BaseModel):
    grade: str


def run(input: Input) -> Output:
    if (
        input.points
        > input.needed  # as black breaks it
    ):
        return Output(grade="pass")
    return Output(grade="fail")
'''
PAIRS = ((50, 50), (40, 40), (71, 71), (60, 50), (41, 40), (9, 8), (10, 50), (39, 40), (1, 9))


@pytest.mark.sandbox
@pytest.mark.slow
def test_two_faults_are_repaired_side_by_side_and_the_later_promotion_loses_nothing(
    daemon: Any, home: Home, ledger: Ledger, make_task: Callable[..., Task], until: Any
) -> None:
    """Both comparisons stand on two lines, which the search has to cope with."""
    names = ("one", "two")
    registry = Registry(home.registry)
    for name in names:
        skill = f"skill/exam-{name}"
        files = {
            f"{skill}/tools/{name}.py": SOURCE.replace("NAME", name).encode(),
            f"{skill}/SKILL.md": f"---\nname: exam-{name}\ndescription: Grades.\n---\n".encode(),
        }
        registry.commit(files, "A skill with an honest fault", "edit")
        for points, needed in PAIRS:
            right = "pass" if points >= needed else "fail"
            task = make_task(f"exam-{name}/{name}", points=points, needed=needed)
            task = replace(task, checks=(Check("equals", {"value": right, "path": "grade"}),))
            ledger.add_task(task, Share.OPEN)
    (home.root / "policy.toml").write_text(f"[propose]\nbudget_s = 5.0\n{UNCOMPARED}")

    def mended(name: str) -> bool:
        path = f"skill/exam-{name}/tools/{name}.py"
        return b">= input.needed" in registry.files(registry.stable(), path)[path]

    daemon.start()
    until(lambda: all(map(mended, names)), "both are repaired", 120)
    until(
        lambda: len(Reader(home.ledger).find(Evolution, state=EvolutionState.PROBATION)) == 2, "the end", 60
    )
    reader = Reader(home.ledger)
    ended = [entry.at for entry in reader.entries() if entry.event == "evolution.probation"]
    begun = [item.began["reproducing"] for item in reader.find(Evolution)]
    assert len([moment for moment in begun if moment < datetime.fromisoformat(min(ended))]) >= 2
    versions = registry.versions(ResourceId(Kind.SKILL, "exam-one"))
    assert [version.origin for version in versions].count("evolution") == 1
