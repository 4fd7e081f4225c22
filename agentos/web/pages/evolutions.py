"""The evolution's page: how it went from failing runs to a verdict, and what has become of it since."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agentos.daemon.offline import policy_of
from agentos.daemon.views.evolution_view import (
    Scene,
    base_text,
    chosen,
    grounds_beside,
    proof_of,
    scene_of,
    verdict_on,
)
from agentos.domain import (
    Arm,
    Candidate,
    Evolution,
    EvolutionState,
    InputFile,
    Json,
    Result,
    Run,
    Step,
    Task,
    Trial,
    TrialSet,
    Verdict,
)
from agentos.evolver.verdict.judge import Flip, flips
from agentos.evolver.verdict.pairing import judged_trials, varying
from agentos.ledger.listing import data_version
from agentos.ledger.reading import Reader
from agentos.plaintext import counted
from agentos.web.context import WebContext, duration, passes
from agentos.web.pages.charts import LEAST, TestCourse, progress_of
from agentos.web.pages.diffs import EditedFile, side_by_side

_EVIDENCE_MAX = 12  # failing runs that can be opened in place
_ROWS_MAX = 60  # tasks in the matrix of a set; what did not change is left out first
_UNNAMED = (TrialSet.HOLD_OUT, TrialSet.FRESH)  # of fresh work some is hidden
_STAGES = {
    EvolutionState.MINED: "found",
    EvolutionState.REPRODUCING: "reproduced",
    EvolutionState.PROPOSING: "proposed",
    EvolutionState.REPLAYING: "replayed",
    EvolutionState.AWAITING_CONSENT: "consent",
    EvolutionState.PROMOTING: "promoting",
    EvolutionState.PROBATION: "probation",
    EvolutionState.PROMOTED: "promoted",
}


@dataclass(frozen=True, slots=True)
class StageTime:
    """A stop on the rail. ``took``: seconds until the next one, None for the last."""

    name: str
    state: str
    at: datetime
    took: float | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class FailingRun:
    """A run of the evidence, opened in place."""

    run: Run
    task: Task
    step: Step | None  # where it failed
    args: Json
    inputs: Sequence[InputFile]


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A task, with each of its trials on both sides. Results are words."""

    flip: Flip
    name: str
    base: Sequence[Trial]
    candidate: Sequence[Trial]
    at_risk: bool
    varies: bool = False  # it is judged by its pairs, of which no single one is a flip


