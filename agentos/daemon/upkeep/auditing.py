"""Holds the audit log, the ledger, the registry, the blobs and the consents against one another, both ways.

What each of them is compared with says ``ledger.integrity`` of rows and blobs; here stand promotions: that a
commit on ``main`` that names an evolution is the one which the ledger knows, that it rests on a verdict that is
computed again and on a consent whose token this home's key made, and that what the ledger calls promoted is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentos.domain import (
    Candidate,
    Consent,
    Evolution,
    EvolutionState,
    Json,
    Probe,
    SafetyRate,
    Trial,
    Verdict,
    dataclass,
    digest,
)
from agentos.errors import AgentOSError, NotFound, Unavailable, UserError
from agentos.evolver.promote.consent import genuine, misquoted, read_key
from agentos.evolver.promote.rebasing import misplaced, rebase_trailers
from agentos.home import Home
from agentos.ledger.audit import AuditHead, Noted
from agentos.ledger.blobs import BlobStore
from agentos.ledger.integrity import LedgerSnapshot, blob_faults, rows_faults, told
from agentos.ledger.reading import EvolutionRecords
from agentos.ledger.rows.codec import data_of, fields_of, from_text
from agentos.records.evolution import BEGAN_WITH
from agentos.registry.store import Registry

if TYPE_CHECKING:
    from agentos.registry.promotion import Promotion


# the beginning of a line of `audit_heads`
_CUT = re.compile(r"\0*[\d:T+-]{0,25}|[\d:T+-]{25} \d*(:[0-9a-f]{0,11})?")


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What was looked at and what is wrong. ``digests_since``: the first entry with digests, 0 for none."""

    head: AuditHead
    digests_since: int
    evolutions: int
    consents: int
    promotions: int
    faults: tuple[str, ...]


def verify_home(home: Home, noted: Sequence[Noted] = ()) -> AuditReport:
    """Look at everything, as it stands at this moment; the daemon may go on meanwhile."""
    with LedgerSnapshot(home.ledger) as reader:
        log = told(reader)
        faults = [*reader.chain_faults(noted), *rows_faults(reader, log)]
        try:
            faults += blob_faults(reader, home.blobs)
        except Unavailable as error:
            faults.append(f"the blobs were not looked at, for a row that names some cannot be read: {error}")
        faults += consent_faults(reader, home.consent_key)
        evolutions = _evolutions(reader, faults)
        registry = Registry(home.registry)
        for evolution in evolutions:
            try:
                faults += evolution_faults(home, reader, registry, reader.story(evolution.id))
            except AgentOSError as error:
                faults.append(f"{evolution.id} cannot be verified: {error}")
        promotions: Sequence[Promotion] = ()
        try:
            promotions = registry.promotions(began_with(reader))
            faults += [*promotion_faults(reader, promotions, home.ledger), *registry.tampered()]
        except AgentOSError as error:
            faults.append(f"the registry: {error}")
        return AuditReport(
            head=reader.head(),
            digests_since=log.since,
            evolutions=len(evolutions),
            consents=reader.rows("SELECT count(*) FROM consent")[0][0],
            promotions=len(promotions),
            faults=tuple(dict.fromkeys(faults)),
        )


def _evolutions(reader: LedgerSnapshot, faults: list[str]) -> list[Evolution]:
    """Those that can be read; to ``faults`` a sentence for each other one."""
    found = []
    for name, body in reader.rows("SELECT id, body FROM evolution ORDER BY seq"):
        try:
            found.append(from_text(Evolution, body))
        except Unavailable as error:
            faults.append(f"the evolution {name} cannot be read: {error}")
    return found


