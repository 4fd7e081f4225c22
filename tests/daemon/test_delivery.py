"""Results where a person wants them: once, never over what is there, nowhere else, and on record."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import agentos
from agentos.cli.tasks.waits import undelivered_lately
from agentos.daemon.run.delivery import PAUSES, Deliverer, RunResults, again, deliveries_of
from agentos.domain import (
    Delivery,
    DeliveryState,
    Destination,
    InputFile,
    Json,
    Outcome,
    Result,
    Run,
    RunEnd,
    Share,
    Snapshot,
    Task,
)
from agentos.errors import Conflict, Unavailable
from agentos.home import Home
from agentos.ledger.integrity import LedgerSnapshot, rows_faults, told
from agentos.ledger.store import Ledger
from agentos.sandboxes.plainfiles import FileLimits

NOW = datetime(2026, 3, 2, 6, 30, tzinfo=UTC)
Finish = Callable[..., str]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def finish(ledger: Ledger, make_task: Callable[..., Task]) -> Finish:
    """A finished run of a task with these destinations; its id."""
    count = iter(range(1000))

    def end(
        *deliver: Destination,
        answer: Json = "all is well",
        files: dict[str, bytes] | None = None,
        result: Result = Result.PASSED,
        schedule: str = "",
    ) -> str:
        number = next(count)
        task = replace(
            make_task("double", n=number),
            id=f"task-{number}",
            name="my digest",
            deliver=deliver,
            created_at=NOW,
            schedule_id=schedule,
        )
        ledger.add_task(task, Share.OPEN)
        run = Run(
            f"run-{number}", task.id, task.key, Share.OPEN, 1, Snapshot("c" * 40, "t" * 40), "", "", NOW
        )
        ledger.begin_run(run)
        outputs = [InputFile(path, ledger.blobs.put(data), len(data)) for path, data in (files or {}).items()]
        due = deliveries_of(task, run.id, RunResults(result, answer, outputs), ledger.blobs)
        ledger.finish_run(run.id, Outcome(result, 1.0, ""), RunEnd(answer, outputs), records=due)
        return run.id

    return end


@pytest.fixture
def deliver(ledger: Ledger, home: Home) -> Callable[..., list[Delivery]]:
    def do(run_id: str, now: datetime = NOW) -> list[Delivery]:
        Deliverer(ledger, home).deliver_due(now)
        return list(ledger.find(Delivery, run_id=run_id))

    return do


Deliver = Callable[..., list[Delivery]]


def test_an_answer_and_files_are_put_where_they_belong(finish: Finish, deliver: Deliver, out: Path) -> None:
    run = finish(
        Destination(str(out), "{date}-{task}.md"),
        Destination(str(out), file="**/*.csv"),
        Destination(str(out), "{stem}-{time}.{ext}", file="*.txt"),
        files={"a/b.csv": b"1\n", "notes.txt": b"n", "other.bin": b"x"},
    )
    done = deliver(run)
    assert {one.state for one in done} == {DeliveryState.DONE}
    found = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    local = NOW.astimezone()
    assert found == {
        f"{local:%Y-%m-%d}-my-digest.md": b"all is well\n",
        "a/b.csv": b"1\n",
        f"notes-{local:%H%M}.txt": b"n",
    }


def test_an_answer_that_is_no_text_is_json(finish: Finish, deliver: Deliver, out: Path) -> None:
    deliver(finish(Destination(str(out), "a.json"), answer={"n": 1, "ä": None}))
    assert json.loads((out / "a.json").read_text()) == {"n": 1, "ä": None}


@pytest.mark.parametrize(
    ("result", "when", "count"),
    [
        (Result.FAILED, "passed", 0),
        (Result.FAILED, "always", 1),
        (Result.INFRA, "always", 0),
        (Result.WAITING, "always", 0),
        (Result.PASSED, "passed", 1),
    ],
)
def test_only_ends_that_were_asked_for(
    finish: Finish, deliver: Deliver, out: Path, result: Result, when: str, count: int
) -> None:
    assert len(deliver(finish(Destination(str(out), "a.md", when=when), result=result))) == count


def test_nothing_of_what_a_run_handed_over(ledger: Ledger, make_task: Callable[..., Task], out: Path) -> None:
    task = replace(make_task("double"), parent="task-above", deliver=(Destination(str(out)),))
    assert deliveries_of(task, "run-1", RunResults(Result.PASSED, "x", ()), ledger.blobs) == []


def test_never_over_what_is_there(finish: Finish, deliver: Deliver, out: Path) -> None:
    out.mkdir()
    (out / "a.md").write_text("mine")
    (out / "a-2.md").symlink_to(out / "nowhere")
    (one,) = deliver(finish(Destination(str(out), "a.md")))
    assert one.path == str(out / "a-3.md")
    assert (out / "a.md").read_text() == "mine"
    assert not (out / "nowhere").exists()


def test_replaces_only_what_this_schedule_delivered_and_nobody_changed(
    finish: Finish, deliver: Deliver, out: Path
) -> None:
    latest = Destination(str(out), "latest.md", replace=True)

    def next_day(text: str, schedule: str = "task-nightly") -> str:
        (one,) = deliver(finish(latest, answer=text, schedule=schedule))
        return Path(one.path).name

    assert [next_day("one"), next_day("two")] == ["latest.md", "latest.md"]
    assert (out / "latest.md").read_text() == "two\n"
    assert next_day("three", "task-another") == "latest-2.md"
    (out / "latest.md").write_text("two, and my note\n")
    assert next_day("four") == "latest-3.md"
    assert (out / "latest.md").read_text() == "two, and my note\n"


def test_what_another_user_put_there_is_not_read_whole(finish: Finish, deliver: Deliver, out: Path) -> None:
    latest = Destination(str(out), "latest.md", replace=True)
    deliver(finish(latest, answer="one", schedule="task-nightly"))
    (out / "latest.md").unlink()
    with (out / "latest.md").open("wb") as file:
        file.truncate(1 << 42)  # a sparse file: it takes no room on the disk, and no memory has room for it
    (one,) = deliver(finish(latest, answer="two", schedule="task-nightly"))
    assert (one.state, Path(one.path).name) == (DeliveryState.DONE, "latest-2.md")


@pytest.mark.parametrize("path", ["../up.csv", "/abs.csv", "sub/../../up.csv", ".bashrc", "sub/.ssh/x.csv"])
def test_a_name_that_a_run_chose_stays_below_the_folder(
    ledger: Ledger, finish: Finish, deliver: Deliver, tmp_path: Path, path: str
) -> None:
    out = tmp_path / "deep" / "out"
    run = finish(Destination(str(out), "{file}", file="*.csv"), files={"x.csv": b"evil"})
    (due,) = ledger.find(Delivery, run_id=run)
    ledger.put(replace(due, file=path))
    (done,) = deliver(run)
    assert done.state is DeliveryState.FAILED
    assert not [found for found in tmp_path.rglob("*.csv") if "home" not in found.parts]
    assert not (out / ".bashrc").exists()


def test_a_name_that_is_too_long_is_cut_and_keeps_its_ending(
    finish: Finish, deliver: Deliver, out: Path
) -> None:
    for _ in range(2):
        (done,) = deliver(finish(Destination(str(out), "é" * 150 + ".md")))
        assert done.state is DeliveryState.DONE
    assert sorted(path.name for path in out.iterdir()) == ["é" * 125 + "-2.md", "é" * 126 + ".md"]


def test_a_link_below_the_folder_is_not_followed(finish: Finish, deliver: Deliver, tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "sub").symlink_to(elsewhere)
    (done,) = deliver(finish(Destination(str(out), file="**"), files={"sub/x.csv": b"x"}))
    assert done.state is DeliveryState.FAILED
    assert not list(elsewhere.iterdir())


def test_a_folder_that_is_a_circle_of_links_holds_up_no_other(
    finish: Finish, deliver: Deliver, ledger: Ledger, tmp_path: Path, out: Path
) -> None:
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    circle = finish(Destination(str(tmp_path / "circle"), "a.md"))
    assert [one.state for one in deliver(finish(Destination(str(out), "a.md")))] == [DeliveryState.DONE]
    (waits,) = ledger.find(Delivery, run_id=circle)
    assert (waits.state, waits.attempts) == (DeliveryState.PENDING, 1)


def test_a_path_that_no_index_takes_is_refused_at_once(finish: Finish, deliver: Deliver, out: Path) -> None:
    run = finish(Destination(folder=str(out / "/".join(["d" * 200] * 13))))
    (done,) = deliver(run)
    assert (done.state, done.attempts) == (DeliveryState.FAILED, 1)
    assert not out.exists() or not any(out.iterdir())


def test_not_into_the_home_itself(finish: Finish, deliver: Deliver, home: Home) -> None:
    (done,) = deliver(finish(Destination(str(home.skills), "x.md")))
    assert (done.state, (home.skills / "x.md").exists()) == (DeliveryState.FAILED, False)


def test_a_crash_at_any_moment_delivers_once(
    ledger: Ledger, finish: Finish, deliver: Deliver, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is what fails: before and after each write of it the daemon may die."""
    put, note = ledger.put, ledger.note

    class Died(BaseException):
        pass

    for moment in range(4):
        run = finish(Destination(str(out), f"{moment}.md"))
        count = iter(range(10))

        def dying(write: Callable[..., None], at: int = moment) -> Callable[..., None]:
            def do(*given: object, **named: object) -> None:
                number = next(count)  # noqa: B023 - of this round
                if 2 * number == at:
                    raise Died
                write(*given, **named)
                if 2 * number + 1 == at:
                    raise Died

            return do

        with monkeypatch.context() as patched:
            patched.setattr(ledger, "put", dying(put))
            patched.setattr(ledger, "note", dying(note))
            with pytest.raises(Died):
                deliver(run)
        (done,) = deliver(run)
        assert (done.state, done.path) == (DeliveryState.DONE, str(out / f"{moment}.md"))
    assert sorted(path.name for path in out.iterdir()) == ["0.md", "1.md", "2.md", "3.md"]


