"""What a resource of each kind must look like, and which registry path belongs to which resource.

Knows the documents (``resource.toml``, the front matter of ``SKILL.md`` per agentskills.io, the
one-file contract of tools) and the paths that may stand in the registry. Static only: no code of a
resource is ever imported here; loading tools happens in a sandbox.
"""

from __future__ import annotations

import ast
import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from agentos.domain import RESOURCE_NAME, Effect, Json, Kind, ResourceId
from agentos.errors import Invalid, NotFound, UserError
from agentos.resources.documents import DOCUMENT, NAME_MAX, Notes, settings_of
from agentos.syntax import parse

PINS_FILE = "registry.toml"

# The file that a resource of the kind cannot do without; also what ``edit`` opens.
MAIN_FILE: Mapping[Kind, str] = {
    Kind.PROMPT: "prompt.md",
    Kind.AGENT: DOCUMENT,
    Kind.TOOL: "tool.py",
    Kind.SKILL: "SKILL.md",
    Kind.MEMORY: "memory.md",
    Kind.ENVIRONMENT: DOCUMENT,
    Kind.HARNESS: "harness.py",  # unless its document names a command
    Kind.MODEL: DOCUMENT,
}

DESCRIPTION_MAX = 1_024
COMPATIBILITY_MAX = 500
FRONT_MATTER_MAX = 16 << 10
FILE_MAX = 1 << 20
RESOURCE_MAX = 8 << 20
FILES_MAX = 500
DEPTH_MAX = 8

# Plain ASCII that every file system, shell and git agree on; no leading dot or dash.
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,+=@() -]{0,99}")
_TOOL_STEM = re.compile(r"[a-z][a-z0-9_]*")
_SKILL_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_TOOL_KEYS = ("name", "description", "effects", "dependencies", "idempotent")
_EVOLVABLE_KEY = "agentos-evolvable"


@dataclass(frozen=True, slots=True)
class Resource:
    """What a resource says of itself. ``settings`` are the kind's own keys with defaults filled in."""

    id: ResourceId
    description: str
    evolvable: bool
    settings: Mapping[str, Json]
    tools: tuple[str, ...]  # registry paths of its tool files, sorted


@dataclass(frozen=True, slots=True)
class Reading:
    """What examining found: ``resource`` is None exactly when there are faults."""

    resource: Resource | None
    faults: tuple[str, ...]
    warnings: tuple[str, ...]


# --- names and paths --------------------------------------------------------------------------


def parse_id(text: str) -> ResourceId:
    """``kind/name`` as typed by a person; raises UserError with what was expected."""
    kind, _, name = text.strip().strip("/").partition("/")
    kinds = ", ".join(Kind)
    if kind not in set(Kind):
        raise UserError(
            f"Expected KIND/NAME with a kind of {kinds}; found '{text}'. Try: agentos registry list"
        )
    if fault := name_fault(name):
        raise UserError(f"Expected KIND/NAME; in '{text}' {fault}.")
    return ResourceId(Kind(kind), name)


def name_fault(name: str) -> str:
    """ "" when ``name`` may name a resource, else what is wrong with it."""
    if len(name) > NAME_MAX:
        return f"the name has {len(name)} characters, at most {NAME_MAX} are allowed"
    if not RESOURCE_NAME.fullmatch(name):
        return f"the name {name!r} is not made of lower-case letters and digits joined by single hyphens"
    return ""


def path_fault(path: str) -> str:
    """ "" when the registry may hold a file of this path, else what is wrong with it.

    Absolute paths, ``..``, ``.git`` and other dot names, control characters and everything
    outside ``kind/name/`` are refused.
    """
    parts = path.split("/")
    for part in parts:
        if not _PART.fullmatch(part) or part.endswith((".", " ")):
            return f"{path!r}: {part!r} is not a plain file name (ASCII, no leading dot)"
    if len(parts) < 3 or parts[0] not in set(Kind) or name_fault(parts[1]):
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


def is_tool_file(path: str) -> bool:
    """Whether the registry path is a tool's place (a leading ``_`` marks a helper module)."""
    match path.split("/"):
        case ["tool", _, "tool.py"]:
            return True
        case ["skill", _, "tools", file]:
            return file.endswith(".py") and not file.startswith("_")
    return False


def tool_name(path: str) -> str:
    """The name that the tool at a registry path must bear."""
    parts = path.split("/")
    return parts[1].replace("-", "_") if parts[0] == Kind.TOOL else PurePosixPath(path).stem


