"""A search goes on where an earlier one of the same stopped, and never says anything else than it would have alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from local_bench import LocalBenches

from agentos.benches import Bench, BenchResult
from agentos.domain import SearchEffort, Snapshot
from agentos.ports import Brief, Case, Proposal
from agentos.proposers.repair import RepairProposer
from agentos.proposers.repair.search import KEPT_FILES, TriedBefore

TRY_S = 0.05  # what each try is said to cost, so that a budget is a number of tries
FEW_S, MANY_S = 1.2, 240.0
SOURCE = '''def probe(rows, least):
    """Names of rows, by their number, from the least on."""
    found = []
    for row in rows:
        if row["number"] >= least and row["name"]:
            found.append((row["number"], row["name"].strip()))
    found.sort()
    return ", ".join(name for number, name in found)
'''


class Counted(LocalBenches):
    """Knows what was tried, and charges the same for each try."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: Counter[str] = Counter()

    def bench(self, snapshot: Snapshot, path: str, cases: Sequence[Case], timeout_s: float) -> Bench:
        made = super().bench(snapshot, path, cases, timeout_s / 5)  # of CPU: what hangs here hangs for ever
        plain, seen = made.try_source, set[str]()

        def counted(source: str, *, trace: bool = False, cases: Sequence[int] | None = None) -> BenchResult:
            if not trace and cases is not None and source not in seen:  # a try may ask twice
                seen.add(source)
                self.tried[source] += 1
            return replace(plain(source, trace=trace, cases=cases), cpu_s=TRY_S)

        made.try_source = counted  # type: ignore[method-assign]
        return made


@pytest.fixture
def wrong(case: Callable[..., Case], brief: Callable[..., Brief]) -> Brief:
    """A file whose names are wanted in upper case: an edit that lies behind many others."""
    rows = [{"number": 2, "name": "b"}, {"number": 1, "name": " a "}, {"number": 3, "name": ""}]
    return brief(
        SOURCE,
        [case("t1", "A, B", rows=rows, least=1)],
        [(case("w1", rows=rows, least=4), "")],
        max_candidates=3,
    )


def search(
    given: Brief, folder: Path | None, budget_s: float
) -> tuple[list[Proposal], SearchEffort | None, Counter[str]]:
    benches = Counted()
    found, proposals = [], RepairProposer(benches, 1, kept=folder).propose(replace(given, budget_s=budget_s))
    while True:
        try:
            found.append(next(proposals))
        except StopIteration as end:
            benches.tried.pop(given.source, None)
            return found, end.value, benches.tried


def texts(found: Sequence[Proposal]) -> list[str]:
    return [text for each in found for text in each.files.values()]


@pytest.mark.slow
def test_a_starved_search_finds_with_more_what_lay_behind_and_tries_nothing_twice(
    wrong: Brief, tmp_path: Path
) -> None:
    found, first, early = search(wrong, tmp_path, FEW_S)
    assert (found, first is not None and first.exhausted) == ([], False)
    assert first is not None
    assert str(first).startswith(f"starved: tried {first.tried} of at least")
    _, second, middle = search(wrong, tmp_path, FEW_S)
    assert second is not None
    assert second.before > 0
    assert f"tried {second.before + 1} to {second.before + second.tried} of at least" in str(second)
    found, _, late = search(wrong, tmp_path, MANY_S)
    assert max((early + middle + late).values()) == 1
    alone, _, _ = search(wrong, None, MANY_S)
    assert texts(found)[:1] == texts(alone)[:1], "what is proposed is what one long search proposes"
    assert ".upper()" in texts(found)[0]


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"0123")


def mangled(file: Path) -> None:
    text = file.read_text()
    file.write_text(text[:40] + "?" + text[41:])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def binary(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 40)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [mangled, emptied, binary, a_folder])
