"""A conversation with an agent of this home: each turn becomes a task, whose run is judged like any other.

A first turn without instructions is the goal as it stands, so that the same question is the same work. A later turn
carries what was said before: in its goal, and whole as the file ``conversation.json``. Where a run asks a person, the
question is the reply, and the next turn is its answer: the same task goes on. Whose conversation it is (the token's)
stands in the audit log; no other token may go on with it or rate it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from agentos.daemon.control.daemon_lock import daemon_info
from agentos.daemon.control.tokens import Token
from agentos.daemon.intake.filing import cancel_task, file_task, require_model
from agentos.daemon.people.answers import chosen, give
from agentos.domain import Question, Result, Run, Step, Task, TaskState, digest
from agentos.errors import AgentOSError, Conflict, NotFound, Unavailable, UserError
from agentos.ledger.blobs import BlobStore
from agentos.web.api.door import ApiRefusal
from agentos.web.api.home import ApiHome, note_act, writing

USER, ASSISTANT = "user", "assistant"
FILE = "conversation.json"
GOAL_MAX = 90_000  # characters of all that was said
_ACT = "conversation.turn"
_EVERY_S = 0.1
_TITLE = 60
_LOOKS_BACK = 20  # turns of the user: so many questions in a row are followed
_AGENT = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_ENDED = (TaskState.DONE, TaskState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Dialogue:
    """What was said so far; the last turn is the user's. ``task_id``: the task of the reply before, if it is known."""

    agent: str
    turns: Sequence[Turn]
    instructions: str = ""
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """Tokens of the model calls of a turn, as far as they were not served from a record."""

    input: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended: a text (an answer, or a question of the run), or why there is none."""

    task_id: str
    run_id: str
    result: str
    text: str | None
    reason: str
    usage: TurnUsage


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that is under way. ``id`` names it to the client; ``known``: runs that were there before."""

    id: str
    task_id: str
    known: frozenset[str]


