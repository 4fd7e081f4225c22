"""What a run may ask of the kernel while it is under way, and who answers.

What is at the other end may be hostile: an ask is counted, its body is checked by whoever answers
it, and an answer holds nothing that the run may not know. ``RunEnds`` from an answerer ends the run.
"""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from agentos.domain import (
    Budget,
    Cost,
    Effect,
    Fault,
    Json,
    KernelFault,
    RecordedTool,
    Recording,
    Reply,
    Result,
    Snapshot,
    Step,
    Task,
    call_key,
    kernel_fault,
)
from agentos.errors import AgentOSError, UserError
from agentos.evolver.history.recordings import EXTERNAL, UNCERTAIN, recorded_call
from agentos.messages import Answer, Ask, WireFault
from agentos.ports import Plan
from agentos.resources import tool_path
from agentos.resources.declarations import Effects, ServerTool, declared, is_server, server_tool
from agentos.wire import FrameError, WireClosed, WireLate

if TYPE_CHECKING:
    from agentos.daemon.job.bundle import Bundle

ASKS_MAX = 10_000  # of one run
_IN_FLIGHT_MAX = 32  # asks of one run that are answered side by side; others wait their turn
# asks that are answered where they are read: so few small answers fit into a pipe that nobody reads
_AT_ONCE_MAX = 64
_HELD_MAX = 16 << 20  # bytes of memory that unanswered asks of one run hold; beyond them nothing is read


_CHANGES = frozenset({"fetch", "remember", "delegate"})  # asks that change something outside the box


class RunEnds(Exception):
    """An ask that decides the run: it ends with this result instead of an answer."""

    def __init__(self, result: Result, fault: Fault) -> None:
        self.result = result
        self.fault = fault
        super().__init__(fault.message)


class Denied(Exception):
    """An ask that is answered with a fault; the run goes on."""

    def __init__(self, type: str, message: str) -> None:
        plain = message[:20_000].encode("utf-8", "replace").decode()  # it may quote what was asked
        self.fault = WireFault(type=type, message=plain, where="", resource="")
        super().__init__(message)


class Ungranted(Denied):
    """What a person could allow and did not; ``message`` says how. It stands in the record, made by the kernel alone."""

    def __init__(self, message: str) -> None:
        super().__init__("effect", message)


@dataclass
class RunSpending:
    """What a run's model calls used so far, those of the agents it handed work to included."""

    tokens: int = 0
    usd: float | None = 0.0
    calls: int = 0
    live_calls: int = 0
    known_usd: float = 0.0  # of what counts against the limits, also where the sum is not known
    earlier_tokens: int = 0  # that count against the limits alone
    resources: set[str] = field(default_factory=set)  # that runs below this one used
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, reply: Reply) -> None:
        """Count one call; one of unknown price makes the sum unknown."""
        if reply.recorded:
            self.merge(Cost(calls=1))
        else:
            tokens = reply.input_tokens + reply.output_tokens
            self.merge(Cost(tokens=tokens, usd=reply.usd, calls=1, live_calls=1))

    def merge(self, cost: Cost) -> None:
        """Count what a run below this one used."""
        with self._lock:
            self.calls += cost.calls
            self.live_calls += cost.live_calls
            self.tokens += cost.tokens
            self.usd = None if self.usd is None or cost.usd is None else self.usd + cost.usd
            self.known_usd += cost.usd or 0.0

    def merge_earlier(self, cost: Cost) -> None:
        """Count what a run below used in an attempt before: against the limits, and not as the cost of this one."""
        self.merge(Cost(calls=cost.calls))
        with self._lock:
            self.earlier_tokens += cost.tokens
            self.known_usd += cost.usd or 0.0

    def reached(self, budget: Budget) -> str:
        """The limit that is used up, "" while none is. Those of 0 are none."""
        used = {"calls": self.calls, "tokens": self.tokens + self.earlier_tokens, "usd": self.known_usd}
        return next((name for name, amount in used.items() if 0 < getattr(budget, name) <= amount), "")

    def left_of(self, budget: Budget) -> Budget:
        """Never 0, which is no limit: a call that ends at this moment may take the last of it."""
        return Budget(
            calls=budget.calls and max(1, budget.calls - self.calls),
            tokens=budget.tokens and max(1, budget.tokens - self.tokens - self.earlier_tokens),
            usd=budget.usd and max(1e-6, budget.usd - self.known_usd),
        )

    def onto(self, cost: Cost) -> Cost:
        """The cost of the run with this in it."""
        return Cost(cost.wall_s, cost.cpu_s, self.tokens, self.usd, self.calls, self.live_calls)


