"""The composition root: the one place where ports meet their adapters.

``Service`` holds what the daemon works with and says what each kind of workflow does. When which
workflow starts is decided in ``tick.py``; that it survives a crash is the matter of ``engine.py``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, repeat
from typing import TypeVar

import structlog

from agentos.daemon.breaker import MACHINE, Breaker, awaited, cause, given_up, of_the_machine, probe, replaced
from agentos.daemon.control.workers import WorkerHost, workers_of
from agentos.daemon.engine import EVOLVE, FRESH, PROMOTE, SETTLE, WATCH, Steps
from agentos.daemon.evolve.benches import BoxBenches, load_tools, migrate_memories
from agentos.daemon.evolve.coding_agent import with_coder
from agentos.daemon.evolve.harness_bench import RunBenches
from agentos.daemon.evolve.overlay_executor import executors_beside
from agentos.daemon.evolve.plugins import with_plugins
from agentos.daemon.evolve.proposers import ConfiguredProposers, proposers_of
from agentos.daemon.evolve.serving_pointer import Swap
from agentos.daemon.job.bundle import with_wheels
from agentos.daemon.offline import offline_context
from agentos.daemon.run.execution import BoxExecutor
from agentos.daemon.run.tasks import MAX_ATTEMPTS, RunnerOptions, StopSignal, TaskRunner
from agentos.daemon.run.trial_execution import SpotCheckedExecutor, TrialPool
from agentos.daemon.run_services import RunServicesFactory
from agentos.daemon.upkeep.heads import Heads
from agentos.domain import EvolutionState, EvolutionWait, Layer, Mode, ResourceId
from agentos.errors import (
    AgentOSError,
    HostAway,
    KeyRefused,
    ModelAway,
    ModelMissing,
    Unavailable,
    UserError,
)
from agentos.evolver import cycle
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.policy import WaitPolicy
from agentos.evolver.promote.rebasing import settle_overtaken
from agentos.evolver.watch import probation
from agentos.gateway.client import GatewayModels
from agentos.gateway.setup import Setup
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.messages import ToolCard
from agentos.models.redaction import LiveConfig, redactor_of
from agentos.ports import Adviser, Durable, Executor, Proposer
from agentos.proposers.lesson import LessonProposer
from agentos.proposers.model import ModelProposer
from agentos.proposers.pin import PinProposer
from agentos.proposers.rule import RuleProposer
from agentos.proposers.search_process import SearchProcess
from agentos.proposers.skill import SkillProposer
from agentos.registry.store import Registry
from agentos.sandboxes.choice import Choice, PlacesHere
from agentos.settings import Settings
from agentos.trajectories.sending import Sender

_LOOK_S = 0.2  # between two looks for a host, or for another key

T = TypeVar("T")
R = TypeVar("R")

_PAUSES_S = (0.2, 1.0, 5.0)  # before the next attempt at a task that the machinery lost
_MODEL_PATIENCE_S = 300.0  # between tries of a task whose model is away for long: each leaves a run
_KEY_PATIENCE_S = 3600.0  # the same where its key is refused, unless what is set up of models changes
_PATIENCE_S = (1.0, 5.0, 15.0, 30.0)  # between tries of work whose machinery is away; the last one on and on

log = structlog.get_logger("agentos.service")


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that the daemon works with."""

    home: Home
    settings: Settings
    ledger: Ledger
    registry: Registry
    sandbox: Choice
    parts: Dependencies
    tasks: TaskRunner
    stopping: StopSignal
    served: RunServicesFactory
    swap: Swap
    heads: Heads
    workers: WorkerHost
    # evolutions and tasks that stand still until the machinery is back
    waiting: set[str] = field(default_factory=set)
    model_setup: Callable[[], object] = object  # the same one until agentos.toml or a file of keys changes
    fresh_due: set[str] = field(default_factory=set)  # evolutions that wait, and for which new work came

    def bodies(self) -> Mapping[str, Callable[[Steps, str], None]]:
        """What each kind of durable workflow does with its subject."""
        return {
            EVOLVE: self.evolve,
            PROMOTE: self.finish_promotion,
            WATCH: self.watch,
            FRESH: self.try_fresh,
            SETTLE: self.settle_overtaken,
        }

    def run_task(self, task_id: str) -> None:
        """Attempt the task until a run counts. While the ledger cannot be written, nothing is given up.

        Nothing of it is known to the engine: how far it came stands in the ledger, in three commits less.
        """
        for pause_s in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
            if self._attempt(task_id):
                return
            self.stopping.wait(pause_s)

    def _attempt(self, task_id: str) -> bool:
        """As ``TaskRunner.attempt``, as soon as the machinery works."""
        own = 0
        for pause_s in chain(_PATIENCE_S, repeat(_MODEL_PATIENCE_S)):
            self._stand_still(task_id, self._hold)
            known, wait = self._set_up(), partial(self.stopping.wait, pause_s)
            try:
                return self.tasks.attempt(task_id, utc_now())
            except (Unavailable, *MACHINE) as error:
                self.stopping.hold_if_set()
                log.warning("task waits", task=task_id, why=str(error))
                if not isinstance(error, (HostAway, ModelAway)) and not self.tasks.breaker.lost(
                    task_id, error
                ):
                    own += 1
                    if own == MAX_ATTEMPTS:
                        self.tasks.give_up(task_id, f"no run of it could be begun: {cause(error)}")
                        return True
                if isinstance(error, KeyRefused) and pause_s == _MODEL_PATIENCE_S:
                    wait = partial(self._hold_for_key, known)
            self._stand_still(task_id, wait)
        raise AssertionError("the pauses have no end")

    def _hold(self) -> None:
        """Returns when tasks may be tried: the machinery works, and there is a host for their boxes."""
        self.tasks.breaker.hold(self.stopping.wait)
        while self.workers.is_empty():
            self.stopping.wait(_LOOK_S)

    def _hold_for_key(self, known: object) -> None:
        """Returns when something else is set up of models than what is known, or it is worth another try."""
        until = time.monotonic() + _KEY_PATIENCE_S
        while self._set_up() == known and time.monotonic() < until:
            self.stopping.wait(_LOOK_S)

    def _set_up(self) -> object:
        """Settings and keys of models, and the registry, which names them."""
        with suppress(UserError, Unavailable):
            return self.model_setup(), self.registry.stable()
        return self.model_setup(), None

    def _stand_still(self, subject: str, wait: Callable[[], None]) -> None:
        self.waiting.add(subject)
        try:
            wait()
        finally:
            self.waiting.discard(subject)

    def evolve(self, steps: Steps, evolution_id: str) -> None:
        """One evolution, from evidence to its end."""
        self._guarded(
            evolution_id, lambda: cycle.evolve(self.parts, evolution_id, self._held(steps, evolution_id))
        )

    def finish_promotion(self, steps: Steps, evolution_id: str) -> None:
        """Promote what a person approved."""
        self._guarded(
            evolution_id,
            lambda: cycle.finish_promotion(self.parts, evolution_id, self._held(steps, evolution_id)),
        )

    def try_fresh(self, steps: Steps, evolution_id: str) -> None:
        """Try an edit that waits for a person on the work that came since. Where that fails it waits on."""
        work = partial(cycle.try_fresh, self.parts, evolution_id)
        self._guarded("", lambda: self._held(steps, "").step("try fresh", work))

    def settle_overtaken(self, steps: Steps, evolution_id: str) -> None:
        """Put an edit that waits for a person on the registry as it is now, or end it as stale."""

        def work() -> bool:
            return settle_overtaken(self.parts, self.parts.evolution(evolution_id))

        self._guarded("", lambda: self._held(steps, "").step("settle overtaken", work))

    def watch(self, steps: Steps, subject: str) -> None:
        """Measure whether a live failure is the fault of an evolution on probation."""
        suspicion = probation.Suspicion(*subject.split(" "))

        def measure() -> str:
            run = self.ledger.run(suspicion.run_id)
            return probation.watch(self.parts, suspicion, run).state.value

        self._guarded("", lambda: self._held(steps, "").step("watch", measure))

    def _held(self, steps: Steps, evolution_id: str) -> Durable:
        return _Held(
            steps,
            self.stopping,
            lambda error, left_s: self._waits(evolution_id, error, left_s),
            lambda: self.waiting.discard(evolution_id),
            lambda: self._recovered(evolution_id),
            self.parts.policy.wait,
        )

    def _waits(self, evolution_id: str, error: Unavailable, left_s: float) -> None:
        """Say where people look that an evolution stands still, for what, and until when."""
        log.warning("evolution waits", evolution=evolution_id, why=str(error))
        if evolution_id:
            self.waiting.add(evolution_id)
            what = awaited(error)
            until = utc_now() + timedelta(seconds=left_s)
            with suppress(Unavailable):  # it may wait for room on the very disk that this is noted on
                known = self.parts.evolution(evolution_id)
                until = known.waits_until if known.waiting is what and known.waits_until else until
                evolution = replace(known, waiting=what, waits_until=until)
                self.parts.move(evolution, evolution.state, f"waits for the {what.value}: {error}")

    def _recovered(self, evolution_id: str) -> None:
        """What it waited for is back."""
        if evolution_id:
            evolution = self.parts.evolution(evolution_id)
            self.parts.move(
                replace(evolution, waiting=EvolutionWait.NOTHING, waits_until=None), evolution.state
            )

    def _guarded(self, evolution_id: str, work: Callable[[], object]) -> None:
        """An evolution that the machinery could not carry through ends as cancelled, with the reason."""
        try:
            work()
        except AgentOSError as error:
            log.error("evolution failed", evolution=evolution_id, why=str(error))
            if evolution_id:
                self.cancel_evolution(
                    evolution_id, given_up(evolution_id, error, self.parts.policy.wait.models_s)
                )

    def cancel_evolution(self, evolution_id: str, why: str) -> None:
        """End an evolution whose workflow is over but which has not come to an end state."""
        evolution = self.parts.evolution(evolution_id)
        if evolution.ended_at is None and evolution.state is not EvolutionState.AWAITING_CONSENT:
            self.parts.move(evolution, EvolutionState.CANCELLED, f"the machinery failed: {why}", end=True)

    def load(self, files: Mapping[str, bytes], tools: Sequence[str]) -> tuple[list[ToolCard], list[str]]:
        """Import the tools of a dropped skill in a box."""
        return load_tools(self.sandbox, with_wheels(self.registry, files), tools)


