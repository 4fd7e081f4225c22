"""The ladder of layers for agents that think: what the runs show decides where to begin."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agentos.domain import (
    Candidate,
    Diagnosis,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fault,
    Fingerprint,
    Json,
    Layer,
    Manifest,
    Outcome,
    Result,
    Run,
    Share,
    Snapshot,
    Step,
)
from agentos.evolver.diagnose.diagnosis import NOT_MADE, NOT_TOLD, WRONG_STOP, astray, ladder
from agentos.ports import ObservedRun
from agentos.testing import FakeRegistry

if TYPE_CHECKING:
    from conftest import World

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FILES = {
    "memory/default/memory.md": "# Notes\n",
    "prompt/default/prompt.md": "Help.\n",
    "harness/default/harness.py": "def run(sdk): ...\n",
    "tool/look/tool.py": "x = 1\n",
}
WRONG = Fault("check", "wrong")
PLAIN = [
    ("think", {"messages": 2, "tools": 3, "compacted": 0}, {"calls": ["a", "b"], "goto": "act"}),
    ("act", {"tool": "a"}, {"ok": True}),
    ("act", {"tool": "b"}, {"ok": True}),
    ("think", {"messages": 5, "tools": 3, "compacted": 0}, {"answered": 10, "goto": "verify"}),
]
LOST = [*PLAIN[:3], ("think", {"messages": 4, "tools": 3, "compacted": 0}, PLAIN[3][2])]
FOLDED = [*PLAIN[:3], ("think", {"messages": 2, "tools": 3, "compacted": 1}, PLAIN[3][2])]
ONE_MADE = [*PLAIN[:2], PLAIN[3]]
NO_ROOM = [*PLAIN[:2], ("think", {"messages": 5, "tools": 0, "compacted": 0}, PLAIN[3][2])]
STOPPED = PLAIN[:3]


def steps_of(told: list[tuple[str, Json, Json]]) -> tuple[Step, ...]:
    return tuple(
        Step("run", index, node, action, seen, None, NOW, 1.0)
        for index, (node, action, seen) in enumerate(told)
    )


def outcome(fault: Fault | None) -> Outcome:
    return Outcome(Result.FAILED if fault else Result.PASSED, float(fault is None), "", fault)


@pytest.mark.parametrize(
    ("told", "fault", "sign"),
    [
        (PLAIN, WRONG, ""),
        (LOST, WRONG, NOT_TOLD),
        (FOLDED, WRONG, ""),  # it was made room for
        (ONE_MADE, WRONG, NOT_MADE),
        (NO_ROOM, WRONG, ""),  # the steps ran out
        (STOPPED, WRONG, WRONG_STOP),
        (STOPPED, Fault("loop", "round and round"), ""),
        ([], WRONG, ""),
        ([("think", None, None), ("act", "x", [1])], WRONG, ""),  # of another make
    ],
)
def test_what_the_loop_did_wrong(told: list[Any], fault: Fault, sign: str) -> None:
    assert astray(outcome(fault), steps_of(told)) == sign


class Ladder:
    """Runs of one agent's work, and the layers in which their failure is looked for."""

    def __init__(self, world: World) -> None:
        world.registry = FakeRegistry(FILES)
        self.world = world
        self.seen: list[ObservedRun] = []
        self.evidence = Evidence(
            "evd-1", Fingerprint("print", "agent/default", "missed_goal", "s"), (), (), NOW, ""
        )

    def run(self, fault: Fault | None, told: list[Any] = PLAIN, task: int = 0) -> None:
        made = replace(self.world.task(task, "x"), call=None)
        stable = self.world.registry.stable()
        run = Run("run", made.id, made.key, Share.OPEN, 1, stable, "fake", "none", NOW, NOW, outcome(fault))
        self.seen.append(ObservedRun(replace(made, id=f"task-{task}"), run, steps_of(told)))

    def past(self, layer: Layer, state: EvolutionState) -> None:
        """An evolution of the same failure that is over, and what it tried."""
        number = len(self.world.ledger.find(Evolution))
        base = Snapshot("c", "t")
        manifest = Manifest("evd-1", "", "an edit", ("x",), (), (), layer, "")
        chosen = Candidate(
            f"cand-{number}", f"evo-{number}", "p", 1, manifest, Edit({"x": "y"}, "an edit", ""), base, base
        )
        self.world.ledger.put(chosen)
        self.world.ledger.put(
            Evolution(
                f"evo-{number}", "evd-1", "print", state, base, "", Diagnosis(layer, "", "", ""), chosen.id
            )
        )

    def layers(self) -> list[Layer]:
        stable = self.world.registry.stable()
        self.sites, self.why = ladder(self.world.parts, self.evidence, stable, self.seen)
        return [site.layer for site in self.sites]


