"""What a resource of each kind must look like, and which registry path belongs to which resource.

Knows the documents (``resource.toml``, the front matter of ``SKILL.md`` per agentskills.io, the
one-file contract of tools) and the paths that may stand in the registry. Static only: no code of a
resource is ever imported here; loading tools happens in a sandbox.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from codecs import BOM_UTF8
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from agentos.domain import KINDS, RESOURCE_NAME, Effect, Json, Kind, ResourceId, dataclass, is_rule_file
from agentos.errors import (
    ErrorKind,
    Invalid,
    NotFound,
    Sentence,
    Unavailable,
    UserError,
    meant,
    near_names,
    to_type,
)
from agentos.programs import MANIFEST, is_manifest, is_script, script_of
from agentos.resources.declarations import server_faults
from agentos.resources.documents import (
    DEPTH_MAX,
    DESCRIPTION_MAX,
    DOCUMENT,
    FILE_MAX,
    FILES_MAX,
    MAIN_FILE,
    NAME_MAX,
    RESOURCE_MAX,
    ReadingNotes,
    examine_skill,
    settings_of,
    table_of,
)
from agentos.rules.document import read_rule
from agentos.syntax import parse

# Plain ASCII that every file system, shell and git agree on; no leading dot or dash.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,+=@() -]{0,99}")
_SMALL = 65_536  # bytes of a resource that is remembered
_TOOL_STEM = re.compile(r"[a-z][a-z0-9_]*")
_TOOL_KEYS = ("name", "description", "effects", "dependencies", "idempotent", "secrets")


@dataclass(frozen=True, slots=True)
class Resource:
    """What a resource says of itself. ``settings`` are the kind's own keys with defaults filled in."""

    id: ResourceId
    description: str
    evolvable: bool
    settings: Mapping[str, Json]
    tools: tuple[str, ...]  # registry paths of its tool files, sorted


@dataclass(frozen=True, slots=True)
class Examination:
    """What examining found: ``resource`` is None exactly when there are faults."""

    resource: Resource | None
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


# --- names and paths --------------------------------------------------------------------------


def parse_id(text: str) -> ResourceId:
    """``kind/name`` as typed by a person; raises UserError with what was expected."""
    kind, _, name = text.strip().strip("/").partition("/")
    kinds = ", ".join(Kind)
    if kind not in KINDS:
        hint = meant(kind, Kind, "Try: ", to_type("agentos registry list"))
        raise UserError(f"Expected KIND/NAME with a kind of {kinds}; found '{text}'. ", hint)
    if not name:
        raise UserError(
            f"Expected KIND/NAME; found '{text}'. Try: ", to_type(f"agentos registry list --kind {kind}")
        )
    if fault := name_fault(name):
        raise UserError(f"Expected KIND/NAME; in '{text}' {fault}.")
    return ResourceId(Kind(kind), name)


def unknown(resource: ResourceId, known: Iterable[ResourceId]) -> NotFound:
    """What to raise where there is no such resource; it names those that are called nearly so, its own kind first."""
    others = sorted(known, key=lambda found: (found.kind is not resource.kind, found))
    near = set(near_names(resource.name, [found.name for found in others]))
    said = " or ".join([str(found) for found in others if found.name in near][:3])
    hint = f"Did you mean {said}?" if said else Sentence("Try: ", to_type("agentos registry list"))
    return NotFound(f"There is no resource {resource}. ", hint)


def no_agent(name: str, known: Iterable[ResourceId]) -> NotFound:
    """The same, of an agent that was named without its kind."""
    agents = [found.name for found in known if found.kind is Kind.AGENT]
    hint = meant(name, agents, f"There are: {', '.join(agents)}.")
    return NotFound(f"There is no agent '{name}'. {hint}")


