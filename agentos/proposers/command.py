"""The proposer ``command``: any coding agent, in a box, over a checkout and the evidence as files.

Two errands, so that what is claimed cannot follow from what was done: the first leaves MANIFEST.toml
alone, the second, in a fresh copy, the edit that it announced. Of what is left only changed text files
on the surface that the manifest names are taken; everything else is told as refused.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase

from agentos import shipped
from agentos.domain import Budget, Cost, Json, Limits, digest
from agentos.evolver.propose.validation import is_on
from agentos.ports import Audit, Brief, Proposal
from agentos.proposers.coders import AgentJob, AgentJobResult, AgentRunner, CodingAgent, CodingAgentConfig
from agentos.proposers.evidence_export import dossier, plain, task_ids

TRIES = 2  # at the manifest; the second one is told what was wrong with the first
MANIFEST_MAX = 64 << 10  # bytes
TEXT_MAX = 600  # characters of a manifest's text
NAMES_MAX = 50  # entries of a manifest's list
FILE_MAX = 256 << 10  # bytes of an edited file
WHY_MAX = 500  # characters
PROCESSES = 256  # of a box, threads included: runtimes start dozens
TOLD_MAX = 20  # refusals that are noted; the rest is counted
CHECKOUT, MANIFEST, GOAL = "checkout", "MANIFEST.toml", "GOAL.md"
_PLACEHOLDERS = {
    "{checkout}": "{workspace}/" + CHECKOUT,
    "{goal_file}": "{workspace}/" + GOAL,
    "{order}": f"Read the file {GOAL} in the current directory, and do what it says.",
}


@dataclass(frozen=True, slots=True)
class ProgramManifest:
    """A manifest as the program filled it in."""

    cause: str
    edit: str
    files: tuple[str, ...]
    predicted_fixes: tuple[str, ...]
    tasks_at_risk: tuple[str, ...]
    why_this_layer: str


@dataclass(frozen=True, slots=True)
class TakenEdits:
    """Registry path -> new text, and a sentence for each thing that is left behind."""

    files: Mapping[str, str]
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandProposer:
    """``program`` are the coder's own files. What its errands did is noted in the audit log."""

    coders: CodingAgentConfig
    coder: CodingAgent
    program: Mapping[str, bytes]
    workshop: AgentRunner
    audit: Audit
    name = "command"

    def propose(self, brief: Brief) -> Iterator[Proposal]:
        """One edit, or one that says why there is none.

        Its budget is that of the coders' document, because a search's would be too short. Raises
        Unavailable when the machinery failed; asked again, it goes on from the record of its calls.
        """
        surface = tuple(surface_of(brief))
        if not surface:
            return
        sitting = _Sitting(self, replace(brief, surface=surface), self.coders.budget)
        claim = sitting.claim()
        edit = sitting.edit(claim) if claim else {}
        yield Proposal(
            cause=claim.cause if claim else "",
            summary=claim.edit if claim else "the coding agent handed in no manifest",
            operator=f"{self.name} ({self.coder.name})",
            files=edit,
            why_this_layer=claim.why_this_layer if claim else "",
            predicted_fixes=claim.predicted_fixes if claim else (),
            tasks_at_risk=claim.tasks_at_risk if claim else (),
            parents=tuple(parent.candidate_id for parent in brief.parents),
            unusable="" if edit else f"no edit: {sitting.why}"[:WHY_MAX],
            model=self.coder.name,
        )


