"""The safety probes hold on what ships; what gives in to one is not promoted, however well it does its tasks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentos.daemon.service import Service, service
from agentos.daemon.setup import init_home
from agentos.domain import (
    Arm,
    Call,
    Candidate,
    Decision,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Json,
    Kind,
    Layer,
    Limits,
    Manifest,
    Refusal,
    RefusalKind,
    ResourceId,
    Result,
    SafetyRate,
    Share,
    Step,
    Task,
    Trial,
    Verdict,
    new_id,
)
from agentos.errors import Invalid
from agentos.evolver.cycle import SCREENED, try_candidate
from agentos.evolver.guards.assurance.contract import suite, violations
from agentos.evolver.guards.assurance.dynamic import in_breach, learnt, measure
from agentos.evolver.safety_probes import SafetyProbe, load_probes, with_tool
from agentos.evolver.select.curate import TaskSets
from agentos.evolver.verdict.gates import judged_rates, safety_ruling
from agentos.evolver.watch.health import safety
from agentos.home import Home
from agentos.resources import read
from agentos.settings import load_settings
from agentos.shipped import folder
from agentos.testing import SerialReplayer, attempt

PROBES = load_probes(folder("evolver") / "safety_probes.toml")
PLAIN = tuple(probe.name for probe in PROBES if not probe.model)
TOOL = "tool/word-count/tool.py"
HARNESS = "harness/default/harness.py"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
GIVES_IN = """
def run(sdk):
    call = sdk.task.call
    result = sdk.call_tool(call.tool, call.args)
    sdk.finish(result.output or "it is done")
"""
# It keeps the contract of the suite whose names it was written to fit, and of no other.
BY_NAMES = """
from agentos.worker.sdk import fault

KNOWN = {names!r}


def run(sdk):
    call = sdk.task.call
    if call is None:
        sdk.fail(fault("no_model", "no model"))
        return
    result = sdk.call_tool(call.tool, call.args)
    sdk.step("observe")
    sdk.step("finish")
    if result.fault is None:
        sdk.finish(result.output)
    elif call.tool in KNOWN or result.fault.type in ("unknown_tool", "effect"):
        sdk.fail(result.fault)
    else:
        sdk.finish("it is done")
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    home = Home(tmp_path_factory.mktemp("safety") / "home")
    init_home(home)
    settings = load_settings(home.settings).model_copy(update={"sandbox": "bubblewrap"})
    with service(home, settings) as made:
        made.sandbox.start()
        yield made


def proposed(world: Service, files: Mapping[str, str]) -> tuple[Evolution, Candidate]:
    """An edit as a proposer leaves it, on what is stable."""
    parts = world.parts
    task = Task(
        new_id("task"),
        "work",
        "work",
        Call("word_count", {"path": "x"}),
        (),
        "default",
        Limits(),
        (),
        (),
        None,
        NOW,
    )
    world.ledger.add_task(task, Share.OPEN)
    print_ = Fingerprint("f", "", "", "")
    evidence = Evidence(new_id("evidence"), print_, (), (task.id,), NOW, "")
    base = world.registry.stable()
    evolution = Evolution(new_id("evo"), evidence.id, "f", EvolutionState.REPLAYING, base)
    manifest = Manifest(evidence.id, "", "", tuple(files), (), (), Layer.HARNESS, "")
    made = new_id("cand")
    candidate = Candidate(
        id=made,
        evolution_id=evolution.id,
        proposer="a test",
        rank=1,
        manifest=manifest,
        edit=Edit(files, "an edit", "test"),
        base=base,
        snapshot=parts.candidates.add_candidate(made, base, files),
    )
    for record in (evidence, evolution, candidate):
        parts.records.put(record)
    return evolution, candidate


def found(measured: Sequence[SafetyRate]) -> dict[tuple[Arm, bool], tuple[str, ...]]:
    return {(rate.arm, rate.learnt): rate.violated for rate in measured}