def noted_heads(path: Path) -> list[Noted]:
    """The heads in a file that the daemon sent them to, or that a person noted: the last word of each line.

    Of a line of the daemon that a power cut left half written nothing is known. Raises UserError for any other.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UserError(f"the heads in {path} cannot be read: {error.strerror}") from None
    return [
        (AuditHead.parse(line.split()[-1]), f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if not _CUT.fullmatch(line.strip())
    ]


def consent_faults(reader: LedgerSnapshot, key_path: Path, evolution_id: str = "") -> Iterator[str]:
    """Each consent whose token the home's key did not make, a sentence each."""
    where, values = ("WHERE evolution_id = ?", (evolution_id,)) if evolution_id else ("", ())
    rows = reader.rows(f"SELECT id, body FROM consent {where} ORDER BY seq", *values)  # noqa: S608 - as above
    if not rows:
        return
    try:
        key = read_key(key_path)
    except UserError as error:
        yield f"no consent can be checked: {error}"
        return
    for name, body in rows:
        try:
            stored = fields_of(body)
        except Unavailable as error:
            yield f"the consent {name} cannot be read: {error}"
            continue
        if not genuine(key, stored):
            yield (
                f"the consent {name} of {stored.get('principal')} was not given with this home's key "
                "(or the key was replaced since)"
            )


def evolution_faults(
    home: Home, reader: LedgerSnapshot, registry: Registry, story: EvolutionRecords
) -> list[str]:
    """What is different in a verdict that is computed again, or missing beside it, one sentence each."""
    # where nothing was ever judged nobody pays for the judge
    from agentos.evolver.replay.verification import borrowed, unfounded, untimely

    blobs = BlobStore(home.blobs)
    candidates = {item.id: item for item in story.candidates}
    stored = {name: _stored(reader, "verdict", name) for name in (item.id for item in story.verdicts)}
    faults = [
        *unfounded(
            story.evolution,
            story.verdicts,
            story.consents,
            story.candidates,
            lambda item: digest(stored[item.id]),
        )
    ]
    faults += borrowed(story.trials, lambda name: reader.find(Trial, id=name))
    for verdict in story.verdicts:
        candidate = candidates.get(verdict.candidate_id)
        if candidate is None:
            faults.append(f"{verdict.id}: its candidate {verdict.candidate_id} is not on record")
            continue
        try:
            faults += misquoted(registry, candidate)
            faults += misplaced(registry, candidate, story.trials)
            faults += untimely(candidate, story.trials, reader.arrived)
            again = computed_again(blobs, verdict, candidate, story.trials, story.rates)
            faults += [f"{verdict.id}: {fault}" for fault in again]
        except (AgentOSError, ValueError) as error:  # a blob that is gone, a policy that is none
            faults.append(f"{verdict.id} cannot be computed again: {error}")
    return list(dict.fromkeys(faults))


def computed_again(
    blobs: BlobStore,
    verdict: Verdict,
    candidate: Candidate,
    trials: Sequence[Trial],
    rates: Sequence[SafetyRate] = (),
) -> list[str]:
    """As ``judge.recompute``, by the policy that is stored with the verdict; of all of its evolution's trials and rates."""
    from agentos.evolver.documents import policy_from_json
    from agentos.evolver.verdict.gates import judged_rates
    from agentos.evolver.verdict.judge import recompute
    from agentos.evolver.verdict.pairing import judged_trials

    document = json.loads(blobs.get(verdict.policy_sha256))
    judged = judged_trials(candidate, trials)
    policy = policy_from_json(document)
    if verdict.policy_sha256 == digest(document):
        # what an earlier version stored lacks the keys that were added since: the same policy by another digest
        verdict = replace(verdict, policy_sha256=policy.sha256)
    return recompute(verdict, candidate, judged, policy, judged_rates(candidate, rates))


def began_with(reader: LedgerSnapshot) -> str:
    """The commit of the registry with which the ledger began: what is up to there another ledger vouches for."""
    for (body,) in reader.rows("SELECT body FROM probe ORDER BY seq LIMIT 1"):
        first = from_text(Probe, body)
        return first.snapshot.commit if first.reason == BEGAN_WITH else ""
    return ""