class _Sitting:
    """One proposal in the making: hands out errands until its budget is used up."""

    def __init__(self, proposer: CommandProposer, brief: Brief, budget: Budget) -> None:
        self._proposer = proposer
        self._brief = brief
        self._budget = budget
        self.why = ""  # there is no manifest, or no edit
        checkout = {f"{CHECKOUT}/{path}": text.encode() for path, text in _checkout(brief).items()}
        self._given = {**checkout, **dossier(brief, proposer.name), MANIFEST: _authored(MANIFEST).encode()}

    def claim(self) -> ProgramManifest | None:
        """The manifest that the program filled in; None when it did not."""
        faults: list[str] = []
        for number in range(TRIES):
            phase = f"manifest-{number}"
            why = "\nThe manifest that you handed in before was refused:\n" + _list(faults) if faults else ""
            left = self._errand(phase, _authored("manifest.md").replace("{faults}", why))
            if left is None:
                return None
            found = read_claim(left.files.get(MANIFEST, b""), self._brief)
            if isinstance(found, ProgramManifest):
                self._note(phase, left, ())
                self._given[MANIFEST] = left.files[MANIFEST]
                return found
            faults = found
            self._note(phase, left, faults)
            self.why = f"{MANIFEST}: {faults[0]}"
        return None

    def edit(self, claim: ProgramManifest) -> Mapping[str, str]:
        """What is taken of the edit: registry path -> new text."""
        left = self._errand("edit", _authored("edit.md"))
        if left is None:
            return {}
        taken = take(self._given, left.files, claim.files, self._brief.surface)
        told = (*taken.refused, *left.refused)
        self._note("edit", left, told)
        self.why = f"nothing of what it left can be taken ({told[0]})" if told else "it changed nothing"
        return taken.files

    def _errand(self, phase: str, goal: str) -> AgentJobResult | None:
        """Its id names brief and phase, so that it is the same one when done again.

        None when there is no budget for it, or the program did not end by itself.
        """
        brief, coders, coder = self._brief, self._proposer.coders, self._proposer.coder
        if _is_used_up(self._budget):
            self.why = "its budget was used up before"
            return None
        surface = _list([f"`{pattern}`" for pattern in brief.surface])
        self._given[GOAL] = goal.replace("{surface}", surface).encode()
        place = digest([brief.base.tree, brief.layer, str(brief.resource), brief.path])[:8]
        left = self._proposer.workshop.run(
            AgentJob(
                id=f"{brief.evolution_id}-command-{place}-{phase}",
                evolution_id=brief.evolution_id,
                base=brief.base,
                command=tuple(map(_filled, coder.command)),
                program={
                    **self._proposer.program,
                    **{name: text.encode() for name, text in coder.files.items()},
                },
                files=dict(self._given),
                model=coder.model,
                budget=self._budget,
                limits=Limits(
                    memory_mb=coders.memory_mb, workspace_mb=coders.workspace_mb, processes=PROCESSES
                ),
            )
        )
        self._budget = _less(self._budget, left.cost)
        if left.fault is not None:
            self._note(phase, left, left.refused)
            self.why = plain(left.fault.message)
            return None
        return left

    def _note(self, phase: str, left: AgentJobResult, told: Sequence[str]) -> None:
        more = [f"and {len(told) - TOLD_MAX} more"] if len(told) > TOLD_MAX else []
        detail = {
            "coder": self._proposer.coder.name,
            "phase": phase,
            "fault": plain(left.fault.message) if left.fault else "",
            "refused": [*(plain(sentence) for sentence in told[:TOLD_MAX]), *more],
            "seconds": round(left.cost.wall_s, 1),
            "calls": left.cost.calls,
            "tokens": left.cost.tokens,
            "usd": left.cost.usd,
            "steps": left.steps_sha256,
        }
        self._proposer.audit.note("proposer.command", self._brief.evolution_id, detail)


# --- what comes back ----------------------------------------------------------------------------


def read_claim(content: bytes, brief: Brief) -> ProgramManifest | list[str]:
    """The manifest, or one sentence for each thing that is wrong with it."""
    if len(content) > MANIFEST_MAX:
        return [f"{MANIFEST} is longer than {MANIFEST_MAX} bytes"]
    try:
        document = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        return [f"{MANIFEST} is not TOML: {error}"]
    names = [item.name for item in fields(ProgramManifest)]
    faults = [f"{plain(key)[:60]} is not a key of it" for key in sorted(document.keys() - set(names))]
    tasks = set(task_ids(brief))
    seen = tasks | {case.task_id for case, _ in brief.working_calls}
    texts = {name: _text(document, name, faults) for name in ("cause", "edit", "why_this_layer")}
    paths = _names(document, "files", faults)
    fixes = _names(document, "predicted_fixes", faults)
    risks = _names(document, "tasks_at_risk", faults)
    faults += [f"files: {path} is outside the surface" for path in paths if not is_on(brief.surface, path)]
    faults += [f"predicted_fixes: there is no task {name}" for name in fixes if name not in tasks]
    faults += [f"tasks_at_risk: there is no task {name}" for name in risks if name not in seen]
    faults += [
        f"{name} is empty" for name, there in (("files", paths), ("predicted_fixes", fixes)) if not there
    ]
    if faults:
        return faults
    return ProgramManifest(files=paths, predicted_fixes=fixes, tasks_at_risk=risks, **texts)


