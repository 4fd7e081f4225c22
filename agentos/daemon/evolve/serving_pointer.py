"""Which snapshot new runs get: ``main``, once what drives them there has passed its probe.

The supervisor is no part of what is swapped. Whatever moved ``main`` (a promotion, a person, an
upgrade), it looks at nothing but where ``main`` stands now and which probes are on record, so that it
comes to the same after a kill at any point. ``last-good`` is its own pointer: it follows ``main`` as far
as that may be served, and is what runs get meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import structlog

from agentos.daemon.upkeep.status import HELD
from agentos.domain import ResourceId, Snapshot
from agentos.errors import AgentOSError
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.promote.probing import probe
from agentos.evolver.promote.promotion import DRIVING, changed, only_adds, passed, vouch
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry

_AGAIN_S = 10.0  # after the machinery failed

log = structlog.get_logger("agentos.swap")


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Why new runs do not get what ``main`` holds."""

    main: str
    served: str
    why: str
    failed: bool  # else it is being found out
    undo: str = ""  # what to type to take back what failed


class Swap:
    """Implements ``ports.Snapshots`` for who starts runs: its ``stable`` is what is served.

    That may be asked from any thread. ``settle`` is called from one, whenever ``due`` says so.
    """

    def __init__(self, registry: Registry, ledger: Ledger, parts: Dependencies) -> None:
        self._registry = registry
        self._ledger = ledger
        self._parts = parts
        self._served = Snapshot("", "")  # the newest main that is known to have passed
        self._fallback = (self._served, self._served)  # of a main that has not: what stands in for it
        self._failed: set[str] = set()  # trees; a new daemon tries them once more
        self._settled = ""
        self._not_before = 0.0

    # --- ports.Snapshots ----------------------------------------------------------------------

    def stable(self) -> Snapshot:
        """The snapshot that new runs get."""
        main = self._registry.stable()
        if main == self._served:
            return main
        if main == self._registry.last_good() or passed(self._parts, main) is not None:
            self._served = main
            return main
        before = self._before(main)
        if before != main and only_adds(self._parts.snapshots, main, before):
            vouch(self._parts, main, "it adds to what drives runs, and changes nothing of it")
            self._served = main
            return main
        return before

    def _before(self, main: Snapshot) -> Snapshot:
        """The newest snapshot on the way to ``main`` that may be served; ``main`` where there is none."""
        known, found = self._fallback
        last_good = self._registry.last_good()
        if last_good is None:  # a home that is older than probes
            return main
        if known != main:
            found = next(
                (
                    snapshot
                    for snapshot in self._registry.line()
                    if snapshot == last_good or passed(self._parts, snapshot) is not None
                ),
                main,
            )
            self._fallback = (main, found)
        return found

    def files(self, snapshot: Snapshot, prefix: str) -> Mapping[str, bytes]:
        """See ports.Snapshots."""
        return self._registry.files(snapshot, prefix)

    def names(self, snapshot: Snapshot) -> Sequence[ResourceId]:
        """See ports.Snapshots."""
        return self._registry.names(snapshot)

    # --- the supervisor -----------------------------------------------------------------------

    @property
    def serves_main(self) -> bool:
        """Whether new runs get what ``main`` holds; not while the registry cannot be read."""
        try:
            return self.stable() == self._registry.stable()
        except AgentOSError:
            return False

    def due(self, now: float) -> bool:
        """Whether there is something to be settled about ``main``. ``now`` is on the monotonic clock."""
        try:
            main = self._registry.stable()
        except AgentOSError:  # each run says so
            return False
        return main.commit != self._settled and main.tree not in self._failed and now >= self._not_before

    def settle(self) -> None:
        """Let ``main`` be served, or find out why not; returns when that is known."""
        try:
            main = self._registry.stable()
            if self._registry.last_good() is None:
                vouch(self._parts, main, "it was served before anything was probed")
            served = self.stable()
            self._registry.mark_good(served)
            if served != main:
                if not self._probed(main, served):
                    return
                self._registry.mark_good(main)
        except AgentOSError as error:
            log.warning("it is not known yet what to serve", why=str(error))
            self._not_before = time.monotonic() + _AGAIN_S
            return
        self._settled = main.commit
        self._tell(None)

    def _probed(self, main: Snapshot, good: Snapshot) -> bool:
        log.info("probe begins", commit=main.commit, served=good.commit)
        self._tell(HeldBack(main.commit, good.commit, "it is being probed", failed=False))
        found = probe(self._parts, main, good)
        if found.passed:
            log.info("probe passed", commit=main.commit, seconds=found.seconds)
            return True
        names = [name for name in changed(self._registry, main, good) if name.kind in DRIVING]
        undo = "; ".join(f"agentos registry revert {name}" for name in names)
        log.error("probe failed", commit=main.commit, served=good.commit, why=found.reason, undo=undo)
        self._failed.add(main.tree)
        self._tell(HeldBack(main.commit, good.commit, found.reason, failed=True, undo=undo))
        return False

    def _tell(self, held: HeldBack | None) -> None:
        said = asdict(held) if held else None
        if self._ledger.get_kv(HELD) != said:
            self._ledger.set_kv(HELD, said)
