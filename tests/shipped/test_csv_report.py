"""The skill csv-report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import raises

Call = Callable[..., Any]
SALES = '\ufeffregion, amount,when\nnorth,0.1,2026-01-01\nsouth, 0.2 ,\nnorth,,2026-01-03\n,0.3,"a, b"\n'


@pytest.fixture(autouse=True)
def sales(workspace: Path) -> None:
    (workspace / "sales.csv").write_text(SALES, encoding="utf-8")


def test_column_sum(call: Call) -> None:
    assert call("column_sum", path="sales.csv", column="amount") == {"total": 0.6, "rows": 4, "empty": 1}


def test_column_sum_rounds_once(call: Call, workspace: Path) -> None:
    (workspace / "many.csv").write_text("n\n" + "0.1\n" * 10 + "1e16\n-1e16\n")
    assert call("column_sum", path="many.csv", column="n")["total"] == 1.0


def test_a_wrong_cell_or_column_is_an_error_with_its_place(call: Call, workspace: Path) -> None:
    with raises(ValueError, message="csv_report.no_column"):
        call("column_sum", path="sales.csv", column="amounts")
    (workspace / "bad.csv").write_text("n\n1\nx\n")
    with raises(ValueError, message="csv_report.no_number"):
        call("column_sum", path="bad.csv", column="n")


def test_other_delimiters_and_short_rows(call: Call, workspace: Path) -> None:
    (workspace / "semi.csv").write_text("a;b\r\n1;2\r\n3\r\n")
    assert call("column_sum", path="semi.csv", column="b", delimiter=";") == {
        "total": 2,
        "rows": 2,
        "empty": 1,
    }


def test_group_by(call: Call) -> None:
    assert call("group_by", path="sales.csv", key="region", column="amount")["groups"] == [
        {"key": "", "rows": 1, "total": 0.3},
        {"key": "north", "rows": 2, "total": 0.1},
        {"key": "south", "rows": 1, "total": 0.2},
    ]
    counted = call("group_by", path="sales.csv", key="region")["groups"]
    assert [(group["key"], group["rows"], group["total"]) for group in counted] == [
        ("", 1, None), ("north", 2, None), ("south", 1, None),
    ]  # fmt: skip


def test_describe(call: Call, workspace: Path) -> None:
    found = call("describe", path="sales.csv")
    assert found["rows"] == 4
    region, amount, when = found["columns"]
    assert region == {
        "name": "region", "filled": 3, "distinct": 2, "minimum": None, "maximum": None, "mean": None,
    }  # fmt: skip
    assert (amount["minimum"], amount["maximum"], amount["mean"]) == (0.1, 0.3, pytest.approx(0.2))
    assert (when["filled"], when["distinct"]) == (3, 3)
    (workspace / "nan.csv").write_text("x,y\nnan,\n1,\n")
    assert [column["mean"] for column in call("describe", path="nan.csv")["columns"]] == [None, None]
    (workspace / "empty.csv").write_text("")
    assert call("describe", path="empty.csv") == {"rows": 0, "columns": []}


def test_what_is_no_number_of_a_table_is_told_with_its_place(call: Call, workspace: Path) -> None:
    for cell in ("nan", "inf", "1_000"):
        (workspace / "odd.csv").write_text(f"x,y\n1,\n{cell},\n")
        with raises(ValueError, names=["line 3", repr(cell)]):
            call("column_sum", path="odd.csv", column="x")
        assert call("describe", path="odd.csv")["columns"][0]["mean"] is None


def test_a_column_that_stands_there_twice_is_told(call: Call, workspace: Path) -> None:
    (workspace / "twice.csv").write_text("x,y,x,,\n1,2,3,,\n")
    for tool, args in (("column_sum", {"column": "x"}), ("group_by", {"key": "x"}), ("describe", {})):
        with raises(ValueError, message="csv_report.column_twice"):
            call(tool, path="twice.csv", **args)
    assert call("column_sum", path="twice.csv", column="y")["total"] == 2.0


def test_empty_lines_above_the_header_are_passed_over(call: Call, workspace: Path) -> None:
    (workspace / "late.csv").write_text("\n\na,b\n\n1,2\n3\n")
    assert call("column_sum", path="late.csv", column="a") == {"total": 4.0, "rows": 2, "empty": 0}
    assert [column["filled"] for column in call("describe", path="late.csv")["columns"]] == [2, 1]
