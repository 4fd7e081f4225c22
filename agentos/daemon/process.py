"""The daemon as a process: it comes up, takes work, and ends.

Signal handlers only count; the loop acts. The first SIGTERM (or Ctrl-C, or SIGHUP) drains: tasks under way
are finished, nothing new is started. The second one stops at once. Evolutions are cut in both
cases and go on with the next daemon. The process leaves by ``os._exit``, because threads that
belong to cut work are held rather than ended (``tasks.StopSignal``).
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import structlog

from agentos.daemon.breaker import MACHINE, cause
from agentos.daemon.control.daemon_lock import DaemonLock
from agentos.daemon.control.page import PageKeeper
from agentos.daemon.engine import Engine
from agentos.daemon.evolve.plugins import note_plugins
from agentos.daemon.run.tasks import REBOOTED, STOPPED
from agentos.daemon.service import Service, service, utc_now
from agentos.daemon.tick import Tick
from agentos.daemon.upkeep.mirroring import follow
from agentos.errors import AgentOSError, NotFound, Unavailable, UserError, to_type
from agentos.home import Home, made_folder
from agentos.ledger.connect import damage_of
from agentos.sandboxes.box import overdue
from agentos.sandboxes.reaper import drop_strangers, leftovers, reap
from agentos.settings import Settings, load_settings

if TYPE_CHECKING:
    from agentos.ledger.postgres.leadership import Leadership

_DESCRIPTORS = 4096
_AGAIN_S = 5  # until one that could not lead tries again
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # drawn anew at each start of the machine
_BOOT = "machine.boot"  # memo in the ledger: the one that the last daemon saw
_PATIENCE_S = 15.0  # with a box that was killed
REPLACED = 75  # exit code of one that no longer leads: EX_TEMPFAIL, a service manager starts it again
_DAMAGED = (
    "the ledger is damaged ({damage}). What can be read can be copied out (`agentos task list --json`, "
    "`agentos run export`); type `agentos daemon stop`, restore a backup of the home, then `agentos daemon start`"
)

log = structlog.get_logger("agentos.daemon")


class Signals:
    """How often the process was asked to end."""

    def __init__(self) -> None:
        self.count = 0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


def run_daemon(home: Home, *, console: bool, stand_by: bool = False) -> NoReturn:
    """Be the daemon of this home until a signal ends it.

    With ``stand_by`` it waits while another one leads on the home's database, and takes over when that is gone.
    Raises UserError (no home, another daemon, bad settings) and Unavailable (no sandbox, no disk).
    """
    settings = load_settings(home.settings)
    if stand_by and not settings.database:
        raise UserError(
            "--stand-by needs a database that two control processes share: ",
            to_type("agentos home move --to"),
        )
    signals = Signals()
    lock = DaemonLock(home)
    try:
        _raise_limit()
        set_up_logs(
            made_folder(home.logs) / "daemon.log", settings.log_level, settings.log_mb, console=console
        )
        with _leading(home, settings, signals, lock, stand_by=stand_by) as term:
            if not signals.count:
                _be_the_daemon(home, settings, signals, lock, term)
        os._exit(0)  # was asked to end while it stood by
    except MACHINE as error:
        log.error("ended", why=cause(error))
        raise
    finally:  # one that did not come up is not one that was killed
        lock.release()


@contextmanager
def _leading(
    home: Home, settings: Settings, signals: Signals, lock: DaemonLock, *, stand_by: bool
) -> Iterator[int]:
    """One daemon works on a database, whatever home it is of; its term there, 0 for a file.

    Where it was asked to end while it stood by, the context begins without leading.
    """
    if not (database := settings.database):
        yield 0
        return
    from agentos.ledger.postgres.leadership import Leadership, name_of, refuse_second

    with closing(Leadership(database, name_of(str(home.root)))) as leadership:
        if not stand_by:
            refuse_second(
                leadership,
                f"another daemon works on {database}, or its ledger is being moved: one leads on a database; "
                "`agentos daemon run --stand-by` waits for it",
            )
            _begin_to_lead(home, settings, leadership)
        else:
            lock.stand_by()
            log.info("standing by", pid=os.getpid(), home=str(home.root))
            if not _stood_by(home, settings, leadership, signals):
                yield 0
                return
            lock.lead()
        yield leadership.term


def _stood_by(home: Home, settings: Settings, leadership: Leadership, signals: Signals) -> bool:
    """Wait to lead; False when it was asked to end. Raises NotFound when its home is gone."""
    from agentos.ledger.postgres.leadership import wait_to_lead

    def goes_on() -> bool:
        if not home.is_there:
            raise NotFound(f"there is no home at {home.root} any more: it stands by no longer")
        return not signals.count

    told = ""
    while wait_to_lead(leadership, goes_on, lambda why: log.warning("cannot stand by", why=why)):
        try:
            _begin_to_lead(home, settings, leadership)
            return True
        except AgentOSError as error:  # whoever led before may come back, and has what is lacking here
            leadership.close()
            if told != (told := str(error)):
                log.error("cannot lead", why=told)
            for _ in range(_AGAIN_S):
                if not signals.count:
                    time.sleep(1.0)
    return False


def _begin_to_lead(home: Home, settings: Settings, leadership: Leadership) -> None:
    """Hold it, and have the registry where the ledger has seen it. Raises AgentOSError."""
    leadership.keep(_step_down)
    if settings.registry.mirror:
        follow(home, settings.registry.mirror, leadership.term)
    log.info("leading", term=leadership.term)


def _step_down(why: str) -> None:
    """As by a kill, which the next leader knows how to go on from: whatever is under way is no longer ours."""
    log.error("no longer leading", why=why)
    logging.shutdown()
    os._exit(REPLACED)


def _be_the_daemon(home: Home, settings: Settings, signals: Signals, lock: DaemonLock, term: int) -> NoReturn:
    log.info("starting", pid=os.getpid(), home=str(home.root))
    for leftover in leftovers(home.root):
        log.warning("left by a daemon that was killed", kind=leftover.kind, what=leftover.what)
        reap([leftover])
    if strangers := drop_strangers(home.root):
        log.info("control groups of daemons of other homes that were killed are gone", daemons=strangers)
    damage = damage_of(home.ledger) if home.ledger.exists() and not settings.database else ""
    with service(home, settings, listens=True) as parts, _holding(parts):
        note_plugins(parts.ledger)
        _note_boot(parts)
        with suppress(Unavailable):  # then tasks wait for it, and nothing is collected before it is asked
            parts.ledger.blobs.claim(parts.ledger.name())
        parts.registry.stable()  # without a registry nothing can run: say so now, not in every run
        tick = Tick(parts, term)
        tick.engine = Engine(home.engine, parts.bodies(), tick.ended, settings.database, term)
        parts.sandbox.start()
        if lacks := parts.sandbox.lacks:
            log.warning("the sandbox lacks something", what=lacks)
        tick.engine.launch()
        if damage:
            parts.tasks.breaker.open(_DAMAGED.format(damage=damage[:200]), for_good=True)
        else:
            tick.resume()
        lock.ready()
        log.info("ready", sandbox=parts.sandbox.name, level=parts.sandbox.level)
        page = PageKeeper(home, settings.web_port) if settings.web else None
        _loop(tick, signals, lock, page)
        if page is not None:
            page.close()
        if not tick.idle() or signals.count > 1:
            with suppress(Unavailable):  # a disk that is full: then it looks like a kill
                parts.ledger.set_kv(STOPPED, utc_now().isoformat())
        _end(parts, lock, by_force=signals.count > 1)


@contextmanager
def _holding(parts: Service) -> Iterator[None]:
    """Where it does not come up after all, the threads of runs are held before what they work with is closed."""
    with ExitStack() as failing:
        failing.callback(parts.stopping.set)
        yield
        failing.pop_all()


def _note_boot(parts: Service) -> None:
    """Whether the machine went down since the last daemon: what was under way then is nobody's fault."""
    with suppress(OSError, Unavailable):  # a full disk, a damaged ledger: the loop says so
        boot = _BOOT_ID.read_text().strip()
        known = parts.ledger.get_kv(_BOOT, "")
        if known != boot:
            parts.ledger.set_kv(_BOOT, boot)
        if known not in ("", boot):
            parts.ledger.set_kv(REBOOTED, utc_now().isoformat())


