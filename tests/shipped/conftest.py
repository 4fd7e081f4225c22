"""Calls the tools that ship, straight from their files, through the same contract as a run does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentos.worker.tools import toolfile

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace, the current directory."""
    folder = tmp_path / "ws"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def call(tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """``call("skill/tool", path="a.csv")``: the output as JSON; raises what the tool raises."""
    (tmp_path / "skill").symlink_to(PROJECT / "skills")
    (tmp_path / "tool").symlink_to(PROJECT / "registry" / "tools")
    paths = [str(path.relative_to(tmp_path)) for path in tmp_path.glob("skill/*/tools/*.py")]
    paths += [str(path.relative_to(tmp_path)) for path in tmp_path.glob("tool/*/tool.py")]
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def call(ref: str, **args: Any) -> Any:
        path = toolfile.find(ref, paths)
        source = (tmp_path / path).read_text()
        before = set(sys.modules)
        try:
            tool = toolfile.load(source, path, tmp_path)
            toolfile.card(tool, toolfile.declared(source, path))
            return json.loads(toolfile.call(tool, args, 1 << 20))
        finally:
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
                    del sys.modules[name]

    return call
