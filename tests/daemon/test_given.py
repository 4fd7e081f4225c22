"""What a run gets of its snapshot, as one digest: it is what a verdict's trials hold on to when main moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from agentos.daemon.run.execution import BoxExecutor
from agentos.domain import Task
from agentos.home import Home
from agentos.ledger.store import Ledger
from agentos.registry.store import Registry
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

pytestmark = pytest.mark.sandbox

OTHER = b"---\nname: other-kit\ndescription: Something else.\n---\n\nNothing.\n"


@pytest.fixture
def registry(home: Home) -> Registry:
    return Registry(home.registry)


@pytest.fixture
def executor(registry: Registry, ledger: Ledger, sandbox: Bubblewrap) -> BoxExecutor:
    return BoxExecutor(registry, ledger.blobs, sandbox)


def test_what_a_trial_got_is_what_would_be_given_again(
    executor: BoxExecutor, registry: Registry, make_task: Callable[..., Task]
) -> None:
    task = make_task("double", n=21, expect=42)
    done = executor.execute(task, registry.stable(), "run-1")
    assert done.bundle
    assert done.bundle == executor.given(task, registry.stable())


def test_only_what_a_run_gets_is_in_it(
    executor: BoxExecutor, registry: Registry, make_task: Callable[..., Task]
) -> None:
    task = make_task("double", n=21, expect=42)
    free = replace(task, call=None)
    called, thinking = executor.given(task, registry.stable()), executor.given(free, registry.stable())
    registry.commit({"skill/other-kit/SKILL.md": OTHER}, "another skill", "edit")
    assert executor.given(task, registry.stable()) == called, "a call gets its own skill alone"
    assert executor.given(free, registry.stable()) != thinking, "who chooses may choose it"
    for path in ("skill/test-kit/tools/broken.py", "prompt/default/prompt.md", "harness/default/hooks.py"):
        before = executor.given(task, registry.stable())
        text = registry.files(registry.stable(), path)[path]
        registry.commit({path: text + b"\n# a remark\n"}, path, "edit")
        assert executor.given(task, registry.stable()) != before, path


def test_memories_are_in_what_a_free_run_may_ask_for(
    executor: BoxExecutor, registry: Registry, make_task: Callable[..., Task]
) -> None:
    task = make_task("double", n=1)
    free = replace(task, call=None)
    called, thinking = executor.given(task, registry.stable()), executor.given(free, registry.stable())
    path = "memory/default/memory.md"
    text = registry.files(registry.stable(), path).get(path, b"# Lessons\n")
    registry.commit({path: text + b"\nAmounts are in cents.\n"}, "a lesson", "edit")
    assert executor.given(free, registry.stable()) != thinking
    assert executor.given(task, registry.stable()) == called


def test_a_task_that_fits_nothing_is_given_nothing(
    executor: BoxExecutor, registry: Registry, make_task: Callable[..., Task]
) -> None:
    assert executor.given(make_task("nobody"), registry.stable()) == ""
