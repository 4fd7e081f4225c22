"""The search for repairs on the source of a harness: which file, how many runs, and what it keeps."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType, ModuleType
from typing import Any

import pytest

from agentos.benches import Bench, BenchResult
from agentos.domain import Call, Check, Json, Kind, Layer, ResourceId, SearchEffort, Snapshot
from agentos.ports import Brief, Case, Proposal
from agentos.proposers.harness_repair import HarnessRepairProposer, grounds_of
from agentos.proposers.search_process import CaseTrace

DESK = ResourceId(Kind.HARNESS, "desk")
BASE = Snapshot("c", "t")
FILES = {
    "harness/desk/harness.py": "from joining import joined\n\n\ndef run(names):\n    return joined(names, get)\n\n\ndef get(name):\n    return len(name)\n",
    "harness/desk/joining.py": (
        "def joined(names, get):\n"
        "    calls = {name: get(name) for name in names}\n"
        "    results = dict(zip(sorted(calls), calls.values()))\n"
        "    return [results[name] for name in names]\n"
    ),
    "harness/desk/unused.py": "def idle(x):\n    return x + 1\n",
    "harness/desk/resource.toml": "evolvable = true\n",
}


@dataclass
class Desk:
    """Runs the harness' files in this process: what a box would do with them."""

    files: Mapping[str, str] = field(default_factory=lambda: FILES)
    tried: list[str] = field(default_factory=list)
    pause_s: float = 0.0
    cpu_s: float = 0.0  # that each run is said to take

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        return _Bench(self, path, cases)

    def trace(
        self, snapshot: Snapshot, harness: ResourceId, cases: Sequence[Case], timeout_s: float
    ) -> Sequence[CaseTrace]:
        return [self.run(self.files, case, trace=True) for case in cases]

    def run(self, files: Mapping[str, str], case: Case, *, trace: bool = False) -> CaseTrace:
        time.sleep(self.pause_s)
        lines: dict[str, set[int]] = {}

        def tracer(frame: FrameType, event: str, arg: Any) -> Any:
            path = frame.f_code.co_filename
            if path in files and frame.f_code.co_name != "<module>":
                lines.setdefault(path, set()).add(frame.f_lineno)
            return tracer

        modules = {
            path.rpartition("/")[2][:-3]: (path, text) for path, text in files.items() if path.endswith(".py")
        }
        for name in modules:
            sys.modules.pop(name, None)
        try:
            for name in ("joining", "harness"):
                path, text = modules[name]
                sys.modules[name] = ModuleType(name)
                exec(compile(text, path, "exec"), sys.modules[name].__dict__)
            if trace:
                sys.settrace(tracer)
            output = sys.modules["harness"].run(case.call.args["names"])
        except Exception as error:  # noqa: BLE001 - whatever an edit does
            output = {"error": type(error).__name__, "message": str(error)}
        finally:
            sys.settrace(None)
            for name in modules:
                sys.modules.pop(name, None)
        passed = all(check.spec["value"] == output for check in case.checks)
        passed = passed and not (isinstance(output, dict) and "error" in output)
        return CaseTrace(passed, output, {path: tuple(found) for path, found in lines.items()}, 0.01)


@dataclass
class _Bench:
    desk: Desk
    path: str
    cases: Sequence[Case]

    def try_source(
        self, source: str, *, trace: bool = False, cases: Sequence[int] | None = None
    ) -> BenchResult:
        self.desk.tried.append(self.path)
        numbers = range(len(self.cases)) if cases is None else cases
        done = [
            self.desk.run({**self.desk.files, self.path: source}, self.cases[number]) for number in numbers
        ]
        return BenchResult(
            tuple(one.passed for one in done),
            tuple(float(one.passed) for one in done),
            tuple(one.output for one in done),
            cpu_s=self.desk.cpu_s * len(done),
        )

    def close(self) -> None:
        """Nothing to end."""


def case(number: int, *names: str, checked: bool = True) -> Case:
    checks = (Check("equals", {"value": [len(name) for name in names]}),) if checked else ()
    return Case(f"task-{number}", Call("count", {"names": [*names]}), {}, checks)


FAILING = (case(1, "bb", "a", "ccc"), case(2, "dddd", "ccc", "a"))
WORKING = (case(3, "a", "bb"), case(4, "a"))


