"""The one-file tool contract: find it, read what it declares, load it, call it.

A tool is a Python file with a module docstring, a literal ``TOOL``, pydantic models ``Input`` and
``Output``, and ``run(input: Input) -> Output``, which may be ``async``. docs/use/writing-tools-and-skills.md is the author's view.
"""

from __future__ import annotations

import ast
import difflib
import importlib.metadata
import json
import os
import re
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentos import checks
from agentos.messages import WHEELS, ToolCard
from agentos.programs import is_manifest, script_of
from agentos.worker.faults import Failed, NotPlain, encode, fault
from agentos.worker.tools import entered
from agentos.worker.tools.bundle_importer import BundleFiles

EFFECTS = ("pure", "read", "write", "external")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


class ToolDeclaration(BaseModel):
    """What ``TOOL`` says."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(pattern="^[a-z][a-z0-9_]*$", max_length=64)
    description: str = Field(min_length=1, max_length=1024)
    effects: list[str] = Field(min_length=1)
    dependencies: list[str] = []
    secrets: list[str] = []  # that the kernel may put into its requests
    idempotent: bool = False  # making the same call twice is as good as making it once


@dataclass(frozen=True, slots=True)
class Tool:
    """A loaded tool file."""

    path: str
    Input: type[BaseModel]
    Output: type[BaseModel]
    run: Callable[[Any], Any]


def is_tool(path: str) -> bool:
    """Whether the registry path is a tool's place (a leading ``_`` marks a helper module)."""
    parts = path.split("/")
    if is_manifest(path):
        return True
    if parts[0] == "tool":
        return len(parts) == 3 and parts[2] == "tool.py"
    return (
        len(parts) == 4
        and (parts[0], parts[2]) == ("skill", "tools")
        and parts[3].endswith(".py")
        and not parts[3].startswith("_")
    )


def name_of(path: str) -> str:
    """The name that the tool at this path must bear."""
    pure = PurePosixPath(path)
    if pure.parts[0] == "tool":
        return pure.parts[1].replace("-", "_")
    return pure.parent.name if is_manifest(path) else pure.stem


def find(ref: str, paths: Iterable[str]) -> str:
    """The path of the tool that ``name`` or ``skill/tool`` means; raises Failed(unknown_tool).

    ``skill/scripts/x.py`` means that script. A plain name means ``tool/name`` before any skill's tool of that name.
    """
    if script := script_of(ref, paths := [*paths]):
        return script
    skill, _, name = ref.rpartition("/")
    tools = [path for path in paths if is_tool(path)]
    found = [path for path in tools if name_of(path) == name.replace("-", "_")]
    if skill:
        found = [path for path in found if path.startswith(f"skill/{skill}/")]
    else:
        found = [path for path in found if path.startswith("tool/")] or found
    if len(found) == 1:
        return found[0]
    if found:
        asked = " or ".join(sorted(_full_name(path) for path in found))
        raise Failed(fault("unknown_tool", f"'{ref}' is a tool of several skills: ask for {asked}"))
    near = difflib.get_close_matches(ref, sorted({*map(name_of, tools), *map(_full_name, tools)}), 1)
    hint = f": did you mean '{near[0]}'?" if near else ""
    raise Failed(fault("unknown_tool", f"there is no tool '{ref}'{hint}"))


def _full_name(path: str) -> str:
    return name_of(path) if path.startswith("tool/") else f"{path.split('/')[1]}/{name_of(path)}"


def declared(source: str | bytes, path: str) -> ToolDeclaration:
    """Read ``TOOL`` without running anything; raises Failed(load)."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise _bad(path, f"it is not Python: line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise _bad(path, f"it is not Python: {error}") from None
    if not ast.get_docstring(tree):
        raise _bad(path, "it has no docstring that says what the tool is for")
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "TOOL"
        ):
            return _declaration(node.value, path)
    raise _bad(path, 'it does not define TOOL = {"name": …, "description": …, "effects": […]}')


def _declaration(node: ast.expr, path: str) -> ToolDeclaration:
    try:
        says = ToolDeclaration.model_validate(ast.literal_eval(node))
    except ValidationError as error:
        raise _bad(path, "TOOL: " + "; ".join(checks.plain_sentences(error))) from None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise _bad(path, "TOOL must be a literal dictionary") from None
    if says.name != name_of(path):
        raise _bad(path, f"TOOL's name is '{says.name}', its file asks for '{name_of(path)}'")
    if unknown := [effect for effect in says.effects if effect not in EFFECTS]:
        raise _bad(path, f"effect '{unknown[0]}' is unknown: use some of {', '.join(EFFECTS)}")
    return says


def load(source: str, path: str, root: Path, held: BundleFiles | None = None) -> Tool:
    """Compile, with its functions marked, and ``execute``; what that enters is not counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a doubtful escape is the author's business
        code = entered.compiled(source, str(root / path), path)
    with entered.loading():
        return execute(partial(exec, code), path, root, held)


