"""A new task from a form: the tool's schema says which fields there are, and a task document is made of them.

What the schema does not say plainly (lists, objects, unions) is typed as JSON. The document passes through the same
door as a file of `agentos task add`; no path of this machine is taken from a form.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentos.daemon.job.tool_schemas import known_cards
from agentos.daemon.setup import add_tasks
from agentos.daemon.upkeep.status import HELD, DaemonStatus, daemon_status
from agentos.daemon.views.json_views import copies_with_runs, ended, short_reason
from agentos.domain import (
    RUNNING_STATES,
    Candidate,
    Consent,
    Evolution,
    EvolutionState,
    EvolutionWait,
    Json,
    Question,
    Run,
    TaskState,
)
from agentos.errors import NotFound, UserError
from agentos.ledger.listing import evolution_page, newest_open_runs
from agentos.ledger.reading import Reader, TaskView
from agentos.plaintext import typed_value
from agentos.syntax import tree_of
from agentos.taskfile import drafts_of
from agentos.web.context import WebContext

_PREFIX = "arg."  # of the names of a tool's fields in the form
_GOAL_MAX = 200  # characters of a goal that also serve as the name


@dataclass(frozen=True, slots=True)
class FormField:
    """``kind`` is text, number, whole, yes, choice or json; ``choices`` are JSON texts."""

    name: str
    kind: str
    required: bool
    about: str
    value: str
    choices: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class TaskForm:
    """A form for a call of ``tool``, "" for a task without one. ``known``: its schema was at hand."""

    tool: str
    about: str
    fields: Sequence[FormField]
    known: bool
    tools: Sequence[str]
    agents: Sequence[str]


def task_form(site: WebContext, tool: str) -> TaskForm:
    """Gather it. Raises NotFound for a tool that there is not."""
    stable = site.registry.stable()
    agents = [it.name for it in site.registry.names(stable) if it.kind.value == "agent"]
    cards = {_reference(card.path): card for card in known_cards(site.home.index, site.registry, stable)}
    schema, about = (cards[tool].input_schema, cards[tool].description) if tool in cards else (None, "")
    if tool and schema is None:
        path = site.registry.find_tool(stable, tool)
        schema = declared_schema(site.registry.files(stable, path).get(path, b""))
    tools = sorted({*cards, *map(_reference, site.registry.tool_paths(stable))})
    whole = [FormField("", "json", required=True, about="", value="{}")]
    fields = whole if schema is None else list(_fields(schema))
    return TaskForm(tool, about, fields if tool else [], schema is not None, tools, agents)


def declared_schema(source: bytes) -> dict[str, Any] | None:
    """What a tool file says of its arguments, read and not run: its class ``Input``. None where that does not tell."""
    tree = tree_of(source)
    if tree is None:
        return None
    found = next((it for it in tree.body if isinstance(it, ast.ClassDef) and it.name == "Input"), None)
    if found is None or [ast.unparse(base) for base in found.bases] not in (
        ["BaseModel"],
        ["pydantic.BaseModel"],
    ):
        return None
    fields = [it for it in found.body if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)]
    properties = {it.target.id: _declared(it) for it in fields if isinstance(it.target, ast.Name)}
    needed = [name for name, about in properties.items() if about.pop("needed")]
    return {"type": "object", "properties": properties, "required": needed}


def _declared(field: ast.AnnAssign) -> dict[str, Any]:
    types = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
    about: dict[str, Any] = {"needed": field.value is None or _constant(field.value) is ...}
    kind = ast.unparse(field.annotation)
    if kind in types:
        about["type"] = types[kind]
    elif kind.startswith("Literal[") and isinstance(field.annotation, ast.Subscript):
        inside = field.annotation.slice
        about["enum"] = [_constant(it) for it in (inside.elts if isinstance(inside, ast.Tuple) else [inside])]
    value = field.value
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("Field"):
        said = {word.arg: word.value for word in value.keywords}
        about["description"] = str(_constant(said.get("description")) or "")
        given = value.args[0] if value.args else said.get("default")
        about["needed"] = "default_factory" not in said and (given is None or _constant(given) is ...)
        value = given
    if not about["needed"]:
        about["default"] = _constant(value)
    return about


def _constant(node: ast.expr | None) -> Any:
    """The value that stands there, None for one that is none of JSON's."""
    try:
        value = ast.literal_eval(node) if node is not None else None
        if value is not ...:
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError):
        return None
    return value


