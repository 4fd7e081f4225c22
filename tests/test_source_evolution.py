"""The example of a harness that mends itself has its faults, and shows all that its page promises."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from tests.command_server import command_server

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "source-evolution"
DEFAULT = ROOT / "registry" / "harness" / "default"


def shape(path: Path) -> dict[str, str]:
    """Name -> syntax tree of what a module defines."""
    return {
        node.name: ast.dump(node)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def test_it_is_the_default_harness_but_for_what_its_page_names() -> None:
    """A default harness that changed has to be copied here again."""
    for name, only in (("harness.py", {"Loop"}), ("hooks.py", {"tidy", "tidied"})):
        own, default = shape(EXAMPLE / "harness" / name), shape(DEFAULT / name)
        assert {key for key in own if own[key] != default.get(key)} == only
        assert set(default) <= set(own)
    own = (EXAMPLE / "harness" / "harness.py").read_text(encoding="utf-8").splitlines()
    default = (DEFAULT / "harness.py").read_text(encoding="utf-8").splitlines()
    assert len([line for line in own if line not in default]) == 3


def test_the_faults_are_there_and_the_repair_is_one_token() -> None:
    batches = (EXAMPLE / "harness" / "batches.py").read_text(encoding="utf-8")
    assert batches.count("zip(sorted(calls), ") == 1
    assert "tidy]" in (EXAMPLE / "harness" / "hooks.py").read_text(encoding="utf-8")


@pytest.mark.sandbox
@pytest.mark.example
@pytest.mark.slow
def test_the_harness_mends_itself_and_probation_takes_back_what_was_too_much(tmp_path: Path) -> None:
    done = command_server().run(
        *("--home", str(tmp_path), "--sandbox", "bubblewrap", "--strict"),
        script=EXAMPLE / "run.py",
        env=os.environ | {"NO_COLOR": "1"},
        patience_s=900,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"^\+ .*zip\((calls|list\(calls\)), sdk\.call_tools", done.stdout, re.MULTILINE)
    assert "rolled back by probation" in done.stdout