def compiled(source: str, path: str, root: Path) -> types.CodeType:
    """The file's code; raises what ``compile`` raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a doubtful escape is the author's business
        return compile(source, str(root / path), "exec", dont_inherit=True)


def execute(
    run: Callable[[dict[str, Any]], None], path: str, root: Path, held: BundleFiles | None = None
) -> Tool:
    """Have the file executed by ``run``, in the namespace of a fresh module. What it raises is its own; a broken contract is Failed.

    Helper modules beside it can be imported by name, from ``held`` where the caller has it, else from
    the directory. They come last: a tool called ``calendar.py`` must not hide the library that others
    import.
    """
    folder = path.rpartition("/")[0]
    if held is None:
        provide(root, path)
        if str(root / folder) not in sys.path:
            sys.path.append(str(root / folder))
    else:
        kind, name, _ = path.split("/", 2)
        if held.any_below(f"{kind}/{name}/{WHEELS}/"):  # and not: one that a tool has planted
            provide(root, path)
        held.offer(folder)
    name = f"agentos_tool_{PurePosixPath(path).stem}"
    module = types.ModuleType(name)
    module.__file__ = str(root / path)
    sys.modules[name] = module  # pydantic looks up annotations there
    run(module.__dict__)
    return Tool(path, _model(module, "Input", path), _model(module, "Output", path), _function(module, path))


def _model(module: types.ModuleType, name: str, path: str) -> type[BaseModel]:
    model = getattr(module, name, None)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise _bad(path, f"it does not define 'class {name}(BaseModel)'")
    return model


def _function(module: types.ModuleType, path: str) -> Callable[[Any], Any]:
    function = getattr(module, "run", None)
    if not isinstance(function, types.FunctionType):
        raise _bad(path, "it does not define 'def run(input: Input) -> Output'")
    return function


def card(tool: Tool, says: ToolDeclaration) -> ToolCard:
    """What the tool says of itself, its schemas generated; raises Failed(load)."""
    for requirement in says.dependencies:
        distribution = _NAME.match(requirement)
        try:
            importlib.metadata.version(distribution[0] if distribution else requirement)
        except importlib.metadata.PackageNotFoundError:
            raise _bad(tool.path, f"it needs '{requirement}', which is not installed") from None
    if tool.run.__code__.co_argcount != 1:
        raise _bad(tool.path, "run must take one argument, the input")
    return ToolCard(
        path=tool.path,
        name=says.name,
        description=says.description,
        effects=says.effects,
        dependencies=says.dependencies,
        input_schema=tool.Input.model_json_schema(),
        output_schema=tool.Output.model_json_schema(mode="serialization"),
    )


def call(tool: Tool, args: Any, most: int, around: Callable[[], Any] = lambda: None) -> bytes:
    """Validate the arguments, run, validate the output: its JSON, at most ``most`` bytes.

    ``around`` is called right before the run (tracing starts there). Raises Failed (``input``,
    ``output``, ``limit``) and whatever the tool raises.
    """
    try:
        given = tool.Input.model_validate(args)
    except ValidationError as error:
        message = "the arguments do not fit: " + "; ".join(checks.sentences(error))
        raise Failed(fault("input", message, path=tool.path)) from None
    around()
    try:
        result = tool.run(given)
        if isinstance(result, types.CoroutineType):
            result = _awaited(result)
    except ValidationError as error:
        if error.title != tool.Output.__name__:
            raise
        message = "the output does not fit: " + "; ".join(checks.sentences(error))
        where = f"{tool.path}:{tool.run.__name__}"
        raise Failed(fault("output", message, where=where, path=tool.path)) from None
    return _plain_output(tool, result, most)


def _awaited(running: types.CoroutineType[Any, Any, Any]) -> Any:
    import asyncio  # most tools need none

    return asyncio.run(running)


def _plain_output(tool: Tool, result: Any, most: int) -> bytes:
    where = f"{tool.path}:{tool.run.__name__}"
    if not isinstance(result, tool.Output):
        message = f"run returned {type(result).__name__}, not its Output"
        raise Failed(fault("output", message, where=where, path=tool.path))
    try:
        # Through JSON and back: an instance can be changed after its making.
        value = result.model_dump(mode="json", by_alias=False, warnings=False)
        tool.Output.model_validate(value, by_alias=False, by_name=True)
        # told by the names that its schema has
        told = encode(result.model_dump(mode="json", by_alias=True, warnings=False), most)
        if b"null" in told:  # pydantic makes that of a NaN in a field of no type: no number is no absence
            json.dumps(result.model_dump(warnings=False), allow_nan=False, skipkeys=True, default=str)
        return told
    except NotPlain as error:
        raise Failed(fault(error.type, f"the output: {error}", where=where, path=tool.path)) from None
    except ValidationError as error:
        message = "the output does not fit: " + "; ".join(checks.sentences(error))
        raise Failed(fault("output", message, where=where, path=tool.path)) from None
    except (ValueError, TypeError, RecursionError) as error:
        raise Failed(
            fault("output", f"the output is not JSON: {error}", where=where, path=tool.path)
        ) from None


def _bad(path: str, message: str) -> Failed:
    return Failed(fault("load", f"{path}: {message}", path=path))


# --- The modules that a resource brings (its wheels, unpacked by the kernel): for its tools alone
# They come with the bundle. No installer is run and no ``.pth`` file obeyed.


# The worker's own libraries, in use already: a second copy beside the first would not fit together.
_STAYS = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}


def provide(root: Path, path: str) -> None:
    """In a process of this tool's own: let its imports find what its resource brings first.

    Costs one look where that is nothing.
    """
    kind, name, _ = path.split("/", 2)
    place = f"{root}/{kind}/{name}/{WHEELS}"
    if place in sys.path or not os.path.isdir(place):
        return
    # What this process was forked with came from elsewhere, and may be another version.
    brought = {entry.partition(".")[0] for entry in os.listdir(place)} - _STAYS
    for module in [module for module in sys.modules if module.partition(".")[0] in brought]:
        del sys.modules[module]
    sys.path.insert(0, place)
    sys.dont_write_bytecode = False  # the next call in this box need not compile them again
