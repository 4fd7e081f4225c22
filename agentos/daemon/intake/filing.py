"""Tasks that come from a program instead of a file, and what ends a task: for the command line, the API and MCP alike."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.domain import IMPORT, Check, Json, Kind, ResourceId, Task, TaskState, new_id, share_of
from agentos.errors import Conflict, ErrorKind, NotFound, Sentence, UserError, meant, to_type
from agentos.home import Home
from agentos.ledger.postgres.address import require_ledger
from agentos.ledger.reading import Reader, TaskView

if TYPE_CHECKING:
    from agentos.ledger.store import Ledger
    from agentos.taskfile import Draft

FILES_MAX = 8 << 20  # bytes of all files that come with a task
SCHEDULED = (TaskState.SCHEDULED, TaskState.PAUSED)
_OPEN = (*SCHEDULED, TaskState.QUEUED, TaskState.RUNNING, TaskState.WAITING)


def file_task(home: Home, document: Mapping[str, Json], files: Mapping[str, bytes]) -> Task:
    """Queue the task of a document whose input files are given by content: name in the workspace -> bytes.

    The document names no files of this machine. Raises Invalid, having queued nothing.
    """
    from agentos.daemon.setup import add_tasks
    from agentos.taskfile import INPUTS_MAX, drafts_of

    if len(files) > INPUTS_MAX:  # before each is written
        raise UserError(f"A task has {INPUTS_MAX:,} files at most.")
    if sum(map(len, files.values())) > FILES_MAX:
        raise UserError(f"The files of a task have {FILES_MAX:,} bytes at most.")
    with tempfile.TemporaryDirectory(prefix="agentos-filed-") as place:
        named: list[Json] = []
        for number, (name, content) in enumerate(files.items()):
            Path(place, str(number)).write_bytes(content)
            named.append({"path": str(number), "as": name})
        text = json.dumps({**document, "inputs": named}).encode()
        (task,) = add_tasks(home, drafts_of(text, "the task", Path(place)))
        return task


def doubts(home: Home, drafts: Sequence[Draft]) -> list[str]:
    """What whoever adds them should know, though it is no fault yet: names that nothing bears today, goals that no
    model is there for, arguments that name an input where it lies and not where it will stand, and checks that the
    grader refuses unless they say ``runs_workspace``, and times that the daemon's clock shows when the one here does not.
    """
    found: dict[str, None] = {}
    if any(draft.call or draft.agent != "default" for draft in drafts):
        found.update(dict.fromkeys(_unknown_names(home, drafts)))
    found.update(dict.fromkeys(_unknown_secrets(home, drafts)))
    found.update(dict.fromkeys(_unanswerable(home, drafts)))
    found.update(dict.fromkeys(_misplaced(drafts)))
    found.update(dict.fromkeys(_by_another_clock(home, drafts)))
    from agentos.worker.jobs.workspace_code import OWN_SCRIPT

    for draft in drafts:
        for number, check in enumerate(draft.checks, start=1):
            if ran := _would_run(draft, check):
                found[
                    f"check {number} of '{draft.name}' would run {ran}, and all that lies there is the run's: it is "
                    "refused then. Say `runs_workspace: true`, and in `stdout_equals` what it has to print; "
                    f"{OWN_SCRIPT}."
                ] = None
    return [*found]


def _by_another_clock(home: Home, drafts: Sequence[Draft]) -> Iterator[str]:
    named = [
        draft.name for draft in drafts if draft.schedule and not (draft.trigger and draft.trigger.timezone)
    ]
    info = daemon_info(home)
    if not named or info is None or not info.alive:
        return
    from agentos.daemon.scheduling.clock import local, zone_of_process

    zone = zone_of_process(info.pid)
    if zone is None:
        return
    for moment in (now := datetime.now(UTC), now + timedelta(days=182)):  # one of them may go by summer time
        there, here = local(moment, zone), local(moment, "")
        if there.utcoffset() != here.utcoffset():
            yield (
                f"'{named[0]}' names no `timezone`: it goes by the clock of the daemon (UTC{there:%z}), which is not "
                f"the one here (UTC{here:%z})."
            )
            return


def _unknown_names(home: Home, drafts: Sequence[Draft]) -> Iterator[str]:
    from agentos.registry.store import Registry
    from agentos.resources import no_agent

    registry = Registry(home.registry)
    snapshot = registry.stable()
    names = registry.names(snapshot)
    for draft in drafts:
        if ResourceId(Kind.AGENT, draft.agent) not in names:
            yield str(no_agent(draft.agent, names))
    for tool in dict.fromkeys(draft.call.tool for draft in drafts if draft.call):
        try:
            registry.find_tool(snapshot, tool)
        except UserError as error:
            folder = home.skills / (skill := tool.rpartition("/")[0])
            waits = (folder / "SKILL.md").is_file() and f"skill/{skill}" not in map(str, names)
            yield f"{folder} is not taken in yet, or was refused: agentos skill list" if waits else str(error)


def _unknown_secrets(home: Home, drafts: Sequence[Draft]) -> Iterator[str]:
    if wanted := {name for draft in drafts for name in draft.secrets}:
        from agentos.models.secrets import secrets_of

        known = secrets_of(home)
        for name in sorted(wanted - known.keys()):
            hint = meant(name, known, "Type: ", to_type(f"agentos secret set {name} --host HOST"))
            yield Sentence(f"There is no secret '{name}'. ", hint)


def _misplaced(drafts: Sequence[Draft]) -> Iterator[str]:
    """Arguments that are an input's path on this machine, which a run does not see."""
    for draft in drafts:
        given = draft.call.args.values() if draft.call else ()
        stands = {os.path.abspath(path): place for place, path in draft.files.items()}
        stands |= {tree.path: tree.place for tree in (*draft.trees, *draft.sources)}
        for value in given:
            if not isinstance(value, str) or "/" not in value:
                continue
            below = os.path.normpath("/" + value.lstrip("/"))
            if any(place and f"{below}/".startswith(f"/{place}/") for place in stands.values()):
                continue
            for path, place in stands.items():
                if path.endswith(below) or below.startswith(f"{path}/"):
                    there = os.path.join(place, below[len(path) :].lstrip("/")).rstrip("/")
                    yield f"'{value}' in the call of '{draft.name}' stands in the workspace as '{there or '.'}'"


