"""Calls of programs: a tool in any language (``tool.json``) and the scripts of skills.

Such a tool gets its arguments as JSON on standard input, and answers with JSON on standard output. A
script gets words. Both start in the workspace, from files put back as the bundle has them.
"""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentos import checks
from agentos.messages import WHEELS, ToolCard
from agentos.programs import INTERPRETERS, SCRIPT_EFFECTS, is_manifest, is_script
from agentos.wire import shorten
from agentos.worker.children import allowed
from agentos.worker.faults import Failed, NotPlain, encode, fault, resource_of
from agentos.worker.tools.bundle_importer import BundleFiles
from agentos.worker.tools.toolfile import EFFECTS, ToolDeclaration, name_of

_SHOWN = 30_000  # bytes of each stream of a script: the first and the last half of it
_PATIENCE_S = 0.2  # before the call's own end, to say what the program printed
_FRAME = re.compile(r'^[ \t]*File "([^"]+)", line \d+, in (\S+)', re.MULTILINE)


class ToolManifest(ToolDeclaration):
    """What ``tool.json`` says."""

    model_config = ConfigDict(extra="forbid", strict=True)

    command: list[str] = Field(min_length=1)
    input_schema: dict[str, Any] = Field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] = Field(default_factory=dict)
    timeout_s: float | None = Field(None, gt=0)
    memory_mb: int | None = Field(None, gt=0)
    # of a tool that a server has: the kernel calls it, in the server's own box
    mcp: dict[str, Any] | None = None


class ScriptInput(BaseModel):
    """What a script gets."""

    model_config = ConfigDict(extra="forbid")

    args: list[str] = Field(
        [], description="The words behind its name; files of the workspace by their names"
    )
    stdin: str = Field("", description="What it reads from standard input")


class ScriptOutput(BaseModel):
    """What a script gave that ended well."""

    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class _Start:
    argv: list[str]
    stdin: bytes
    environment: dict[str, str]
    manifest: ToolManifest | None


def is_program(path: str) -> bool:
    """Whether a call of this registry path starts a program."""
    return is_manifest(path) or is_script(path)


def declared(source: str | bytes, path: str) -> ToolDeclaration:
    """What the program says of itself, or what holds for every script; raises Failed(load)."""
    if is_script(path):
        return ToolDeclaration.model_construct(
            name=PurePosixPath(path).name,
            description=f"The script {path.split('/', 2)[2]}",
            effects=list(SCRIPT_EFFECTS),
            dependencies=[],
            idempotent=False,
        )
    return manifest(source, path)


def manifest(source: str | bytes, path: str) -> ToolManifest:
    """The ``tool.json``; raises Failed(load)."""
    try:
        says = ToolManifest.model_validate(json.loads(source))
    except ValidationError as error:
        raise _bad(path, "; ".join(checks.plain_sentences(error))) from None
    except (ValueError, RecursionError) as error:
        raise _bad(path, f"it is not JSON: {error}") from None
    if says.name != name_of(path):
        raise _bad(path, f"its name is '{says.name}', its folder asks for '{name_of(path)}'")
    if unknown := [effect for effect in says.effects if effect not in EFFECTS]:
        raise _bad(path, f"effect '{unknown[0]}' is unknown: use some of {', '.join(EFFECTS)}")
    for schema in (says.input_schema, says.output_schema):
        _check_schema(schema, path)
    return says


def card(held: BundleFiles, path: str) -> ToolCard:
    """What the program says of itself; raises Failed(load), also when nothing here can start it."""
    says = declared(held.content(path) or b"", path)
    own = says if isinstance(says, ToolManifest) else None
    if own is None or own.mcp is None:
        _argv(held, path, says)
    return ToolCard(
        path=path,
        name=says.name,
        description=says.description,
        effects=says.effects,
        dependencies=says.dependencies,
        input_schema=own.input_schema if own else ScriptInput.model_json_schema(),
        output_schema=own.output_schema if own else ScriptOutput.model_json_schema(),
    )


