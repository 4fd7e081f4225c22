"""What a person's decision needs: registry, ledger, policy and the consent key; no sandbox, no engine.

The command line opens a desk to approve, reject, reconsider or revert. Trials are never run at a
desk: what has to be measured is left to the daemon, which finds it in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agentos.domain import Snapshot, Step, Task
from agentos.errors import Unavailable, to_type
from agentos.evolver.documents import load_policy, load_taxonomy
from agentos.evolver.policy import Policy
from agentos.evolver.promote.consent import read_key
from agentos.evolver.safety_probes import SafetyProbe, load_probes
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.postgres.address import require_ledger
from agentos.shipped import folder

if TYPE_CHECKING:
    from agentos.evolver.dependencies import Dependencies
    from agentos.ports import Attempt, Plan

T = TypeVar("T")
R = TypeVar("R")


class _NoTrials:
    """Stands where the daemon has its executor and its threads."""

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None] | None = None,
        plan: Plan | None = None,
    ) -> Attempt:
        raise Unavailable(f"{run_id}: trials run in the daemon; type ", to_type("agentos daemon start"), ".")

    def given(self, task: Task, snapshot: Snapshot) -> str:
        raise Unavailable(
            "What a run would get is known to the daemon; type ", to_type("agentos daemon start"), "."
        )

    def map(self, work: Callable[[T], R], jobs: Sequence[T]) -> Sequence[R]:
        raise Unavailable("Replays run in the daemon; type ", to_type("agentos daemon start"), ".")


def policy_of(home: Home) -> Policy:
    """The home's policy: its own file, else the shipped one."""
    return load_policy(_own_or_shipped(home, "policy.toml"))


def probes_of(home: Home) -> tuple[SafetyProbe, ...]:
    """The home's safety probes: its own file, else the shipped one."""
    return load_probes(_own_or_shipped(home, "safety_probes.toml"))


def _own_or_shipped(home: Home, name: str) -> Path:
    own = home.root / name
    return own if own.exists() else folder("evolver") / name


@contextmanager
def offline_context(home: Home) -> Iterator[Dependencies]:
    """The evolver's parts for decisions. Raises UserError on a home that is not initialised."""
    from agentos.evolver.dependencies import Dependencies
    from agentos.ledger.store import Ledger
    from agentos.registry.store import Registry

    require_ledger(home.ledger)
    ledger = Ledger(home.ledger)
    try:
        registry = Registry(home.registry)
        yield Dependencies(
            snapshots=registry,
            candidates=registry,
            evolvable=registry,
            records=ledger,
            journal=ledger,
            cursor=ledger,
            audit=ledger,
            blobs=BlobStore(home.blobs),
            executor=_NoTrials(),
            replayer=_NoTrials(),
            proposers={},
            policy=policy_of(home),
            taxonomy=load_taxonomy(folder("evolver") / "taxonomy.toml"),
            consent_key=read_key(home.consent_key),
            now=lambda: datetime.now(UTC),
            safety_probes=probes_of(home),
        )
    finally:
        ledger.close()
