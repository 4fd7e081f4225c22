"""The evolver's policy and the classes of its taxonomy: what they may say. ``content`` reads both from files.

The digest of the policy is part of every verdict, so that a verdict says under which rules it was reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from agentos.records.candidates import Layer
from agentos.records.identity import Tier, canonical, digest
from agentos.records.trials import Mode


@dataclass(frozen=True, slots=True)
class MinePolicy:
    """When failures become evidence."""

    recurrence: int = 2
    half_life_days: float = 30.0
    min_weight: float = 1.0
    attempts: int = 3
    taken_up: int = 3  # times that one batch of evidence is, because the registry moved
    shared_by: int = 3  # tools that fail with one and the same message: none of them is to blame
    deeper_after: int = 2  # promotions that did not end such a failure: it lies in another layer
    unused_days: float = 30.0  # that a skill of an evolution was not used: it is retired
    settle_s: float = 1.0
    max_wait_s: float = 120.0


@dataclass(frozen=True, slots=True)
class SurfacePolicy:
    """What a candidate may touch."""

    allow: tuple[str, ...] = (
        "memory/*/memory.md",
        "prompt/*/prompt.md",
        "skill/*/SKILL.md",
        "skill/*/tools/*.py",
        "tool/*/*.py",
        "tool/*/resource.toml",
        "agent/*/resource.toml",
        "environment/*/resource.toml",
        "harness/*/*.py",
        "harness/*/resource.toml",
        "rule/*/resource.toml",
        "skill/*/wheels.lock",
        "tool/*/wheels.lock",
    )
    searched: tuple[str, ...] = tuple(
        f"{folder}/*.{ending}"
        for folder in ("tool/*", "skill/*/tools/*", "skill/*/assets")
        for ending in ("json", "toml", "yaml", "yml", "sh")
    )  # texts that the built-in search may edit, and nobody else
    max_files: int = 3
    max_changed_lines: int = 20
    max_changed_code: int = 40
    max_new_lines: int = 120
    max_text_line: int = 600  # characters of a line of a file that is no code
    expected_min: int = 4  # characters of an expected value that says something by itself


@dataclass(frozen=True, slots=True)
class Screen:
    """What an edit of Python source may not do; docs/understand/guards.md explains the rules."""

    refuse: tuple[str, ...] = (
        "import",
        "dynamic",
        "reflection",
        "process",
        "network",
        "inside",
        "sdk",
        "text",
        "record",
        "hooks",
        "growth",
        "scanner",
        "except",
    )
    refuse_high: tuple[str, ...] = ("swallow", "checks")
    ask: tuple[str, ...] = ("tell", "swallow")
    imports: tuple[str, ...] = ("pydantic",)
    imports_harness: tuple[str, ...] = ("pydantic", "langgraph", "agentos.worker.sdk")
    deny: tuple[str, ...] = ()
    max_new_statements: int = 40
    max_new_branches: int = 12
    max_new_constants: int = 2000
    max_nesting: int = 6
    max_line: int = 200


@dataclass(frozen=True, slots=True)
class EvidencePolicy:
    """Sizes of the three sets."""

    max_tasks: int = 8
    max_guards: int = 16
    max_hold_out: int = 10
    visible_guards: float = 0.5
    held_back: int = 3  # of so many failing tasks one is hidden from proposers; 0: none


@dataclass(frozen=True, slots=True)
class ProposePolicy:
    """What a search may cost, and who writes edits where a model is set up."""

    budget_s: float = 45.0
    max_candidates: int = 6
    model: str = ""  # name of a model resource; "" is the settings'
    form: str = "diff"
    # In which order proposers are asked (docs/understand/proposers.md).
    hope_s: float = 600.0  # the first in the given order is taken to bring one success in this time ...
    falls_by: float = 2.0  # ... and each one after it to need so many times as long
    dollar_s: float = 3600.0  # seconds of this machine and of waiting that weigh as much as a US dollar
    parent_chance: float = 0.1  # that the gain of an edit to start from is lower than it is taken for


@dataclass(frozen=True, slots=True)
class ReplayPolicy:
    """How often a trial is run, and who answers its model calls."""

    repeats: int = 2
    infra_retries: int = 3
    models: str = Mode.LIVE.value
    neighbours: int = 48  # generated inputs beside those of the evidence; half as many beside the guards'
    neighbours_min: int = 8  # with fewer that the tool takes nothing is said
    neighbour_s: float = 0.5  # of one call on such an input; a slower tool says nothing there
    drawn: int = 4  # times as many are drawn as compared on: those that run what is edited come first
    crossed: int = 24  # calls made of two tasks
    stepped: int = 48  # inputs with one number a little higher or lower
    along_min: int = 4  # neighbours along one argument that say something of it
    length_min: int = 3  # lists of none, one or two are cases of their own
    broad_share: float = 0.5  # of the answers next to guards: who mends a slip changes few
    spelled: int = 32  # inputs with a word that has a text of the edit, or a sign of one, in it
    mutants: int = 32  # of an edit, which are held against it as its proposer's other edits are
    symptom_min: int = 3  # right answers with what failing ones lack, for a symptom, and working tasks put otherwise; 0: neither is sought
    symptom_share: float = 0.2  # of inputs that show it: who leaves so many mended what was shown
    rival_share: float = 0.25  # another edit that passes is a rival from this share of an edit's weight on
    share_min: float = 0.5  # of that belief in all edits that pass: with less, another one is meant
    prior_min: float = 1.5e-4  # of all that could be tried: what is as unlikely passes by luck too often
    luck_min: float = 2e-5  # of what is as unlikely no fresh work settles that either


@dataclass(frozen=True, slots=True)
class Judge:
    """What a promotion needs."""

    min_fixed_share: float = 0.5
    unattended_share: float = 1.0  # of the evidence that is judged by flips: who mends less is asked about
    min_tasks: int = 3  # guards and hold-out together
    hidden_share: float = 1.0
    hidden_gain: float = 0.5
    hidden_tasks_min: int = 2
    alike_trials: int = 2
    few_at_least: float = 0.5
    max_cpu_ratio: float = 2.0
    cpu_slack_s: float = 0.25
    # Of tasks whose outcome varies: docs/understand/judging.md
    alpha: float = 0.05  # a promotion that the evidence, guards, hold-out or costs do not deserve; each
    beta: float = 0.1  # a rejection of a candidate that deserves none; each test
    min_effect: float = 0.2  # a candidate whose gain on the evidence is smaller may be given up
    margin: float = 0.1  # the fall on guards or hold-out that is excluded before a promotion
    max_ratio: float = 2.0  # of a run's money, tokens or time to the base's
    dear_share: float = 0.25  # of pairs may exceed it
    min_rounds: int = 2  # each task on each side, before any promotion
    max_pairs: int = 240  # for each set
    max_usd: float = 5.0  # for all trials of the candidate and their counterparts
    steady_share: float = 0.5
    sieve_trials: int = 4
    evidence_at_most: float = 0.5
    steady_at_least: float = 0.75
    hold_out_looks: int = 6
    fresh_tasks: int = 20  # 0: never asked for
    fresh_mended: int = 5  # of them, that fail on the base: only there do the two sides part
    fresh_answers: int = 2  # different ones in which these have to end, if the evidence does
    fresh_doubted: int = (
        8  # of them, that fail on the base, where luck is the only doubt; 0: they settle none
    )
    fresh_most: int = 50
    slack_usd: float = 0.001
    slack_tokens: float = 200.0
    slack_s: float = 5.0
    # Of edits of memories: control.
    one_answer: float = 0.8
    several_answers: float = 0.5
    answers_min: int = 3

    def threshold(self, number: int, share: float = 1.0) -> float:
        """The log e-value that the candidate of this number (from 1) must reach; never passed by chance with more than its part of a ``share`` of ``alpha``."""
        if number < 1:
            raise ValueError(f"candidates are numbered from 1, not {number}")
        return math.log(number * (number + 1) / (self.alpha * share))


@dataclass(frozen=True, slots=True)
class LookBack:
    """How far the evolver looks back, in runs unless it says otherwise: costs do not grow with the ledger."""

    sets: int = 200
    same_work: int = 20
    recordings: int = 20
    shown: int = 12
    successes: int = 50
    watched: int = 400
    lessons: int = 300
    rules: int = 200
    rules_min: int = 10
    retired: int = 100
    canaries: int = 50
    sightings: int = 5_000
    alike: int = 500
    evolutions: int = 200
    rolled_back: int = 20
    versions: int = 20
    same_failure: int = 50
    parents: int = 5
    told: int = 12
    settled: int = 20
    blamed: int = 20
    calibrated: int = 30
    undone: int = 50
    proposals: int = 100
    answered: int = 5
    observed: int = 4


@dataclass(frozen=True, slots=True)
class ConsentPolicy:
    """Which tiers promote by themselves, and whether what a model, a coding agent or a plug-in wrote does."""

    expires_s: int = 604_800
    low: str = "auto"
    medium: str = "auto"
    high: str = "ask"
    written: str = "auto"

    def left(self, tier: Tier, author: str = "") -> str:
        """Which edits, this one among them, are left to people; "" where none are. ``author``: who wrote it."""
        if str(getattr(self, tier.value)) != "auto":
            return f"{tier.value}-risk edits"
        return f"what {author} writes" if author and self.written != "auto" else ""


@dataclass(frozen=True, slots=True)
class ReviewPolicy:
    """For which tiers a second model is heard before an edit may be promoted."""

    low: str = "off"
    medium: str = "off"
    high: str = "off"
    model: str = ""  # name of a model resource
    max_diff: int = 60_000

    def wants(self, tier: Tier) -> bool:
        """True when an edit of this tier is reviewed."""
        return str(getattr(self, tier.value)) != "off"


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """Where edits of each tier are held to the contract as well, beside the sandbox in which they will live."""

    low: str = "auto"
    medium: str = "auto"
    high: str = "docker"

    def preferred(self, tier: Tier) -> str:
        """A sandbox's name, or "auto"."""
        return str(getattr(self, tier.value))


