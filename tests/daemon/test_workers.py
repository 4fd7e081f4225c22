"""A daemon and workers as processes of their own: where tasks run, and what losing either comes to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agentos.daemon.control import tokens
from agentos.daemon.control.workers import cluster_view
from agentos.daemon.upkeep.heartbeat import read_heartbeat
from agentos.domain import KernelFault, Result, Run, Share, Task, TaskState
from agentos.home import Home
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from tests.command_server import command_server
from tests.torture.workers import LOST_S, Cluster, cluster, comes, task_of

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

_PATIENCE_S = 150.0


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as found:
        found.start_daemon()
        yield found


def add(made: Cluster, *tasks: Task) -> None:
    with closing(Ledger(made.home.ledger)) as ledger:
        for task in tasks:
            ledger.add_task(task, Share.OPEN, TaskState.QUEUED)


def runs_of(made: Cluster, task: Task) -> list[Run]:
    with closing(Reader(made.home.ledger)) as reader:
        return list(reader.runs(task.id))[::-1]


def ended(made: Cluster, task: Task) -> list[Run]:
    """The task's runs, the first one first, once it is done."""

    def is_done() -> bool:
        with closing(Reader(made.home.ledger)) as reader:
            return reader.task_view(task.id).state is TaskState.DONE

    comes(is_done, "the task is done", _PATIENCE_S)
    return runs_of(made, task)


def joined(made: Cluster, *names: str) -> None:
    for name in names:
        made.start_worker(name)
    comes(lambda: set(names) <= made.there(), f"{names} are joined", _PATIENCE_S)


def waiting(made: Cluster) -> tuple[str, ...]:
    beat = read_heartbeat(made.home.run / "heartbeat.json")
    return beat.waiting if beat else ()


def is_running(made: Cluster, name: str) -> bool:
    return any(one.name == name and one.runs for one in cluster_view(made.home).workers)


def command(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return command_server().run(*words, env={**os.environ, "AGENTOS_HOME": str(home.root)})


def sleeper(made: Cluster, seconds: int) -> Task:
    return replace(task_of(made, seconds, "sleeper"), checks=())


def test_a_task_runs_on_a_worker_until_its_token_is_revoked(made: Cluster) -> None:
    waits = task_of(made, 21, "double")
    add(made, waits)  # nobody is there, and no box is made here
    comes(lambda: waits.id in waiting(made), "it waits", _PATIENCE_S)
    joined(made, "one")
    (last,) = ended(made, waits)
    assert (last.host, last.answer, last.outcome and last.outcome.result) == ("one", {"n": 42}, Result.PASSED)
    assert "on the worker one" in command(made.home, "run", "show", last.id).stdout
    shown = json.loads(command(made.home, "cluster", "status", "--json").stdout)
    (worker,) = shown["workers"]
    assert (worker["name"], worker["state"], worker["boxes"], worker["sandbox"]) == (
        "one",
        "works",
        4,
        last.sandbox,
    )
    assert "one" in command(made.home, "worker", "list").stdout

    token = tokens.known_token(made.home, made.texts["one"])
    assert token is not None
    assert token.scopes == (tokens.TokenScope.WORK,), "it opens neither page nor API"
    assert tokens.TokenScope.WORK not in tokens.TokenRole.ADMINISTER.scopes
    assert command(made.home, "token", "revoke", "one").returncode == 0
    assert made.workers["one"].wait(60) == 1  # what it says names the command that makes another token
    comes(lambda: not made.there(), "it is cut off", LOST_S + 30)


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSTOP])
def test_a_run_on_a_worker_that_is_killed_or_stopped_is_made_again_elsewhere(
    made: Cluster, by: signal.Signals
) -> None:
    joined(made, "one")
    task = sleeper(made, 3)
    add(made, task)
    comes(lambda: is_running(made, "one"), "it runs", _PATIENCE_S)
    made.workers["one"].send_signal(by)
    joined(made, "two")
    *before, last = ended(made, task)
    assert (last.host, last.outcome and last.outcome.result) == ("two", Result.PASSED)
    assert [run.outcome.result for run in before if run.outcome] == [Result.INFRA] * len(before)
    assert KernelFault.DAEMON in {
        run.outcome.fault.kind for run in before if run.outcome and run.outcome.fault
    }
    made.workers["one"].send_signal(signal.SIGCONT)
    again = task_of(made, 1, "double")
    add(made, again)
    assert ended(made, again)[-1].answer == {"n": 2}
    assert runs_of(made, task)[-1] == last  # what woke up changed nothing


def test_a_killed_daemon_loses_no_task_of_its_workers(made: Cluster) -> None:
    joined(made, "one", "two")
    tasks = [sleeper(made, 2), *(task_of(made, number, "double") for number in range(6))]
    add(made, *tasks)
    comes(lambda: is_running(made, "one") or is_running(made, "two"), "they run", _PATIENCE_S)
    assert made.daemon is not None
    made.daemon.kill()
    made.daemon.wait(60)
    made.start_daemon()
    for task in tasks:
        counted = [run for run in ended(made, task) if run.outcome and run.outcome.result is not Result.INFRA]
        assert [run.outcome.result for run in counted if run.outcome] == [Result.PASSED]


@pytest.mark.parametrize(
    "more", ['listen = "0.0.0.0:18423"', 'listen = "0.0.0.0:18423"\ncertificate = "x.pem"']
)
def test_a_daemon_listens_to_others_with_a_certificate_only(home: Home, more: str) -> None:
    with home.settings.open("a") as file:
        file.write(f"\n[workers]\n{more}\n")
    done = command(home, "daemon", "run", "--quiet")
    assert done.returncode == 1
    assert "certificate" in done.stderr