def _text(document: Mapping[str, Json], name: str, faults: list[str]) -> str:
    value = document.get(name)
    text = " ".join(plain(value).split()) if isinstance(value, str) else ""
    if not text or len(text) > TEXT_MAX:
        faults.append(f"{name} must be a text of 1 to {TEXT_MAX} characters")
    return text


def _names(document: Mapping[str, Json], name: str, faults: list[str]) -> tuple[str, ...]:
    value = document.get(name)
    if (
        not isinstance(value, list)
        or len(value) > NAMES_MAX
        or not all(isinstance(one, str) for one in value)
    ):
        faults.append(f"{name} must be a list of at most {NAMES_MAX} texts")
        return ()
    return tuple(dict.fromkeys(plain(one)[:200] for one in value))


def take(
    given: Mapping[str, bytes], left: Mapping[str, bytes], named: Collection[str], surface: Sequence[str]
) -> TakenEdits:
    """What of the workspace is an edit. ``named`` are the paths of the manifest, the only ones taken."""
    files: dict[str, str] = {}
    refused = []
    for path in sorted(left):
        if left[path] == given.get(path):
            continue
        if why := _untaken(path, left[path], named, surface):
            refused.append(f"{path}: {why}")
        else:
            files[path.removeprefix(f"{CHECKOUT}/")] = left[path].decode()
    gone = sorted(path for path in given.keys() - left.keys() if path.startswith(f"{CHECKOUT}/"))
    return TakenEdits(files, (*refused, *(f"{path}: removed, but an edit removes nothing" for path in gone)))


def _untaken(path: str, content: bytes, named: Collection[str], surface: Sequence[str]) -> str:
    """Why a file is not taken, "" where it is."""
    own = path.removeprefix(f"{CHECKOUT}/")
    if own == path:
        return f"outside {CHECKOUT}/"
    if not is_on(surface, own):
        return "outside the surface"
    if own not in named:
        return "the manifest does not name it"
    if len(content) > FILE_MAX:
        return f"{len(content)} bytes, at most {FILE_MAX} are taken"
    try:
        content.decode()
    except UnicodeDecodeError:
        return "no UTF-8 text"
    return ""


def surface_of(brief: Brief) -> Iterator[str]:
    """The part of the surface that belongs to the brief's layer: deeper ones are asked for in their turn."""
    for pattern in brief.surface:
        kind, _, rest = pattern.partition("/")
        if rest and fnmatchcase(brief.layer.value, kind):
            yield f"{brief.layer.value}/{rest}"


# --- what goes in -------------------------------------------------------------------------------


def _checkout(brief: Brief) -> Mapping[str, str]:
    return {**brief.files, brief.path: brief.source} if brief.path else brief.files


def _filled(word: str) -> str:
    for name, value in _PLACEHOLDERS.items():
        word = word.replace(name, value)
    return word


def _authored(name: str) -> str:
    return (shipped.folder("evolver") / "coder" / name).read_text(encoding="utf-8")


def _list(items: Sequence[str]) -> str:
    return "\n".join(f"  - {item}" for item in items)


def _less(budget: Budget, cost: Cost) -> Budget:
    """What is left; a limit that is used up is below 0, not 0, which would mean none."""

    def rest(limit: float, used: float) -> float:
        left = limit - used
        return 0 if limit == 0 else left if left > 0 else -1

    return Budget(
        calls=int(rest(budget.calls, cost.calls)),
        tokens=int(rest(budget.tokens, cost.tokens)),
        usd=rest(budget.usd, cost.usd or 0.0),
        seconds=rest(budget.seconds, cost.wall_s),
    )


def _is_used_up(budget: Budget) -> bool:
    return min(budget.calls, budget.tokens, budget.usd, budget.seconds) < 0
