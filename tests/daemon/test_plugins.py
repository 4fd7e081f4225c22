"""A proposer of a person's own, from a distribution that is really installed beside agentos."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentos.daemon.evolve.plugins import with_plugins
from agentos.domain import Candidate, Check, Evolution, EvolutionState, Layer, Share, Task
from agentos.errors import UserError
from agentos.evolver.find.triage import AT_WORK
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.proposers.skill import SkillProposer
from agentos.registry.store import Registry
from agentos.testing import FakeRegistry
from tests.daemon.conftest import UNCOMPARED, Daemon
from tests.daemon.test_evolutions import FAULTY, PAIRS, PATH, RIGHT

WHEEL = {
    "METADATA": "Metadata-Version: 2.1\nName: our-proposers\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "entry_points.txt": "[agentos.proposers]\nmine = our_proposers:Mine\n",
}
POINT = "our_proposers:Mine"
MINE = '''
"""Looks for a comparison that is off by one."""
from agentos.domain import Layer
from agentos.ports import Proposal

class Mine:
    name = "mine"
    layers = (Layer.SKILL, Layer.TOOL)

    def __init__(self, adviser, snapshots):
        self.adviser, self.snapshots = adviser, snapshots

    def propose(self, brief):
        text = brief.source.replace("points > input", "points >= input")
        fixes = tuple(case.task_id for case in brief.cases)
        yield Proposal("off by one", "compare with >=", "mine", {brief.path: text}, "the tool's own", fixes, ())
'''


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip installed the distribution."""
    place = tmp_path_factory.mktemp("distribution")
    site, wheel = place / "site", place / "our_proposers-1.0-py3-none-any.whl"
    files = {"our_proposers.py": MINE} | {
        f"our_proposers-1.0.dist-info/{name}": it for name, it in WHEEL.items()
    }
    record = "our_proposers-1.0.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(record, "".join(f"{name},,\n" for name in (*files, record)))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
               "--disable-pip-version-check", "--target", str(site), str(wheel)]  # fmt: skip
    subprocess.run(command, check=True, timeout=120, env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})
    return site


@pytest.fixture
def proposers(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``proposers(source, point)``: those of the skill layer, the distribution being another one if given."""

    def proposers_(source: str = MINE, point: str = POINT) -> Any:
        shutil.copytree(installed, tmp_path / "site")
        (tmp_path / "site/our_proposers.py").write_text(source)
        (entry_points,) = (tmp_path / "site").glob("*.dist-info/entry_points.txt")
        entry_points.write_text(entry_points.read_text().replace(POINT, point))
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        monkeypatch.delitem(sys.modules, "our_proposers", raising=False)
        registry = FakeRegistry({})
        return with_plugins({Layer.SKILL: (SkillProposer(registry),)}, None, registry)

    return proposers_


def test_what_is_installed_is_asked_after_what_is_shipped(proposers: Any) -> None:
    found = proposers()
    assert [proposer.name for proposer in found[Layer.SKILL]] == ["skill", "mine"]
    assert [proposer.name for proposer in found[Layer.TOOL]] == ["mine"]
    assert found[Layer.SKILL][1] is found[Layer.TOOL][0]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def Mine(): pass", "cannot be loaded (TypeError"),
        ("def Mine(", "cannot be loaded (SyntaxError"),
        ("def Mine(a, b): return a", "no `propose`"),
        (MINE.replace('"mine"', '"../mine"', 1), "no `propose`, or no `name`"),
        (MINE.replace('"mine"', '"skill"', 1), "there is a proposer skill already"),
        (MINE.replace("(Layer.SKILL, Layer.TOOL)", '("kernel",)'), "its `layers`"),
        (MINE.replace("(Layer.SKILL, Layer.TOOL)", "()"), "its `layers`"),
    ],
)
def test_one_that_does_not_fit_is_one_sentence(proposers: Any, source: str, says: str) -> None:
    with pytest.raises(UserError, match="our-proposers") as told:
        proposers(source)
    assert says in str(told.value)


@pytest.mark.parametrize(
    ("point", "says"), [("our_proposers:Nobody", "AttributeError"), ("nowhere:Mine", "ModuleNotFoundError")]
)
def test_one_that_is_not_there_is_one_sentence(proposers: Any, point: str, says: str) -> None:
    with pytest.raises(UserError, match="our-proposers") as told:
        proposers(point=point)
    assert f"cannot be loaded ({says}" in str(told.value)


@pytest.mark.sandbox
@pytest.mark.slow
def test_its_edit_is_screened_tried_and_promoted_like_anybodys(
    home: Home, ledger: Ledger, until: Any, make_task: Callable[..., Task], installed: Path
) -> None:
    files = {
        PATH: FAULTY.encode(),
        "skill/exam-kit/SKILL.md": b"---\nname: exam-kit\ndescription: Grades.\n---\n",
    }
    Registry(home.registry).commit(files, "A skill with a fault", "edit")
    # so short that the shipped search finds nothing
    (home.root / "policy.toml").write_text(f"[propose]\nbudget_s = 0.001\n{UNCOMPARED}")
    daemon = Daemon(home, environment={"PYTHONPATH": str(installed)})
    try:
        daemon.start()
        for points, needed in PAIRS:
            check = Check("equals", {"value": "pass" if points >= needed else "fail", "path": "grade"})
            task = make_task("exam-kit/grade", points=points, needed=needed)
            ledger.add_task(replace(task, checks=(check,)), Share.OPEN)

        def over() -> bool:
            found = ledger.find(Evolution)
            return bool(found) and not any(item.state in AT_WORK for item in found)

        until(over, "the evolution has ended", 120)
    finally:
        daemon.close()
    (evolution,) = ledger.find(Evolution)
    assert evolution.state in (EvolutionState.PROBATION, EvolutionState.PROMOTED), evolution.reason
    assert ledger.get(Candidate, str(evolution.candidate_id)).proposer == "mine"
    registry = Registry(home.registry)
    assert registry.files(registry.stable(), PATH)[PATH].decode() == RIGHT
