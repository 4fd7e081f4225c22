"""Files of all shapes and sizes, whole and broken."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest

from agentos.errors import ErrorKind, UserError
from agentos.trajectories.readers.records import RECORD_MAX, Record, files_of, read_records
from tests.refusals import raises


def read(tmp_path: Path, data: bytes, name: str = "x.json") -> list[Record]:
    path = tmp_path / name
    path.write_bytes(data)
    return list(read_records(path))


def values(records: list[Record]) -> list[object]:
    return [record.value if not record.fault else "refused" for record in records]


@pytest.mark.parametrize(
    "data",
    [
        b'[{"a": 1}, {"a": 2}]',
        b'\xef\xbb\xbf [\n{"a":1}\n,\n{"a":2}\n]\n',
        b'{"a": 1}\n{"a": 2}\n',
        b'{"a": 1}\r\n\r\n{"a": 2}',
    ],
)
def test_arrays_and_lines_are_told_apart_by_what_they_hold(tmp_path: Path, data: bytes) -> None:
    assert values(read(tmp_path, data)) == [{"a": 1}, {"a": 2}]


def test_one_document_may_go_over_many_lines(tmp_path: Path) -> None:
    assert values(read(tmp_path, json.dumps({"a": {"b": [1]}}, indent=2).encode())) == [{"a": {"b": [1]}}]


@pytest.mark.parametrize("first", ['{"id": 1, "timestamp": 2}', '{"a": 1}'])
@pytest.mark.parametrize("type", ["[1]", "{}", "null", "5"])
def test_a_type_that_is_no_text_makes_no_log_of_a_file(tmp_path: Path, first: str, type: str) -> None:
    found = read(
        tmp_path, f'{first}\n{{"type": {type}, "payload": {{}}, "sessionId": 1}}\n'.encode(), "x.jsonl"
    )
    assert len(values(found)) == 2


def test_an_empty_array_and_an_empty_file(tmp_path: Path) -> None:
    assert read(tmp_path, b"[ ]") == []
    assert read(tmp_path, b"", "x.jsonl") == []


def test_a_broken_line_costs_only_itself(tmp_path: Path) -> None:
    lines = [b'{"a": 1}', b'{"a": ', b"[1]", b'{"a": "\xff"}', b'{"a": NaN}', b'{"a": 2}']
    found = read(tmp_path, b"\n".join(lines), "x.jsonl")
    assert values(found) == [{"a": 1}, *["refused"] * 4, {"a": 2}]
    assert [record.place for record in found if record.fault] == [f"x.jsonl:{n}" for n in (2, 3, 4, 5)]
    assert [record.fault.split(" (")[0] for record in found if record.fault] == [
        "it is not JSON",
        "it must be an object, not an array",
        "it is not UTF-8",
        "it is not JSON",
    ]


@pytest.mark.parametrize("rest", [b'{"b" 1}]', b'{"b": 1', b""])
def test_what_follows_a_broken_element_is_lost_and_said_to_be(tmp_path: Path, rest: bytes) -> None:
    found = read(tmp_path, b'[{"a": 1}, ' + rest)
    assert values(found) == [{"a": 1}, "refused"]
    assert "what follows it is lost" in found[-1].fault


def test_an_element_that_is_no_text_costs_only_itself(tmp_path: Path) -> None:
    found = read(tmp_path, b'[{"a": 1}, {"b": "\xff"}, {"c": "\\udcff"}, {"d": "\\ud83d\\ude00"}]')
    assert values(found) == [{"a": 1}, "refused", "refused", {"d": "\U0001f600"}]


DEEP = b'{"a": "\\"]", "b": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    "odd",
    [b'{"a": 1e400}', b'{"a": NaN}', b"-Infinity", b'{"a": ' + b"9" * 5_000 + b"}", DEEP, b'"x"', b"1e999"],
)
def test_an_odd_element_costs_only_itself(tmp_path: Path, odd: bytes) -> None:
    for data, name in ((b'[{"a": 1}, ' + odd + b', {"a": 2}]', "x.json"), (odd + b'\n{"a": 2}', "x.jsonl")):
        found = read(tmp_path, data, name)
        assert values(found)[-2:] == ["refused", {"a": 2}]
        assert "lost" not in found[-2].fault


@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
@pytest.mark.parametrize("levels", [200, 100_000])
def test_deep_nesting_is_refused(tmp_path: Path, name: str, levels: int) -> None:
    deep = b'{"a": ' + b"[" * levels + b"]" * levels + b"}"
    (record,) = read(tmp_path, deep, name)
    assert "nested more than 100 levels deep" in record.fault
    (element,) = read(tmp_path, b"[" + deep + b"]")
    assert "nested more than 100 levels deep" in element.fault


@pytest.mark.slow
def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    long = b'{"a": "' + b"x" * (RECORD_MAX + 100_000) + b'"}'
    found = read(tmp_path, long + b'\n{"a": 2}\n', "x.jsonl")
    assert values(found) == ["refused", {"a": 2}]


@pytest.mark.parametrize("shape", ["lines", "array"])
@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path, shape: str) -> None:
    one = json.dumps({"text": "x" * 2_000})
    text = "\n".join([one] * 8_000) if shape == "lines" else f"[{','.join([one] * 8_000)}]"
    path = tmp_path / "big.json"
    path.write_text(text)
    del text
    tracemalloc.start()
    assert sum(not record.fault for record in read_records(path)) == 8_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20


@pytest.mark.slow
def test_a_long_element_is_read_in_linear_time(tmp_path: Path) -> None:
    found = read(tmp_path, b'[{"a": "' + b"x" * (20 << 20) + b'"}, {"b": 1}]')
    assert [record.fault for record in found] == ["", ""]


def test_a_directory_stands_for_its_json_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "x.json").mkdir()
    for name in ("in/b.json", "a.jsonl", "x.json/c.traj", "notes.txt"):
        (tmp_path / name).write_text("{}")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "gone.json").symlink_to("nowhere")
    found = files_of(tmp_path)
    assert [path.name for path in found.files] == ["a.jsonl", "b.json", "c.traj"]
    assert sorted(found.passed_over.values()) == [1, 1, 1]
    with raises(UserError, ErrorKind.UNREADABLE, names=["pipe.json"]):
        files_of(tmp_path / "pipe.json")
    with raises(UserError, ErrorKind.UNREADABLE, names=["empty"]):
        files_of((tmp_path / "empty").mkdir() or tmp_path / "empty")
    with raises(UserError, ErrorKind.UNREADABLE, names=["absent"]):
        files_of(tmp_path / "absent")


def test_of_a_tree_deeper_than_the_stack_the_upper_part_is_read(deep_tree: Path) -> None:
    found = files_of(deep_tree)
    assert [path.name for path in found.files] == ["a.jsonl"]
    assert sum(found.passed_over.values()) == 1
