"""Calls a tool once for each case that comes on standard input, and says what it answered and wrote.

A program of its own, which bench_tools.py starts in an empty folder: a tool may not end, end its
process, or leave files behind. Each case gets the file anew, as each call of a real run does.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import json
import signal
import sys
import types
from pathlib import Path
from typing import Any


class TooLong(BaseException):
    """No tool that catches Exception catches this."""


def too_long(*_: object) -> None:
    raise TooLong


def call(codes: dict[str, types.CodeType], case: dict[str, Any], seconds: int) -> list[Any]:
    """The answer and the files written; the error's name and nothing else when there is none."""
    for old in Path().iterdir():
        old.unlink()
    for name, text in case["files"].items():
        Path(name).write_bytes(text.encode())
    modules: list[Any] = [types.ModuleType(name) for name in codes]
    sys.modules.update({module.__name__: module for module in modules})
    module = modules[-1]  # the tool, after its helpers
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of CPU, so that a busy machine ends none
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for each in modules:
                exec(codes[each.__name__], each.__dict__)
            answer = module.run(module.Input.model_validate(case["args"]))
            if inspect.iscoroutine(answer):
                answer = asyncio.run(answer)
            answer = answer.model_dump(mode="json")
            json.dumps(answer, allow_nan=False)
    except (Exception, TooLong, SystemExit) as error:  # noqa: BLE001 - a tool may raise anything
        return [f"raised {type(error).__name__}"]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    left = {path.name: path.read_bytes().decode("utf-8", "replace") for path in Path().iterdir()}
    return [answer, {name: text for name, text in left.items() if case["files"].get(name) != text}]


def main() -> None:
    signal.signal(signal.SIGPROF, too_long)
    asked = json.load(sys.stdin)
    codes = {name: compile(source, f"{name}.py", "exec") for name, source in asked["sources"].items()}
    json.dump([call(codes, case, asked["seconds"]) for case in asked["cases"]], sys.stdout)


if __name__ == "__main__":
    main()