@dataclass(frozen=True, slots=True)
class Matrix:
    """A set of tasks. The hold-out has no rows: its tasks are named nowhere."""

    which: str
    rows: Sequence[MatrixRow]
    total: int
    before: int  # tasks that pass on the base
    after: int
    fixed: int
    broken: int
    # of tasks that vary, whose flips say nothing: the trials that passed on either side
    passed: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was said of a task before the trials, and what they showed."""

    name: str
    said: str
    came: str
    true: bool


@dataclass(frozen=True, slots=True)
class LiveWatch:
    """A promotion on probation: each live run that stands beside earlier ones, oldest first, with the logarithm of the
    e-value of "it passes less often" after it. At ``needed`` the promotion is rolled back."""

    says: str
    points: Sequence[tuple[bool, float]]
    needed: float


@dataclass(frozen=True, slots=True)
class EvolutionPage:
    """All that the page shows. ``rest`` are candidates beside the one that is shown."""

    scene: Scene
    candidate: Candidate | None
    verdict: Verdict | None
    grounds: Sequence[tuple[str, str]]  # of it, without what a person is asked
    proof: str
    stages: Sequence[StageTime]
    failing: Sequence[FailingRun]
    files: Sequence[EditedFile]
    matrices: Sequence[Matrix]
    courses: Sequence[TestCourse]  # of its sequential tests; none where every flip counts
    predictions: Sequence[Prediction]
    rest: Sequence[tuple[Candidate, str]]
    cost: Mapping[str, float | None]
    until: datetime | None  # when the probation ends at the latest
    # while it is on probation, once a live run was worse than one before the promotion
    watch: LiveWatch | None


def evolution_page(site: WebContext, evolution_id: str, rank: int = 0) -> EvolutionPage:
    """Gather it; ``rank`` chooses another candidate. Raises NotFound."""
    reader = site.reader
    scene = scene_of(site.home, reader, reader.story(evolution_id))
    story = scene.story
    main = chosen(story)
    candidate = next((item for item in story.candidates if item.rank == rank), None) or main
    before = scene.before if candidate is main else base_text(site.home, candidate)
    judged = judged_trials(candidate, story.trials) if candidate else []
    evolution = story.evolution
    verdict = verdict_on(story, candidate) if candidate else None
    watched = evolution.state is EvolutionState.PROBATION and evolution.ended_at
    return EvolutionPage(
        scene=scene,
        candidate=candidate,
        verdict=verdict,
        grounds=grounds_beside(verdict, scene.asked if candidate is main else None) if verdict else (),
        proof=proof_of(story, candidate) if candidate else "",
        stages=_stages(reader, scene),
        failing=_failing(reader, scene),
        files=edited_files(before, candidate),
        matrices=_matrices(scene, candidate, judged) if candidate else [],
        courses=progress_of(judged, policy_of(site.home).judge) if _varies(judged) else [],
        predictions=list(_predictions(scene, candidate, judged)) if candidate else [],
        rest=[(item, scene.fate(item)) for item in story.candidates if item is not candidate],
        cost=_cost(scene),
        until=evolution.ended_at + timedelta(days=scene.probation.days)
        if watched and evolution.ended_at
        else None,
        watch=_watch(site, evolution) if watched else None,
    )


def _watch(site: WebContext, evolution: Evolution) -> LiveWatch | None:
    """As the daemon sees it; computed again only after something was written."""
    from agentos.daemon.offline import offline_context
    from agentos.evolver.watch.live_regression import LiveArms, e_value, standing

    def look() -> LiveWatch | None:
        with offline_context(site.home) as parts:
            found = standing(parts, evolution, LiveArms(parts, evolution))
            alpha = parts.policy.probation.alpha
        if not found.pairs:
            return None
        values = [e_value(found.pairs[: number + 1]) for number in range(len(found.pairs))]
        points = [
            (pair.passed, max(math.log(value), LEAST) if value > 0 else LEAST)
            for pair, value in zip(found.pairs, values, strict=True)
        ]
        return LiveWatch(found.says(), points, -math.log(alpha))

    return site.kept.get(f"watch {evolution.id}", data_version(site.reader), 60, look)


def _varies(judged: Sequence[Trial]) -> bool:
    """Whether it was judged by fresh pairs; the policy is read only then, for that takes long."""
    return bool(varying(judged))


def edited_files(before: Mapping[str, str], candidate: Candidate | None) -> list[EditedFile]:
    """What the candidate changes, file by file."""
    if candidate is None:
        return []
    brought = candidate.migration.files if candidate.migration else {}
    changed = {**candidate.edit.files, **brought}
    return [
        EditedFile(path, side_by_side(before.get(path, ""), text)) for path, text in sorted(changed.items())
    ]


def _stages(reader: Reader, scene: Scene) -> list[StageTime]:
    evolution = scene.story.evolution
    moments = [
        (entry.event.partition(".")[2], datetime.fromisoformat(entry.at))
        for entry in reader.entries(subject=evolution.id)
        if entry.event.startswith("evolution.")
    ]
    moments = sorted([*moments, *evolution.began.items()], key=lambda moment: moment[1])
    if evolution.created_at and not any(state == EvolutionState.MINED for state, _ in moments):
        moments.insert(0, (EvolutionState.MINED.value, evolution.created_at))
    spans: dict[str, list[tuple[datetime, float | None]]] = {}
    for number, (state, at) in enumerate(moments):
        after = moments[number + 1][1] if number + 1 < len(moments) else None
        spans.setdefault(state, []).append((at, (after - at).total_seconds() if after else None))
    known = set(EvolutionState)
    found = []
    for state, times in spans.items():
        if state in known:
            took = [seconds for _, seconds in times if seconds is not None]
            open_ = times[-1][1] is None
            name = _STAGES.get(EvolutionState(state), state.replace("_", " "))
            found.append(
                StageTime(name, state, times[0][0], None if open_ else sum(took), _detail(scene, state))
            )
    return found


def _detail(scene: Scene, state: str) -> str:
    """How much there was of it, and what it cost."""
    story, told = scene.story, []
    if state == EvolutionState.MINED and story.evidence:
        told.append(counted(len(story.evidence.run_ids), "failing run"))
    if state == EvolutionState.PROPOSING:
        asked = story.evolution.asked
        told.append(counted(len(story.candidates), "edit"))
        told += [f"{duration(seconds)} of search"] if (seconds := sum(it.seconds for it in asked)) else []
    if state == EvolutionState.REPLAYING:
        own = [it.outcome.cost for it in story.trials if not it.taken_from]
        told.append(counted(len(story.trials), "trial"))
        told += [f"{duration(seconds)} of CPU"] if (seconds := sum(it.cpu_s for it in own)) else []
        told += [f"{usd:.4f} USD"] if (usd := sum(it.usd or 0.0 for it in own)) else []
    return ", ".join(told)


def _failing(reader: Reader, scene: Scene) -> list[FailingRun]:
    evidence = scene.story.evidence
    found = []
    for run_id in evidence.run_ids[:_EVIDENCE_MAX] if evidence else ():
        run = reader.run(run_id)
        task = reader.task(run.task_id)
        steps = reader.steps(run_id)
        failed = next((step for step in reversed(steps) if step.fault), steps[-1] if steps else None)
        args = dict(task.call.args) if task.call else None
        found.append(FailingRun(run, task, failed, args, task.inputs))
    return found


def _matrices(scene: Scene, candidate: Candidate, judged: Sequence[Trial]) -> list[Matrix]:
    rows: dict[TrialSet, list[Flip]] = {}
    for flip in flips(judged):
        rows.setdefault(flip.set, []).append(flip)
    return [_matrix(scene, candidate, judged, which, found) for which, found in rows.items()]


def _matrix(
    scene: Scene, candidate: Candidate, judged: Sequence[Trial], which: TrialSet, found: Sequence[Flip]
) -> Matrix:
    varies = varying(judged)
    shown = [] if which in _UNNAMED else sorted(found, key=lambda flip: flip.before is flip.after)
    return Matrix(
        which.value,
        [_row(scene, candidate, judged, flip) for flip in shown[:_ROWS_MAX]],
        len(found),
        sum(flip.before.value == "passes" for flip in found),
        sum(flip.after.value == "passes" for flip in found),
        sum(flip.fixed and flip.task_id not in varies for flip in found),
        sum(flip.broken and flip.task_id not in varies for flip in found),
        _passed([trial for trial in judged if trial.set is which]) if varies else None,
    )


def _passed(trials: Sequence[Trial]) -> tuple[str, str]:
    base, candidate = (passes([it for it in trials if it.arm is arm]) for arm in (Arm.BASE, Arm.CANDIDATE))
    return base, candidate


def _row(scene: Scene, candidate: Candidate, judged: Sequence[Trial], flip: Flip) -> MatrixRow:
    mine = sorted((trial for trial in judged if trial.task_id == flip.task_id), key=lambda it: it.repeat)
    return MatrixRow(
        flip,
        scene.names.get(flip.task_id, flip.task_id),
        [trial for trial in mine if trial.arm is Arm.BASE],
        [trial for trial in mine if trial.arm is Arm.CANDIDATE],
        flip.task_id in candidate.manifest.tasks_at_risk,
        any(trial.number for trial in mine),
    )


def _predictions(scene: Scene, candidate: Candidate, judged: Sequence[Trial]) -> Iterator[Prediction]:
    """Without what the hold-out showed, and what varies: there one task says nothing."""
    varies = varying(judged)
    table = {
        flip.task_id: flip
        for flip in flips(judged)
        if flip.set not in _UNNAMED and flip.task_id not in varies
    }
    for task_id, flip in table.items():
        name = scene.names.get(task_id, task_id)
        fix, risk = (
            task_id in candidate.manifest.predicted_fixes,
            task_id in candidate.manifest.tasks_at_risk,
        )
        came = "fixed" if flip.fixed else "broke" if flip.broken else f"still {flip.after.value}"
        if fix:
            yield Prediction(name, "will be fixed", came, flip.fixed)
        elif risk:
            yield Prediction(name, "may break", "broke" if flip.broken else "held", not flip.broken)
        elif flip.fixed or flip.broken:
            yield Prediction(name, "nothing", came, flip.fixed)


def _cost(scene: Scene) -> dict[str, float | None]:
    """What it used; a trial that was taken over from another evolution was paid there."""
    own = [trial.outcome.cost for trial in scene.story.trials if not trial.taken_from]
    prices = [cost.usd for cost in own]
    return {
        "trials": len(own),
        "cpu_s": sum(cost.cpu_s for cost in own),
        "tokens": sum(cost.tokens for cost in own),
        "usd": None if None in prices else sum(price for price in prices if price is not None),
        "search_s": sum(asked.seconds for asked in scene.story.evolution.asked),
    }


def live_results(scene: Scene) -> Sequence[Run]:
    """Runs since the promotion, oldest first."""
    return [run for run in reversed(scene.live) if run.outcome and run.outcome.result is not Result.WAITING]
