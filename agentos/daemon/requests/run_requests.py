"""What a run may ask of the kernel while it is under way, and who answers.

What is at the other end may be hostile: an ask is counted, its body is checked by whoever answers
it, and an answer holds nothing that the run may not know. ``RunEnds`` from an answerer ends the run.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from agentos.domain import (
    Budget,
    Cost,
    Fault,
    Json,
    KernelFault,
    Reply,
    Result,
    Snapshot,
    Step,
    Task,
    kernel_fault,
)
from agentos.errors import AgentOSError
from agentos.messages import Answer, Ask, WireFault
from agentos.ports import Plan
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