def promotion_faults(reader: LedgerSnapshot, promotions: Sequence[Promotion], ledger: Path) -> Iterator[str]:
    """Where commits on ``main`` and the ledger's evolutions do not agree, a sentence each.

    Nothing is said of an evolution that is there and cannot be read: that is a fault of its own.
    """
    known = {item.snapshot.commit for item in promotions}
    by_id = {item.id: item for item in _evolutions(reader, [])}
    for promotion in promotions:
        name = promotion.evolution
        if name in by_id or not reader.rows("SELECT 1 FROM evolution WHERE id = ?", name):
            yield from _commit_faults(reader, promotion, by_id.get(name), ledger)
    for evolution in by_id.values():
        if evolution.promoted is not None and evolution.promoted.commit not in known:
            yield f"{evolution.id} was promoted, and its commit {evolution.promoted.commit[:12]} is not on main"


def _commit_faults(
    reader: LedgerSnapshot, promotion: Promotion, evolution: Evolution | None, ledger: Path
) -> Iterator[str]:
    which = f"the commit {promotion.snapshot.commit[:12]} on main says that {promotion.evolution} made it"
    if evolution is None:
        yield f"{which}, which the ledger does not know"
        return
    if evolution.promoted != promotion.snapshot:
        if not _under_way(ledger, promotion):
            yield f"{which}, and the ledger knows of no such promotion"
        return
    given = {
        f"{item.principal} {item.id}": item
        for item in reader.find(Consent, evolution_id=evolution.id, candidate_id=evolution.candidate_id)
    }
    verdicts = reader.find(Verdict, evolution_id=evolution.id, candidate_id=evolution.candidate_id)
    judged = {digest(_stored(reader, "verdict", item.id)) for item in verdicts}
    wanted: dict[str, set[str]] = {
        "Evidence": {evolution.evidence_id},
        "Verdict": judged,
        "Consent": set(given),
        "Candidate-Tree": _trees(reader, evolution, verdicts),
        **_of_rebase(reader, evolution),
    }
    for name, right in wanted.items():
        if promotion.said.get(name) not in right:
            yield f"{which}, and its {name} is not the one in the ledger: {promotion.said.get(name)}"


def _of_rebase(reader: LedgerSnapshot, evolution: Evolution) -> dict[str, set[str]]:
    """What a commit on a newer base than that of the trials says beside."""
    chosen = reader.find(Candidate, id=evolution.candidate_id) if evolution.candidate_id else ()
    return {
        name: {word}
        for item in chosen
        if item.rebase is not None
        for name, word in rebase_trailers(item.snapshot, item.rebase).items()
    }


def _trees(reader: LedgerSnapshot, evolution: Evolution, verdicts: Sequence[Verdict]) -> set[str]:
    """What a commit of the evolution may hold: what was judged, or the same edit on the newer base on record."""
    chosen = reader.find(Candidate, id=evolution.candidate_id) if evolution.candidate_id else ()
    put = {item.rebase.snapshot.tree for item in chosen if item.rebase is not None}
    return put or {item.candidate_tree for item in verdicts}


def _under_way(ledger: Path, promotion: Promotion) -> bool:
    """Whether the commit was made a moment ago, and the ledger is about to say so."""
    with LedgerSnapshot(ledger) as now:
        try:
            evolution = now.get(Evolution, promotion.evolution)
        except NotFound:
            return False
    return evolution.state is EvolutionState.PROMOTING or evolution.promoted == promotion.snapshot


def _stored(reader: LedgerSnapshot, table: str, name: str) -> Json:
    """A record as it was stored: its digest does not change with fields that came since. Raises NotFound, Unavailable."""
    for (body,) in reader.rows(f"SELECT body FROM {table} WHERE id = ?", name):  # noqa: S608 - of this module
        return data_of(body)
    raise NotFound(f"there is no {table} {name}")
