"""Diagnose: which layer and file does a failure belong to, and which steps say so?

The cheapest layer that explains the failure is named. A failure that the taxonomy calls a tool's
but that no tool's code took part in is the harness'; one that several tools share word for word is too.
Where an agent thought by itself, several layers are named in turn (``layers``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from agentos.domain import (
    PROMOTED_STATES,
    WITHOUT_SUCCESS,
    WRONG_ANSWER,
    Candidate,
    Diagnosis,
    EditTarget,
    Evidence,
    Evolution,
    Fingerprint,
    Json,
    Kind,
    Layer,
    Outcome,
    ResourceId,
    Result,
    Snapshot,
    Step,
    Task,
    folder_of,
    kind_of,
)
from agentos.errors import Invalid
from agentos.evolver.diagnose import DiagnosisContext
from agentos.evolver.find import FailureClass
from agentos.evolver.find.fingerprints import (
    ANOTHER_ORDER,
    SOMETHING_ELSE,
    failed_below,
    mapping_in,
    telling_step,
)
from agentos.evolver.find.mining import tool_path
from agentos.evolver.find.triage import runs_of
from agentos.evolver.history.proposers import archive, by_layer, ordered
from agentos.ports import ObservedRun
from agentos.programs import MANIFEST
from agentos.resources import read
from agentos.resources.documents import DOCUMENT, MAIN_FILE
from agentos.rules.document import Enforcement


def diagnose(parts: DiagnosisContext, evidence: Evidence, base: Snapshot) -> Diagnosis:
    """Layer, resource and file, and the reason in a sentence."""
    klass = next(item for item in parts.taxonomy if item.name == evidence.fingerprint.klass)
    tasks = parts.tasks(evidence.task_ids)
    steps = _steps(parts, evidence, called=tasks[-1].call is not None)
    count = f"{len(evidence.task_ids)} task{'s' if len(evidence.task_ids) > 1 else ''}"
    if tasks[-1].call is None:
        sites, why = ladder(parts, evidence, base, runs_of(parts, tasks))
        if not sites:
            why = "every layer was promoted twice for this failure, and it came back"
            return Diagnosis(Layer.HARNESS, evidence.fingerprint.resource, "", f"{why} ({count})", steps)
        if below := _below(parts, evidence):
            why = below
        first, *others = sites
        return Diagnosis(first.layer, first.resource, first.path, f"{why} ({count})", steps, tuple(others))
    sites, why = _of_a_call(parts, evidence, base, tasks[-1], klass)
    first, *others = sites
    return Diagnosis(first.layer, first.resource, first.path, f"{why} ({count})", steps, tuple(others))


def _of_a_call(
    parts: DiagnosisContext, evidence: Evidence, base: Snapshot, task: Task, klass: FailureClass
) -> tuple[list[EditTarget], str]:
    """Where a task that names its tool went wrong, the likeliest first, and why there."""
    fingerprint = evidence.fingerprint
    run = parts.journal.runs_of(task.key, 1)
    used = run[0].resources if run else ()
    path = _tool_file(parts, base, tool_path(task.call, used))
    files = parts.snapshots.files(base, path) if path else {}
    harness = fingerprint.resource
    if not harness.startswith(f"{Kind.HARNESS.value}/"):
        harness = next(
            (name for name in used if name.startswith(f"{Kind.HARNESS.value}/")), "harness/default"
        )
    in_harness = _in_harness(parts, base, harness, fingerprint)
    if klass.layer is Layer.HARNESS or harness == fingerprint.resource:
        return [in_harness], _why_harness(fingerprint, harness)
    if klass.layer is not Layer.TOOL:
        return [EditTarget(klass.layer, fingerprint.resource, path)], klass.says
    if path not in files:
        why = f"{klass.says}, and the file {path or 'of the tool'} is not in the registry"
        return [EditTarget(Layer.AGENT, fingerprint.resource, path)], why
    if shared := _shared_by(parts, fingerprint):
        why = f"{klass.says}, word for word the same in {shared} tools: what they share is {harness}"
        return [in_harness], why
    layer = Layer.SKILL if path.startswith("skill/") else Layer.TOOL
    tool = EditTarget(layer, folder_of(path), path)
    if (made := _promotions(parts, tool.resource, klass)) >= parts.policy.mine.deeper_after:
        why = (
            f"{klass.says}, after {made} promotions of {tool.resource} for such: "
            f"the fault lies deeper, in {harness}"
        )
        return [in_harness, tool], why
    if node := _outside_tools(parts, evidence):
        why = f"{klass.says}; {tool.resource} gave an answer, and the step '{node}' of {harness} refused it"
        return [tool, in_harness], why
    helped = ", with the modules beside it," if _has_helpers(parts, base, path) else ""
    why = f"{klass.says}; every failing run executed {path}{helped} and nothing else that may evolve"
    return [tool], why


def _has_helpers(parts: DiagnosisContext, base: Snapshot, path: str) -> bool:
    folder = path.rpartition("/")[0]
    beside = (file.rpartition("/") for file in parts.snapshots.files(base, folder))
    return any(above == folder and name.startswith("_") and name.endswith(".py") for above, _, name in beside)


def _tool_file(parts: DiagnosisContext, base: Snapshot, path: str) -> str:
    """The file of the tool: its source, or the document of one that is a program or has a server."""
    document = f"{path.removesuffix('.py')}/{MANIFEST}"
    known = parts.snapshots.files(base, path.removesuffix(".py")) if path.endswith(".py") else {}
    return document if document in known else path


def _below(parts: DiagnosisContext, evidence: Evidence) -> str:
    """Which agent below the failing runs failed first, in a sentence; "" where none did."""
    agents = {
        handed[0].agent
        for run_id in evidence.run_ids
        if (handed := failed_below(parts.journal.steps(run_id)))
    }
    names = ", ".join(f"{Kind.AGENT.value}/{name}" for name in sorted(agents))
    return (
        f"it failed at {names}, which was handed a part, in {evidence.fingerprint.resource}" if names else ""
    )


def _why_harness(fingerprint: Fingerprint, harness: str) -> str:
    message = fingerprint.signature.rpartition(" | ")[2]
    if message in (ANOTHER_ORDER, SOMETHING_ELSE):
        return f"{message}: every tool did its part, and {harness} puts it together"
    return f"the fault was raised in {harness}, not in the tool"


def _outside_tools(parts: DiagnosisContext, evidence: Evidence) -> str:
    """The node of the step that failed in every run though no call did; "" where there is none."""
    nodes = set()
    for run_id in evidence.run_ids:
        steps = parts.journal.steps(run_id)
        faulty = next((step for step in steps if step.fault is not None), None)
        nodes.add(faulty.node if faulty and any(step.node == "act" for step in steps) else "act")
    return nodes.pop() if len(nodes) == 1 and "act" not in nodes else ""


def _promotions(parts: DiagnosisContext, resource: str, klass: FailureClass) -> int:
    """Standing promotions of the resource for failures of this class, of late."""
    most, names = parts.policy.look_back.blamed, ("fingerprint_id", "evidence_id")
    standing = [
        found
        for state in PROMOTED_STATES
        for found in parts.records.newest_fields(Evolution, names, most, resource=resource, state=state)
    ]
    # of equal failures one is enough
    shown_by = {fingerprint: evidence for fingerprint, evidence in standing}
    classes = {name: parts.records.get(Evidence, shown_by[name]).fingerprint.klass for name in shown_by}
    return sum(classes[fingerprint] == klass.name for fingerprint, _ in standing)


def _in_harness(
    parts: DiagnosisContext, base: Snapshot, harness: str, fingerprint: Fingerprint
) -> EditTarget:
    """The harness' file that the fault names, else the one that its runs begin in."""
    files = parts.snapshots.files(base, f"{harness}/")
    named = [path for path in files if path.endswith(".py") and path in fingerprint.signature]
    return EditTarget(Layer.HARNESS, harness, max(named, key=len, default=f"{harness}/harness.py"))


