import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from local_bench import LocalBenches

from agentos.benches import BenchResult
from agentos.domain import Json, SearchEffort
from agentos.evolver.policy import Policy
from agentos.ports import Proposal
from agentos.proposers.repair import RepairProposer
from agentos.proposers.repair.proposer import PROBE_TIMEOUT_S
from agentos.proposers.repair.ranking import PAIR_MAX, both_edits
from agentos.proposers.repair.search import MeteredBench, Nearness, SearchBudget
from tests.proposers.repair.test_repair_resumed import TRY_S, Counted

TOOL = '''"""Adds up one column of a CSV file."""

from pydantic import BaseModel

TOOL = {"name": "probe", "description": "column sum", "effects": ["read"], "dependencies": []}


class Input(BaseModel):
    path: str
    column: int


class Output(BaseModel):
    total: int


def run(input: Input) -> Output:
    total = 0
    with open(input.path) as file:  # closed again
        rows = file.read().splitlines()
    for row in rows[1:-1]:
        total += int(row.split(",")[input.column])
    return Output(total=total)
'''


@pytest.fixture
def benches() -> LocalBenches:
    return LocalBenches()


@pytest.fixture
def counted() -> Counted:
    """Their budget is a number of tries, whatever the machine: who looks for more uses it up."""
    return Counted()


def proposals(benches: LocalBenches, brief, workers: int = 1):  # type: ignore[no-untyped-def]  # a made Brief
    return list(RepairProposer(benches, workers).propose(brief))


