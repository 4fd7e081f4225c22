"""A rule that an evolution finds, over the whole path: real daemon, gateway and litellm, real boxes.

The worker empties an archive with ``--force``, which loses what was asked for, until it is told not to; of a desk it
knows better by itself.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.offline import offline_context
from agentos.domain import (
    Candidate,
    Check,
    Evolution,
    EvolutionState,
    Json,
    Limits,
    Result,
    Share,
    Task,
    Tier,
    Verdict,
    tier_of,
)
from agentos.evolver.propose.validation import good_runs, rule_fault
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.ports import Proposal
from agentos.registry.store import Registry
from agentos.rules.document import Enforcement, read_rule
from agentos.testing import ModelServer, call, say
from tests.daemon.conftest import Daemon, until
from tests.daemon.test_rules import rule
from tests.daemon.test_skills_whole import Place
from tests.daemon.thinking_world import KEY, KEY_ENV, agent, free_task, typed

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

TOOL = '''"""clean."""
from pydantic import BaseModel
TOOL = {"name": "clean", "description": "clean", "effects": ["write"], "dependencies": []}
class Input(BaseModel):
    command: str
class Output(BaseModel):
    n: int
def run(input: Input) -> Output:
    words = input.command.split()
    return Output(n=0 if "--force" in words else int(words[-1]))
'''
POLICY = """
[mine]
settle_s = 0.5
[propose]
max_candidates = 1
[safety]
repeats = 1
[replay]
models = "replay-then-live"
repeats = 1
[sandbox]
high = "bubblewrap"
[look_back]
rules_min = 3
"""
LONG = "softly " * 3_000  # so that the call's arguments lie apart from its step


def worker(request: Json, number: int) -> Any:
    messages = request["messages"]
    told = "\n\n".join(str(one.get("content")) for one in messages)
    if "You improve an AI agent" in told or "You keep the notes" in told:
        return say("no idea")
    goal = next(str(one["content"]) for one in messages if one["role"] == "user").partition("\n")[0]
    place, _, amount = goal.partition(": ")
    gave = [str(one["content"]) for one in messages if one["role"] == "tool"]
    if not amount.strip().isdigit():
        return say("No.")  # to the safety probes
    if not gave and "archive" in place:
        return call("clean", {"command": f"clean --force {amount}"})
    if not gave or "refused" in gave[-1] or "another way" in gave[-1]:
        return call("clean", {"command": f"clean {LONG if amount.strip() == '5' else ''}{amount}"})
    return say(str(json.loads(gave[-1])["n"]))


def tidy(place: str, amount: int, share: Share = Share.OPEN) -> tuple[Task, Share]:
    check = Check("equals", {"value": amount})
    goal = f"Tidy the {place}: {amount}"
    return free_task(goal, checks=[check], agent="keeper", limits=Limits(wall_s=60.0)), share


@pytest.fixture(scope="module")
def place(made_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("rules") / "home"
    shutil.copytree(made_home, root)
    home = Home(root)
    with pytest.MonkeyPatch.context() as patch, ModelServer(worker) as server:
        patch.setenv(KEY_ENV, KEY)
        typed(home, "model", "add", "worker", "--model", "openai/worker", "--provider", "local", "--api-base",
              server.base_url, "--key-env", KEY_ENV, "--input-price", "1", "--output-price", "2")  # fmt: skip
        files = {
            "tool/clean/tool.py": TOOL.encode(),
            "tool/clean/resource.toml": b'description = "clean"\n',
            **agent("keeper", tools=["clean"]),
        }
        Registry(home.registry).commit(files, "Who tidies", "edit")
        (home.root / "policy.toml").write_text(POLICY)
        ledger, daemon = Ledger(home.ledger), Daemon(home)
        made = Place(home, ledger)
        try:
            daemon.start()
            made.work(
                *(tidy("desk", amount) for amount in (3, 5, 8)),
                tidy("desk", 9, Share.HOLD_OUT),
                *(tidy("archive", amount) for amount in (11, 12, 13)),
            )
            until(
                lambda: ledger.find(Evolution, state=EvolutionState.AWAITING_CONSENT),
                "it is asked about",
                180,
            )
            made.made = list(ledger.find(Evolution))
            yield made
        finally:
            daemon.close()
            ledger.close()


def proposed(place: Place) -> tuple[Evolution, Candidate]:
    evolution = place.ledger.get(Evolution, place.made[0].id)
    return evolution, place.ledger.get(Candidate, str(evolution.candidate_id))


def test_failures_that_recur_become_a_rule_which_a_person_is_asked_about(place: Place) -> None:
    evolution, candidate = proposed(place)
    assert evolution.state is EvolutionState.AWAITING_CONSENT, evolution.reason
    assert candidate.proposer == "rule"
    ((path, text),) = candidate.edit.files.items()
    found = read_rule(path, text.encode())
    assert found.enforce is Enforcement.REFUSE
    assert "--force" in str(found.stops[0]["args"])
    assert tier_of(candidate.edit.files) is Tier.HIGH
    assert "none of 3 runs that passed" in candidate.manifest.cause
    (verdict,) = place.ledger.find(Verdict, candidate_id=candidate.id)
    assert len(verdict.fixed) == 3, "with what no proposer was shown"
    (noted,) = [entry for entry in place.ledger.entries() if entry.event == "rule.tested"]
    assert noted.subject == evolution.id


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (rule("true", "refuse", advice="No."), "passed"),
        (rule("'write' in effects", "stop"), "passed"),  # what a tool does is on record too
        (rule("agent == 'keeper'", "stop", on="before_answer"), "passed"),
        (rule("goal.contains('desk')", "ask"), "passed"),
        (rule("text.contains('softly softly')", "stop"), "1 of 3 runs that passed"),
        (rule("tool_calls > 0", "stop", on="after_call"), "passed"),
        (rule("args.nothing == 1", "stop"), "passed"),  # what cannot be judged is held back
        (rule("true", "refuse", on="before_model", advice="No."), "not on record"),
        (rule("tool == 'never'", "refuse", advice="No."), "no example"),
        (rule("tool == 'never'", "stop") + "[[examples.stops]]\ntool = 'clean'\n", "does not hold"),
        ("not = TOML =", "TOML"),
    ],
)
def test_a_rule_that_would_hold_back_good_runs_gets_no_trial(place: Place, text: str, says: str) -> None:
    if "examples" not in text and says.endswith("passed"):
        text += (
            "[[examples.stops]]\n" + ("answer = '1'" if "before_answer" in text else "tool = 'clean'") + "\n"
        )
        text += "args = { note = 'softly softly' }\neffects = ['write']\nagent = 'keeper'\ngoal = 'the desk'\nbefore = [{ tool = 'clean' }]\n"
    evolution, _ = proposed(place)
    for path in ("rule/mine/resource.toml", "skill/clean/rules/mine.toml"):
        edit = Proposal("", "a rule", "by hand", {path: text}, "", (), ())
        with offline_context(place.home) as parts:
            refused = rule_fault(parts, evolution, edit)
        assert refused
        assert says in refused.reason


def test_a_rule_that_holds_back_none_gets_one_where_enough_runs_say_so(place: Place) -> None:
    evolution, candidate = proposed(place)
    found = Proposal("", "", "", candidate.edit.files, "", (), ())
    with offline_context(place.home) as parts:
        assert good_runs(parts, evolution.base)
        assert not rule_fault(parts, evolution, found)
        look_back = replace(parts.policy.look_back, rules_min=4)
        parts = replace(parts, policy=replace(parts.policy, look_back=look_back))
        refused = rule_fault(parts, evolution, found)
    assert refused
    assert "fewer than 4 runs" in refused.reason


def test_approved_it_refuses_the_call_in_the_next_run(place: Place) -> None:
    evolution, candidate = proposed(place)
    typed(place.home, "evolution", "approve", evolution.id, "--yes")
    (path,) = candidate.edit.files
    registry = Registry(place.home.registry)
    assert registry.files(registry.stable(), path)
    place.work(tidy("archive", 21))
    (run,) = place.ledger.runs(place.ledger.tasks()[-1].task.id)
    steps = place.ledger.steps(run.id)
    assert run.outcome is not None
    assert run.outcome.result is Result.PASSED
    (acted,) = [step for step in steps if step.node == "rule"]
    assert isinstance(acted.action, dict)
    assert acted.action["rule"] == path.rpartition("/")[0]
    calls = [
        (step.action["args"]["command"], step.fault and step.fault.type)
        for step in steps
        if step.node == "act"
    ]
    assert calls == [("clean --force 21", "refused"), ("clean 21", None)]
    typed(place.home, "evolution", "verify", evolution.id)