def _shared_by(parts: DiagnosisContext, fingerprint: Fingerprint) -> int:
    """How many resources failed with this message, if they are enough to clear each of them; else 0."""
    message = fingerprint.signature.rpartition(" | ")[2]
    if not message:
        return 0
    resources = {
        sighting.fingerprint.resource
        for sighting in parts.records.newest_sightings({fingerprint.klass}, parts.policy.look_back.alike)
        if sighting.fingerprint.signature.rpartition(" | ")[2] == message and not sighting.hidden
    }
    return len(resources) if len(resources) >= parts.policy.mine.shared_by else 0


def _steps(parts: DiagnosisContext, evidence: Evidence, *, called: bool) -> tuple[str, ...]:
    """For each run of the evidence, the step by which its failure is told."""
    found = []
    for run_id in evidence.run_ids:
        if steps := parts.journal.steps(run_id):
            found.append(f"{run_id}#{telling_step(steps, called=called)}")
    return tuple(found)


# --- The ladder: where a failure of an agent that thinks may be mended, the cheapest layer first
# No single step of such a run is "the" fault: a memory, a line of the prompt, a skill, a tool or the loop
# itself may each be what was missing. What the runs show decides where to begin; every layer that has a
# proposer gets its turn, and the trials decide. The others follow by what edits of them achieved for their
# cost so far (``scheduling``). A layer that failed this failure before goes to the end, one that was promoted
# twice for it without an end to it is left out: then it lies deeper.


