"""One evolution on one screen: evidence, cause, edit, predictions, trials, verdict, consent, since."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from agentos.cli.output import clean
from agentos.domain import Candidate, Evolution, EvolutionState, Result, Run, Trial, TrialSet, Verdict
from agentos.evolver.judge import Standing, flips, judged_trials
from agentos.ledger.reading import Story

STATE_STYLE = {
    EvolutionState.PROMOTED: "bold green",
    EvolutionState.PROBATION: "bold green",
    EvolutionState.AWAITING_CONSENT: "bold yellow",
    EvolutionState.HELD: "yellow",
    EvolutionState.ROLLED_BACK: "bold magenta",
    EvolutionState.REJECTED: "red",
    EvolutionState.CANNOT_FIX: "red",
    EvolutionState.CIRCUIT_BROKEN: "red",
}
_STANDING_STYLE = {
    Standing.PASSES: "green",
    Standing.FAILS: "red",
    Standing.FLAKY: "yellow",
    Standing.ABSENT: "dim",
}
_ROWS_MAX = 24


@dataclass(frozen=True, slots=True)
class Scene:
    """What the screen shows, gathered by the command."""

    story: Story
    names: Mapping[str, str]  # task id -> the task's name
    failures: Mapping[str, str]  # run id -> why it failed
    before: Mapping[str, str]  # registry path -> text on the base
    live: Sequence[Run]  # finished runs since the promotion, newest first


def state_text(evolution: Evolution) -> Text:
    """The state in its colour."""
    return Text(evolution.state.value, style=STATE_STYLE.get(evolution.state, "cyan"))


def chosen(story: Story) -> Candidate | None:
    """The candidate to show: the accepted one, else the last that was judged, else the first."""
    by_id = {candidate.id: candidate for candidate in story.candidates}
    wanted = story.evolution.candidate_id or (story.verdicts[-1].candidate_id if story.verdicts else "")
    return by_id.get(wanted) or (story.candidates[0] if story.candidates else None)


def diff_text(before: Mapping[str, str], candidate: Candidate) -> Text:
    """A coloured unified diff of the candidate's files."""
    text = Text()
    for path, new in sorted(candidate.edit.files.items()):
        for line in difflib.unified_diff(
            before.get(path, "").splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm=""
        ):
            text.append(clean(line) + "\n", style=_diff_style(line))
    return text