def tool_path(reference: str, paths: Iterable[str]) -> str:
    """The registry path that a task's tool reference means, among ``paths``.

    ``name`` means ``tool/name``, or the tool of that name if exactly one skill has it;
    ``skill/tool`` means that skill's. Raises NotFound (with near names) or UserError (ambiguous).
    """
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
        raise UserError(f"'{reference}' names a tool of several skills; say which: {choices}.")
    known = {tool_reference(path) for path in tools}
    near = difflib.get_close_matches(reference, sorted(known | {tool_name(path) for path in tools}), n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else "Try: agentos registry list"
    raise NotFound(f"No tool '{reference}' is in the registry. {hint}")


def tool_reference(path: str) -> str:
    """The unambiguous way to name the tool at a registry path in a task."""
    parts = path.split("/")
    return tool_name(path) if parts[0] == Kind.TOOL else f"{parts[1]}/{tool_name(path)}"


# --- reading a resource -----------------------------------------------------------------------


def read(id: ResourceId, files: Mapping[str, bytes]) -> Resource:
    """The resource made of ``files`` (registry path -> content); raises Invalid with every fault."""
    reading = examine(id, files)
    if reading.resource is None:
        raise Invalid(str(id), list(reading.faults))
    return reading.resource


def examine(id: ResourceId, files: Mapping[str, bytes]) -> Reading:
    """Everything that can be said of the resource without running it."""
    notes = Notes()
    root = f"{id}/"
    if fault := name_fault(id.name):
        notes.faults.append(fault)
    _examine_files(root, files, notes)
    main = MAIN_FILE[id.kind]
    skill = id.kind is Kind.SKILL
    if root + main not in files and not _is_black_box(id, files):
        notes.faults.append(f"{main} is missing")
    document = (_front_matter if skill else _document)(root, files, notes)
    settings: dict[str, Json] = {}
    description = ""
    if (
        document or not skill or not notes.faults
    ):  # of a skill whose file cannot be read, that is all there is to say
        settings = _skill_settings(id, document, notes) if skill else settings_of(id.kind, document, notes)
        description = notes.text(
            main if skill else DOCUMENT, "description", document.get("description"), DESCRIPTION_MAX
        )
    tools = tuple(sorted(path for path in files if _defines_tool(path, files[path])))
    for path in tools:
        notes.faults += tool_faults(path, files[path])
    if id.kind is Kind.HARNESS and root + main in files:
        notes.faults += _harness_faults(main, files[root + main])
    if notes.faults:
        return Reading(None, tuple(notes.faults), tuple(notes.warnings))
    evolvable = settings.pop("evolvable")
    return Reading(Resource(id, description, evolvable, settings, tools), (), tuple(notes.warnings))


def _is_black_box(id: ResourceId, files: Mapping[str, bytes]) -> bool:
    """A harness that is any program: its document names the command, and there is no harness.py."""
    return id.kind is Kind.HARNESS and b"command" in files.get(f"{id}/{DOCUMENT}", b"")


def missing_references(agent: Resource, known: Iterable[ResourceId]) -> list[str]:
    """One sentence for each harness, prompt or environment that the agent names and nobody has."""
    names = set(known)
    return [
        f"{agent.id}: {kind} '{agent.settings[kind]}' does not exist"
        for kind in (Kind.HARNESS, Kind.PROMPT, Kind.ENVIRONMENT)
        if ResourceId(kind, agent.settings[kind]) not in names
    ]


def _examine_files(root: str, files: Mapping[str, bytes], notes: Notes) -> None:
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


def _text(name: str, content: bytes, notes: Notes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        notes.faults.append(f"{name} is not UTF-8 text (byte {error.start})")
        return None


def _document(root: str, files: Mapping[str, bytes], notes: Notes) -> dict[str, Json]:
    if root + DOCUMENT not in files:
        if not any(fault == f"{DOCUMENT} is missing" for fault in notes.faults):
            notes.faults.append(f"{DOCUMENT} is missing")
        return {}
    text = _text(DOCUMENT, files[root + DOCUMENT], notes)
    try:
        return tomllib.loads(text or "")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        notes.faults.append(f"{DOCUMENT} is not TOML: {error}")
        return {}


def _front_matter(root: str, files: Mapping[str, bytes], notes: Notes) -> dict[str, Json]:
    """The keys, or nothing after saying what is wrong with the file."""
    if root + "SKILL.md" not in files:
        return {}
    text = _text("SKILL.md", files[root + "SKILL.md"], notes)
    if text is None:
        return {}
    match = re.match(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(\r?\n|$)", text, re.DOTALL)
    if match is None or len(match[1]) > FRONT_MATTER_MAX:
        notes.faults.append(
            f"SKILL.md must begin with front matter between two lines '---' (at most {FRONT_MATTER_MAX} characters)"
        )
        return {}
    if text[match.end() :].count("\n") > 500:
        notes.warnings.append("SKILL.md: the body has more than 500 lines; move detail to references/")
    return _yaml_mapping(match[1], notes)


def _yaml_mapping(text: str, notes: Notes) -> dict[str, Json]:
    import yaml

    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.CSafeLoader)):
            notes.faults.append("SKILL.md: the front matter may not use YAML aliases")
            return {}
        node = yaml.compose(text, yaml.CSafeLoader)
        keys = [key.value for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        value = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = str(error).splitlines()
        notes.faults.append(f"SKILL.md: the front matter is not YAML: {problem[0] if problem else error}")
        return {}
    notes.faults += [f"SKILL.md: '{key}' stands there twice" for key in {*keys} if keys.count(key) > 1]
    if not isinstance(value, dict):
        notes.faults.append("SKILL.md: the front matter must be keys and values")
        return {}
    return value


def _skill_settings(id: ResourceId, document: dict[str, Json], notes: Notes) -> dict[str, Json]:
    where = "SKILL.md"
    name = notes.text(where, "name", document.get("name"), NAME_MAX)
    if name and name != id.name:
        notes.faults.append(f"{where}: 'name' is '{name}', but the folder is called '{id.name}'")
    if "license" in document:
        notes.text(where, "license", document["license"], DESCRIPTION_MAX)
    if "compatibility" in document:
        notes.text(where, "compatibility", document["compatibility"], COMPATIBILITY_MAX)
    allowed = document.get("allowed-tools", [])
    if not isinstance(allowed, str):
        notes.texts(where, "allowed-tools", allowed)
    metadata = document.get("metadata", {})
    if not isinstance(metadata, dict) or not all(
        isinstance(key, str) and isinstance(value, str) for key, value in metadata.items()
    ):
        notes.faults.append(f"{where}: 'metadata' must map texts to texts (put numbers in quotes)")
        metadata = {}
    evolvable = metadata.get(_EVOLVABLE_KEY, "true")
    if evolvable not in ("true", "false"):
        notes.faults.append(f'{where}: \'metadata.{_EVOLVABLE_KEY}\' must be "true" or "false"')
    notes.warnings += [
        f"{where}: unknown key '{key}' (put your own under 'metadata')"
        for key in document
        if key not in _SKILL_KEYS
    ]
    return {"evolvable": evolvable == "true"}


# --- source files -----------------------------------------------------------------------------


def tool_faults(path: str, content: bytes) -> list[str]:
    """How the file breaks the one-file contract of tools, one sentence each."""
    name = path.split("/", 2)[2]
    tree, fault = _parse(name, content)
    if tree is None:
        return [fault]
    notes = Notes()
    defined = _definitions(tree)
    notes.faults += [
        f"{name}: '{item}' is missing" for item in ("TOOL", "Input", "Output", "run") if item not in defined
    ]
    if "TOOL" in defined:
        _examine_card(name, tool_name(path), defined["TOOL"], notes)
    run = defined.get("run")
    if run is not None and not (
        isinstance(run, ast.FunctionDef) and len(run.args.posonlyargs + run.args.args) == 1
    ):
        notes.faults.append(
            f"{name}: 'run' must be a function of one argument: def run(input: Input) -> Output"
        )
    if not _TOOL_STEM.fullmatch(tool_name(path)):
        notes.faults.append(f"{name}: a tool's file name is made of lower-case letters, digits and '_'")
    return notes.faults


def _examine_card(name: str, expected: str, node: ast.AST, notes: Notes) -> None:
    try:
        card = ast.literal_eval(node) if isinstance(node, ast.expr) else None
    except (ValueError, TypeError, RecursionError):
        card = None
    if not isinstance(card, dict):
        notes.faults.append(f"{name}: 'TOOL' must be a literal dictionary with {', '.join(_TOOL_KEYS)}")
        return
    where = f"{name}: TOOL"
    if notes.text(where, "name", card.get("name"), NAME_MAX) not in ("", expected):
        notes.faults.append(f"{where}: 'name' is '{card['name']}', but the file makes it '{expected}'")
    notes.text(where, "description", card.get("description"), DESCRIPTION_MAX)
    effects = notes.texts(where, "effects", card.get("effects"))
    if unknown := [effect for effect in effects if effect not in set(Effect)]:
        notes.faults.append(f"{where}: effect '{unknown[0]}' is not one of {', '.join(Effect)}")
    notes.texts(where, "dependencies", card.get("dependencies", []))
    if not isinstance(card.get("idempotent", False), bool):
        notes.faults.append(f"{where}: 'idempotent' must be True or False")
    notes.faults += [f"{where}: unknown key {key!r}" for key in card if key not in _TOOL_KEYS]


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


def _defines_tool(path: str, content: bytes) -> bool:
    """A file in a tool's place is a tool unless it defines nothing of the contract (a helper)."""
    if not is_tool_file(path):
        return False
    if path.startswith("tool/"):
        return True
    tree, _ = _parse(path, content)
    return tree is None or bool({"TOOL", "Input", "Output", "run"} & set(_definitions(tree)))
