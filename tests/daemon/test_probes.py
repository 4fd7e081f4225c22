"""Probes in real boxes: what is sound passes, and each way to be unsound or to fake it is named."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.service import Service, service
from agentos.domain import Probe, Share, Task
from agentos.errors import Unavailable
from agentos.evolver.policy import ProbePolicy
from agentos.evolver.promote.probing import probe
from agentos.evolver.promote.promotion import passed
from agentos.home import Home
from agentos.sandboxes.choice import Choice
from agentos.settings import load_settings
from tests.daemon.swapping import PATH, source
from tests.refusals import raises

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

RUN = "def run(sdk: Sdk) -> None:\n"


@dataclass
class Bench:
    """A home whose candidates are probed at once."""

    service: Service
    count: int = 0

    def probe(self, files: dict[str, str], **rules: Any) -> Probe:
        self.count += 1
        registry = self.service.registry
        base = registry.stable()
        policy = replace(self.service.parts.policy, probe=ProbePolicy(**{"passes": 1, **rules}))
        snapshot = registry.add_candidate(f"cand-{self.count}", base, files)
        return probe(replace(self.service.parts, policy=policy), snapshot, base)

    def harness(self, find: str, put: str, **rules: Any) -> Probe:
        text = source(self.service.registry)
        assert find in text
        return self.probe({PATH: text.replace(find, put)}, **rules)

    def ran(self, task: Task) -> None:
        """As a live run that passed."""
        self.service.ledger.add_task(task, Share.OPEN)
        assert self.service.tasks.attempt(task.id, datetime.now(UTC))


@pytest.fixture(scope="module")
def bench(made_home: Path, choice: Choice, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """For probes that leave the home as it was but for what they are stored as."""
    home = Home(tmp_path_factory.mktemp("probes") / "home")
    shutil.copytree(made_home, home.root)
    with service(home, load_settings(home.settings), given=choice) as made:
        yield Bench(made)


@pytest.fixture
def own_bench(home: Home, choice: Choice) -> Iterator[Bench]:
    with service(home, load_settings(home.settings), given=choice) as made:
        yield Bench(made)


def test_a_sound_harness_passes_in_a_row(bench: Bench) -> None:
    found = bench.harness(RUN, RUN + "    # sound\n", passes=3)
    assert found.passed, found.reason
    assert len(found.passes) == len({one.boot for one in found.passes}) == 3
    assert all(one.start_s > 0 and one.base_start_s > 0 and one.memory_mb > 0 for one in found.passes)
    assert passed(bench.service.parts, found.snapshot) == found
    (entry,) = bench.service.ledger.entries(subject=found.id)
    assert entry.event == "probe.passed"


UNSOUND = {
    "kills its box": (RUN, RUN + "    import os; os._exit(0)\n", "ended before its job, several times"),
    "raises": (RUN, RUN + "    raise RuntimeError('no')\n", "did not bring a call to its end"),
    "breaks the contract": (
        "self.sdk.fail(self.turn.fault)",
        "self.sdk.finish('done')",
        "breaks the contract",
    ),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_an_unsound_harness_is_told_from_a_sound_one(bench: Bench, name: str) -> None:
    find, put, says = UNSOUND[name]
    found = bench.harness(find, put)
    assert not found.passed
    assert says in found.reason


def test_a_harness_that_takes_longer_to_start_does_not_pass(bench: Bench) -> None:
    found = bench.harness(
        RUN, "import time\ntime.sleep(0.7)\n" + RUN, start_ratio=1.0, start_slack_s=0.2, passes=2
    )
    assert not found.passed
    assert "s to start, and took" in found.reason


HANGS = "    import time; time.sleep(600)\n"


def test_a_harness_that_hangs_costs_no_more_than_its_time(bench: Bench) -> None:
    found = bench.harness(RUN, RUN + HANGS, run_s=5.0)
    assert not found.passed
    assert "timeout" in found.reason
    assert found.seconds < 60


def test_lateness_is_the_machines_where_what_serves_now_is_late_as_well(own_bench: Bench) -> None:
    slow = source(own_bench.service.registry).replace(RUN, "import time\ntime.sleep(1.5)\n" + RUN)
    own_bench.service.registry.commit({PATH: slow.encode()}, "A base that takes its time", "edit")
    with raises(Unavailable, names=["busy"]):
        own_bench.harness(RUN, RUN + HANGS, run_s=4.0)


def test_a_probe_without_end_ends_with_its_time(bench: Bench) -> None:
    found = bench.harness(RUN, RUN + "    # slow\n", passes=1_000, time_s=1.0)
    assert not found.passed
    assert "did not come to its end within 1 s" in found.reason


# A harness of whoever wants to pass without being run: it answers what it knows by heart.
FAKE = """
import hashlib, pathlib
def run(sdk):
    asked = sdk.task.call
    if "boot" not in asked.args:
        result = sdk.call_tool(asked.tool, asked.args)
        sdk.fail(result.fault) if result.fault else sdk.finish(result.output)
        return
    {answer}
