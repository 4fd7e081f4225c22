"""A person moves or loses ``main`` with git itself."""

from __future__ import annotations

import pygit2
import pytest

from agentos.errors import Conflict, ErrorKind, NotFound
from agentos.registry.git.repository import MAIN, WRITTEN, Repository
from agentos.registry.git.versions import log
from agentos.registry.store import Registry
from agentos.resources import parse_id
from tests.refusals import raises
from tests.registry.conftest import SEED, TOOL

ADD = parse_id("tool/add-up")
PATH = "tool/add-up/tool.py"
FIXED = TOOL.replace("input.a + input.b", "input.b + input.a").encode()
FORGED = "Mine\n\nOrigin: evolution\nEvolution: evo-forged\nVersion: tool/add-up@9.9.9\nConsent: consent-1\n"


def edit(registry: Registry, content: bytes, message: str = FORGED) -> pygit2.Oid:
    """Commit on top of ``main`` with git itself, past the program."""
    git = registry.repository.git
    tree = registry.repository.write_tree(registry.stable().tree, {PATH: content})
    ada = pygit2.Signature("Ada", "ada@example.org")
    made = git.create_commit(None, ada, ada, message, tree, [pygit2.Oid(hex=registry.stable().commit)])
    point(registry, MAIN, made)
    return made


def point(registry: Registry, ref: str, to: pygit2.Oid | str) -> None:
    """What ``git update-ref`` does."""
    registry.repository.git.references.create(ref, pygit2.Oid(hex=str(to)), force=True)


def source(registry: Registry) -> bytes:
    return registry.files(registry.stable(), PATH)[PATH]


def test_an_edit_of_main_becomes_a_version_of_its_author_and_its_trailers_say_nothing(
    registry: Registry,
) -> None:
    edit(registry, FIXED)
    assert "moved to" in " ".join(registry.check().warnings)
    (push,) = registry.take_in_pushes(None)
    assert (push.resources, push.faults) == ((ADD,), ())
    assert source(registry) == FIXED
    newest = registry.versions(ADD)[0]
    assert (newest.number, newest.origin, newest.evolution) == ("1.1.0", "edit", None)
    with pytest.raises(NotFound):
        registry.plan_undo_evolution("evo-forged")
    assert registry.take_in_pushes(None) == []
    assert (registry.check().faults, registry.check().warnings) == ((), ())


def test_whatever_the_message_of_an_edit_of_main_holds_the_history_is_listed(registry: Registry) -> None:
    edit(registry, FIXED, "one\x1etwo\n\n\n")
    newest, seed = log(registry.repository, 5)
    assert (newest.author, newest.subject) == ("Ada", "one\x1etwo")
    assert (seed.author, seed.origin) == ("agentos", "seed")


def test_a_bad_edit_of_main_is_refused_and_main_is_what_it_was(registry: Registry) -> None:
    before = registry.stable()
    bad = edit(registry, b"def run(:\n")
    (push,) = registry.take_in_pushes(None)
    assert "not Python" in push.faults[0]
    assert registry.stable() == before
    refused = registry.repository.resolve(f"refs/heads/refused/direct-{str(bad)[:12]}")
    assert refused is not None
    assert registry.repository.commit(refused).parent_ids == [bad]


def test_setting_main_back_is_a_new_version_with_the_old_content(registry: Registry) -> None:
    first = registry.stable()
    registry.commit({PATH: FIXED}, "Learnt", "edit")
    second = registry.stable()
    point(registry, MAIN, first.commit)
    (push,) = registry.take_in_pushes(None)
    assert push.resources == (ADD,)
    assert registry.stable().tree == first.tree
    assert registry.repository.git.descendant_of(registry.stable().commit, second.commit)
    assert [version.number for version in registry.versions(ADD)] == ["1.2.0", "1.1.0", "1.0.0"]
    assert registry.check().faults == ()


def test_nothing_is_built_on_what_was_not_looked_at(registry: Registry) -> None:
    edit(registry, FIXED)
    with raises(Conflict, ErrorKind.STALE, type_next="agentos daemon start"):
        registry.pin(ADD, "mine")
    registry.take_in_pushes(None)
    registry.pin(ADD, "mine")


def test_a_writer_killed_between_its_two_references_is_no_stranger(registry: Registry) -> None:
    first = registry.stable()
    registry.commit({PATH: FIXED}, "Learnt", "edit")
    point(registry, WRITTEN, first.commit)
    assert registry.take_in_pushes(None) == []
    registry.pin(ADD, "mine")
    assert registry.check().faults == ()


class _Killed(Exception):
    pass


class _KilledAtMain(Repository):
    """Its writer is gone as soon as ``main`` has moved."""

    def move(self, ref: str, to: pygit2.Oid, *, expected: pygit2.Oid | None) -> None:
        super().move(ref, to, expected=expected)
        if ref == MAIN:
            raise _Killed


def test_writers_killed_there_one_after_the_other_are_no_strangers(registry: Registry) -> None:
    """Two commits ahead, both of ours: taken for a push, a promotion would be in main and yet not made."""
    sound, registry.repository = registry.repository, _KilledAtMain(registry.repository.path)
    for content in (FIXED, FIXED + b"# twice\n", FIXED):
        with pytest.raises(_Killed):
            registry.commit({PATH: content}, "Learnt", "edit")
    registry.repository = sound
    assert registry.take_in_pushes(None) == []
    registry.pin(ADD, "mine")
    assert [version.number for version in registry.versions(ADD)] == ["1.3.0", "1.2.0", "1.1.0", "1.0.0"]
    assert registry.check().faults == ()


def test_a_lost_main_is_brought_back_and_not_made_anew(registry: Registry) -> None:
    registry.commit({PATH: FIXED}, "Learnt", "edit")
    before = registry.stable()
    registry.repository.git.references.delete(MAIN)
    with raises(NotFound, ErrorKind.DAMAGED, type_next="agentos init"):
        registry.stable()
    again = Registry.init(registry.repository.path, SEED)
    assert again.stable() == before
    assert again.check().faults == ()
