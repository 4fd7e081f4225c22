"""What the supervisor knows: norms and worth of its checks, fitted on the newest runs in the ledger and kept there.

Fitted again each time that so many more runs have finished; trials are held to the same as live runs meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from agentos.daemon.requests.enforcement import SupervisorPlan
from agentos.daemon.requests.overseer import OverseerPlan
from agentos.daemon.views.loop_health import FITTED, worth_of
from agentos.domain import SupervisorWorth, Task
from agentos.errors import NotFound
from agentos.evolver.find.mining import CURSOR
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.settings import SupervisorSettings
from agentos.supervisor.norms import PastNorms, PastRun, fit, read_norms
from agentos.supervisor.watching import SupervisorCheck
from agentos.supervisor.worth import is_observed, measure

RUNS_MAX = 500  # newest, that are looked at
_EVERY = 20  # finished runs
_AT = "supervisor.fitted_at"  # memo in the ledger: how many runs had been mined


class SupervisorCalibration:
    """Fits, and says what a run is held to. Thread-safe."""

    def __init__(self, ledger: Ledger, settings: SupervisorSettings) -> None:
        self._ledger = ledger
        self._settings = settings
        self._lock = threading.Lock()
        self._known: tuple[PastNorms, Sequence[SupervisorWorth]] | None = None

    def plan(self, task: Task, overseer: OverseerPlan | None = None) -> SupervisorPlan:
        """For one run of the task."""
        norms, worth = self._fitted()
        acts = {check: act for check in SupervisorCheck if (act := getattr(self._settings, check)) != "off"}
        held = is_observed(task.id, self._settings.observed)
        return SupervisorPlan(
            norms.of(task.key, task.agent),
            acts,
            "the task is one of those that are only looked at" if held else "",
            {SupervisorCheck(one.check): one.why for one in worth if not one.acts},
            overseer,
        )

    def refit(self) -> None:
        """Fit again where enough runs have been mined since."""
        ended = self._ledger.read(CURSOR)
        if ended - int(self._ledger.get_kv(_AT, 0)) >= _EVERY:
            self.fit()
            self._ledger.set_kv(_AT, ended)

    def fit(self) -> None:
        """Fit on what is on record now."""
        past = past_runs(self._ledger)
        norms = fit(past)
        worth = measure(past, self._settings.lost, self._settings.observed)
        self._ledger.set_kv(FITTED, {"norms": norms.document(), "worth": [asdict(one) for one in worth]})
        with self._lock:
            self._known = norms, worth

    def _fitted(self) -> tuple[PastNorms, Sequence[SupervisorWorth]]:
        with self._lock:
            if self._known is None:
                kept: Mapping[str, Any] | None = self._ledger.get_kv(FITTED)
                self._known = (read_norms(kept["norms"]) if kept else PastNorms(), worth_of(self._ledger))
            return self._known


def past_runs(ledger: Reader) -> list[PastRun]:
    """The newest finished runs of agents, oldest first."""
    found = []
    for run in ledger.runs(limit=RUNS_MAX):
        if run.outcome is None or not run.is_live or run.outcome.result.value in _SAYS_NOTHING:
            continue
        try:
            task = ledger.task(run.task_id)
        except NotFound:
            continue
        if task.call is None and (steps := ledger.steps(run.id)):
            found.append(PastRun(run, task.agent, steps))
    return found[::-1]


_SAYS_NOTHING = frozenset({"infra", "cancelled", "waiting", "unknown", "not_replayable"})
