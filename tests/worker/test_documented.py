"""The examples of docs/use/writing-tools-and-skills.md work as they stand there."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from agentos import checks, resources
from agentos.domain import Kind, ResourceId
from agentos.worker import sdk

PAGE = (Path(__file__).parents[2] / "docs" / "use" / "writing-tools-and-skills.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_skill(workers: Callable[[], Any]) -> None:
    (skill,) = blocks("markdown")
    source, harness = blocks("python")
    path = "skill/stock-list/tools/to_order.py"
    files = {"skill/stock-list/SKILL.md": skill.encode(), path: source.encode()}
    reading = resources.examine(ResourceId(Kind.SKILL, "stock-list"), files)
    assert (reading.faults, reading.warnings) == ((), ())

    task = yaml.safe_load(blocks("yaml")[0])
    inputs = {"stock.txt": b"hammers, 7\nnails, 2\n\n"}
    for own in ({}, {"harness/default/harness.py": harness}):
        ran = workers().run({path: source, **own}, task["call"], inputs)
        (check,) = task["checks"]
        assert checks.judge(checks.parse("equals", check["equals"]), ran.done.answer, Path()) == ""


def test_the_harness_tries_again(worker: Any, tool: Callable[..., str]) -> None:
    source = tool(
        "probe",
        "if os.path.exists('seen'):\n    return Output(n=1)\nopen('seen', 'w')\ntime.sleep(60)",
        '["write"]',
    )
    files = {"tool/probe/tool.py": source, "harness/default/harness.py": blocks("python")[1]}
    ran = worker.run(files, {"tool": "probe", "args": {}}, tool_wall_s=0.5, effects=["write"])
    assert [step.node for step in ran.steps] == ["act", "retry", "act"]
    assert ran.done.answer == {"n": 1}


def test_the_checks() -> None:
    listed = [item for check in yaml.safe_load(blocks("yaml")[1])["checks"] for item in check.items()]
    assert {kind for kind, _ in listed} == set(checks.KINDS)
    assert [fault for kind, spec in listed for fault in checks.faults(kind, spec)] == []


def test_the_names() -> None:
    for name in re.findall(r"`sdk\.(\w+)", PAGE):
        assert hasattr(sdk.Sdk, name) or name == "task"


def test_what_registries_import_stays_where_it_is() -> None:
    """Tools and harnesses of homes name these places: whoever moves files may not move them along."""
    promised = {"egress": {"OutsideError", "Response", "fetch"}, "sdk": {"Failed", "Sdk", "fault"}}
    for name, public in promised.items():
        # in parts, so that no replacing of words renames it too
        place = ".".join(("agentos", "worker", name))
        found = importlib.import_module(place)
        assert {item for item in public if getattr(found, item).__module__.startswith("agentos.")} == public
        assert found.__file__ == str(Path(sdk.__file__).with_name(f"{name}.py"))
