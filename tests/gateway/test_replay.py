"""Recorded calls: served instead of asked, by number, to the byte; and resumed where a run was cut."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentos.domain import Mode, ModelSpec, Price
from agentos.errors import ModelFailed
from agentos.models.requests import run_mark
from agentos.testing import call
from tests.gateway.conftest import Bench, asking, said, within
from tests.refusals import raises

Paid = Callable[[], int]


def test_a_replay_asks_nothing_and_gives_the_same_bytes(bench: Bench, paid: Paid) -> None:
    run = bench.new_run()
    first = bench.open(run)
    told = [first.complete(asking(text), within()) for text in ("a", "b", "a")]
    again = bench.open(mode=Mode.REPLAY, recordings=(run,))
    replayed = [again.complete(asking(text), within()) for text in ("a", "b", "a")]
    assert [reply.body for reply in replayed] == [reply.body for reply in told]
    assert [reply.recorded for reply in replayed] == [True] * 3
    assert said(told[0]) != said(told[2])  # the n-th equal call has the n-th answer
    assert paid() == 3


def test_the_number_counts_equal_calls_whatever_stands_between(bench: Bench, paid: Paid) -> None:
    run = bench.new_run()
    first = bench.open(run)
    told = {number: said(first.complete(asking("again"), within())) for number in range(3)}
    again = bench.open(mode=Mode.REPLAY, recordings=(run,))
    assert {number: said(again.complete(asking("again"), within())) for number in range(3)} == told
    with pytest.raises(ModelFailed) as caught:
        again.complete(asking("again"), within())
    assert caught.value.kind == "not_recorded"
    assert paid() == 3


def test_a_trial_is_a_whole_recording_of_its_own(bench: Bench, paid: Paid) -> None:
    run, trial = bench.new_run(), bench.new_run()
    told = said(bench.open(run).complete(asking("seed"), within()))
    bench.open(trial, Mode.REPLAY, (run,)).complete(asking("seed"), within())
    third = bench.open(mode=Mode.REPLAY, recordings=(trial,))
    assert said(third.complete(asking("seed"), within())) == told
    assert paid() == 1
    assert [bool(row.served_from) for row in bench.calls(trial)] == [True]


def test_divergence_is_sticky(bench: Bench, paid: Paid) -> None:
    run = bench.new_run()
    first = bench.open(run)
    for text in ("one", "two", "three"):
        first.complete(asking(text), within())
    trial = bench.open(mode=Mode.REPLAY_THEN_LIVE, recordings=(run,))
    assert trial.complete(asking("one"), within()).recorded
    assert not trial.complete(asking("other"), within()).recorded
    assert not trial.complete(asking("three"), within()).recorded  # recorded, but after the divergence
    assert paid() == 5


def test_a_cut_trial_resumes_beyond_its_divergence(bench: Bench, paid: Paid) -> None:
    run, trial = bench.new_run(), bench.new_run()
    first = bench.open(run)
    for text in ("one", "two"):
        first.complete(asking(text), within())
    texts = ("one", "other", "two")
    told = [
        said(bench.open(trial, Mode.REPLAY_THEN_LIVE, (run,)).complete(asking(text), within()))
        for text in texts[:1]
    ]
    session = bench.open(trial, Mode.REPLAY_THEN_LIVE, (run,))
    told = [said(session.complete(asking(text), within())) for text in texts]
    resumed = bench.open(trial, Mode.REPLAY_THEN_LIVE, (run,))
    assert [said(resumed.complete(asking(text), within())) for text in texts] == told
    assert paid() == 4


def test_a_run_that_starts_again_gets_its_own_answers(bench: Bench, paid: Paid) -> None:
    run = bench.new_run()
    told = [said(bench.open(run).complete(asking("same"), within())) for _ in range(3)]
    assert len(set(told)) == 1
    assert paid() == 1


def test_an_attempt_is_served_what_the_attempts_before_it_had_in_whatever_order(
    bench: Bench, paid: Paid
) -> None:
    one, two, three = bench.new_run(), bench.new_run(), bench.new_run()
    told = said(bench.open(one).complete(asking("b"), within()))
    session = bench.open(two, Mode.RECORD, (one,))
    session.complete(asking("a"), within())
    assert said(session.complete(asking("b"), within())) == told
    session = bench.open(three, Mode.RECORD, (two, one))
    assert [session.complete(asking(text), within()).recorded for text in ("b", "a")] == [True, True]
    assert paid() == 2


def test_runs_are_served_across_their_own_names_and_call_ids(bench: Bench, paid: Paid) -> None:
    run, trial = bench.new_run(), bench.new_run()

    def conversation(of: str, id: str) -> dict[str, object]:
        return {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": f"work in /tmp/{run_mark(of)}/x"}]},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {
                            "id": id,
                            "type": "function",
                            "function": {"name": "t", "arguments": '{"b":1, "a":2}'},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": id, "content": of},
            ]
        }

    bench.open(run).complete(conversation(run, "call_1"), within())
    again = bench.open(trial, Mode.REPLAY, (run,)).complete(conversation(trial, "call_x"), within())
    assert again.recorded
    assert paid() == 1


def test_equal_calls_of_two_runs_side_by_side_stay_apart(bench: Bench, paid: Paid) -> None:
    runs = [bench.new_run(), bench.new_run()]
    sessions = [bench.open(run) for run in runs]
    with ThreadPoolExecutor(8) as pool:
        jobs = [
            (run, pool.submit(session.complete, asking("equal"), within()))
            for _ in range(4)
            for run, session in zip(runs, sessions, strict=True)
        ]
        told = {run: {said(job.result()) for name, job in jobs if name == run} for run in runs}
    assert paid() == 8
    assert not told[runs[0]] & told[runs[1]]
    for run in runs:
        replay = bench.open(mode=Mode.REPLAY, recordings=(run,))
        assert {said(replay.complete(asking("equal"), within())) for _ in range(4)} == told[run]


def test_a_recorded_failure_is_replayed_as_the_same_failure(bench: Bench, paid: Paid) -> None:
    run = bench.new_run()
    bench.server.fault_next("length")
    for session in (bench.open(run), bench.open(mode=Mode.REPLAY, recordings=(run,))):
        with pytest.raises(ModelFailed) as caught:
            session.complete(asking("cut me"), within())
        assert caught.value.kind == "cut"
    assert paid() == 1


def test_a_failure_of_the_machinery_is_asked_again_and_not_replayed(bench: Bench, paid: Paid) -> None:
    run = bench.new_run()
    bench.server.fault_next("unauthorized")
    with pytest.raises(ModelFailed):
        bench.open(run).complete(asking("once more"), within())
    with pytest.raises(ModelFailed) as caught:
        bench.open(mode=Mode.REPLAY, recordings=(run,)).complete(asking("once more"), within())
    assert caught.value.kind == "not_recorded"
    bench.open(run).complete(asking("once more"), within())
    assert paid() == 1
    assert [row.state for row in bench.calls(run)] == ["done"]


def test_live_keeps_no_words(bench: Bench) -> None:
    run = bench.new_run()
    bench.open(run, Mode.LIVE).complete(asking("words that nobody keeps"), within())
    rows = bench.calls(run)
    assert [(row.request, row.response, row.input_tokens > 0) for row in rows] == [("", "", True)]
    with sqlite3.connect(bench.home.calls) as connection:
        found = connection.execute("SELECT count(*) FROM bodies WHERE content LIKE '%nobody keeps%'")
        assert found.fetchone() == (0,)
    connection.close()


def test_a_served_call_tells_what_it_cost_and_is_booked_with_nothing(bench: Bench) -> None:
    """A rule on the money of a run holds where the run goes on from a record, and in a replay."""
    dear = ModelSpec("dear", "openai/scripted", "local", {}, price=Price(1_000.0, 1_000.0))
    runs = [bench.new_run() for _ in range(3)]
    replies = [
        bench.open(run, recordings=tuple(reversed(runs[:at])), specs=(dear,)).complete(
            asking("dear words"), within()
        )
        for at, run in enumerate(runs)
    ]
    assert [reply.recorded for reply in replies] == [False, True, True]
    assert replies[0].usd is not None
    assert {reply.usd for reply in replies} == {replies[0].usd}
    assert [bench.calls(run)[0].usd for run in runs] == [replies[0].usd, 0.0, 0.0]


def test_a_live_call_that_nobody_was_given_is_asked_again(bench: Bench) -> None:
    """Its words are not kept. Where it named a tool that is not there, it was looked for among them all the same."""
    bench.server.add(call("no_such_tool", {}))
    run, repeated = bench.new_run(), bench.server.repeated
    replies = [bench.open(run, Mode.LIVE).complete(asking("who died"), within()) for _ in range(2)]
    assert replies[0].body == replies[1].body
    assert bench.server.repeated == repeated + 1


def test_another_model_behind_the_same_name_is_another_call(bench: Bench) -> None:
    run = bench.new_run()
    bench.open(run).complete(asking("who are you"), within())
    changed = ModelSpec("main", "openai/other", "local", {})
    with raises(ModelFailed, "not_recorded"):
        bench.open(mode=Mode.REPLAY, recordings=(run,), specs=(changed,)).complete(
            asking("who are you"), within()
        )


def test_a_conversation_grows_by_its_new_messages_only(bench: Bench) -> None:
    run = bench.new_run()
    session = bench.open(run)
    messages: list[dict[str, str]] = [{"role": "system", "content": "s" * 2000}]

    def stored() -> int:
        with sqlite3.connect(bench.home.calls) as connection:
            count: int = connection.execute("SELECT count(*) FROM bodies").fetchone()[0]
        connection.close()
        return count

    sizes = []
    for number in range(6):
        messages.append({"role": "user", "content": f"{run} turn {number}"})
        before = stored()
        session.complete({"messages": messages}, within())
        sizes.append(stored() - before)
    assert sizes[1:] == [2] * 5  # a message and a reply
    reading = bench.calls(run)[-1]
    from agentos.gateway.calls import CallReading

    record = CallReading(bench.home.calls)
    assert record.request(reading)["messages"] == messages
    record.close()
