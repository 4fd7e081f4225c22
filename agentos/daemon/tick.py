"""The daemon's loop: looks what has changed, and starts what is due.

``turn`` decides and never waits: tasks and evolutions are worked on by threads of the engine,
and what takes longer than a moment (mining, the skills folder) on one housekeeping thread. A turn
costs one PRAGMA when nothing happened.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial

import structlog

from agentos.daemon.breaker import cause, damaged, of_the_machine, replaced
from agentos.daemon.engine import EVOLVE, FRESH, RUN, WATCH, Engine
from agentos.daemon.evolutions import WAITING_MAX, start_due
from agentos.daemon.intake.folders import Folders
from agentos.daemon.people.channels import channels_of
from agentos.daemon.people.feedback import settle as settle_feedback
from agentos.daemon.people.notifications import Notifier
from agentos.daemon.run.delegation import let_go
from agentos.daemon.run.delivery import Deliverer
from agentos.daemon.run.execution import graded_by
from agentos.daemon.run.tasks import MAX_ATTEMPTS
from agentos.daemon.scheduling.schedules import spawn_due
from agentos.daemon.scheduling.watching import FolderWatcher
from agentos.daemon.service import Service, utc_now
from agentos.daemon.upkeep.heartbeat import HeartbeatFile
from agentos.daemon.upkeep.mirroring import keeper_of
from agentos.daemon.upkeep.retention import DailyPrune
from agentos.domain import RUNNING_STATES, Result, TaskState
from agentos.errors import NotFound
from agentos.evolver.cycle import fresh_due
from agentos.evolver.find.mining import mine
from agentos.evolver.find.triage import settled, triage
from agentos.evolver.history.retirement import unused_skills
from agentos.evolver.memory.lessons import settle_proposals
from agentos.evolver.watch.live_regression import follow
from agentos.evolver.watch.probation import settle, suspicions, watch_rates
from agentos.ledger.connect import WriteWatcher
from agentos.ledger.reading import TaskView
from agentos.models.redaction import redactor_of

POLL_S = 0.05
_EVERY_S = {
    "schedules": 1.0,
    "skills": 0.5,
    "swap": 0.1,
    "evolutions": 0.2,
    "evolutions, nothing new": 2.0,
    "mining": 0.2,
    "heads": 60.0,
    "mirror": 1.0,
    "notify": 1.0,
    "upkeep": 600.0,
}

_OVER = timedelta(hours=1)  # since its end, until nothing of an evolution is taken up again

_AHEAD = 1_000  # tasks of the queue that are looked at in one go: there may be many more

_FORGOTTEN = timedelta(days=7)  # what became of a workflow stands in the ledger

log = structlog.get_logger("agentos.tick")


class Tick:
    """All that the loop remembers. ``engine`` is set before the first turn."""

    engine: Engine

    def __init__(self, service: Service, term: int = 0) -> None:
        self.draining = False
        self.wake = threading.Event()
        self._service = service
        self._ledger = service.ledger
        self._watcher = WriteWatcher(service.home.ledger)
        self._version: object = -1
        self._audited = -1
        self._waiting: deque[str] = deque()
        self._thinking: set[str] = set()  # of those, seen to name no tool
        self._more_wait = False  # behind those
        self._news = True  # some may have come since these were read
        self._again: set[str] = set()
        self._losses: Counter[str] = Counter()  # by task
        self._ended: deque[tuple[str, str]] = deque()
        self._due: dict[str, float] = {}
        self._housekeeper = ThreadPoolExecutor(1, thread_name_prefix="housekeeping")
        self._supervisor = ThreadPoolExecutor(1, thread_name_prefix="swap")
        self._prober = ThreadPoolExecutor(1, thread_name_prefix="probe")
        self._breaker = service.tasks.breaker
        self.heartbeat = HeartbeatFile(service.home)
        self._told = ""  # why the last turn that failed did
        self._messenger = ThreadPoolExecutor(1, thread_name_prefix="heads")
        self._mirrorer = ThreadPoolExecutor(1, thread_name_prefix="mirror")
        self._mirror = keeper_of(service.home, service.ledger, service.settings.registry, term)
        self._scheduler = ThreadPoolExecutor(1, thread_name_prefix="schedules")
        self._deliverer = ThreadPoolExecutor(1, thread_name_prefix="deliveries")
        self._mailman = ThreadPoolExecutor(1, thread_name_prefix="notify")
        self._notifier = Notifier(
            service.ledger,
            channels_of(service.home, service.settings.notify),
            service.settings.notify.on,
            redactor_of(service.home, service.settings).value,
        )
        self._notifies = self._notifier.begin()
        self._chores: dict[str, Future[None]] = {}
        self._watching = FolderWatcher(service.ledger, service.settings.hold_out)
        self._deliveries = Deliverer(service.ledger, service.home)
        self._undelivered: datetime | None = utc_now()  # when something may be due
        self._folders = Folders(service)
        self._daily_prune = DailyPrune(service.home, self._ledger)
        self._moved = True  # something that may let an evolution go on
        self._unmined = True  # runs may have finished under the last daemon
        self._first_seen: datetime | None = None
        self._last_end = time.monotonic()
        let_go(self._ledger)

    def ended(self, kind: str, subject: str) -> None:
        """The work on a subject is over. Called on its thread."""
        self._ended.append((kind, subject))
        self.wake.set()

    def run(self, go_on: Callable[[], bool]) -> None:
        """Turn until ``go_on`` says no."""
        while go_on():
            if error := _fault_of(lambda: self.turn(time.monotonic())):
                self._failed(error)
                time.sleep(1.0)
            else:
                self.heartbeat.turned()
            self._beat()
            self._service.workers.tell()
            self.wake.wait(POLL_S)
            self.wake.clear()

    def _failed(self, error: Exception) -> None:
        """Told once for each cause; what the machine itself lacks pauses the queue."""
        why = cause(error)
        self._version = -1
        if why != self._told:
            log.error("turn failed", exc_info=error)
            self._told = why
        if of_the_machine(error):
            self._breaker.open(why, for_good=damaged(error))
        self.heartbeat.turned(why)

    def _beat(self) -> None:
        pause = self._breaker.pause
        since = pause.since.isoformat(timespec="seconds") if pause else ""
        why = pause.why if pause else ""
        waiting = sorted(self._service.waiting)
        self.heartbeat.write(why, since, waiting, damaged=pause is not None and pause.for_good)

    def idle(self) -> bool:
        """No task is under way, and nothing is being delivered; those that wait for the machinery go on with the next daemon."""
        delivering = self._chores.get("deliveries")
        under_way = set(self.engine.active(RUN)) - self._service.waiting
        return not under_way and (delivering is None or delivering.done())

    def turn(self, now: float) -> None:
        """Look and start. ``now`` is on the monotonic clock."""
        self._service.tasks.write_old_steps()
        changed = self._changed()
        while self._ended:
            self._close(*self._ended[0])
            self._moved = True
            self._ended.popleft()  # only now: what a full disk prevented is done by a later turn
        if changed:
            self._moved = True
            self._stop_cancelled()
            self._look_for_news()
        if self._undelivered is not None and self._undelivered <= utc_now():
            self._chore("deliveries", self._deliver, self._deliverer)
        if self.draining or self._paused(now):
            return
        self._start_again()
        self._start_tasks(refill=changed)
        if self._is_due("schedules", now):
            self._chore("schedules", self._spawn_scheduled, self._scheduler)
        if self._is_due("skills", now):
            self._chore("skills", self._folders.scan)
        if self._is_due("swap", now) and self._service.swap.due(now):
            self._chore("swap", self._service.swap.settle, self._supervisor)
            self._unmined = True  # main moved: a person may have ended a watch
        if self._is_due("evolutions", now):
            self._start_evolutions(now)
        if self._is_due("mining", now) and (self._unmined or self.heartbeat.is_to_be_tried("mining")):
            self._mine_when_settled(now)
        self._look_after(now)

    def _paused(self, now: float) -> bool:
        """Nothing new is begun while the machinery is away; from time to time it is tried."""
        if why := replaced():
            self._breaker.open(why)
        if self._breaker.pause is None:
            return False
        if self._breaker.due(now):
            self._chore("probe", self._breaker.try_again, self._prober)
        self._version = -1  # look for all that waits when it is back
        return True

    def _look_after(self, now: float) -> None:
        """What is due seldom."""
        if self._is_due("heads", now) and self._service.settings.audit_heads:
            self._chore("heads", self._send_head, self._messenger)
        if self._mirror is not None and self._is_due("mirror", now):
            self._chore("mirror", self._mirror.look, self._mirrorer)
        if self._notifies and self._is_due("notify", now):
            self._chore("notify", lambda: self._notifier.turn(utc_now()), self._mailman)
        if self._is_due("upkeep", now):
            self._unmined = True  # a probation ends by time alone too
            self._chore("upkeep", self._keep_up)

    # --- tasks --------------------------------------------------------------------------------

    def _changed(self) -> bool:
        version = self._watcher.version()
        changed, self._version = version != self._version, version
        return changed

    def _look_for_news(self) -> None:
        """Whatever mining may act on is audited: runs, flags, ends of evolutions, reverts by hand.

        Trials and steps are not, and there are many: they wake nobody.
        """
        count = self._ledger.head().count
        if count != self._audited:
            self._audited = count
            self._unmined = True
            self._undelivered = utc_now()

    def resume(self) -> None:
        """Once, after the launch: tasks that ran when the last daemon ended are taken up or closed."""
        self._last_end = time.monotonic()
        for view in self._ledger.tasks(TaskState.RUNNING):
            if not view.task.parent:
                self._start(view.task.id)

    def _start_tasks(self, *, refill: bool) -> None:
        under_way = set(self.engine.active(RUN))
        service = self._service
        asking = service.tasks.tasks_of(service.served.pending_calls.long()) - service.waiting
        self._news = self._news or refill
        if (self._news and (asking or not self._waiting)) or (self._more_wait and not self._waiting):
            self._news = False
            queued = self._ledger.queued(_AHEAD + len(under_way))
            self._more_wait = len(queued) >= _AHEAD
            self._waiting = deque(task_id for task_id in queued if task_id not in under_way)
            self._thinking &= set(self._waiting)
        room = max(1, service.workers.room())  # what waits for a host is begun all the same, and says so
        most = room + WAITING_MAX - len(under_way)
        free = room - len(under_way - service.waiting)
        # Beside a run that waits long for a model's answer one may work that asks none: else one that hangs would
        # stop all work. Another that asks may not: so many at a time may be all that the model can serve.
        beside = free + len(asking)
        for task_id in tuple(self._waiting) if min(beside, most) > 0 else ():
            if free <= 0 and task_id in self._thinking:
                continue
            view = self._ledger.task_view(task_id)
            if view.state is TaskState.QUEUED:
                if free <= 0 and view.task.call is None:
                    self._thinking.add(task_id)
                    continue
                self._start(task_id)
                free, beside, most = free - 1, beside - 1, most - 1
            self._waiting.remove(task_id)  # only now: what could not be started is started by a later turn
            if min(beside, most) <= 0:
                return

    def _start_again(self) -> None:
        """Tasks at which the work failed."""
        for task_id in list(self._again):
            if self._ledger.task_view(task_id).state in (TaskState.QUEUED, TaskState.RUNNING):
                self._start(task_id)
            self._again.discard(task_id)

    def _start(self, task_id: str) -> None:
        self.engine.begin(RUN, task_id, partial(self._service.run_task, task_id))

    def _stop_cancelled(self) -> None:
        for task_id, state in self._ledger.states(self._service.tasks.in_flight()).items():
            if state is TaskState.CANCELLED:
                self._service.tasks.cancel(task_id)

    def _close(self, kind: str, subject: str) -> None:
        """What a workflow that ended by a bug left half done is closed here; the rest needs nothing."""
        try:
            self._settle_end(kind, subject)
        except NotFound as error:  # a ledger restored from a backup is older than the engine's database
            log.warning("a workflow ended whose subject the ledger does not know", why=str(error))

    def _settle_end(self, kind: str, subject: str) -> None:
        if kind == RUN:
            self._unmined = True
            self._version = -1  # the next turn looks for more to start
            self._last_end = time.monotonic()
            self._lose(subject, self.engine.failures.pop(subject, None))
        elif kind in (WATCH, FRESH):
            self._unmined = True  # what it measured may settle a probation; more work may have come
        elif kind == EVOLVE and self._service.parts.evolution(subject).state in RUNNING_STATES:
            self._service.cancel_evolution(subject, "an error in the daemon; see the log")

    def _lose(self, task_id: str, error: BaseException | None) -> None:
        """The work at it ended. Where that should have brought the task further it begins again, a few times."""
        if not self._left_undone(task_id):
            self._losses.pop(task_id, None)
            return
        error = error or RuntimeError("the work at it ended without a result")
        if not self._service.tasks.breaker.lost(task_id, error):
            self._losses[task_id] += 1
        if self._losses[task_id] >= MAX_ATTEMPTS:
            why = f"the daemon failed at it {MAX_ATTEMPTS} times ({cause(error)}); see the log"
            self._service.tasks.give_up(task_id, why)
            del self._losses[task_id]
        else:
            self._again.add(task_id)

    def _left_undone(self, task_id: str) -> bool:
        """Whether the work that ended should have brought the task further."""
        state = self._ledger.task_view(task_id).state
        if state not in (TaskState.QUEUED, TaskState.RUNNING) or task_id in self.engine.active(RUN):
            return False
        (newest,) = self._ledger.runs(task_id, limit=1) or (None,)
        waited = newest is not None and newest.outcome is not None and newest.outcome.result is Result.WAITING
        return not waited  # a person may answer before this turn comes to it

    def _spawn_scheduled(self) -> None:
        views = self._ledger.tasks(TaskState.SCHEDULED)
        for view in views:  # each by itself: one that fails holds up none of the others
            self._guarded(f"schedule {view.task.id}", partial(self._spawn, view))
        self._watching.look(views, time.monotonic())

    def _spawn(self, view: TaskView) -> None:
        spawn_due(self._ledger, view.task, view.share, utc_now(), self._service.settings.hold_out)

    def _deliver(self) -> None:
        self._undelivered = None  # first, so that what ends meanwhile is not overlooked
        due: datetime | None = utc_now() + timedelta(minutes=1)  # where it fails
        try:
            due = self._deliveries.deliver_due(utc_now())
        finally:
            if due is not None:
                self._undelivered = min(due, self._undelivered or due)

    # --- evolutions ---------------------------------------------------------------------------

    def _start_evolutions(self, now: float) -> None:
        """Soon after anything was written or ended; else seldom, for what only time brings."""
        due = self._is_due("evolutions, nothing new", now)
        if (due or self._moved) and self._service.swap.serves_main:
            self._moved = False
            start_due(self._service, self.engine)

    def _mine_when_settled(self, now: float) -> None:
        parts = self._service.parts
        busy = bool(
            self.engine.active(RUN) or self._waiting or self._ledger.tasks(TaskState.RUNNING, limit=1)
        )
        if settled(parts, busy=busy, first_seen=self._first_seen, quiet_s=now - self._last_end):
            if self._chore("mining", self._mine):
                self._unmined = False
                self._first_seen = None
        elif self._first_seen is None:
            self._first_seen = utc_now()

    def _mine(self) -> None:
        """Sightings of all that finished; evidence and evolutions of what is ripe; the watch of promotions."""
        parts = self._service.parts
        settle_feedback(parts, self._ledger, graded_by(self._service.sandbox))
        mine(parts)
        self._service.served.supervisor.refit()
        if self._service.settings.evolve == "auto":
            for opened in triage(parts):
                log.info("evolution opened", evolution=opened.id)
        for ended in follow(parts):
            log.info("a person ended a watch", evolution=ended.id, why=ended.reason)
        for fallen in watch_rates(parts):
            log.warning("live runs fell", evolution=fallen.id, why=fallen.reason)
        self._measure()
        self._service.fresh_due.update(fresh_due(parts))
        settle(parts)
        settle_proposals(parts)

    def _measure(self) -> None:
        """Begin the replays of live failures, a few side by side; the others when these are measured."""
        active = self.engine.active(WATCH)
        room = self._service.workers.room() - len(active)
        for found in suspicions(self._service.parts):
            subject = f"{found.evolution_id} {found.run_id} {found.against}"
            if (
                room > 0
                and subject not in active
                # by the day: what the machinery lost is measured again on the next one
                and self.engine.start(WATCH, subject, f"{subject.replace(' ', '-')}-{utc_now():%y%j}")
            ):
                room -= 1

    # --- housekeeping -------------------------------------------------------------------------

    def _keep_up(self) -> None:
        """What a killed writer left out or half written, what is over in less room; once a day, unused skills."""
        self._daily_prune.look(utc_now())  # first what makes room: a fault of the rest must not keep it away
        self._ledger.blobs.sweep()
        self._ledger.pack_trials(utc_now() - _OVER)
        self._service.registry.repair()
        follow(self._service.parts, settled=True)
        self.engine.forget(utc_now() - _FORGOTTEN)
        if self._service.settings.evolve == "auto":
            self._retire()
        self._service.registry.maintain()

    def _send_head(self) -> None:
        self._service.heads.send(self._ledger.head(), utc_now())

    def _retire(self) -> None:
        """Take out skills that nobody uses: a version each, which `agentos registry revert` takes back."""
        parts = self._service.parts
        for unused in unused_skills(parts):
            self._service.registry.retire(unused.skill, unused.reason)
            parts.audit.note("skill.retired", str(unused.skill), {"reason": unused.reason})
            log.info("skill retired", skill=str(unused.skill), why=unused.reason)

    def _is_due(self, name: str, now: float) -> bool:
        if now < self._due.get(name, 0.0):
            return False
        self._due[name] = now + _EVERY_S[name]
        return True

    def _chore(self, name: str, work: Callable[[], None], thread: ThreadPoolExecutor | None = None) -> bool:
        """Do it on the housekeeping thread; False while that is still at it from an earlier turn."""
        if name in self._chores and not self._chores[name].done():
            return False
        self._chores[name] = (thread or self._housekeeper).submit(self._guarded, name, work)
        return True

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        """One that fails is told and comes again; nothing waits for it."""
        if error := _fault_of(work):
            if self.heartbeat.chore(name, type(error).__name__, cause(error)):
                log.error("chore failed", chore=name, exc_info=error)
        elif self.heartbeat.chore(name):
            log.info("chore works again", chore=name)


def _fault_of(work: Callable[[], None]) -> Exception | None:
    """What the work raised."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the daemon outlives a bug in a turn, and in a chore
        return error
    return None
