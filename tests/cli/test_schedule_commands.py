"""schedule and ask commands, on a home without a daemon and once with a real one."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.cli.tasks.ask import _arguments, _tell_answer
from agentos.domain import Outcome, Result, Run, Share, Snapshot, TaskState
from agentos.errors import ErrorKind
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.ledger.schedules import copies
from tests.refusals import assert_golden

Agentos = Callable[..., "subprocess.CompletedProcess[str]"]

COUNT = """
name: nightly words
call: {tool: word_count, args: {path: text.txt}}
inputs: [text.txt]
timezone: Europe/Berlin
deliver: {folder: out, name: "{date}.json"}
"""
NEWS = "{name: news, call: {tool: word_count, args: {path: text.txt}}, inputs: [{path: text.txt, newer_than: last_run}]}"
NEVER = ("--cron", "0 0 1 1 *")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("three small words\n")
    (tmp_path / "count.yaml").write_text(COUNT)
    return tmp_path / "count.yaml"


@pytest.mark.slow
def test_a_schedule_is_added_listed_paused_run_and_removed(
    agentos: Agentos, file: Path, home: Home, tmp_path: Path
) -> None:
    assert_golden("schedule_add.timezone", agentos("schedule", "add", str(file), code=1).stderr)
    plain = tmp_path / "plain.yaml"
    plain.write_text("{goal: g}")
    assert_golden("schedule_add.cron", agentos("schedule", "add", str(plain), code=1).stderr)
    (added,) = json.loads(agentos("schedule", "add", str(file), *NEVER, "--json").stdout)
    schedule_id = added["schedule"]["id"]
    assert added["next"].endswith("-12-31T23:00:00+00:00")  # midnight in Berlin
    assert "nightly words" in agentos("schedule", "list").stdout
    agentos("schedule", "pause", "nightly words")
    assert "paused" in agentos("schedule", "list").stdout
    agentos("schedule", "resume", schedule_id)
    copy_id = json.loads(agentos("schedule", "run", schedule_id, "--json").stdout)["task"]
    shown = json.loads(agentos("schedule", "show", schedule_id, "--json").stdout)
    assert [one["task"] for one in shown["runs"]] == [copy_id]
    assert schedule_id in agentos("schedule", "show", "nightly words").stdout
    (row,) = json.loads(agentos("task", "list", "--json").stdout)  # its runs fold into its row
    assert row["task"]["id"] == schedule_id
    assert len(json.loads(agentos("task", "list", "--all", "--json").stdout)) == 2
    agentos("schedule", "remove", schedule_id, "--yes")
    assert json.loads(agentos("schedule", "list", "--json").stdout) == []
    assert Reader(home.ledger).task_view(schedule_id).state is TaskState.CANCELLED
    assert_golden("schedule_pause.no_schedule", agentos("schedule", "pause", schedule_id, code=1).stderr)


HOLDS_THE_LOCK = """
import sys; from pathlib import Path
from agentos.daemon.control.daemon_lock import DaemonLock; from agentos.home import Home
lock = DaemonLock(Home(Path(sys.argv[1]))); print("held", flush=True); sys.stdin.read()
"""


def test_without_a_zone_the_next_time_is_by_the_clock_of_the_daemon(
    agentos: Agentos, file: Path, home: Home
) -> None:
    file.write_text(COUNT.replace("timezone: Europe/Berlin\n", ""))
    daemon = [sys.executable, "-c", HOLDS_THE_LOCK, str(home.root)]
    with subprocess.Popen(
        daemon, env=os.environ | {"TZ": "Asia/Tokyo"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        (added,) = json.loads(agentos("schedule", "add", str(file), "--cron", "0 9 * * *", "--json").stdout)
        child.kill()
    assert added["next"].endswith("T00:00:00+00:00")
    (listed,) = json.loads(agentos("schedule", "list", "--json").stdout)
    assert listed["next"].endswith(
        f"{datetime.now().astimezone().replace(hour=9).astimezone(UTC):T%H}:00:00+00:00"
    )


def test_asking_says_what_to_type_where_it_cannot(agentos: Agentos) -> None:
    assert_golden("ask.agentos_model_add", agentos("ask", "what is this?", code=1).stderr)
    assert_golden("ask_tool.agentos_daemon_start", agentos("ask", "--tool", "word_count", code=1).stderr)
    assert_golden("ask.what_is_the_question", agentos("ask", "-", stdin="  ", code=1).stderr)
    assert_golden("ask_tool.name_value", agentos("ask", "--tool", "x", "--arg", "y", code=1).stderr)
    assert_golden("ask_arg.tool", agentos("ask", "what?", "--arg", "x=y", code=1).stderr)


def test_an_answer_that_is_no_text_is_json_whatever_it_holds(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = {"text": "\0 \u202e \x85 \x1b[31m \ud800"}
    run = Run("run-1", "task-1", "", Share.OPEN, 1, Snapshot("", ""), "", "", datetime.now(UTC))
    _tell_answer(home, replace(run, outcome=Outcome(Result.PASSED, 1.0, ""), answer=answer))
    said = capsys.readouterr().out
    assert json.loads(said) == answer
    assert said.isascii()


def test_an_argument_is_json_or_else_text() -> None:
    deep = "[" * 100_000
    said = _arguments(["a=1", "b=one", "c=NaN", f"d={deep}", "e=", "f=x=y"])
    assert said == {"a": 1, "b": "one", "c": "NaN", "d": deep, "e": "", "f": "x=y"}


def test_what_nobody_could_do_is_told_when_it_is_added(agentos: Agentos) -> None:
    added = agentos("schedule", "add", "-", "--cron", "0 5 * * *", stdin="{goal: what went wrong?}")
    assert_golden("schedule.agentos_model_add", added.stderr)
    added = agentos(
        "schedule",
        "add",
        "-",
        "--watch",
        "in",
        stdin="{goal: g, call: {tool: word_count, args: {path: '{file}'}}}",
    )
    assert_golden("schedule.not_there_now", added.stderr)
    assert "model add" not in added.stderr
    assert "put a file into" in agentos("schedule", "show", added.stdout.split()[0]).stdout


def test_a_tool_that_is_not_here_and_a_name_twice_are_told_at_once(agentos: Agentos) -> None:
    document = "{name: n, goal: g, call: {tool: TOOL, args: {path: x}}}"
    added = agentos("schedule", "add", "-", *NEVER, stdin=document.replace("TOOL", "text-stats/nothing"))
    assert_golden("schedule.no_tool_text_stats_nothing", added.stderr)
    assert "text-stats/" in added.stderr.partition("Did you mean")[2], "what that skill has"
    assert "another schedule" not in added.stderr.lower()
    again = agentos("schedule", "add", "-", *NEVER, stdin=document.replace("TOOL", "word_count"))
    assert "No tool" not in again.stderr
    assert added.stdout.split()[0] in again.stderr
    for _ in range(2):
        odd = agentos(
            "schedule", "add", "-", *NEVER, stdin='{name: "\\e]0;x\\a", call: {tool: word_count, args: {}}}'
        )
    assert_golden("schedule.another_schedule", odd.stderr)
    several = json.loads(agentos("schedule", "show", "task-", "--json", code=1).stderr)["error"]
    assert several["kind"] == ErrorKind.AMBIGUOUS
    assert "\x1b" not in odd.stdout + odd.stderr


def wait(what: Callable[[], Any], seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


@pytest.mark.sandbox
@pytest.mark.slow
def test_a_day_of_work(agentos: Agentos, file: Path, home: Home, tmp_path: Path) -> None:
    """Each run has what was there then, its result lies in the folder, and what arrives is worked on."""
    out, inbox, reader = tmp_path / "out", tmp_path / "inbox", Reader(home.ledger)
    inbox.mkdir()
    (added,) = json.loads(agentos("schedule", "add", str(file), *NEVER, "--json").stdout)
    watch = (
        "{name: arrivals, watch: {folder: inbox, settle_s: 0.1}, call: {tool: word_count, args: {path: '{file}'}},"
        " deliver: {folder: out, name: '{input}.json'}}"
    )
    assert "*" not in agentos("schedule", "add", "-", stdin=watch).stdout  # the pattern that takes all
    agentos("daemon", "start")
    try:
        agentos("schedule", "run", "nightly words")
        wait(lambda: len(list(out.glob("*.json"))) == 1)
        file.with_name("text.txt").write_text("now there are five words\n")
        agentos("schedule", "run", "nightly words")
        first, second = sorted(wait(lambda: len(f := list(out.glob("*.json"))) == 2 and f))
        found = [json.loads(path.read_text())["words"] for path in (second, first)]
        assert sorted(found) == [3, 5]
        # each run is bound to what it read, whatever the file says by now
        blobs = BlobStore(home.blobs)
        read = [blobs.get(view.task.inputs[0].sha256) for view in copies(reader, added["schedule"]["id"])]
        assert read == [b"now there are five words\n", b"three small words\n"]
        (inbox / "two.txt").write_text("two words")
        wait((out / "two.json").exists)
        assert json.loads((out / "two.json").read_text())["words"] == 2

        shown = agentos("schedule", "show", "arrivals").stdout
        assert "two.txt" in shown  # what it was that each run was given
        agentos("schedule", "add", "-", *NEVER, stdin=NEWS)
        assert "no new file" not in agentos("schedule", "run", "news").stdout
        assert "no new file in" in agentos("schedule", "run", "news").stdout

        asked = agentos("ask", "--tool", "word_count", "--arg", "path=text.txt", "text.txt")
        assert json.loads(asked.stdout)["words"] == 5
        assert "reads text.txt" in asked.stderr
        assert "act" in asked.stderr
        assert re.search(r"passed  \(run-\w+; `agentos run good`", asked.stderr)
        lines = agentos("ask", "--tool", "word_count", "--arg", "path=stdin.txt", "-", "--json", stdin="a b")
        *steps, end = [json.loads(line) for line in lines.stdout.splitlines()]
        assert (end["result"], end["answer"]["words"]) == ("passed", 2)
        assert all("step" in step for step in steps)
        shown = agentos("run", "show", end["run"]).stdout
        assert "stdin.txt" in shown

        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background shell ignores
        child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "agentos",
                "ask",
                "--tool",
                "python",
                "--arg",
                "code=import time; time.sleep(30)",
            ],
            env=os.environ | {"AGENTOS_HOME": str(home.root)},
            stderr=subprocess.PIPE,
            text=True,
        )
        signal.signal(signal.SIGINT, before)
        assert child.stderr
        assert "route" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        told = re.search(
            r"The daemon goes on with (task-\w+); `agentos task show", child.communicate(timeout=20)[1]
        )
        assert told
        assert child.returncode == 130
        agentos("task", "cancel", told.group(1))

        live = "{goal: g, call: {tool: word_count, args: {path: PATH}}, inputs: [{path: PATH, live: true}]}"
        agentos("task", "run", "-", stdin=live.replace("PATH", "text.txt"))
        gone = agentos("task", "run", "-", "--json", stdin=live.replace("PATH", "gone.txt"), code=1)
        (view,) = json.loads(gone.stdout)
        assert (view["result"], view["state"]) == ("infra", "done")
        assert "no such file" in view["runs"][0]["outcome"]["reason"]
        assert len(list(out.iterdir())) == 3
        agentos("audit", "verify")
    finally:
        agentos("daemon", "stop")
