"""The job ``grade``: hold an answer, and the files that a run left, against the task's checks.

The candidate's code is not here. Its files are, so no check runs with the workspace on its path.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # noqa: F401 - so that it is warm in the template that boxes are forked from
import referencing  # noqa: F401

from agentos import checks
from agentos.messages import GradeDone, GradeJob, WireCheck, WireCheckResult
from agentos.wire import Channel
from agentos.worker import children, files
from agentos.worker.children import Allowance, Ended
from agentos.worker.faults import shorten
from agentos.worker.paths import Place

_MEMORY_MB = 256
_OUTPUT = 1 << 20
_DETAIL = 2_000
_QUICK = (checks.Equals, checks.Contains, checks.File)  # cannot take long, need no child


def grade(channel: Channel, job: GradeJob, blobs: tuple[bytes, ...], place: Place) -> None:
    """Answer with one result for each check, in order."""
    if blobs and blobs[0]:
        files.unpack(place.workspace, blobs[0])
    os.chdir(place.workspace)
    deadline = time.monotonic() + job.wall_s
    results = []
    for check in job.checks:
        # Half of what is left: a check that hangs leaves time for those after it.
        left = max(0.1, (deadline - time.monotonic()) / 2)
        why = apply(check, job.answer, place, left)
        results.append(WireCheckResult(kind=check.kind, passed=not why, detail=shorten(why, _DETAIL)))
    channel.send(GradeDone(checks=results).model_dump())


def apply(check: WireCheck, answer: Any, place: Place, wall_s: float) -> str:
    """Why the check fails; ``""`` when it passes."""
    if faults := checks.faults(check.kind, check.spec):
        return "; ".join(faults)
    spec = checks.parse(check.kind, check.spec)
    if isinstance(spec, _QUICK):
        return checks.judge(spec, answer, place.workspace)
    allowance = Allowance(wall_s, _MEMORY_MB, _OUTPUT, kept_bytes=_OUTPUT)
    if isinstance(spec, checks.Command):
        return _command(spec, children.run(_start(spec.argv), allowance, alone=place.alone), wall_s)
    if isinstance(spec, checks.Python):
        code = spec.code
        return _reason(lambda: snippet(code, answer, place.workspace), allowance, alone=place.alone)
    return _reason(lambda: checks.judge(spec, answer, place.workspace), allowance, alone=place.alone)


def snippet(code: str, answer: Any, workspace: Path) -> str:
    """Run a ``python`` check here and now: why it fails, ``""`` when it passes."""
    names: dict[str, Any] = {"__name__": "check", "answer": answer, "workspace": workspace, "passed": True}
    try:
        exec(compile(code, "<check>", "exec", dont_inherit=True), names)  # noqa: S102
    except AssertionError as error:
        return f"the assertion failed{': ' if str(error) else ''}{error}"
    except BaseException as error:  # noqa: BLE001 - the check's own error, sent on as data
        return f"the check raised {type(error).__name__}: {error}"
    return "" if names["passed"] else "the check set passed to a false value"


def _reason(judge: Callable[[], str], allowance: Allowance, *, alone: bool) -> str:
    ended = children.run(lambda: shorten(judge(), _DETAIL).encode("utf-8", "replace"), allowance, alone=alone)
    if ended.how == "result":
        return ended.result.decode("utf-8", "replace")
    return _unfinished(ended, allowance.wall_s)


def _start(argv: list[str]) -> Callable[[], bytes]:
    def work() -> bytes:
        try:
            os.execvp(argv[0], argv)  # noqa: S606 - a program of the task's author, with its list of arguments
        except OSError as error:
            return json.dumps(f"{argv[0]} cannot be started: {error.strerror}").encode()

    return work


def _command(spec: checks.Command, ended: Ended, wall_s: float) -> str:
    if ended.how == "result":
        return str(json.loads(ended.result))
    if ended.how != "exit":
        return _unfinished(ended, wall_s)
    if ended.code != spec.exit:
        said = (ended.stderr.head or ended.stdout.head).strip()
        return f"{spec.argv[0]} ended with status {ended.code}, expected {spec.exit}: {shorten(said, 300)}"
    if spec.stdout_contains is not None and spec.stdout_contains not in ended.stdout.head:
        return f"{spec.argv[0]} printed {shorten(ended.stdout.head, 300)!r}, without {spec.stdout_contains!r}"
    return ""


def _unfinished(ended: Ended, wall_s: float) -> str:
    return {
        "timeout": f"it did not end within {wall_s:.1f} s",
        "limit": f"it printed more than {_OUTPUT} bytes",
        "signal": f"it was killed by signal {ended.code}",
        "exit": f"it ended its process with status {ended.code}",
    }[ended.how]