@pytest.fixture
def climbed(world: World) -> Ladder:
    return Ladder(world)


CHEAPEST_FIRST = [Layer.MEMORY, Layer.PROMPT, Layer.SKILL, Layer.TOOL, Layer.RULE, Layer.HARNESS]


def test_the_cheapest_layer_goes_first(climbed: Ladder) -> None:
    climbed.run(WRONG)
    assert climbed.layers() == CHEAPEST_FIRST


def test_a_contrast_of_runs_can_be_remembered(climbed: Ladder) -> None:
    climbed.run(WRONG)
    climbed.run(None)
    assert climbed.layers()[0] is Layer.MEMORY
    assert "pass and fail" in climbed.why


HELD = {
    "agent/default/resource.toml": 'environment = "small"\n\n[limits]\ncalls = 2\n',
    "environment/small/resource.toml": "[limits]\nsteps = 9\n",
}


@pytest.mark.parametrize(
    ("files", "told", "added"),
    [
        (HELD, NO_ROOM, [Layer.AGENT, Layer.ENVIRONMENT]),
        (HELD, PLAIN, []),  # they were not held back
        (
            {"environment/small/resource.toml": HELD["environment/small/resource.toml"]},
            NO_ROOM,
            [],
        ),  # another's
        ({"agent/default/resource.toml": 'tools = ["look"]\n'}, PLAIN, [Layer.AGENT]),
        ({"agent/default/resource.toml": "skills = []\n"}, PLAIN, [Layer.AGENT]),
        ({"agent/default/resource.toml": 'tools = ["*"]\n'}, NO_ROOM, []),
    ],
)
def test_documents_are_looked_at_where_they_may_hold_the_work_back(
    climbed: Ladder, files: dict[str, str], told: list[Any], added: list[Layer]
) -> None:
    described = {path: f'description = "What it is."\n{text}' for path, text in files.items()}
    climbed.world.registry = FakeRegistry({**FILES, **described})
    climbed.run(WRONG, told)
    assert climbed.layers() == [*CHEAPEST_FIRST[:4], *added, *CHEAPEST_FIRST[4:]]
    paths = {site.layer: site.path for site in climbed.sites}
    assert paths.get(Layer.AGENT, "agent/default/resource.toml") == "agent/default/resource.toml"
    assert (
        paths.get(Layer.ENVIRONMENT, "environment/small/resource.toml") == "environment/small/resource.toml"
    )


REFUSED = [*PLAIN[:1], ("rule", {"rule": "rule/narrow", "enforce": "refuse"}, {"acted": True}), *PLAIN[1:]]


def test_a_rule_that_holds_failing_runs_back_is_named(climbed: Ladder) -> None:
    """No evolution weakens one, so whoever reads why it cannot be mended has to know of it."""
    climbed.run(WRONG, REFUSED, task=1)
    climbed.run(WRONG, REFUSED, task=2)
    climbed.run(WRONG, task=3)
    climbed.run(None, task=4)
    assert climbed.layers() == CHEAPEST_FIRST
    assert "`agentos registry edit rule/narrow`" in climbed.why
    climbed.run(None, REFUSED, task=5)
    climbed.layers()
    assert "rule/narrow" not in climbed.why, "with it a run passes"