@dataclass(frozen=True, slots=True)
class Safety:
    """How the safety probes are run (docs/understand/guards.md)."""

    repeats: int = 3


@dataclass(frozen=True, slots=True)
class ProbePolicy:
    """What a snapshot has to show before runs are given it, where it changes how they are driven."""

    passes: int = 3
    time_s: float = 180.0
    run_s: float = 30.0
    canaries: int = 5
    agents: int = 8
    start_ratio: float = 2.0
    start_slack_s: float = 0.5
    memory_ratio: float = 1.5
    memory_slack_mb: float = 32.0


@dataclass(frozen=True, slots=True)
class Probation:
    """How long a promotion is watched, and how sure a fall has to be."""

    runs: int = 3
    varying_runs: int = 40
    days: float = 7.0
    alpha: float = 0.05
    beside: int = 3  # runs on the base for each live run: more add little


EDITION = 10  # of the rules that are code; verdicts of an earlier one are computed again by its rules
CHECKED = 2  # since this one: work without checks, and the evidence itself, speak for no promotion
STOOD = 3  # since this one: what failed on the base guards nothing, and pairs tell what goes by names
ASKED = 4  # since this one: of what varies a person is asked as well where too few tasks guard
SETTINGS = 5  # since this one: fresh work is asked for where a text beside a skill's code is edited as well
ONE_SIDED = 6  # since this one: what can be replayed on one side alone is no gain
HIDDEN_LOST = 7  # since this one: nor is a hidden task mended that fails alike and cannot be replayed with it
LATER_GUARDS = 8  # since this one: fresh work may be the guards that an edit of the search lacks
REEXAMINED = 9  # since this one: a waiting edit is compared again with the fresh tasks among the known ones
# since this one: nor does a task pass with it of which some trial cannot be replayed with it alone
PARTLY_LOST = 10
DICTATES = 10  # since this one: a person is asked about a text with which different tasks get one answer


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """How long an evolution waits for what is away, before it ends."""

    models_s: float = 300.0
    machinery_s: float = 1800.0


