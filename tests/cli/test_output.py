"""Tables: a line for each row in a terminal, all of it in a pipe; help that is not cut."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from agentos.cli.main import COMMANDS, load
from agentos.cli.output import confirm, counted, print_json, print_table, tell_progress

ROWS = [("task-1", "a name " * 9, "why " * 40), ("task-2", "short", "")]


def table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, *, below: bool = False
) -> list[str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns:
        monkeypatch.setenv("COLUMNS", columns)
    print_table(("task", "name", "why"), ROWS, empty="none", below=below)
    return capsys.readouterr().out.splitlines()


def test_what_does_not_fit_is_cut_but_never_the_id(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = table(monkeypatch, capsys, "40")
    assert len(lines) == 3
    assert max(map(len, lines)) <= 40
    assert lines[1].startswith("task-1  ")
    assert "…" in lines[1]


def test_the_last_column_moves_below_where_it_has_no_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = table(monkeypatch, capsys, "80", below=True)
    assert lines[0].split() == ["task", "name"]
    assert lines[2].startswith("    why why")
    assert lines[2].endswith("…")
    assert lines[3] == "task-2  short"


def test_a_pipe_gets_every_row_whole_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = table(monkeypatch, capsys, "", below=True)
    assert len(lines) == 3
    assert lines[1].count("why") == 40
    assert not [line for line in lines if line != line.rstrip()]


def test_a_wrapped_table_leaves_no_blanks_at_the_end_of_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [("x", "a sentence that is longer " * 5), ("yy", "z")], empty="", wrap=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert lines == [line.rstrip() for line in lines]


def test_progress_is_told_to_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_progress("It takes a while.")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    tell_progress("It takes a while.")
    assert capsys.readouterr() == ("", "It takes a while.\n")


def test_a_question_is_asked_beside_the_output_which_a_program_may_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    confirm("Remove it?", yes=False)
    assert capsys.readouterr() == ("", "Remove it? [y/N] ")


def test_a_table_without_rows_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("task",), [], empty="No tasks yet.")
    assert capsys.readouterr().out == "No tasks yet.\n"


@pytest.mark.slow
def test_help_names_every_verb_in_full_and_nothing_else(
    agentos: Callable[..., CompletedProcess[str]],
) -> None:
    for noun in COMMANDS:
        text = " ".join(agentos(noun, "--help").stdout.split())
        assert "Usage: agentos" in text, noun
        assert "completion" not in text, noun
        assert "<bool>" not in text, noun
        assert not re.search(r"<(str|int|float|path|list|Path)\b", text), noun
        for verb in getattr(load(noun), "commands", {}).values():
            told = " ".join(str(verb.help).split("\n\n")[0].split())
            assert verb.hidden or told in text, noun


def test_json_holds_nothing_that_a_terminal_obeys_and_is_whole_with_half_a_character(
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {"said": "half \ud800, \x9b[31m, \x7f, \u202ereversed, née 中"}
    print_json(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert "née 中" in out.encode().decode()
    assert not {"\x9b", "\x7f", "\u202e", "\ud800"} & {*out}


def test_no_number_that_is_none_reaches_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [float("nan"), float("inf"), 1.5], "b": -float("inf")})
    said = capsys.readouterr().out
    assert json.loads(said, parse_constant=pytest.fail) == {"a": [None, None, 1.5], "b": None}


def test_a_table_into_a_pipe_needs_no_library_and_stands_in_columns() -> None:
    code = (
        "import sys\nfrom agentos.cli.output import print_table\n"
        "print_table(['name', 'why'], [['a', 'x'], ['longer\\nname', '\\x1b[31m'], ['b', '']], empty='None.')\n"
        "print_table(['name'], [], empty='None.')\n"
        "print(sorted({'rich', 'rich.console', 'rich.cells'} & set(sys.modules)))\n"
    )
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines() == [
        "name         why", "a            x", "longer name  \\x1b[31m", "b", "None.", "[]",
    ]  # fmt: skip


def test_one_is_counted_as_one() -> None:
    assert [counted(number, "box") for number in (0, 1, 2, 1_000)] == [
        "0 boxes",
        "1 box",
        "2 boxes",
        "1,000 boxes",
    ]
    assert counted(1, "task") == "1 task"