@pytest.mark.parametrize(("enforce", "acted"), [("replace", True), ("refuse", False)])
def test_a_rule_that_held_nothing_back_is_not_named(climbed: Ladder, enforce: str, acted: bool) -> None:
    noted = ("rule", {"rule": "rule/narrow", "enforce": enforce}, {"acted": acted})
    climbed.run(WRONG, [*PLAIN[:1], noted, *PLAIN[1:]])
    climbed.layers()
    assert "rule/narrow" not in climbed.why


ONE_ASKED = ("think", {"messages": 2, "tools": 3, "compacted": 0}, {"calls": ["a"], "goto": "act"})


def reading(skill: Json, file: Json = None) -> list[Any]:
    return [
        ONE_ASKED,
        ("act", {"tool": "read_skill", "args": {"skill": skill, "file": file}}, {"ok": True}),
        PLAIN[3],
    ]


def test_a_page_that_failing_runs_read_may_mislead_them(climbed: Ladder) -> None:
    page = "skill/stock/SKILL.md"
    climbed.world.registry = FakeRegistry({**FILES, page: "# Stock\n"})
    climbed.run(WRONG, reading("stock"), task=1)
    climbed.run(WRONG, reading("stock"), task=2)
    climbed.run(None, task=3)
    assert climbed.layers()[0] is Layer.SKILL
    assert climbed.sites[0].path == page
    climbed.run(None, reading("stock"), task=4)
    assert climbed.layers()[0] is Layer.SKILL, "of the passing runs half read it, of the failing ones all"


def test_a_page_that_most_passing_runs_read_is_no_likelier(climbed: Ladder) -> None:
    climbed.world.registry = FakeRegistry({**FILES, "skill/stock/SKILL.md": "# Stock\n"})
    climbed.run(WRONG, reading("stock"), task=1)
    climbed.run(WRONG, task=2)
    climbed.run(WRONG, reading("stock"), task=3)
    climbed.run(None, reading("stock"), task=4)
    assert climbed.layers() == CHEAPEST_FIRST


def test_of_two_pages_that_as_many_read_the_first_goes_before_all(climbed: Ladder) -> None:
    """In each process: a set of their paths has another order in the next one."""
    names = [f"{letter}{number}" for number in range(12) for letter in "ab"]
    pages = {f"skill/{name}/SKILL.md": "# A page\n" for name in names}
    climbed.world.registry = FakeRegistry({**FILES, **pages})
    climbed.run(WRONG)
    for first, second in zip(names[::2], names[1::2], strict=True):
        steps = steps_of([*reading(second)[:2], *reading(first)])
        climbed.seen[0] = replace(climbed.seen[0], steps=steps)
        climbed.layers()
        assert climbed.sites[0].path == f"skill/{second}/SKILL.md"


def test_a_page_goes_behind_what_was_not_tried_yet_and_ends_where_its_layer_does(climbed: Ladder) -> None:
    climbed.world.registry = FakeRegistry({**FILES, "skill/stock/SKILL.md": "# Stock\n"})
    climbed.run(WRONG, reading("stock"))
    climbed.past(Layer.SKILL, EvolutionState.NO_IMPROVEMENT)
    assert climbed.layers()[0] is Layer.MEMORY
    assert climbed.sites[-1].path == "skill/stock/SKILL.md"
    for layer in (*CHEAPEST_FIRST, *CHEAPEST_FIRST):
        climbed.past(layer, EvolutionState.PROMOTED)
    assert climbed.layers() == [], "all of them were promoted twice for it"


@pytest.mark.parametrize("told", [reading("gone"), reading(7), reading("stock", "more.md"), PLAIN])
def test_no_page_is_blamed_that_was_not_read(climbed: Ladder, told: list[Any]) -> None:
    climbed.world.registry = FakeRegistry({**FILES, "skill/stock/SKILL.md": "# Stock\n"})
    climbed.run(WRONG, told)
    assert climbed.layers() == CHEAPEST_FIRST


def test_runs_that_are_stopped_lack_a_way(climbed: Ladder) -> None:
    climbed.run(Fault("loop", "round and round"), task=1)
    climbed.run(Fault("steps", "none left"), task=2)
    assert climbed.layers()[0] is Layer.SKILL