"""
BY_ITSELF = """
    found = {path: hashlib.sha256(sdk.read(path).encode()).hexdigest() for path in sdk.paths()}
    digests = {}
    for name in asked.args["resources"]:
        own = sorted(path for path in found if path.startswith(name + "/"))
        lines = "".join(f"{path}\\n{found[path]}\\n" for path in own)
        digests[name] = hashlib.sha256(lines.encode()).hexdigest()
    sdk.finish({"boot": asked.args["boot"], "digests": digests})
"""
FAKES = {
    "looked at by itself": (BY_ITSELF.strip(), "without having looked"),
    "looked elsewhere": (
        "sdk.call_tool(asked.tool, {'boot': asked.args['boot'], 'resources': []})\n    " + BY_ITSELF.strip(),
        "without having looked",
    ),
}


@pytest.mark.parametrize("name", FAKES)
def test_an_answer_that_was_made_up_counts_for_nothing(bench: Bench, name: str) -> None:
    answer, says = FAKES[name]
    text = FAKE.replace("{answer}", answer)
    found = bench.probe({PATH: text})
    assert not found.passed
    assert says in found.reason


def test_a_harness_that_puts_other_files_in_its_place_names_those(bench: Bench) -> None:
    """What the box was given is known: pretending to be another version is what gives it away."""
    swapped = (
        RUN + "    import pathlib\n"
        '    path = pathlib.Path(__file__)\n    path.write_text(path.read_text() + "# old")\n'
    )
    found = bench.harness(RUN, swapped)
    assert not found.passed
    assert "another content" in found.reason


def test_work_that_fails_anyway_says_nothing_of_a_change(
    own_bench: Bench, make_task: Callable[..., Task]
) -> None:
    own_bench.ran(make_task("double", n=4, expect=8))
    registry = own_bench.service.registry
    tool = "skill/test-kit/tools/double.py"
    text = registry.files(registry.stable(), tool)[tool].decode()
    registry.commit({tool: text.replace("2 *", "3 *").encode()}, "It never doubles", "edit")
    found = own_bench.harness(RUN, RUN + "    # sound\n")
    assert found.passed, found.reason
    assert len(found.canaries) == 1


def test_a_resource_that_came_with_the_change_has_to_load(bench: Bench) -> None:
    tool = (
        '"""Bad."""\n\nfrom pydantic import BaseModel\n\nimport no_such_module\n\n'
        'TOOL = {"name": "bad", "description": "Bad.", "effects": ["pure"]}\n\n\n'
        "class Input(BaseModel):\n    pass\n\n\nclass Output(BaseModel):\n    pass\n\n\n"
        "def run(input: Input) -> Output:\n    return Output()\n"
    )
    files = {
        PATH: source(bench.service.registry) + "# sound\n",
        "tool/bad/tool.py": tool,
        "tool/bad/resource.toml": 'description = "Bad."\n',
    }
    found = bench.probe(files)
    assert not found.passed
    assert "tool/bad does not load" in found.reason


def test_an_environment_in_which_nothing_runs_does_not_pass(bench: Bench) -> None:
    found = bench.probe(
        {"environment/default/resource.toml": 'description = "Tight."\n\n[limits]\nsteps = 1\n'}
    )
    assert not found.passed
    assert "agent/default: it did not bring a call to its end (budget" in found.reason


def test_an_agent_is_asked_by_its_name(bench: Bench) -> None:
    found = bench.probe(
        {"agent/careful/resource.toml": 'description = "Another agent."\ntools = ["python"]\n'}, passes=2
    )
    assert found.passed, found.reason
    assert {one.agent for one in found.passes} == {"careful"}
    assert all(one.base_start_s == 0.0 for one in found.passes), "the base has no such agent"
