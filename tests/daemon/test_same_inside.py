"""No box can tell why it runs: what can be read inside is the same in a live run, in every kind of trial, and in a bench.

Each purpose goes through the code that really makes such runs. A tool and a harness write down everything that
they can read; what may differ between two runs of the same task is named in ``ALLOWED``, with the reason.
"""

from __future__ import annotations

import base64
import functools
import json
import re
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.evolve.harness_bench import RunBenches
from agentos.daemon.run.tasks import TaskRunner
from agentos.daemon.service import Service, service
from agentos.domain import (
    Arm,
    Candidate,
    Check,
    Edit,
    Effect,
    Evidence,
    Evolution,
    EvolutionState,
    Fingerprint,
    InputFile,
    Layer,
    Limits,
    Manifest,
    Mode,
    Result,
    Share,
    Snapshot,
    Step,
    Task,
    TrialSet,
    new_id,
)
from agentos.domain import Call as ToolCall
from agentos.evolver.dependencies import Dependencies
from agentos.evolver.promote.probing import choose, lost
from agentos.evolver.promote.promotion import vouch
from agentos.evolver.replay import jobs, trials
from agentos.evolver.select.curate import TaskSets
from agentos.evolver.watch import probation
from agentos.home import Home
from agentos.ports import Attempt, Case, Plan
from agentos.settings import load_settings

INVENTORY = (Path(__file__).parent / "inside" / "inventory.py").read_text()
TOOL = "skill/test-kit/tools/inventory.py"
TOOL_SOURCE = '''"""Says all that it can see."""
import base64, json, zlib
from pydantic import BaseModel
from _everything import everything
TOOL = {"name": "inventory", "description": "for a test", "effects": ["read"]}
class Input(BaseModel):
    path: str
class Output(BaseModel):
    n: int
    seen: str
def run(input: Input) -> Output:
    n = len(open(input.path).readlines())
    return Output(n=n, seen=base64.b64encode(zlib.compress(json.dumps(everything()).encode(), 3)).decode())
'''
HARNESS_SOURCE = '''"""Says all that it can see, and what it was told, then calls the tool."""
import base64, json, sys, zlib
from everything import everything


def told(sdk):
    found = {}
    frame = sys._getframe()
    while frame is not None:
        job = frame.f_locals.get("job")
        if job is not None and hasattr(job, "model_dump"):
            found = {f"job {name}": json.dumps(value) for name, value in job.model_dump().items()}
        frame = frame.f_back
    assert found
    return found | {f"sdk {name}": repr(value) for name, value in vars(sdk).items() if "object at" not in repr(value)}


def run(sdk):
    call = sdk.task.call
    seen = everything() | told(sdk)
    result = sdk.call_tool(call.tool, call.args)
    said = vars(result) if hasattr(result, "__dict__") else {name: getattr(result, name) for name in result.__slots__}
    seen |= {f"result {name}": str(value) for name, value in said.items() if name not in ("output", "duration_ms")}
    sdk.finish({**result.output, "harness": base64.b64encode(zlib.compress(json.dumps(seen).encode(), 3)).decode()})
'''

