"""The sets of faulty tools that repairs are measured with are what their README says."""

from __future__ import annotations

import ast
import asyncio
import copy
import decimal
import importlib.util
import inspect
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from agentos import checks, taskfile

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
spec = importlib.util.spec_from_file_location("tool_sets", BENCHMARKS / "tool_sets.py")
assert spec is not None
assert spec.loader is not None
tool_sets: Any = importlib.util.module_from_spec(spec)
sys.modules["tool_sets"] = tool_sets  # dataclasses look their module up
spec.loader.exec_module(tool_sets)

TOOLS = [folder for which in tool_sets.SETS for folder in tool_sets.folders(which)]
UNSTEADY = {"random", "secrets", "uuid", "time", "os", "socket", "subprocess", "urllib.request", "threading"}
CLOCK = {"now", "utcnow", "today", "time", "localtime", "random", "choice", "shuffle"}


def test_a_set_holds_tens_of_tools_of_both_kinds_and_none_is_in_both() -> None:
    names = [folder.name for folder in TOOLS]
    assert len(set(names)) == len(names)
    assert len(tool_sets.folders("develop")) >= 80
    for which in filter(tool_sets.folders, tool_sets.SETS):  # ``report`` is empty between two measurements
        kinds = [tool_sets.read(folder).edit for folder in tool_sets.folders(which)]
        assert len(kinds) >= 12, which
        assert {"one", "several"} <= set(kinds) <= {"one", "several", "none"}
        assert kinds.count("one") > kinds.count("several")