@dataclass(frozen=True, slots=True)
class CallCheck:
    """What becomes of a call: its arguments, or the answer that stands for it."""

    args: Mapping[str, Json]
    refused: Mapping[str, Json] | None = None


class EventChecks(Protocol):
    """What a run is held to while it is under way (``enforcement``). All raise RunEnds."""

    def call(self, tool: str, args: Mapping[str, Json], effects: Iterable[str]) -> CallCheck:
        """Of a tool call that is about to be made."""
        ...

    def model(self, model: str, body: Mapping[str, Any]) -> None:
        """Of a model call that is about to be made. Raises Denied."""
        ...

    def asked_model(self, tokens: int, usd: float | None) -> None:
        """A model call gave nothing that can be used, and is counted all the same."""
        ...

    def reply(self, reply: Reply, *, black_box: bool) -> Mapping[str, Json]:
        """A model's reply as the run gets it; of a black-box agent, without the calls that are refused."""
        ...

    def change(self, request: str, body: Mapping[str, Any]) -> None:
        """Of an ask that changes something outside the box. Raises Denied."""
        ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """The run that asks. ``step`` records one step that the kernel itself saw: (node, action,
    observation, duration in ms)."""

    run_id: str
    task: Task
    snapshot: Snapshot
    plan: Plan
    bundle: Bundle
    deadline: float  # on the time.monotonic clock
    step: Callable[[str, Json, Json, float], Step]
    spent: RunSpending
    redact: Callable[[Json], Json] = lambda value: value  # as it is done to whatever is recorded
    rules: EventChecks | None = None  # that the run is held to; None where there are none


class RequestHandler(ABC):
    """Answers asks of one kind for one run. ``close`` is called once, when the run is over."""

    @abstractmethod
    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """The body of the answer. Raises Denied, RunEnds or Unavailable."""

    at_once = False  # whether ``answer`` waits for nobody and says little, and needs no thread

    def stop(self) -> None:  # noqa: B027 - most have nothing that takes long
        """The run is over, and answers under way are waited for: end what would take them long."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of what the run held."""


# Makes the answerer of one run; by what is asked for (messages.Ask).
Answerers = Mapping[str, Callable[[RunContext], RequestHandler]]


