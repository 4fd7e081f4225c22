"""The registry through its front door, and attempts to get past it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentos.domain import Refusal, RefusalKind, Snapshot
from agentos.errors import AgentOSError, Conflict, ErrorKind, Invalid, NotFound, Unavailable, UserError
from agentos.registry.store import Registry
from agentos.resources import parse_id
from tests.refusals import raises
from tests.registry.conftest import SEED, TOOL, Clock, forged

ADD = parse_id("tool/add-up")
FIXED = TOOL.replace("input.a + input.b", "input.b + input.a")
PATH = "tool/add-up/tool.py"


def fsck(registry: Registry) -> None:
    done = subprocess.run(
        ["git", "-C", registry.repository.path, "fsck", "--full", "--strict"], capture_output=True, check=True
    )
    assert b"error" not in done.stderr


def promote(registry: Registry, text: str = FIXED, evolution: str = "evo-1") -> Snapshot:
    base = registry.stable()
    candidate = registry.add_candidate(f"cand-{evolution}", base, {PATH: text})
    return registry.promote(
        base, candidate, {"Evolution": evolution, "Evidence": "evi-1"}, "Swap the operands"
    )


def tags(registry: Registry) -> list[str]:
    done = subprocess.run(
        ["git", "-C", registry.repository.path, "tag", "--list"], capture_output=True, check=True, text=True
    )
    return done.stdout.split()


def numbers(registry: Registry) -> list[str]:
    return [version.number for version in registry.versions(ADD)]


def test_init_seeds_every_resource_as_a_first_version(registry: Registry) -> None:
    snapshot = registry.stable()
    assert [str(name) for name in registry.names(snapshot)] == sorted(
        {"/".join(p.split("/")[:2]) for p in SEED}
    )
    assert dict(registry.files(snapshot, "tool/add-up")) == {p: c for p, c in SEED.items() if "add-up" in p}
    assert registry.files(snapshot, PATH) == {PATH: SEED[PATH]}
    assert registry.files(snapshot, "tool/add") == {}
    assert [version.number for version in registry.versions(ADD)] == ["1.0.0"]
    assert "tool/add-up@1.0.0" in tags(registry)
    fsck(registry)


def test_init_again_changes_nothing_and_equal_content_gives_an_equal_tree(
    registry: Registry, tmp_path: Path
) -> None:
    assert Registry.init(registry.repository.path, {}).stable() == registry.stable()
    other = Registry.init(tmp_path / "other.git", SEED)
    assert other.stable().tree == registry.stable().tree


def test_there_is_a_sentence_for_no_registry(tmp_path: Path) -> None:
    with raises(NotFound, type_next="agentos init"):
        Registry(tmp_path / "nothing").stable()


def test_a_promotion_has_the_candidates_tree_trailers_and_a_patch_version(registry: Registry) -> None:
    base = registry.stable()
    after = promote(registry)
    assert after == registry.stable()
    assert registry.files(after, PATH)[PATH].decode() == FIXED
    newest, seed = registry.versions(ADD)
    assert (newest.number, newest.parent, newest.origin, newest.evolution) == (
        "1.0.1",
        "1.0.0",
        "evolution",
        "evo-1",
    )
    assert newest.reason == "Swap the operands"
    assert newest.commit == after.commit
    assert (seed.number, seed.parent, seed.origin) == ("1.0.0", None, "seed")
    text = registry.repository.commit(after.commit).message
    assert f"Candidate-Tree: {after.tree}" in text
    assert "Evidence: evi-1" in text
    assert registry.files(base, PATH)[PATH] == SEED[PATH]  # what a run holds does not move
    fsck(registry)


def test_adding_a_candidate_again_gives_the_same_snapshot(registry: Registry) -> None:
    base = registry.stable()
    first = registry.add_candidate("c-1", base, {PATH: FIXED})
    assert registry.add_candidate("c-1", base, {PATH: FIXED}) == first
    with pytest.raises(Conflict):
        registry.add_candidate("c-1", base, {PATH: TOOL + "\n"})
    assert registry.stable() == base


def test_promoting_again_finds_the_promotion_also_after_others(registry: Registry) -> None:
    base = registry.stable()
    candidate = registry.add_candidate("c-1", base, {PATH: FIXED})
    after = registry.promote(base, candidate, {"Evolution": "evo-1"}, "Once")
    registry.pin(ADD, "enough")
    assert registry.promote(base, candidate, {"Evolution": "evo-1"}, "Once") == after
    with raises(Conflict, ErrorKind.STALE, names=[base.commit[:12]]):
        registry.promote(base, candidate, {"Evolution": "evo-2"}, "Another claims the same")
    assert numbers(registry) == ["1.0.1", "1.0.0"]


def test_a_promotion_of_another_tree_is_refused(registry: Registry) -> None:
    base = registry.stable()
    one = registry.add_candidate("c-1", base, {PATH: FIXED})
    two = registry.add_candidate("c-2", base, {PATH: TOOL + "\n# more\n"})
    with raises(Conflict, ErrorKind.MISMATCHED, names=[one.commit[:12], two.tree[:12]]):
        registry.promote(base, Snapshot(one.commit, two.tree), {}, "")
    with raises(Conflict, RefusalKind.VERDICT):
        registry.promote(base, one, {"Candidate-Tree": two.tree}, "")
    assert registry.stable() == base


def test_a_promotion_after_main_moved_is_refused(registry: Registry) -> None:
    base = registry.stable()
    candidate = registry.add_candidate("c-1", base, {PATH: FIXED})
    moved = registry.commit({"prompt/default/prompt.md": b"Other.\n"}, "Edit", "edit")
    with raises(Conflict, ErrorKind.STALE, names=[base.commit[:12]]):
        registry.promote(base, candidate, {"Evolution": "e"}, "")
    with raises(Conflict, ErrorKind.MISMATCHED, names=[candidate.commit[:12], moved.commit[:12]]):
        registry.promote(moved, candidate, {"Evolution": "e"}, "")
    assert registry.stable() == moved


def test_no_evolution_touches_a_pinned_resource(registry: Registry) -> None:
    registry.pin(ADD, "it is right")
    assert registry.why_fixed(ADD) == Refusal(RefusalKind.PINNED, "tool/add-up is pinned: it is right")
    with raises(Conflict, RefusalKind.PINNED):
        promote(registry)
    registry.unpin(ADD)
    assert registry.why_fixed(ADD) is None
    promote(registry, evolution="evo-2")


def test_no_evolution_touches_what_is_not_evolvable_or_makes_it_so(registry: Registry) -> None:
    path = "environment/default/resource.toml"
    base = registry.stable()
    opened = forged(registry, base, {path: 'description = "Mine."\nevolvable = true\n'})
    with raises(Conflict, RefusalKind.NOT_EVOLVABLE):
        registry.promote(base, opened, {"Evolution": "e"}, "")
    files = {"tool/add-up/resource.toml": 'description = "Mine."\nevolvable = false\n'}
    with raises(Invalid, message="candidate.not_evolvable"):
        registry.add_candidate("c-2", base, files)
    shut = forged(registry, base, files)
    with raises(Conflict, RefusalKind.SURFACE, names=["evolvable = false"]):
        registry.promote(base, shut, {"Evolution": "e"}, "")
    assert registry.stable() == base


@pytest.mark.parametrize(
    "path",
    [
        "registry.toml",
        "tool/add-up",
        "tool/add-up/../../registry.toml",
        "/etc/passwd",
        "tool/add-up/.git/config",
        "tool/add-up/.GIT/hooks/post-commit",
        "tool/add-up//x",
        "tool/add-up/.",
        "tool/add-up/x\ny",
        "tool/add-up/x\x00y",
        "tool/add-up/git\u200c",
        "tool/../tool/add-up/tool.py",
        "tool/.git/x",
        "gadget/add-up/x",
        "tool/Add-Up/x",
        "tool/add-up/a\\b",
        "",
    ],
)
def test_a_candidate_cannot_name_paths_outside_resources(registry: Registry, path: str) -> None:
    with pytest.raises(Invalid):
        registry.add_candidate("c-1", registry.stable(), {path: "x"})
    with pytest.raises(Invalid):
        registry.commit({path: b"x"}, "Edit", "edit")


def test_a_candidate_made_behind_our_back_cannot_bring_pins_links_or_rubbish(registry: Registry) -> None:
    base = registry.stable()
    repository = registry.repository

    def forge(tree: object) -> Snapshot:
        parent = repository.commit(base.commit).id
        made = repository.write_commit(tree, [parent], "Forged\n", Clock()())  # type: ignore[arg-type]  # an Oid
        return repository.snapshot(made)

    pins = forge(repository.write_tree(base.tree, {"registry.toml": b"[pinned]\n"}))
    with raises(Conflict, RefusalKind.SURFACE, names=["registry.toml"]):
        registry.promote(base, pins, {"Evolution": "e"}, "")
    outside = forge(repository.write_tree(base.tree, {"gadget/x/y": b""}))
    with raises(Conflict, RefusalKind.SURFACE, names=["gadget"]):
        registry.promote(base, outside, {"Evolution": "e"}, "")
    blob = repository.git.create_blob(b"/etc/shadow")
    builder = repository.git.TreeBuilder(repository.git[repository.entry(base.tree, "tool/add-up").id])
    builder.insert("data.csv", blob, 0o120000)
    link = forge(repository.write_tree(base.tree, {"tool/add-up": builder.write()}))
    with raises(Invalid, message="change.symbolic_link"):
        registry.promote(base, link, {"Evolution": "e"}, "")
    with raises(Invalid, message="candidate.not_python"):
        registry.add_candidate("c-9", base, {PATH: "def run(:\n"})
    broken = forged(registry, base, {PATH: "def run(:\n"})
    with raises(Invalid, message="change.not_python"):
        registry.promote(base, broken, {"Evolution": "e"}, "")
    gone = forge(repository.write_tree(base.tree, {"tool/add-up": None}))
    with raises(Conflict, RefusalKind.SURFACE, message="candidate.retires"):
        registry.promote(base, gone, {"Evolution": "e"}, "")
    assert registry.stable() == base


def test_a_message_cannot_forge_trailers(registry: Registry) -> None:
    base = registry.stable()
    candidate = registry.add_candidate("c-1", base, {PATH: FIXED})
    text = "Subject\nVersion: tool/add-up@9.9.9\n\nEvolution: evo-other\n\nVersion: skill/counting@7.0.0"
    trailers = {"Evolution": "evo-1\nVersion: skill/counting@8.0.0", "Version": "skill/counting@6.0.0"}
    registry.promote(base, candidate, trailers, text)
    assert numbers(registry) == ["1.0.1", "1.0.0"]
    assert len(registry.versions(parse_id("skill/counting"))) == 1
    with pytest.raises(NotFound):
        registry.revert_evolution("evo-other", "", "revert")


def test_reverting_an_evolution_restores_the_tree_as_a_new_version(registry: Registry) -> None:
    base = registry.stable()
    promote(registry)
    after = registry.revert_evolution("evo-1", "it was worse", "revert")
    assert after.tree == base.tree
    assert after.commit != base.commit
    newest = registry.versions(ADD)[0]
    assert (newest.number, newest.parent, newest.origin) == ("1.0.2", "1.0.1", "revert")
    assert newest.digest == registry.versions(ADD)[-1].digest
    assert "it was worse" in newest.reason
    assert registry.revert_evolution("evo-1", "again", "revert") == after
    fsck(registry)


def test_what_later_versions_build_on_is_not_undone_but_can_be_restored(registry: Registry) -> None:
    promote(registry)
    registry.commit({PATH: (FIXED + "\n# edited\n").encode()}, "Edit", "edit")
    with raises(Conflict, ErrorKind.LATER, names=["1.1.0"]):
        registry.revert_evolution("evo-1", "", "revert")
    with raises(Conflict, ErrorKind.LATER, type_next="agentos registry revert tool/add-up --to 1.0.0"):
        registry.plan_undo(ADD, "1.0.1")
    plan = registry.plan_restore(ADD, "1.0.0")
    registry.revert(plan, "back to the start")
    assert numbers(registry) == ["1.1.1", "1.1.0", "1.0.1", "1.0.0"]
    assert registry.files(registry.stable(), PATH)[PATH] == SEED[PATH]


def test_a_plan_does_not_outlive_a_change(registry: Registry) -> None:
    promote(registry)
    plan = registry.plan_undo(ADD, "1.0.1")
    registry.pin(ADD, "")
    with raises(Conflict, ErrorKind.STALE):
        registry.revert(plan, "")


def test_what_later_versions_of_other_files_stand_on_is_undone_alone(registry: Registry) -> None:
    helper = "tool/add-up/_rows.py"

    def now() -> tuple[bytes, bytes | None]:
        found = registry.files(registry.stable(), str(ADD))
        return found[PATH], found.get(helper)

    promote(registry)
    registry.commit({helper: b"ROWS = 1\n"}, "A helper", "edit")
    registry.revert_evolution("evo-1", "the older one", "revert")
    assert now() == (SEED[PATH], b"ROWS = 1\n")
    with pytest.raises(Conflict):  # what it made is not there any more
        registry.plan_undo(ADD, "1.0.1")
    registry.revert(registry.plan_undo(ADD, "1.1.1"), "the revert")
    assert now() == (FIXED.encode(), b"ROWS = 1\n")
    registry.revert(registry.plan_undo(ADD, "1.1.0"), "the helper")
    assert now() == (FIXED.encode(), None)
    fsck(registry)


def test_every_kind_of_resource_can_be_edited_and_reverted(registry: Registry) -> None:
    for resource in registry.names(registry.stable()):
        before = registry.stable()
        path, content = next(iter(registry.files(before, str(resource)).items()))
        registry.commit({path: content + b"\n"}, f"Edit {resource}", "edit")
        assert registry.versions(resource)[0].number == "1.1.0"
        after = registry.revert(registry.plan_undo(resource, "1.1.0"), "as it was")
        assert after.tree == before.tree
        assert registry.versions(resource)[0].number == "1.1.1"
        registry.revert(registry.plan_undo(resource, "1.1.1"), "no, keep it")
        assert registry.files(registry.stable(), path)[path] == content + b"\n"


def test_undoing_a_first_version_retires_and_undoing_that_brings_back(registry: Registry) -> None:
    before = registry.stable()
    registry.revert(registry.plan_undo(ADD, "1.0.0"), "not wanted")
    newest = registry.versions(ADD)[0]
    assert (newest.number, newest.digest) == ("1.0.1", "")
    assert registry.files(registry.stable(), "tool/add-up") == {}
    fixed = registry.why_fixed(ADD)
    assert fixed is not None
    assert fixed.kind is RefusalKind.NO_RESOURCE
    registry.revert(registry.plan_undo(ADD, "1.0.1"), "wanted after all")
    assert registry.stable().tree == before.tree


def test_retiring_what_an_agent_needs_is_refused(registry: Registry) -> None:
    with raises(Invalid, message="change.no_harness"):
        registry.retire(parse_id("harness/default"), "away")
    with pytest.raises(NotFound):
        registry.retire(parse_id("tool/nothing"), "away")


def test_an_edit_that_breaks_the_rules_changes_nothing(registry: Registry) -> None:
    before = registry.stable()
    with pytest.raises(Invalid) as caught:
        registry.commit({PATH: b"import os\n", "skill/counting/SKILL.md": b"no front matter"}, "Edit", "edit")
    assert len(caught.value.faults) >= 2
    assert registry.stable() == before


def test_an_edit_of_a_stale_base_is_refused_and_an_equal_one_is_no_version(registry: Registry) -> None:
    base = registry.stable()
    registry.commit({PATH: FIXED.encode()}, "Edit", "edit")
    with raises(Conflict, ErrorKind.STALE):
        registry.commit({PATH: TOOL.encode() + b"\n"}, "Edit", "edit", base=base)
    registry.commit({"prompt/default/prompt.md": b"New.\n"}, "Edit", "edit", base=base)
    now = registry.stable()
    assert registry.commit({PATH: FIXED.encode()}, "Edit", "edit") == now


def test_pins_keep_the_comments_of_their_file(registry: Registry) -> None:
    registry.pin(ADD, 'a "quoted" reason')
    text = registry.files(registry.stable(), "registry.toml")["registry.toml"].decode()
    assert text.startswith("# Resources that no evolution may touch")
    assert registry.pinned() == {"tool/add-up": 'a "quoted" reason'}
    registry.pin(ADD, "another")
    registry.unpin(ADD)
    assert registry.pinned() == {}
    with pytest.raises(NotFound):
        registry.pin(parse_id("tool/nothing"), "")


def test_last_good_moves_on_and_never_back(registry: Registry) -> None:
    assert registry.last_good() is None
    before = registry.stable()
    registry.mark_good(before)
    after = promote(registry)
    assert registry.last_good() == before
    for marked in (after, before, after):
        registry.mark_good(marked)
        assert registry.last_good() == after


def test_tools_are_found_by_reference(registry: Registry) -> None:
    now = registry.stable()
    assert registry.find_tool(now, "add_up") == PATH
    assert registry.find_tool(now, "add-up") == PATH
    assert registry.find_tool(now, "count_up") == "skill/counting/tools/count_up.py"
    assert registry.find_tool(now, "counting/count_up") == "skill/counting/tools/count_up.py"
    with raises(NotFound, names=["add_up?"]):
        registry.find_tool(now, "ad_up")
    other = {
        "skill/tally/SKILL.md": SEED["skill/counting/SKILL.md"].replace(b"counting", b"tally"),
        "skill/tally/tools/count_up.py": SEED["skill/counting/tools/count_up.py"],
    }
    with raises(UserError, ErrorKind.AMBIGUOUS, names=["counting/count_up, tally/count_up"]):
        registry.find_tool(registry.commit(other, "Add", "import"), "count_up")


def test_a_missing_object_is_named(loose: Registry) -> None:
    now = loose.stable()
    blob = str(loose.repository.entry(now.tree, PATH).id)
    file = loose.repository.path / "objects" / blob[:2] / blob[2:]
    file.unlink()
    with raises(Unavailable, ErrorKind.DAMAGED, names=[blob]):
        Registry(loose.repository.path).files(now, PATH)
    for wrong in (Snapshot("0" * 40, "0" * 40), Snapshot("nonsense", "nonsense")):
        with pytest.raises(AgentOSError):
            loose.files(wrong, "tool")


@pytest.mark.slow  # pygit2 is imported
def test_a_machine_without_certificates_has_a_registry(tmp_path: Path) -> None:
    """pygit2 refuses to be imported there: each command of a bare container ended as a bug."""
    nowhere = str(tmp_path / "nowhere")
    environ = {**os.environ, "SSL_CERT_FILE": nowhere, "SSL_CERT_DIR": nowhere}
    statement = "import agentos.registry.store, os; print(os.environ['SSL_CERT_DIR'])"
    done = subprocess.run(
        [sys.executable, "-c", statement], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, nowhere), done.stderr
