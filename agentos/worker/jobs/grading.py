"""The job ``grade``: hold an answer, and the files that a run left, against the task's checks.

The candidate's code is not here. Its files are, and ``workspace_code`` keeps them from judging themselves.
Checks that run them come last, each on the files as the run left them.
"""

from __future__ import annotations

import hmac
import os
import secrets
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import jsonschema  # noqa: F401 - so that it is warm in the template that boxes are forked from
import referencing  # noqa: F401

from agentos import checks
from agentos.messages import GradeDone, GradeJob, WireCheck, WireCheckResult
from agentos.wire import Channel, shorten
from agentos.worker import children, files
from agentos.worker.children import ChildEnd, ChildLimits
from agentos.worker.faults import Failed, FaultsOf
from agentos.worker.files import WorkerPlace
from agentos.worker.jobs import workspace_code

_MEMORY_MB = 256
_OUTPUT = 1 << 20
_DETAIL = checks.DETAIL_MAX
_NONCE = 32
_QUICK = (checks.Equals, checks.Contains, checks.File)  # cannot take long, need no child


def grade(channel: Channel, job: GradeJob, blobs: tuple[bytes, ...], place: WorkerPlace) -> None:
    """Answer with one result for each check, in order."""
    tar = blobs[0] if blobs else b""
    unheld = _laid_out(place, tar)
    os.environ.update(workspace_code.environment({}))
    deadline = time.monotonic() + job.wall_s
    results: dict[int, WireCheckResult] = {}
    used = False
    for number, check in sorted(enumerate(job.checks), key=lambda item: _runs_workspace(item[1])):
        # Half of what is left: a check that hangs leaves time for those after it.
        left = max(0.1, (deadline - time.monotonic()) / 2)
        why = unheld or (_laid_out_again(place, tar) if used else "")
        why = why or apply(check, job.answer, place, left)
        used = used or _runs_workspace(check)
        results[number] = WireCheckResult(kind=check.kind, passed=not why, detail=shorten(why, _DETAIL))
    channel.send(GradeDone(checks=[results[number] for number in sorted(results)]).model_dump())


def _runs_workspace(check: WireCheck) -> bool:
    return bool(check.spec.get("runs_workspace"))


def _laid_out(place: WorkerPlace, tar: bytes) -> str:
    """Why they cannot be, else "". A harness may make up files that no box ever held; that is no fault of the grader's."""
    try:
        if tar:
            files.unpack(place.workspace, tar)
    except OSError as error:
        return f"the files that the run left cannot be laid out: {error.strerror}"
    return ""


