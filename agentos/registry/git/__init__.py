"""The bare repository: objects, references, packs, versions, history.

Here stands what starts git without libgit2, which takes longer to load than a short command may.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agentos.errors import Sentence, to_type

NO_GIT = Sentence("there is no git on the PATH: type ", to_type("apt-get install git"))

CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsync": "committed,reference",
    "core.fsmonitor": "false",
    "core.logAllRefUpdates": "false",
    "gc.auto": "0",
    "gc.packRefs": "false",
    "maintenance.auto": "false",
    "receive.autogc": "false",
    "receive.fsckObjects": "true",
}

# On top of what the repository's own configuration says, for every git program that we start.
_OVERRIDES = {
    **{key: value for key, value in CONFIG.items() if not key.startswith("receive")},
    "log.showSignature": "false",
    "core.attributesFile": "/dev/null",
    "core.pager": "cat",
    "protocol.allow": "never",
}


def environment() -> dict[str, str]:
    """The environment for a git subprocess: no inherited ``GIT_*``, no outside configuration."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    clean |= {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_COUNT": str(len(_OVERRIDES)),
        "LC_ALL": "C",
    }
    for number, (key, value) in enumerate(_OVERRIDES.items()):
        clean |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return clean


def run_in_time(
    words: Sequence[str],
    env: Mapping[str, str],
    seconds: float,
    *,
    alone: bool = True,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run git, and end it when its time is over: raises TimeoutError.

    ``alone`` it has a session of its own: what it starts (ssh, git-remote-https) keeps its pipes and ends with it, and
    nobody is asked at a terminal.
    """
    with subprocess.Popen(
        ["git", *words],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL if alone else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=alone,
    ) as git:
        try:
            out, said = git.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            if git.returncode is None:
                with suppress(ProcessLookupError):
                    (os.killpg if alone else os.kill)(git.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(words, git.returncode, out, said)


def files_at(repository: Path, tree: str, folder: str) -> dict[str, bytes] | None:
    """All files below a folder of a tree; None where git cannot tell."""
    command = ["git", f"--git-dir={repository}", "ls-tree", "-r", "-z", "--name-only", tree, f"{folder}/"]
    try:
        done = subprocess.run(command, capture_output=True, env=environment(), timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    paths = [os.fsdecode(path) for path in done.stdout.split(b"\0") if path]
    return None if done.returncode else texts_at(repository, tree, paths)


def texts_at(repository: Path, tree: str, paths: Sequence[str]) -> dict[str, bytes] | None:
    """Content of these files of a tree, b"" for what it has not; None where git cannot tell."""
    names = [tree, *(f"{tree}:{path}" for path in paths)]
    if any("\n" in name for name in names):
        return None
    command = ["git", f"--git-dir={repository}", "cat-file", "--batch"]
    asked = "".join(f"{name}\n" for name in names).encode()
    try:
        done = subprocess.run(command, input=asked, capture_output=True, env=environment(), timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    rest, found = done.stdout, []
    for name in names:
        head, _, rest = rest.partition(b"\n")
        if head == f"{name} missing".encode():
            found.append(("missing", b""))
            continue
        _, kind, size = [*head.decode(errors="replace").split(" "), "", ""][:3]
        if not size.isdigit():
            return None
        found.append((kind, rest[: int(size)]))
        rest = rest[int(size) + 1 :]
    if found[0][0] != "tree" or done.returncode:
        return None
    return {
        path: text if kind == "blob" else b"" for path, (kind, text) in zip(paths, found[1:], strict=True)
    }
