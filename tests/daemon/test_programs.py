"""A harness that is a program of its own is held to the clauses that can be asked of any program."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence

import pytest

from agentos.daemon.service import Service, service
from agentos.domain import Kind, ResourceId, Snapshot
from agentos.evolver.guards.assurance.dynamic import breaches
from agentos.evolver.promote.probing import probe
from agentos.home import Home
from agentos.ports import Plan
from agentos.sandboxes.choice import Choice
from agentos.settings import load_settings

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

NAME = ResourceId(Kind.HARNESS, "script")
MAIN = f"{NAME}/main.py"
DOCUMENT = b'description = "A program"\ncommand = ["{python}", "{harness}/main.py"]\n'
ASKS = """
import json, os, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
said = {"messages": [{"role": "user", "content": "What?"}]}
with urllib.request.urlopen(urllib.request.Request(url, json.dumps(said).encode())) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
"""
ANSWERS = "print('as ever')\n"
CRASHES = "import no_such_module\n"
HANGS = "import time\ntime.sleep(600)\n"
TRIES_FOR_EVER = "while True:\n    try:\n" + textwrap.indent(ASKS, " " * 8)
TRIES_FOR_EVER += "    except OSError:\n        pass\n"


@pytest.fixture
def made(home: Home, choice: Choice) -> Iterator[Service]:
    with service(home, load_settings(home.settings), given=choice) as running:
        yield running


@pytest.fixture
def program(made: Service) -> Callable[[str], Snapshot]:
    """Commits the program, with an agent that is driven by it."""

    def commit(text: str) -> Snapshot:
        agent = b'description = "A program"\nharness = "script"\n'
        files = {f"{NAME}/resource.toml": DOCUMENT, MAIN: text.encode(), "agent/script/resource.toml": agent}
        return made.registry.commit(files, "A program", "edit")

    return commit


@pytest.fixture
def broken(made: Service) -> Callable[..., Sequence[str]]:
    """What an edit breaks of the contract."""
    count = iter(range(100))

    def tried(base: Snapshot, text: str, plan: Plan | None = None) -> Sequence[str]:
        snapshot = made.registry.add_candidate(f"cand-{next(count)}", base, {MAIN: text})
        return breaches(made.parts, NAME, snapshot, base, plan)

    return tried


def test_an_edit_has_to_bring_a_task_to_an_end_and_to_ask_where_it_asked(
    program: Callable[[str], Snapshot], broken: Callable[..., Sequence[str]]
) -> None:
    base = program(ASKS)
    assert broken(base, ASKS + "# sound\n", Plan()) == []
    (by_heart,) = broken(base, ANSWERS, Plan())
    assert by_heart.startswith("what cannot be known is asked of a model: expected the run to end failed")
    crashed, unasked = broken(base, CRASHES, Plan())
    assert "a task is brought to an end: it neither answered nor asked a model" in crashed
    assert "no_such_module" in crashed
    assert "is asked of a model" in unasked
    # a person may put another kind of program there
    assert broken(base, ANSWERS) == []
    assert "no_such_module" in broken(base, CRASHES)[0]
    assert broken(base, TRIES_FOR_EVER) == []  # its box ends at the first question


def test_it_is_held_to_nothing_that_the_one_before_it_did_not_do(
    program: Callable[[str], Snapshot], broken: Callable[..., Sequence[str]]
) -> None:
    refuses = "raise SystemExit('I only count lines')\n"
    base = program(refuses)
    assert broken(base, refuses + "# as before\n", Plan()) == []
    base = program(ANSWERS)
    assert broken(base, ANSWERS + "# still\n", Plan()) == []
    (said,) = broken(base, refuses, Plan())
    assert "I only count lines" in said


def test_the_probe_asks_it_too(made: Service, program: Callable[[str], Snapshot]) -> None:
    base = program(ASKS)
    for number, (text, passes) in enumerate(((ASKS + "# sound\n", True), (CRASHES, False), (HANGS, False))):
        snapshot = made.registry.add_candidate(f"cand-probed-{number}", base, {MAIN: text})
        found = probe(made.parts, snapshot, base)
        assert found.passed == passes, found.reason
        assert passes or f"{NAME} breaks the contract: a task is brought to an end" in found.reason
