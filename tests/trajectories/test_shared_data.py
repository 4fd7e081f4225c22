"""Real runs: 116 of tau-bench, 82 of Who&When. All of them in, and out again as they were."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Result, Step
from agentos.ledger.store import Ledger
from agentos.trajectories.chat import FinishedRun, chat_record
from agentos.trajectories.past import ImportedRun, ImportTarget, Source, past_of
from agentos.trajectories.readers.formats import READERS, detect, read
from agentos.trajectories.readers.records import Record, files_of, read_records


def records(data: Path) -> list[Record]:
    return [record for path in files_of(data).files for record in read_records(path)]


def pasts(data: Path, into: ImportTarget) -> list[tuple[Record, ImportedRun]]:
    found = []
    for record in records(data):
        (conversation,) = read(record.value)
        found.append((record, past_of(conversation, Source("auto", record.file, record.number), into)))
    return found


def back(record: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """An exported record in the form of the file that it came from."""
    messages = "traj" if "traj" in like else "history"
    out = {key: value for key, value in record.items() if key in like}
    out[messages] = [
        {**{key: value for key, value in message.items() if key != "agent"}, "role": message["agent"]}
        if "agent" in message
        else message
        for message in record["messages"]
    ]
    return out


def whole(ledger: Ledger, run_id: str) -> tuple[Step, ...]:
    """The steps with the values that lie in blobs."""
    return tuple(
        replace(step, observation=ledger.blobs.expand(step.observation)) for step in ledger.steps(run_id)
    )


def test_every_record_is_recognised(data: Path) -> None:
    found = records(data)
    assert not [record.place for record in found if record.fault]
    assert Counter(detect(record.value) for record in found) == {"tau-bench": 116, "whowhen": 82}


@pytest.mark.slow
def test_all_of_it_comes_out_of_the_ledger_as_it_went_in(
    data: Path, into: ImportTarget, ledger: Ledger
) -> None:
    results: Counter[Result] = Counter()
    blamed = messages = 0
    for record, past in pasts(data, into):
        assert ledger.add_past(past.task, past.run, past.steps)
        run, task = ledger.run(past.run.id), ledger.task(past.task.id)
        steps = whole(ledger, run.id)
        exported = json.loads(json.dumps(chat_record(FinishedRun(task, run, steps))))
        assert back(exported, record.value) == record.value, record.place
        assert run.outcome is not None
        results[run.outcome.result] += 1
        blamed += sum(step.fault is not None for step in steps)
        messages += len(steps) - 1
        (again,) = READERS["openai-chat"](exported)
        assert past_of(again, Source("openai-chat", "out.jsonl", 1), into).run.id == run.id
    assert results == {Result.PASSED: 51, Result.FAILED: 65 + 82}
    assert blamed == 82
    assert messages == 3_022 + 1_676
    assert len(ledger.runs()) == 198
    assert not ledger.verify()
