"""One evolution from evidence to its end, as a row of named, durable steps.

``evolve`` only arranges: every line that does something lives in the module of that stage. Each
step returns plain data and is safe to run again, so that after a crash the evolution goes on where
it stood, without repeating a side effect. Control flow depends on step results alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from agentos.domain import (
    Arm,
    Candidate,
    Consent,
    Decision,
    Evidence,
    Evolution,
    EvolutionState,
    Refusal,
    SafetyRate,
    Trial,
    TrialSet,
    Verdict,
    tier_of,
)
from agentos.evolver.diagnose.diagnosis import diagnose
from agentos.evolver.find.triage import shown_part, to_hide
from agentos.evolver.guards.assurance import SafetyContext
from agentos.evolver.guards.assurance.dynamic import in_breach
from agentos.evolver.history.proposers import charged
from agentos.evolver.promote import PromotionContext, ReviewContext
from agentos.evolver.promote.consent import is_overtaken
from agentos.evolver.promote.probing import probe_fault, probe_promotion
from agentos.evolver.promote.promotion import (
    DRIVING,
    consent_by_policy,
    promote,
    verdict_on,
    why_asked,
    why_waiting,
)
from agentos.evolver.promote.rebasing import take_up_stale
from agentos.evolver.promote.reexamination import reexamine, to_reexamine
from agentos.evolver.promote.review import held_back
from agentos.evolver.propose import BehaviourContext, ProposalContext
from agentos.evolver.propose.behaviour import behaves
from agentos.evolver.propose.proposing import propose, untouchable, workable
from agentos.evolver.replay import FreshContext
from agentos.evolver.replay.fresh import begin, fresh_runs, place_of, try_fresh_runs
from agentos.evolver.replay.trials import leader, replay_base, replay_candidate, replay_control, sieve
from agentos.evolver.select import InheritanceContext
from agentos.evolver.select.curate import TaskSets, choose_sets, is_hidden, varying, with_inherited
from agentos.evolver.select.renaming import bound_to_names
from agentos.evolver.verdict.doubts import FreshWork, fresh_work, wants_fresh
from agentos.evolver.verdict.gates import goes_by_names, judged_rates
from agentos.evolver.verdict.judge import flips, judge
from agentos.evolver.verdict.pairing import counted, judged_trials
from agentos.ports import Durable


class CycleContext(
    InheritanceContext,
    BehaviourContext,
    ProposalContext,
    FreshContext,
    PromotionContext,
    ReviewContext,
    SafetyContext,
    Protocol,
):
    """What the stages need that one evolution goes through; each is handed its own part of it."""


SCREENED = "screened"  # what trying a candidate came to, beside the decisions


def evolve(parts: CycleContext, evolution_id: str, durable: Durable) -> EvolutionState:
    """Take one evolution as far as it goes; returns its end state, or AWAITING_CONSENT."""
    failing = durable.step("reproduce", lambda: reproduce(parts, evolution_id))
    if not failing:
        return parts.evolution(evolution_id).state
    chosen = durable.step("diagnose", lambda: diagnose_and_curate(parts, evolution_id, failing))
    if not chosen:
        return parts.evolution(evolution_id).state
    sets = TaskSets(*(tuple(ids) for ids in chosen))
    candidate_ids = durable.step("propose", lambda: propose_candidates(parts, evolution_id, sets))
    left, tried, decisions = list(candidate_ids), list[str](), list[str]()
    while left and Decision.PROMOTE.value not in decisions:
        tried.append(durable.step(f"race {len(tried)}", partial(race, parts, evolution_id, left, sets)))
        left.remove(tried[-1])
        work = partial(try_candidate, parts, tried[-1], sets)
        decisions.append(durable.step(f"try {tried[-1]}", work))
    durable.step("conclude", lambda: conclude(parts, evolution_id, tried, decisions))
    if Decision.PROMOTE.value in decisions:
        durable.step("consent", lambda: seek_consent(parts, evolution_id))
        durable.step("probe", lambda: probe_if_consented(parts, evolution_id))
        durable.step("promote", lambda: promote_if_consented(parts, evolution_id))
    return parts.evolution(evolution_id).state


def finish_promotion(parts: CycleContext, evolution_id: str, durable: Durable) -> EvolutionState:
    """After a person's approval: promote, or end as stale."""
    durable.step("probe", lambda: probe_promotion(parts, parts.evolution(evolution_id)).state.value)
    durable.step("promote", lambda: promote_if_consented(parts, evolution_id))
    return parts.evolution(evolution_id).state