def brief(
    cases: Sequence[Case] = FAILING,
    working: Sequence[tuple[Case, Json]] = (),
    *,
    layer: Layer = Layer.HARNESS,
    files: Mapping[str, str] = FILES,
    budget_s: float = 20.0,
) -> Brief:
    path = "harness/desk/harness.py"
    return Brief(
        "evo-1", BASE, DESK, path, files[path], tuple(cases), tuple(working), budget_s, 3, layer, files=files
    )


def proposed(desk: Desk, given: Brief) -> list[Proposal]:
    return list(HarnessRepairProposer(desk, 1).propose(given))


@pytest.mark.slow
def test_the_file_at_fault_is_found_among_those_of_the_harness() -> None:
    desk = Desk()
    working = [(case(5, "a", "bb", "ccc", checked=False), [1, 2, 3])]
    (first, *_) = proposed(desk, brief(working=working))
    assert list(first.files) == ["harness/desk/joining.py"]
    assert "sorted(" not in first.files["harness/desk/joining.py"]
    assert set(first.predicted_fixes) == {"task-1", "task-2"}
    assert "harness/desk/unused.py" not in desk.tried


def test_files_that_no_failing_run_goes_through_are_not_searched() -> None:
    traced = Desk().trace(BASE, DESK, (*FAILING, *WORKING), 1.0)
    paths = {ground.brief.path for ground in grounds_of(brief((*FAILING, *WORKING)), traced)}
    assert paths == {"harness/desk/harness.py", "harness/desk/joining.py"}


@pytest.mark.slow
def test_an_edit_that_breaks_what_works_is_not_proposed() -> None:
    """Without the join in order, lists come out right; without a join at all, a single name would not."""
    single = [(case(number, name, checked=False), [len(name)]) for number, name in enumerate(("a", "bb"), 7)]
    for found in proposed(Desk(), brief(working=single)):
        (text,) = found.files.values()
        done = Desk({**FILES, **found.files}).run({**FILES, **found.files}, case(9, "xyz"))
        assert done.passed, text


@pytest.mark.parametrize(
    "given",
    [
        brief(layer=Layer.TOOL),
        brief(cases=()),  # runs that think have none
        brief(cases=WORKING),  # nothing fails any more
        brief(files={**FILES, "harness/desk/harness.py": "def run(:"}),
    ],
)
def test_where_there_is_nothing_to_search_nothing_is_proposed(given: Brief) -> None:
    assert proposed(Desk(files=given.files), given) == []


@pytest.mark.parametrize(
    ("desk", "runs"),
    [
        (Desk(cpu_s=0.1), range(10, 14)),
        (Desk(cpu_s=0.1, pause_s=0.2), range(10, 14)),  # a busy machine: as many tries as on an idle one
    ],
)
def test_the_search_ends_with_its_budget_of_cpu_time(desk: Desk, runs: range) -> None:
    hopeless = (replaced_check(FAILING[0], [9, 9]), replaced_check(FAILING[1], [8]))
    proposals, effort = searched(desk, brief(hopeless, budget_s=1.0))
    assert not proposals
    assert effort is not None
    assert not effort.exhausted
    assert effort.tried in runs
    assert effort.known > effort.tried


@pytest.mark.slow
def test_a_search_that_tried_everything_says_so() -> None:
    only = "def joined(names, get):\n    return [get(name) for name in names]\n"
    hopeless = (replaced_check(FAILING[0], "no list"),)
    desk = Desk(files={**FILES, "harness/desk/joining.py": only})
    proposals, effort = searched(desk, brief(hopeless, files=desk.files, budget_s=300.0))
    assert not proposals
    assert effort is not None
    assert effort.exhausted


def searched(desk: Desk, given: Brief) -> tuple[list[Proposal], SearchEffort | None]:
    """What was proposed, and how far the search came."""
    found, search = [], HarnessRepairProposer(desk, 1).propose(given)
    while True:
        try:
            found.append(next(search))
        except StopIteration as end:
            return found, end.value


def replaced_check(one: Case, value: Json) -> Case:
    return Case(one.task_id, one.call, one.inputs, (Check("equals", {"value": value}),))