@dataclass
class RequestDispatcher:
    """Takes the asks of one run, answers them side by side, and says when the run has to end."""

    asking: RunContext
    answerers: Answerers
    send: Callable[[Answer], None]
    stop: Callable[[], object]  # called once, when an ask has decided the run
    ending: BaseException | None = None
    _count: int = 0
    _held: int = 0
    _room: threading.Condition = field(default_factory=threading.Condition)
    _made: dict[str, RequestHandler] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pool: ThreadPoolExecutor | None = None
    _over: bool = False

    def take(self, ask: Ask, size: int) -> None:
        """Answer it on another thread; it holds ``size`` bytes. Waits while too much is unanswered: a run that only asks must
        fill no memory but its own."""
        self._count += 1
        if self._count > ASKS_MAX:
            self.end(
                RunEnds(
                    Result.BUDGET,
                    kernel_fault(KernelFault.LIMIT, f"the run asked more than {ASKS_MAX} times"),
                )
            )
            return
        answerer = self.answerer(ask.what)
        if answerer is not None and answerer.at_once and self._count <= _AT_ONCE_MAX:
            self._serve(ask)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_IN_FLIGHT_MAX, thread_name_prefix="ask")
        with self._room:
            left_s = max(0.0, self.asking.deadline - time.monotonic())
            self._room.wait_for(lambda: self._held == 0 or self._held + size <= _HELD_MAX, left_s)
            self._held += size
        answering = self._pool.submit(self._serve, ask)
        answering.add_done_callback(self._answered)
        answering.add_done_callback(lambda _: self._let_go(size))

    def answerer(self, what: str) -> RequestHandler | None:
        """The one for this kind of ask, made when it is first needed."""
        with self._lock:
            if what not in self._made and what in self.answerers and not self._over:
                self._made[what] = self.answerers[what](self.asking)
            return self._made.get(what)

    def close(self) -> None:
        """The run is over: what still waits is not begun, what is under way is waited for."""
        with self._lock:
            self._over = True
        with ExitStack() as held:  # backwards; one that fails leaves nothing of the others open
            for answerer in self._made.values():
                held.callback(answerer.close)
            if self._pool is not None:
                held.callback(self._pool.shutdown, wait=True, cancel_futures=True)
            for answerer in self._made.values():
                held.callback(answerer.stop)

    def _serve(self, ask: Ask) -> None:
        try:
            self._answer(ask)
        except (WireClosed, WireLate, FrameError):
            pass  # the box is over, which its reader hears of as well
        except (RunEnds, AgentOSError) as error:
            self.end(error)

    def _answer(self, ask: Ask) -> None:
        answerer = self.answerer(ask.what)
        try:
            if answerer is None:
                raise Denied("not_available", f"nothing here answers '{ask.what}'")
            if self.asking.rules is not None and ask.what in _CHANGES:
                self.asking.rules.change(ask.what, ask.body)
            answer = Answer(id=ask.id, body=dict(answerer.answer(ask.body)))
            try:
                self.send(answer)
            except FrameError as error:  # nothing of it was sent
                raise Denied("limit", f"the answer to '{ask.what}' is too large: {error}") from None
        except Denied as error:
            self.send(Answer(id=ask.id, fault=error.fault))

    def _let_go(self, size: int) -> None:
        with self._room:
            self._held -= size
            self._room.notify_all()

    def _answered(self, answering: Future[None]) -> None:
        """A bug of an answerer ends the run; unheard of, it would leave the box waiting for an answer."""
        if not answering.cancelled() and (bug := answering.exception()) is not None:
            self.end(bug)

    def end(self, error: BaseException) -> None:
        """The run is decided by this; the first one counts."""
        with self._lock:
            first = self.ending is None
            self.ending = self.ending or error
        if first:
            self.stop()


# --- tool calls that the worker announces ---


AGAIN = frozenset({Effect.PURE, Effect.READ})  # run again in a replay, and held against the record
_GO: Mapping[str, Json] = {"go": True}


