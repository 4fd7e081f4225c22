"""Every kind of check: what passes, what does not and why, and what a task file may not say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agentos import checks


def why(kind: str, spec: dict[str, Any], answer: Any = None, workspace: Path = Path("/nowhere")) -> str:
    return checks.judge(checks.parse(kind, spec), answer, workspace)


@pytest.mark.parametrize(
    ("spec", "answer"),
    [
        ({"value": 3}, 3.0),
        ({"value": {"a": [1, None]}}, {"a": [1, None]}),
        ({"value": 2.5, "path": "rows.1.total"}, {"rows": [{}, {"total": 2.5}]}),
        ({"value": "z", "path": "-1"}, ["a", "z"]),
        ({"value": [1.0, 2.0], "tolerance": 0.01}, [1.009, 1.995]),
        ({"value": None}, None),
    ],
)
def test_equals_passes(spec: dict[str, Any], answer: Any) -> None:
    assert why("equals", spec, answer) == ""


@pytest.mark.parametrize(
    ("spec", "answer", "part_of_reason"),
    [
        ({"value": 1}, True, "expected 1, found true"),
        ({"value": "1"}, 1, "found 1"),
        ({"value": {"a": 1}}, {"a": 1, "b": 2}, 'not expected: ["b"]'),
        ({"value": {"a": 1}}, {}, "expected the key"),
        ({"value": {"rows": [1, 2]}}, {"rows": [1, 3]}, "at 'rows.1': expected 2, found 3"),
        ({"value": [1, 2]}, [1], "expected 2 elements, found 1"),
        ({"value": 1.0, "tolerance": 0.5}, float("nan"), "NaN"),
        ({"value": 1, "tolerance": 1e308}, 10**400, "expected 1"),
        ({"value": 1, "path": "total"}, {"sum": 1}, "the answer has no 'total'"),
        ({"value": 1, "path": "rows.7"}, {"rows": []}, "the answer has no 'rows.7'"),
        ({"value": 1, "path": "a.b"}, {"a": 3}, "the answer has no 'a.b'"),
    ],
)
def test_equals_says_what_differs(spec: dict[str, Any], answer: Any, part_of_reason: str) -> None:
    assert part_of_reason in why("equals", spec, answer)


def test_deep_nesting_is_a_failed_check() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert "too deeply" in why("contains", {"value": 1}, deep)


@pytest.mark.parametrize(
    ("value", "answer", "passes"),
    [
        ("bc", "abcd", True),
        ("x", "abcd", False),
        (1, "1", False),
        (2, [1, 2], True),
        ([2, 1], [1, 2, 3], True),
        ([1, 2], [[1, 2]], True),
        ([4], [1], False),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 2}, {"a": 1}, False),
        ({"a": 1}, [{"a": 1}], True),
        (1, 1, False),
        ("12", 12, True),
        ("13", 12, False),
        ("6.5", 6.5, True),
        ("r", True, False),
        ("n", None, False),
        ("a", {"a": 1}, False),
    ],
)
def test_contains(value: Any, answer: Any, passes: bool) -> None:
    assert (why("contains", {"value": value}, answer) == "") is passes


def test_regex_reads_text_and_the_json_of_the_rest() -> None:
    assert why("regex", {"pattern": r"^\d+ rows$"}, "12 rows") == ""
    assert why("regex", {"pattern": r'"total": 3'}, {"total": 3}) == ""
    assert "matches" in why("regex", {"pattern": "zz"}, "12 rows")


def test_json_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    assert why("json_schema", {"schema": schema}, {"n": 1}) == ""
    assert why("json_schema", {"schema": schema}, {"n": "x"}).startswith("at 'n':")
    remote = {"$ref": "http://localhost:1/schema.json"}
    assert "not in it" in why("json_schema", {"schema": remote}, {})


def test_file_reads_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("total 3\n")
    (tmp_path / "secret").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    digest = "52ad3a0a57f8f1b3bfe4e1b5d0c1b3ae3c7d4d54c1e0b24f0f8bd0fd14ab0b7e"

    assert why("file", {"path": "out.txt", "equals": "total 3\n"}, None, tmp_path) == ""
    assert why("file", {"path": "out.txt", "contains": "3"}, None, tmp_path) == ""
    assert "does not contain" in why("file", {"path": "out.txt", "contains": "4"}, None, tmp_path)
    assert "expected" in why("file", {"path": "out.txt", "equals": "x"}, None, tmp_path)
    assert digest in why("file", {"path": "out.txt", "sha256": digest}, None, tmp_path)
    assert "must not" in why("file", {"path": "out.txt", "exists": False}, None, tmp_path)
    assert why("file", {"path": "none.txt", "exists": False}, None, tmp_path) == ""
    for name in ("none.txt", "secret", "pipe", "folder"):
        assert "is not among the files" in why("file", {"path": name}, None, tmp_path)


@pytest.mark.parametrize(
    ("kind", "spec", "part_of_fault"),
    [
        ("equal", {}, "no kind of check: use one of equals, contains"),
        ("equals", {}, "value: Field required"),
        ("equals", {"value": 1, "tolerence": 2}, "tolerence: Extra inputs"),
        ("equals", {"value": 1, "tolerance": -1}, "tolerance"),
        ("regex", {"pattern": "("}, "is not a regular expression"),
        ("json_schema", {"schema": {"type": "objekt"}}, "is not a JSON schema"),
        ("file", {"path": "../../etc/passwd"}, "inside the workspace"),
        ("file", {"path": "/etc/passwd"}, "inside the workspace"),
        ("file", {"path": "a", "exists": False, "equals": "x"}, "cannot have content"),
        ("file", {"path": "a", "sha256": "abc"}, "sha256"),
        ("command", {"argv": []}, "argv"),
        ("python", {"code": "assert ("}, "does not compile"),
    ],
)
def test_faults_are_sentences(kind: str, spec: dict[str, Any], part_of_fault: str) -> None:
    (fault,) = checks.faults(kind, spec)
    assert part_of_fault in fault


def test_good_specs_have_no_faults() -> None:
    assert not checks.faults("python", {"code": "assert answer"})
    assert not checks.faults("command", {"argv": ["true"], "exit": 0})
    assert not checks.faults("json_schema", {"schema": {"type": "object"}})
