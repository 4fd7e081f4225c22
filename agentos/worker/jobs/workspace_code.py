"""Keeps what a run left from deciding whether it passed.

Every file in a grader's workspace was written by the run that is judged. So the process that judges runs
none of them (``keep_out``), programs find the standard library before them (``environment``), and a check
that has to run one says ``runs_workspace`` and does so in a process of its own, whose word is data
(``Helpers``): it says what came out, never whether that is right.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

_FIRST = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}  # no directory, no home comes before the library
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_INTERPRETERS = _SHELLS | {"perl", "ruby", "node", "php", "lua"}
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_DEEPEST = 4  # shells in shells that are looked through
_CODE_MAX = 1 << 20
# Runs beside the workspace: its files are found after the standard library. One JSON value comes out.
_CALL = """
import json, sys
given = json.load(sys.stdin)
out = open(int(sys.argv[1]), "w")
sys.path.append(given["workspace"])
import importlib.util
spec = importlib.util.spec_from_file_location(given["module"], given["file"])
module = importlib.util.module_from_spec(spec)
sys.modules[given["module"]] = module
try:
    spec.loader.exec_module(module)
    said = {"value": getattr(module, given["function"])(*given["args"], **given["named"])}
except BaseException as error:
    said = {"raised": f"{type(error).__name__}: {error}"[:2000]}
out.write(json.dumps(said))
out.close()
"""
# ``python -c CODE`` with the workspace at the end of the path, for commands that say so.
_LAST = "import os, sys; sys.path.append(os.getcwd())\n"


class WorkspaceCode(Exception):
    """The check would run a file that the run left, without saying so or in the process that judges."""


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """What programs of a check see: no directory is looked in before the standard library."""
    return {**given, **_FIRST}


def runs_file_of(argv: Sequence[str], workspace: Path, depth: int = 0) -> str:
    """The file of the workspace that this command line would run, as far as that can be seen; else ""."""
    program, name = argv[0], os.path.basename(argv[0])
    if "/" in program and _is_file(program, workspace):
        return program
    if name == "make":
        return next((file for file in _MAKEFILES if _is_file(file, workspace)), "")
    if name not in _INTERPRETERS and not name.startswith("python"):
        return ""
    for number, word in enumerate(argv[1:], 1):
        if not word.startswith("-"):
            return word if _is_file(word, workspace) else ""
        if _takes_code(name, word):
            script = argv[number + 1] if name in _SHELLS and number + 1 < len(argv) else ""
            return _run_by_script(script, workspace, depth)
    return ""


def _takes_code(name: str, option: str) -> bool:
    """Whether what follows the option is the program, so that files after it are its arguments."""
    if name in _SHELLS:
        return "c" in option[1:] and not option.startswith("--")
    return option[:2] in ("-c", "-m") if name.startswith("python") else "e" in option[1:]


def _run_by_script(script: str, workspace: Path, depth: int) -> str:
    for part in re.split(r"[|;&\n()]+", script) if depth < _DEEPEST else ():
        try:
            words = shlex.split(part)
        except ValueError:
            words = part.split()
        if words and (file := runs_file_of(words, workspace, depth + 1)):
            return file
    return ""


def with_workspace_last(argv: Sequence[str], workspace: Path) -> list[str]:
    """A command line that may run files of the workspace: Python finds them, after everything else.

    That works for ``-c``; a script or a module (``-m``) of the workspace is given by its path.
    """
    words = list(argv)
    if os.path.basename(words[0]).startswith("python") and "-c" in words[1:-1]:
        words[words.index("-c") + 1] = _LAST + words[words.index("-c") + 1]
    return words


def _is_inside(path: str, workspace: Path) -> bool:
    whole = os.path.realpath(os.path.join(workspace, path))
    return whole == str(workspace) or whole.startswith(f"{os.path.realpath(workspace)}/")


def _is_file(word: str, workspace: Path) -> bool:
    try:
        return _is_inside(word, workspace) and os.path.isfile(os.path.join(workspace, word))
    except ValueError:
        return False  # a null byte


def keep_out(workspace: Path, *, declared: bool) -> None:
    """From here on, this process runs no code of the workspace. Cannot be undone.

    ``declared``: programs of the workspace may be started in processes of their own.
    """
    guard = _Guard(workspace, declared=declared)
    sys.addaudithook(guard.look)


class _Guard:
    """An audit hook (PEP 578)."""

    def __init__(self, workspace: Path, *, declared: bool) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        self._declared = declared
        self._codes: list[CodeType] | None = None
        self._busy = False

    def look(self, event: str, args: tuple[Any, ...]) -> None:
        """Raises WorkspaceCode."""
        if self._busy:
            return
        if event == "import":
            self._path([args[1], *(args[2] or [])])
        elif event == "exec":
            self._code(args[0])
        elif event == "open":
            self._compiled(args[0])
        elif event in ("ctypes.dlopen", "ctypes.dlsym", "pickle.find_class", "marshal.load"):
            self._refuse(f"it uses {event.partition('.')[0]}, by which data becomes code")
        elif event in ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system") and not self._declared:
            self._program(event, args)

    def _path(self, entries: list[Any]) -> None:
        for entry in entries:
            if isinstance(entry, str) and _is_inside(entry or ".", self._workspace):
                self._refuse("it imports from the workspace")

    def _code(self, code: Any) -> None:
        if not isinstance(code, CodeType):
            return
        if code.co_filename.startswith("<"):
            if code.co_filename != "<check>" and code in self._known():
                self._refuse("it executes a file of the workspace")
        elif _is_inside(code.co_filename, self._workspace):
            self._refuse(f"it executes {code.co_filename}")

    def _known(self) -> list[CodeType]:
        """What the workspace's sources compile to, however they are read."""
        if self._codes is None:
            self._busy = True
            try:
                found = [
                    path for path in self._workspace.rglob("*") if path.is_file() and not path.is_symlink()
                ]
                self._codes = [code for path in found if (code := _compiled(path)) is not None]
            finally:
                self._busy = False
        return self._codes

    def _compiled(self, path: Any) -> None:
        compiled = isinstance(path, str | bytes) and os.fsdecode(path).endswith((".pyc", ".so"))
        if compiled and _is_inside(os.fsdecode(path), self._workspace):
            self._refuse("it loads a compiled file of the workspace")

    def _program(self, event: str, args: tuple[Any, ...]) -> None:
        given = args[1] if len(args) > 1 and args[1] is not None else [args[0]]
        words = [os.fsdecode(word) for word in ([given] if isinstance(given, str | bytes) else given)]
        if event == "os.system":
            words = ["sh", "-c", os.fsdecode(args[0])]
        if words and (file := runs_file_of(words, self._workspace)):
            self._refuse(f"it runs {file}")

    def _refuse(self, why: str) -> NoReturn:
        raise WorkspaceCode(
            f"{why}, which the run under judgement wrote: say `runs_workspace: true`, and use "
            "run(...) or call(...), whose results are data"
        )