class ToolAsks(RequestHandler):
    """One run's announced tool calls: made, served from the record, or the end of the run. The n-th of equal calls is
    the n-th of those on record.

    The effects of a tool are what the kernel itself reads in the source that it handed out, never what the worker says.
    docs/understand/replay.md has the table of what happens to which effect in which mode.
    """

    def __init__(self, asking: RunContext) -> None:
        self._asking = asking
        self._recorded = calls_by_key(asking.plan.recording)
        self._asked: Counter[str] = Counter()
        self._given: list[tuple[str, Json, Json]] = []  # key, observation and fault of calls that were served
        self._lock = threading.Lock()
        self.at_once = asking.rules is None and asking.plan.recording is None

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """As ``messages.Ask`` says. Raises Denied, or RunEnds where a replay cannot go on."""
        tool, args = body.get("tool"), body.get("args")
        if not isinstance(tool, str) or not isinstance(args, dict):
            raise Denied("request", "a call has the name of a tool and its arguments")
        most = self._asking.bundle.limits.output_bytes  # it is recorded, as an action is
        if len(json.dumps(args)) > most:
            raise Denied("limit", f"the arguments of a call have at most {most:,} bytes")
        path, says = self._declared(tool)
        rules = self._asking.rules
        held = rules.call(tool, args, says.effects) if rules else CallCheck(args)
        given = self._given_for(tool, dict(held.args), (path, says), refused=held.refused)
        return given if held.args == args else {**given, "args": dict(held.args)}

    def _given_for(
        self,
        tool: str,
        args: Mapping[str, Json],
        known: tuple[str, Effects],
        *,
        refused: Mapping[str, Json] | None,
    ) -> Mapping[str, Json]:
        """What a call gets; one that is refused counts among those that are equal to it, as it does on record."""
        path, says = known
        key = call_key(tool, self._asking.redact(args))  # on record it stands without its secrets
        with self._lock:
            number = self._asked[key]
            self._asked[key] += 1
        if refused is not None:
            return refused
        calls = self._recorded.get(key, ())
        found = calls[number] if number < len(calls) else None
        action = {"tool": tool, "args": args, "path": path, "number": number}
        if served := server_tool(path, self._asking.bundle.files[path]):
            return self._of_server(served, action, says, found)
        if Effect.EXTERNAL in says.effects:
            return self._external(action, says, found)
        if found is None or found.result is None or not self._asking.plan.resume:
            return _GO
        # The workspace died with the box of the attempt before: what changes it is done again.
        return {**_GO, **self._serve(found)} if Effect.WRITE in says.effects else self._serve(found)

    def _of_server(
        self, tool: ServerTool, action: Mapping[str, Json], says: Effects, found: RecordedTool | None
    ) -> Mapping[str, Json]:
        raise Denied("not_available", "nothing here calls the tools of MCP servers")

    def _serve(self, call: RecordedTool) -> Mapping[str, Json]:
        given = {"observation": call.result or {"ok": False}, "fault": call.fault}
        with self._lock:
            self._given.append((call_key(call.tool, call.args), given["observation"], given["fault"]))
        return given

    def was_served(self, step: Step) -> bool:
        """Whether the step tells of a call that was answered from the record; asked once for each step.

        The kernel writes that down, because what runs in the box is not told.
        """
        call = recorded_call(step) if self._given else None
        if call is None:
            return False
        told = (call_key(call.tool, call.args), call.result, call.fault)
        with self._lock:
            if told not in self._given:
                return False
            self._given.remove(told)
            return True

    def _external(
        self, action: Mapping[str, Json], says: Effects, found: RecordedTool | None
    ) -> Mapping[str, Json]:
        ran = self._asking.plan.replays and self._runs_in_a_replay(found)
        answer = None if ran else self._served(action, says, found)
        if answer is None:
            self._begins(action)
        return _GO if answer is None else answer

    def _served(
        self, action: Mapping[str, Json], says: Effects, found: RecordedTool | None
    ) -> Mapping[str, Json] | None:
        """What a call that acts on the outside gets of the record; None where it is to be made. Raises Denied, RunEnds."""
        plan = self._asking.plan
        if found is not None:
            lost = found.result is None
            again = not plan.replays and says.idempotent and (lost or _told_unsure(found))
            if not again and not (lost and plan.replays):
                return self._serve(found)
        if plan.replays:
            why = f"a replay came to a call of '{action['tool']}', which acts on the outside and is not on record"
            raise RunEnds(Result.NOT_REPLAYABLE, kernel_fault(KernelFault.NOT_RECORDED, why))
        if Effect.EXTERNAL not in self._asking.task.effects:
            why = f"'{action['tool']}' has the effect 'external': add it to the task's effects to allow it"
            raise Denied("effect", why)
        return None

    def _begins(self, action: Mapping[str, Json]) -> None:
        """On record before the call: whoever is killed now leaves behind that it may have happened."""
        self._asking.step(EXTERNAL, dict(action), None, 0.0)

    def _runs_in_a_replay(self, found: RecordedTool | None) -> bool:
        """Whether the tool's own code is run: its box has no way out but requests, which are served from the
        record (``egress``). Not where an earlier version recorded requests without their answers.
        """
        recording = self._asking.plan.recording
        fetches = recording.fetches if recording else None
        if fetches is None or (found is not None and (found.served or _told_unsure(found))):
            return False
        # Of a call that is not on record, or was lost, nobody knows what it would have asked for.
        return bool(fetches) or (found is not None and found.result is not None)

    def _declared(self, tool: str) -> tuple[str, Effects]:
        files = self._asking.bundle.files
        try:
            path = tool_path(tool, files)
        except UserError as error:
            raise Denied("unknown_tool", str(error)) from None
        return path, declared(path, files[path])


def tool_asks(asking: RunContext, of_servers: Callable[[RunContext], ToolAsks]) -> ToolAsks:
    """Makes the answerer of a run's announced tool calls (``RunServices.answerers["tool"]``): that ``of_servers``, where it
    has any."""
    return of_servers(asking) if is_server(asking.bundle.files) else ToolAsks(asking)


def calls_by_key(recording: Recording | None) -> Mapping[str, Sequence[RecordedTool]]:
    """The calls on record, those that are equal under one key, in their order."""
    found: dict[str, list[RecordedTool]] = {}
    for call in recording.tools if recording else ():
        found.setdefault(call_key(call.tool, call.args), []).append(call)
    return found


def _told_unsure(call: RecordedTool) -> bool:
    return isinstance(call.fault, dict) and call.fault.get("type") == UNCERTAIN