def reproduce(parts: CycleContext, evolution_id: str) -> list[str]:
    """The evidence that fails again on the base; ends the evolution when none does.

    In every trial; where the outcome varies, often enough for half of it to be gained (``flakiness``). Where trials
    of what seemed steady differ, all of the evidence varies.
    """
    evolution = parts.evolution(evolution_id)
    if evolution.state is EvolutionState.MINED:
        # The base is what is stable when the work begins, not when the evidence was sealed: other
        # evolutions may have been promoted while this one waited.
        evolution = replace(evolution, base=parts.snapshots.stable())
    evolution = parts.move(evolution, EvolutionState.REPRODUCING)
    evidence = parts.records.get(Evidence, evolution.evidence_id)
    sets = TaskSets(evidence.task_ids, (), (), varying(parts, evidence.task_ids))
    trials = replay_base(parts, evolution, sets.ids(TrialSet.EVIDENCE, varying=False), sets)
    if _differs(_seemed_steady(parts, evolution)):
        sets = replace(sets, varying=evidence.task_ids)
        trials = []
    _, fit = sieve(parts, evolution, sets.varying, sets)
    results: dict[str, set[bool]] = {}
    for trial in counted(trials):
        results.setdefault(trial.task_id, set()).add(trial.passed)
    failing = [
        task_id
        for task_id in evidence.task_ids
        if results.get(task_id) == {False} or (task_id in fit and fit[task_id].serves)
    ]
    if not failing:
        why = [_not_failing(trials, results)] if trials else []
        why += dict.fromkeys(found.says for found in fit.values())
        parts.move(evolution, EvolutionState.NOT_REPRODUCIBLE, "; ".join(why), end=True)
    return failing


def _differs(trials: Sequence[Trial]) -> bool:
    """Whether one task's trials on the base came out differently."""
    ended = {(trial.task_id, trial.passed) for trial in counted(trials)}
    return len(ended) > len({task_id for task_id, _ in ended})


def _not_failing(trials: Sequence[Trial], results: Mapping[str, set[bool]]) -> str:
    """Why none of the evidence fails on the base in every trial."""
    if not results and trials:
        return f"not replayable: {trials[0].outcome.reason}"
    lost = len({trial.task_id for trial in trials}) - len(results)
    return "its tasks pass now" + (f"; {lost} more cannot be replayed" if lost else "")


def diagnose_and_curate(parts: CycleContext, evolution_id: str, failing: list[str]) -> list[list[str]]:
    """Evidence, guards, hold-out, which of them vary, and which are held back, as ids; [] ends the evolution.

    It ends when nothing here may be edited.
    """
    evolution = parts.evolution(evolution_id)
    evidence = parts.records.get(Evidence, evolution.evidence_id)
    hidden = to_hide(parts, failing)
    diagnosis = diagnose(parts, shown_part(evidence, hidden), evolution.base)
    evolution = replace(evolution, diagnosis=diagnosis, held_back=hidden)
    parts.records.put(evolution)
    if fixed := untouchable(parts, diagnosis):
        parts.move(evolution, EvolutionState.CANNOT_FIX, fixed.reason, end=True)
        return []
    sets = choose_sets(
        parts,
        replace(evidence, task_ids=tuple(failing)),
        *(site.resource for site in workable(parts, diagnosis)),
    )
    if _differs(_seemed_steady(parts, evolution)):
        sets = replace(sets, varying=tuple(dict.fromkeys((*sets.varying, *sets.evidence))))
    return [list(ids) for ids in (sets.evidence, sets.guards, sets.hold_out, sets.varying, sets.held_back)]