def begin(site: ApiHome, token: Token, said: Dialogue) -> Begun:
    """Queue the turn, or give it as the answer that its task waits for. Durable when it returns.

    Raises NotFound for an agent or a reply that is not there, Unavailable where no daemon runs.
    """
    goal = _goal(said)
    _require_agent(site, said.agent)
    reader = site.reader
    if (waiting := _waiting(site, token, said)) is not None:
        known = frozenset(run.id for run in reader.runs(waiting.root_id))
        text = said.turns[-1].text.strip()
        number = int(text) if waiting.choices and text.isdecimal() and len(text) < 4 else 0
        give(site.home, waiting, chosen(waiting, text, number))
        note_act(site, token, _ACT, waiting.root_id)
        return Begun(_turn_id(site, waiting.root_id), waiting.root_id, known)
    document = {"name": _name(token, said), "goal": goal, "agent": said.agent}
    whole = {"instructions": said.instructions, "turns": [[turn.role, turn.text] for turn in said.turns]}
    files = {FILE: json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8", "replace")}
    task = file_task(site.home, document, files if _has_past(said) else {})
    note_act(site, token, _ACT, task.id)
    return Begun(_turn_id(site, task.id), task.id, frozenset())


def task_of(site: ApiHome, token: Token, turn_id: str) -> Task:
    """The task of a turn of this token. Raises NotFound, also for another's."""
    task_id = turn_id.rpartition("-")[0]
    mine = [
        entry
        for entry in site.reader.entries(subject=task_id)
        if entry.event == "api.act"
        and entry.detail.get("act") == _ACT
        and entry.detail.get("token_id") == token.id
    ]
    if not task_id or not mine:
        raise NotFound(f"This token has no reply {turn_id[:80]!r}.")
    return site.reader.task(task_id)


def turn_end(site: ApiHome, task: Task, turn_id: str) -> TurnEnd | None:
    """How the turn ended, None while it is under way. Raises NotFound for one that never was."""
    questions = site.reader.find(Question, root_id=task.id)
    answered = [one for one in questions if one.answer is not None]
    place = turn_id.rpartition("-")[2]
    number = int(place) if place.isdecimal() and len(place) < 6 else len(answered) + 1
    if number > len(answered):
        raise NotFound(f"There is no reply {turn_id[:80]!r}.")
    runs = site.reader.runs(task.id)  # newest first
    ends = {one.run_id: place for place, one in enumerate(answered)}  # the turn that a run ended by asking
    turns = {run.id: ends.get(run.id, len(answered)) for run in runs}
    mine = [run for run in runs if turns[run.id] == number]
    begun = Begun(turn_id, task.id, frozenset())
    if number < len(answered):
        return _end(site, begun, mine, answered[number])
    _, end = _look(site, Begun(turn_id, task.id, frozenset(turns) - {run.id for run in mine}), {})
    return end


def past_of(site: ApiHome, task: Task) -> list[Turn]:
    """What was said up to the reply of the task, and the reply."""
    blobs = BlobStore(site.home.blobs)
    kept = next((file for file in task.inputs if file.path == FILE), None)
    turns = [Turn(USER, task.goal)]
    if kept is not None:
        turns = [Turn(role, text) for role, text in json.loads(blobs.get(kept.sha256))["turns"]]
    for question in site.reader.find(Question, root_id=task.id):
        turns.append(Turn(ASSISTANT, question.text))
        if question.answer is not None:
            turns.append(Turn(USER, question.answer))
    (run,) = site.reader.runs(task.id, limit=1) or (None,)
    if run is not None and (text := _answer(blobs, run)) is not None:
        turns.append(Turn(ASSISTANT, text))
    return turns


async def follow(
    site: ApiHome, begun: Begun, request: Request, is_ending: Callable[[], bool]
) -> AsyncGenerator[Step | TurnEnd, None]:
    """The steps of a turn as they come, then its end. Who hangs up, cancels the task.

    Raises Unavailable when the server ends or the daemon does; the task goes on with the daemon then.
    """
    told: dict[str, int] = dict.fromkeys(begun.known, 1 << 60)
    over = False
    try:
        while True:
            if is_ending():
                raise Unavailable("The server ends; the daemon goes on with the task.")
            steps, end = await run_in_threadpool(_look, site, begun, told)
            over = end is not None
            for step in steps:
                yield step
            if end is not None:
                yield end
                return
            if await request.is_disconnected():
                return
            await asyncio.sleep(_EVERY_S)
    except AgentOSError:  # nobody hung up: the task is not the caller's to lose
        over = True
        raise
    finally:
        if not over:
            # the ledger may be waited for, and what is awaited here would be cancelled by the hanging up
            asyncio.get_running_loop().run_in_executor(None, _cancel, site, begun.task_id)


def _cancel(site: ApiHome, task_id: str) -> None:
    with writing(site.home) as ledger:
        try:
            cancel_task(ledger, task_id)
        except Conflict:  # it came to its end meanwhile
            return


def _look(site: ApiHome, begun: Begun, told: dict[str, int]) -> tuple[list[Step], TurnEnd | None]:
    reader = site.reader
    view = reader.task_view(begun.task_id)  # first: what it came to is there when it is over
    questions = reader.open_questions(begun.task_id) if view.state is TaskState.WAITING else ()
    runs = [run for run in reader.runs(begun.task_id) if run.id not in begun.known]
    steps: list[Step] = []
    for run in reversed(runs):
        new = reader.steps(run.id, told.get(run.id, -1))
        told[run.id] = new[-1].index if new else told.get(run.id, -1)
        steps += new
    if view.state not in _ENDED and not questions:
        info = daemon_info(site.home)
        if info is None or not info.alive:
            raise Unavailable("The daemon ended; `agentos daemon start` goes on with the task.")
        return steps, None
    return steps, _end(site, begun, runs, questions[0] if questions else None)


def _end(site: ApiHome, begun: Begun, runs: Sequence[Run], asked: Question | None) -> TurnEnd:
    blobs = BlobStore(site.home.blobs)
    usage = _usage(site, blobs, runs)
    run = runs[0] if runs else None
    if asked is not None:
        choices = "".join(f"\n{number}. {choice}" for number, choice in enumerate(asked.choices, 1))
        return TurnEnd(begun.task_id, asked.run_id, Result.WAITING, asked.text + choices, "", usage)
    if run is None or run.outcome is None:
        return TurnEnd(begun.task_id, run.id if run else "", "cancelled", None, "It was cancelled.", usage)
    outcome = run.outcome
    return TurnEnd(begun.task_id, run.id, outcome.result.value, _answer(blobs, run), outcome.reason, usage)


def _answer(blobs: BlobStore, run: Run) -> str | None:
    value = blobs.expand(run.answer)
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _usage(site: ApiHome, blobs: BlobStore, runs: Sequence[Run]) -> TurnUsage:
    asked = received = 0
    for run in runs:
        for step in site.reader.steps(run.id):
            seen: Any = blobs.expand(step.observation) if step.node == "model" else None
            if isinstance(seen, dict) and "usage" in seen and not seen.get("recorded"):
                asked += int(seen["usage"]["input_tokens"])
                received += int(seen["usage"]["output_tokens"])
    return TurnUsage(asked, received)


def _require_agent(site: ApiHome, agent: str) -> None:
    if not _AGENT.fullmatch(agent):
        raise NotFound(f"There is no agent {agent[:60]!r}; `GET /v1/models` lists them.")
    require_model(site.home, agent)
    info = daemon_info(site.home)
    if info is None or not info.alive:
        raise Unavailable("No daemon runs that could do it; type `agentos daemon start` first.")


def _waiting(site: ApiHome, token: Token, said: Dialogue) -> Question | None:
    """The question that the newest turn answers."""
    before = [place for place, turn in enumerate(said.turns[:-1]) if turn.role == USER][-_LOOKS_BACK:]
    candidates = [said.task_id] if said.task_id else []
    while before and not candidates:
        # a question may have followed an answer to a question: the task has the name of the turn that began it
        name = _name(token, Dialogue(said.agent, said.turns[: before.pop() + 1], said.instructions))
        candidates = [task.id for task in reversed(site.reader.tasks_named(name))]
    for task_id in candidates:
        if questions := site.reader.open_questions(task_id):
            return questions[0]
    return None


def _name(token: Token, said: Dialogue) -> str:
    """Of the task of a turn: by it the turn after finds it, whatever became of spaces in what was replied."""
    asked = [turn.text.strip() for turn in said.turns if turn.role == USER]
    title = " ".join(asked[-1].split())
    title = title if len(title) <= _TITLE else f"{title[:_TITLE]}…"
    return f"{title} [{digest([token.id, said.agent, said.instructions.strip(), asked])[:12]}]"


def _has_past(said: Dialogue) -> bool:
    return len(said.turns) > 1 or bool(said.instructions.strip())


def _goal(said: Dialogue) -> str:
    *past, now = said.turns
    parts = [now.text]
    if _has_past(said):
        told = [f"{'They' if turn.role == USER else 'You'} said:\n{turn.text}" for turn in past]
        parts = [
            *(
                ["What they want of you in this conversation:", said.instructions]
                if said.instructions
                else []
            ),
            *([f"What was said before (also in {FILE}):", *told] if told else []),
            "Reply to this:",
            now.text,
        ]
    text = "\n\n".join(parts)
    if not now.text.strip():
        raise UserError("The last message is empty.")
    if len(text) > GOAL_MAX:
        sentence = f"The conversation has {len(text):,} characters; at most {GOAL_MAX:,} are taken."
        raise ApiRefusal(400, "context_length_exceeded", sentence, param="messages")
    return text


def _turn_id(site: ApiHome, task_id: str) -> str:
    answered = [one for one in site.reader.find(Question, root_id=task_id) if one.answer is not None]
    return f"{task_id}-{len(answered)}"