def _laid_out_again(place: WorkerPlace, tar: bytes) -> str:
    """The files as the run left them: code of the check before may have changed them. Why not, else ""."""
    left = [str(path) for path in place.workspace.iterdir()]
    if left:  # rm, because a tree may be deeper than Python's stack
        subprocess.run(["rm", "-rf", "--", *left], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if any(place.workspace.iterdir()):
        return "the check before it left files that cannot be taken away"
    return _laid_out(place, tar)


def apply(check: WireCheck, answer: Any, place: WorkerPlace, wall_s: float) -> str:
    """Why the check fails; ``""`` when it passes."""
    if faults := checks.faults(check.kind, check.spec):
        return "; ".join(faults)
    spec = checks.parse(check.kind, check.spec)
    if isinstance(spec, _QUICK):
        return checks.judge(spec, answer, place.workspace)
    allowance = ChildLimits(wall_s, _MEMORY_MB, _OUTPUT, kept_bytes=_OUTPUT)
    if isinstance(spec, checks.Command):
        return _run(spec, allowance, place)
    if isinstance(spec, checks.Python):
        return _reason(lambda: _kept_out(spec, answer, place.workspace), allowance, alone=place.alone)
    return _reason(lambda: checks.judge(spec, answer, place.workspace), allowance, alone=place.alone)


def _kept_out(spec: checks.Python, answer: Any, workspace: Path) -> str:
    code = compile(spec.code, "<check>", "exec", dont_inherit=True)
    workspace_code.keep_out(workspace, declared=spec.runs_workspace)
    return snippet(code, answer, workspace, declared=spec.runs_workspace)


def snippet(code: str | CodeType, answer: Any, workspace: Path, *, declared: bool = False) -> str:
    """Run a ``python`` check here and now: why it fails, ``""`` when it passes."""
    names: dict[str, Any] = {"__name__": "check", "answer": answer, "workspace": workspace, "passed": True}
    if declared:
        helpers = workspace_code.Helpers(workspace)
        names |= {"run": helpers.run, "call": helpers.call}
    try:
        with FaultsOf(workspace, "", passes=(AssertionError,)):
            code = compile(code, "<check>", "exec", dont_inherit=True) if isinstance(code, str) else code
            exec(code, names)  # noqa: S102
    except AssertionError as error:
        return f"the assertion failed{': ' if str(error) else ''}{error}"
    except Failed as error:
        return f"the check raised {error}"
    return "" if names["passed"] else "the check set passed to a false value"


def _reason(judge: Callable[[], str], allowance: ChildLimits, *, alone: bool) -> str:
    nonce = os.urandom(_NONCE)  # no other process can read this one, and none has its pipe
    work = lambda: nonce + shorten(judge(), _DETAIL).encode("utf-8", "replace")  # noqa: E731
    ended = children.run(work, allowance, alone=alone)
    return _said(ended, nonce) if ended.how == "result" else _unfinished(ended, allowance.wall_s)


def _said(ended: ChildEnd, nonce: bytes) -> str:
    if not hmac.compare_digest(ended.result[:_NONCE], nonce):
        return "something else wrote to the grader's own pipe"
    return ended.result[_NONCE:].decode("utf-8", "replace")


def _run(spec: checks.Command, allowance: ChildLimits, place: WorkerPlace) -> str:
    spec = spec.with_nonce(secrets.token_hex(16))
    words = spec.argv
    if spec.runs_workspace:
        words = workspace_code.with_workspace_last(words, place.workspace)
    elif file := workspace_code.runs_file_of(words, place.workspace):
        return (
            f"it would run {file}, and all that lies there is the run's under judgement: say `runs_workspace: true`; "
            f"{workspace_code.OWN_SCRIPT}"
        )
    nonce = os.urandom(_NONCE)
    ended = children.run(_start(words, nonce), allowance, alone=place.alone)
    return _said(ended, nonce) if ended.how == "result" else _command(spec, ended, allowance.wall_s)


def _start(argv: list[str], nonce: bytes) -> Callable[[], bytes]:
    def work() -> bytes:
        try:
            os.execvp(argv[0], argv)  # noqa: S606 - a program of the task's author, with its list of arguments
        except OSError as error:
            return nonce + f"{argv[0]} cannot be started: {error.strerror}".encode()

    return work


def _command(spec: checks.Command, ended: ChildEnd, wall_s: float) -> str:
    if ended.how != "exit":
        return _unfinished(ended, wall_s)
    if ended.code != spec.exit:
        said = (ended.stderr.head or ended.stdout.head).strip()
        return f"{spec.argv[0]} ended with status {ended.code}, expected {spec.exit}: {shorten(said, 300)}"
    if spec.stdout_contains is not None and spec.stdout_contains not in ended.stdout.head:
        return f"{spec.argv[0]} printed {shorten(ended.stdout.head, 300)!r}, without {spec.stdout_contains!r}"
    if spec.stdout_equals is not None and ended.stdout.head.rstrip() != spec.stdout_equals.rstrip():
        return f"{spec.argv[0]} printed {shorten(ended.stdout.head, 300)!r}, expected {shorten(spec.stdout_equals, 300)!r}"
    return ""


def _unfinished(ended: ChildEnd, wall_s: float) -> str:
    return {
        "timeout": f"it did not end within {wall_s:.1f} s",
        "limit": f"it printed more than {_OUTPUT} bytes",
        "signal": f"it was killed by signal {ended.code}",
        "exit": f"it ended its process with status {ended.code}",
    }[ended.how]
