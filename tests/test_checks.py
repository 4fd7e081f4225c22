"""Every kind of check: what passes, what does not and why, and what a task file may not say."""

from __future__ import annotations

import json
import os
import time
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
    assert "must not" in why("file", {"path": "folder", "exists": False}, None, tmp_path)
    for name in ("none.txt", "secret", "pipe", "folder"):
        assert "is not among the files" in why("file", {"path": name}, None, tmp_path)


@pytest.mark.parametrize(
    ("kind", "spec", "part_of_fault"),
    [
        ("equal", {}, "no kind of check: use one of equals, contains"),
        ("equals", {}, "value: it is missing"),
        ("equals", {"value": 1, "tolerence": 2}, "tolerence: there is no such key"),
        ("equals", {"value": 1, "tolerance": -1}, "tolerance"),
        ("regex", {"pattern": "("}, "is not a regular expression"),
        ("json_schema", {"schema": {"type": "objekt"}}, "is not a JSON schema"),
        ("file", {"path": "../../etc/passwd"}, "inside the workspace"),
        ("file", {"path": "/etc/passwd"}, "inside the workspace"),
        ("file", {"path": "a", "exists": False, "equals": "x"}, "cannot have content"),
        ("file", {"path": "a", "sha256": "abc"}, "sha256"),
        ("command", {"argv": []}, "argv"),
        ("command", {"argv": [""]}, "argv"),
        ("command", {"argv": ["a", "b\0"]}, "argv"),
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


# --- what small changes of the code would let pass ------------------------------------------------


def test_a_value_is_shown_whole_up_to_300_characters_and_as_it_is_written() -> None:
    assert why("equals", {"value": 1}, "é" + "x" * 297) == f'expected 1, found "é{"x" * 297}"'
    assert why("equals", {"value": 1}, "x" * 299) == f'expected 1, found "{"x" * 299}… (301 characters)'
    assert why("equals", {"value": 1}, {1, 2}).startswith("expected 1, found ")


@pytest.mark.parametrize(
    ("expected", "found", "said"),
    [
        (1, {"a": 1}, 'expected 1, found {"a": 1}'),
        ({"a": 1}, 1, 'expected {"a": 1}, found 1'),
        (1, [1], "expected 1, found [1]"),
        ([1], 1, "expected [1], found 1"),
        ({"a": 1}, {"b": 2}, 'expected the key "a", found ["b"]'),
        ({"x": {"a": 1}}, {"x": {}}, "at 'x': expected the key \"a\", found []"),
        ({"x": {}}, {"x": {"b": 1}}, "at 'x': found keys that were not expected: [\"b\"]"),
        ({"x": {"y": 1}}, {"x": {"y": 2}}, "at 'x.y': expected 1, found 2"),
        ([[1], 2], [[3], 2], "at '0.0': expected 1, found 3"),
        ({"x": [1]}, {"x": []}, "at 'x': expected 1 elements, found 0"),
        ([1], [1, 2], "expected 1 elements, found 2"),
        (True, 1, "expected true, found 1"),
        (0, False, "expected 0, found false"),
        ("a", "b", 'expected "a", found "b"'),
        ("1", 1, 'expected "1", found 1'),
        (None, 0, "expected null, found 0"),
        (None, "", 'expected null, found ""'),
        (1, 2, "expected 1, found 2"),
        (1.0, float("inf"), "expected 1.0, found Infinity"),
    ],
)
def test_the_first_difference_in_its_place(expected: Any, found: Any, said: str) -> None:
    assert checks.difference(expected, found) == said
    assert checks.difference(found, expected)


@pytest.mark.parametrize(("value", "tolerance"), [(1.5, 0.5), (0.5, 0.5)])
def test_a_tolerance_is_still_within_itself(value: float, tolerance: float) -> None:
    assert checks.difference(1, value, tolerance) == ""
    assert checks.difference([{"a": 1}], [{"a": value}], tolerance) == ""
    assert checks.difference(1, value + (value - 1) * 0.1, tolerance) != ""


def test_equal_booleans_texts_and_infinities_are_equal() -> None:
    for value in (True, False, "a", None, float("inf"), [], {}):
        assert checks.difference(value, value) == ""
    assert checks.difference(1.0, float("inf"), 1e308)
    assert checks.difference(float("nan"), float("nan"), 1.0)


@pytest.mark.parametrize(
    ("value", "answer", "passes"),
    [
        ({"b": 1}, {"a": 1}, False),
        ({"a": 1, "b": 3}, {"a": 1, "b": 2}, False),
        ({}, {"a": 1}, True),
        ("a", ["a"], True),
        (["a", 4], ["a"], False),
        (["a", "b"], ["b", "a"], True),
        (1, "a1", False),
        (1.5, 1.5, False),
        ("rue", True, False),
    ],
)
def test_what_a_part_is(value: Any, answer: Any, passes: bool) -> None:
    assert (why("contains", {"value": value}, answer) == "") is passes


@pytest.mark.parametrize(
    ("path", "answer", "passes"),
    [
        ("0", ["v"], True),
        ("-1", ["v"], True),
        ("-2", ["v"], False),
        ("1", ["v"], False),
        ("0", {"0": "v"}, True),
        ("0x", ["v"], False),
        ("1234567890", ["v"], False),
        ("a.0.b", {"a": [{"b": "v"}]}, True),
        ("0", "v", False),
    ],
)
def test_a_path_leads_to_a_part_of_the_answer(path: str, answer: Any, passes: bool) -> None:
    assert (why("equals", {"path": path, "value": "v"}, answer) == "") is passes
    assert (why("contains", {"path": path, "value": "v"}, answer) == "") is passes


@pytest.mark.parametrize(
    ("spec", "good"),
    [
        ({"runs_workspace": True}, False),
        ({"runs_workspace": True, "stdout_equals": " \n"}, False),
        ({"runs_workspace": True, "stdout_contains": "x"}, False),
        ({"runs_workspace": True, "stdout_equals": "x"}, True),
        ({"stdout_equals": ""}, True),
        ({}, True),
    ],
)
def test_a_command_that_runs_the_workspace_says_what_it_prints(spec: dict[str, Any], good: bool) -> None:
    found = checks.faults("command", {"argv": ["python", "a.py"], **spec})
    assert (found == []) is good
    assert all("say in stdout_equals what it has to print" in fault for fault in found)


def test_parameters_come_out_as_they_went_in() -> None:
    for kind, spec in (
        ("python", {"code": "assert answer", "runs_workspace": True}),
        ("json_schema", {"schema": {"type": "object"}, "path": None}),
        ("regex", {"pattern": "a+", "path": "x"}),
        ("command", {"argv": ["a"], "exit": 2}),
        ("file", {"path": "a/b", "exists": False}),
    ):
        parsed = checks.parse(kind, spec).model_dump(by_alias=True)
        assert {name: parsed[name] for name in spec} == spec


def test_what_is_not_said_stands_for_the_plain_case() -> None:
    command, python = checks.Command(argv=["a"]), checks.Python(code="")
    assert (command.exit, command.runs_workspace, python.runs_workspace) == (0, False, False)
    assert (checks.File(path="a").exists, checks.Equals(value=1).tolerance) == (True, 0.0)


def test_a_nonce_is_put_into_every_text_of_a_command() -> None:
    given = {"argv": ["a", "-{nonce}"], "stdout_equals": "{nonce}", "stdout_contains": "b{nonce}", "exit": 3}
    filled = checks.Command(**given).with_nonce("77")
    assert (filled.argv, filled.stdout_equals, filled.stdout_contains) == (["a", "-77"], "77", "b77")
    assert filled.exit == 3
    assert checks.Command(argv=["a"]).with_nonce("7").stdout_equals is None


@pytest.mark.parametrize("path", ["", "/a", "a/../b", "..", "a\0b"])
def test_a_file_outside_is_no_path(path: str) -> None:
    (fault,) = checks.faults("file", {"path": path})
    assert fault == "file: path: must be a relative path inside the workspace"


@pytest.mark.parametrize("content", [{"equals": ""}, {"contains": ""}, {"sha256": "0" * 64}])
def test_what_must_not_exist_holds_nothing(content: dict[str, Any]) -> None:
    assert checks.faults("file", {"path": "a", **content}) == []
    assert len(checks.faults("file", {"path": "a", "exists": False, **content})) == 1


def test_what_a_file_holds_is_told_exactly(tmp_path: Path) -> None:
    import hashlib

    (tmp_path / "a").write_bytes(b"ab\xff")
    right = hashlib.sha256(b"ab\xff").hexdigest()
    assert why("file", {"path": "a", "sha256": right}, None, tmp_path) == ""
    assert why("file", {"path": "a", "sha256": "0" * 64}, None, tmp_path).endswith(f"expected {'0' * 64}")
    assert why("file", {"path": "a", "equals": "ab\ufffd", "contains": "b"}, None, tmp_path) == ""
    assert why("file", {"path": "a", "equals": ""}, None, tmp_path) == 'a holds "ab\ufffd", expected ""'
    assert why("file", {"path": "a", "contains": "c"}, None, tmp_path).endswith('does not contain "c"')
    assert why("file", {"path": "a"}, None, tmp_path) == ""


def test_of_a_file_so_much_is_read_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.FILE_MAX == 64 * 1024 * 1024
    monkeypatch.setattr(checks, "FILE_MAX", 1024 * 1024)  # as much takes half a second to look through
    with (tmp_path / "large").open("wb") as file:
        file.truncate(checks.FILE_MAX)
        file.seek(checks.FILE_MAX - 1)
        file.write(b"ab")
    assert why("file", {"path": "large", "contains": "\0a"}, None, tmp_path) == ""
    assert why("file", {"path": "large", "contains": "ab"}, None, tmp_path) != ""


def test_sentences_name_the_place_and_schemas_too() -> None:
    (fault,) = checks.faults("regex", {"pattern": "("})
    assert fault.startswith("regex: pattern: is not a regular expression (")
    (whole,) = checks.faults("file", {"path": "a", "exists": False, "equals": ""})
    assert whole == "file: a file that must not exist cannot have content to compare"
    assert why("json_schema", {"schema": {"type": "string"}}, 1) == "1 is not of type 'string'"
    nested = {"properties": {"a": {"items": {"type": "string"}}}}
    assert why("json_schema", {"schema": nested}, {"a": ["", 1]}) == "at 'a.1': 1 is not of type 'string'"
    assert why("regex", {"pattern": "é"}, {"a": "é"}) == ""
    assert why("regex", {"pattern": "^a$", "path": "k"}, {"k": "a"}) == ""


SAME: Any = {"rows": [{"n": 1, "of": 2.5}, None, "é"], "ok": True}


@pytest.mark.parametrize(
    ("kind", "spec", "answer"),
    [
        ("equals", {"value": SAME}, SAME),
        ("equals", {"value": SAME}, {**SAME, "more": 1}),
        ("equals", {"value": 1, "path": "rows.0.n"}, SAME),
        ("equals", {"value": 1, "path": "rows.9"}, SAME),
        ("equals", {"value": 1, "tolerance": 1e308}, 10**400),
        ("equals", {"value": 1}, True),
        ("equals", {"value": (1, 2)}, [1, 2]),  # as it comes to a box
        ("contains", {"value": "é", "path": "rows.2"}, SAME),
        ("contains", {"value": {"ok": False}}, SAME),
        ("contains", {"value": 7}, [1, 2]),
    ],
)
def test_what_is_compared_anywhere_is_what_a_box_says(kind: str, spec: dict[str, Any], answer: Any) -> None:
    assert checks.compared(kind, spec, answer) == why(kind, json.loads(json.dumps(spec)), answer)


def test_a_comparison_that_breaks_its_rules_fails() -> None:
    found = checks.compared("equals", {"value": 1, "tolerance": -1}, 1)
    assert found is not None
    assert found.startswith("equals: tolerance: ")


def test_what_runs_code_or_takes_long_is_left_to_a_box() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for kind in checks.KINDS.keys() - {"equals", "contains"}:
        assert checks.compared(kind, {"value": 1, "code": "1", "pattern": "1", "path": "1"}, 1) is None
    assert checks.compared("equals-of-a-plug-in", {"value": 1}, 1) is None
    for value in (deep, "\ud800", float("nan"), {1}, "x" * checks.COMPARED_MAX):
        assert checks.compared("equals", {"value": value}, 1) is None
        assert checks.compared("equals", {"value": 1}, value) is None
    assert checks.compared("contains", {"value": [1]}, [1]) is None


def _longest() -> list[tuple[str, Any, Any]]:
    """What costs most of what is small: a long path to many parts, and many parts that all nearly fit."""
    room = checks.COMPARED_MAX // 2 - 200
    under_a_long_name = {"k" * (room // 2): [1] * (room // 6)}
    alike = [{"a": 1, "b": 2}] * (room // 20)
    names = {f"{number}": 1 for number in range(room // 10)}
    return [
        ("equals", under_a_long_name, under_a_long_name),
        ("equals", {}, names),
        ("contains", {"a": 1, "b": 3}, alike * 2),
        ("contains", "ab" * (room // 4) + "b", "ab" * (room // 2)),
    ]


@pytest.mark.parametrize(("kind", "value", "answer"), _longest())
def test_the_longest_comparison_of_what_is_small_is_short(kind: str, value: Any, answer: Any) -> None:
    began = time.thread_time()
    assert checks.compared(kind, {"value": value}, answer) is not None
    assert time.thread_time() - began < 0.25  # some 15 ms