LADDER = (
    Layer.MEMORY, Layer.PROMPT, Layer.SKILL, Layer.TOOL, Layer.AGENT, Layer.ENVIRONMENT, Layer.RULE, Layer.HARNESS,
)  # fmt: skip
_STOPS = frozenset({"limit", "loop", "steps", "empty", "malformed", "nonsense"})  # of the loop, not of a tool
_NO_TOOL = frozenset({"unknown_tool"})
_SHORT = frozenset({"limit", "steps"})
PAGE = MAIN_FILE[Kind.SKILL]


def ladder(
    parts: DiagnosisContext, evidence: Evidence, base: Snapshot, runs: Sequence[ObservedRun]
) -> tuple[list[EditTarget], str]:
    """The sites in the order in which they are tried, and why the first one is first.

    ``runs`` are those of the evidence and others of the same work, all of tasks without a call.
    """
    agent = runs[0].task.agent if runs else "default"
    settings = _settings(parts, base, ResourceId(Kind.AGENT, agent))
    first, why = _start(
        runs, next((item for item in parts.taxonomy if item.name == evidence.fingerprint.klass), None)
    )
    known = archive(parts)
    bounds = _bounds(parts, base, settings, runs)
    apart = {layer for layer in (Layer.AGENT, Layer.ENVIRONMENT) if layer not in bounds}
    others = [layer for layer in LADDER if layer is not first and layer not in apart]
    order = [first, *ordered(others, lambda layer: by_layer(known, layer), parts.policy.propose)]
    failed, promoted = _tried(parts, evidence)
    order = [layer for layer in order if promoted[layer] < parts.policy.mine.deeper_after]
    order.sort(key=lambda layer: failed[layer])  # stable: the order above where none failed
    if order and order[0] is not first:
        why = f"{why}; the {first.value} layer was tried before and did not end it"
    if rule := _holding_rule(runs):
        why = (
            f"{rule} held a call back in most failing runs and in no passing one; no evolution weakens a rule, so if it "
            f"goes too far, a person has to change it: `agentos registry edit {rule}`"
        )
    sites = [_site(parts, base, layer, agent, settings) for layer in order]
    page = [*_read_page(parts, base, runs)] if Layer.SKILL in order else []
    sites = [*sites, *page] if failed[Layer.SKILL] else [*page, *sites]
    return [*_faulty_tool(parts, base, runs, evidence), *sites], why


def _start(runs: Sequence[ObservedRun], klass: FailureClass | None) -> tuple[Layer, str]:
    """Where to begin, by what the runs show."""
    failing = [seen for seen in runs if not seen.run.passed]
    if sign := _loop_sign(runs):
        return Layer.HARNESS, f"{sign}, in most failing runs and in no passing one"
    if klass is not None and klass.layer is Layer.HARNESS:
        return Layer.HARNESS, klass.says
    ends = Counter(_end(seen) for seen in failing)
    if failing and sum(ends[end] for end in _NO_TOOL) * 2 > len(failing):
        return Layer.TOOL, "most failing runs asked for a tool that there is not"
    if failing and sum(ends[end] for end in _STOPS) * 2 > len(failing):
        return (
            Layer.SKILL,
            "most failing runs were stopped before they came to an answer: they lack a way to do it",
        )
    keys = {seen.task.key for seen in failing}
    if any(seen.run.passed and seen.task.key in keys for seen in runs):
        return (
            Layer.MEMORY,
            "runs of the same task pass and fail: what the passing ones did can be remembered",
        )
    return (
        Layer.MEMORY,
        "the agent's answers are wrong, and no step of a tool failed: the cheapest layer goes first",
    )


def _holding_rule(runs: Sequence[ObservedRun]) -> str:
    """The rule that acted in more than half of the failing runs, and in no passing one; "" where there is none."""
    acted = [(seen.run.passed, {*_rules_in(seen)}) for seen in runs]
    failing = Counter(rule for passed, rules in acted if not passed for rule in sorted(rules))
    count = sum(not passed for passed, _ in acted)
    most = ((rule, often) for rule, often in failing.most_common(1) if often * 2 > count)
    return next(
        (rule for rule, _ in most if not any(passed and rule in rules for passed, rules in acted)), ""
    )