def _seemed_steady(parts: CycleContext, evolution: Evolution) -> list[Trial]:
    """The base's trials of evidence that was not known to vary; of what goes by its names, under these alone."""
    made = [
        trial
        for trial in parts.records.find(Trial, evolution_id=evolution.id)
        if trial.arm is Arm.BASE and trial.repeat < parts.policy.replay.repeats
    ]
    bound = bound_to_names(made)
    return [trial for trial in made if not (trial.renamed and trial.task_id in bound)]


def propose_candidates(parts: CycleContext, evolution_id: str, sets: TaskSets) -> list[str]:
    """Ids of screened candidates, best first."""
    evolution = parts.move(parts.evolution(evolution_id), EvolutionState.PROPOSING)
    if parts.policy.judge.fresh_tasks:
        begin(parts, evolution)
    if evolution.diagnosis is None:
        raise ValueError(f"{evolution_id} was not diagnosed")
    return propose(parts, evolution, evolution.diagnosis, sets)


def race(parts: CycleContext, evolution_id: str, candidate_ids: Sequence[str], sets: TaskSets) -> str:
    """Which of the candidates is tried next."""
    evolution = parts.move(parts.evolution(evolution_id), EvolutionState.REPLAYING)
    candidates = [parts.records.get(Candidate, candidate_id) for candidate_id in candidate_ids]
    return leader(parts, evolution, candidates, sets).id


def try_candidate(parts: CycleContext, candidate_id: str, sets: TaskSets) -> str:
    """Replay and judge one candidate; the verdict is stored, its decision returned.

    One that breaks the contract of a harness is screened instead, before a trial is spent on it.
    """
    candidate = parts.records.get(Candidate, candidate_id)
    evolution = parts.move(parts.evolution(candidate.evolution_id), EvolutionState.REPLAYING)
    if standing := parts.records.find(Verdict, candidate_id=candidate_id):
        return standing[-1].decision.value  # an older version judged it, whose steps were others
    candidate, fitted = _beside_what_was_shown(parts, candidate, sets)
    if reason := fitted or (in_breach(parts, candidate) if _drives(candidate) else None):
        said = {"candidate": candidate.id, "reason": reason.reason}
        screened = replace(candidate, screened=reason.reason)
        parts.audit.note("candidate.screened", evolution.id, said, (screened,))
        return SCREENED
    replay_candidate(parts, evolution, candidate, with_inherited(parts, evolution, candidate, sets))
    replay_control(parts, evolution, candidate, trials_of(parts, candidate))
    # The policy is kept under the digest that the verdict names, so that it can be computed again.
    parts.blobs.put(parts.policy.text)
    trials = trials_of(parts, candidate)
    verdict = judge(candidate, trials, parts.policy)
    if verdict.decision is Decision.PROMOTE:
        parts.measured(evolution, candidate)
        if rates := rates_of(parts, candidate):
            verdict = judge(candidate, trials, parts.policy, rates)
    said = {"candidate": candidate.id, "decision": verdict.decision.value}
    parts.audit.note("verdict", evolution.id, said, (verdict,))
    return verdict.decision.value


def _beside_what_was_shown(
    parts: CycleContext, candidate: Candidate, sets: TaskSets
) -> tuple[Candidate, Refusal | None]:
    """The candidate with what was seen of it on generated inputs, and why it is refused for that, if it is."""
    behaviour, fitted = behaves(parts, candidate, sets) if parts.benches else (None, None)
    if behaviour != candidate.behaviour:
        candidate = replace(candidate, behaviour=behaviour)
        parts.records.put(candidate)
    return candidate, fitted


def trials_of(parts: CycleContext, candidate: Candidate) -> list[Trial]:
    """The stored trials that the candidate is judged on."""
    return judged_trials(candidate, parts.records.find(Trial, evolution_id=candidate.evolution_id))


