"""What is installed, what is refused, and what a plug-in cannot do by being there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from agentos import checks
from agentos.daemon.evolve import plugins
from agentos.daemon.evolve.plugins import with_plugins
from agentos.daemon.people.channels import channels_of
from agentos.domain import Check, Layer, Tier
from agentos.errors import NotFound, Unavailable, UserError
from agentos.evolver.guards.static.check import asked, guard, refusal
from agentos.evolver.policy import Policy
from agentos.evolver.verdict import judge as judging
from agentos.home import Home
from agentos.ledger.blobs import BlobStore
from agentos.models.secrets import Secret, keep, value_of, values
from agentos.plugins import registry
from agentos.plugins.checks import faults, sent
from agentos.ports import Proposal
from agentos.retrieval import installed
from agentos.retrieval.storage import Storage
from agentos.sandboxes.choice import SANDBOXES, Choice
from agentos.settings import Notify
from agentos.testing import FakeRegistry
from tests.refusals import raises

Install = Callable[..., Path]
GOOD = "def tell(document):\n    pass\n"


def reasons() -> dict[str, str]:
    return {plugin.name: why for plugin, why in registry.everything()}


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_kind_knows_the_names_that_ship(kind: str) -> None:
    names = list(registry.KINDS[kind].built_ins())
    assert len(set(names)) == len(names)
    wanted = {
        "sandboxes": [*SANDBOXES, "kubernetes"],
        "checks": list(checks.KINDS),
        "notifiers": [
            *channels_of(
                Home(Path("/")), Notify(command=["x"], mail_to="a@b", webhook="http://x", desktop=True)
            )
        ],
        "pages": [],
    }
    assert names == wanted.get(kind, names)
    assert names or kind == "pages"


@pytest.mark.parametrize(
    ("point", "source", "says"),
    [
        ("own:tell", "import nowhere_at_all", "ModuleNotFoundError"),
        ("own:tell", "def tell(", "SyntaxError"),
        ("own:nobody", GOOD, "AttributeError"),
        ("nowhere:tell", GOOD, "ModuleNotFoundError"),
        ("own:tell", "raise SystemExit(3)", "SystemExit: 3"),
        ("own:tell", "raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("own:tell", "tell = 3", "it is a int, which cannot be called"),
    ],
)
def test_one_that_does_not_load_is_named_with_its_reason(
    install: Install, point: str, source: str, says: str
) -> None:
    install({"agentos.notifiers": {"bell": point}}, own=source)
    assert says in reasons()["bell"]
    assert "of mine 1.2 cannot be used" in reasons()["bell"]
    assert "pip uninstall mine" in reasons()["bell"]


def test_an_import_that_does_not_end_is_left_behind(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "LOAD_S", 0.2)
    install(
        {"agentos.notifiers": {"bell": "slow:tell", "horn": "quick:tell"}},
        slow="import threading\nthreading.Event().wait(20)\n" + GOOD,
        quick=GOOD,
    )
    assert "did not end within 0.2 s" in reasons()["bell"]
    assert reasons()["horn"] == ""


@pytest.mark.parametrize("kind", [kind for kind in registry.KINDS if kind != "pages"])
def test_a_name_that_ships_is_taken(install: Install, kind: str) -> None:
    name = next(iter(registry.KINDS[kind].built_ins()))
    install({f"agentos.{kind}": {name: "own:tell"}}, own="raise RuntimeError('it was imported')")
    (plugin,) = registry.installed(kind)
    assert plugin.fault == f"the name {name} is taken"
    with raises(registry.PluginFailed, type_next="pip uninstall mine", names=[f"the name {name} "]):
        registry.load(plugin)
    assert "own" not in sys.modules
    assert registry.names(kind).count(name) == 1


@pytest.mark.parametrize("name", ["../up", "Bell", "a b", "é", "x" * 41, "-bell"])
def test_a_name_that_is_none_is_refused(install: Install, name: str) -> None:
    install({"agentos.notifiers": {name: "own:tell"}}, own=GOOD)
    assert "is no name" in reasons()[name]
    assert name not in registry.names("notifiers")


def test_of_two_that_want_one_name_the_first_has_it(install: Install) -> None:
    install({"agentos.notifiers": {"bell": "own:tell"}}, name="alpha", own=GOOD)
    install({"agentos.notifiers": {"bell": "other:tell"}}, name="beta", other=GOOD)
    first, second = registry.installed("notifiers")
    assert (first.distribution, first.fault) == ("alpha", "")
    assert (second.distribution, second.fault) == ("beta", "the name bell is taken")


def test_what_a_trial_was_measured_with_is_current_in_that_very_version(install: Install) -> None:
    install({"agentos.notifiers": {"bell": "own:tell", "mail": "own:tell"}}, own=GOOD)
    assert registry.is_current("notifiers/bell (mine 1.2)")
    for label in (
        "notifiers/bell (mine 1.1)",
        "notifiers/mail (mine 1.2)",
        "checks/bell (mine 1.2)",
        "bell",
        "",
    ):
        assert not registry.is_current(label)


@pytest.mark.parametrize(
    "source",
    [
        "import agentos.evolver.verdict.judge as kernel\nkernel.judge = lambda *a, **k: None\n",
        "from agentos.evolver.verdict.judge import judge\njudge.__code__ = (lambda *a, **k: None).__code__\n",
        "from agentos.evolver.policy import Policy\nPolicy.version = 'mine'\nPolicy.__hash__ = None\n"
        "Policy.asks = lambda *a: False\n",
        "import agentos.evolver.verdict.judge as kernel\nkernel.sorted = lambda *a: []\n",
        "from agentos.evolver.guards.static import RULES\nRULES.clear()\n",
        "from agentos import checks\nchecks.KINDS['equals'] = checks.KINDS['python']\n",
        "from agentos import checks\nchecks.JUDGES[checks.Equals] = lambda *a: ''\n",
    ],
)
def test_what_changes_the_kernel_while_it_is_imported_is_undone(install: Install, source: str) -> None:
    from agentos.evolver.guards.static import RULES

    before = (judging.judge, judging.judge.__code__, dict(RULES), dict(checks.KINDS), dict(checks.JUDGES))
    install({"agentos.notifiers": {"bell": "evil:tell"}}, evil=source + GOOD)
    why = reasons()["bell"]
    assert "which is the kernel's" in why
    after = (judging.judge, judging.judge.__code__, dict(RULES), dict(checks.KINDS), dict(checks.JUDGES))
    assert before == after
    assert not hasattr(Policy, "asks")
    assert not hasattr(judging, "sorted")


# --- what each seam does with one that misbehaves ------------------------------------------------

PROPOSER = """
class Mine:
    name = "mine"
    layers = ("skill",)
    def __init__(self, adviser, snapshots):
        self.snapshots = snapshots
        seen.append(snapshots)
    def propose(self, brief):
        return iter(())