def call(held: BundleFiles, path: str, args: Any, most: int, wall_s: float) -> bytes:
    """Start the program in the current directory and wait: its output as JSON, at most ``most`` bytes.

    Raises Failed: ``input``, ``output``, ``exit``, ``signal``, ``timeout``, ``limit``, ``load``.
    """
    _put_back(held, resource_of(path))
    start = _start(held, path, args)
    limit_s = wall_s - min(_PATIENCE_S, wall_s / 2)
    if start.manifest is not None and start.manifest.timeout_s is not None:
        limit_s = min(limit_s, start.manifest.timeout_s)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(start.stdin)
        given.seek(0)
        try:
            code = _wait(start, (given, out, err), limit_s)
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise _unfit("they are too long for a command line", path) from None
            raise _bad(path, f"it cannot be started: {error.strerror}") from None
        if code:
            _show(out, err)
            raise Failed(_fault(held, path, code, limit_s, err))
        if start.manifest is None:
            result: Any = ScriptOutput(stdout=_shown(out), stderr=_shown(err)).model_dump()
        else:
            result = _answer(start.manifest, path, out, most)
            _show(err)
    try:
        return encode(result, most)
    except NotPlain as error:
        raise Failed(fault(error.type, f"the output: {error}", path=path)) from None


def _start(held: BundleFiles, path: str, args: Any) -> _Start:
    says = declared(held.content(path) or b"", path)
    if isinstance(says, ToolManifest) and says.mcp is not None:
        raise _bad(path, "a tool of an MCP server is called by the kernel, which was not asked")
    argv = _argv(held, path, says)
    folder = held.root / resource_of(path)
    environment = {**os.environ, "SKILL_DIR": str(folder), "PYTHONPATH": str(folder / WHEELS)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if isinstance(says, ToolManifest):
        _must_fit(says.input_schema, args, "input", path)
        return _Start(argv, json.dumps(args).encode(), environment, says)
    try:
        given = ScriptInput.model_validate(args)
    except ValidationError as error:
        raise _unfit("; ".join(checks.sentences(error)), path) from None
    if any("\0" in word for word in given.args):
        raise _unfit("a word of a command line has no null character", path)
    words = [_seen_from_the_skill(held, path, word) for word in given.args]
    return _Start([*argv, *words], given.stdin.encode("utf-8", "replace"), environment, None)


def _seen_from_the_skill(held: BundleFiles, path: str, word: str) -> str:
    """A text of the skill names its files from its own folder; the workspace comes first."""
    inside = f"{resource_of(path)}/{word.rstrip('/')}"
    own = held.content(inside) is not None or held.any_below(f"{inside}/")
    return str(held.root / inside) if own and word and not os.path.lexists(word) else word


def _argv(held: BundleFiles, path: str, says: ToolDeclaration) -> list[str]:
    """Raises Failed(load) where the sandbox lacks what starts it."""
    if not isinstance(says, ToolManifest):
        return _by_file(held, path)
    folder = path.rpartition("/")[0]
    first, *rest = says.command
    own = f"{folder}/{first}"
    head = _by_file(held, own) if held.content(own) is not None else [_found(first, path)]
    return [*head, *(str(held.root / folder / word) if held.content(f"{folder}/{word}") is not None else word for word in rest)]  # fmt: skip


def _by_file(held: BundleFiles, path: str) -> list[str]:
    """What starts the file: its first line, its suffix, or itself."""
    file, content = held.root / path, held.content(path) or b""
    names: Sequence[str] = INTERPRETERS.get(PurePosixPath(path).suffix.lower(), ())
    if content.startswith(b"#!"):
        line = content.partition(b"\n")[0][2:].decode("utf-8", "replace")
        try:
            said = shlex.split(line)
        except ValueError:  # a quote that nothing closes
            said = line.split()
        while said and (PurePosixPath(said[0]).name == "env" or said[0].startswith("-") or "=" in said[0]):
            said = said[1:]
        if said:
            known = PurePosixPath(said[0]).name
            return [_found(known if shutil.which(known) or known.startswith("python") else said[0], path), *said[1:], str(file)]  # fmt: skip
    if names:
        found = next((name for name in names if shutil.which(name)), names[0])
        return [_found(found, path), str(file)]
    if content.startswith(b"\x7fELF"):
        file.chmod(0o755)
        return [str(file)]
    raise _bad(path, "nothing says what starts it: its first line would, as in '#!/usr/bin/env bash'")


def _found(name: str, path: str) -> str:
    if PurePosixPath(name).name.startswith("python"):
        return sys.executable
    found = shutil.which(name)
    if found is None:
        raise _bad(path, f"it needs '{name}', which this sandbox does not have")
    return found


def _put_back(held: BundleFiles, own: str) -> None:
    """The resource's files on disk as they are in the bundle: an earlier call may have written over them."""
    for path in held.below(f"{own}/"):
        target, content = held.root / path, held.content(path) or b""
        if f"/{WHEELS}/" in path or (
            target.is_file() and not target.is_symlink() and target.read_bytes() == content
        ):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{os.getpid()}")
        aside.write_bytes(content)
        os.replace(aside, target)


def _wait(start: _Start, streams: tuple[IO[bytes], IO[bytes], IO[bytes]], limit_s: float) -> int | None:
    """The exit status, negative for a signal; SIGXCPU stands for the time."""

    def limit() -> None:
        if start.manifest is not None and start.manifest.memory_mb is not None:
            ceiling = allowed(resource.RLIMIT_AS, start.manifest.memory_mb << 20)
            resource.setrlimit(resource.RLIMIT_AS, (ceiling, ceiling))

    given, out, err = streams
    process = subprocess.Popen(
        start.argv,
        stdin=given,
        stdout=out,
        stderr=err,
        env=start.environment,
        start_new_session=True,
        preexec_fn=limit,  # this process has one thread
    )
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return -signal.SIGXCPU


def _fault(held: BundleFiles, path: str, code: int, limit_s: float, err: IO[bytes]) -> Any:
    name = path.split("/", 2)[2]
    if code == -signal.SIGXCPU:
        return fault("timeout", f"{name} did not end within {limit_s:.3g} s", path=path)
    if code < 0:
        return fault("signal", f"{name} was killed by signal {-code}", path=path)
    said = _shown(err).strip()
    last = said.rpartition("\n")[2]
    root = f"{held.root}/{resource_of(path)}/"
    frames = [match for match in _FRAME.finditer(said) if match[1].startswith(root)]
    inside = [match for match in frames if not match[1].startswith(f"{root}{WHEELS}/")]
    where = f"{inside[-1][1].removeprefix(f'{held.root}/')}:{inside[-1][2]}" if inside else path
    message = f"{name} ended with status {code}" + (f": {shorten(last, 500)}" if last else "")
    return fault("exit", message, where=where, path=path)


def _answer(says: ToolManifest, path: str, out: IO[bytes], most: int) -> Any:
    size = out.seek(0, os.SEEK_END)
    if size > most:
        raise Failed(fault("limit", f"it printed or returned more than {most} bytes", path=path))
    out.seek(0)
    try:
        value = json.loads(out.read().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise Failed(fault("output", f"what it printed is not one JSON value: {error}", path=path)) from None
    _must_fit(says.output_schema, value, "output", path)
    return value


def _must_fit(schema: dict[str, Any], value: Any, type: str, path: str) -> None:
    from jsonschema import Draft202012Validator, ValidationError
    from referencing.exceptions import Unresolvable

    # A reference that leads nowhere, to itself, or to what is no schema; and numbers that cannot be reckoned with.
    unusable = (Unresolvable, RecursionError, ArithmeticError, AttributeError, TypeError, ValueError)
    if not schema:
        return
    try:
        Draft202012Validator(schema).validate(value)
    except ValidationError as error:
        place = ".".join(map(str, error.absolute_path))
        what = "the arguments do not fit" if type == "input" else "the output does not fit"
        message = f"{what}: {place + ': ' if place else ''}{shorten(error.message, 500)}"
        raise Failed(fault(type, message, path=path)) from None
    except unusable as error:
        raise _bad(path, f"its {type} schema cannot be used: {error}") from None


def _check_schema(schema: dict[str, Any], path: str) -> None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise _bad(path, f"a schema of it is no JSON schema: {shorten(error.message, 300)}") from None


def _show(*streams: IO[bytes]) -> None:
    """What the program printed, on our own streams: the result of the call keeps their heads and tails."""
    for stream, text in zip((sys.stdout, sys.stderr)[-len(streams) :], map(_shown, streams), strict=True):
        stream.write(text)
        stream.flush()


def _shown(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= _SHOWN:
        return file.read().decode("utf-8", "replace")
    head = file.read(_SHOWN // 2).decode("utf-8", "replace")
    file.seek(-_SHOWN // 2, os.SEEK_END)
    return f"{head}\n[… {size - _SHOWN} bytes left out …]\n{file.read().decode('utf-8', 'replace')}"


def _unfit(why: str, path: str) -> Failed:
    return Failed(fault("input", f"the arguments do not fit: {why}", path=path))


def _bad(path: str, message: str) -> Failed:
    return Failed(fault("load", f"{path}: {message}", path=path))