@pytest.mark.slow
def test_what_is_damaged_counts_as_lost(wrong: Brief, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    _, first, early = search(wrong, tmp_path, FEW_S)
    (file,) = tmp_path.iterdir()
    damage(file)
    _, second, again = search(wrong, tmp_path, FEW_S)
    assert first is not None
    assert second is not None
    assert second.before == 0
    assert set(list(early)[:10]) <= set(again)


@pytest.mark.slow
def test_a_line_that_a_kill_cut_short_is_left_out_and_the_next_one_is_whole(
    wrong: Brief, tmp_path: Path
) -> None:
    _, first, _ = search(wrong, tmp_path, FEW_S)
    (file,) = tmp_path.iterdir()
    lines = file.read_bytes().count(b"\n")
    torn(file)
    _, second, _ = search(wrong, tmp_path, FEW_S)
    assert first is not None
    assert second is not None
    assert second.before == lines
    _, third, _ = search(wrong, tmp_path, FEW_S)
    assert third is not None
    assert third.before > lines, "what was noted behind the torn line is read"


@pytest.mark.parametrize("what", ["source", "base", "path", "cases", "answers"])
@pytest.mark.slow
def test_what_was_tried_of_something_else_is_not_skipped(
    wrong: Brief, tmp_path: Path, case: Callable[..., Case], what: str
) -> None:
    other = {
        "source": replace(wrong, source=wrong.source.replace("least on", "least up")),
        "base": replace(wrong, base=Snapshot("1" * 40, "1" * 40)),
        "path": replace(wrong, path="tool/probe/other.py"),
        "cases": replace(
            wrong,
            cases=tuple(
                replace(each, checks=case("t", f"{n}", least=1).checks) for n, each in enumerate(wrong.cases)
            ),
        ),
        "answers": wrong,
    }[what]
    search(wrong, tmp_path, FEW_S)
    if what == "answers":  # the notes of one search under the name of another: digests are made with its key
        (file,) = tmp_path.iterdir()
        other = replace(wrong, source=wrong.source.replace("least on", "least up"))
        search(other, tmp_path, 0.0)
        (stranger,) = set(tmp_path.iterdir()) - {file}
        stranger.write_bytes(file.read_bytes())
    _, effort, tried = search(other, tmp_path, FEW_S)
    assert effort is not None
    assert effort.before == 0
    assert tried


@pytest.mark.slow
def test_a_failing_case_more_skips_what_failed_and_one_less_tries_it_again(
    wrong: Brief, case: Callable[..., Case], tmp_path: Path
) -> None:
    rows = [{"number": 7, "name": "x"}, {"number": 5, "name": "y"}]
    both = replace(wrong, cases=(*wrong.cases, case("t2", "X", rows=rows, least=6)))
    _, first, _ = search(wrong, tmp_path, FEW_S)
    assert first is not None
    _, more, _ = search(both, tmp_path, FEW_S)
    assert more is not None
    assert more.before == first.tried
    _, other, _ = search(replace(both, cases=both.cases[1:]), tmp_path, FEW_S)
    assert other is not None
    assert other.before < more.before, "what failed on the first case alone may pass now"


@pytest.mark.slow
def test_what_passed_is_tried_again_and_proposed_again(wrong: Brief, tmp_path: Path) -> None:
    once, _, _ = search(wrong, tmp_path, MANY_S)
    again, _, tried = search(wrong, tmp_path, MANY_S)
    assert texts(once)[:1] == texts(again)[:1]
    assert len(tried) < 100, "what failed is skipped"


@pytest.mark.slow
def test_what_one_was_not_sure_of_is_tried_again_but_last(
    case: Callable[..., Case], brief: Callable[..., Brief], tmp_path: Path
) -> None:
    source = "def probe(n):\n    while n > 9:\n        n -= 10\n    return n\n"
    given = brief(source, [case("t1", 4711, n=23)], [(case("w1", n=3), 3)])
    _, whole, early = search(given, tmp_path, MANY_S)
    assert whole is not None
    assert whole.exhausted
    unsure = [
        line for file in tmp_path.iterdir() for line in file.read_text().splitlines() if "unsure" in line
    ]
    _, effort, late = search(given, tmp_path, MANY_S)
    assert effort is not None
    assert effort.exhausted
    assert effort.before == len(early) - len(unsure)
    assert 0 < len(late) == len(unsure)
    assert str(effort).startswith(f"exhausted: tried all {len(early):,} edits")


def test_only_the_newest_notes_are_kept_and_none_is_needed(tmp_path: Path) -> None:
    for number in range(KEPT_FILES + 5):
        with TriedBefore(tmp_path, f"{number}".encode(), {0: b"case"}) as past:
            past.note((number, "x"), 0, unsure=False)
    assert len(list(tmp_path.iterdir())) == KEPT_FILES
    with TriedBefore(tmp_path, f"{KEPT_FILES + 4}".encode(), {0: b"case"}) as past:
        assert past.said((KEPT_FILES + 4, "x")) == "failed"
    (tmp_path / "file").write_text("")
    with TriedBefore(tmp_path / "file" / "below", b"x", {0: b"case"}) as past:  # no folder can be made there
        past.note((1, "x"), 0, unsure=False)
        assert past.said((1, "x")) == ""