def _raise_limit() -> None:
    """As many open files as the machine lets us: some shells give 256, and a box takes a dozen."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _overdue(named: set[str]) -> tuple[str, ...]:
    """Boxes that would not go, each logged once; nothing waits for them, but what holds them is to be found."""
    runs = [run or "a check" for run, _ in overdue(_PATIENCE_S)]
    for run in set(runs) - named:
        log.error("a box is not gone after its limit and its grace", run=run)
        named.add(run)
    return tuple(f"the box of {run} is not gone after its limit and its grace; see the log" for run in runs)


def _loop(tick: Tick, signals: Signals, lock: DaemonLock, page: PageKeeper | None) -> None:
    named: set[str] = set()

    def asked_to_end(times: int) -> bool:
        lock.keep()
        lock.name_overdue(_overdue(named))
        if page is not None:
            page.keep()
            tick.heartbeat.chore("the page", "page" if page.fault else "", page.fault)
        return signals.count >= times

    tick.run(lambda: not asked_to_end(1))
    tick.draining = True
    log.info("draining", tasks=len(tick.engine.active("run_task")))
    tick.run(lambda: not asked_to_end(2) and not tick.idle())


def _end(parts: Service, lock: DaemonLock, *, by_force: bool) -> NoReturn:
    parts.stopping.set()
    try:
        if not by_force:  # else the gateway sees that we are gone, and brings its calls to their record alone
            parts.served.close()
        parts.workers.close()
        parts.sandbox.close()
        lock.release()
        log.info("stopped", by_force=by_force)
    except MACHINE as error:  # the disk is read-only by now, say: what is left there looks like a kill's
        log.error("stopped, and left something behind", why=cause(error))
    finally:  # whatever it is: the threads of runs, which are held from here on, would be waited for
        logging.shutdown()
        os._exit(0)


# --- The daemon's log: JSON lines in ``logs/daemon.log``, rotated by size; plain lines on a console


_KEPT = 3
_LEVELS = ((logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))  # logging's and syslog's


class _JournalFormatter(structlog.stdlib.ProcessorFormatter):
    """Puts in front of a line what the journal takes for its level; it has times of its own."""

    def format(self, record: logging.LogRecord) -> str:
        level = next((number for least, number in _LEVELS if record.levelno >= least), 7)
        return f"<{level}>{super().format(record)}"


def _formatter() -> type[structlog.stdlib.ProcessorFormatter]:
    """For the console: the journal, where systemd put it there."""
    journal = "JOURNAL_STREAM" in os.environ and not sys.stderr.isatty()
    return _JournalFormatter if journal else structlog.stdlib.ProcessorFormatter


class LogFile(RotatingFileHandler):
    """Rotates when it is full already: to see whether the next line fits, each would be made twice."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; into a new file where somebody removed this one, or moved it away."""
        path = Path(self.baseFilename)
        with suppress(OSError):
            if self.stream is not None and not (
                path.exists() and os.path.samefile(path, self.stream.fileno())
            ):
                path.parent.mkdir(mode=0o700, exist_ok=True)
                gone, self.stream = self.stream, self._open()
                gone.close()
        super().emit(record)

    def shouldRollover(self, record: logging.LogRecord) -> bool:
        """Whether the file has reached its size."""
        return self.stream is not None and self.stream.tell() >= self.maxBytes > 0


def set_up_logs(path: Path, level: str, size_mb: int, *, console: bool) -> None:
    """Route structlog and the libraries' own logging (DBOS) to the file, and to a console if asked."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    file = LogFile(path, maxBytes=size_mb << 20, backupCount=_KEPT, encoding="utf-8")
    file.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=True),
            ],
        )
    )
    handlers: list[logging.Handler] = [file]
    if console:
        screen = logging.StreamHandler(sys.stderr)
        screen.setFormatter(
            _formatter()(
                foreign_pre_chain=shared,
                processors=[
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.dev.ConsoleRenderer(
                        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
                    ),
                ],
            )
        )
        handlers.append(screen)
    logging.basicConfig(level=level.upper(), handlers=handlers, force=True)
    # DBOS narrates every start and writes to the console by itself.
    library = logging.getLogger("dbos")
    library.handlers = []
    library.propagate = True
    library.setLevel(logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