def rates_of(parts: CycleContext, candidate: Candidate) -> list[SafetyRate]:
    """The stored rates of the safety probes that the candidate is judged on."""
    return judged_rates(candidate, parts.records.find(SafetyRate, evolution_id=candidate.evolution_id))


def conclude(parts: CycleContext, evolution_id: str, candidate_ids: list[str], decisions: list[str]) -> str:
    """Name the best accepted candidate, or the end state when there is none."""
    evolution = charged(parts, parts.evolution(evolution_id))
    if Decision.PROMOTE.value in decisions:
        best = candidate_ids[decisions.index(Decision.PROMOTE.value)]
        chosen = parts.records.get(Candidate, best)
        diagnosis = evolution.diagnosis and evolution.diagnosis.at(
            chosen.manifest.layer, chosen.manifest.files
        )
        parts.records.put(replace(evolution, candidate_id=best, diagnosis=diagnosis))
        return best
    if not candidate_ids:
        parts.move(evolution, EvolutionState.CANNOT_FIX, _nothing_to_try(parts, evolution), end=True)
    elif Decision.HOLD.value in decisions:
        held = candidate_ids[decisions.index(Decision.HOLD.value)]
        why = verdict_on(parts, held).reasons[0]
        parts.move(replace(evolution, candidate_id=held), EvolutionState.HELD, why, end=True)
    else:
        _end_without_any(parts, evolution, candidate_ids)
    return ""


def _nothing_to_try(parts: CycleContext, evolution: Evolution) -> str:
    if refused := parts.records.find(Candidate, evolution_id=evolution.id):
        which = "the only proposal was" if len(refused) == 1 else f"all {len(refused)} proposals were"
        last = "" if len(refused) == 1 else "the last one: "
        return f"nothing was tried: {which} screened out: {last}{refused[-1].screened}"
    efforts = [asked.search for asked in evolution.asked if asked.search]
    sites = evolution.diagnosis.sites if evolution.diagnosis else ()
    if not efforts and len(layers := dict.fromkeys(site.layer.value for site in sites)) > 1:
        return f"no proposer found an edit of {', '.join(layers)} that makes its failing tasks pass"
    at_fault = (evolution.diagnosis.path,) if evolution.diagnosis else ("this file",)
    searched = " or ".join((efforts[0].files if efforts else ()) or at_fault)
    reason = f"the search found no edit of {searched} that makes its failing tasks pass"
    time_s = parts.policy.propose.budget_s
    if efforts:
        more = "" if efforts[0].exhausted else "; for more, raise [propose] budget_s in policy.toml"
        return f"{reason}; {efforts[0]}{more}"
    if any(asked.seconds >= time_s for asked in evolution.asked):
        return f"{reason} in the {time_s:g} s that it may take ([propose] budget_s in policy.toml)"
    return reason


def _end_without_any(parts: CycleContext, evolution: Evolution, candidate_ids: list[str]) -> None:
    """A plateau is told from candidates that did something, but not enough or not only good."""
    candidates = [parts.records.get(Candidate, candidate_id) for candidate_id in candidate_ids]
    tried = [candidate for candidate in candidates if not candidate.screened]
    verdicts = [verdict_on(parts, candidate.id) for candidate in tried]
    if not verdicts:
        which = "the only candidate" if len(candidates) == 1 else f"each of {len(candidates)} candidates"
        parts.move(evolution, EvolutionState.REJECTED, f"{which}: {candidates[-1].screened}", end=True)
        return
    varies = any(trial.number for candidate in candidates for trial in trials_of(parts, candidate))
    only, last = "the only candidate", verdicts[-1].reasons[0]
    if any(_did_something(parts, *pair, varies=varies) for pair in zip(tried, verdicts, strict=True)):
        closest = max(verdicts, key=lambda verdict: len(verdict.fixed) - len(verdict.broken)).reasons[0]
        many = f"none of {len(tried)} candidates; the one that came closest: {closest}"
        reason = f"{only}: {last}" if len(tried) == 1 else many
        parts.move(evolution, EvolutionState.REJECTED, reason, end=True)
        return
    if varies:
        reason = f"{only if len(tried) == 1 else f'the last of {len(tried)} candidates'}: {last}"
    elif len(tried) == 1:
        reason = f"{only} did not change how any task ends"
    else:
        reason = f"none of {len(tried)} candidates changed how any task ends"
    parts.move(evolution, EvolutionState.NO_IMPROVEMENT, reason, end=True)