def add_task(site: WebContext, said: Mapping[str, str]) -> str:
    """Queue what the form says; the id. Raises UserError and Invalid with what is wrong."""
    form = task_form(site, said.get("tool", "").strip())
    goal = said.get("goal", "").strip()
    document: dict[str, Json] = {"name": said.get("name", "").strip() or goal[:_GOAL_MAX], "goal": goal}
    if form.tool:
        document["call"] = {"tool": form.tool, "args": _arguments(form, said)}
        document["goal"] = goal or f"Call {form.tool}"
        document["name"] = document["name"] or form.tool
    for key in ("agent", "schedule"):
        if text := said.get(key, "").strip():
            document[key] = text
    if expected := said.get("expect", "").strip():
        document["checks"] = [{"equals": {"value": typed_value(expected)}}]
    (task,) = add_tasks(site.home, drafts_of(json.dumps(document).encode(), "the form", site.home.run))
    return task.id


def _reference(path: str) -> str:
    """As a task calls the tool at this registry path: calc/grade, or the name of a tool of its own."""
    kind, name, *rest = path.split("/")
    if kind != "skill" or rest[0] != "tools":
        return name
    return f"{name}/{rest[1].partition('.')[0]}"


def _fields(schema: Mapping[str, Any]) -> Iterator[FormField]:
    needed = schema.get("required", [])
    for name, about in schema.get("properties", {}).items():
        about = _resolved(about, schema)
        kind, choices = _kind(about)
        default = about.get("default")
        value = (
            ""
            if default is None
            else default
            if isinstance(default, str) and kind == "text"
            else json.dumps(default)
        )
        yield FormField(name, kind, name in needed, str(about.get("description", "")), value, choices)


