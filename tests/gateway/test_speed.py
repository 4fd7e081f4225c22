"""How long a model is waited for, by what its calls took, and what is not asked because it would be too late."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from agentos.daemon.evolve.evolver_models import Advice, speed_in
from agentos.domain import Budget, Json, Reply
from agentos.gateway.calls import CallReading, CallRecord, ProviderCall
from agentos.gateway.speed import PATIENCE_MAX_S, PATIENCE_S, CallTiming, ModelSpeed
from tests.gateway.conftest import SPEC, make_home

READ_S, WRITE_S = 0.08, 0.2  # of a small model on a CPU


def timing(read: int, written: int) -> CallTiming:
    return CallTiming(read, written, read * READ_S + written * WRITE_S)


CPU_MODEL = (timing(400, 50), timing(1500, 30), timing(600, 200), timing(3000, 10))
QUICK = tuple(CallTiming(2000, 300, 4.0) for _ in range(5))


def late(read: int, seconds: float) -> CallTiming:
    return CallTiming(read, 2048, seconds, slow=True)


@pytest.mark.parametrize(
    ("timings", "asked", "least", "most"),
    [
        ((), (3000, 2048), PATIENCE_S, PATIENCE_S),
        (CPU_MODEL[:2], (3000, 2048), PATIENCE_S, PATIENCE_S),  # two calls do not say enough
        (CPU_MODEL, (3800, 1024), 760.0, 769.0),  # half as much again as 304 s and 205 s
        (CPU_MODEL, (200, 10), PATIENCE_S, PATIENCE_S),
        (CPU_MODEL, (60_000, 8192), PATIENCE_MAX_S, PATIENCE_MAX_S),
        (QUICK, (2000, 2048), PATIENCE_S, PATIENCE_S),
        ((late(3800, 180.0),), (3800, 2048), 360.0, 360.0),
        ((late(3800, 360.0), late(3800, 180.0), *QUICK), (3800, 2048), 720.0, 720.0),
        ((*QUICK, late(3800, 180.0)), (3800, 2048), PATIENCE_S, PATIENCE_S),  # it has answered since
        ((CallTiming(0, 0, 9.0),) * 3, (100, 100), PATIENCE_S, PATIENCE_S),
        ((CallTiming(500, 0, 50.0),) * 3, (5000, 100), 764.0, 766.0),  # nothing was ever written
        # reading is free
        (tuple(CallTiming(100, n, float(n)) for n in (300, 400, 500)), (9000, 200), 300.0, 301.0),
        # writing is
        (tuple(CallTiming(n, 100, n / 10) for n in (300, 4000, 5000)), (2000, 2000), 300.0, 303.0),
    ],
)
def test_patience_follows_what_the_model_took(
    timings: tuple[CallTiming, ...], asked: tuple[int, int], least: float, most: float
) -> None:
    assert least <= ModelSpeed(timings).patience_s(*asked) <= most


@pytest.mark.parametrize(
    ("timings", "read", "left_s", "hopeless"),
    [
        ((), 4000, 0.1, False),
        ((late(3800, 60.0),), 4000, 60.0, False),  # it may only have been loaded
        ((late(3800, 60.0),) * 2, 4000, 60.0, True),
        ((late(3800, 60.0),) * 2, 4000, 61.0, False),  # more time than any of them had
        ((late(3800, 60.0),) * 2, 600, 60.0, False),  # a shorter one
        ((*QUICK, late(3800, 60.0), late(3800, 60.0)), 4000, 60.0, False),  # it has answered since
        (CPU_MODEL, 3000, 10.0, False),  # one call of that size says little
        ((timing(2500, 30),) * 3, 3000, 100.0, True),
        ((timing(2500, 30),) * 3, 3000, 110.0, False),  # nearly in time: it is asked
        ((timing(40, 200),) * 9, 4000, 15.0, False),  # short questions say nothing of long ones
        ((timing(9000, 30),) * 3, 3000, 100.0, False),  # and long ones nothing of shorter
    ],
)
def test_what_cannot_be_answered_in_time(
    timings: tuple[CallTiming, ...], read: int, left_s: float, hopeless: bool
) -> None:
    assert ModelSpeed(timings).hopeless(read, left_s) is hopeless


@dataclass
class Waited:
    """A gateway that notes how long it may take, and has nothing to say."""

    seconds: float = 0.0
    longest: int = 0

    def open(self, grant: object) -> Waited:
        return self

    def complete(self, request: Json, deadline: float) -> Reply:
        self.seconds = deadline - time.monotonic()
        self.longest = int(request["max_tokens"])  # type: ignore[index]
        return Reply("call-1", {}, 1, 1, 0.0, 0.0, recorded=False, model="main")

    def close(self) -> None:
        """Nothing to end."""


def row(number: int, timing: CallTiming, **other: object) -> ProviderCall:
    plain = {
        name: "" for name in ("evolution_id", "idempotency", "request", "response", "message", "served_from")
    }
    known = {
        "id": f"call-{number}",
        "run_id": f"run-{number}",
        "key": "k",
        "nth": 0,
        "state": "done",
        "fault": "",
    }
    used = {
        "input_tokens": timing.input_tokens,
        "output_tokens": timing.output_tokens,
        "estimated": 0,
        "usd": None,
    }
    asked = {"model": "main", "answered_by": "main", "latency_ms": timing.seconds * 1e3, "tries": 1}
    return ProviderCall(**{**plain, **known, **used, **asked, "started_at": time.time() - number, **other})  # type: ignore[arg-type]


UNSAID: tuple[
    Mapping[str, object], ...
] = (  # rows that say nothing of the model's speed, each as if a token took a minute
    {"answered_by": "another"},
    {"served_from": "call-0"},
    {"estimated": 1},
    {"tries": 3},
    {"state": "failed", "fault": "unreachable"},
    {"model": "another", "answered_by": "another"},
    {"started_at": time.time() - 90_000},
)


def test_the_evolver_waits_as_long_as_the_record_says_that_the_model_needs(tmp_path: Path) -> None:
    home, models = make_home(tmp_path / "home"), Waited()
    advice = Advice("main", models, lambda: SPEC, Budget(), partial(speed_in, home))
    request = {"messages": [{"role": "user", "content": "word " * 3000}], "max_tokens": 1500}
    advice.ask("evo-1", "propose", request)
    assert models.seconds <= PATIENCE_S, "there is no record yet"
    record = CallRecord(home.calls)
    rows = [row(number, timing) for number, timing in enumerate(CPU_MODEL)]
    rows += [row(number, CallTiming(10, 10, 1200.0), **other) for number, other in enumerate(UNSAID, 10)]
    for each in rows:
        asyncio.run(record.put(each))
    record.close()
    advice.ask("evo-1", "propose", request)
    assert 800 < models.seconds < 1100


@pytest.mark.parametrize(("context", "longest"), [(8_192, 2_048), (128_000, 8_192)])
def test_an_answer_takes_at_most_a_quarter_of_the_context(context: int, longest: int) -> None:
    models = Waited()
    advice = Advice("main", models, lambda: replace(SPEC, context_tokens=context), Budget())
    advice.ask("evo-1", "propose", {"messages": [{"role": "user", "content": "word"}], "max_tokens": 8_192})
    assert models.longest == longest


def test_a_record_that_is_not_whole_yet_is_empty(tmp_path: Path) -> None:
    """A gateway that has just begun: its file, without tables, and with the first of them."""
    path = tmp_path / "calls.db"
    for made in (None, "PRAGMA journal_mode = WAL", "CREATE TABLE calls (id TEXT)"):
        if made:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute(made)
        reading = CallReading(path)
        assert reading.under_way("run-1") == reading.calls("run-1") == []
        assert reading.spent().calls == 0
        reading.close()