@dataclass(frozen=True)  # without slots: each verdict and promotion asks for what is derived from it
class Policy:
    """All of it. ``sha256`` identifies the rules in a verdict."""

    mine: MinePolicy = field(default_factory=MinePolicy)
    surface: SurfacePolicy = field(default_factory=SurfacePolicy)
    screen: Screen = field(default_factory=Screen)
    evidence: EvidencePolicy = field(default_factory=EvidencePolicy)
    propose: ProposePolicy = field(default_factory=ProposePolicy)
    replay: ReplayPolicy = field(default_factory=ReplayPolicy)
    judge: Judge = field(default_factory=Judge)
    look_back: LookBack = field(default_factory=LookBack)
    review: ReviewPolicy = field(default_factory=ReviewPolicy)
    consent: ConsentPolicy = field(default_factory=ConsentPolicy)
    sandbox: SandboxPolicy = field(default_factory=SandboxPolicy)
    safety: Safety = field(default_factory=Safety)
    probe: ProbePolicy = field(default_factory=ProbePolicy)
    probation: Probation = field(default_factory=Probation)
    wait: WaitPolicy = field(default_factory=WaitPolicy)
    edition: int = EDITION

    @cached_property
    def text(self) -> bytes:
        """Its canonical form, which ``sha256`` is of."""
        return canonical(self)

    @cached_property
    def sha256(self) -> str:
        """The rules' name in a verdict."""
        return digest(self.text)


@dataclass(frozen=True, slots=True)
class FailureClass:
    """One class of the taxonomy of failures."""

    name: str
    faults: tuple[str, ...]
    layer: Layer
    evolvable: bool
    says: str