def _diff_style(line: str) -> str:
    if line.startswith(("---", "+++")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def draw(scene: Scene) -> None:
    """Print the screen."""
    console = Console(highlight=False)
    evolution = scene.story.evolution
    title = Text.assemble((evolution.id, "bold"), "  ", state_text(evolution), "  ", clean(evolution.reason))
    console.print(title)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, content in _sections(scene):
        grid.add_row(label, content)
    console.print(Padding(grid, (1, 0, 0, 0)))


def _sections(scene: Scene) -> Iterator[tuple[str, RenderableType]]:
    story = scene.story
    candidate = chosen(story)
    yield "Evidence", _evidence(scene)
    if story.evolution.diagnosis:
        found = story.evolution.diagnosis
        yield "Cause", Text(clean(candidate.manifest.cause if candidate else found.why))
        yield "Layer", Text(f"{found.layer.value}, {found.resource}: {clean(found.why)}")
    if candidate is None:
        return
    yield (
        "Edit",
        Group(
            Text(
                f"{clean(candidate.edit.summary)}  ({candidate.proposer}, candidate {candidate.rank} of {len(story.candidates)})"
            ),
            diff_text(scene.before, candidate),
        ),
    )
    yield (
        "Predicted",
        Text(
            f"fixes {_names(scene, candidate.manifest.predicted_fixes)}; "
            f"at risk {_names(scene, candidate.manifest.tasks_at_risk)}"
        ),
    )
    trials = [trial for trial in story.trials if trial.candidate_id == candidate.id]
    if trials:
        yield "Trials", _trials(scene, candidate)
    verdict = next((item for item in story.verdicts if item.candidate_id == candidate.id), None)
    if verdict:
        yield "Verdict", _verdict(verdict, trials)
    if story.consents:
        given = story.consents[-1]
        yield "Consent", Text(f"{given.principal}, valid until {_moment(given.expires_at)} ({given.id})")
    yield from _aftermath(scene)
    others = [_other(story, item) for item in story.candidates if item.id != candidate.id]
    if others:
        yield "Others", Text("\n").join(others[:_ROWS_MAX])


def _evidence(scene: Scene) -> RenderableType:
    evidence = scene.story.evidence
    if evidence is None:
        return Text("missing", style="red")
    head = (
        f"{len(evidence.task_ids)} failing task(s), {evidence.fingerprint.klass}, "
        f"sealed {_moment(evidence.sealed_at)} as {evidence.sha256[:12]}"
    )
    lines = [Text(head)]
    for run_id, task_id in zip(evidence.run_ids, evidence.task_ids, strict=True):
        lines.append(
            Text.assemble(
                "  ",
                clean(scene.names.get(task_id, task_id)),
                "  ",
                (clean(scene.failures.get(run_id, ""))[:160], "dim"),
            )
        )
    return Group(*lines[: _ROWS_MAX + 1])


def _trials(scene: Scene, candidate: Candidate) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("set", "task", "before", "after"):
        table.add_column(column)
    rows = flips(judged_trials(candidate, scene.story.trials))
    for row in rows[:_ROWS_MAX]:
        name = (
            "(hidden)" if row.set is TrialSet.HOLD_OUT else clean(scene.names.get(row.task_id, row.task_id))
        )
        table.add_row(
            row.set.value,
            name,
            Text(row.before.value, style=_STANDING_STYLE[row.before]),
            Text(row.after.value, style=_STANDING_STYLE[row.after]),
        )
    if len(rows) > _ROWS_MAX:
        table.add_row("", f"and {len(rows) - _ROWS_MAX} more", "", "")
    return table


def _verdict(verdict: Verdict, trials: Sequence[Trial]) -> RenderableType:
    style = {"promote": "bold green", "reject": "bold red", "hold": "bold yellow"}[verdict.decision.value]
    where = sorted({f"{trial.sandbox}, level {trial.level}" for trial in trials})
    return Group(
        Text(verdict.decision.value, style=style),
        *(Text(f"  {clean(reason)}") for reason in verdict.reasons),
        Text(f"  measured in {'; '.join(where)}; candidate tree {verdict.candidate_tree[:12]}", style="dim"),
    )


def _aftermath(scene: Scene) -> Iterator[tuple[str, RenderableType]]:
    evolution = scene.story.evolution
    if evolution.promoted is None:
        return
    passed = sum(run.outcome is not None and run.outcome.result is Result.PASSED for run in scene.live)
    lines = [Text(f"promoted {_moment(evolution.ended_at)} as commit {evolution.promoted.commit[:12]}")]
    if evolution.state is EvolutionState.ROLLED_BACK:
        lines = [Text(f"rolled back {_moment(evolution.ended_at)}: {clean(evolution.reason)}")]
    else:
        lines.append(Text(f"{passed} of {len(scene.live)} distinct tasks run since then with it passed"))
    found = scene.story.attestation
    if found:
        true = len(set(found.predicted_fixes) & set(found.observed_fixes))
        lines.append(
            Text(
                f"attested {found.verdict}: {true} of {len(found.predicted_fixes)} predicted fixes came true, "
                f"{len(found.observed_regressions)} regression(s)"
            )
        )
    yield "Since", Group(*lines)


def _other(story: Story, candidate: Candidate) -> Text:
    verdict = next((item for item in story.verdicts if item.candidate_id == candidate.id), None)
    fate = f"screened out: {candidate.screened}" if candidate.screened else "not tried"
    if verdict:
        fate = f"{verdict.decision.value}: {'; '.join(verdict.reasons)}"
    return Text.assemble(f"{candidate.rank}. {clean(candidate.edit.summary)}  ", (clean(fate), "dim"))


def _names(scene: Scene, ids: Sequence[str]) -> str:
    if not ids:
        return "nothing"
    shown = ", ".join(clean(scene.names.get(task_id, task_id)) for task_id in ids[:6])
    return shown + (f" and {len(ids) - 6} more" if len(ids) > 6 else "")


def _moment(moment: datetime | None) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M:%S}" if moment else "never"
