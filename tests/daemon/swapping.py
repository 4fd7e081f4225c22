"""Harnesses that sign what they do, so that a run tells by which of them each of its steps was made."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from agentos.daemon.engine import VERSION
from agentos.daemon.offline import offline_context, policy_of
from agentos.domain import (
    Arm,
    Candidate,
    Decision,
    Diagnosis,
    Edit,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    Layer,
    Manifest,
    Probe,
    Run,
    Snapshot,
    Step,
    Trial,
    TrialSet,
    Verdict,
    canonical,
    digest,
    new_id,
)
from agentos.evolver.policy import Policy
from agentos.evolver.promote.promotion import approve, driving_sha256
from agentos.evolver.verdict.judge import judge
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.testing import attempt

PATH = "harness/default/harness.py"
_NODES = ('{"goto": "call"}', '{"ok": self.turn.fault is None}')


def source(registry: Registry, snapshot: Snapshot | None = None) -> str:
    """The harness as it stands."""
    return registry.files(snapshot or registry.stable(), PATH)[PATH].decode()


def signed(text: str, mark: str) -> str:
    """The harness, with ``mark`` in what the steps of its nodes say."""
    text = re.sub(r""", "by": '[^']*'""", "", text)
    for node in _NODES:
        assert node in text
        text = text.replace(node, node[:-1] + f', "by": {mark!r}' + "}")
    return text


def marks(steps: Sequence[Step]) -> set[str]:
    """Who signed the steps; "" for steps that nobody signed though they are the harness'."""
    own = [step for step in steps if step.node in ("route", "observe", "verify", "finish")]
    return {str((step.observation or {}).get("by", "")) for step in own}


def edit(home: Home, text: str) -> Snapshot:
    """As a person does it."""
    return Registry(home.registry).commit({PATH: text.encode()}, "An edit by hand", "edit")


@dataclass(frozen=True)
class Waiting:
    """An evolution that waits for a person's consent, on top of what is stable."""

    evolution: Evolution
    candidate: Candidate

    def approve(self, home: Home) -> None:
        with offline_context(home) as parts:
            approve(parts, parts.evolution(self.evolution.id), "person:ada")

    def state(self, home: Home) -> Evolution:
        return Reader(home.ledger).get(Evolution, self.evolution.id)


def waiting(
    home: Home, ledger: Ledger, text: str, task_ids: Sequence[str] = (), *, judged: bool = False
) -> Waiting:
    """What is on record once a candidate with this harness was judged good.

    ``judged``: as an evolution leaves it, with trials of its first task that give the verdict, and audit entries.
    """
    registry = Registry(home.registry)
    base = registry.stable()
    now = datetime.now(UTC)
    name = new_id("evo")
    evidence = Evidence(
        new_id("evd"),
        Fingerprint(digest([name])[:16], "harness/default", "exception", f"{PATH} | run"),
        (),
        tuple(task_ids),
        now,
        "0" * 64,
    )
    evidence = replace(evidence, sha256=digest([evidence.fingerprint, evidence.run_ids, evidence.task_ids]))
    snapshot = registry.add_candidate(f"cand-{name}", base, {PATH: text})
    manifest = Manifest(evidence.id, "a cause", "an edit", (PATH,), (), (), Layer.HARNESS, "why")
    candidate = Candidate(
        id=f"cand-{name}",
        evolution_id=name,
        proposer="scripted",
        rank=1,
        manifest=manifest,
        edit=Edit({PATH: text}, "an edit", "scripted"),
        base=base,
        snapshot=snapshot,
        created_at=now,
    )
    evolution = Evolution(
        id=name,
        evidence_id=evidence.id,
        fingerprint_id=evidence.fingerprint.id,
        state=EvolutionState.AWAITING_CONSENT,
        base=base,
        diagnosis=Diagnosis(Layer.HARNESS, "harness/default", PATH, "why"),
        candidate_id=candidate.id,
        created_at=now - timedelta(seconds=1),
    )
    verdict = Verdict(
        id=new_id("ver"),
        evolution_id=name,
        candidate_id=candidate.id,
        decision=Decision.PROMOTE,
        reasons=("scripted",),
        fixed=(),
        broken=(),
        flaky=(),
        candidate_tree=snapshot.tree,
        base_tree=base.tree,
        manifest_sha256=digest(manifest),
        trials_sha256="0" * 64,
        policy_sha256=policy_of(home).sha256,
    )
    if judged:
        _judged(home, ledger, evidence, candidate, evolution)
    else:
        for record in (evidence, candidate, verdict, evolution):
            ledger.put(record)
    return Waiting(evolution, candidate)