GOAL = "say what there is"
TIME = "time, and what was used up so far"
MACHINE = "counters of the whole machine: other work, not this box"
PIDS = "process ids: how many threads the engine had before the first process"
RANDOM = "a random token, or the number that the kernel gave next"
# Pattern of a name -> why two runs of the same task may differ there. Everything else must be equal.
_ANY = r"/proc/(\d+|self|thread-self)/(task/\d+/)?"
ALLOWED = {
    r"/proc/(?!\d|self/|thread-self/|sys/).*": MACHINE,  # the same file for every process of the machine
    r"/proc/sys/fs/(dentry-state|file-nr|inode-nr|inode-state)": MACHINE,
    r"/proc/sys/kernel/pty/nr": MACHINE,
    r"/proc/sys/kernel/random/(uuid|entropy_avail)": RANDOM,
    r"/dev/u?random": RANDOM,
    rf"(list|stat|link) {_ANY}map_files.*": "addresses, which are random",
    rf"list {_ANY}task": PIDS,
    rf"{_ANY}children": PIDS,
    rf"{_ANY}(stat|schedstat|sched|arch_status)": TIME,
    rf"{_ANY}autogroup": RANDOM,
    rf"{_ANY}(maps|statm|numa_maps|smaps|smaps_rollup|oom_score)": "pages in use so far",
    r"limit RLIMIT_AS": "what the interpreter had mapped when it was locked in, and the task's memory beyond it, "
    "which the job frame says",
    r"pids|link /proc/(self|thread-self)|/proc/sys/kernel/ns_last_pid": PIDS,
    r"/proc/sys/fs/quota/syncs|statvfs free /": MACHINE,
    rf"{_ANY}net/(unix|sockstat6?|netlink|softnet_stat|protocols|stat/\w+)": "inode numbers, and counters of the whole machine",
    r"sdk (_since|_lock|_used|task)": "a time, an address, and the order of sets; the job frame holds the same",
}
# Lines of these that may differ, where the rest may not.
LINES = {
    r"/proc/(\d+|self|thread-self)/(task/\d+/)?status": r"(State|Vm\w+|Rss\w+|Hugetlb\w+|\w*ctxt_switches|Cpus_allowed\w*|"
    r"Mems_allowed\w*|SigQ|Umask|THP_enabled|x86_Thread_features\w*|CoreDumping|Pid|PPid|Tgid|Ngid|NS\w+):",
    r"/proc/(\d+|self|thread-self)/(task/\d+/)?limits": "Max address space ",
}
# Tokens that stand for nothing but themselves, wherever they are seen.
TOKENS = (
    (r"\b[0-9a-f]{16,64}\b", "TOKEN"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"(socket|pipe|mnt|net|pid|ipc|uts|user|cgroup|time|anon_inode):\[\w+\]", r"\1:[N]"),
    (r"(?m)^\d+ \d+ \d+:\d+ ", "MOUNT "),  # of mountinfo: the mount's number, its parent's, its device
    (r"(master|shared|propagate_from):\d+", r"\1:N"),
    (r"overlay2/(l/)?[0-9A-Z]{26}", "overlay2/LAYER"),
    (r"ino:\s*\d+", "ino: N"),
    (r"mnt_id:\s*\d+", "mnt_id: N"),
)


def seen(text: str) -> dict[str, str]:
    assert re.fullmatch(r"[A-Za-z0-9+/]*=*", text), re.sub(r"[A-Za-z0-9+/]{20,}", "…", text)
    assert not len(text) % 4, (len(text), text[-40:])
    found: dict[str, str] = json.loads(zlib.decompress(base64.b64decode(text)))
    pids = sorted({int(pid) for name in found for pid in re.findall(r"^list /proc/(\d+)$", name)})
    ranks = {str(pid): str(rank) for rank, pid in enumerate(pids, 1)}
    found["list /proc"] = " ".join(sorted(ranks.get(name, name) for name in found["list /proc"].split()))

    def ranked(name: str) -> str:
        return re.sub(r"(?:(?<=/proc/)|(?<=task/))(\d+)", lambda match: ranks.get(match[1], match[1]), name)

    return {ranked(name): value for name, value in found.items()}


