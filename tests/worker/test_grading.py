"""The job ``grade``: every kind of check in a child of its own where it could hang or lie."""

from __future__ import annotations

import io
import json
import tarfile
import time
from collections.abc import Callable
from typing import Any

import pytest

from agentos.sandboxes.plainfiles import write_tar
from agentos.worker.jobs import grading

EVIL = '{"x": 1}'


def reasons(worker: Any, answer: Any, *asked: tuple[str, dict[str, Any]], **given: Any) -> list[str]:
    done = worker.grade(answer, *asked, **given)
    assert [check.passed for check in done.checks] == [not check.detail for check in done.checks]
    return [check.detail for check in done.checks]


def test_all_kinds_in_order(worker: Any) -> None:
    schema = {"type": "object", "required": ["total"]}
    tar = write_tar({"out.txt": b"3 rows\n"})
    found = reasons(
        worker,
        {"total": 3},
        ("equals", {"path": "total", "value": 3}),
        ("contains", {"value": {"total": 3}}),
        ("regex", {"pattern": "total.*3"}),
        ("json_schema", {"schema": schema}),
        ("file", {"path": "out.txt", "contains": "3"}),
        ("command", {"argv": ["cat", "out.txt"], "stdout_contains": "3 rows"}),
        ("python", {"code": "assert answer['total'] == len((workspace / 'out.txt').read_text()) - 4"}),
        ("python", {"code": "passed = answer['total'] == 3"}),
        tar=tar,
    )
    assert found == [""] * 8
    assert worker.ended() == "good"


def test_each_failure_says_why(worker: Any) -> None:
    found = reasons(
        worker,
        {"total": 4},
        ("equals", {"path": "total", "value": 3}),
        ("command", {"argv": ["sh", "-c", "echo no >&2; exit 3"]}),
        ("command", {"argv": ["echo", "yes"], "stdout_contains": "no"}),
        ("command", {"argv": ["./no-such-program"]}),
        ("command", {"argv": ["false"], "exit": 1}),
        ("python", {"code": "assert answer['total'] == 3, 'three were expected'"}),
        ("python", {"code": "answer['sum']"}),
        ("python", {"code": "passed = False"}),
        ("python", {"code": "import os; os._exit(0)"}),
        ("equal", {"value": 3}),
    )
    expected = [
        "expected 3, found 4",
        "status 3, expected 0: no",
        "printed 'yes\\n', without 'no'",
        "cannot be started: No such file",
        "",
        "the assertion failed: three were expected",
        "the check raised KeyError: 'sum'",
        "set passed to a false value",
        "ended its process with status 0",
        "'equal' is no kind of check",
    ]
    for detail, part in zip(found, expected, strict=True):
        assert part in detail
        assert bool(part) == bool(detail)


@pytest.mark.parametrize(
    "hanging",
    [
        ("regex", {"pattern": "^(a+)+$"}),
        ("python", {"code": "while True: pass"}),
        ("command", {"argv": ["sleep", "60"]}),
        ("json_schema", {"schema": {"type": "string", "pattern": "^(a+)+$"}}),
    ],
)
@pytest.mark.slow
def test_a_check_that_hangs_leaves_time_for_the_rest(
    worker: Any, hanging: tuple[str, dict[str, Any]]
) -> None:
    started = time.monotonic()
    answer = "a" * 60 + "b"
    found = reasons(worker, answer, hanging, ("regex", {"pattern": "b$"}), wall_s=2.0)
    assert "did not end within 1.0 s" in found[0]
    assert found[1] == ""
    assert time.monotonic() - started < 10


def test_endless_output_and_left_over_processes(worker: Any) -> None:
    started = time.monotonic()
    found = reasons(
        worker,
        None,
        ("command", {"argv": ["yes"]}),
        ("command", {"argv": ["sh", "-c", "sleep 60 & sleep 60 & exit 0"]}),
    )
    assert "printed more than" in found[0]
    assert found[1] == ""
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("printing", "says"),
    [
        ("sleep 60 & cat", "said.stdout == 'typed' and not said.status"),
        ("yes | head -c 40000000", "len(said.stdout) == 16 << 20"),
    ],
)
def test_a_program_of_the_workspace_holds_no_check_up(worker: Any, printing: str, says: str) -> None:
    """By what it leaves running, or by printing more than the grader may hold."""
    code = f"said = run(['sh', '-c', {printing!r}], input='typed', timeout_s=30)\nassert {says}, said.stderr"
    began = time.monotonic()
    (check,) = worker.grade(None, ("python", {"code": code, "runs_workspace": True}), wall_s=120.0).checks
    assert (check.passed, check.detail) == (True, "")
    assert time.monotonic() - began < 30.0


def test_the_candidates_files_are_not_imported(worker: Any) -> None:
    tar = write_tar({"json.py": b"raise SystemExit(0)", "sitecustomize.py": b"1/0"})
    code = "import json\nassert json.dumps([1]) == '[1]'\nimport sys\nassert '' not in sys.path"
    assert reasons(worker, None, ("python", {"code": code}), tar=tar) == [""]


def test_a_hostile_archive_stays_inside(workers: Callable[[], Any]) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (("../outside", tarfile.REGTYPE), ("/tmp/absolute-out", tarfile.REGTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, 1
            archive.addfile(member, io.BytesIO(b"x"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    worker = workers()
    assert "not among" in reasons(worker, None, ("file", {"path": "link"}), tar=buffer.getvalue())[0]
    assert not (worker.workspace.parent / "outside").exists()
    assert list(worker.workspace.iterdir()) == []


def test_files_that_no_box_can_hold_fail_the_checks_and_not_the_grader(worker: Any) -> None:
    """Else a harness that makes some up would end each of its runs as one whose checks could not be applied."""
    absent = ("file", {"path": "x", "exists": False})
    found = reasons(worker, 3, ("equals", {"value": 3}), absent, tar=write_tar({"a" * 300: b"x"}))
    assert all("cannot be laid out" in why for why in found)


def test_an_answer_is_data(worker: Any) -> None:
    deep = json.loads("[" * 190 + "]" * 190)
    found = reasons(worker, deep, ("equals", {"value": deep}), ("regex", {"pattern": r"\[\["}))
    assert found == ["", ""]


def test_a_checks_own_limits() -> None:
    """Who grades has this much of memory, of what it keeps of output, of a reason, and of a nonce."""
    assert (grading._MEMORY_MB, grading._OUTPUT, grading._DETAIL, grading._NONCE) == (256, 1 << 20, 2_000, 32)


def test_a_long_reason_is_cut_and_a_verdict_keeps_its_place(worker: Any) -> None:
    found = reasons(
        worker,
        None,
        ("python", {"code": "call('a.py', 'f')", "runs_workspace": True}),
        ("python", {"code": "assert False, 'x' * 5_000"}),
        ("equals", {"value": None}),
    )
    assert "a.py" in found[0]
    assert found[1].startswith("the assertion failed: xxx")
    assert 1_900 < len(found[1]) <= 2_100
    assert found[2] == ""
