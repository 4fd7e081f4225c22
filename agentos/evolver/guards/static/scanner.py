"""What bandit finds in the new text and not in the old, in a process of its own.

Its plugins take a while to load and keep global state, so it is started as a program, isolated from
environment and working directory. Its ``# nosec`` comments are ignored: a candidate could write them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agentos.errors import Unavailable
from agentos.evolver.screen_rules import Finding, Seen, added

_TIMEOUT_S = 60.0


def scan(old: Mapping[str, str], new: Mapping[str, str]) -> list[Finding]:
    """Findings of at least medium severity and confidence that ``new`` has and ``old`` has not, by registry path.

    Raises Unavailable when bandit cannot do its work.
    """
    if not new:
        return []
    with tempfile.TemporaryDirectory(prefix="agentos-scan-") as folder:
        files = {}
        for number, (version, path) in enumerate(
            [(old, path) for path in old] + [(new, path) for path in new]
        ):
            file = Path(folder, f"file{number}.py")
            file.write_text(version[path], encoding="utf-8", newline="")
            files[str(file)] = (version, path)
        report = _bandit(folder, list(files))
    found = [(*files[item["filename"]], item) for item in report["results"]]
    before = [_seen(path, old[path], item) for version, path, item in found if version is old]
    after = [_seen(path, new[path], item) for version, path, item in found if version is new]
    unread = [(*files[item["filename"]], item["reason"]) for item in report["errors"]]
    known = {path for version, path, _ in unread if version is old}
    return [
        Finding("scanner", path, 0, f"bandit cannot read it: {why}")
        for version, path, why in unread
        if version is new and path not in known
    ] + added(before, after)


def _seen(path: str, text: str, found: Mapping[str, str]) -> Seen:
    line = int(found["line_number"])
    why = f"{found['issue_text'].rstrip('.')} ({found['test_id']})"
    # the line as it stands: who changes a doubtful line answers for it
    return Seen(Finding("scanner", path, line, why), (found["test_id"], text.splitlines()[line - 1].strip()))


def _bandit(folder: str, names: list[str]) -> dict[str, list[dict[str, str]]]:
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
        *names,
    ]
    try:
        done = subprocess.run(
            command, cwd=folder, env={}, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        report: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"bandit did not work, so no source edit can be screened: {error}") from None
    return report