def name_fault(name: str) -> str:
    """ "" when ``name`` may name a resource, else what is wrong with it."""
    if len(name) > NAME_MAX:
        return f"the name has {len(name)} characters, at most {NAME_MAX} are allowed"
    if not RESOURCE_NAME.fullmatch(name):
        return f"the name {name!r} is not made of lower-case letters and digits joined by single hyphens"
    return ""


def plain_name(name: str) -> bool:
    """Whether a file of the registry may be called so."""
    return _PART.fullmatch(name) is not None and not name.endswith((".", " "))


def path_fault(path: str) -> str:
    """ "" when the registry may hold a file of this path, else what is wrong with it.

    Absolute paths, ``..``, ``.git`` and other dot names, control characters and everything
    outside ``kind/name/`` are refused.
    """
    parts = path.split("/")
    for part in parts:
        if not plain_name(part):
            return f"{path!r}: {part!r} is not a plain file name (ASCII, no leading dot)"
    if len(parts) < 3 or parts[0] not in KINDS or name_fault(parts[1]):
        return f"{path!r} lies outside a resource directory (kind/name/…)"
    if len(parts) > DEPTH_MAX:
        return f"{path!r} is more than {DEPTH_MAX} levels deep"
    return ""


def resource_of(path: str) -> ResourceId | None:
    """The resource that a registry path belongs to, None when it belongs to none."""
    if path_fault(path):
        return None
    kind, name, _ = path.split("/", 2)
    return ResourceId(Kind(kind), name)


def resources_of(paths: Iterable[str]) -> set[ResourceId]:
    """The resources that registry paths belong to."""
    return {found for path in paths if (found := resource_of(path)) is not None}


def is_tool_file(path: str) -> bool:
    """Whether the registry path is a tool's place (a leading ``_`` marks a helper module)."""
    match path.split("/"):
        case ["tool", _, "tool.py"]:
            return True
        case ["skill", _, "tools", _, _]:
            return is_manifest(path)
        case ["skill", _, "tools", file]:
            return file.endswith(".py") and not file.startswith("_")
    return is_manifest(path)


def tool_name(path: str) -> str:
    """The name that the tool at a registry path must bear."""
    parts = path.split("/")
    if parts[0] == Kind.TOOL:
        return parts[1].replace("-", "_")
    return parts[3] if is_manifest(path) else PurePosixPath(path).stem


def tool_path(reference: str, paths: Iterable[str]) -> str:
    """The registry path that a task's tool reference means, among ``paths``.

    ``name`` means ``tool/name``, or the tool of that name if exactly one skill has it;
    ``skill/tool`` means that skill's, ``skill/scripts/x.py`` that script. Raises NotFound (with near names) or UserError (ambiguous).
    """
    if script := script_of(reference, paths := [*paths]):
        return script
    owner, _, name = reference.rpartition("/")
    wanted = name.replace("-", "_")
    tools = [path for path in paths if is_tool_file(path)]
    found = [path for path in tools if tool_name(path) == wanted]
    if owner:
        found = [path for path in found if path.startswith(f"skill/{owner}/")]
    else:
        found = [path for path in found if path.startswith("tool/")] or found
    if len(found) == 1:
        return found[0]
    if found:
        choices = ", ".join(sorted(f"{path.split('/')[1]}/{wanted}" for path in found))
        raise UserError(
            f"'{reference}' names a tool of several skills; say which: {choices}.", kind=ErrorKind.AMBIGUOUS
        )
    known = {tool_reference(path) for path in tools}
    its = " or ".join(sorted(tool for tool in known if owner and tool.startswith(f"{owner}/"))[:5])
    otherwise = f"Did you mean {its}?" if its else Sentence("Try: ", to_type("agentos registry list"))
    hint = meant(reference, known | {tool_name(path) for path in tools}, otherwise)
    raise NotFound(f"No tool '{reference}' is in the registry. ", hint)


def tool_reference(path: str) -> str:
    """The unambiguous way to name the tool at a registry path in a task."""
    parts = path.split("/")
    if is_script(path):
        return path.removeprefix("skill/")
    return tool_name(path) if parts[0] == Kind.TOOL else f"{parts[1]}/{tool_name(path)}"