def _judged(
    home: Home, ledger: Ledger, evidence: Evidence, candidate: Candidate, evolution: Evolution
) -> None:
    trials = [
        trial
        for task_id, which, before in (
            (evidence.task_ids[0], TrialSet.EVIDENCE, False),
            *((f"guard-{number}", TrialSet.GUARD, True) for number in range(3)),
        )
        for repeat in range(4)
        for trial in (
            _trial(candidate, task_id, which, Arm.BASE, repeat, passed=before),
            _trial(candidate, task_id, which, Arm.CANDIDATE, repeat, passed=True),
        )
    ]
    policy = Policy()
    BlobStore(home.blobs).put(canonical(policy))
    verdict = judge(candidate, trials, policy)
    assert verdict.decision is Decision.PROMOTE
    said = {"sha256": evidence.sha256, "evolution": evolution.id}
    ledger.note("evidence.sealed", evidence.id, said, (evidence,))
    for record in (candidate, *trials):
        ledger.put(record)
    said = {"candidate": candidate.id, "decision": verdict.decision.value}
    ledger.note("verdict", evolution.id, said, (verdict,))
    ledger.note(f"evolution.{evolution.state.value}", evolution.id, {"reason": ""}, (evolution,))


def _trial(
    candidate: Candidate, task_id: str, which: TrialSet, arm: Arm, repeat: int, *, passed: bool
) -> Trial:
    is_own = arm is Arm.CANDIDATE
    return Trial(
        new_id("trial"),
        candidate.evolution_id,
        candidate.id if is_own else "",
        task_id,
        which,
        arm,
        repeat,
        candidate.snapshot if is_own else candidate.base,
        attempt(passed=passed).outcome,
        "",
        "fake",
        "none",
        look=int(is_own),
    )


def mixed(home: Home, run: Run) -> str:
    """What is wrong with the run: steps of another harness than that of its snapshot, or never probed."""
    reader, registry = Reader(home.ledger), Registry(home.registry)
    text = source(registry, run.snapshot)
    found = marks(reader.steps(run.id))
    if len(found) > 1 or any(mark and f'"by": {mark!r}' not in text for mark in found):
        return f"{run.id} has steps by {found}"
    probed = {probe.driving_sha256 for probe in reader.find(Probe) if probe.passed}
    if driving_sha256(registry, run.snapshot) not in probed:
        return f"{run.id} ran on {run.snapshot.commit[:12]}, which passed no probe"
    return ""


def as_if_evolved(home: Home, evolution_id: str) -> None:
    """The workflow that brought it to the wait for consent is over: the engine has a row of it."""
    row = {
        "workflow_uuid": evolution_id,
        "status": "SUCCESS",
        "name": "evolve",
        "executor_id": "local",
        "application_version": VERSION,
        "application_name": "agentos",
        "recovery_attempts": 1,
        "created_at": (now := int(time.time() * 1000)),
        "updated_at": now,
    }
    with closing(sqlite3.connect(home.engine, timeout=30)) as connection, connection:
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT INTO workflow_status ({', '.join(row)}) VALUES ({marks})", [*row.values()]
        )


def has_an_engine(home: Home) -> bool:
    """Whether ``as_if_evolved`` has tables to write to."""
    if not home.engine.exists():
        return False
    with closing(sqlite3.connect(home.engine, timeout=30)) as connection, suppress(sqlite3.OperationalError):
        # the last of the columns that its migrations add one after the other
        return bool(connection.execute("SELECT count(creator_xid) FROM workflow_status").fetchone())
    return False