def _unanswerable(home: Home, drafts: Sequence[Draft]) -> Iterator[str]:
    """Goals whose agent would have no model to ask; an agent that is a program of its own may need none."""
    from agentos.registry.store import Registry
    from agentos.resources import read

    for agent in dict.fromkeys(draft.agent for draft in drafts if draft.call is None):
        try:
            require_model(home, agent)
        except NotFound:  # told as an unknown name
            continue
        except UserError:
            registry = Registry(home.registry)
            snapshot = registry.stable()
            own = ResourceId(Kind.AGENT, agent)
            harness = ResourceId(
                Kind.HARNESS, read(own, registry.files(snapshot, str(own))).settings[Kind.HARNESS]
            )
            if not read(harness, registry.files(snapshot, str(harness))).settings["command"]:
                yield (
                    f"no model is set up, so the agent '{agent}' will fail at a goal without a call: "
                    "type `agentos model add` (docs/use/models.md) before it runs."
                )


def _would_run(draft: Draft, check: Check) -> str:
    """What of the files of a run the command would run, as the grader will see it: by a workspace of empty files."""
    from agentos.worker.jobs.workspace_code import runs_file_of

    if check.kind != "command" or check.spec.get("runs_workspace"):
        return ""
    with tempfile.TemporaryDirectory(prefix="agentos-filed-") as place:
        for name in (*draft.files, "left", *check.spec["argv"]):
            path = PurePosixPath(name)
            if not path.is_absolute() and ".." not in path.parts:
                with suppress(OSError, ValueError):  # a word that is no name of a file
                    Path(place, path).parent.mkdir(parents=True, exist_ok=True)
                    Path(place, path).touch()
        return runs_file_of(check.spec["argv"], Path(place))