@pytest.mark.parametrize("part", range(4))
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")  # what a faulty version forgot to await
@pytest.mark.slow
def test_the_right_version_passes_and_the_faulty_one_fails_what_is_declared(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in TOOLS[part::4]:
        tool = tool_sets.read(folder)
        assert shape_faults(tool) == [], folder.name
        right, faulty = Version(tool, "right"), Version(tool, "faulty")
        spoiled = [task["name"] for task in tool.tasks if task["fails"] and tool.edit == "none"]
        assert [task["name"] for task in tool.tasks if not passes(right, task)] == spoiled, folder.name
        assert (tool.files("right") == tool.files("faulty")) is (tool.edit == "none"), folder.name
        failed = [task["name"] for task in tool.tasks if not passes(faulty, task)]
        assert failed == [task["name"] for task in tool.tasks if task["fails"]], folder.name
        shown = sum(task["fails"] for task in tool.shown)
        assert 3 <= len(failed) <= 6, folder.name
        assert 2 <= shown < len(failed), folder.name
        for case in tool.fresh:
            assert right.outcome(case) == (case["answer"], case.get("written", {})), folder.name


def shape_faults(tool: Any) -> list[str]:
    """What keeps a tool from being of a size that people write, with inputs that differ and no look at a clock."""
    # Where nothing is wrong with a tool, tasks with one input and two answers contradict one another.
    cases = [case for case in (*tool.tasks, *tool.fresh) if tool.edit != "none" or not case.get("fails")]
    everything = [json.dumps([case["args"], case["files"]]) for case in cases]
    found = [] if len(set(everything)) == len(everything) else ["an input occurs twice"]
    found += [] if (len(tool.tasks), len(tool.shown)) == (14, 9) else ["so many tasks"]
    found += [] if len(tool.fresh) in (24, 48) else ["so many fresh inputs"]
    for name in ("right", "faulty"):
        source = (tool.folder / f"{name}.py").read_text(encoding="utf-8")
        found += ["no effect"] if '"effects": []' in source else []  # such a tool is refused
        found += unsteady(ast.parse(source)) + ([] if 25 <= len(source.splitlines()) <= 130 else ["lines"])
    return found


def test_the_search_for_clocks_finds_them() -> None:
    found = [
        unsteady(ast.parse(text)) for text in ("import random", "from time import sleep", "date.today()")
    ]
    assert found == [["random"], ["time"], ["today"]]


@pytest.mark.parametrize("which", tool_sets.SETS)
@pytest.mark.slow
def test_the_task_files_say_what_the_sets_say(which: str, tmp_path: Path) -> None:
    for folder in tool_sets.folders(which):
        tool = tool_sets.read(folder)
        place = tmp_path / folder.name
        file = tool_sets.write_tasks(tool, tool.tasks, place)
        drafts = taskfile.read_drafts(file)
        assert [draft.name for draft in drafts] == [task["name"] for task in tool.tasks]
        for draft, task in zip(drafts, tool.tasks, strict=True):
            assert draft.call is not None
            assert draft.call.args == task["args"]
            assert [{check.kind: dict(check.spec)} for check in draft.checks] == task["checks"]
            given = {name: source.read_bytes().decode() for name, source in draft.files.items()}
            assert given == task["files"]


@pytest.mark.parametrize(
    "which",
    ["edits", "edits2", "edits3", "edits4", "edits5", "edits6", "edits7", "edits8", "edits9"],
)
@pytest.mark.slow
def test_labelled_edits_are_right_or_wrong_as_they_say(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in sorted((BENCHMARKS / "data" / which).glob("*/edits.toml")):
        edits = tool_sets.labelled(path.parent)
        tool = edits[0].tool
        right = Version(tool, "right")
        for edit in edits:
            assert [*edit.files] == [*tool.files("faulty")]
            assert edit.changed[0] in tool.files("faulty")
            wanted = told(right, edit.wrong_on) if edit.wrong_on else None
            with decimal.localcontext():  # an edit may set it
                version = Version(tool, "faulty", edit.files)
                passed = [passes(version, task) for task in tool.tasks]
                if edit.right:
                    assert all(passed), edit
                    assert all(version.outcome(case)[0] == case["answer"] for case in tool.fresh), edit
                elif edit.wrong_on:
                    assert told(version, edit.wrong_on) != wanted, edit


def told(version: Version, case: dict[str, Any]) -> Any:
    """The outcome, or the name of the error."""
    try:
        return version.outcome(case)
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        return type(error).__name__


def test_a_key_of_digits_stays_a_text(tmp_path: Path) -> None:
    folder = next(folder for folder in TOOLS if folder.name == "pack-order")
    tool = tool_sets.read(folder)
    drafts = taskfile.read_drafts(tool_sets.write_tasks(tool, tool.tasks, tmp_path))
    keys = {key for draft in drafts for check in draft.checks for key in packs_of(check.spec)}
    assert "01827" in keys
    assert all(isinstance(key, str) for key in keys)


# --- help -------------------------------------------------------------------------------------


class Version:
    """One of a tool's two versions; where a fault lives in the process, each call loads it anew."""

    def __init__(self, tool: Any, which: str, files: dict[str, str] | None = None) -> None:
        self.anew = tool.state
        own, *helpers = (files or tool.files(which)).items()
        self.helpers = {name.removesuffix(".py"): compile(text, name, "exec") for name, text in helpers}
        self.code = compile(own[1], f"{which}.py", "exec")
        self.module = self.load()

    def load(self) -> types.ModuleType:
        module = types.ModuleType("tool_of_a_set")
        sys.modules[module.__name__] = module  # dataclasses look their module up
        helpers = {name: types.ModuleType(name) for name in self.helpers}
        sys.modules.update(helpers)
        try:
            for name, code in self.helpers.items():
                exec(code, helpers[name].__dict__)
            exec(self.code, module.__dict__)
        finally:
            for name in (module.__name__, *helpers):
                del sys.modules[name]
        return module

    def outcome(self, case: dict[str, Any]) -> tuple[Any, dict[str, str]]:
        """The answer, and the files that were written; the current directory is the workspace."""
        if self.anew:
            self.module = self.load()
        for old in os.listdir():
            os.unlink(old)
        for name, text in case["files"].items():
            Path(name).write_bytes(text.encode())
        module: Any = self.module
        answer = module.run(module.Input.model_validate(copy.deepcopy(case["args"])))
        if inspect.iscoroutine(answer):
            answer = asyncio.run(answer)
        answer = answer.model_dump(mode="json")
        left = {name: Path(name).read_bytes().decode() for name in sorted(os.listdir())}
        return answer, {name: text for name, text in left.items() if case["files"].get(name) != text}


def passes(version: Version, task: dict[str, Any]) -> bool:
    try:
        answer, _ = version.outcome(task)
    except Exception:  # noqa: BLE001 - a faulty tool may raise anything
        return False
    pairs = [next(iter(check.items())) for check in task["checks"]]
    return bool(pairs) and not any(
        checks.judge(checks.parse(kind, spec), answer, Path()) for kind, spec in pairs
    )


def packs_of(spec: Any) -> list[Any]:
    value = spec["value"]
    return list(value["packs"] if spec.get("path") is None else value if spec["path"] == "packs" else ())


def unsteady(tree: ast.AST) -> list[str]:
    """Modules and calls by which a tool would see the time, chance or the world."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if {alias.name, alias.name.split(".")[0]} & UNSTEADY]
        elif isinstance(node, ast.ImportFrom) and {node.module, (node.module or "").split(".")[0]} & UNSTEADY:
            found.append(node.module or "")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCK:
            found.append(node.func.attr)
    return found
