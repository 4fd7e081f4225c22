"""What a box says is held to its limits, however it is written."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import time

import pytest

from agentos.errors import BoxDied
from agentos.messages import RunDone
from agentos.sandboxes.box import Exchange, FirstProcess, WorkerBox, pipes

# As short as JSON can say what the kernel writes at length.
SHORT = ("1e15", "9E15", "-1e15", "[]", "{}", "1", '"\x7f"', '"é"', '"\U0001f600"', '"\ud800"', '{"":1e15}')


@pytest.mark.parametrize("spare", [0, -1])
@pytest.mark.parametrize("said", SHORT)
def test_an_answer_that_grows_as_it_is_kept_is_held_to_its_limit(said: str, spare: int) -> None:
    answer = f"[{','.join([said] * 2_000)}]"
    header = f'{{"type":"done","finished":"answered","answer":{answer}}}'.encode("utf-8", "surrogatepass")
    limit = len(json.dumps(json.loads(answer))) + spare
    channel, theirs = pipes()
    with subprocess.Popen(["sleep", "600"], pass_fds=theirs) as process:
        first = FirstProcess(process.pid, os.pidfd_open(process.pid))
        box = WorkerBox(channel, first, None, time.monotonic(), "run-1")
        exchange = Exchange(box, 60.0)
        os.write(theirs[1], struct.pack(">I", len(header)) + header)
        done, _ = exchange.receive({"done": RunDone})
        assert isinstance(done, RunDone)
        try:
            if spare < 0:
                with pytest.raises(BoxDied) as died:
                    exchange.measure(done.answer, limit, "the answer")
                assert died.value.cause == "output"
            else:
                exchange.measure(done.answer, limit, "the answer")
        finally:
            process.kill()
            box.close()
            for end in theirs:
                os.close(end)
