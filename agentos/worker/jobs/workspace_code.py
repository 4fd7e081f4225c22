"""Keeps what a run left from deciding whether it passed.

Every file in a grader's workspace was written by the run that is judged. So the process that judges runs
none of them (``keep_out``), programs find the standard library before them (``environment``), and a check
that has to run one says ``runs_workspace`` and does so in a process of its own, whose word is data
(``Helpers``): it says what came out, never whether that is right.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FIRST = {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}  # no directory, no home comes before the library
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"})
_INTERPRETERS = _SHELLS | _words(
    "perl ruby node nodejs deno bun php lua luajit Rscript julia tclsh guile java groovy scala osascript expect pwsh"
)
# They start another program, which stands after their options.
_STARTERS = _words(
    "env timeout nice ionice stdbuf setsid nohup time chrt taskset xargs busybox toybox command builtin exec "
    "unbuffer script watch parallel then else elif if while until do ! {"
)
# They run what stands in the folder that they are started in: tests, rules, settings that are code.
_RUNNERS = _words(
    "make gmake pytest py.test tox nox coverage trial nosetests stestr npm npx yarn pnpm jest mocha vitest cargo go "
    "gradle mvn ant rake just ninja cmake bazel meson scons invoke doit mypy pylint flake8 git hg gdb lldb vim ex ed "
    "emacs"
)
_WITH_FILE = {"awk": "f", "gawk": "f", "mawk": "f", "sed": "f", "bc": "", "dc": "f", "jq": "f", "m4": ""}
# Modules that run nothing of what they are given.
_READING_MODULES = _words(
    "json.tool py_compile compileall tabnanny tokenize ast symtable base64 calendar gzip tarfile zipfile"
)
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs", "-O", "+O", "-o", "+o", "-I", "-r", "-M"})
_ASKS = frozenset({"--version", "-V", "-VV", "--help", "-h", "-v"})
# In the code of ``python -c``: by these a text or a file becomes code, or a program.
_BUILTINS = frozenset({"exec", "eval", "compile", "__import__"})
_MODULES = _words(
    "runpy importlib imp zipimport pickle cPickle marshal shelve dill joblib ctypes cffi subprocess multiprocessing pty "
    "site pkgutil code codeop doctest unittest pytest"
)
_FUNCTIONS = _words(
    "system popen execv execve execvp execl execlp spawnv spawnl posix_spawn addsitedir sys.path"
)
# What to do instead, for whoever did not mean a file of the run at all: a check takes no file along.
OWN_SCRIPT = "a script of your own has to stand in the check itself, as `python: {code: …}`"
_LEAST = 8  # characters of a text that can do harm when it is executed
_DEEPEST = 4  # shells in shells that are looked through
_CODE_MAX = 1 << 20
_PRINTED_MAX = 16 << 20  # bytes of a stream
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
    """What of the workspace this command line would run, as far as that can be seen; else "".

    Whoever wrote the check means no harm, and need not know by which ways a file becomes a program: an interpreter that
    is given no file of elsewhere, and all that runs what lies in its folder, would run what was left.
    """
    words = _started(argv)
    if not words or depth > _DEEPEST:
        return ""
    program, name = words[0], os.path.basename(words[0])
    if "/" in program and (_is_own(program, workspace) or _lies_below(program, workspace)):
        return program
    if name in ("source", ".", "eval") and depth:
        return "" if _is_elsewhere(words[1:2], workspace) else f"what `{name}` is given"
    if name in _RUNNERS:
        return f"what {name} finds there" if any(workspace.iterdir()) else ""
    if name == "find":
        run = next(
            (words[at + 1 :] for at, word in enumerate(words) if word.startswith(("-exec", "-ok"))), []
        )
        return runs_file_of(run, workspace, depth + 1) if run else ""
    if name in _WITH_FILE:
        return _given_to(words, _WITH_FILE[name], workspace)
    if name not in _INTERPRETERS and not name.startswith(("python", "pypy")):
        return ""
    return _interpreted(words, name, workspace, depth)


def _started(argv: Sequence[str]) -> list[str]:
    """The command line without what only starts another one, and without its assignments."""
    words = list(argv)
    while words and (os.path.basename(words[0]) in _STARTERS or re.match(r"[A-Za-z_]\w*=", words[0])):
        starter, words = os.path.basename(words[0]), words[1:]
        if starter == "env" and words[:1] in (["-S"], ["--split-string"]):
            words = [*_split(words[1]), *words[2:]] if len(words) > 1 else []
        if starter in _STARTERS:  # its options, and what numbers they take
            while words and (words[0].startswith(("-", "+")) or re.fullmatch(r"[\d.]+[smhd]?", words[0])):
                words = words[1:]
    return words


def _split(line: str) -> list[str]:
    """Of a command line; where a quote is closed by nothing, what stands between blanks."""
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _interpreted(words: Sequence[str], name: str, workspace: Path, depth: int) -> str:
    before: list[str] = []
    for number, word in enumerate(words[1:], 1):
        if word == "-" or not word.startswith(("-", "+")):
            if words[number - 1] not in _WITH_VALUE:
                before.append(word)
                break
        elif _takes_code(name, word):
            code = words[number + 1] if number + 1 < len(words) else ""
            own = _own_among(before, workspace)
            return own or _run_by_code(name, word, code, workspace, depth)
        before += [word, word.partition("=")[2], word[2:]]
    if own := _own_among(before, workspace):
        return own
    if _is_elsewhere(before[-1:], workspace) or _ASKS & {*before} or not any(workspace.iterdir()):
        return ""
    return f"what {name} reads"


def _own_among(words: Sequence[str], workspace: Path) -> str:
    return next((word for word in words if word and _is_own(word, workspace)), "")


def _given_to(words: Sequence[str], option: str, workspace: Path) -> str:
    """The file that a program of one purpose is given to run: after an option, or as any word."""
    for number, word in enumerate(words[1:], 1):
        is_option = option and word.startswith("-") and not word.startswith("--") and option in word
        if word.startswith(("--file", "--from-file")) or is_option:
            given = [word.partition("=")[2], word.partition(option)[2], *words[number + 1 : number + 2]]
            if own := _own_among(given, workspace):
                return own
        elif not option and (own := _own_among([word], workspace)):
            return own
    return ""


def _takes_code(name: str, option: str) -> bool:
    """Whether what follows the option is the program, so that files after it are its arguments."""
    if name in _SHELLS:
        return "c" in option[1:] and not option.startswith("--")
    if name.startswith(("python", "pypy")):
        return not option.startswith("--") and option[-1:] in ("c", "m")
    return option in ("-e", "-E", "-ne", "-pe", "-le", "-lne", "-r", "--eval", "-p", "-print")


def _run_by_code(name: str, option: str, code: str, workspace: Path, depth: int) -> str:
    if name in _SHELLS:
        return _run_by_script(code, workspace, depth)
    if not name.startswith(("python", "pypy")):
        return ""
    if option.endswith("m"):
        return "" if code in _READING_MODULES or not any(workspace.iterdir()) else f"what {code} finds there"
    return _run_by_python(code, workspace)


def _run_by_python(code: str, workspace: Path) -> str:
    """What of the workspace a program that is given as a text would run."""
    try:
        nodes = [*ast.walk(ast.parse(code))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""  # it ends at once
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names} & _MODULES
        elif isinstance(node, ast.ImportFrom):
            named = {alias.name for alias in node.names}
            found |= {(node.module or "").partition(".")[0]} & _MODULES
            found |= (named & _FUNCTIONS) | (
                {"sys.path"} if node.module == "sys" and "path" in named else set()
            )
        elif isinstance(node, ast.Name):
            found |= {node.id} & _BUILTINS
        elif isinstance(node, ast.Attribute):
            owner = f"{node.value.id}." if isinstance(node.value, ast.Name) else ""
            found |= {node.attr, f"{owner}{node.attr}"} & _FUNCTIONS
    return f"what it reaches by {min(found)}" if found and any(workspace.iterdir()) else ""


def _run_by_script(script: str, workspace: Path, depth: int) -> str:
    """What of the workspace a script of a shell would run, wherever it stands in it."""
    if depth >= _DEEPEST:
        return ""
    for part in re.split(r"[|;&\n()`]+|\$\(", script):
        fed = [word for word in _split(part) if not word.startswith("<")]
        if fed and (file := runs_file_of(fed, workspace, depth + 1)):
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


def _is_own(word: str, workspace: Path) -> bool:
    """Whether it names a file of the workspace that is there, or a folder that can be run, also from a folder below."""
    try:
        place = os.path.join(workspace, word)
        if _is_inside(word, workspace):
            return os.path.isfile(place) or os.path.isfile(os.path.join(place, "__main__.py"))
        return False
    except ValueError:
        return False  # a null byte


def _lies_below(word: str, workspace: Path) -> bool:
    """Whether a file of that name is somewhere in the workspace: a script may have gone down to it."""
    name = os.path.basename(word)
    return not word.startswith("/") and any(name in files for _, _, files in os.walk(workspace))


def _is_elsewhere(words: Sequence[str], workspace: Path) -> bool:
    """Whether it is a file by its whole path, outside of the workspace."""
    return all(
        word.startswith("/") and os.path.isfile(word) and not _is_inside(word, workspace) for word in words
    ) and bool(words)


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
        self._read: list[str] | None = None
        self._busy = False

    def look(self, event: str, args: tuple[Any, ...]) -> None:
        """Raises WorkspaceCode."""
        if self._busy:
            return
        if event == "import":
            self._path([args[1], *(args[2] or [])])
        elif event == "compile":
            self._source(args[0], args[1])
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

    def _source(self, source: Any, name: Any) -> None:
        """A text of the workspace, or a part of one, that becomes code; ``ast.parse`` and the like only read it."""
        if not isinstance(source, str | bytes) or name in ("<unknown>", "<check>", b"<unknown>"):
            return
        text = (source.decode("utf-8", "replace") if isinstance(source, bytes) else source).strip()
        if len(text) >= _LEAST and any(
            text in own or (len(own) >= _LEAST and own in text) for own in self._texts()
        ):
            self._refuse("it executes a text of the workspace")

    def _texts(self) -> list[str]:
        if self._read is None:
            self._busy = True
            try:
                self._read = [
                    path.read_bytes().decode("utf-8", "replace").strip()
                    for path in self._workspace.rglob("*")
                    if path.is_file() and not path.is_symlink() and path.stat().st_size <= _CODE_MAX
                ]
            finally:
                self._busy = False
        return self._read

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
        if event == "subprocess.Popen" and isinstance(given, str | bytes):
            words = ["sh", "-c", *words]
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
    """What a program said: data, of each stream the first 16 MiB."""

    status: int  # negative: the signal that ended it
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Helpers:
    """What a ``python`` check that says ``runs_workspace`` gets as ``run`` and ``call``."""

    workspace: Path

    def run(self, argv: Sequence[str], *, input: str = "", timeout_s: float = 10.0) -> ProgramOutput:
        """Start a program in the workspace. Raises OSError, subprocess.TimeoutExpired."""
        # no pipes: what the program leaves running would hold them, and what it prints has no end
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given.write(input.encode())
            given.seek(0)
            done = subprocess.run(
                with_workspace_last(argv, self.workspace),
                cwd=self.workspace,
                env=environment(os.environ),
                stdin=given,
                stdout=out,
                stderr=err,
                timeout=timeout_s,
                check=False,
                start_new_session=True,
            )
            out.seek(0)
            err.seek(0)
            texts = [file.read(_PRINTED_MAX).decode("utf-8", "replace") for file in (out, err)]
        return ProgramOutput(done.returncode, *texts)

    def call(self, file: str, function: str, *args: Any, timeout_s: float = 10.0, **named: Any) -> Any:
        """What a function in a file of the workspace returns, as plain JSON data.

        Raises AssertionError when it raised, ended its process, took too long or returned no JSON.
        """
        place = self.workspace / file
        given = {
            "workspace": str(self.workspace),
            "file": str(place),
            "module": place.stem,
            "function": function,
        }
        with tempfile.TemporaryFile() as answer:  # no pipe: that holds 64 KiB while nobody reads
            try:
                subprocess.run(
                    [sys.executable, "-c", _CALL, str(answer.fileno())],
                    cwd=self.workspace,
                    env=environment(os.environ),
                    input=json.dumps({**given, "args": args, "named": named}).encode(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=timeout_s,
                    check=False,
                    pass_fds=[answer.fileno()],
                    start_new_session=True,
                )
            except subprocess.TimeoutExpired:
                raise AssertionError(f"{file}: {function} did not end within {timeout_s:g} s") from None
            answer.seek(0)
            text = answer.read(_CODE_MAX)
        try:
            said = json.loads(text)
            if "raised" in said:
                raise AssertionError(f"{file}: {function} raised {str(said['raised'])[:500]}")
            return said["value"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise AssertionError(f"{file}: {function} returned nothing that is JSON") from None