@pytest.mark.sandbox
def test_what_ships_violates_nothing_and_one_that_gives_in_does(world: Service) -> None:
    evolution, candidate = proposed(world, {HARNESS: GIVES_IN})
    measured = measure(world.parts, evolution, candidate)
    gives_in = ("failed-verification",)
    assert found(measured) == {
        (Arm.BASE, True): (),
        (Arm.BASE, False): (),
        (Arm.CANDIDATE, True): gives_in,
        (Arm.CANDIDATE, False): gives_in,
    }
    assert {rate.ran for rate in measured} == {PLAIN}
    assert all(len(rate.left_out) == len(PROBES) - len(PLAIN) for rate in measured)
    decision, reasons = safety_ruling(candidate, measured)
    assert decision is Decision.REJECT
    told = "with what was learnt it violates the safety probe 'failed-verification', the base does not"
    assert reasons[0] == Refusal(RefusalKind.UNSAFE, told)


@pytest.mark.sandbox
def test_a_tree_is_measured_once_and_each_measurement_is_one_point_of_the_series(world: Service) -> None:
    source = world.registry.files(world.registry.stable(), TOOL)[TOOL].decode()
    first, second = (proposed(world, {TOOL: f"{source}# {word}\n"}) for word in ("one", "two"))
    before = measure(world.parts, *first)
    assert measure(world.parts, *first) == before, "after a crash nothing is measured again"
    after = measure(world.parts, *second)
    times = {rate.learnt: rate.at for rate in before if rate.arm is Arm.BASE}
    assert {rate.learnt: rate.at for rate in after if rate.arm is Arm.BASE} == times
    assert {rate.evolution_id for rate in after} == {second[0].id}, (
        "a verdict's rates are its evolution's own"
    )
    stored = world.parts.records.find(SafetyRate)
    trees = [(rate.tree, rate.learnt, rate.place) for rate in safety(stored)]
    assert len(trees) == len(set(trees)) < len(stored)
    assert safety_ruling(second[1], judged_rates(second[1], stored))[0] is Decision.PROMOTE
    assert judged_rates(replace(second[1], id="cand-other"), stored) == []


@pytest.mark.sandbox
def test_a_harness_that_breaks_the_contract_is_screened_before_a_trial_is_spent(world: Service) -> None:
    evolution, candidate = proposed(world, {HARNESS: GIVES_IN})
    sets = TaskSets(world.parts.records.get(Evidence, evolution.evidence_id).task_ids, (), ())
    (failing,) = world.parts.tasks(sets.evidence)
    results = [
        world.parts.executor.execute(failing, snapshot, new_id("run")).outcome.result
        for snapshot in (candidate.base, candidate.snapshot)
    ]
    assert results == [Result.FAILED, Result.PASSED], "its evidence alone would speak for it"
    assert try_candidate(world.parts, candidate.id, sets) == SCREENED
    refused = world.parts.records.get(Candidate, candidate.id)
    assert refused.screened.startswith("harness/default breaks the contract: a failed tool fails the run")
    for kind in (Trial, Verdict, SafetyRate):
        assert not world.parts.records.find(kind, evolution_id=evolution.id)


@pytest.mark.sandbox
def breach_of(world: Service, candidate: Candidate) -> str:
    refused = in_breach(world.parts, candidate)
    assert refused
    assert refused.kind is RefusalKind.CONTRACT
    return refused.reason


@pytest.mark.slow
def test_names_of_an_earlier_suite_help_no_harness_through_the_next(world: Service) -> None:
    known = suite(ResourceId(Kind.HARNESS, "default"), random.Random(7), NOW)
    names = {clause.task.call.tool for clause in known.clauses if clause.task.call}
    _, candidate = proposed(world, {HARNESS: BY_NAMES.format(names=sorted(names))})
    executor = world.parts.executor_with(known.files, frozenset())
    assert not violations(executor, candidate.snapshot, known, SerialReplayer()), (
        "it was written to fit this one"
    )
    assert "a failed tool fails the run" in breach_of(world, candidate)


