"""One evolution on one screen: evidence, cause, edit, predictions, trials, verdict, consent, since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from rich.text import Text

from agentos.cli.evolutions import state_text
from agentos.cli.evolutions.waiting_edit import (
    ScreenLine,
    beside_questions,
    diff_text,
    migration_lines,
    print_lines,
    waiting_lines,
)
from agentos.cli.output import clean, counted, moment_text
from agentos.daemon.views.evolution_view import Scene, chosen, grounds_beside, verdict_on
from agentos.domain import (
    Candidate,
    Evolution,
    EvolutionState,
    ReviewOpinion,
    Trial,
    TrialSet,
)
from agentos.evolver.verdict.judge import Flip, TaskTrials, flips
from agentos.evolver.verdict.pairing import guarding, idle_parts, judged_trials
from agentos.ledger.reading import EvolutionRecords

_STANDING_STYLE = {
    TaskTrials.PASSES: "green",
    TaskTrials.FAILS: "red",
    TaskTrials.FLAKY: "yellow",
    TaskTrials.ABSENT: "dim",
}
_RETRY = "`agentos evolution retry {id}` takes it up again"
_BY_HAND = ("`agentos registry edit {path}` repairs it by hand", _RETRY)
_UNDO = ("`agentos evolution revert {id}` undoes it",)
# What a person can do now, a line each; concepts.md tells the same at more length.
_NEXT: Mapping[EvolutionState, Sequence[str]] = {
    EvolutionState.AWAITING_CONSENT: (
        "`agentos evolution approve {id}` promotes it",
        "`agentos evolution reject {id}` declines it",
    ),
    EvolutionState.PROBATION: _UNDO,
    EvolutionState.PROMOTED: _UNDO,
    EvolutionState.REJECTED: _BY_HAND,
    EvolutionState.CANNOT_FIX: _BY_HAND,
    EvolutionState.CIRCUIT_BROKEN: _BY_HAND,
    EvolutionState.NO_IMPROVEMENT: ("nothing: it is tried again when new failures come",),
    EvolutionState.NOT_REPRODUCIBLE: ("look at the tasks' inputs and at the machine", _RETRY),
    EvolutionState.HELD: ("add tasks with checks for the same tool", _RETRY),
    EvolutionState.STALE: (_RETRY,),
    EvolutionState.ROLLED_BACK: (_RETRY,),
    EvolutionState.CANCELLED: (_RETRY,),
}
_STATE_WIDTH = 2 + max(map(len, EvolutionState))
_ROWS_MAX = 16
# Sets whose tasks are counted and not named, and what one of these is called.
_UNNAMED = {TrialSet.HOLD_OUT: "hidden task", TrialSet.FRESH: "fresh task"}


def change_text(evolution: Evolution) -> Text:
    """A line for a change of state: when, which, what it works on, and why; of an edit that waits, where it asks."""
    resource = evolution.diagnosis.resource if evolution.diagnosis else ""
    waits = evolution.state is EvolutionState.AWAITING_CONSENT
    why = f"`agentos evolution show {evolution.id}` asks you" if waits else evolution.reason
    line = Text(f"{datetime.now():%H:%M:%S}  {evolution.id}  ")
    line.append_text(state_text(evolution))
    line.append(" " * (_STATE_WIDTH - len(evolution.state.value)))
    line.append(clean("  ".join(part for part in (resource, why) if part)))
    line.rstrip()
    return line


def draw(scene: Scene, *, proof: bool = True) -> None:
    """Print the screen; without ``proof``, of an edit that waits, only what a person decides on."""
    print_lines(_lines(scene, proof=proof))


def draw_waiting(scene: Scene) -> None:
    """Print what a person is asked, just before they answer."""
    if scene.asked is not None:
        print_lines([*_head(scene), *waiting_lines(scene, scene.asked)])


def _lines(scene: Scene, *, proof: bool) -> Iterator[ScreenLine]:
    story = scene.story
    candidate = chosen(story)
    found = story.evolution.diagnosis
    yield from _head(scene)
    if scene.asked is None:
        yield from _proof(scene)
    elif candidate:
        yield from waiting_lines(scene, scene.asked)
        yield from beside_questions(scene, scene.asked)
        yield from _review(scene, candidate)
    yield from _consent(scene)
    yield from _since(scene)
    path = found.path if found else "RESOURCE"
    label = "Next"
    for advice in _advice(story):
        yield ScreenLine(Text(advice.format(id=story.evolution.id, path=path)), label=label)
        label = ""
    if scene.asked is None:
        return
    if proof:
        yield ScreenLine(Text(), 0)
        yield from _proof(scene)
    else:
        yield ScreenLine(Text(f"`agentos evolution show {story.evolution.id} --all` shows all proof"))


def _proof(scene: Scene) -> Iterator[ScreenLine]:
    candidate = chosen(scene.story)
    yield from _evidence(scene)
    found = scene.story.evolution.diagnosis
    if found and candidate and candidate.manifest.cause:
        yield ScreenLine(Text(scene.named(candidate.manifest.cause)), label="Cause")
        yield ScreenLine(Text(f"{found.layer.value}: {clean(found.why)}", style="dim"), label="Layer")
    elif found:
        yield ScreenLine(Text(clean(found.why)), label="Cause")
    if candidate:
        yield from _edit(scene, candidate)
        yield from _predicted(scene, candidate)
        yield from _trials(scene, candidate)
        yield from _ran(scene, candidate)
        yield from _verdict(scene, candidate)
        if scene.asked is None:
            yield from _review(scene, candidate)
        yield from _others(scene, candidate)
    yield from _probe(scene)


def _advice(story: EvolutionRecords) -> Sequence[str]:
    state = story.evolution.state
    failed = any(found.opinion is ReviewOpinion.FAIL for found in story.reviews)
    if state is EvolutionState.HELD and failed:  # more tasks would change nothing
        return _BY_HAND
    return _NEXT.get(state, ("`agentos evolution watch` follows it",))


def _head(scene: Scene) -> Iterator[ScreenLine]:
    evolution = scene.story.evolution
    resource = evolution.diagnosis.resource if evolution.diagnosis else ""
    yield ScreenLine(
        Text.assemble((evolution.id, "bold"), "  ", state_text(evolution), "  ", clean(resource)), 0
    )
    if evolution.reason and scene.asked is None:
        reason = scene.named(evolution.reason)
        yield ScreenLine(Text(reason), 0)
    yield ScreenLine(Text(), 0)


def _evidence(scene: Scene) -> Iterator[ScreenLine]:
    evidence = scene.story.evidence
    if evidence is None:
        yield ScreenLine(Text("missing", style="red"), label="Evidence")
        return
    yield ScreenLine(
        Text.assemble(
            f"{counted(len(evidence.task_ids), 'task')} failed alike ({evidence.fingerprint.klass})",
            (f", sealed {moment_text(evidence.sealed_at)} as {evidence.sha256[:12]}", "dim"),
        ),
        label="Evidence",
    )
    for run_id, task_id in zip(evidence.run_ids, evidence.task_ids, strict=True):
        yield ScreenLine(Text(clean(scene.names.get(task_id, task_id))), 2, cut=True)
        if why := clean(scene.failures.get(run_id, "")):
            yield ScreenLine(Text(why, style="dim"), 4, cut=True)
    evolution = scene.story.evolution
    if hidden := len(evolution.held_back):
        yield ScreenLine(
            Text(f"{hidden} of them hidden from every proposer; mended it has to be all the same"), 2
        )
    if evolution.given:
        yield ScreenLine(Text(gave_way(len(evolution.given))), 2)


def gave_way(count: int) -> str:
    """What a person is told where the hold-out gave tasks away."""
    tasks = "a task that fails" if count == 1 else f"{count} tasks that fail"
    return (
        f"Without it this failure would not recur: the hold-out gave {tasks} alike to the evidence, for good."
    )


def _edit(scene: Scene, candidate: Candidate) -> Iterator[ScreenLine]:
    origin = f"  ({candidate.plugin or candidate.proposer}, candidate {candidate.rank} of {len(scene.story.candidates)})"
    yield ScreenLine(Text.assemble(clean(candidate.edit.summary), (origin, "dim")), label="Edit")
    for line in diff_text(scene.before, candidate).split() if scene.asked is None else ():
        yield ScreenLine(line, 2)
    if (seen := candidate.behaviour) and seen.shown:
        yield ScreenLine(
            Text(
                f"differs from its base at {seen.shown_differ} of {seen.shown} inputs that were shown, at "
                f"{seen.beside_differ} of {seen.beside} beside them, and at {seen.around_guards_differ} of "
                f"{seen.around_guards} of and around guards"
            ),
            label="Behaves",
        )
        for sample in seen.samples:
            yield ScreenLine(Text(clean(sample), style="dim"), 2, cut=True)
    if again := candidate.reexamination:
        told = f"compared again with {counted(len(again.task_ids), 'fresh task')} that it passes among the known ones"
        yield ScreenLine(Text(told), 2)
    if scene.asked is None:
        yield from migration_lines(candidate)


def _predicted(scene: Scene, candidate: Candidate) -> Iterator[ScreenLine]:
    fixes, risks = candidate.manifest.predicted_fixes, candidate.manifest.tasks_at_risk
    told = [counted(len(fixes), "fix"), f"{counted(len(risks), 'task')} at risk"]
    if verdict := verdict_on(scene.story, candidate):
        told[0] += f" ({len(set(fixes) & set(verdict.fixed))} came true)"
        told[1] += f" ({len(set(risks) & set(verdict.broken))} broke), marked * below"
    yield ScreenLine(Text(", ".join(told if risks else [told[0], "no task at risk"])), label="Predicted")


def _trials(scene: Scene, candidate: Candidate) -> Iterator[ScreenLine]:
    """The table before/after. The hold-out is one row: its tasks are named nowhere."""
    judged = judged_trials(candidate, scene.story.trials)
    rows = flips(judged)
    if not rows:
        return
    mine = [trial for trial in scene.story.trials if trial.candidate_id == candidate.id]
    shown = [row for row in rows if row.set not in _UNNAMED]
    if len(shown) > _ROWS_MAX:  # what did not change says least
        shown = [row for row in shown if row.before is not row.after] or shown
    yield ScreenLine(Text.assemble("before and after", (f", {_where(mine)}", "dim")), label="Trials")
    for row in shown[:_ROWS_MAX]:
        mark = "*" if row.task_id in candidate.manifest.tasks_at_risk else ""
        name = clean(scene.names.get(row.task_id, row.task_id))
        yield ScreenLine(
            Text.assemble(
                (f"{row.before.value:<6}", _STANDING_STYLE[row.before]),
                " → ",
                (f"{row.after.value:<6}", _STANDING_STYLE[row.after]),
                f"  {row.set.value + mark:<8}  {name}",
            ),
            2,
            cut=True,
        )
    yield from _unnamed(rows, len(shown[:_ROWS_MAX]))
    for cause in dict.fromkeys(cause for trial in judged for cause in trial.drift):
        yield ScreenLine(Text(f"drift: {clean(cause)}", style="yellow"), 2)


def _ran(scene: Scene, candidate: Candidate) -> Iterator[ScreenLine]:
    """What of the edit ran in the guards and the hold-out, and what did not."""
    judged = judged_trials(candidate, scene.story.trials)
    rows = [row for row in flips(judged) if row.set in (TrialSet.GUARD, TrialSet.HOLD_OUT)]
    if not candidate.edited or not judged:
        return
    ran = len(guarding(candidate, judged))
    told = f"{ran} of {len(rows)} guards and hold-out tasks pass and ran what it edits"
    yield ScreenLine(Text(told), label="Ran")
    idle = idle_parts(candidate, judged)
    for part in candidate.edited[:_ROWS_MAX]:
        word, style = ("never", "yellow") if part in idle else ("ran", "green")
        yield ScreenLine(Text.assemble((f"{word:<6}", style), f"  {clean(part.name)}"), 2, cut=True)


def _unnamed(rows: Sequence[Flip], shown: int) -> Iterator[ScreenLine]:
    if more := sum(row.set not in _UNNAMED for row in rows) - shown:
        yield ScreenLine(Text(f"and {more} more (--json has all)", style="dim"), 2)
    for which, what in _UNNAMED.items():
        own = [row for row in rows if row.set is which]
        before = sum(row.before is TaskTrials.PASSES for row in own)
        after = sum(row.after is TaskTrials.PASSES for row in own)
        if own:
            told = f"{f'{before} → {after} pass':<15}  {which.value:<8}  {counted(len(own), what)}"
            yield ScreenLine(Text(told), 2)


def _verdict(scene: Scene, candidate: Candidate) -> Iterator[ScreenLine]:
    verdict = verdict_on(scene.story, candidate)
    if verdict is None:
        if candidate.screened:
            yield ScreenLine(Text(scene.named(f"screened out: {candidate.screened}")), label="Verdict")
        return
    style = {"promote": "bold green", "reject": "bold red", "hold": "bold yellow"}[verdict.decision.value]
    tree = (f"  (tree {verdict.candidate_tree[:12]})", "dim")
    yield ScreenLine(Text.assemble((verdict.decision.value, style), tree), label="Verdict")
    for kind, reason in grounds_beside(verdict, scene.asked):
        yield ScreenLine(Text.assemble(scene.named(reason), (f"  {clean(kind)}" if kind else "", "dim")), 2)


def _review(scene: Scene, candidate: Candidate) -> Iterator[ScreenLine]:
    style = {ReviewOpinion.PASS: "green", ReviewOpinion.WARN: "bold yellow", ReviewOpinion.FAIL: "bold red"}
    for found in scene.story.reviews:
        if found.candidate_id == candidate.id:
            by = (f"  ({clean(found.model or 'nobody was asked')})", "dim")
            yield ScreenLine(Text.assemble((found.opinion.value, style[found.opinion]), by), label="Review")
            for reason in found.reasons:
                yield ScreenLine(Text(scene.named(reason)), 2)


def _probe(scene: Scene) -> Iterator[ScreenLine]:
    if not scene.story.probes:
        return
    found = scene.story.probes[-1]
    if not found.passed:
        yield ScreenLine(Text(f"failed: {clean(found.reason)}", style="bold red"), label="Probe")
        return
    answered = f"{counted(len(found.passes), 'box')} answered for it"
    again = f", {counted(len(found.canaries), 'kind')} of past work done again" if found.canaries else ""
    yield ScreenLine(Text(f"passed in {found.seconds:.1f} s: {answered}{again}"), label="Probe")
    for one in found.passes[-1:]:
        told = f"starts in {one.start_s:.2f} s ({one.base_start_s:.2f} s before)"
        told += f", takes {one.memory_mb:.0f} MB ({one.base_memory_mb:.0f} MB before)"
        yield ScreenLine(Text(told, style="dim"))


def _consent(scene: Scene) -> Iterator[ScreenLine]:
    if scene.story.consents:
        given = scene.story.consents[-1]
        how = f" ({given.given})" if given.given else ""
        valid = (f"{how}, valid until {moment_text(given.expires_at)} ({given.id})", "dim")
        yield ScreenLine(Text.assemble(given.principal, valid), label="Consent")


def _since(scene: Scene) -> Iterator[ScreenLine]:
    evolution = scene.story.evolution
    if evolution.promoted is None or evolution.ended_at is None:
        return
    commit = evolution.promoted.commit[:12]
    if evolution.state is EvolutionState.ROLLED_BACK:
        told = f"promoted as commit {commit}, taken back {moment_text(evolution.ended_at)}"
    else:
        told = f"promoted {moment_text(evolution.ended_at)} as commit {commit}"
    yield ScreenLine(Text(told), label="Since")
    if evolution.state is not EvolutionState.ROLLED_BACK:
        passed = sum(run.passed for run in scene.live)
        yield ScreenLine(
            Text(f"{counted(len(scene.live), 'live task')} of new, checked work since, {passed} passed")
        )
    if evolution.state is EvolutionState.PROBATION:
        rules = scene.probation
        end = evolution.ended_at + timedelta(days=rules.days)
        varies = any(run.outcome is not None and run.outcome.cost.calls for run in scene.live)
        runs = rules.varying_runs if varies else rules.runs
        left = f"watched until {runs} such tasks have used it, or {moment_text(end)}"
        yield ScreenLine(Text(f"{left}: {min(len(scene.live), runs)} of {runs}"))
    if found := scene.story.attestation:
        true = len(set(found.predicted_fixes) & set(found.observed_fixes))
        told = f"{true} of {counted(len(found.predicted_fixes), 'predicted fix')} came true"
        broke = counted(len(found.observed_regressions), "regression")
        by = "the replay" if found.when == "promotion" else "live use"
        yield ScreenLine(Text(f"attested {found.verdict} by {by}: {told}, {broke}"))


def _others(scene: Scene, candidate: Candidate) -> Iterator[ScreenLine]:
    others = [item for item in scene.story.candidates if item.id != candidate.id]
    if others:
        yield ScreenLine(
            Text(
                f"{counted(len(others), 'other candidate')}; `agentos evolution diff {scene.story.evolution.id} --candidate N`"
            ),
            label="Others",
        )
    for item in others[:_ROWS_MAX]:
        yield ScreenLine(Text(f"{item.rank}. {clean(item.edit.summary)}"), 2)
        yield ScreenLine(Text(scene.fate(item), style="dim"), 5)


def _where(trials: Sequence[Trial]) -> str:
    return "; ".join(sorted({f"{trial.sandbox} (level {trial.level})" for trial in trials}))