# --- reading a resource -----------------------------------------------------------------------


def read(id: ResourceId, files: Mapping[str, bytes]) -> Resource:
    """The resource made of ``files`` (registry path -> content); raises Invalid with every fault."""
    reading = examine(id, files)
    if reading.resource is None:
        raise Invalid(str(id), list(reading.faults))
    return reading.resource


def examine(id: ResourceId, files: Mapping[str, bytes]) -> Examination:
    """Everything that can be said of the resource without running it."""
    size = sum(map(len, files.values()))
    if size > _SMALL or any(map(is_rule_file, files)):  # of rules, as long as the library is there
        return _examined(id, files)
    return _examined_again(id, tuple(files.items()))


@lru_cache(
    maxsize=16
)  # one edit is looked at when it is committed aside, for each of its gates, and at promotion
def _examined_again(id: ResourceId, files: tuple[tuple[str, bytes], ...]) -> Examination:
    return _examined(id, dict(files))


def _examined(id: ResourceId, files: Mapping[str, bytes]) -> Examination:
    notes = ReadingNotes()
    root = f"{id}/"
    if fault := name_fault(id.name):
        notes.faults.append(fault)
    _examine_files(root, files, notes)
    main = MAIN_FILE[id.kind]
    skill = id.kind is Kind.SKILL
    if root + main not in files and not _is_black_box(id, files) and not _is_program(id, files):
        notes.faults.append(f"{main} is missing")
    description, settings = "", dict[str, Json]()
    if not skill:
        document = _document(root, files, notes if id.kind is not Kind.RULE else ReadingNotes())
        # what cannot be read says nothing of its keys; a rule's own reader tells all of one
        settings = settings_of(id.kind, document or {}, notes if document is not None else ReadingNotes())
        if document is not None and id.kind is Kind.RULE:
            description = str(document.get("description", ""))
        elif document is not None:
            description = notes.text(DOCUMENT, "description", document.get("description"), DESCRIPTION_MAX)
    elif root + main in files:
        description, settings = examine_skill(id.name, files[root + main], notes)
    tools = tuple(sorted(path for path in files if _defines_tool(path, files[path])))
    for path in tools:
        notes.faults += tool_faults(path, files[path])
    notes.warnings += _helper_faults(root, files, tools)
    notes.faults += _rule_faults(root, files)
    if id.kind is Kind.HARNESS and root + main in files:
        notes.faults += _harness_faults(main, files[root + main])
    if notes.faults:
        return Examination(None, tuple(notes.faults), tuple(notes.warnings))
    evolvable = settings.pop("evolvable")
    return Examination(Resource(id, description, evolvable, settings, tools), (), tuple(notes.warnings))


def _helper_faults(root: str, files: Mapping[str, bytes], tools: Sequence[str]) -> list[str]:
    """Modules that tools import and that are not Python: no run gets further than the import."""
    folders = {str(PurePosixPath(path).parent) for path in tools}
    helpers = [
        path for path in sorted(files) if path.endswith(".py") and str(PurePosixPath(path).parent) in folders
    ]
    parsed = (_parse(path.removeprefix(root), files[path]) for path in helpers if path not in tools)
    return [fault for _, fault in parsed if fault]


def _rule_faults(root: str, files: Mapping[str, bytes]) -> list[str]:
    """What is wrong with the rules among the files; without the library nobody can tell, so nothing is let in."""
    faults: list[str] = []
    for path in sorted(filter(is_rule_file, files)):
        try:
            read_rule(path, files[path])
        except Invalid as error:
            faults += [f"{path.removeprefix(root)}: {fault}" for fault in error.faults]
        except Unavailable as error:
            faults.append(str(error))
    return faults


