"""A run whose harness is any program: it gets a directory with its task and a URL for its model calls.

What it leaves as ``answer.json`` or ``answer.md`` in that directory is the answer; where it leaves
neither, what it printed is.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from agentos.messages import RunJob, WireFault
from agentos.worker.children import ChildEnd, ChildLimits
from agentos.worker.faults import fault
from agentos.worker.sdk import Sdk
from agentos.worker.tools.toolhost import ToolHost, ways_to_end

_ANSWER_FILES = ("answer.json", "answer.md", "answer.txt")


def drive(sdk: Sdk, job: RunJob, host: ToolHost, url: str, places: tuple[Path, Path]) -> None:
    """Start the program, wait for its end, take its answer. ``places`` are snapshot and workspace."""
    snapshot, workspace = places
    assert job.command is not None
    folder = Path(tempfile.mkdtemp(prefix="task-"))
    _describe(sdk, folder, workspace)
    named = {
        "{task}": str(folder),
        "{harness}": str(snapshot / job.harness),
        "{workspace}": str(workspace),
        "{python}": sys.executable,
        "{model}": sdk.models[0].name if sdk.models else "",
    }
    argv = [_filled(word, named) for word in job.command]
    environment = {
        **os.environ,
        "AGENTOS_TASK": str(folder),
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "OPENAI_API_KEY": "none-needed",  # most clients refuse to start without one
        "OPENAI_MODEL": named["{model}"],
        "HOME": str(folder),
    }
    ended = host.execute(argv, environment)
    answer, found = _answer(folder, ended, ChildLimits(job.tool_wall_s, job.memory_mb, job.output_bytes), job)
    observation = {"exit": ended.code if ended.how == "exit" else ended.how} | {
        name: {"head": clip.head[-4096:], "tail": clip.tail[-4096:], "size": clip.size}
        for name, clip in (("stdout", ended.stdout), ("stderr", ended.stderr))
        if clip.size
    }
    sdk.step("command", {"argv": job.command}, observation, found, duration_ms=ended.duration_ms)
    if found is not None:
        sdk.fail(found)
    else:
        sdk.finish(answer)


def _describe(sdk: Sdk, folder: Path, workspace: Path) -> None:
    task = {
        "goal": sdk.task.goal,
        "agent": sdk.task.agent,
        "workspace": str(workspace),
        "effects": sorted(sdk.task.effects),
        "models": [card.name for card in sdk.models],
        "files": sorted(str(path.relative_to(workspace)) for path in workspace.rglob("*") if path.is_file()),
    }
    (folder / "task.json").write_text(json.dumps(task, indent=2), "utf-8")
    (folder / "goal.md").write_text(sdk.task.goal, "utf-8")
    (folder / "prompt.md").write_text(sdk.prompt, "utf-8")


def _filled(word: str, named: dict[str, str]) -> str:
    for name, value in named.items():
        word = word.replace(name, value)
    return word


def _answer(
    folder: Path, ended: ChildEnd, allowance: ChildLimits, job: RunJob
) -> tuple[Any, WireFault | None]:
    path = f"{job.harness}/resource.toml"
    if ended.how != "exit" or ended.code != 0:
        kind, why = ways_to_end(ended, allowance)[ended.how]
        said = (ended.stderr.tail or ended.stderr.head).strip()[-500:]
        return None, fault(kind, f"the program failed: {why}{f': {said}' if said else ''}", path=path)
    for name in _ANSWER_FILES:
        try:
            if (folder / name).is_file() and not (folder / name).is_symlink():
                return _read(folder / name, job.output_bytes, path)
        except OSError as error:
            return None, fault("output", f"{name} cannot be read: {error.strerror}", path=path)
    if ended.stdout.tail:
        return None, fault("limit", f"it printed more than {job.output_bytes} bytes", path=path)
    return _value(ended.stdout.head), None


def _read(file: Path, most: int, path: str) -> tuple[Any, WireFault | None]:
    if file.stat().st_size > most:
        return None, fault("limit", f"{file.name} is larger than {most} bytes", path=path)
    text = file.read_text("utf-8-sig", "replace")
    if file.suffix != ".json":
        return text.strip(), None
    try:
        return json.loads(text), None
    except (ValueError, RecursionError) as error:
        return None, fault("output", f"{file.name} is not JSON: {error}", path=path)


def _value(text: str) -> Any:
    """What was printed, as the JSON value that it is, or as text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()