def test_a_kill_before_what_stood_aside_is_removed_leaves_nothing_there(
    finish: Finish, deliver: Deliver, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Died(BaseException):
        pass

    def dying(name: str, **named: int) -> None:
        if (out / name).exists():
            raise Died
        raise FileNotFoundError(name)

    run = finish(Destination(str(out), "a.md"))
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", dying)
        with pytest.raises(Died):
            deliver(run)
    assert len(list(out.iterdir())) == 2
    (done,) = deliver(run)
    assert (done.state, [path.name for path in out.iterdir()]) == (DeliveryState.DONE, ["a.md"])


def test_a_command_that_did_its_work_is_not_run_again_where_that_could_not_be_written(
    finish: Finish, deliver: Deliver, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise Unavailable("the disk is full")

    run = finish(Destination(command=("sh", "-c", f"echo once >> {tmp_path}/runs")))
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "note", full)
        with pytest.raises(Unavailable):
            deliver(run)
    (one,) = deliver(run, NOW + PAUSES[0])
    assert (one.state, (tmp_path / "runs").read_text()) == (DeliveryState.FAILED, "once\n")


def test_what_could_not_be_done_is_tried_again_and_then_given_up(
    finish: Finish, deliver: Deliver, ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("a file where the folder should be")
    run = finish(Destination(str(tmp_path / "out"), "a.md"))
    now = NOW
    for pause in PAUSES:
        (one,) = deliver(run, now)
        assert (one.state, one.due_at) == (DeliveryState.PENDING, now + pause)
        assert deliver(run, now) == [one]  # not before its time
        assert undelivered_lately(ledger) == [one]  # as `agentos status` tells it
        now += pause
    (failed,) = deliver(run, now)
    assert failed.state is DeliveryState.FAILED
    assert "exists" in failed.reason
    (tmp_path / "out").unlink()
    again(ledger, run, now)
    assert [one.state for one in deliver(run, now)] == [DeliveryState.FAILED, DeliveryState.DONE]
    with pytest.raises(Conflict):
        again(ledger, run, now)


def test_what_could_not_be_done_while_the_clock_was_ahead_is_tried_again_when_it_is_right(
    finish: Finish, deliver: Deliver, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("a file where the folder should be")
    run = finish(Destination(str(tmp_path / "out"), "a.md"))
    deliver(run, NOW + timedelta(days=3650))
    (tmp_path / "out").unlink()
    assert [one.state for one in deliver(run, NOW)] == [DeliveryState.DONE]


def test_each_file_that_a_run_can_leave_is_delivered(ledger: Ledger, make_task: Callable[..., Task]) -> None:
    task = replace(make_task("double", n=1), deliver=(Destination(folder="/out", file="*.txt"),))
    files = [InputFile(f"{number}.txt", "0" * 64, 1) for number in range(FileLimits().files)]
    assert len(deliveries_of(task, "run-1", RunResults(Result.PASSED, None, files), ledger.blobs)) == len(
        files
    )


def test_a_file_that_the_run_did_not_leave_is_told(finish: Finish, deliver: Deliver, out: Path) -> None:
    (one,) = deliver(finish(Destination(str(out), file="*.pdf")))
    assert (one.state, one.file) == (DeliveryState.FAILED, "*.pdf")


def command(tmp_path: Path, body: str, *more: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import os, sys, pathlib; place = {str(tmp_path)!r}\n{body}", *more)


def test_a_command_gets_the_content_and_no_secret(
    finish: Finish, deliver: Deliver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    body = (
        "pathlib.Path(place, 'got').write_text(sys.stdin.read() + open(os.environ['AGENTOS_PATH']).read() + ' '.join(os.environ))\n"
        "print('sent as 42')"
    )
    (one,) = deliver(finish(Destination(command=command(tmp_path, body, "{path}"))))
    assert (one.state, one.reason) == (DeliveryState.DONE, "sent as 42")
    got = (tmp_path / "got").read_text()
    assert got.startswith("all is well\nall is well\n")
    assert "AGENTOS_RUN" in got
    assert "OPENAI" not in got


def test_a_command_runs_for_a_user_without_a_home_directory(
    finish: Finish, deliver: Deliver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any number may be the user of a container; that was a bug, and nothing was delivered."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    body = "pathlib.Path(place, 'got').write_text(os.getcwd())"
    (one,) = deliver(finish(Destination(command=command(tmp_path, body))))
    assert one.state is DeliveryState.DONE
    assert (tmp_path / "got").read_text() == "/"


def test_a_command_beside_a_folder_is_told_the_path(
    finish: Finish, deliver: Deliver, tmp_path: Path, out: Path
) -> None:
    body = "pathlib.Path(place, 'got').write_text(sys.argv[1])"
    deliver(finish(Destination(str(out), "a.md", command=command(tmp_path, body, "{path}"))))
    assert (tmp_path / "got").read_text() == str(out / "a.md")


def test_a_command_that_fails_or_hangs_is_tried_again(
    finish: Finish, deliver: Deliver, tmp_path: Path
) -> None:
    fails = command(tmp_path, "print('no route'); sys.exit(7)")
    hangs = command(tmp_path, "import time; time.sleep(600)")
    run = finish(Destination(command=fails), Destination(command=hangs, timeout_s=0.2))
    first, second = deliver(run)
    assert first.state is second.state is DeliveryState.PENDING
    assert "exit code 7: no route" in first.reason
    assert "0.2 s" in second.reason
    (missing,) = deliver(finish(Destination(command=("/nowhere/at/all",))))
    assert missing.state is DeliveryState.FAILED


def test_a_command_that_a_crash_cut_is_not_repeated_by_itself(
    ledger: Ledger, finish: Finish, deliver: Deliver, tmp_path: Path
) -> None:
    body = "open(os.path.join(place, 'count'), 'a').write('x')"
    run = finish(Destination(command=command(tmp_path, body)))
    (due,) = ledger.find(Delivery, run_id=run)
    ledger.put(replace(due, command_began=True))  # all that a daemon that died left
    (one,) = deliver(run)
    assert one.state is DeliveryState.FAILED
    assert not (tmp_path / "count").exists()
    again(ledger, run, NOW)
    assert deliver(run)[-1].state is DeliveryState.DONE
    assert (tmp_path / "count").read_text() == "x"


def test_what_was_delivered_is_sealed_in_the_audit_log(
    home: Home, finish: Finish, deliver: Deliver, out: Path, ledger: Ledger
) -> None:
    run = finish(Destination(str(out), "a.md"))
    (one,) = deliver(run, NOW + timedelta(hours=1))
    (entry,) = [entry for entry in ledger.entries(subject=run) if entry.event == "run.delivered"]
    assert (entry.detail["path"], entry.detail["sha256"]) == (one.path, one.sha256)
    with LedgerSnapshot(home.ledger) as frozen:
        assert not [fault for fault in rows_faults(frozen, told(frozen)) if "delivery" in fault]


def test_status_tells_what_was_not_delivered_until_it_is(
    finish: Finish, deliver: Deliver, ledger: Ledger, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    run = finish(Destination(str(tmp_path / "out"), file="*.csv"), files={"a.csv": b"x"})
    (due,) = ledger.find(Delivery, run_id=run)
    ledger.put(replace(due, command_began=True))
    deliver(run, now)
    assert [one.id for one in undelivered_lately(ledger)] == [due.id]
    again(ledger, run, now)
    deliver(run, now)
    assert list(undelivered_lately(ledger)) == []


def test_only_runs_of_tasks_deliver() -> None:
    """Trials, replays and handed-over tasks come by other ways to their end."""
    package = Path(agentos.__file__).parent
    users = {path.name for path in package.rglob("*.py") if "deliveries_of(" in path.read_text()}
    assert users == {"delivery.py", "tasks.py"}
