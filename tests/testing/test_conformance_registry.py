"""What Snapshots, CandidateStore and Evolvable promise, asked of git and of the fake alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentos.domain import Kind, Refusal, RefusalKind, ResourceId, Snapshot
from agentos.errors import Conflict, ErrorKind, Invalid, NotFound, Unavailable
from agentos.registry.store import Registry
from agentos.testing import FakeRegistry
from tests.refusals import raises


def kind_of(found: Refusal | None) -> RefusalKind | None:
    return found.kind if found else None


TOOL = '''"""Add."""

from pydantic import BaseModel

TOOL = {"name": "add", "description": "Adds.", "effects": ["pure"], "dependencies": []}


class Input(BaseModel):
    a: int


class Output(BaseModel):
    sum: int


def run(input: Input) -> Output:
    return Output(sum=input.a)
'''
SEED = {
    "tool/add/resource.toml": 'description = "Adds."\n',
    "tool/add/tool.py": TOOL,
    "prompt/default/resource.toml": 'description = "The prompt."\n',
    "prompt/default/prompt.md": "Do it.\n",
}
ADD = ResourceId(Kind.TOOL, "add")
PROMPT = ResourceId(Kind.PROMPT, "default")
PATH = "tool/add/tool.py"
BETTER = {PATH: TOOL.replace("input.a)", "input.a + 1)")}

Store = Registry | FakeRegistry


@pytest.fixture(params=["real", "fake"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "fake":
        return FakeRegistry(SEED)
    return Registry.init(tmp_path / "registry.git", {path: text.encode() for path, text in SEED.items()})


@pytest.fixture
def edit(store: Store) -> Callable[[str, str], Snapshot]:
    def change(path: str, text: str) -> Snapshot:
        if isinstance(store, FakeRegistry):
            return store.edit({path: text})
        return store.commit({path: text.encode()}, "edit", "edit")

    return change


def pin(store: Store, resource: ResourceId) -> None:
    if isinstance(store, FakeRegistry):
        store.pinned.add(resource)
    else:
        store.pin(resource, "mine")


def promoted(store: Store, name: str = "1", files: dict[str, str] = BETTER) -> tuple[Snapshot, Snapshot]:
    base = store.stable()
    candidate = store.add_candidate(f"candidate-{name}", base, files)
    return base, store.promote(base, candidate, {"Evolution": f"evolution-{name}"}, "Better")


def test_snapshots_are_read_by_prefix(store: Store) -> None:
    stable = store.stable()
    assert store.files(stable, "tool/add") == {
        path: text.encode() for path, text in SEED.items() if path.startswith("tool/")
    }
    assert set(store.files(stable, PATH)) == {PATH}
    assert store.files(stable, "tool/ad") == {}
    assert list(store.names(stable)) == [PROMPT, ADD]
    with pytest.raises(Unavailable):
        store.files(Snapshot("1" * 40, "2" * 40), "tool/add")


def test_a_candidate_moves_nothing_and_is_the_same_when_added_again(store: Store) -> None:
    base = store.stable()
    candidate = store.add_candidate("candidate-1", base, BETTER)
    assert store.add_candidate("candidate-1", base, BETTER) == candidate
    assert store.stable() == base
    assert store.files(candidate, PATH)[PATH] == BETTER[PATH].encode()
    assert store.files(candidate, "prompt") == store.files(base, "prompt")
    with raises(Conflict, ErrorKind.TAKEN):
        store.add_candidate("candidate-1", base, {PATH: TOOL + "\n# other\n"})


@pytest.mark.parametrize(
    "path", ["registry.toml", "tool/x", "../x/y/z", "nothing/a/b", "tool/add/../x", "tool/A/b"]
)
def test_a_candidate_stays_within_resources(store: Store, path: str) -> None:
    with pytest.raises(Invalid):
        store.add_candidate("candidate-1", store.stable(), {path: "x"})


def test_what_is_promoted_is_the_tree_that_was_tried(store: Store) -> None:
    base = store.stable()
    candidate = store.add_candidate("candidate-1", base, BETTER)
    after = store.promote(base, candidate, {"Evolution": "evolution-1"}, "Better")
    assert after.tree == candidate.tree
    assert store.stable() == after
    assert store.promote(base, candidate, {"Evolution": "evolution-1"}, "Better") == after
    assert len(store.versions(ADD)) == 2
    assert [version.evolution for version in store.versions(ADD)] == ["evolution-1", None]


def test_a_stale_verdict_promotes_nothing(store: Store, edit: Callable[[str, str], Snapshot]) -> None:
    base = store.stable()
    candidate = store.add_candidate("candidate-1", base, BETTER)
    now = edit("prompt/default/prompt.md", "Do it well.\n")
    with raises(Conflict, ErrorKind.STALE):
        store.promote(base, candidate, {"Evolution": "evolution-1"}, "Better")
    with raises(Conflict, ErrorKind.MISMATCHED):
        store.promote(now, candidate, {"Evolution": "evolution-1"}, "Better")
    assert store.stable() == now


def test_a_pinned_resource_is_not_touched(store: Store) -> None:
    assert store.why_fixed(ADD) is None
    pin(store, ADD)
    assert kind_of(store.why_fixed(ADD)) is RefusalKind.PINNED
    assert kind_of(store.why_fixed(ResourceId(Kind.TOOL, "none"))) is RefusalKind.NO_RESOURCE
    with raises(Conflict, RefusalKind.PINNED):
        promoted(store)


def test_a_revert_is_a_new_version_with_the_old_content(store: Store) -> None:
    base, after = promoted(store)
    back = store.revert_evolution("evolution-1", "it was worse", "revert")
    assert back not in (base, after)
    assert store.files(back, "tool") == store.files(base, "tool")
    assert len(store.versions(ADD)) == 3
    assert store.revert_evolution("evolution-1", "again", "revert") == back
    with pytest.raises(NotFound):
        store.revert_evolution("evolution-9", "none", "revert")


def test_a_revert_keeps_what_others_changed(store: Store, edit: Callable[[str, str], Snapshot]) -> None:
    promoted(store)
    edit("prompt/default/prompt.md", "Do it well.\n")
    back = store.revert_evolution("evolution-1", "it was worse", "revert")
    assert store.files(back, PATH)[PATH] == TOOL.encode()
    assert store.files(back, "prompt/default/prompt.md")["prompt/default/prompt.md"] == b"Do it well.\n"


def test_a_revert_does_not_undo_what_was_built_on_it(store: Store) -> None:
    promoted(store)
    promoted(store, "2", {PATH: BETTER[PATH] + "\n# more\n"})
    with raises(Conflict, ErrorKind.LATER, names=["tool/add"]):
        store.revert_evolution("evolution-1", "it was worse", "revert")