@dataclass(frozen=True, slots=True)
class _Held:
    """Steps that wait while the machinery is away, and record nothing once the daemon has to end."""

    steps: Steps
    stopping: StopSignal
    waits: Callable[[Unavailable, float], None]  # for what, and for how many seconds more
    goes_on: Callable[[], None] = lambda: None
    recovered: Callable[[], None] = lambda: None
    patience: WaitPolicy = field(default_factory=WaitPolicy)
    replaced: Callable[[], str] = replaced

    def step(self, name: str, work: Callable[[], T]) -> T:
        def held() -> T:
            try:
                self._hold()
                return self._patiently(work)
            finally:  # what a mixture of two releases made or raised is not recorded: the next daemon does it
                self._hold()

        return self.steps.step(name, held)

    def _hold(self) -> None:
        while self.replaced():
            self.stopping.wait(_LOOK_S)

    def _patiently(self, work: Callable[[], T]) -> T:
        began = 0.0
        for pause_s in chain(_PATIENCE_S, repeat(_PATIENCE_S[-1])):
            try:
                done = self._try(work)
            except Unavailable as error:
                began = began or time.monotonic()
                most = self._most(error) - (time.monotonic() - began)
                if most <= 0:
                    raise
                self.waits(error, most)
            else:
                if began:
                    self.recovered()
                return done
            try:
                self.stopping.wait(min(pause_s, most))
            finally:
                self.goes_on()
        raise AssertionError("the pauses have no end")

    def _most(self, error: Unavailable) -> float:
        if isinstance(error, ModelMissing):
            return 0.0
        return self.patience.models_s if isinstance(error, ModelAway) else self.patience.machinery_s

    def _try(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except AgentOSError:
            self.stopping.hold_if_set()
            raise
        except MACHINE as error:
            self.stopping.hold_if_set()
            if of_the_machine(error):
                raise Unavailable(cause(error)) from error
            raise


def utc_now() -> datetime:
    """The daemon's clock."""
    return datetime.now(UTC)


def _sender(home: Home, settings: Settings) -> Sender | None:
    """Where finished runs are told to, if anywhere."""
    if not settings.otlp:
        return None
    return Sender(
        settings.otlp, lambda why: log.warning("telemetry", why=why), redactor_of(home, settings).value
    )


@contextmanager
def service(
    home: Home,
    settings: Settings,
    *,
    socket_name: str = "gateway.sock",
    given: Choice | None = None,
    listens: bool = False,
) -> Iterator[Service]:
    """Wire everything. Raises UserError on a home that is not whole, Unavailable without a sandbox.

    A second process on the home, beside its daemon, needs a ``socket_name`` of its own. A sandbox that is
    ``given`` is used, and stays open. Workers join where it ``listens``: the daemon alone does.
    """
    with offline_context(home) as parts, ExitStack() as wired:
        ledger, registry = parts.records, parts.snapshots
        assert isinstance(ledger, Ledger)
        assert isinstance(registry, Registry)
        sandbox = given or Choice(home.root, settings.run_uid, settings.sandbox)
        workers = wired.enter_context(workers_of(home, settings, sandbox, ledger, listens=listens))
        stopping = StopSignal()
        current = LiveConfig(
            home,
            settings,
            Setup.of,
            lambda why: log.warning("models stay as they were set up", why=why),
        )
        models = GatewayModels(home, current.setup, socket_name=socket_name)
        served = RunServicesFactory(home, settings, current, (ledger, registry, sandbox), models)
        serving = served.serving(lambda: executor, stopping.hold_if_set)
        executor = BoxExecutor(registry, ledger.blobs, sandbox, workers.places, serving)
        sender = _sender(home, settings)
        heads = Heads(settings.audit_heads, lambda why: log.warning("audit heads", why=why))
        told = sender.send if sender else None
        rules = parts.policy.propose
        plain_beside = executors_beside(registry, ledger.blobs, sandbox, serving, workers.places)

        def checked(made: Executor, *, every: bool = False) -> Executor:
            share = settings.workers.spot_checks
            return SpotCheckedExecutor(made, workers.trust, share, every) if workers.trust else made

        def beside(files: Mapping[str, bytes], without: frozenset[ResourceId]) -> Executor:
            return checked(plain_beside(files, without), every=True)

        benches = BoxBenches(registry, workers.places, workers.trust, settings.workers.spot_checks)
        runs = RunBenches(registry, ledger.task, beside, settings.parallel)

        def proposers(adviser: Adviser | None) -> Mapping[Layer, tuple[Proposer, ...]]:
            writer = ModelProposer(adviser, registry, rules.form) if adviser else None
            plain = (
                LessonProposer(adviser),
                SkillProposer(registry),
                RuleProposer(registry),
                PinProposer(registry, registry.contents),
            )
            repair = SearchProcess("tool", benches, settings.parallel, kept=home.searches)
            own = proposers_of(repair, SearchProcess("harness", runs, settings.parallel), writer, plain)
            return with_coder(with_plugins(own, adviser, registry), home, served.workshop(), ledger)

        parts = replace(
            parts,
            executor=checked(executor),
            executor_with=beside,
            image_of=sandbox.image_of,
            distrusted=workers.trust.of if workers.trust else lambda host: "",
            has_model=served.has_model,
            replayer=TrialPool(workers.room),
            proposers=ConfiguredProposers(proposers, lambda: served.adviser(rules.model)),
            reviewer=served.reviewer(parts.policy.review.model, rules.model),
            load=lambda files, tools: load_tools(sandbox, with_wheels(registry, files), tools)[1],
            migrate=partial(migrate_memories, sandbox),
            benches=BoxBenches(registry, PlacesHere(sandbox)),  # what these find decides
        )
        breaker = Breaker(lambda: probe(home, ledger, registry, sandbox))
        # not on the trials' threads: they may be busy for long
        swap = Swap(registry, ledger, replace(parts, replayer=TrialPool(lambda: 2)))
        try:
            yield Service(
                home=home,
                settings=settings,
                ledger=ledger,
                registry=registry,
                sandbox=sandbox,
                parts=parts,
                tasks=TaskRunner(
                    ledger,
                    swap,
                    executor,
                    stopping,
                    RunnerOptions(Mode(settings.recording), settings.hold_out, told, breaker),
                ),
                stopping=stopping,
                served=served,
                swap=swap,
                heads=heads,
                workers=workers,
                model_setup=current.setup,
            )
        finally:
            served.close()
            if sender is not None:
                sender.close()
            if given is None:
                sandbox.close()
