"""What work waits for, as commands tell it: a person's answer, a model or its turn, and what became of its deliveries."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agentos.cli.output import clean, counted, print_text, tell_progress
from agentos.daemon.people.answers import chosen, give
from agentos.domain import Delivery, DeliveryState, Question, Result, Run, TaskState
from agentos.errors import Conflict, NotFound, UserError
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.daemon.upkeep.status import DaemonStatus
    from agentos.gateway.calls import ProviderCall
    from agentos.ledger.reading import Reader

_LATELY = timedelta(days=7)
_SHOWN = 20
_TELL_S = 5.0
_COUNTED = 100  # running tasks, at most
_QUEUED = 100_000  # ids, at most


def questions_of(reader: Reader, id: str) -> Sequence[Question]:
    """The open questions that the id of a run, a task or a question stands for.

    Raises Conflict when it waits for nothing, and NotFound for an id that nobody has.
    """
    for kind in ("run", "task", "question"):
        try:
            found = reader.resolve(kind, id)
            break
        except NotFound:
            continue
    else:
        raise NotFound(f"There is no run, task or question '{id}'. `agentos run answer` shows what is asked.")
    if kind == "question":
        return [reader.get(Question, found)]
    task = reader.task(reader.run(found).task_id if kind == "run" else found)
    questions = reader.open_questions(reader.root_of(task).id)
    own = [question for question in questions if found in (question.run_id, question.task_id)]
    if not questions:
        state = reader.task_view(task.id).state.value
        raise Conflict(f"{found} waits for no answer: its task is {state}.")
    return own or questions


def tell(question: Question) -> None:
    """Show it, and what to type, or what was answered."""
    if question.answer is not None:
        print_text(f"asked      {question.text}\nanswered   {question.answer}")
        return
    print_text(f"asks       {question.text}", "yellow")
    for number, choice in enumerate(question.choices, 1):
        print_text(f"           {number}  {choice}")
    what = "--choice NUMBER" if question.choices else "'your answer'"
    print_text(f"           type: agentos run answer {question.id} {what}", "dim")


def ask_here(home: Home, question: Question) -> None:
    """Ask the person at the terminal until there is an answer that may be."""
    tell(question)
    while True:
        text = input("answer: ").strip()
        number = int(text) if question.choices and text.isdecimal() and len(text) < 4 else 0
        try:
            give(home, question, chosen(question, text, number))
        except Conflict:  # somebody else was faster
            return
        except UserError as error:
            print_text(str(error), "red")
        else:
            return


def undelivered_lately(reader: Reader) -> Sequence[Delivery]:
    """What failed once and is tried again; and, newest first, what was given up in the last days and not delivered since."""
    since = datetime.now(UTC) - _LATELY
    found = [one for one in reader.find(Delivery, state=DeliveryState.PENDING.value) if one.reason]
    for one in reader.newest(Delivery, _SHOWN, state=DeliveryState.FAILED.value):
        same = [other for other in reader.find(Delivery, run_id=one.run_id) if other.file == one.file]
        again = [other for other in same if other.destination == one.destination][-1]
        if again.id == one.id and one.ended_at is not None and one.ended_at > since:
            found.append(one)
    return found


def tell_delivery(delivery: Delivery) -> None:
    """Show it, and what to type where it failed."""
    what = delivery.file or "the answer"
    place = delivery.path or " ".join(delivery.destination.command) or delivery.destination.folder
    if delivery.state is DeliveryState.DONE:
        at = f", {delivery.ended_at.astimezone():%Y-%m-%d %H:%M}" if delivery.ended_at else ""
        said = f": {delivery.reason}" if delivery.reason else ""
        print_text(f"delivered  {what} to {place} ({delivery.sha256[:12]}{at}){said}", "green")
    elif delivery.state is DeliveryState.PENDING:
        why = f", not yet: {delivery.reason}" if delivery.reason else ", soon"
        print_text(f"delivers   {what} to {place}{why}", "yellow")
    else:
        again = f"  (`agentos run deliver {delivery.run_id}`)" if delivery.sha256 else ""
        print_text(f"undelivered {what} to {place}: {delivery.reason}{again}", "red")


class ModelWaits:
    """Tells whoever waits at a terminal which model is being asked, every few seconds."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._told = time.monotonic()
        self._lost: set[str] = set()

    def tell_task(self, reader: Reader, task_id: str, run: Run | None) -> None:
        """Of a task with its newest run, if there is one yet."""
        if run is None:
            self.tell_queued(reader, task_id)
        else:
            self.tell_run(run)

    def tell_run(self, run: Run) -> None:
        """Which model a run asks; or why the machinery lost it, once for each reason: its task is tried again and again."""
        if run.outcome is None:
            self.tell(run.id)
        elif run.outcome.result is Result.INFRA and run.outcome.reason not in self._lost:
            self._lost.add(run.outcome.reason)
            said = f"    lost: {run.outcome.reason[:300]} (it is tried again; Ctrl-C leaves it in the queue)"
            print(clean(said), file=sys.stderr, flush=True)

    def tell_queued(self, reader: Reader, task_id: str) -> None:
        """Why a task has no run yet, if it is time."""
        if time.monotonic() - self._told < _TELL_S:
            return
        from agentos.daemon.upkeep.status import daemon_status

        self._told = time.monotonic()
        ahead = before(reader, task_id)
        tell_progress(f"    queued: {held_up_by(daemon_status(self._home), task_id, ahead)}")

    def tell(self, work_id: str) -> bool:
        """Say which call of a run or an evolution is under way, if one is and it is time; whether it did."""
        if time.monotonic() - self._told < _TELL_S or not self._home.calls.exists():
            return False
        from agentos.gateway.calls import CallReading
        from agentos.gateway.setup import read_ending

        self._told = time.monotonic()
        if (ending := read_ending(self._home.run)) is not None:
            tell_progress(f"    {ending.says}")
            return True
        reading = CallReading(self._home.calls)
        try:
            found = reading.under_way(work_id)
        finally:
            reading.close()
        if found:
            tell_progress(sentence_of(found[0], time.time()))
        return bool(found)


def before(reader: Reader, task_id: str) -> int:
    """How many tasks are under way, or were queued before this one."""
    queue = reader.queued(_QUEUED)
    running = len(reader.tasks(TaskState.RUNNING, _COUNTED))
    return running + (queue.index(task_id) if task_id in queue else 0)


def held_up_by(status: DaemonStatus, task_id: str, ahead: int) -> str:
    """What a queued task waits for: its own obstacle, the daemon's, else its turn."""
    own = next((item.why for item in status.waiting if item.task == task_id), "")
    turn = f"{counted(ahead, 'task')} before it" if ahead else "its turn comes next"
    return own or status.why or turn


def sentence_of(call: ProviderCall, now: float) -> str:
    """Whom a call asks, how much, and for how long it has waited; ``now`` in seconds since 1970."""
    return f"    asking {call.model}: about {call.input_tokens:,} tokens, {max(0.0, now - call.started_at):.0f} s"