seen = []
"""


UNREADABLE = """
class Odd:
    propose = property(lambda self: 1 / 0)
def Mine(adviser, snapshots):
    return Odd()
"""


def test_a_proposer_gets_nothing_that_promotes(install: Install) -> None:
    install({"agentos.proposers": {"mine": "own:Mine"}}, own=PROPOSER)
    made = with_plugins({Layer.SKILL: ()}, None, FakeRegistry({}))[Layer.SKILL]
    assert [found.name for found in made] == ["mine"]
    (snapshots,) = sys.modules["own"].seen
    assert sorted(name for name in dir(snapshots) if not name.startswith("_")) == ["files", "names", "stable"]
    assert snapshots.names(snapshots.stable()) == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def Mine(): pass", "it cannot be made (TypeError"),
        ("def Mine(a, b): return a", "it has no `propose`"),
        ("class Mine:\n    pass", "it has no `propose`"),
        (PROPOSER.replace('"mine"', '"skill"'), "its `name` is 'skill', and its entry point's is 'mine'"),
        (PROPOSER.replace('("skill",)', '("kernel",)'), "its `layers`"),
        (PROPOSER.replace('("skill",)', "()"), "its `layers`"),
        (PROPOSER.replace('("skill",)', "7"), "its `layers`"),
        (PROPOSER.replace('("skill",)', "property(lambda self: 1 / 0)"), "ZeroDivisionError"),
        (PROPOSER.replace('"mine"', "property(lambda self: 1 / 0)"), "ZeroDivisionError"),
        (UNREADABLE, "its `propose` cannot be read (ZeroDivisionError"),
    ],
)
def test_a_proposer_that_does_not_fit_is_left_out_and_named(install: Install, source: str, says: str) -> None:
    install({"agentos.proposers": {"mine": "own:Mine", "other": "fits:Mine"}}, own=source,
            fits=PROPOSER.replace('"mine"', '"other"'))  # fmt: skip
    with capture_logs() as said:
        made = with_plugins({Layer.SKILL: ()}, None, FakeRegistry({}))[Layer.SKILL]
    assert [found.name for found in made] == ["other"]
    assert says in str(said)


def test_a_proposer_that_names_a_layer_twice_is_asked_once(install: Install) -> None:
    install({"agentos.proposers": {"mine": "own:Mine"}}, own=PROPOSER.replace('"skill",', '"skill", "skill"'))
    assert len(with_plugins({}, None, FakeRegistry({}))[Layer.SKILL]) == 1


YIELDS = """
import threading
from agentos.ports import Proposal
class Bare(Exception):
    def __str__(self):
        raise SystemExit
