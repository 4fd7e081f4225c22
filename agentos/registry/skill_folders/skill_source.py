"""Where skills come from when a person names a place: a folder, a checkout, a git repository."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentos.errors import Conflict, ErrorKind, Invalid, UserError
from agentos.registry.git import NO_GIT, run_in_time
from agentos.registry.skill_folders import folder
from agentos.registry.skill_folders.skills_folder import main_file_of

_ADDRESS = re.compile(r"(https?|ssh|git|file)://\S+|[\w.-]+@[\w.-]+:\S+")
_TIMEOUT_S = 300
DEEPEST = 4  # below the place that was named


def is_address(source: str) -> bool:
    """Whether it is that of a repository, and no folder's path."""
    return _ADDRESS.fullmatch(source) is not None


@contextmanager
def checkout(source: str) -> Iterator[Path]:
    """The folder that ``source`` means, of an address (``URL#BRANCH``) as long as the context lasts.

    Raises UserError when there is none. Nothing of a repository is run: no hooks, no submodules.
    """
    if not is_address(source):
        place = Path(os.path.expanduser(source))
        if not source or not place.is_dir():
            raise UserError(
                f"There is no folder {source}. Give a folder with a SKILL.md, or a repository's URL"
            )
        yield place
        return
    if shutil.which("git") is None:
        raise UserError(NO_GIT)
    url, _, branch = source.partition("#")
    with tempfile.TemporaryDirectory(prefix="agentos-skill-") as aside:
        words = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "clone", "--quiet"]
        words += ["--depth=1", "--no-tags", "--template=", *(["--branch", branch] if branch else [])]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        clean |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file"}
        try:
            # its helper would wait for the server for ever; ssh may have to ask at the terminal
            alone = url.startswith("http")
            git = run_in_time([*words, "--", url, f"{aside}/checkout"], clean, _TIMEOUT_S, alone=alone)
        except TimeoutError:
            raise UserError(
                f"{url} did not come within {_TIMEOUT_S} s; try again", kind=ErrorKind.TIMEOUT
            ) from None
        if git.returncode:
            reason = git.stderr.strip().splitlines() or ["git gave no reason"]
            raise UserError(f"{url} cannot be cloned: {reason[-1].removeprefix('fatal: ')}")
        yield Path(aside, "checkout")


def found_in(place: Path) -> list[Path]:
    """The folders with a ``SKILL.md``: the place itself, or those below it, sorted."""
    if main_file_of(entry.name for entry in place.iterdir()):
        return [place]
    found: list[Path] = []
    for root, names, files in os.walk(place):
        names[:] = sorted(name for name in names if not folder.ignored(name))
        if len(Path(root).relative_to(place).parts) >= DEEPEST:
            names.clear()
        if main_file_of(files):
            found.append(Path(root))
            names.clear()  # what lies below belongs to it
    return found


def copy(skill: Path, target: Path) -> list[str]:
    """Put the skill's plain files where ``target`` does not exist yet, all at once; what was left out.

    Raises Conflict when it does, and Invalid when the folder cannot be a skill.
    """
    if target.exists():
        raise Conflict(f"{target} is there already; remove it first, or give another --name")
    content = folder.read(skill)
    if content.faults:
        raise Invalid(str(skill), content.faults)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    try:
        for name, data in content.files.items():
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).write_bytes(data)
        aside.chmod(0o755)
        aside.rename(target)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return content.left_out
