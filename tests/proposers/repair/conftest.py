import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agentos.domain import Call, Check, Json, Kind, ResourceId, Snapshot
from agentos.ports import Brief, Case

# The bench without a sandbox is shared with the benchmark, which is no package.
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

PATH = "tool/probe/tool.py"


@pytest.fixture
def case() -> Callable[..., Case]:
    def make(
        task_id: str, want: Json = None, *, inputs: dict[str, bytes] | None = None, **args: Json
    ) -> Case:
        checks = (Check("equals", {"value": want}),) if want is not None else ()
        return Case(task_id, Call("probe", args), inputs or {}, checks)

    return make


@pytest.fixture
def brief() -> Callable[..., Brief]:
    def make(
        source: str, cases: list[Case], working: list[tuple[Case, Json]] | None = None, **over: Json
    ) -> Brief:
        return Brief(
            evolution_id="evo-1",
            base=Snapshot("0" * 40, "0" * 40),
            resource=ResourceId(Kind.TOOL, "probe"),
            path=PATH,
            source=source,
            cases=tuple(cases),
            working_calls=tuple(working or ()),
            budget_s=over.get("budget_s", 10.0),
            max_candidates=over.get("max_candidates", 6),
        )

    return make