class Turns(dict):
    looked = 0
    def items(self):
        Turns.looked += 1
        return {{"skill/a/a.py": "good" if Turns.looked == 1 else "bad"}}.items()
class Mine:
    name, layers = "mine", ("skill",)
    def __init__(self, *given): pass
    def propose(self, brief):
        def one(**more):
            whole = dict(cause="c", summary="s", operator="mine", files={{"skill/a/a.py": "good"}}, why_this_layer="w",
                         predicted_fixes=("task-1",), tasks_at_risk=())
            return Proposal(**whole | more)
        {body}
"""


def proposals(install: Install, body: str) -> list[Proposal]:
    install({"agentos.proposers": {"mine": "own:Mine"}}, own=YIELDS.format(body=body))
    ((proposer,),) = with_plugins({}, None, FakeRegistry({})).values()
    return list(proposer.propose(None))  # type: ignore[arg-type] # it looks at none


@pytest.mark.parametrize(
    "given",
    [
        "7",
        "one(files={'skill/a/a.py': 5})",
        "one(files={'skill/a/a.py': b'x'})",
        "one(files={5: 'x'})",
        "one(files=None)",
        "one(files=['skill/a/a.py'])",
        "one(files={})",
        "one(files={'skill/a/\\ud800.py': 'x'})",
        "one(files={'skill/a/a.py': '\\ud800'})",
        "one(files={'skill/a/a.py': 'x' * 5_000_000})",
        "one(cause=None)",
        "one(predicted_fixes=None)",
        "one(predicted_fixes='task-1')",
        "one(predicted_fixes=(1,))",
        "one(parents=5)",
        "one(weight='x')",
        "one(weight=float('nan'))",
        "one(prior=-1.0)",
        "one(beside=5)",
        "one(beside=('x',))",
        "one(unusable=5)",
    ],
)
def test_what_is_no_proposal_is_counted_and_the_next_one_is_taken(install: Install, given: str) -> None:
    bad, good = proposals(install, f"yield {given}; yield one()")
    assert bad.unusable
    assert bad.files == {}
    assert (good.unusable, good.files) == ("", {"skill/a/a.py": "good"})


def test_what_is_screened_is_what_is_tried(install: Install) -> None:
    (found,) = proposals(
        install, "yield one(files=Turns(), summary='a\\x00b\\u202e' + 's' * 90_000, beside=(one(),))"
    )
    assert dict(found.files.items()) == dict(found.files.items()) == {"skill/a/a.py": "good"}
    assert found.summary.isprintable()
    assert len(found.summary) < 20_000
    assert [one.files for one in found.beside] == [{"skill/a/a.py": "good"}]


@pytest.mark.parametrize(
    "body", ["raise SystemExit(3)", "raise KeyboardInterrupt", "raise GeneratorExit", "raise Bare"]
)
def test_a_proposer_that_ends_its_thread_ends_nothing_else(install: Install, body: str) -> None:
    with pytest.raises(Exception) as error:
        proposals(install, f"yield one(); {body}")
    assert registry.said(error.value)


def test_a_proposer_that_hangs_is_left_to_itself(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "PROPOSE_S", 0.1)
    with pytest.raises(TimeoutError):
        proposals(install, "yield one(); threading.Event().wait()")


LOOK = """
class Rule:
    effect = {effect!r}
    @staticmethod
    def look(old, new):
        {body}
