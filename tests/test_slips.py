"""The slips that the search for repairs is measured with have the form that their README says."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FILES = sorted((Path(__file__).resolve().parents[1] / "benchmarks" / "data" / "slips").glob("*.jsonl"))


def slips(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def parameters(source: str) -> ast.arguments:
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return next(function.args for function in functions if function.name == "run")


def test_there_are_slips_and_no_name_comes_twice_in_a_file() -> None:
    assert FILES
    for path in FILES:
        names = [slip["name"] for slip in slips(path)]
        assert len(set(names)) == len(names) >= 50


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_slip_has_two_versions_and_calls_that_fit_both(path: Path) -> None:
    for slip in slips(path):
        assert {"name", "fault", "edit", "right", "faulty", "calls"} == set(slip)
        assert slip["edit"] in ("one", "several")
        assert ast.dump(ast.parse(slip["right"])) != ast.dump(ast.parse(slip["faulty"])), slip["name"]
        assert len(slip["calls"]) >= 10, slip["name"]
        for version in ("right", "faulty"):
            given = parameters(slip[version])
            least, most = len(given.args) - len(given.defaults), len(given.args)
            assert all(least <= len(call) <= most for call in slip["calls"]), slip["name"]
