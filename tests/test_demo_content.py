"""The demo's tools have the faults they are meant to have, and its tasks can tell.

Nothing of the loop runs here: each tool is called directly on the files of its tasks. Without its
repair a tool fails exactly the tasks that meet the fault; with it, all pass.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agentos.domain import InputFile, Share, Task, digest, share_of
from agentos.taskfile import Draft, read_drafts

DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo"
HOLD_OUT = 0.2
VISIBLE = 0.5


@dataclass(frozen=True)
class Fault:
    """What is wrong with a tool: the tasks that meet it, and the text that puts it right."""

    meets: Callable[[Draft], bool]
    old: str
    new: str
    tempting: tuple[str, str] | None = None  # repairs what fails, breaks what worked


def text_of(draft: Draft) -> str:
    return next(iter(draft.files.values())).read_text()


def expects(draft: Draft, path: str) -> Any:
    return next(check.spec["value"] for check in draft.checks if check.spec["path"] == path)


def argument(draft: Draft, name: str) -> Any:
    assert draft.call is not None
    return draft.call.args[name]


def at_minimum(draft: Draft) -> bool:
    rows = [line.split(",") for line in text_of(draft).splitlines()[1:]]
    return any(quantity == minimum != "0" for _, quantity, minimum in rows)


FAULTS = {
    # no guard for an empty field
    "record-sizes": Fault(
        lambda draft: argument(draft, "suffix") == "",
        "size = int(recorded)",
        "size = int(recorded) if recorded else 0",
    ),
    # equality where membership is meant
    "zone-tables": Fault(
        lambda draft: argument(draft, "country") in ("CH", "NL", "SE", "KE", "CZ"),
        "country == codes",
        "country in codes",
    ),
    # an address is not brought to lower case
    "mail-senders": Fault(
        lambda draft: (
            "messages" in {check.spec["path"] for check in draft.checks}
            and any(word in draft.name for word in ("gardeners?", "choir", "support", "orchard"))
        ),
        "counts[address] += 1",
        "counts[address.lower()] += 1",
    ),
    # an open boundary that should be closed
    "log-window": Fault(
        lambda draft: not argument(draft, "until").startswith("2099"),
        "since < stamp < until",
        "since <= stamp < until",
    ),
    # one too few
    "code-outline": Fault(
        lambda draft: argument(draft, "lines") > 10,
        "node.end_lineno - node.lineno",
        "node.end_lineno - node.lineno + 1",
    ),
    # arguments in the wrong order
    "expense-report": Fault(
        lambda draft: (
            argument(draft, "measure") == "share" and argument(draft, "category") not in ("", "rent")
        ),
        "quotient(overall, spent)",
        "quotient(spent, overall)",
    ),
    # the wrong name, left over from the line above
    "stock-compare": Fault(
        lambda draft: bool(expects(draft, "removed")),
        "for article in old if article not in old",
        "for article in old if article not in new",
    ),
    # a condition is missing
    "requirements-list": Fault(
        lambda draft: bool(argument(draft, "extras")) and "typer" not in draft.name,
        'if "extra" in marker:',
        'if "extra" in marker and not input.extras:',
    ),
    # a wrong condition; the right one needs a word that the file does not have
    "till-report": Fault(
        lambda draft: "refund" in text_of(draft),
        "if amount < 0:",
        'if row["kind"] == "void":',
        tempting=("if amount < 0:", "if False:"),
    ),
    # a boundary with a special case: moving the boundary alone breaks the special case
    "reorder-list": Fault(
        at_minimum,
        "if quantity < minimum:",
        "if minimum and quantity <= minimum:",
        tempting=("quantity < minimum", "quantity <= minimum"),
    ),
    # a format that the tool does not know at all
    "log-span": Fault(
        lambda draft: not text_of(draft)[0].isdigit(),
        "        datetime.fromisoformat(line[:19])\n",
        "        datetime.fromisoformat(line[:19]) if line[0].isdigit()\n"
        '        else datetime.strptime("2000 " + line[:15], "%Y %b %d %H:%M:%S")\n',
    ),
}
RIGHT = {"license-words"}
BY_ONE_EDIT = set(FAULTS) - {"till-report", "reorder-list", "log-span"}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Draft]]:
    spec = importlib.util.spec_from_file_location("make_tasks", DEMO / "make_tasks.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    return {path.stem: read_drafts(path) for path in maker.write_tasks(tmp_path_factory.mktemp("tasks"))}


def tool_file(skill: str) -> Path:
    (path,) = (DEMO / "skills" / skill / "tools").glob("*.py")
    return path


def module_of(source: str, name: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def passes(module: ModuleType, draft: Draft, place: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Call the tool in a workspace of its own and apply the task's checks."""
    place.mkdir()
    for name, source in draft.files.items():
        shutil.copy(source, place / name)
    monkeypatch.chdir(place)
    assert draft.call is not None
    try:
        output = module.run(module.Input.model_validate(dict(draft.call.args))).model_dump()
    except (ValueError, TypeError, AttributeError):
        return False
    return all(output[check.spec["path"]] == check.spec["value"] for check in draft.checks)


