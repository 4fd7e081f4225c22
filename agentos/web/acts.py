"""What a person may do on the page that changes something: its effect is shown first, then it is done once.

Each act is done by the function that the command line uses. What was shown is bound to the state that it rested on
(of a consent: candidate, manifest and verdict), so that nobody approves what has changed since they looked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from agentos.daemon.offline import offline_context, policy_of
from agentos.daemon.views.evolution_view import Scene, base_text, chosen, scene_of, verdict_on
from agentos.domain import (
    AT_WORK,
    PROMOTED_STATES,
    Candidate,
    Consent,
    Evolution,
    EvolutionState,
    Verdict,
    digest,
)
from agentos.errors import Conflict, NotFound, UserError
from agentos.evolver.promote import promotion
from agentos.ledger.reading import EvolutionRecords, Reader
from agentos.ports import Records
from agentos.registry.promotion import RevertPlan
from agentos.resources import parse_id
from agentos.web.context import WebContext, duration
from agentos.web.pages.diffs import EditedFile
from agentos.web.pages.evolutions import edited_files
from agentos.web.pages.resources import version_difference
from agentos.web.sessions import WebSession

REASON_MAX = 2_000
_NO_REASON = "no reason given"


@dataclass(frozen=True, slots=True)
class ActEffect:
    """What an act would do. ``bound``: a digest of what it rests on."""

    title: str
    button: str
    sentences: Sequence[str]
    files: Sequence[EditedFile]
    bound: str
    back: str  # address of the page that it belongs to
    asks_reason: bool = True
    grave: bool = False  # it undoes or declines
    scene: Scene | None = None  # with what a person is asked, where they consent


def evolution_acts(story: EvolutionRecords) -> list[str]:
    """Which acts are possible now, the one that is asked for first."""
    evolution, acts = story.evolution, []
    standing = any(item.expires_at > datetime.now(UTC) for item in story.consents)
    if evolution.state is EvolutionState.AWAITING_CONSENT and not standing:
        acts.append("approve")
    if evolution.state in (EvolutionState.AWAITING_CONSENT, EvolutionState.HELD):
        acts.append("reject")
    if evolution.state in PROMOTED_STATES:
        acts.append("revert")
    if (
        evolution.state not in (AT_WORK - {EvolutionState.AWAITING_CONSENT})
        and evolution.state not in PROMOTED_STATES
    ):
        acts.append("retry")
    return acts


def evolution_effect(site: WebContext, act: str, evolution_id: str, principal: str) -> ActEffect:
    """What the act would do to an evolution, in whose name. Raises NotFound, and Conflict where it is not possible."""
    story = site.reader.story(evolution_id)
    evolution = story.evolution
    if act not in ("approve", "reject", "revert", "retry"):
        raise NotFound(f"There is nothing named {act[:40]!r} to be done.")
    if act not in evolution_acts(story):
        raise Conflict(f"{evolution.id} is {evolution.state.value}: there is nothing to {act}.")
    candidate = chosen(story)
    files = edited_files(base_text(site.home, candidate), candidate) if act in ("approve", "revert") else []
    title, button, sentences = _TOLD[act](_Asked(site, evolution, candidate, story, principal))
    grave = act in ("reject", "revert")
    return ActEffect(
        title,
        button,
        sentences,
        files,
        _bound(site, evolution),
        f"/evolutions/{evolution.id}",
        asks_reason=act in ("reject", "revert"),
        grave=grave,
        scene=scene_of(site.home, site.reader, story) if act == "approve" else None,
    )


@dataclass(frozen=True, slots=True)
class ConfirmedAct:
    """What somebody who was shown its effect confirmed: ``bound`` is what that rested on, ``said`` the form's fields."""

    act: str
    subject: str  # an evolution's id, a resource's name
    bound: str
    said: Mapping[str, str]
    who: WebSession


def do_evolution(site: WebContext, confirmed: ConfirmedAct) -> str:
    """Do it; the address to go to. Raises Conflict when it rests on something else than what was shown."""
    act, principal = confirmed.act, confirmed.who.principal
    why = reason_of(confirmed.said) or _NO_REASON
    with offline_context(site.home) as parts:
        evolution = parts.evolution(confirmed.subject)
        if _bound_to(parts.records, evolution, parts.policy.consent.expires_s) != confirmed.bound:
            raise Conflict(f"{evolution.id} has changed since you looked: look at it again.")
        if act == "approve":
            promotion.approve(parts, evolution, principal, confirmed.who.given)
        elif act == "reject":
            promotion.decline(parts, evolution, principal, why)
        elif act == "revert":
            promotion.take_back(parts, evolution, principal, why)
        else:
            evolution = promotion.measure_again(parts, evolution)
    return f"/evolutions/{evolution.id}?did={act}"


Told = tuple[str, str, Sequence[str]]


class _Asked(NamedTuple):
    """What an act is about, and in whose name."""

    site: WebContext
    evolution: Evolution
    candidate: Candidate | None
    story: EvolutionRecords
    principal: str