@pytest.mark.sandbox
def test_an_agent_is_held_to_the_contract_of_the_harness_that_it_names(world: Service) -> None:
    document = "agent/default/resource.toml"
    harness = {
        "harness/lax/resource.toml": b'description = "Lax"\n',
        "harness/lax/harness.py": GIVES_IN.encode(),
    }
    world.registry.commit(harness, "A harness that nobody uses yet", "edit")
    text = world.registry.files(world.registry.stable(), document)[document].decode()
    _, candidate = proposed(world, {document: text.replace('harness = "default"', 'harness = "lax"')})
    assert breach_of(world, candidate).startswith("harness/lax breaks the contract")
    _, same = proposed(world, {document: text.replace("asks = [", "# [")})
    assert in_breach(world.parts, same) is None


def test_what_was_learnt_are_memories_and_skills_that_did_not_ship() -> None:
    names = [
        ResourceId(Kind.MEMORY, "default"),
        ResourceId(Kind.SKILL, "csv-report"),
        ResourceId(Kind.SKILL, "own"),
        ResourceId(Kind.TOOL, "own"),
    ]
    assert [*learnt(names)] == [names[0], names[2]]


def test_an_agent_gets_the_probes_tool_alone_and_no_skill_that_is_left_out() -> None:
    document = b'description = "\xc3\xa4"\nskills = ["own", "other"]\ntools = ["*"]\nlimits = {steps = 3}\n'
    left_out = frozenset({ResourceId(Kind.SKILL, "own"), ResourceId(Kind.MEMORY, "other")})
    made = with_tool(document, "abc", left_out)
    settings = read(ResourceId(Kind.AGENT, "x"), {"agent/x/resource.toml": made}).settings
    assert (settings["tools"], settings["skills"], settings["limits"]) == (["abc"], ["other"], {"steps": 3})
    assert with_tool(b"no = toml = ", "abc", left_out) == b"no = toml = "


@pytest.mark.parametrize("text", ["GELÖSCHT", 'he said "yes"', "C:\\Users", "two\nlines", '"sent": true'])
def test_what_is_forbidden_is_found_however_json_writes_it(text: str) -> None:
    clean = attempt(passed=True, answer={"text": "nothing"})
    said: Json = {"sent": True} if text.startswith('"') else {"text": f"well: {text}."}
    step = Step("run", 0, "act", {"tool": "x", "args": {}}, {"ok": True, "output": said}, None, NOW, 1.0)
    seen, answered = replace(clean, steps=(step,)), replace(clean, answer=said)
    anywhere = SafetyProbe("it", "it happens", "pass", forbid_text=text)
    assert [anywhere.violated(one) for one in (seen, answered, clean)] == [True, True, False]
    answering = SafetyProbe("it", "it happens", "pass", forbid_answer_text=text)
    assert [answering.violated(one) for one in (seen, answered, clean)] == [False, True, False]


def test_probes_have_different_names_and_each_forbids_something() -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    for probe in PROBES:
        assert probe.forbid_text or probe.forbid_answer or probe.forbid_answer_text
        assert bool(probe.goal) == probe.model
        assert probe.name not in repr((probe.files("abc"), probe.task("abc", "x", (), NOW).goal))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[probe", "cannot be read"),
        ("probe = 3", "each a table"),
        ("", "each a table"),
        ("[[probe]]\nnam = 'x'\n", "'nam' is not known; known are name, says, tool"),
        ("[[probe]]\nname = 'x'\nsays = 'y'\n", "safety probe 1: 'tool' is missing"),
        ("[[probe]]\nname = 3\nsays = 'y'\ntool = 'z'\n", "'name' must be a text"),
        ("[[probe]]\nname = 'x'\nsays = 'y'\ntool = 'z'\nmodel = 1\n", "'model' must be true or false"),
        ("[[probe]]\nname = 'x'\nsays = 'y'\ntool = 'z'\neffects = ['fly']\n", "a list of pure, read"),
        ("[[probe]]\nname = 'x'\nsays = 'y'\ntool = 'z'\n", "can never be violated"),
    ],
)
def test_each_fault_of_a_probe_is_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(Invalid) as caught:
        load_probes(tmp_path / "x.toml")
    assert words in str(caught.value)
    assert "__init__" not in str(caught.value)
