"""The daemon as a process: it comes up, takes work, and ends.

Signal handlers only count; the loop acts. The first SIGTERM (or Ctrl-C) drains: tasks under way
are finished, nothing new is started. The second one stops at once. Evolutions are cut in both
cases and go on with the next daemon. The process leaves by ``os._exit``, because threads that
belong to cut work are held rather than ended (``tasks.Stopping``).
"""

from __future__ import annotations

import logging
import os
import signal
from types import FrameType
from typing import NoReturn

import structlog

from agentos.daemon.daemon_lock import DaemonLock
from agentos.daemon.engine import Engine
from agentos.daemon.logs import set_up_logs
from agentos.daemon.service import Service, service
from agentos.daemon.tick import Tick
from agentos.home import Home
from agentos.sandboxes.reaper import leftovers, reap
from agentos.settings import Settings, load_settings

log = structlog.get_logger("agentos.daemon")


class Signals:
    """How often the process was asked to end."""

    def __init__(self) -> None:
        self.count = 0
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


def run_daemon(home: Home, *, console: bool) -> NoReturn:
    """Be the daemon of this home until a signal ends it.

    Raises UserError (no home, another daemon, bad settings) and Unavailable (no sandbox, no disk).
    """
    settings = load_settings(home.settings)
    signals = Signals()
    lock = DaemonLock(home)
    try:
        _be_the_daemon(home, settings, signals, lock, console=console)
    finally:  # one that did not come up is not one that was killed
        lock.release()


def _be_the_daemon(
    home: Home, settings: Settings, signals: Signals, lock: DaemonLock, *, console: bool
) -> NoReturn:
    set_up_logs(home.logs / "daemon.log", settings.log_level, settings.log_mb, console=console)
    log.info("starting", pid=os.getpid(), home=str(home.root))
    for leftover in leftovers(home.root):
        log.warning("left by a daemon that was killed", kind=leftover.kind, what=leftover.what)
        reap([leftover])
    with service(home, settings) as parts:
        parts.registry.stable()  # without a registry nothing can run: say so now, not in every run
        tick = Tick(parts)
        tick.engine = Engine(home.engine, parts.bodies(), tick.ended)
        parts.sandbox.start()
        tick.engine.launch()
        tick.resume()
        lock.ready()
        log.info("ready", sandbox=parts.sandbox.name, level=parts.sandbox.level)
        _loop(tick, signals, lock)
        _end(parts, lock, by_force=signals.count > 1)


def _loop(tick: Tick, signals: Signals, lock: DaemonLock) -> None:
    def asked_to_end(times: int) -> bool:
        lock.keep()
        return signals.count >= times

    tick.run(lambda: not asked_to_end(1))
    tick.draining = True
    log.info("draining", tasks=len(tick.engine.active("run_task")))
    tick.run(lambda: not asked_to_end(2) and not tick.idle())


def _end(parts: Service, lock: DaemonLock, *, by_force: bool) -> NoReturn:
    parts.stopping.set()
    if not by_force:  # else the gateway sees that we are gone, and brings its calls to their record alone
        parts.served.close()
    parts.sandbox.close()
    lock.release()
    log.info("stopped", by_force=by_force)
    logging.shutdown()
    os._exit(0)