def require_model(home: Home, agent: str) -> None:
    """Raises UserError, with what to type, where the agent has no model to ask; NotFound without such an agent."""
    from agentos.models.resolving import spec_of
    from agentos.registry.store import Registry
    from agentos.resources import no_agent, read
    from agentos.settings import load_settings

    Reader(home.ledger).close()  # says what to type where there is no home
    registry = Registry(home.registry)
    snapshot = registry.stable()
    files = registry.files(snapshot, f"{Kind.AGENT}/{agent}/")
    if not files:
        raise no_agent(agent, registry.names(snapshot))
    try:
        named = read(ResourceId(Kind.AGENT, agent), files).settings["model"]
        spec_of(registry, snapshot, named, load_settings(home.settings).model)
    except NotFound:
        raise UserError(
            "No model is set up that could answer; type ",
            to_type("agentos model add"),
            " (docs/use/models.md), or name a tool that needs none: ",
            to_type("agentos ask --tool NAME --arg NAME=VALUE FILE…"),
        ) from None


def cancel_task(ledger: Ledger, task_id: str) -> None:
    """Out of the queue, or stopped if it runs; a scheduled one comes no more. Raises Conflict when it is over."""
    if whole := ledger.task(task_id).parent:
        raise Conflict(f"{task_id} is part of {whole}: cancel that one.")
    if not ledger.set_task_state(task_id, _OPEN, TaskState.CANCELLED):
        raise Conflict(f"{task_id} is {ledger.task_view(task_id).state.value}: there is nothing to cancel.")
    for view in ledger.handed_over(task_id):  # one that runs is ended by the daemon
        ledger.set_task_state(view.task.id, (TaskState.WAITING,), TaskState.CANCELLED)
    ledger.note("task.cancelled", task_id, {})


def find_schedule(reader: Reader, fragment: str) -> TaskView:
    """The one that the fragment of an id or the name stands for. Raises NotFound, or UserError for several."""
    views = [view for state in SCHEDULED for view in reader.tasks(state)]
    ways: tuple[Callable[[Task], bool], ...] = (
        lambda task: task.id == fragment,
        lambda task: task.name == fragment,
        lambda task: task.id.startswith((fragment, f"task-{fragment}")),
        lambda task: task.id.endswith(fragment),
    )
    for matches in ways if fragment else ():
        found = [view for view in views if matches(view.task)]
        if len(found) > 1:
            some = ", ".join(view.task.id for view in found[:5])
            raise UserError(f"'{fragment}' could be any of {some}.", kind=ErrorKind.AMBIGUOUS)
        if found:
            return found[0]
    shows = ("Type ", to_type("agentos schedule list"), " to see them.")
    hint = meant(fragment, [view.task.name for view in views], *shows)
    raise NotFound(f"There is no schedule '{fragment}'. ", hint)


def remove_schedule(ledger: Ledger, task: Task) -> None:
    """It comes no more; its runs stay. Raises Conflict for one that is none any more."""
    if not ledger.set_task_state(task.id, SCHEDULED, TaskState.CANCELLED):
        raise Conflict(f"{task.id} is no schedule any more.")
    ledger.note("schedule.removed", task.id, {})


# --- The same work once more: a task of its own, with the inputs that the first one had ----------


def queue_again(home: Home, task_id: str) -> Task:
    """Queue a copy of the task, beside whatever schedule it came from; nothing is delivered by it.

    Raises NotFound, and UserError for what cannot be run here: a schedule itself, a part of another task, an import.
    """
    from agentos.ledger.store import Ledger
    from agentos.settings import load_settings

    require_ledger(home.ledger)
    with closing(Ledger(home.ledger)) as ledger:
        task = ledger.task(task_id)
        if task.recurs:
            raise UserError(
                f"{task.id} is a schedule: ", to_type(f"agentos schedule run {task.id}"), " runs it now."
            )
        if task.parent:
            raise UserError(f"{task.id} is part of {task.parent}: run that one again.")
        newest = ledger.runs(task.id, limit=1)
        if newest and newest[0].sandbox == IMPORT:
            raise UserError(
                f"{newest[0].id} was made elsewhere: ",
                to_type("agentos task from-run"),
                " writes a task file from it.",
            )
        if newest and ledger.is_pruned(newest[0]):
            raise UserError(
                f"What {newest[0].id} was given went with its steps, as [retention] in the settings says."
            )
        again = replace(
            task,
            id=new_id("task"),
            created_at=datetime.now(UTC),
            schedule=None,
            trigger=None,
            schedule_id="",
            deliver=(),
        )
        ledger.add_task(again, share_of(again.key, load_settings(home.settings).hold_out))
        ledger.note("task.again", again.id, {"of": task.id})
        return again
