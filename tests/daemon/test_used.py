"""Which resources a run used: its box says so, of those that it was given."""

from __future__ import annotations

from datetime import UTC, datetime

from agentos.daemon.job.bundle import Bundle
from agentos.daemon.requests.run_requests import RunSpending
from agentos.daemon.run.conversation import Conversation, PreparedRun
from agentos.domain import Limits, Snapshot, Task
from agentos.messages import RunDone
from agentos.ports import Plan
from agentos.testing.registry import FakeBox
from agentos.wire import Channel


def test_a_box_names_nothing_that_it_was_not_given_and_hides_not_what_drives_it() -> None:
    limits = Limits()
    task = Task("task-1", "t", "g", None, (), "own", limits, (), (), None, datetime.now(UTC))
    files = {path: b"" for path in ("agent/own/resource.toml", "harness/own/harness.py", "tool/a/tool.py")}
    bundle = Bundle(files, "harness/own/harness.py", limits)

    def worker(channel: Channel) -> None:
        channel.receive()
        claimed = ["tool/a", "tool/b", "../x", "tool", ""]
        channel.send(RunDone(finished="answered", answer=1, resources=claimed).model_dump())

    job = PreparedRun(task, Snapshot("c", "t"), "run-1", bundle, {}, lambda step: None, Plan())
    with FakeBox(worker) as box:
        done = Conversation(box, job, {}, RunSpending()).run()
    assert done.resources == ("agent/own", "harness/own", "tool/a")