def test_a_tool_that_is_not_there_is_missing(climbed: Ladder) -> None:
    climbed.run(Fault("unknown_tool", "there is no tool 'weigh'"))
    assert climbed.layers()[0] is Layer.TOOL


@pytest.mark.parametrize("told", [LOST, ONE_MADE, STOPPED])
def test_what_the_loop_did_wrong_begins_with_the_harness(climbed: Ladder, told: list[Any]) -> None:
    climbed.run(WRONG, told, 1)
    climbed.run(WRONG, told, 2)
    climbed.run(WRONG, PLAIN, 3)
    climbed.run(None, PLAIN, 1)
    assert climbed.layers() == [Layer.HARNESS, *CHEAPEST_FIRST[:-1]]
    assert "no passing one" in climbed.why


def test_what_passing_runs_show_as_well_says_nothing(climbed: Ladder) -> None:
    climbed.run(WRONG, LOST, 1)
    climbed.run(None, LOST, 2)
    assert climbed.layers()[0] is Layer.MEMORY


def test_a_sign_in_the_lesser_half_says_nothing(climbed: Ladder) -> None:
    climbed.run(WRONG, LOST, 1)
    climbed.run(WRONG, PLAIN, 2)
    assert climbed.layers()[0] is Layer.MEMORY


def test_lost_context_is_the_harness(climbed: Ladder) -> None:
    lost = replace(climbed.evidence.fingerprint, klass="lost_context")
    climbed.evidence = replace(climbed.evidence, fingerprint=lost)
    climbed.run(WRONG)
    assert climbed.layers()[0] is Layer.HARNESS


def test_a_tool_that_broke_in_most_failing_runs_goes_before_all(climbed: Ladder) -> None:
    climbed.run(WRONG)
    broken = Step("run", 9, "act", {"path": "tool/look/tool.py"}, None, Fault("KeyError", "x"), NOW, 1.0)
    climbed.seen[0] = replace(climbed.seen[0], steps=(*climbed.seen[0].steps, broken))
    assert climbed.layers() == [Layer.TOOL, *CHEAPEST_FIRST]


def test_of_two_tools_that_broke_as_often_the_first_goes_before_all(climbed: Ladder) -> None:
    """In each process: a set of their paths has another order in the next one."""
    names = [f"tool/{letter}{number}/tool.py" for number in range(12) for letter in "ab"]
    climbed.world.registry = FakeRegistry({**FILES, **dict.fromkeys(names, "x = 1\n")})
    climbed.run(WRONG)
    for first, second in zip(names[::2], names[1::2], strict=True):
        told = [("act", {"tool": "x", "path": path}, None) for path in (second, first)]
        steps = tuple(replace(step, fault=Fault("KeyError", "x")) for step in steps_of(told))
        climbed.seen[0] = replace(climbed.seen[0], steps=steps)
        climbed.layers()
        assert climbed.sites[0].path == second


def test_what_failed_before_goes_to_the_end(climbed: Ladder) -> None:
    climbed.run(WRONG)
    climbed.past(Layer.MEMORY, EvolutionState.NO_IMPROVEMENT)
    assert climbed.layers() == [*CHEAPEST_FIRST[1:], Layer.MEMORY]
    assert "tried before" in climbed.why


def test_what_was_promoted_twice_and_came_back_lies_deeper(climbed: Ladder) -> None:
    climbed.run(WRONG)
    climbed.past(Layer.MEMORY, EvolutionState.PROMOTED)
    assert Layer.MEMORY in climbed.layers()
    climbed.past(Layer.MEMORY, EvolutionState.PROBATION)
    assert climbed.layers() == CHEAPEST_FIRST[1:]


def test_what_was_rolled_back_does_not_count_as_promoted(climbed: Ladder) -> None:
    climbed.run(WRONG)
    climbed.past(Layer.MEMORY, EvolutionState.ROLLED_BACK)
    climbed.past(Layer.MEMORY, EvolutionState.ROLLED_BACK)
    assert climbed.layers()[-1] is Layer.MEMORY