"""
EDIT = ({"skill/a/a.py": "x = 1\n"}, {"skill/a/a.py": "x = 2\n"})


@pytest.mark.parametrize(
    ("effect", "body", "refuses"),
    [
        ("refuse", "return [('skill/a/a.py', 1, 'no twos')]", True),
        ("ask", "return [('skill/a/a.py', 1, 'no twos')]", False),
        ("refuse", "raise RuntimeError('no twos')", True),
        ("ask", "raise RuntimeError('no twos')", False),
        ("refuse", "return 3", True),
        ("ask", "return [('no twos',)]", False),
        ("pass", "return []", False),
        ("ask", "new.clear(); old.clear(); return [('a', 1, 'x')]", False),
    ],
)
def test_a_screen_rule_refuses_or_asks_whatever_it_does(
    install: Install, effect: str, body: str, refuses: bool
) -> None:
    screen = Policy().screen
    old, new = EDIT
    assert not asked(old, new, screen)
    install({"agentos.screen_rules": {"twos": "own:Rule"}}, own=LOOK.format(effect=effect, body=body))
    said = refusal(guard(old, new, screen), screen, Tier.MEDIUM)
    assert bool(said) is refuses
    asking = asked(old, new, screen)
    assert asking
    assert "twos (mine 1.2)" in asking.reason
    assert said is None or "twos (mine 1.2)" in said.reason
    assert new == {"skill/a/a.py": "x = 2\n"}


@pytest.mark.parametrize("body", ["time.sleep(1)", "raise SystemExit", "return [float('nan')]", "return []"])
def test_a_retriever_that_gives_no_scores_holds_up_no_run(
    install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str
) -> None:
    monkeypatch.setattr(installed, "_PATIENCE_S", 0.05)
    install(
        {"agentos.retrievers": {"mine": "own:scores"}},
        own=f"import time\ndef scores(query, texts):\n    {body}\n",
    )
    found = FakeRegistry({"skill/a/SKILL.md": "---\nname: a\ndescription: b\n---\n"})
    with pytest.raises(Unavailable):
        installed.index_of("mine", Storage(tmp_path / "index.db"), found).find(found.stable(), "b")


def test_a_screen_rule_that_does_not_load_asks(install: Install) -> None:
    install({"agentos.screen_rules": {"twos": "own:Rule"}}, own="raise RuntimeError")
    asking = asked(*EDIT, Policy().screen)
    assert asking
    assert "a screen rule is not in force" in asking.reason


def test_a_screen_rule_finds_nothing_where_there_is_nothing(install: Install) -> None:
    install({"agentos.screen_rules": {"twos": "own:Rule"}}, own=LOOK.format(effect="ask", body="return []"))
    assert asked(*EDIT, Policy().screen) is None


def test_a_kind_of_check_that_is_gone_judges_nothing(install: Install) -> None:
    assert "'gone' is no kind of check" in faults("gone", {})[0]
    with raises(Unavailable, names=["There is no 'gone'"]):
        sent([Check("gone", {})])
    install({"agentos.checks": {"gone": "own"}}, own="raise RuntimeError('no')")
    with raises(Unavailable, names=["RuntimeError: no"]):
        sent([Check("gone", {})])


BLOBS = """
class Store:
    kept = {{}}
    def __init__(self, home): pass
    def read(self, sha256): {read}
    def write(self, sha256, data): {write}