def _resolved(about: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """With what a reference into the schema's own definitions says."""
    name = str(about.get("$ref", "")).removeprefix("#/$defs/")
    return {**schema.get("$defs", {}).get(name, {}), **about} if name else about


def _kind(about: Mapping[str, Any]) -> tuple[str, Sequence[str]]:
    if "enum" in about:
        return "choice", [json.dumps(value, ensure_ascii=False) for value in about["enum"]]
    kinds = {"string": "text", "integer": "whole", "number": "number", "boolean": "yes"}
    return kinds.get(str(about.get("type")), "json"), ()


def _arguments(form: TaskForm, said: Mapping[str, str]) -> Json:
    if not form.known:
        return _json(said.get(_PREFIX, "") or "{}", "the arguments")
    found: dict[str, Json] = {}
    for field in form.fields:
        text = said.get(_PREFIX + field.name, "")
        if field.kind == "yes":
            found[field.name] = text == "on"
        elif not text.strip() and field.kind != "text":
            if field.required:
                raise UserError(f"'{field.name}' is missing.")
        elif text or field.required:
            found[field.name] = text if field.kind == "text" else _json(text, field.name)
    return found


def _json(text: str, what: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f'{what} is to be JSON (a number, true, "text", [...], {{...}}): {error}.') from None


# --- What needs a person now, and what the daemon does where nothing does ------------------------


_HELD_MAX = 20  # of what is held, the newest
_SQUARES = 14
_RUNNING_MAX = 8
_FINE = ("passed", "queued", "running", "waiting", "cancelled", "unknown")


@dataclass(frozen=True, slots=True)
class WaitingEdit:
    """An evolution that a person may decide on. ``approved``: somebody did, and the daemon has not come to it."""

    evolution: Evolution
    candidate: Candidate | None
    reason: str
    approved: bool = False


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """A schedule with its newest copies, newest first."""

    view: TaskView
    copies: Sequence[tuple[TaskView, Run | None]]

    @property
    def squares(self) -> Sequence[tuple[str, str, str]]:
        """Result, why, and the run's id ("" for none yet) of each copy, oldest first."""
        return [(*ended(view, run), run.id if run else "") for view, run in reversed(self.copies)]

    @property
    def fails(self) -> bool:
        """Whether its newest copy that ended did not pass."""
        results = [ended(view, run)[0] for view, run in self.copies if view.state is TaskState.DONE]
        return bool(results) and results[0] not in _FINE


@dataclass(frozen=True, slots=True)
class Inbox:
    """All that is looked at when the page opens."""

    consents: Sequence[WaitingEdit]
    questions: Sequence[tuple[Question, str]]  # with the name of the task
    held: Sequence[WaitingEdit]
    refused: Mapping[str, Sequence[str]]  # folder -> what is wrong with its skill
    failing: Sequence[ScheduleLine]
    models_away: Sequence[Evolution]
    served: Mapping[str, str] | None  # why new runs do not get what the registry holds
    daemon: DaemonStatus
    under_way: Sequence[Evolution]
    running: Sequence[tuple[Run, str]]  # with the name of the task

    @property
    def count(self) -> int:
        """How many things wait for a person."""
        waiting = sum(not item.approved for item in self.consents)
        others = (self.questions, self.held, self.refused, self.failing, self.models_away)
        return waiting + sum(map(len, others)) + bool(self.served) + bool(self.daemon.code)


def look(site: WebContext) -> Inbox:
    """Gather it."""
    reader, now = site.reader, datetime.now(UTC)
    at_work = [item for state in sorted(RUNNING_STATES) for item in reader.find(Evolution, state=state)]
    return Inbox(
        consents=[
            _edit(reader, item, now) for item in reader.find(Evolution, state=EvolutionState.AWAITING_CONSENT)
        ],
        questions=[(item, reader.task(item.root_id).name) for item in reader.open_questions()],
        held=[
            _edit(reader, item, now)
            for item in evolution_page(reader, _HELD_MAX, state=EvolutionState.HELD.value).rows
        ],
        refused=dict(reader.get_kv("skills.refused", {})),
        failing=[line for line in schedule_lines(reader) if line.fails],
        models_away=[item for item in at_work if item.waiting in (EvolutionWait.MODEL, EvolutionWait.BUDGET)],
        served=reader.get_kv(HELD),
        daemon=daemon_status(site.home),
        under_way=[item for item in at_work if not item.waiting],
        running=[(run, reader.task(run.task_id).name) for run in newest_open_runs(reader, _RUNNING_MAX)],
    )


def schedule_lines(reader: Reader) -> list[ScheduleLine]:
    """Every schedule, the newest first."""
    views = [view for state in (TaskState.SCHEDULED, TaskState.PAUSED) for view in reader.tasks(state)]
    views.sort(key=lambda view: view.task.created_at, reverse=True)
    return [ScheduleLine(view, copies_with_runs(reader, view.task.id, _SQUARES)) for view in views]


def _edit(reader: Reader, evolution: Evolution, now: datetime) -> WaitingEdit:
    candidate = None
    if evolution.candidate_id:
        try:
            candidate = reader.get(Candidate, evolution.candidate_id)
        except NotFound:
            candidate = None
    waits = evolution.state is EvolutionState.AWAITING_CONSENT
    consents = reader.find(Consent, candidate_id=evolution.candidate_id) if waits else ()
    reason = short_reason(reader, evolution)
    return WaitingEdit(evolution, candidate, reason, approved=any(item.expires_at > now for item in consents))
