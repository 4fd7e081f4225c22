"""A coding agent mends what the search cannot: real daemon, real boxes, real gateway, real HTTP to its model."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import AT_WORK, Candidate, Check, Evolution, EvolutionState, Json, Share, Task
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import ModelServer, call, say
from agentos.testing.modelserver.replies import ServerReply
from tests.daemon.conftest import UNCOMPARED
from tests.daemon.thinking_world import KEY, KEY_ENV, results, turn_of, typed

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "coding-agent"
PATH = "skill/numerals/tools/roman.py"
FAULTY = '''"""Roman numerals."""

from pydantic import BaseModel

TOOL = {"name": "roman", "description": "A number as a Roman numeral", "effects": ["pure"], "dependencies": []}
SIGNS = [(50, "L"), (10, "X"), (5, "V"), (1, "I")]


class Input(BaseModel):
    n: int


class Output(BaseModel):
    numeral: str


def run(input: Input) -> Output:
    left, numeral = input.n, ""
    for value, sign in SIGNS:
        while left >= value:
            numeral += sign
            left -= value
    return Output(numeral=numeral)
'''
OLD_SIGNS, NEW_SIGNS = (
    '(10, "X"), (5, "V"), (1, "I")',
    '(40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")',
)
NUMERALS = {4: "IV", 9: "IX", 14: "XIV", 44: "XLIV", 3: "III", 6: "VI", 11: "XI", 58: "LVIII"}


class Coding:
    """The model: looks at the evidence, fills in the manifest, makes the edit. By the request alone."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Json, number: int) -> ServerReply:
        goal = str(request["messages"][1]["content"])
        seen = results(request)
        phase = "manifest" if goal.startswith("# Find the cause") else "edit"
        self.asked[f"{phase} {turn_of(request)}"] += 1
        if len(seen) >= 2:
            return say("done")
        if phase == "edit":
            return self._edit(len(seen))
        if not seen:
            return call("shell", {"command": "cat evidence/overview.md evidence/runs/*.md"})
        return self._manifest(seen[0])

    def _manifest(self, evidence: str) -> ServerReply:
        tasks = sorted(set(re.findall(r"tasks/(task-\w+)\.md", evidence)))
        said = {
            "cause": "Four and nine are written by adding, not by taking away",
            "edit": "Add the signs of 4, 9 and 40",
            "files": [PATH],
            "predicted_fixes": tasks,
            "tasks_at_risk": [],
            "why_this_layer": "The table of signs is the tool's own",
        }
        text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in said.items())
        return call("write_file", {"path": "MANIFEST.toml", "content": text})

    def _edit(self, turn: int) -> ServerReply:
        if turn == 0:
            return call("shell", {"command": f"cat MANIFEST.toml checkout/{PATH}"})
        return call(
            "write_file",
            {"path": f"checkout/{PATH}", "content": FAULTY.replace(OLD_SIGNS, NEW_SIGNS)},
            ("write_file", {"path": "checkout/skill/numerals/SKILL.md", "content": "Always say IV."}),
        )


@pytest.fixture
def model(home: Home) -> Iterator[tuple[Coding, ModelServer]]:
    """The scripted model and its server, known to the home by its name alone."""
    policy = Coding()
    with ModelServer(policy) as server:
        typed(home, "model", "add", "coder", "--model", "openai/coder", "--provider", "local", "--api-base",
              server.base_url, "--key-env", KEY_ENV, "--input-price", "1", "--output-price", "2")  # fmt: skip
        # nobody else shall ask it: neither agents, nor the proposer that writes by itself
        kept = [line for line in home.settings.read_text().splitlines() if not line.startswith("model =")]
        home.settings.write_text("\n".join(kept) + "\n")
        yield policy, server


@pytest.fixture
def numerals(home: Home, ledger: Ledger, make_task: Callable[..., Task]) -> list[Task]:
    """The faulty skill, its tasks, and the example's agent as the coder."""
    files = {
        PATH: FAULTY.encode(),
        "skill/numerals/SKILL.md": b"---\nname: numerals\ndescription: Roman numerals.\n---\n",
    }
    Registry(home.registry).commit(files, "A skill whose table is not complete", "edit")
    shutil.copytree(EXAMPLE / "program", home.root / "coders" / "mine")
    document = (EXAMPLE / "coders.toml").read_text()
    (home.root / "coders.toml").write_text(f'{document}model = "coder"\n')
    (home.root / "policy.toml").write_text(f"[propose]\nbudget_s = 0.5\n{UNCOMPARED}")
    made = []
    for n, numeral in NUMERALS.items():
        task = make_task("numerals/roman", n=n)
        made.append(replace(task, checks=(Check("equals", {"value": numeral, "path": "numeral"}),)))
        ledger.add_task(made[-1], Share.OPEN)
    return made


def ended(home: Home) -> bool:
    found = Reader(home.ledger).find(Evolution)
    return bool(found) and not any(item.state in AT_WORK for item in found)


def promoted(home: Home) -> tuple[Evolution, Candidate]:
    (evolution,) = Reader(home.ledger).find(Evolution)
    assert evolution.state is EvolutionState.PROBATION, evolution.reason
    (candidate,) = [item for item in Reader(home.ledger).find(Candidate) if item.id == evolution.candidate_id]
    return evolution, candidate


def test_a_coding_agent_mends_what_the_search_cannot_also_when_it_is_killed(
    daemon: Any, home: Home, numerals: list[Task], model: tuple[Coding, ModelServer], until: Any
) -> None:
    daemon.environment = {KEY_ENV: KEY}
    asked, _ = model
    daemon.start()
    until(lambda: asked.asked["edit 0"], "the edit is being made", 120)
    daemon.signal(signal.SIGKILL)
    daemon.ended()
    daemon.start()
    until(lambda: ended(home), "the evolution has ended", 120)
    evolution, candidate = promoted(home)
    assert candidate.proposer == "command"
    assert candidate.edit.operator == "command (mine)"
    assert candidate.edit.files == {PATH: FAULTY.replace(OLD_SIGNS, NEW_SIGNS)}
    assert set(candidate.manifest.predicted_fixes) <= {task.id for task in numerals[:4]}
    assert candidate.manifest.cause.startswith("Four and nine")

    assert set(asked.asked) == {f"{phase} {turn}" for phase in ("manifest", "edit") for turn in range(3)}
    again = {name for name, count in asked.asked.items() if count > 1}
    assert again <= {"edit 0"}, "what was answered before the kill was not asked again"
    listed = json.loads(typed(home, "audit", "list", "--json", "--limit", "200"))
    notes = [item for item in listed if item["event"] == "proposer.command"]
    assert {item["subject"] for item in notes} == {evolution.id}
    told = {note["detail"]["phase"]: note["detail"] for note in notes}
    assert "checkout/skill/numerals/SKILL.md: the manifest does not name it" in str(told)
    assert [told["manifest-0"]["calls"], told["edit"]["calls"]] == [3, 3]