def _did_something(parts: CycleContext, candidate: Candidate, verdict: Verdict, *, varies: bool) -> bool:
    """Whether some task ends otherwise with it: also one without checks, or one that cannot be replayed any more.

    Where outcomes vary by themselves the verdict says it.
    """
    trials = trials_of(parts, candidate)
    if verdict.fixed or verdict.broken or goes_by_names(trials, parts.policy):
        return True
    return not varies and any(flip.before is not flip.after for flip in flips(trials))


def seek_consent(parts: CycleContext, evolution_id: str) -> str:
    """The policy's consent at once, or wait for a person's; nobody's where a review fails the edit."""
    evolution = parts.evolution(evolution_id)
    candidate = parts.records.get(Candidate, str(evolution.candidate_id))
    is_reviewed = parts.policy.review.wants(tier_of(candidate.manifest.files))
    if is_reviewed and (held := held_back(parts, evolution, candidate)) is not None:
        parts.move(evolution, EvolutionState.HELD, held.reason, end=True)
        return ""
    if (asked := why_waiting(parts, candidate)) is not None:
        # nobody is asked for what could not be served
        if (failed := probe_fault(parts, candidate)) is not None:
            parts.move(evolution, EvolutionState.ROLLED_BACK, failed.reason, end=True)
            return ""
        parts.move(evolution, EvolutionState.AWAITING_CONSENT, asked.reason)
        return ""
    return consent_by_policy(parts, candidate).id


def fresh_due(parts: CycleContext) -> list[str]:
    """The evolutions that wait for a person and have fresh work to be tried, or what it showed to be acted on. Cheap."""
    due = []
    for evolution in parts.records.find(Evolution, state=EvolutionState.AWAITING_CONSENT):
        candidate = parts.records.get(Candidate, str(evolution.candidate_id))
        trials = trials_of(parts, candidate)
        if not wants_fresh(candidate, trials, parts.policy) or is_overtaken(parts, candidate):
            continue
        found = fresh_runs(parts, evolution, candidate)
        settled = _is_settled(parts, candidate, fresh_work(candidate, trials, parts.policy))
        if found.runs or settled or to_reexamine(parts, candidate, trials):
            due.append(evolution.id)
        elif found.to > found.after:
            parts.cursor.advance(place_of(evolution.id), found.to, [], after=found.after)
    return due


def try_fresh(parts: CycleContext, evolution_id: str) -> str:
    """Try an edit that waits for a person on the work that came since, and end the wait where that says enough.

    Each line may be repeated after a kill: a trial that is there is not made again, what it showed is looked up. The
    state it is left in is returned.
    """
    evolution = parts.evolution(evolution_id)
    candidate = parts.records.get(Candidate, str(evolution.candidate_id))
    if evolution.state is not EvolutionState.AWAITING_CONSENT or is_overtaken(parts, candidate):
        return evolution.state.value
    found = fresh_runs(parts, evolution, candidate)
    fresh = _fresh_of(parts, candidate)
    # What a kill cut short is gone on with, whatever it seems to say: what breaks has to break each time.
    cut_short = any(run.task_id in fresh.tried for run in found.runs)
    if cut_short or (found.runs and not _is_settled(parts, candidate, fresh)):
        try_fresh_runs(parts, evolution, candidate, found.runs)
        fresh = _fresh_of(parts, candidate)
        told = {"tried": len(fresh.tried), "passed": len(fresh.passed), "broken": len(fresh.broken)}
        waiting = parts.evolution(evolution_id)
        asked = why_waiting(parts, candidate)
        if asked is not None and waiting.state is EvolutionState.AWAITING_CONSENT:
            waiting = replace(waiting, reason=asked.reason)
        note = ("fresh.tried", evolution_id, {"candidate": candidate.id, **told})
        parts.cursor.advance(place_of(evolution_id), found.to, [waiting], after=found.after, note=note)
    fresh = _fresh_of(parts, candidate)
    if later := to_reexamine(parts, candidate, trials_of(parts, candidate)):
        candidate = reexamine(parts, candidate, trials_of(parts, candidate), later)
    if _is_settled(parts, candidate, fresh):
        _settle(parts, parts.evolution(evolution_id), candidate, fresh)
    return parts.evolution(evolution_id).state.value


