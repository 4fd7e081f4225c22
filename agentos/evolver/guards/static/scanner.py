"""What bandit finds in the new text and not in the old, in a process of its own.

Its plugins take a while to load and keep global state, so it is started as a program, isolated from
environment and working directory. It reads the texts from memory, so that nothing is left of a scan that
was killed. Its ``# nosec`` comments are ignored: a candidate could write them.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from agentos.errors import Unavailable
from agentos.evolver.screen_rules import Construct, RuleHit, added

_TIMEOUT_S = 60.0
_NAME = "/proc/self/fd/{}"


@dataclass(frozen=True, slots=True)
class _Report:
    """What bandit says of one text: its findings, and why it could not read it."""

    found: list[dict[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def scan(old: Mapping[str, str], new: Mapping[str, str]) -> list[RuleHit]:
    """Findings of at least medium severity and confidence that ``new`` has and ``old`` has not, by registry path.

    Raises Unavailable when bandit cannot do its work.
    """
    if not new:
        return []
    reports = _bandit(tuple(dict.fromkeys([*old.values(), *new.values()])))
    before = [_seen(path, text, item) for path, text in old.items() for item in reports[text].found]
    after = [_seen(path, text, item) for path, text in new.items() for item in reports[text].found]
    known = {path for path, text in old.items() if reports[text].unread}
    return [
        RuleHit("scanner", path, 0, f"bandit cannot read it: {why}")
        for path, text in new.items()
        for why in reports[text].unread
        if path not in known
    ] + added(before, after)


def _seen(path: str, text: str, found: Mapping[str, str]) -> Construct:
    line = int(found["line_number"])
    why = f"{found['issue_text'].rstrip('.')} ({found['test_id']})"
    # the line as it stands: who changes a doubtful line answers for it
    return Construct(
        RuleHit("scanner", path, line, why), (found["test_id"], text.splitlines()[line - 1].strip())
    )


# The report follows from the texts alone, and what is screened twice would start a program twice.
@functools.lru_cache(maxsize=32)
def _bandit(texts: tuple[str, ...]) -> Mapping[str, _Report]:
    with ExitStack() as stack:
        files = {}
        for text in texts:
            descriptor = os.memfd_create("scan")
            stack.callback(os.close, descriptor)
            with open(descriptor, "wb", closefd=False) as file:
                file.write(text.encode())
            files[descriptor] = text
        said = _run(list(files))
    named = {_NAME.format(descriptor): text for descriptor, text in files.items()}
    reports = {text: _Report() for text in texts}
    for item in said["results"]:
        reports[named[item["filename"]]].found.append(item)
    for item in said["errors"]:
        reports[named[item["filename"]]].unread.append(item["reason"])
    return reports


def _run(descriptors: list[int]) -> dict[str, list[dict[str, str]]]:
    # -ll and -ii: severity and confidence of medium or more. An exit code of 1 means findings.
    command = [
        sys.executable,
        "-I",
        "-m",
        "bandit",
        "-q",
        "-f",
        "json",
        "--ignore-nosec",
        "-ll",
        "-ii",
        *map(_NAME.format, descriptors),
    ]
    try:
        done = subprocess.run(
            command,
            cwd="/",
            env={},
            pass_fds=descriptors,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        report: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"bandit did not work, so no source edit can be screened: {error}") from None
    return report
