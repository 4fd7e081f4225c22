"""The job ``load``: what a tool says of itself, and one sentence for each way not to."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentos.worker.tools import toolfile

Tool = Callable[..., str]


def test_cards_carry_generated_schemas(worker: Any, tool: Tool) -> None:
    done = worker.load(
        {
            "skill/demo/tools/probe.py": tool("probe", "return Output(n=1)", '["read"]'),
            "tool/a-b/tool.py": tool("a_b", "pass"),
        }
    )
    assert done.faults == []
    probe, other = done.tools
    assert (probe.path, probe.name, probe.effects, probe.dependencies) == (
        "skill/demo/tools/probe.py", "probe", ["read"], [],
    )  # fmt: skip
    assert probe.input_schema["properties"]["n"] == {"default": 1, "title": "N", "type": "integer"}
    assert probe.output_schema["required"] == ["n"]
    assert other.name == "a_b"
    assert worker.ended() == "good"


def test_one_sentence_for_each_fault(worker: Any, tool: Tool) -> None:
    good = tool("x", "return Output(n=1)")
    files = {
        f"skill/demo/tools/{name}.py": source.replace('"x"', f'"{name}"')
        for name, source in {
            "no_docstring": good.replace('"""x."""\n', ""),
            "no_tool": good.replace("TOOL", "CARD"),
            "other_name": good.replace('"x"', '"y"'),
            "odd_effect": good.replace('["pure"]', '["magic"]'),
            "no_effect": good.replace('["pure"]', "[]"),
            "computed": good.replace('"for a test"', '"for " + str(1)'),
            "extra_key": good.replace('"effects"', '"colour": "red", "effects"'),
            "no_model": good.replace("class Output(BaseModel)", "class Output"),
            "no_run": good.replace("def run(", "def walk("),
            "two_arguments": good.replace("def run(input: Input)", "def run(input: Input, more: int)"),
            "missing_library": good.replace('"effects"', '"dependencies": ["no-such-library"], "effects"'),
            "raises": good + "\n1 / 0\n",
            "exits": good + "\nimport os\nos._exit(0)\n",
            "hangs": good + "\nwhile True: pass\n",
        }.items()
    }  # fmt: skip
    parts = [
        "it has no docstring", "it does not define TOOL", "TOOL's name is 'y', its file asks for 'other_name'",
        "effect 'magic' is unknown", "effects: it should hold at least 1", "must be a literal dictionary",
        "colour: there is no such key", "class Output(BaseModel)", "def run(input: Input) -> Output",
        "run must take one argument", "it needs 'no-such-library'", "ZeroDivisionError: division by zero",
        "status 0", "did not end within",
    ]  # fmt: skip
    started = time.monotonic()
    done = worker.load(files, wall_s=1.0)
    assert done.tools == []
    for path, fault, part in zip(files, done.faults, parts, strict=True):
        assert fault.startswith(f"{path}: ")
        assert fault.count(path) == 1
        assert part in fault
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("field", ['Field(alias="from")', 'Field(serialization_alias="from")'])
def test_an_output_is_told_by_the_names_of_its_schema(tool: Tool, tmp_path: Path, field: str) -> None:
    source = tool("probe", "return Output.model_construct(n=2)").replace(
        "    n: int\n", f"    n: int = {field}\n"
    )
    source = source.replace("import BaseModel", "import BaseModel, Field")
    loaded = toolfile.load(source, "tool/probe/tool.py", tmp_path)
    assert json.loads(toolfile.call(loaded, {}, 1_000)) == {"from": 2}
    assert loaded.Output.model_json_schema(mode="serialization")["required"] == ["from"]