def _fresh_of(parts: CycleContext, candidate: Candidate) -> FreshWork:
    return fresh_work(candidate, trials_of(parts, candidate), parts.policy)


def _is_settled(parts: CycleContext, candidate: Candidate, fresh: FreshWork) -> bool:
    """Whether fresh work says enough: it breaks, or nobody has to be asked any more."""
    return bool(fresh.tried) and (bool(fresh.broken) or why_asked(parts, candidate) is None)


def _settle(parts: CycleContext, evolution: Evolution, candidate: Candidate, fresh: FreshWork) -> None:
    """The verdict with the fresh work in it; then the end, or the policy's consent, which has it promoted as ever."""
    if evolution.state is not EvolutionState.AWAITING_CONSENT:
        return  # a person decided meanwhile
    parts.blobs.put(parts.policy.text)
    verdict = judge(candidate, trials_of(parts, candidate), parts.policy, rates_of(parts, candidate))
    if verdict.decision is not Decision.PROMOTE and not fresh.broken:
        return  # by another policy than the first: a person decides, on what they were asked about
    said = {"candidate": candidate.id, "decision": verdict.decision.value}
    if not parts.records.find(Verdict, id=verdict.id):
        parts.audit.note("verdict", evolution.id, said, (verdict,))
    given = parts.records.find(Consent, candidate_id=candidate.id)
    if verdict.decision is Decision.PROMOTE:
        if all(item.expires_at <= parts.now() or item.verdict_sha256 != verdict.sha256 for item in given):
            consent_by_policy(parts, candidate)
    else:
        open_work = [task_id for task_id in fresh.broken if not is_hidden(parts, parts.journal.task(task_id))]
        why = f"{(open_work or ['a hidden task'])[0]} came after it was found, passes on its base and fails with it"
        parts.move(evolution, EvolutionState.REJECTED, why, end=True)


_NOT_PROMOTED = (EvolutionState.AWAITING_CONSENT, EvolutionState.HELD, EvolutionState.ROLLED_BACK)


def probe_if_consented(parts: CycleContext, evolution_id: str) -> str:
    """Probe what is about to be promoted, unless it waits for a person, was held, or nothing that drives runs is in it."""
    evolution = parts.evolution(evolution_id)
    if evolution.state in _NOT_PROMOTED:
        return evolution.state.value
    candidate = parts.records.get(Candidate, str(evolution.candidate_id))
    if not _drives(candidate):
        return evolution.state.value  # ``promote`` asks the trees
    return probe_promotion(parts, evolution).state.value


def _drives(candidate: Candidate) -> bool:
    """Whether it edits what runs are driven by."""
    return any(path.partition("/")[0] in DRIVING for path in candidate.edit.files)


def promote_if_consented(parts: CycleContext, evolution_id: str) -> str:
    """Promote unless it waits for a person, was held, or failed its probe."""
    evolution = parts.evolution(evolution_id)
    if evolution.state in _NOT_PROMOTED:
        return evolution.state.value
    if evolution.state is EvolutionState.STALE:  # by this very step, before a kill
        return take_up_stale(parts, evolution).state.value
    return promote(parts, evolution).state.value
