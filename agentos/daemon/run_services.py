"""What runs are served with: models, tools' cards, memories, people, other agents, the way out.

Part of the composition: everything here is made once, when the daemon starts, and nothing of it
costs before a run asks. A task that names its tool asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agentos.daemon.evolve.benches import load_tools
from agentos.daemon.evolve.coding_agent import BoxAgentRunner
from agentos.daemon.evolve.evolver_models import Advice, another, speed_in
from agentos.daemon.job.bundle import Bundle
from agentos.daemon.job.tool_schemas import ToolSchemas
from agentos.daemon.mcp.adding import accept
from agentos.daemon.mcp.packages import archive
from agentos.daemon.mcp.server_box import ServerProgram, program_of
from agentos.daemon.requests.egress import Egress
from agentos.daemon.requests.enforcement import SupervisorPlan
from agentos.daemon.requests.lookups import Memories, SkillSearch
from agentos.daemon.requests.model_requests import PendingCalls, model_asks
from agentos.daemon.requests.overseer import OverseerPlan
from agentos.daemon.requests.people import People
from agentos.daemon.requests.run_requests import RunContext, tool_asks
from agentos.daemon.requests.server_calls import RunServers, ServerParts, ServerToolAsks
from agentos.daemon.run.delegation import DelegationHandlers
from agentos.daemon.run.execution import BoxExecutor, RunServices
from agentos.daemon.upkeep.supervising import SupervisorCalibration
from agentos.domain import Budget, Kind, ModelSpec, ResourceId, Snapshot, Task
from agentos.errors import Invalid, NotFound
from agentos.gateway.setup import Setup
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.models.redaction import LiveConfig
from agentos.models.resolving import spec_of
from agentos.ports import Adviser, Models, Sandbox
from agentos.programs import LOCK_FILE
from agentos.registry.store import Registry
from agentos.resources import read
from agentos.resources.declarations import ServerTool
from agentos.retrieval.installed import index_of
from agentos.retrieval.storage import Storage
from agentos.settings import Settings


class RunServicesFactory:
    """Makes ``RunServices`` from the daemon's parts. ``executor`` gives what is made after this."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        current: LiveConfig[Setup],
        parts: tuple[Ledger, Registry, Sandbox],
        models: Models,
    ) -> None:
        self._home = home
        self._settings = settings
        self._current = current
        self._ledger, self._registry, self._sandbox = parts
        self.supervisor = SupervisorCalibration(self._ledger, settings.supervisor)
        self._servers = ServerParts(
            self._sandbox,
            self._ledger.blobs,
            self._program,
            self._egress,
            People(self._ledger).answerer,
            partial(accept, home),
            self._wheels,
        )
        self._models = models
        self.pending_calls = PendingCalls()
        self._storage = Storage(home.index)
        self._index = index_of(settings.retrieval, self._storage, self._registry)
        self._cards = ToolSchemas(self._storage, partial(load_tools, self._sandbox))

    def serving(self, executor: Callable[[], BoxExecutor], hold: Callable[[], None]) -> RunServices:
        """Everything that a run may ask for; ``hold`` returns only while the daemon may record."""
        memories = Memories(self._ledger, self._index.recall)
        return RunServices(
            models=self.specs,
            cards=self._cards.of,
            finder=self._index,
            budget=self._settings.budget.run,
            redact=self._current.redact,
            answerers={
                "model": model_asks(
                    self._models,
                    lambda asking: self.specs(asking.bundle, asking.snapshot),
                    self.pending_calls,
                ),
                "tool": partial(tool_asks, of_servers=self._server_asks),
                "person": People(self._ledger).answerer,
                "recall": memories.recalling,
                "remember": memories.remembering,
                "skills": SkillSearch(self._index, self._registry).answerer,
                "delegate": DelegationHandlers(self._ledger, executor, hold).answerer,
                "fetch": self._egress,
            },
            supervised=self._supervised,
        )

    def _server_asks(self, asking: RunContext) -> ServerToolAsks:
        return ServerToolAsks(asking, RunServers(self._servers, asking))

    def _supervised(self, task: Task, snapshot: Snapshot) -> SupervisorPlan:
        """What a run of the task is held to, live and in a trial alike."""
        return self.supervisor.plan(task, self._overseer(snapshot))

    def _overseer(self, snapshot: Snapshot) -> OverseerPlan | None:
        settings = self._settings.supervisor
        if not settings.overseer_model:
            return None
        try:
            spec = spec_of(self._registry, snapshot, settings.overseer_model, self._current.model())
        except NotFound:
            return None
        budget = Budget(settings.overseer_calls, 0, settings.overseer_usd)
        return OverseerPlan(self._models, spec, settings.overseer_steps, budget)

    def specs(self, bundle: Bundle, snapshot: Snapshot) -> tuple[ModelSpec, ...]:
        """The model of the bundle's agent at the snapshot; none where none is set up."""
        try:
            return (spec_of(self._registry, snapshot, bundle.agent["model"], self._current.model()),)
        except NotFound:
            return ()

    def has_model(self, snapshot: Snapshot, agent: str) -> bool:
        """Whether a model is set up that the agent may ask on the snapshot."""
        files = self._registry.files(snapshot, f"{Kind.AGENT}/{agent}")
        try:
            named = read(ResourceId(Kind.AGENT, agent), files).settings["model"]
            return bool(spec_of(self._registry, snapshot, named, self._current.model()))
        except (NotFound, Invalid):
            return False

    def adviser(self, name: str = "") -> Adviser | None:
        """The model ``name`` ("" is the setting's) for the evolver; None where it is not set up."""

        def spec() -> ModelSpec:
            return spec_of(self._registry, self._registry.stable(), name, self._current.model())

        try:
            found = spec()
        except NotFound:
            return None
        return Advice(
            found.name, self._models, spec, self._settings.budget.run, partial(speed_in, self._home)
        )

    def workshop(self) -> BoxAgentRunner:
        """Where coding agents work: the same boxes and models."""
        return BoxAgentRunner(
            self._sandbox,
            self._models,
            lambda name, snapshot: spec_of(self._registry, snapshot, name, self._current.model()),
            self._ledger.blobs,
            self._current.redact,
        )

    def reviewer(self, name: str, author: str) -> Adviser | None:
        """The model ``name`` for reviews, None for "". The author of the edits is refused when it is asked."""
        if not name:
            return None

        def find(wanted: str) -> ModelSpec:
            return spec_of(self._registry, self._registry.stable(), wanted, self._current.model())

        return Advice(
            name,
            self._models,
            lambda: another(find, name, author),
            self._settings.budget.run,
            partial(speed_in, self._home),
        )

    def _program(self, asking: RunContext, tool: ServerTool) -> ServerProgram:
        """What the server of the tool is made of at the run's snapshot."""
        files = self._registry.files(asking.snapshot, tool.resource)
        modules = self._registry.wheels_of(files).get(tool.resource, {})
        brings = archive(self._home, tool.brings) if tool.brings else None
        return program_of(tool, modules, brings)

    def _wheels(self, snapshot: Snapshot, resource: str) -> bytes | None:
        path = f"{resource}/{LOCK_FILE}"
        return self._registry.files(snapshot, path).get(path)

    def _egress(self, asking: RunContext, server: ServerTool | None = None) -> Egress:
        return Egress(self._settings.egress, asking, self._home, server)

    def close(self) -> None:
        """End the gateway and let go of the index."""
        self._models.close()
        self._index.close()