def _approve(asked: _Asked) -> Told:
    verdict = verdict_on(asked.story, asked.candidate) if asked.candidate else None
    holds = duration(policy_of(asked.site.home).consent.expires_s)
    return (
        "Approve this edit?",
        "Approve",
        [
            f"The daemon promotes it: new runs get {asked.evolution.resource} with the edit below.",
            "Live runs are watched after that; what makes them fail is taken back.",
            f"The consent is in your name, {asked.principal}, and for this tree and this verdict alone "
            f"({verdict.candidate_tree[:12] if verdict else '?'}). It holds for {holds}.",
        ],
    )


def _reject(asked: _Asked) -> Told:
    return (
        "Decline this evolution?",
        "Decline",
        [
            "Nothing is changed in what runs get.",
            "The same failure stays closed until somebody takes it up again.",
            f"The record says that {asked.principal} declined it.",
        ],
    )


def _revert(asked: _Asked) -> Told:
    return (
        "Take this promotion back?",
        "Take it back",
        [
            f"{asked.evolution.resource} gets a new version with the content that it had before; nothing is removed from "
            "the history.",
            "The failure that this mended will come again, and stays closed until somebody takes it up.",
        ],
    )


def _retry(asked: _Asked) -> Told:
    lead = (
        ["This one goes stale: it can be approved no more."]
        if asked.evolution.state is EvolutionState.AWAITING_CONSENT
        else []
    )
    return (
        "Take it up again?",
        "Take it up again",
        [*lead, "A new evolution begins from the same evidence, measured against what runs get now."],
    )


_TOLD = {"approve": _approve, "reject": _reject, "revert": _revert, "retry": _retry}


def _bound(site: WebContext, evolution: Evolution) -> str:
    return _bound_to(site.reader, evolution, policy_of(site.home).consent.expires_s)


def _bound_to(records: Reader | Records, evolution: Evolution, expires_s: float) -> str:
    """A digest of what a person looks at: the candidate, its verdict, and for how long a consent holds."""
    candidates = records.find(Candidate, evolution_id=evolution.id)
    picked = next((item for item in candidates if item.id == evolution.candidate_id), None)
    about = [picked.snapshot.tree, digest(picked.manifest)] if picked else []
    verdicts = records.find(Verdict, evolution_id=evolution.id)
    mine = [item.sha256 for item in verdicts if item.candidate_id == evolution.candidate_id]
    consents = [item.id for item in records.find(Consent, evolution_id=evolution.id)]
    return digest([evolution.id, evolution.state.value, about, mine, consents, expires_s])


# --- resources --------------------------------------------------------------------------------


def resource_effect(site: WebContext, act: str, name: str, version: str) -> ActEffect:
    """What pinning, unpinning or restoring would do. Raises NotFound and Conflict."""
    resource = parse_id(name)
    back = f"/resources/{resource}"
    stable = site.registry.stable()
    if resource not in site.registry.digests(stable) and act != "restore":
        raise NotFound(f"There is no resource {resource}.")
    if act == "pin":
        told = [f"No evolution touches {resource} from now on. You may still edit it yourself."]
        return ActEffect(f"Pin {resource}?", "Pin", told, [], digest([act, name]), back)
    if act == "unpin":
        told = [f"Evolutions may touch {resource} again."]
        bound = digest([act, name])
        return ActEffect(f"Unpin {resource}?", "Unpin", told, [], bound, back, asks_reason=False)
    if act != "restore":
        raise NotFound(f"There is nothing named {act[:40]!r} to be done.")
    plan = _plan(site, name, version)
    latest = site.registry.latest(resource)
    files = version_difference(site, name, latest.number if latest else "", version)
    told = [
        f"{resource} gets a new version with the content of {version}; nothing is removed from the history."
    ]
    if plan.set_aside:
        told.append(f"Set aside, because it has another form: {', '.join(plan.set_aside)}.")
    return ActEffect(
        f"Restore {resource} {version}?", "Restore", told, files, _plan_digest(plan), back, grave=True
    )


def do_resource(site: WebContext, confirmed: ConfirmedAct) -> str:
    """Do it; the address to go to."""
    act, said, resource = confirmed.act, confirmed.said, parse_id(confirmed.subject)
    reason = reason_of(said)
    if act == "pin":
        site.registry.pin(resource, reason)
    elif act == "unpin":
        site.registry.unpin(resource)
    else:
        plan = _plan(site, confirmed.subject, said.get("version", ""))
        if _plan_digest(plan) != confirmed.bound:
            raise Conflict(f"{resource} has changed since you looked: look at it again.")
        site.registry.revert(plan, reason, author=confirmed.who.author)
    return f"/resources/{resource}?did={act}"


def _plan(site: WebContext, name: str, version: str) -> RevertPlan:
    plan = site.registry.plan_restore(parse_id(name), version)
    if not plan.contents:
        raise Conflict(f"{name} has the content of {version[:40]} already.")
    return plan


def _plan_digest(plan: RevertPlan) -> str:
    return digest([plan.base.commit, plan.tree])


def reason_of(said: Mapping[str, str]) -> str:
    """What stands in the field ``reason``, "" for nothing. Raises UserError where it is too long."""
    reason = said.get("reason", "").strip()
    if len(reason) > REASON_MAX:
        raise UserError(f"The reason has {len(reason):,} characters, at most {REASON_MAX:,} are kept.")
    return reason