def outcomes(
    source: str, drafts: list[Draft], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, bool]:
    module = module_of(source, "tool")
    place = tmp_path / hashlib.sha256(source.encode()).hexdigest()[:8]
    place.mkdir()
    return {draft.name: passes(module, draft, place / str(n), monkeypatch) for n, draft in enumerate(drafts)}


def work_of(draft: Draft) -> Task:
    inputs = [
        InputFile(name, hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)
        for name, path in draft.files.items()
    ]
    return draft.task("task-0", inputs, datetime.now(UTC))


def is_hidden(draft: Draft) -> bool:
    """Hold-out, or a guard that proposers do not see (agentos/evolver/select/curate.py)."""
    key = work_of(draft).key
    return (
        share_of(key, HOLD_OUT) is Share.HOLD_OUT or int(digest(["visible", key])[:8], 16) / 16**8 >= VISIBLE
    )


@pytest.mark.slow
def test_every_skill_has_tasks_and_every_fault_is_described(tasks: dict[str, list[Draft]]) -> None:
    skills = {path.name for path in (DEMO / "skills").iterdir()}
    assert skills == set(FAULTS) | RIGHT == set(tasks)
    assert sum(map(len, tasks.values())) >= 24
    names = [draft.name for drafts in tasks.values() for draft in drafts]
    assert len(names) == len(set(names))
    for skill, drafts in tasks.items():
        assert all(draft.call and draft.call.tool == f"{skill}/{tool_file(skill).stem}" for draft in drafts)
        assert (DEMO / "skills" / skill / "SKILL.md").read_text().startswith(f"---\nname: {skill}\n")


@pytest.mark.parametrize("skill", sorted(FAULTS))
def test_a_faulty_tool_fails_exactly_the_tasks_that_meet_the_fault(
    skill: str, tasks: dict[str, list[Draft]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = outcomes(tool_file(skill).read_text(), tasks[skill], tmp_path, monkeypatch)
    expected = {draft.name: not FAULTS[skill].meets(draft) for draft in tasks[skill]}
    assert found == expected
    assert list(found.values()).count(False) >= 4
    assert list(found.values()).count(True) >= 3


@pytest.mark.parametrize("skill", sorted(FAULTS))
def test_the_right_repair_makes_every_task_pass(
    skill: str, tasks: dict[str, list[Draft]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, fault = tool_file(skill).read_text(), FAULTS[skill]
    assert source.count(fault.old) == 1
    found = outcomes(source.replace(fault.old, fault.new), tasks[skill], tmp_path, monkeypatch)
    assert all(found.values())


@pytest.mark.parametrize("skill", sorted(RIGHT))
def test_a_right_tool_passes_all_of_its_tasks(
    skill: str, tasks: dict[str, list[Draft]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(outcomes(tool_file(skill).read_text(), tasks[skill], tmp_path, monkeypatch).values())


@pytest.mark.parametrize("skill", sorted(name for name, fault in FAULTS.items() if fault.tempting))
def test_the_tempting_repair_is_wrong_where_no_proposer_can_see_it(
    skill: str, tasks: dict[str, list[Draft]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These tasks read shipped files only, so their shares are the same on every machine."""
    source, fault = tool_file(skill).read_text(), FAULTS[skill]
    assert fault.tempting is not None
    found = outcomes(source.replace(*fault.tempting), tasks[skill], tmp_path, monkeypatch)
    met = [draft for draft in tasks[skill] if fault.meets(draft)]
    assert all(found[draft.name] for draft in met)
    broken = [draft for draft in tasks[skill] if not found[draft.name]]
    assert broken
    assert all(is_hidden(draft) for draft in broken)
    assert sum(share_of(work_of(draft).key, HOLD_OUT) is Share.OPEN for draft in met) >= 2


def test_a_folder_that_no_demo_made_is_not_wiped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DEMO))
    driving = importlib.import_module("driving")
    mine = tmp_path / "mine"
    (mine / "home").mkdir(parents=True)
    with pytest.raises(driving.DemoError):
        driving.fresh(mine)
    assert (mine / "home").is_dir()
    made = driving.fresh(tmp_path / "new")
    (made / "tasks.yaml").touch()
    driving.fresh(made)
    assert [path.name for path in made.iterdir()] == [driving.MARK]