@pytest.mark.slow
def test_a_tool_with_an_off_by_one_is_repaired_over_its_input_files(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    table = b"a,b\n1,2\n3,4\n5,6\n"
    cases = [
        case("t1", {"total": 9}, path="x.csv", column=0, inputs={"x.csv": table}),
        case("t2", {"total": 12}, path="x.csv", column=1, inputs={"x.csv": table}),
    ]
    first = proposals(benches, brief(TOOL, cases, budget_s=20.0), workers=2)[0]
    assert first.files == {"tool/probe/tool.py": TOOL.replace("rows[1:-1]", "rows[1:]")}
    assert first.predicted_fixes == ("t1", "t2")
    assert "rows[1:-1]" in first.summary
    assert "line 21, in run" in first.summary
    assert all(bench._server.ended for bench in benches.opened), "every bench must be closed"


LIMIT = "def probe(x):\n    if x > 3:\n        return 'big'\n    return 'small'\n"


def test_working_calls_keep_their_answers_and_are_named_as_at_risk(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    working = [(case("t2", x=9), "big"), (case("t3", x=2), "small"), (case("t4", x=1), "small")]
    found = proposals(benches, brief(LIMIT, [case("t1", "big", x=3)], working))
    assert ">= 3" in found[0].files["tool/probe/tool.py"] or "> 2" in found[0].files["tool/probe/tool.py"]
    assert set(found[0].tasks_at_risk) == {"t2", "t3", "t4"}
    assert all(0 < proposal.prior <= 1 for proposal in found)
    for proposal in found:
        names: dict[str, object] = {}
        exec(proposal.files["tool/probe/tool.py"], names)
        assert [names["probe"](x) for x in (3, 9, 2, 1)] == ["big", "big", "small", "small"]  # type: ignore[operator]


@pytest.mark.slow
def test_what_cannot_be_repaired_gets_no_proposal(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    source = "def probe(x):\n    return x * 2\n"
    cases = [case("t1", 17, x=1), case("t2", 4711, x=2), case("t3", -5, x=3)]
    assert proposals(benches, brief(source, cases)) == []


def test_a_search_that_finds_nothing_returns_how_far_it_came(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    def effort(source: str, budget_s: float) -> SearchEffort:
        search = RepairProposer(benches, 1).propose(brief(source, [case("t1", 17, x=1)], budget_s=budget_s))
        with pytest.raises(StopIteration) as end:
            next(search)
        return end.value.value

    whole = effort("def probe(x):\n    return x\n", 60.0)
    assert whole.exhausted
    assert 0 < whole.tried <= whole.known
    assert whole.cpu_s > 0
    cut = effort("def probe(x):\n    return x\n", 0.0)
    assert not cut.exhausted


def test_it_names_the_tool_and_the_helper_modules_that_it_searched(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    source = "def probe(x):\n    return x\n"
    helpers = {f"tool/probe/{name}": source for name in ("_one.py", "_two.py")}
    given = brief(source, [case("t1", 17, x=1)], budget_s=0.0)
    beside = {given.path: source, **helpers, "tool/probe/other.py": source}
    search = RepairProposer(benches, 1).propose(replace(given, files=beside, surface=("tool/*/*.py",)))
    with pytest.raises(StopIteration) as end:
        next(search)
    assert end.value.value.files == (given.path, *helpers)


@pytest.mark.slow
def test_a_partial_repair_says_so(counted, case, brief) -> None:  # type: ignore[no-untyped-def]
    cases = [case("t1", "big", x=3), case("t2", "huge", x=1_000_000)]
    working = [(case("t3", x=2), "small")]
    first = proposals(counted, brief(LIMIT, cases, working, budget_s=200 * TRY_S))[0]
    assert first.predicted_fixes in (("t1",), ("t2",))
    assert "partial: 1 of 2" in first.summary


TWO_SLIPS = """def probe(kind, x):
    if kind == "age":
        if x > 18:
            return "adult"
        return "minor"
    if x < 0:
        return "frost"
    return "warm"
"""


@pytest.mark.slow
def test_two_slips_that_break_tasks_of_their_own_are_mended_together_once_and_for_a_person(  # type: ignore[no-untyped-def]
    counted, case, brief
) -> None:
    cases = [case("t1", "adult", kind="age", x=18), case("t2", "frost", kind="temp", x=0)]
    working = [
        (case("w1", kind="age", x=30), "adult"),
        (case("w2", kind="age", x=17), "minor"),
        (case("w3", kind="temp", x=1), "warm"),
        (case("w4", kind="temp", x=-4), "frost"),
    ]
    pair, *others = proposals(counted, brief(TWO_SLIPS, cases, working, budget_s=300 * TRY_S))
    assert set(pair.predicted_fixes) == {"t1", "t2"}
    assert set(pair.tasks_at_risk) == {"w1", "w2", "w3", "w4"}
    names: dict[str, Callable[[str, int], str]] = {}
    exec(pair.files["tool/probe/tool.py"], names)
    said = [names["probe"](*given) for given in (("age", 18), ("age", 17), ("temp", 0), ("temp", 1))]
    assert said == ["adult", "minor", "frost", "warm"]
    assert 0 < pair.prior < Policy().replay.prior_min, "no pair is promoted without a person"
    assert all(len(other.predicted_fixes) == 1 for other in others), "the two in the other order are the same"
    assert all(bench._server.ended for bench in counted.opened)


ONE_BEHIND_THE_OTHER = """def probe(rows):
    total = 0
    for row in rows:
        total += row["price"] * row["count"]
    return total * 100
"""


@pytest.mark.slow
def test_a_slip_that_hides_behind_an_exception_is_mended_with_it_for_a_person(counted, case, brief) -> None:  # type: ignore[no-untyped-def]
    """No single edit passes a task: the first one only moves the failure on."""
    cases = [
        case("t1", 10.71, rows=[{"cost": 153, "count": 7}]),
        case("t2", 4.43, rows=[{"cost": 34, "count": 11}, {"cost": 23, "count": 3}]),
    ]
    found = proposals(counted, brief(ONE_BEHIND_THE_OTHER, cases, budget_s=5_000 * TRY_S))
    assert found
    for pair in found:
        assert set(pair.predicted_fixes) == {"t1", "t2"}
        assert 0 < pair.prior < Policy().replay.prior_min, "no pair is promoted without a person"
        assert "cost" in pair.files["tool/probe/tool.py"]
        assert "price" not in pair.files["tool/probe/tool.py"]


def test_how_far_an_answer_is_off_is_told_by_its_parts_and_an_exception_is_farther(case) -> None:  # type: ignore[no-untyped-def]
    cases = [case("t1", {"a": 1, "b": [2, 3]}), case("t2", "tuesday"), case("t3", 5), case("t4")]
    raised = {"error": "KeyError", "message": "'a'"}
    near = Nearness(cases, ({"a": 0, "b": [0, 3]}, "tuesdy", raised, raised))
    assert near.gain(0, {"a": 1, "b": [0, 3]}) == pytest.approx(0.5)
    assert near.gain(0, {"a": 0, "b": [2, 3]}) == pytest.approx(0.5)
    assert near.gain(0, {"a": 0, "b": [0, 0]}) == 0
    assert near.gain(0, {"a": 0, "b": [0, 3]}) == 0
    assert near.gain(0, raised) == 0
    assert near.gain(1, "tuesday") > near.gain(1, "tusdy") == 0
    assert near.gain(2, 4) == 0.5
    assert near.gain(2, {"error": "ValueError", "message": "x"}) == 0.3
    assert near.gain(2, raised) == 0
    assert near.gain(2, {"error": "timeout", "message": ""}) == 0
    assert near.gain(3, "anything") == 0.5


def test_nothing_fails_so_nothing_is_proposed(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    assert proposals(benches, brief(LIMIT, [case("t1", "big", x=7)])) == []


def test_a_source_that_is_no_python_gets_no_proposal(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    assert proposals(benches, brief("def probe(:\n", [case("t1", 1, x=1)])) == []


@pytest.mark.slow
def test_endless_loops_cost_their_limit_only(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    source = "def probe(n):\n    total = 0\n    while n > 0:\n        total += n\n    return total\n"
    first = proposals(benches, brief(source, [case("t1", 6, n=3)], budget_s=20.0))[0]
    assert "n -= 1" in first.files["tool/probe/tool.py"]


@pytest.mark.slow
def test_the_budget_ends_the_search(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    cases = [case("t1", {"total": 4711}, path="x.csv", column=0, inputs={"x.csv": b"a\n1\n"})]
    with pytest.raises(StopIteration) as end:
        next(RepairProposer(benches, 1).propose(brief(TOOL, cases, budget_s=0.5)))
    assert not end.value.value.exhausted
    assert end.value.value.cpu_s < 2.0, "of CPU: what passes on the clock is the machine's matter"


class BusyBenches:
    """Local benches on a machine that gives them their turn late, the first ``times`` times."""

    def __init__(self, late_s: float, times: int) -> None:
        self._benches, self._late_s, self._times = LocalBenches(), late_s, times

    def bench(self, *arguments: Any) -> "BusyBenches":
        made = BusyBenches(self._late_s, 0)
        made._inner, made._outer = self._benches.bench(*arguments), self
        return made

    def try_source(self, source: str, **how: Any) -> BenchResult:
        if self._outer._times > 0:
            self._outer._times -= 1
            time.sleep(self._outer._late_s)
        return self._inner.try_source(source, **how)

    def close(self) -> None:
        self._inner.close()


@pytest.mark.slow
def test_a_source_that_had_its_turn_late_did_not_hang(case, brief) -> None:  # type: ignore[no-untyped-def]
    """The limit of a case comes from what the original computes, not from how long it waited."""
    source = "def probe(x):\n    sum(range(1_000_000))\n    return x - 1\n"
    search = RepairProposer(BusyBenches(PROBE_TIMEOUT_S, times=1), 1).propose(
        brief(source, [case("t1", 4, x=3)], budget_s=2.0)
    )
    assert any("x + 1" in one.files["tool/probe/tool.py"] for one in search)


@pytest.mark.parametrize(
    ("cpu_s", "output", "hung"),
    [(0.001, 1, False), (0.1, 1, True), (0.001, {"error": "timeout", "message": "it slept"}, True)],
)
def test_what_hangs_is_told_by_what_it_computes(cpu_s: float, output: Json, hung: bool) -> None:
    class Late:
        def try_source(self, source: str, **how: object) -> BenchResult:
            time.sleep(0.02)
            return BenchResult((False,), (0.0,), (output,), cpu_s=cpu_s)

        def close(self) -> None: ...

    metered = MeteredBench(Late(), slow_s=0.01)
    metered.run("", [0])
    assert metered.hung is hung
    waited = output != 1
    assert (metered.used_s >= 0.02) is (waited or cpu_s > 0.02), (
        "sleep is paid for, waiting for a turn is not"
    )


def test_an_endless_loop_that_waited_for_its_turn_pays_what_it_computed() -> None:
    class Busy:
        def try_source(self, source: str, **how: object) -> BenchResult:
            time.sleep(0.2)
            return BenchResult(
                (False,), (0.0,), ({"error": "timeout", "message": "it computed"},), cpu_s=0.03
            )

        def close(self) -> None: ...

    metered = MeteredBench(Busy(), slow_s=0.024)
    metered.run("", [0])
    assert (metered.hung, metered.used_s) == (True, 0.03)


def test_at_most_as_many_as_asked_for(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    found = proposals(benches, brief(LIMIT, [case("t1", "big", x=3)], max_candidates=2))
    assert len(found) == 2


def test_a_waiting_machine_does_not_use_up_the_budget() -> None:
    meter = SearchBudget(cpu_s=1.0, deadline=time.monotonic() + 60)
    time.sleep(0.05)
    assert not meter.spent
    meter.used_s = 1.0
    assert meter.spent
    assert SearchBudget(cpu_s=1.0, deadline=time.monotonic() - 1).spent, "what waits for ever ends as well"


def test_after_a_find_the_search_costs_as_much_again_at_most() -> None:
    meter = SearchBudget(cpu_s=100.0, deadline=time.monotonic() + 60, used_s=4.0)
    meter.found()
    assert 4.0 < meter.cpu_s < 12.0
    scarce = SearchBudget(cpu_s=5.0, deadline=time.monotonic() + 60, used_s=4.0)
    scarce.found()
    assert scarce.cpu_s == 5.0


def test_the_trials_of_a_bench_count(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    bench = benches.bench(brief(LIMIT, []).base, "", [case("t1", "big", x=3)], 1.0)
    tried = bench.try_source("def probe(x):\n    return sum(range(200000))\n", trace=True)
    bench.close()
    assert tried.cpu_s > 0
    assert tried.raised == (0,)


GUARDED = """def probe(rows):
    found = []
    for row in rows:
        if row["n"] < 0:
            raise ValueError("negative")
        found.append(row["n"])
    return found
"""


@pytest.mark.slow
def test_a_failure_by_the_programs_own_raise_is_not_hushed(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    rows = [{"n": 1}, {"n": -2}]
    for proposal in proposals(benches, brief(GUARDED, [case("t1", [1], rows=rows)], budget_s=4.0)):
        assert "raise ValueError" in proposal.files["tool/probe/tool.py"]
        assert "if False" not in proposal.files["tool/probe/tool.py"]


@pytest.mark.slow
def test_a_key_that_is_missing_gets_its_default_soon(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    source = (
        "def probe(rows):\n    total = 0\n    for row in rows:\n        total += row['n']\n    return total\n"
    )
    failing = [case("t1", 4, rows=[{"n": 4}, {}]), case("t2", 7, rows=[{}, {"n": 7}])]
    first = proposals(benches, brief(source, failing, [(case("t3", rows=[{"n": 2}]), 2)], budget_s=4.0))[0]
    names: dict[str, object] = {}
    exec(first.files["tool/probe/tool.py"], names)
    assert names["probe"]([{"n": 5}, {}, {"n": 6}]) == 11  # type: ignore[operator]


def test_what_is_hardly_believed_in_is_not_what_nobody_weighed() -> None:
    first = Proposal("c", "s", "o", {}, "w", (), (), weight=0.01, prior=1e-200)
    pair = both_edits(first, first)
    assert 0 < pair.weight < 0.0005
    assert 0 < pair.prior <= PAIR_MAX


def test_a_condition_turned_around_is_unsure_and_below_what_is_promoted_alone(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    cases = [case("t1", True, x="a", y="b"), case("t2", False, x="b", y="b"), case("t3", True, x="c", y="b")]
    made = list(RepairProposer(benches, 1).propose(brief("def probe(x, y):\n    return x == y\n", cases)))
    turned = [each for each in made if "Unsure" in each.cause]
    assert turned
    assert turned[0] is made[0]
    assert all(0 < each.prior < Policy().replay.prior_min for each in turned)


def test_a_computation_left_out_that_changes_most_answers_is_unsure(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    source = "def probe(a, b):\n    return a * 3 + b\n"
    made = list(RepairProposer(benches, 1).propose(brief(source, [case("t1", 12, a=4, b=5)])))
    dropped = [each for each in made if each.files["tool/probe/tool.py"].endswith("return a * 3\n")]
    assert dropped
    assert "Unsure: it leaves a computation out" in dropped[0].cause
    assert all(0 < each.prior < Policy().replay.prior_min for each in dropped)


def test_a_computation_left_out_that_few_answers_need_is_believed_as_before(benches, case, brief) -> None:  # type: ignore[no-untyped-def]
    source = "def probe(text):\n    return text.strip().lower()\n"
    failing = [case("t1", "Ab", text="Ab")]
    working = [(case("w1", text=" ab "), "ab"), (case("w2", text="cd"), "cd")]
    made = list(RepairProposer(benches, 1).propose(brief(source, failing, working)))
    dropped = [each for each in made if each.files["tool/probe/tool.py"].endswith("text.strip()\n")]
    assert dropped
    assert "Unsure" not in dropped[0].cause
