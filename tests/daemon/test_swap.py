"""What runs are driven by is changed under a daemon at work: by people and by promotions, sound and not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentos.daemon.offline import offline_context
from agentos.daemon.service import service
from agentos.daemon.upkeep.doctor import examine
from agentos.domain import (
    Consent,
    EvolutionState,
    Kind,
    Limits,
    Probe,
    RefusalKind,
    ResourceId,
    Result,
    Run,
    Task,
)
from agentos.errors import Conflict, PromotionRefused, Unavailable
from agentos.evolver.promote.probing import probe_promotion
from agentos.evolver.promote.promotion import promote
from agentos.home import Home
from agentos.ledger.listing import newest_open_runs
from agentos.ledger.reading import Reader
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.settings import load_settings
from tests.command_server import command_server
from tests.daemon.swapping import PATH, edit, marks, mixed, signed, source, waiting
from tests.refusals import raises

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

HARNESS = ResourceId(Kind.HARNESS, "default")


def broken(text: str) -> str:
    """As a person breaks it."""
    return text.replace("import hooks\n", "import hooks\nimport no_such_module\n")


def runs_of(home: Home, tasks: Sequence[Task]) -> list[Run]:
    reader = Reader(home.ledger)
    return [run for task in tasks for run in reader.runs(task.id)]


def by(home: Home, task: Task) -> str:
    """Who signed the run of the task."""
    (run,) = runs_of(home, [task])
    (mark,) = marks(Reader(home.ledger).steps(run.id))
    return mark


def status(home: Home) -> Any:
    done = command_server().run("--home", str(home.root), "status", "--json", env=os.environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def held(home: Home) -> Any:
    return Reader(home.ledger).get_kv("swap.held")


def failed(home: Home) -> bool:
    return bool(held(home)) and held(home)["failed"]


def test_a_fresh_home_is_served_without_a_wait(home: Home) -> None:
    registry = Registry(home.registry)
    (vouched,) = Reader(home.ledger).find(Probe)
    assert vouched.passed
    assert vouched.passes == ()
    good = registry.last_good()
    assert good is not None
    assert source(registry, good) == source(registry)


def test_a_new_agent_does_its_work_at_once(
    daemon: Any,
    home: Home,
    add: Callable[..., Task],
    make_task: Callable[..., Task],
    all_done: Any,
) -> None:
    registry = Registry(home.registry)
    daemon.start()
    path = "agent/newcomer/resource.toml"
    added = registry.commit({path: b'description = "New"\n'}, "A new agent", "edit")
    task = add(replace(make_task("double", n=1, expect=2), agent="newcomer"))
    all_done()
    (run,) = runs_of(home, [task])
    assert run.snapshot == added
    assert run.outcome is not None
    assert run.outcome.result is Result.PASSED
    # but a harness that it brings along and another one comes to use is probed
    files = {path.replace("agent", "harness"): b'description = "New"\n'}
    files["harness/newcomer/harness.py"] = broken(source(registry)).encode()
    files["agent/default/resource.toml"] = b'description = "D"\nharness = "newcomer"\n'
    registry.commit(files, "A new harness for the default agent", "edit")
    after = add(make_task("double", n=3, expect=6))
    all_done()
    assert runs_of(home, [after])[0].snapshot == added


def test_what_a_person_broke_is_not_served_until_it_is_mended(
    daemon: Any,
    home: Home,
    add: Callable[..., Task],
    make_task: Callable[..., Task],
    until: Any,
    all_done: Any,
) -> None:
    registry = Registry(home.registry)
    plain = source(registry)
    daemon.start()
    edit(home, signed(plain, "one"))
    until(lambda: Reader(home.ledger).find(Probe, passed=True)[1:], "the edit has passed")
    first = add(make_task("double", n=1, expect=2))
    all_done()
    assert by(home, first) == "one"

    bad = edit(home, broken(signed(plain, "two")))
    until(lambda: failed(home), "the probe has failed")
    second = add(make_task("double", n=2, expect=4))
    all_done()
    assert by(home, second) == "one"
    told = status(home)["held"]
    assert told["main"] == bad.commit
    assert "no_such_module" in told["why"]
    assert told["undo"] == f"agentos registry revert {HARNESS}"
    (found,) = [item.what for item in examine(home, fix=False) if "probe" in item.what]
    assert "no_such_module" in found
    assert told["undo"] in found

    # what else changes meanwhile waits with it, and comes with the way out
    tool = "skill/test-kit/tools/double.py"
    text = registry.files(registry.stable(), tool)[tool].decode()
    registry.commit({tool: text.replace("n=input.n * 2", "n=input.n * 20").encode()}, "Tenfold", "edit")
    registry.revert(registry.plan_undo(HARNESS, registry.versions(HARNESS)[0].number), "It does not load")
    until(lambda: held(home) is None, "what is in the registry is served")
    third = add(make_task("double", n=3, expect=60))
    all_done()
    assert by(home, third) == "one"
    assert [run.outcome.result for run in runs_of(home, [first, second, third]) if run.outcome] == [
        Result.PASSED
    ] * 3
    until(lambda: registry.last_good() == registry.stable(), "last-good follows")


def test_a_daemon_that_was_killed_over_a_bad_edit_serves_what_was_good(
    daemon: Any,
    home: Home,
    add: Callable[..., Task],
    make_task: Callable[..., Task],
    until: Any,
    all_done: Any,
) -> None:
    edit(home, broken(source(Registry(home.registry))))
    task = add(make_task("double", n=1, expect=2))  # its run starts with the daemon, before any probe
    daemon.start()
    all_done()
    assert [run.outcome.result for run in runs_of(home, [task]) if run.outcome] == [Result.PASSED]
    assert mixed(home, runs_of(home, [task])[0]) == ""
    until(lambda: failed(home), "the probe has failed")
    daemon.close()
    daemon.start()
    until(lambda: len([one for one in Reader(home.ledger).find(Probe) if not one.passed]) == 2, "tried again")


def test_a_home_that_is_older_than_probes_goes_on_with_what_it_has(
    daemon: Any, home: Home, until: Any
) -> None:
    registry = Registry(home.registry)
    edit(home, signed(source(registry), "old"))
    registry.repository.git.references.delete("refs/heads/last-good")
    daemon.start()
    until(lambda: registry.last_good() == registry.stable(), "it counts as good")
    assert len(Reader(home.ledger).find(Probe, passed=True)) == 2


def test_a_promotion_among_twenty_runs_loses_none_and_mixes_none(
    daemon: Any,
    home: Home,
    ledger: Ledger,
    make_task: Callable[..., Task],
    add: Any,
    until: Any,
    all_done: Any,
) -> None:
    plain = source(Registry(home.registry))
    old = edit(home, signed(plain, "old"))
    daemon.environment = {"AGENTOS_PARALLEL": "20"}
    began = time.monotonic()
    daemon.start()
    until(lambda: Registry(home.registry).last_good() == old, "the old one is served")
    until(lambda: held(home) is None, "and no more is being found out")
    asleep_s = max(15, round(3 * (time.monotonic() - began)))  # the new one has to be found out meanwhile
    limits = Limits(wall_s=asleep_s + 60.0)
    tasks = [add(make_task("sleeper", n=asleep_s, limits=limits)) for _ in range(20)]
    until(lambda: len(newest_open_runs(Reader(home.ledger), 100)) == 20, "twenty runs are in flight", 60)
    promoted = waiting(home, ledger, signed(plain, "new"))
    promoted.approve(home)
    until(
        lambda: promoted.state(home).state is EvolutionState.PROBATION, f"promoted {promoted.state(home)}", 60
    )
    in_flight = len(newest_open_runs(Reader(home.ledger), 100))
    after = add(make_task("double", n=1, expect=2))
    all_done(90 + asleep_s)
    runs = runs_of(home, [*tasks, after])
    assert [mixed(home, run) for run in runs] == [""] * 21
    assert {run.outcome.result for run in runs if run.outcome} == {Result.PASSED}
    assert in_flight > 0, "no run was in flight when the pointer moved: the test tests nothing"
    assert {by(home, task) for task in tasks} == {"old"}
    assert by(home, after) == "new"
    (probe,) = ledger.find(Probe, evolution_id=promoted.evolution.id)
    assert probe.passed
    assert probe.snapshot == promoted.candidate.snapshot
    assert len(probe.passes) == 3


RUN = "def run(sdk: Sdk) -> None:\n"
FAULTY = {
    "crashes on import": ("import hooks\n", "import hooks\nimport no_such_module\n", "no_such_module"),
    "leaks memory": (RUN, "_KEPT = bytearray(150 << 20)\n" + RUN, "MB for a small task"),
}


def test_no_faulty_harness_is_promoted_and_work_goes_on(
    daemon: Any,
    home: Home,
    ledger: Ledger,
    add: Any,
    make_task: Callable[..., Task],
    until: Any,
    all_done: Any,
) -> None:
    """Each with a verdict and a consent, as if it had got through everything before."""
    registry = Registry(home.registry)
    before = registry.stable()
    asked = {}
    for name, (find, put, _) in FAULTY.items():
        assert find in source(registry)
        asked[name] = waiting(home, ledger, source(registry).replace(find, put))
        asked[name].approve(home)
    daemon.start()
    task = add(make_task("double", n=1, expect=2))
    for name, item in asked.items():
        until(lambda item=item: item.state(home).ended_at is not None, f"{name} has ended", 120)
        ended = item.state(home)
        assert ended.state is EvolutionState.ROLLED_BACK, ended
        assert "its probe failed, and nothing was moved" in ended.reason
        assert FAULTY[name][2] in ended.reason, ended.reason
    assert registry.stable() == before
    assert held(home) is None
    all_done()
    assert mixed(home, runs_of(home, [task])[0]) == ""
    with offline_context(home) as parts:  # whoever proposes it again is told why it is not tried
        said = parts.taken_back(asked["leaks memory"].candidate.edit.files)
    assert said == (
        f"{asked['leaks memory'].evolution.id} tried the same edit: {asked['leaks memory'].state(home).reason}"
    )


def test_what_answers_probes_and_fails_runs_is_taken_back(
    daemon: Any,
    home: Home,
    ledger: Ledger,
    add: Any,
    make_task: Callable[..., Task],
    until: Any,
    all_done: Any,
) -> None:
    registry = Registry(home.registry)
    plain = source(registry)
    daemon.start()
    add(make_task("double", n=150, expect=300))
    all_done()
    add(make_task("double", n=1, expect=2))  # the newest of its kind, which the probe tries again
    all_done()
    odd = plain.replace(
        RUN, RUN + "    if (sdk.task.call.args if sdk.task.call else {}).get('n') == 150: return\n"
    )
    item = waiting(home, ledger, odd)
    item.approve(home)
    until(lambda: item.state(home).state is EvolutionState.PROBATION, "it is promoted", 60)
    (shown,) = ledger.find(Probe, evolution_id=item.evolution.id)
    assert shown.passed
    assert len(shown.canaries) == 1
    until(lambda: registry.last_good() == registry.stable(), "it is served")
    failed_by_it = add(make_task("double", n=150, expect=300))
    all_done()
    (run,) = runs_of(home, [failed_by_it])
    assert run.outcome is not None
    assert run.outcome.result is Result.FAILED
    until(lambda: item.state(home).state is EvolutionState.ROLLED_BACK, "probation has taken it back", 60)
    assert "passes on the snapshot before it and fails since" in item.state(home).reason
    assert source(registry) == plain
    until(lambda: registry.last_good() == registry.stable(), "what was before is served")
    after = add(make_task("double", n=150, expect=300))
    all_done()
    assert [run.outcome.result for run in runs_of(home, [after]) if run.outcome] == [Result.PASSED]


def test_a_registry_that_cannot_be_read_stops_no_turn_of_the_loop(home: Home) -> None:
    with service(home, load_settings(home.settings)) as parts:
        assert parts.swap.due(0.0)
        assert parts.swap.serves_main
        parts.registry.repository.git.references.delete("refs/heads/main")
        assert not parts.swap.due(0.0)
        parts.swap.settle()
        assert not parts.swap.serves_main


def test_what_passed_no_probe_is_not_promoted_whoever_asks(home: Home, ledger: Ledger) -> None:
    before = Registry(home.registry).stable()
    made = waiting(home, ledger, signed(source(Registry(home.registry)), "unprobed"))
    made.approve(home)
    with offline_context(home) as parts:
        with raises(PromotionRefused, RefusalKind.UNPROBED):
            promote(parts, parts.evolution(made.evolution.id))
        with pytest.raises(Unavailable):
            probe_promotion(parts, parts.evolution(made.evolution.id))
    assert Registry(home.registry).stable() == before


def test_of_two_promotions_at_once_one_is_made_and_one_is_measured_again(
    daemon: Any, home: Home, ledger: Ledger, until: Any
) -> None:
    plain = source(Registry(home.registry))
    one, two = (waiting(home, ledger, signed(plain, mark)) for mark in ("one", "two"))
    one.approve(home)
    two.approve(home)
    daemon.start()
    ends = {EvolutionState.PROBATION, EvolutionState.STALE}
    until(lambda: {one.state(home).state, two.state(home).state} == ends, "both have ended", 60)
    made = next(item for item in (one, two) if item.state(home).state is EvolutionState.PROBATION)
    registry = Registry(home.registry)
    assert source(registry) == made.candidate.edit.files[PATH]
    until(lambda: registry.last_good() == registry.stable(), "last-good follows")
    with pytest.raises(Conflict):
        (two if made is one else one).approve(home)


def test_the_command_approves_nothing_that_is_stale(home: Home, ledger: Ledger) -> None:
    item = waiting(home, ledger, signed(source(Registry(home.registry)), "late"))
    edit(home, signed(source(Registry(home.registry)), "by hand"))
    command = ["--home", str(home.root), "evolution", "approve", item.evolution.id, "--yes"]
    done = command_server().run(*command, env=os.environ)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert f"{item.evolution.id} is stale: what it changes was changed since it was judged" in said
    assert f"agentos evolution retry {item.evolution.id}" in said
    assert ledger.find(Consent, evolution_id=item.evolution.id) == []
