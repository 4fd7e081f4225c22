"""The tasks of the demo with a model are what its page says, and its stand-in knows nothing that it is not told."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from agentos.domain import Share, Task, share_of
from agentos.home import Home
from agentos.taskfile import read_drafts
from tests.daemon.conftest import until
from tests.daemon.thinking_world import children

DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo-model"
HOLD_OUT = 0.2


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"demo_model_{name}", DEMO / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def content() -> ModuleType:
    return module("tasks")


@pytest.fixture
def tasks(content: ModuleType, tmp_path: Path) -> list[Task]:
    file = tmp_path / "tasks.yaml"
    file.write_text(yaml.safe_dump(content.tasks()))
    return [
        draft.task(f"task-{number}", [], datetime.now(UTC)) for number, draft in enumerate(read_drafts(file))
    ]


def test_each_agent_has_tasks_to_learn_from_and_hidden_ones(content: ModuleType, tasks: list[Task]) -> None:
    assert {task.agent for task in tasks} == set(content.AGENTS)
    assert len({task.name for task in tasks}) == len(tasks)
    shares = Counter((task.agent, share_of(task.key, HOLD_OUT)) for task in tasks)
    for agent in content.AGENTS:
        assert shares[agent, Share.OPEN] >= 4
        assert shares[agent, Share.HOLD_OUT] >= 1


def test_the_expected_values_are_right(content: ModuleType) -> None:
    for task in content.tasks():
        said = task["goal"].partition(": ")[2]
        (check,) = task["checks"]
        if task["agent"] == "codes":
            whole = [int(sign) for sign in f"{said}{check['equals']['value']}"][::-1]
            assert (sum(whole[::2]) + sum(sum(divmod(2 * digit, 10)) for digit in whole[1::2])) % 10 == 0
        elif task["agent"] == "moods":
            assert re.match(check["regex"]["pattern"], "fine")
        else:
            numbers = [int(number) for number in said.split(", ")]
            right = {
                "till": sum(numbers) / 100,
                "crates": sum(numbers),
                "report": sum(numbers),
                "tickets": ", ".join(map(str, sorted(numbers))),
            }[task["agent"]]
            assert check["equals"]["value"] == right


def test_the_stand_in_has_no_idea_where_there_is_no_evidence() -> None:
    stand_in = module("stand_in")
    for place in stand_in.PLACES.values():
        assert stand_in.proposal(place, "Nothing has failed.") == stand_in.NO_IDEA


def test_the_stand_in_tries_the_tempting_edit_first_and_each_but_once() -> None:
    stand_in = module("stand_in")
    case = 'goal: {goal}\nchecked by equals: {{"path": "answer", "value": 3}}\nits answer: 3'
    told = "".join(
        f"Failing task T{number}:\n<data x>\n"
        + case.format(goal=json.dumps(f"For the weekly report, total the visits of week {number}: 1, 2"))
        + "\n</data x>\n"
        for number in (4, 5)
    )
    first = stand_in.proposal("prompt", told)
    assert "When week 4, answer in JSON." in first
    own = "You proposed these edits already:\n<data y>\n{}\n</data y>"
    second = stand_in.proposal("prompt", told + own.format("one"))
    assert "week 4" not in second.partition("```")[2]
    assert "answer in JSON" in second
    assert stand_in.proposal("prompt", told + own.format("one\ntwo")) == stand_in.NO_IDEA


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.daemon
def test_a_demo_that_is_told_to_end_leaves_no_daemon_and_no_box(tmp_path: Path) -> None:
    home = Home(tmp_path / "demo" / "home")
    environment = {name: value for name, value in os.environ.items() if name not in ("MODEL", "API_BASE")}
    with (tmp_path / "said").open("wb") as said:
        script = subprocess.Popen(
            [sys.executable, str(DEMO / "run.py"), "--home", str(home.root.parent)],
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: _boxes(home), "its tasks run in boxes", 90)
        daemon = _daemon(home)
        left = [daemon, *(child for child, _ in children(daemon))]
        script.send_signal(signal.SIGTERM)
        assert script.wait(60) == 143, (tmp_path / "said").read_text()
    finally:
        script.kill()
        script.wait()
    until(lambda: not any(map(_runs, left)), "they have ended", 20)
    assert not (home.run / "daemon.json").exists()
    assert "Traceback" not in (tmp_path / "said").read_text()


def _daemon(home: Home) -> int:
    try:
        return int(json.loads((home.run / "daemon.json").read_text())["pid"])
    except (OSError, ValueError):
        return 0


def _boxes(home: Home) -> bool:
    daemon = _daemon(home)
    return bool(daemon) and any("bwrap" in words for _, words in children(daemon))


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