def _rules_in(seen: ObservedRun) -> Iterator[str]:
    for step in seen.steps:
        noted = mapping_in(step.action) if step.node == Kind.RULE else {}  # as the kernel notes them
        rule, acted = noted.get("rule"), mapping_in(step.observation).get("acted")
        held = acted is True and noted.get("enforce") != Enforcement.REPLACE
        if held and isinstance(rule, str) and rule.startswith(f"{Kind.RULE}/"):
            yield rule


def _loop_sign(runs: Sequence[ObservedRun]) -> str:
    """What the loop itself did wrong in more than half of the failing runs, and never in a passing one."""
    signs = [(seen.run.passed, astray(seen.run.outcome, seen.steps)) for seen in runs]
    failing = Counter(sign for passed, sign in signs if not passed)
    for sign, count in failing.most_common(1):
        if sign and count * 2 > failing.total() and (True, sign) not in signs:
            return sign
    return ""


def _end(seen: ObservedRun) -> str:
    outcome = seen.run.outcome
    if outcome is not None and outcome.fault is not None:
        return outcome.fault.type
    return next((step.fault.type for step in reversed(seen.steps) if step.fault), "")


def _faulty_tool(
    parts: DiagnosisContext, base: Snapshot, runs: Sequence[ObservedRun], evidence: Evidence
) -> Iterator[EditTarget]:
    """The tool that the failure is named by, as one below the runs may be; else whose fault most failing runs hold."""
    failing = [seen for seen in runs if not seen.run.passed]
    named = evidence.fingerprint.signature.partition(" | ")[0]
    below = named.startswith(("tool/", "skill/")) and any(failed_below(seen.steps) for seen in failing)
    if below and parts.snapshots.files(base, named):
        layer = Layer.SKILL if named.startswith("skill/") else Layer.TOOL
        yield EditTarget(layer, folder_of(named), named)
        return
    paths = Counter(path for seen in failing for path in dict.fromkeys(_broken(seen)))
    for path, count in paths.most_common(1):
        if count * 2 > len(failing) and path in parts.snapshots.files(base, path):
            layer = Layer.SKILL if path.startswith("skill/") else Layer.TOOL
            yield EditTarget(layer, folder_of(path), path)


def _read_page(parts: DiagnosisContext, base: Snapshot, runs: Sequence[ObservedRun]) -> Iterator[EditTarget]:
    """The page of the skill that most failing runs read, and no more of the passing ones than of these: it may mislead.

    Of pages that as many read the first that was read.
    """
    pages = [(seen.run.passed, dict.fromkeys(_pages(seen))) for seen in runs]
    failing = Counter(page for passed, read_ones in pages if not passed for page in read_ones)
    passing = Counter(page for passed, read_ones in pages if passed for page in read_ones)
    count = {good: sum(passed is good for passed, _ in pages) for good in (True, False)}
    for page, often in failing.most_common(1):
        misled = passing[page] * count[False] <= often * count[True]
        if often * 2 > count[False] and misled and page in parts.snapshots.files(base, page):
            yield EditTarget(Layer.SKILL, folder_of(page), page)


def _pages(seen: ObservedRun) -> Iterator[str]:
    """Paths of the skills' pages that a run read."""
    for step in seen.steps:
        action = mapping_in(step.action)
        if step.node == "act" and step.fault is None and action.get("tool") == "read_skill":
            args = mapping_in(action.get("args"))
            if isinstance(name := args.get("skill"), str) and args.get("file") in (None, "", PAGE):
                yield f"{Kind.SKILL.value}/{name}/{PAGE}"


def _bounds(
    parts: DiagnosisContext, base: Snapshot, settings: Mapping[str, Json], runs: Sequence[ObservedRun]
) -> set[Layer]:
    """Of agent and environment those whose document may be what holds the work back: a limit, or a list of tools."""
    failing = [seen for seen in runs if not seen.run.passed]
    short = sum(_ran_short(seen) for seen in failing) * 2 > len(failing)
    found = set()
    if (short and settings.get("limits")) or any(
        settings.get(key, ["*"]) != ["*"] for key in ("tools", "skills")
    ):
        found.add(Layer.AGENT)
    box = ResourceId(Kind.ENVIRONMENT, str(settings.get("environment", "default")))
    if short and _settings(parts, base, box).get("limits"):
        found.add(Layer.ENVIRONMENT)
    return found


def _ran_short(seen: ObservedRun) -> bool:
    """Whether it had to end before it was done: by a limit, or asked for its last word, which offers no tools any more."""
    outcome = seen.run.outcome
    ended = outcome is not None and outcome.result in (Result.BUDGET, Result.TIMEOUT)
    if ended or _end(seen) in _SHORT:
        return True
    offered = [mapping_in(step.action).get("tools") for step in seen.steps if step.node == "think"]
    return len(offered) > 1 and offered[-1] == 0 and bool(offered[0])