"""


@pytest.mark.parametrize(
    ("read", "write", "says"),
    [
        ("return self.kept[sha256]", "self.kept[sha256] = data", ""),
        ("return self.kept[sha256] + b'x'", "self.kept[sha256] = data", "does not match its name"),
        ("return 'text'", "pass", "its store gave a str"),
        ("return None", "pass", "there is no blob"),
        ("raise RuntimeError('away')", "pass", "RuntimeError: away"),
        ("return b''", "raise OSError('full')", "OSError: full"),
    ],
)
def test_what_a_blob_store_gives_is_held_against_its_name(
    install: Install, tmp_path: Path, read: str, write: str, says: str
) -> None:
    install({"agentos.blob_stores": {"far": "own:Store"}}, own=BLOBS.format(read=read, write=write))
    (tmp_path / "agentos.toml").write_text('blobs = "far"\n')
    store = BlobStore(tmp_path / "blobs")
    if not says:
        assert store.get(store.put(b"content")) == b"content"
        assert not (tmp_path / "blobs").exists()
        return
    with pytest.raises((Unavailable, NotFound), match=says):
        store.get(store.put(b"content"))


def test_a_home_goes_on_reading_its_own_files_when_another_store_is_set(
    install: Install, tmp_path: Path
) -> None:
    old = BlobStore(tmp_path / "blobs").put(b"before")
    install(
        {"agentos.blob_stores": {"far": "own:Store"}},
        own=BLOBS.format(read="return None", write="self.kept[sha256] = data"),
    )
    (tmp_path / "agentos.toml").write_text('blobs = "far"\n')
    assert BlobStore(tmp_path / "blobs").get(old) == b"before"


def test_a_secret_store_that_fails_says_nothing_of_the_secret(install: Install, tmp_path: Path) -> None:
    source = "class S:\n    def __init__(self, home): pass\n    get = set = delete = lambda *a: 1 / len(a) if len(a) < 3 else boom(a[2])\n"
    source += "def boom(value): raise RuntimeError(value)\n"
    install({"agentos.secret_stores": {"vault": "own:S"}}, own=source)
    home = Home(tmp_path)
    secret = Secret("KEY", ("api.example.org",), True, "2026-01-01", "file")
    with pytest.raises(Unavailable) as told:
        keep(home, secret, "hunter2-hunter2", store="vault")
    assert "RuntimeError" in str(told.value)
    assert "hunter2" not in str(told.value)
    assert values(home) == []
    with pytest.raises(UserError):
        value_of(home, "KEY")


def test_a_sandbox_that_promises_nothing_is_not_used(install: Install, tmp_path: Path) -> None:
    source = """
class Box:
    def __init__(self, home, run_uid): self.image = "x"
    def start(self): pass
    def open(self, limits, **more): raise RuntimeError("it ran")
    def close(self): pass
    def examine(self): return {claims}
"""
    install({"agentos.sandboxes": {"open": "own:Box"}}, own=source.format(claims="()"))
    choice = Choice(tmp_path, None, "open")
    with raises(Unavailable, message="sandbox.examines_nothing"):
        choice.start()
    broken = (
        "(__import__('agentos.sandboxes.probe').sandboxes.probe.Guarantee('holds', False, 'it does not'),)"
    )
    install({"agentos.sandboxes": {"broken": "other:Box"}}, name="other", other=source.format(claims=broken))
    with raises(Unavailable, type_next="agentos sandbox check", names=["a job holds"]):
        Choice(tmp_path, None, "broken").start()


def test_nothing_is_looked_for_until_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    def refuse(**_: Any) -> None:
        raise AssertionError("the entry points were read")

    registry.installed.cache_clear()
    monkeypatch.setattr(importlib.metadata, "entry_points", refuse)
    assert faults("equals", {"value": 1}) == []
    assert BlobStore(Path("/nowhere/blobs"))._elsewhere is None
    from agentos.settings import Settings

    assert Settings().retrieval == "bm25"