def _compiled(path: Path) -> CodeType | None:
    try:
        if path.stat().st_size > _CODE_MAX:
            return None
        return compile(path.read_bytes(), "<workspace>", "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program said: data."""

    status: int  # negative: the signal that ended it
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Helpers:
    """What a ``python`` check that says ``runs_workspace`` gets as ``run`` and ``call``."""

    workspace: Path

    def run(self, argv: Sequence[str], *, input: str = "", timeout_s: float = 10.0) -> ProgramOutput:
        """Start a program in the workspace. Raises OSError, subprocess.TimeoutExpired."""
        done = subprocess.run(
            with_workspace_last(argv, self.workspace),
            cwd=self.workspace,
            env=environment(os.environ),
            input=input.encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            start_new_session=True,
        )
        out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
        return ProgramOutput(done.returncode, out, err)

    def call(self, file: str, function: str, *args: Any, timeout_s: float = 10.0, **named: Any) -> Any:
        """What a function in a file of the workspace returns, as plain JSON data.

        Raises AssertionError when it raised, ended its process, took too long or returned no JSON.
        """
        read, write = os.pipe()
        place = self.workspace / file
        given = {
            "workspace": str(self.workspace),
            "file": str(place),
            "module": place.stem,
            "function": function,
        }
        with os.fdopen(read, "rb") as answer:
            try:
                subprocess.run(
                    [sys.executable, "-c", _CALL, str(write)],
                    cwd=self.workspace,
                    env=environment(os.environ),
                    input=json.dumps({**given, "args": args, "named": named}).encode(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=timeout_s,
                    check=False,
                    pass_fds=[write],
                    start_new_session=True,
                )
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{file}: {function} did not end within {timeout_s:g} s") from None
            finally:
                os.close(write)
            os.set_blocking(read, False)  # a process that it left may hold the other end
            text = answer.read(_CODE_MAX) or b""
        try:
            said = json.loads(text)
            if "raised" in said:
                raise AssertionError(f"{file}: {function} raised {str(said['raised'])[:500]}")
            return said["value"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise AssertionError(f"{file}: {function} returned nothing that is JSON") from None