def _broken(seen: ObservedRun) -> Iterator[str]:
    for step in seen.steps:
        own = step.fault is not None and step.fault.type not in {"input", "effect", "not_found", *_NO_TOOL}
        if own and isinstance(step.action, Mapping) and isinstance(step.action.get("path"), str):
            yield step.action["path"]


def _tried(parts: DiagnosisContext, evidence: Evidence) -> tuple[Counter[Layer], Counter[Layer]]:
    """By layer: evolutions of this failure that ended without success, and promotions."""
    failed: Counter[Layer] = Counter()
    promoted: Counter[Layer] = Counter()
    for past in parts.records.newest(
        Evolution, parts.policy.look_back.same_failure, fingerprint_id=evidence.fingerprint.id
    ):
        candidates = parts.records.find(Candidate, evolution_id=past.id)
        if past.state in WITHOUT_SUCCESS:
            failed.update({candidate.manifest.layer for candidate in candidates if not candidate.screened})
        elif past.state in PROMOTED_STATES:
            promoted.update(item.manifest.layer for item in candidates if item.id == past.candidate_id)
    return failed, promoted


def _settings(parts: DiagnosisContext, base: Snapshot, resource: ResourceId) -> Mapping[str, Json]:
    try:
        return read(resource, parts.snapshots.files(base, f"{resource}/")).settings
    except Invalid:
        return {}


def _site(
    parts: DiagnosisContext, base: Snapshot, layer: Layer, agent: str, settings: Mapping[str, Json]
) -> EditTarget:
    """A new skill, tool or rule is the agent's matter: what uses the agent is what it may break."""
    if layer in (Layer.SKILL, Layer.TOOL, Layer.RULE):
        return EditTarget(layer, f"agent/{agent}", "")
    name, file = {
        Layer.MEMORY: ("default", "memory.md"),
        Layer.PROMPT: (settings.get("prompt", "default"), "prompt.md"),
        Layer.AGENT: (agent, DOCUMENT),
        Layer.ENVIRONMENT: (settings.get("environment", "default"), DOCUMENT),
        Layer.HARNESS: (settings.get("harness", "default"), "harness.py"),
    }[layer]
    path = f"{layer.value}/{name}/{file}"
    return EditTarget(layer, f"{layer.value}/{name}", path if parts.snapshots.files(base, path) else "")


# --- Signs in a run that thought that the harness is to blame: what the model asked for is not what came of it. They
# concern the dispatch of calls, what of the results is told to the model, and when to stop.

NOT_MADE = "calls that the model asked for were not made as it asked"
NOT_TOLD = "what the calls gave was not told to the model"
WRONG_STOP = "the run stopped though the model had asked for calls"


def astray(outcome: Outcome | None, steps: Sequence[Step]) -> str:
    """What the loop did wrong in a run that thought, "" where nothing shows it."""
    for thought, acts, following in _thoughts(steps):
        asked = mapping_in(thought.observation).get("calls")
        if not isinstance(asked, list) or mapping_in(thought.observation).get("goto") != "act":
            continue
        if following is None:
            if outcome is not None and kind_of(outcome.fault) in WRONG_ANSWER:
                return WRONG_STOP
        elif len(acts) < len(asked) and mapping_in(following.action).get(
            "tools"
        ):  # else they ran out of steps
            return NOT_MADE
        elif _told(following) - _told(thought) < 1 + len(asked) and not _shortened(thought, following):
            return NOT_TOLD
    return ""


def _thoughts(steps: Sequence[Step]) -> Iterator[tuple[Step, list[Step], Step | None]]:
    """Each thought with the calls that came of it, and the thought after it."""
    places = [place for place, step in enumerate(steps) if step.node == "think"]
    for place, after in zip(places, [*places, None][1:], strict=True):
        between = steps[place + 1 : after]
        acts = [step for step in between if step.node == "act"]
        yield steps[place], acts, None if after is None else steps[after]


def _told(thought: Step) -> int:
    """Messages in the request of a thought."""
    count = mapping_in(thought.action).get("messages")
    return count if isinstance(count, int) else 0


def _shortened(thought: Step, following: Step) -> bool:
    before, after = mapping_in(thought.action), mapping_in(following.action)
    counted = isinstance(before.get("messages"), int) and isinstance(after.get("messages"), int)
    return not counted or before.get("compacted") != after.get("compacted")