def _is_black_box(id: ResourceId, files: Mapping[str, bytes]) -> bool:
    """A harness that is any program: its document names the command, and there is no harness.py."""
    document = files.get(f"{id}/{DOCUMENT}", b"")
    table = table_of(document)  # of one that cannot be read, that alone is told
    return id.kind is Kind.HARNESS and ("command" in table if table else b"command" in document)


def _is_program(id: ResourceId, files: Mapping[str, bytes]) -> bool:
    """A tool in any language: a manifest stands for tool.py."""
    return id.kind is Kind.TOOL and f"{id}/{MANIFEST}" in files


def missing_references(agent: Resource, known: Iterable[ResourceId]) -> list[str]:
    """One sentence for each harness, prompt or environment that the agent names and nobody has."""
    names = set(known)
    return [
        f"{agent.id}: {kind} '{wanted}' does not exist{_or(wanted, [name.name for name in names if name.kind is kind])}"
        for kind in (Kind.HARNESS, Kind.PROMPT, Kind.ENVIRONMENT)
        if ResourceId(kind, wanted := agent.settings[kind]) not in names
    ]


def _or(name: str, known: Iterable[str]) -> str:
    near = near_names(name, known)
    return f" (did you mean {' or '.join(near)}?)" if near else ""


def _examine_files(root: str, files: Mapping[str, bytes], notes: ReadingNotes) -> None:
    if len(files) > FILES_MAX:
        notes.faults.append(f"it has {len(files)} files, at most {FILES_MAX} are allowed")
    total = sum(map(len, files.values()))
    if total > RESOURCE_MAX:
        notes.faults.append(f"it has {total} bytes, at most {RESOURCE_MAX} are allowed")
    for path, content in files.items():
        if fault := path_fault(path) or ("" if path.startswith(root) else f"{path!r} lies outside {root}"):
            notes.faults.append(fault)
        elif len(content) > FILE_MAX:
            notes.faults.append(
                f"{path.removeprefix(root)} has {len(content)} bytes, at most {FILE_MAX} are allowed"
            )


