"""The frame of all commands: what they import, how they fail, how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentos import __version__
from agentos.cli import main
from agentos.cli.main import COMMANDS, load, of_another
from agentos.errors import ErrorKind
from agentos.home import Home
from tests.command_server import command_server

Agentos = Callable[..., "subprocess.CompletedProcess[str]"]

HEAVY = {
    "alembic", "croniter", "dbos", "git", "jsonschema", "langgraph", "litellm", "pydantic",
    "pydantic_settings", "sqlalchemy", "sqlmodel", "structlog", "tenacity", "watchfiles",
}  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("status",),
        ("--home", ".", "task", "list"),
        ("daemon", "status"),
        ("audit", "list"),
        ("registry", "show", "agent/default"),
    ],
    ids=" ".join,
)
def test_commands_that_read_import_nothing_heavy(agentos: Agentos, arguments: tuple[str, ...]) -> None:
    done = agentos(*arguments, options=("-X", "importtime"), code=None)
    imported = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert not imported & HEAVY
    assert done.returncode in (0, 1)  # `daemon status` says 1 when none runs


# Of our own: what writes, judges or runs, and is as dear to import as a library.
OURS = {
    "agentos.daemon.upkeep.doctor", "agentos.daemon.offline", "agentos.daemon.service", "agentos.ledger.store",
    "agentos.registry.promotion", "agentos.registry.push_inbox",
    "agentos.registry.skill_folders.skills_folder", "agentos.registry.wheels", "agentos.settings",
}  # fmt: skip


@pytest.mark.parametrize("noun", ["task", "run", "evolution", "registry"])
@pytest.mark.slow
def test_a_list_imports_neither_judge_nor_writer_and_as_json_no_drawing(agentos: Agentos, noun: str) -> None:
    drawn, data = (
        {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        for form in ((), ("--json",))
        if (done := agentos(noun, "list", *form, options=("-X", "importtime")))
    )
    assert sorted((drawn | data) & OURS) == []
    assert not {name.split(".")[0] for name in drawn | data} & HEAVY
    assert not {name for name in drawn | data if name.startswith("agentos.evolver.")}
    assert "rich" in drawn
    assert "rich" not in data


def test_numbers_and_homes_that_are_none_are_wrong_usage(agentos: Agentos) -> None:
    agentos("--home", "", "status", code=2)
    for noun in ("task", "run", "evolution", "failure", "audit", "notify"):
        agentos(noun, "list", "--limit", "99999999999999999999", code=2)
    agentos("registry", "log", "agent/default", "--limit", "99999999999999999999", code=2)


def test_help_leaves_out_the_old_names_of_commands(agentos: Agentos) -> None:
    for noun, now, before in (("run", "bad", "flag"), ("evolution", "retry", "reconsider")):
        first = {
            line.split()[0] for line in agentos(noun, "--help").stdout.splitlines() if line.startswith("  ")
        }
        assert (now in first, before in first) == (True, False)
        assert before in agentos(noun, before, "--help").stdout  # and they work


def test_help_lists_every_command_with_its_line(agentos: Agentos) -> None:
    said = agentos("--help").stdout
    for name, (_, line) in COMMANDS.items():
        assert name in said
        assert " ".join(line.split()) in said  # a line that is too long ends in dots


def test_the_version(agentos: Agentos) -> None:
    assert agentos("--version").stdout == f"agentos {__version__}\n"


def test_wrong_usage_is_exit_code_2(agentos: Agentos) -> None:
    for arguments in (
        ("nonsense",),
        ("task", "nonsense"),
        ("task", "list", "--nonsense"),
        ("task", "show"),
        ("prune", "--days", "inf"),
    ):
        assert "Traceback" not in agentos(*arguments, code=2).stderr


def test_wrong_usage_is_told_what_was_meant(agentos: Agentos) -> None:
    assert "Did you mean 'status'?" in agentos("statu", code=2).stderr
    assert "Did you mean 'list'?" in agentos("task", "lst", code=2).stderr
    for given in (("--home", "/x"), ("--home=/x",)):
        assert "agentos --home PATH status" in agentos("status", *given, code=2).stderr


def test_what_a_person_can_mend_is_one_sentence_and_exit_code_1(agentos: Agentos, tmp_path: Path) -> None:
    done = agentos("--home", str(tmp_path / "nowhere"), "task", "list", code=1)
    assert "agentos init" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert agentos("task", "show", "zzz", code=1).stderr.startswith("There is no task 'zzz'")


def test_the_home_of_another_user_is_called_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTOS_HOME", str(home.root))
    assert of_another(PermissionError(13, "")) == ""
    monkeypatch.setattr(os, "geteuid", lambda: home.root.stat().st_uid + 1)
    assert home.root.owner() in of_another(PermissionError(13, ""))
    assert of_another(FileNotFoundError(2, "")) == ""


def test_a_home_directory_that_nobody_has_is_a_sentence(agentos: Agentos) -> None:
    done = agentos("--home", "~no-such-user/home", "status", code=1)
    assert "~no-such-user" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_is_named_as_it_is_called(agentos: Agentos, home: Home, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("goal: [")
    done = agentos("task", "add", "bad.yaml", code=1)
    assert done.stderr.startswith("bad.yaml: ")


def test_a_word_that_was_typed_is_told_as_it_was_typed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["agentos", "run", "export", "run-1", "out"])
    main._say("out is not an empty directory")
    main._say("no such run")
    assert capsys.readouterr().err.splitlines() == ["out is not an empty directory.", "No such run."]


def test_a_filter_that_finds_nothing_does_not_say_that_there_is_nothing(agentos: Agentos) -> None:
    assert "No entry is on 'nobody'" in agentos("audit", "list", "--subject", "nobody").stdout
    for noun, *narrow in (
        ("task", "--state", "running"),
        ("run", "--result", "failed"),
        ("evolution", "--state", "mined"),
    ):
        assert f"`agentos {noun} list`" in agentos(noun, "list", *narrow).stdout


def test_a_bug_is_exit_code_3_and_leaves_a_report(home: Home, tmp_path: Path) -> None:
    (tmp_path / "bug.py").write_text(
        "import sys\nfrom agentos.cli import main\nmain.COMMANDS['status'] = ('bug', '')\nmain.run()\n"
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "bug.py", "status"],
        capture_output=True,
        text=True,
        env=os.environ | {"AGENTOS_HOME": str(home.root)},
    )
    assert done.returncode == 3
    assert "This is a bug of agentos" in done.stderr
    assert "Traceback" not in done.stderr
    (report,) = home.logs.glob("bug-*.txt")
    assert "Traceback" in report.read_text()


@pytest.mark.parametrize(
    "arguments", ["--help", "registry list", "registry list --json", "registry diff tool/shell"]
)
@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(home: Home, arguments: str) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        [sys.executable, "-m", "agentos", *arguments.split()],
        stdout=writes,
        stderr=subprocess.PIPE,
        env=os.environ | {"AGENTOS_HOME": str(home.root)},
    )
    os.close(writes)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
def test_ctrl_c_is_exit_code_130(home: Home) -> None:
    # Tests that run in a shell's background inherit "ignore Ctrl-C", and so would the child.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    child = subprocess.Popen(
        [sys.executable, "-m", "agentos", "evolution", "watch"],
        env=os.environ | {"AGENTOS_HOME": str(home.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 120
    while not _has_open(child.pid, "ledger.db") and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 130
    assert b"Traceback" not in said


def _has_open(pid: int, name: str) -> bool:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed again since the listing
            if name in os.readlink(link):
                return True
    return False


@pytest.mark.slow
def test_a_full_disk_is_a_sentence(agentos: Agentos, home: Home) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "agentos", "registry", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"AGENTOS_HOME": str(home.root)},
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("status",),
        ("task", "list"),
        ("run", "list"),
        ("evolution", "list"),
        ("registry", "list"),
        ("audit", "list"),
    ],
    ids=" ".join,
)
def test_read_commands_speak_json(agentos: Agentos, arguments: tuple[str, ...]) -> None:
    json.loads(agentos(*arguments, "--json").stdout)


def reading_commands() -> list[tuple[str, ...]]:
    """Each command that has --json, with something for each argument that it wants."""
    found: list[tuple[str, ...]] = []
    for noun in COMMANDS:
        command = load(noun)
        for verb, it in getattr(command, "commands", {"": command}).items():
            options = [option for item in it.params for option in item.opts]
            if "--json" in options:
                wanted = sum(item.param_type_name == "argument" and item.required for item in it.params)
                found.append((noun, *filter(None, (verb,)), *["nothing"] * wanted, "--json"))
    return found


@pytest.mark.slow
def test_every_command_that_speaks_json_tells_errors_in_it(agentos: Agentos, tmp_path: Path) -> None:
    """With no home most have an error to tell: it is one line on standard error, and what is printed stays JSON."""
    told = 0
    for words in reading_commands():
        done = agentos("--home", str(tmp_path / "nowhere"), *words, code=None)
        for line in done.stderr.splitlines() if done.returncode in (1, 2) and not done.stdout else ():
            error = json.loads(line)["error"]
            assert set(error) == {"kind", "detail", "faults", "type_next"}, words
            assert error["kind"] in set(ErrorKind), words
            told += 1
    assert told > 25


def test_an_error_is_json_where_json_is_asked_for(agentos: Agentos) -> None:
    def error(*words: str, code: int) -> dict[str, Any]:
        done = agentos(*words, code=code)
        assert done.stdout == ""
        told: dict[str, Any] = json.loads(done.stderr)["error"]
        return told

    unknown = error("task", "show", "zzz", "--json", code=1)
    assert (unknown["kind"], unknown["type_next"]) == ("not_found", ["agentos task list"])
    assert "zzz" in unknown["detail"]
    assert error("task", "show", "--json", code=2)["kind"] == "usage"
    assert error("task", "list", "--json", "--nonsense", code=2)["kind"] == "usage"
    assert agentos("task", "show", "zzz", code=1).stderr.count("{") == 0


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}]
)
@pytest.mark.slow
def test_a_terminal_without_unicode_and_arguments_that_are_no_text(
    home: Home, tmp_path: Path, locale: dict[str, str]
) -> None:
    environment = os.environ | {"AGENTOS_HOME": str(home.root)} | locale
    commands = (
        (0, [b"model", b"list"]),  # its sentence has an ellipsis
        (0, [b"registry", b"list", b"--json"]),
        (1, [b"task", b"show", b"ta\xff\xfe"]),
        (1, [b"task", b"add", b"/tmp/\xff.yaml"]),
        (1, [b"registry", b"show", b"skill/\xff\xc3"]),
        (2, [b"\xff"]),
    )
    codes, said = _each(*(words for _, words in commands), place=tmp_path, env=environment)
    assert codes == [code for code, _ in commands], said
    assert b"Traceback" not in said
    assert not list(home.logs.glob("bug-*"))


@pytest.mark.parametrize(
    ("typed", "at", "found"), [("agentos ta", 1, "task"), ("agentos registry ret", 2, "retire")]
)
def test_a_shell_completes_nouns_and_verbs(
    agentos: Agentos, monkeypatch: pytest.MonkeyPatch, typed: str, at: int, found: str
) -> None:
    monkeypatch.setenv("_AGENTOS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(at))
    assert agentos().stdout.split() == [found]


def test_completion_can_be_shown(agentos: Agentos, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    assert "_agentos_completion" in agentos("--show-completion", "bash").stdout


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
@pytest.mark.slow
def test_streams_that_were_closed_are_stood_in_for(home: Home, tmp_path: Path, closed: str) -> None:
    commands = (
        [b"status"],
        [b"task", b"list", b"--json"],
        [b"registry", b"list"],
        [b"task", b"show", b"nobody"],
    )
    env = os.environ | {"AGENTOS_HOME": str(home.root)}
    codes, said = _each(*commands, place=tmp_path, env=env, closed=closed)
    assert codes == [0, 0, 0, 1], said
    assert b"Traceback" not in said
    assert not list(home.logs.glob("bug-*"))


# What an interpreter makes of its streams and arguments as it starts does not change with the command.
_EACH = """
import json, os, sys
from agentos.cli.main import run
codes = []
words = sys.argv[2:]
while words:
    end = words.index("--then")
    if (pid := os.fork()) == 0:
        sys.argv = ["agentos", *words[:end]]
        sys.exit(run())
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    words = words[end + 1:]
with open(sys.argv[1], "w") as file:
    json.dump(codes, file)
