"""Scripts of skills and tools in any language, called in a real box."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Limits
from agentos.messages import Answer, LoadDone, LoadJob, RunDone, RunJob, StepFrame
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

HARNESS = Path(__file__).parents[2] / "registry" / "harness" / "default"
SKILL = "---\nname: table\ndescription: Counts rows.\n{more}---\n\nRun `python scripts/rows.py FILE`.\n"
ROWS = """import sys, pathlib, shared
head = pathlib.Path(__file__).parent.parent / "assets" / "head.txt"
print(head.read_text().strip(), sum(1 for _ in open(sys.argv[1])), shared.WORD, sys.stdin.read())
pathlib.Path("out.txt").write_text("left")
pathlib.Path(__file__).write_text("raise SystemExit('written over')")
"""
COUNT = r"""#!/usr/bin/env bash
set -e
file=$(sed 's/.*"path": *"\([^"]*\)".*/\1/')
echo "looking at $file" >&2
rows=$(grep -c . "$file")
echo "{\"rows\": $rows}"
"""
MANIFEST = {
    "name": "count_rows",
    "description": "Counts rows",
    "effects": ["read"],
    "command": ["count.sh"],
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "output_schema": {"type": "object", "properties": {"rows": {"type": "integer"}}, "required": ["rows"]},
    "timeout_s": 5,
}
TOOL = "skill/table/tools/count_rows"


def files(more: str = "", **others: str) -> dict[str, str]:
    return {
        **{f"harness/default/{path.name}": path.read_text() for path in HARNESS.glob("*.*")},
        "skill/table/SKILL.md": SKILL.format(more=more),
        "skill/table/scripts/rows.py": ROWS,
        "skill/table/scripts/shared.py": "WORD = 'shared'\n",
        "skill/table/assets/head.txt": "rows:\n",
        "skill/table/scripts/lines.sh": 'cat "$1" | wc -l; test -f "$2" || { echo "no $2" >&2; exit 3; }\n',
        "skill/table/scripts/bad.py": "def main():\n    raise ValueError('line 3 is empty')\nmain()\n",
        "skill/table/scripts/slow": "#!/bin/sh\nsleep 60\n",
        "skill/table/scripts/data": "1,2,3\n",
        f"{TOOL}/tool.json": json.dumps(MANIFEST),
        f"{TOOL}/count.sh": COUNT,
        **others,
    }


def calls(
    sandbox: Bubblewrap, given: dict[str, str], *asked: tuple[str, dict[str, Any]]
) -> tuple[list[StepFrame], RunDone]:
    given["harness/default/harness.py"] = (
        f"def run(sdk):\n    for tool, args in {list(asked)!r}:\n"
        "        result = sdk.call_tool(tool, args)\n    sdk.finish(result.output if result.ok else None)\n"
    )
    job = RunJob(
        run_id="run-1", goal="a test", call=None, agent="default", effects=["pure", "read", "write"], max_steps=20,
        tool_wall_s=2.0, output_bytes=1 << 16, memory_mb=256, harness="harness/default", files=list(given),
        inputs=["t.csv"],
    )  # fmt: skip
    deadline = time.monotonic() + 120
    steps = []
    with sandbox.open(Limits(memory_mb=512, processes=64, workspace_mb=8)) as box:
        blobs = (*(text.encode() for text in given.values()), b"a\nb\nc\n")
        box.channel.send(job.model_dump(), blobs)
        while (frame := box.channel.receive(deadline=deadline)).head["type"] != "done":
            if frame.head["type"] == "ask":
                box.channel.send(Answer(id=frame.head["id"], body={"go": True}).model_dump())
            else:
                steps.append(StepFrame.model_validate(frame.head))
    return steps, RunDone.model_validate(frame.head)


def test_a_script_runs_in_the_workspace_and_each_time_as_it_was_written(sandbox: Bubblewrap) -> None:
    one = ("table/scripts/rows.py", {"args": ["t.csv"], "stdin": "typed"})
    steps, done = calls(sandbox, files(), one, one)
    outputs = [step.observation["output"]["stdout"] for step in steps if step.node == "act"]
    assert outputs == ["rows: 3 shared typed\n"] * 2
    assert steps[0].action["path"] == "skill/table/scripts/rows.py"
    assert "skill/table" in done.resources


def test_a_bash_script_gets_words_and_finds_files_of_its_skill(sandbox: Bubblewrap) -> None:
    words = {"args": ["t.csv", "assets/head.txt"]}
    steps, done = calls(
        sandbox,
        files(),
        ("table/scripts/lines.sh", {"args": ["t.csv", "nothing"]}),
        ("table/scripts/lines.sh", words),
    )
    assert done.answer == {"stdout": "3\n", "stderr": ""}
    assert steps[0].fault is not None
    assert (steps[0].fault.type, steps[0].fault.resource) == ("exit", "skill/table")
    assert "no nothing" in steps[0].fault.message
    assert steps[0].observation["stdout"]["head"] == "3\n"


def test_what_goes_wrong_with_a_program_is_a_fault(sandbox: Bubblewrap) -> None:
    steps, _ = calls(
        sandbox,
        files(),
        ("table/scripts/bad.py", {}),
        ("table/scripts/slow", {}),
        ("table/scripts/data", {}),
        ("table/scripts/rows.py", {"args": [3]}),
        ("table/count_rows", {}),
        ("table/count_rows", {"path": "missing"}),
    )
    faults = [step.fault for step in steps if step.fault]
    assert [fault.type for fault in faults] == ["exit", "timeout", "load", "input", "input", "exit"]
    assert (faults[0].where, "line 3 is empty" in faults[0].message) == (
        "skill/table/scripts/bad.py:main",
        True,
    )


def test_a_tool_in_bash_answers_with_json(sandbox: Bubblewrap) -> None:
    steps, done = calls(sandbox, files(), ("count_rows", {"path": "t.csv"}))
    assert done.answer == {"rows": 3}
    assert steps[0].observation["stderr"]["head"] == "looking at t.csv\n"
    for printed, fault in (("not json", "output"), ('{\\"rows\\": \\"x\\"}', "output"), ("{}", "output")):
        spoilt = files(**{f"{TOOL}/count.sh": f'echo "{printed}"\n'})
        steps, _ = calls(sandbox, spoilt, ("count_rows", {"path": "t.csv"}))
        assert steps[0].fault is not None
        assert steps[0].fault.type == fault


@pytest.mark.parametrize(
    ("says", "runs"),
    [("", True), ("allowed-tools: Read Bash(python:*)\n", True), ("allowed-tools: [Read, Grep]\n", False)],
)
def test_allowed_tools_decide_whether_scripts_run(sandbox: Bubblewrap, says: str, runs: bool) -> None:
    steps, _ = calls(sandbox, files(says), ("table/scripts/shared.py", {}))
    assert (steps[0].fault is None) == runs
    assert runs or steps[0].fault.type == "effect"  # type: ignore[union-attr]


def test_a_manifest_is_loaded_or_refused_with_a_reason(sandbox: Bubblewrap) -> None:
    bad = {
        "misnamed": {**MANIFEST, "name": "other"},
        "no_program": {**MANIFEST, "name": "no_program", "command": ["nonesuch-program"]},
        "no_schema": {**MANIFEST, "name": "no_schema", "input_schema": {"type": "wrong"}},
        "no_effect": {**MANIFEST, "name": "no_effect", "effects": ["magic"]},
    }
    given = files(**{f"skill/table/tools/{name}/tool.json": json.dumps(says) for name, says in bad.items()})
    given |= {f"skill/table/tools/{name}/count.sh": COUNT for name in bad}
    tools = [path for path in given if path.endswith("tool.json")]
    with sandbox.open(Limits(memory_mb=512, processes=64, workspace_mb=8)) as box:
        job = LoadJob(files=list(given), tools=tools, wall_s=20.0)
        box.channel.send(job.model_dump(), tuple(text.encode() for text in given.values()))
        done = LoadDone.model_validate(box.channel.receive(deadline=time.monotonic() + 120).head)
    assert [(card.name, card.effects) for card in done.tools] == [("count_rows", ["read"])]
    assert done.tools[0].input_schema == MANIFEST["input_schema"]
    assert len(done.faults) == len(bad)