def _text(name: str, content: bytes, notes: ReadingNotes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        notes.faults.append(f"{name} is not UTF-8 text (byte {error.start})")
        return None


def _document(root: str, files: Mapping[str, bytes], notes: ReadingNotes) -> dict[str, Json] | None:
    """What it says; None where it says nothing that can be read."""
    if root + DOCUMENT not in files:
        if not any(fault == f"{DOCUMENT} is missing" for fault in notes.faults):
            notes.faults.append(f"{DOCUMENT} is missing")
        return {}
    text = _text(DOCUMENT, files[root + DOCUMENT].removeprefix(BOM_UTF8), notes)
    if text is None:
        return None
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        notes.faults.append(f"{DOCUMENT} is not TOML: {error}")
        return None


# --- source files -----------------------------------------------------------------------------


def tool_faults(path: str, content: bytes) -> list[str]:
    """How the file breaks the one-file contract of tools, one sentence each."""
    return [*_tool_faults(path, content)]


@lru_cache(maxsize=64)  # each gate on the way to a promotion asks again
def _tool_faults(path: str, content: bytes) -> Sequence[str]:
    name = path.split("/", 2)[2]
    if is_manifest(path):
        return _manifest_faults(name, tool_name(path), content)
    tree, fault = _parse(name, content)
    if tree is None:
        return [fault]
    notes = ReadingNotes()
    defined = _definitions(tree)
    notes.faults += [
        f"{name}: '{item}' is missing" for item in ("TOOL", "Input", "Output", "run") if item not in defined
    ]
    if "TOOL" in defined:
        _examine_card(name, tool_name(path), defined["TOOL"], notes)
    run = defined.get("run")
    if run is not None and not (
        isinstance(run, ast.FunctionDef | ast.AsyncFunctionDef)
        and len(run.args.posonlyargs + run.args.args) == 1
    ):
        notes.faults.append(
            f"{name}: 'run' must be a function of one argument: def run(input: Input) -> Output"
        )
    if not _TOOL_STEM.fullmatch(tool_name(path)):
        notes.faults.append(f"{name}: a tool's file name is made of lower-case letters, digits and '_'")
    return notes.faults


def _examine_card(name: str, expected: str, node: ast.AST, notes: ReadingNotes) -> None:
    try:
        card = ast.literal_eval(node) if isinstance(node, ast.expr) else None
    except (ValueError, TypeError, RecursionError):
        card = None
    if not isinstance(card, dict):
        notes.faults.append(f"{name}: 'TOOL' must be a literal dictionary with {', '.join(_TOOL_KEYS)}")
        return
    _examine_declared(f"{name}: TOOL", expected, card, notes)
    notes.faults += [f"{name}: TOOL: unknown key {key!r}" for key in card if key not in _TOOL_KEYS]


def _manifest_faults(name: str, expected: str, content: bytes) -> list[str]:
    """Of a ``tool.json``; its schemas are looked at where it is loaded."""
    notes = ReadingNotes()
    try:
        says = json.loads(content)
    except (ValueError, RecursionError) as error:
        return [f"{name} is not JSON: {error}"]
    if not isinstance(says, dict):
        return [f"{name} must be one JSON object"]
    notes.faults += [f"{name}: {fault}" for fault in server_faults(content)]
    _examine_declared(name, expected, says, notes)
    if not notes.texts(name, "command", says.get("command")):
        notes.faults.append(f'{name}: \'command\' is missing: what starts it, as ["bash", "run.sh"]')
    if not _TOOL_STEM.fullmatch(expected):
        notes.faults.append(f"{name}: a tool's folder is named in lower-case letters, digits and '_'")
    return notes.faults


def _examine_declared(where: str, expected: str, card: Mapping[str, Json], notes: ReadingNotes) -> None:
    if notes.text(where, "name", card.get("name"), NAME_MAX) not in ("", expected):
        notes.faults.append(f"{where}: 'name' is '{card['name']}', but the file makes it '{expected}'")
    notes.text(where, "description", card.get("description"), DESCRIPTION_MAX)
    effects = notes.texts(where, "effects", card.get("effects"))
    if unknown := [effect for effect in effects if effect not in set(Effect)]:
        notes.faults.append(f"{where}: effect '{unknown[0]}' is not one of {', '.join(Effect)}")
    notes.texts(where, "dependencies", card.get("dependencies", []))
    notes.texts(where, "secrets", card.get("secrets", []))
    if not isinstance(card.get("idempotent", False), bool):
        notes.faults.append(f"{where}: 'idempotent' must be True or False")


def _harness_faults(name: str, content: bytes) -> list[str]:
    tree, fault = _parse(name, content)
    if tree is None:
        return [fault]
    if not isinstance(_definitions(tree).get("run"), ast.FunctionDef):
        return [f"{name}: a function 'run(sdk)' is missing"]
    return []


def _parse(name: str, content: bytes) -> tuple[ast.Module | None, str]:
    try:
        text = content.decode("utf-8")
        return parse(text), ""
    except SyntaxError as error:
        return None, f"{name} is not Python: line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return None, f"{name} is not Python source in UTF-8: {error}"


def _definitions(tree: ast.Module) -> dict[str, ast.AST]:
    """Top-level names: functions and classes as their node, assignments as the value's node."""
    found: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign):
            found.update({target.id: node.value for target in node.targets if isinstance(target, ast.Name)})
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found[node.target.id] = node.value
    return found


@lru_cache(maxsize=64)  # likewise
def _defines_tool(path: str, content: bytes) -> bool:
    """A file in a tool's place is a tool unless it defines nothing of the contract (a helper)."""
    if not is_tool_file(path):
        return False
    if path.startswith("tool/") or is_manifest(path):
        return True
    tree, _ = _parse(path, content)
    return tree is None or bool({"TOOL", "Input", "Output", "run"} & set(_definitions(tree)))