"""


def _each(
    *commands: Sequence[bytes], place: Path, env: Mapping[str, str], closed: str = ""
) -> tuple[list[int], bytes]:
    """Run each in a fork of one interpreter that has imported the command and no more: exit codes, all of stderr."""
    words = [word for command in commands for word in (*command, b"--then")]
    program = [sys.executable.encode(), b"-c", _EACH.encode(), bytes(place / "codes"), *words]
    shell = [b"sh", b"-c", f'exec "$0" "$@" {closed}'.encode()]
    done = subprocess.run([*shell, *program], env=env, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads((place / "codes").read_text()), done.stderr


@pytest.mark.parametrize("columns", ["0", "00", ""])
def test_a_width_that_is_none_hides_nothing(
    home: Home, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = os.environ | {"AGENTOS_HOME": str(home.root), "COLUMNS": columns, "TERM": "dumb"}
    done = command_server().run("registry", "list", env=environment)
    assert done.returncode == 0, done.stderr
    assert "agent/default" in done.stdout


def test_a_name_without_its_other_half_and_a_file_of_another_kind_are_told_shortly(
    agentos: Agentos, tmp_path: Path
) -> None:
    for name in ("skill", "skill/"):
        told = agentos("registry", "show", name, code=1).stderr
        assert "KIND/NAME" in told
        assert "agentos registry list --kind skill" in told
    (tmp_path / "passwd").write_text("".join(f"user{number}:x: {number}\n" for number in range(100)))
    told = agentos("task", "add", str(tmp_path / "passwd"), code=1).stderr
    assert "line 1" in told
    assert "more faults" in told
    assert "line 90" not in told