@functools.cache  # the first box is compared with all others
def normal(name: str, text: str) -> str:
    for pattern, instead in TOKENS:
        text = re.sub(pattern, instead, text)
    for which, line in LINES.items():
        if re.fullmatch(which, name):
            text = "\n".join(each for each in text.splitlines() if not re.match(line, each))
    if re.fullmatch(rf"{_ANY}mount(s|info|stats)", name):
        text = "\n".join(sorted(text.splitlines()))  # an engine mounts in the order of a hash table
    return text


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What differs and may not."""
    found = {}
    for name in sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name)):
        plain = name.removeprefix("harness: ")
        if any(re.fullmatch(pattern, plain) for pattern in ALLOWED):
            continue
        both = [normal(plain, look[name]) if name in look else "(absent)" for look in (one, other)]
        if both[0] != both[1]:
            found[name] = (both[0][:300], both[1][:300])
    return found


@dataclass
class Spy:
    """The real executor; keeps what was seen inside, by the purpose that is named at the time."""

    executor: Any
    purpose: list[str]
    found: dict[str, list[dict[str, str]]] = field(default_factory=dict)

    def place(self, task: Task, snapshot: Snapshot) -> Any:
        return self.executor.place(task, snapshot)

    def execute(
        self,
        task: Task,
        snapshot: Snapshot,
        run_id: str,
        on_step: Callable[[Step], None] | None = None,
        plan: Plan | None = None,
    ) -> Attempt:
        done: Attempt = self.executor.execute(task, snapshot, run_id, on_step, plan)
        assert done.outcome.result is Result.PASSED, done.outcome
        looks = seen(done.answer["seen"]) | {
            f"harness: {name}": text for name, text in seen(done.answer["harness"]).items()
        }
        looks["sandbox"] = done.sandbox
        # Some trials ask under other names: these are compared with one another.
        named = "" if task.goal == GOAL else ", renamed"
        self.found.setdefault(self.purpose[-1] + named, []).append(looks)
        return done


@dataclass
class World:
    """A home whose runs say what they see."""

    service: Service
    task: Task
    purpose: list[str] = field(default_factory=lambda: ["live"])

    def __post_init__(self) -> None:
        self.spy = Spy(self.service.parts.executor, self.purpose)
        self.parts: Dependencies = replace(
            self.service.parts,
            executor=self.spy,
            executor_with=lambda files, without: Spy(
                self.service.parts.executor_with(files, without), self.purpose, self.spy.found
            ),
        )

    def live(self, name: str = "live") -> Task:
        """As the daemon runs it."""
        self.purpose[:] = [name]
        task = replace(self.task, id=new_id("task"))
        self.service.ledger.add_task(task, Share.OPEN)
        parts = self.service
        runner = TaskRunner(parts.ledger, parts.swap, self.spy, parts.stopping)  # type: ignore[arg-type]
        assert runner.attempt(task.id, datetime.now(UTC))
        return task

    def trials(self, task: Task) -> None:
        """Base, candidate, control, and the fresh ones of work that varies."""
        base = self.service.registry.stable()
        elsewhere = "tool/word-count/tool.py"  # of no concern to the task: the bundles are the same
        source = self.service.registry.files(base, elsewhere)[elsewhere].decode()
        made = {
            name: self.service.registry.add_candidate(
                new_id("cand"), base, {elsewhere: f"{source}\n# {name}\n"}
            )
            for name in ("candidate", "control")
        }
        evidence = Evidence(
            new_id("evidence"), Fingerprint("f", "", "", ""), (), (task.id,), datetime.now(UTC), ""
        )
        evolution = Evolution(new_id("evo"), evidence.id, "f", EvolutionState.REPLAYING, base)
        manifest = Manifest(evidence.id, "", "", (elsewhere,), (), (), Layer.TOOL, "")
        candidate = Candidate(
            new_id("cand"), evolution.id, "a test", 1, manifest, Edit({}, "x", "y"), base, made["candidate"],
            control=made["control"],
        )  # fmt: skip
        for record in (evidence, evolution, candidate):
            self.service.ledger.put(record)
        sets = TaskSets((task.id,), (), ())
        self.purpose[:] = ["trial of the base"]
        trials.replay_base(self.parts, evolution, (task.id,), sets)
        self.purpose[:] = ["trial of the candidate"]
        stage = trials.CandidateReplay(self.parts, evolution, candidate, sets).steady(TrialSet.EVIDENCE)
        assert len(stage.trials) >= 2
        self.purpose[:] = ["control"]
        control = [
            replace(job, arm=Arm.CONTROL, candidate_id=candidate.id, snapshot=made["control"])
            for job in jobs.repeated(jobs.jobs_on_base(self.parts, (task.id,), sets, evolution), range(2))
        ]
        assert jobs.run_all(self.parts, control)
        self.purpose[:] = ["fresh trial"]
        fresh = jobs.fresh_jobs(self.parts, evolution, (task.id,), sets, range(7, 9))
        assert jobs.run_all(self.parts, fresh)
        self.purpose[:] = ["probation"]
        run = self.service.ledger.runs(task.id)[0]
        plan = probation._plan(self.parts, evolution, run)
        assert probation._results(self.parts, run, base, "before", plan) == {Result.PASSED}

    def canaries(self) -> None:
        self.purpose[:] = ["canary"]
        resources = [
            each
            for each in self.service.registry.names(self.service.registry.stable())
            if "test-kit" in str(each)
        ]
        chosen = choose(self.parts, resources)
        assert chosen
        base = self.service.registry.stable()
        assert lost(self.parts, chosen[0], base, base) is None

    def beside(self) -> None:
        """As the contract suite, the safety probes and the bench of a harness run."""
        base = self.service.registry.stable()
        self.purpose[:] = ["probe"]
        task = replace(self.task, id=new_id("task"))
        for plan in (None, Plan(), Plan(mode=Mode.RECORD, evolution_id="evo-1")):
            self.parts.executor_with({}, frozenset()).execute(task, base, new_id("run"), plan=plan)
        stored = self.live()
        self.purpose[:] = ["bench"]
        benches = RunBenches(self.service.registry, self.service.ledger.task, self.parts.executor_with, 2)
        assert stored.call is not None
        case = Case(stored.id, stored.call, {}, stored.checks)
        path = "harness/default/harness.py"
        with_bench = benches.bench(base, path, [case], 60.0)  # seconds of a busy machine
        assert with_bench.try_source(HARNESS_SOURCE).passed == (True,)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("bubblewrap", marks=pytest.mark.sandbox),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
)
def world(
    request: pytest.FixtureRequest, made_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    if request.param == "docker":
        build()
    home = Home(tmp_path_factory.mktemp("same") / "home")
    shutil.copytree(made_home, home.root)
    settings = load_settings(home.settings).model_copy(update={"sandbox": request.param, "evolve": "manual"})
    with ExitStack() as stack:
        made = stack.enter_context(service(home, settings))
        stack.callback(made.sandbox.close)
        made.registry.commit(
            {
                TOOL: TOOL_SOURCE.encode(),
                "skill/test-kit/tools/_everything.py": INVENTORY.encode(),
                "harness/default/harness.py": HARNESS_SOURCE.encode(),
                "harness/default/everything.py": INVENTORY.encode(),
            },
            "What looks around",
            "edit",
        )
        vouch(made.parts, made.registry.stable(), "a test")
        made.registry.mark_good(made.registry.stable())
        yield World(made, task_in(made))


def build() -> None:
    """The image of this version, unless it is there."""
    from agentos.sandboxes.docker.engine import DockerEngine
    from agentos.sandboxes.docker.image import build_from_host

    engine = DockerEngine()
    try:
        build_from_host(engine)
    finally:
        engine.close()


def task_in(made: Service) -> Task:
    content = b"a,b\n1,2\n3,4\n"
    return Task(
        id=new_id("task"),
        name="look around",
        goal=GOAL,
        call=ToolCall("inventory", {"path": "in.csv"}),
        inputs=(InputFile("in.csv", made.ledger.blobs.put(content), len(content)),),
        agent="default",
        limits=Limits(wall_s=60.0),
        effects=(Effect.PURE, Effect.READ),
        checks=(Check("equals", {"path": "n", "value": 3}),),
        schedule=None,
        created_at=datetime.now(UTC),
    )


def test_what_is_seen_inside_is_the_same_for_every_purpose(world: World) -> None:
    task = world.live()
    world.live()
    world.trials(task)
    world.canaries()
    world.beside()
    found = world.spy.found
    assert {"live", "trial of the base", "trial of the candidate", "control", "fresh trial"} <= found.keys()
    assert {"probation", "canary", "probe", "bench"} <= found.keys()
    first = found["live"][0]
    assert len(first) > 1_000
    renamed = next((looks[0] for purpose, looks in found.items() if purpose.endswith(", renamed")), first)
    told = {
        f"{purpose} {number}": different
        for purpose, looks in found.items()
        for number, look in enumerate(looks)
        if (different := differing(renamed if purpose.endswith(", renamed") else first, look))
    }
    for purpose, different in told.items():
        for name, (one, other) in different.items():
            print("DIFF", purpose, "|", name, "|", repr(one), "|", repr(other))
    assert told == {}


@pytest.mark.sandbox
def test_the_comparison_sees_what_used_to_tell(world: World) -> None:
    """The dump is worth something only if it finds a tell: each of those that there were is put back once."""
    look = world.spy.found.get("live") or [{}]
    if not look[0]:
        world.live()
    (first, *_) = world.spy.found["live"]
    for name, value in (
        ("/proc/1/cgroup", "0::/agentos-0/box-7.trial-3f"),
        ("harness: job asks_tools", "true"),
        ("env AGENTOS_TRIAL", "1"),
        ("descriptor 9", "/somewhere"),
        ("list /", ".dockerenv"),
        ("limit RLIMIT_CPU", "(6, 6)"),
        ("hostname", "trial"),
        ("list /ws", "in.csv trial"),
        ("sandbox", "another"),
    ):
        assert name in differing(first, {**first, name: value})
