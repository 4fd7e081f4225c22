"""A mirror gets each version, refuses what would take one away, and is whole when it is fetched."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from agentos.errors import Conflict, Unavailable, UserError
from agentos.registry.git.repository import MAIN, Repository
from agentos.registry.mirror import SIGNED, Mirror, MirrorState
from agentos.registry.store import Registry

TOOL = b'''"""Adds one."""
from pydantic import BaseModel
TOOL = {"name": "%s", "description": "Adds one", "effects": ["pure"]}
class Input(BaseModel):
    n: int
class Output(BaseModel):
    n: int
def run(input: Input) -> Output:
    return Output(n=input.n + 1)
'''


def add(registry: Registry, name: str) -> str:
    files = {
        f"skill/{name}/SKILL.md": f"---\nname: {name}\ndescription: Adds one to a number.\n---\nUse it.\n".encode(),
        f"skill/{name}/tools/{name}.py": TOOL % name.encode(),
    }
    return registry.commit(files, f"Add {name}", "edit").commit


@pytest.fixture
def place(registry: Registry) -> Path:
    return registry.repository.path


@pytest.fixture
def url(tmp_path: Path) -> str:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "mirror.git")], check=True)
    return str(tmp_path / "mirror.git")


@pytest.mark.slow
def test_each_version_goes_there_and_what_is_fetched_is_whole(place: Path, url: str, tmp_path: Path) -> None:
    mirror = Mirror(place, url)
    first = mirror.push()
    assert first.why == ""
    made = add(Registry(place), "plus")
    assert mirror.push().main == made
    report = mirror.check()
    assert report.faults == ()
    assert report.resources == Registry(place).check().resources
    other = tmp_path / "other.git"
    Repository.create(other)
    assert Mirror(other, url).take_in()
    assert str(Repository(other).resolve(MAIN)) == made
    assert Registry(other).check().faults == ()
    assert not Mirror(other, url).take_in()


def key_of(folder: Path, name: str) -> tuple[str, str]:
    """A new key: its file, and a line of those who may sign."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)]
    subprocess.run(words, check=True)
    return str(folder / name), f"* {(folder / f'{name}.pub').read_text()}"


def is_signed(url: str, commit: str, signers: Path) -> bool:
    tag = f"{SIGNED}{commit[:16]}"
    verify = ["git", f"--git-dir={url}", "-c", f"gpg.ssh.allowedSignersFile={signers}", "tag", "-v", tag]
    return subprocess.run(verify, capture_output=True).returncode == 0


@pytest.mark.slow
def test_each_push_signs_what_it_brings_and_another_key_is_told_apart(
    place: Path, url: str, tmp_path: Path
) -> None:
    (ours, known), (theirs, _) = key_of(tmp_path, "ours"), key_of(tmp_path, "theirs")
    signers = tmp_path / "signers"
    signers.write_text(known)
    pushed = []
    for name, key in (("one", ours), ("two", ours), ("three", theirs)):
        made = add(Registry(place), name)
        assert Mirror(place, url, signing_key=key).push() == MirrorState(made)
        pushed.append(made)
    assert [is_signed(url, commit, signers) for commit in pushed] == [True, True, False]
    assert Mirror(place, url, signing_key=ours).push().why == "", "what is signed is signed once"
    assert Mirror(place, url).check().faults == ()
    unsigned = add(Registry(place), "four")
    assert Mirror(place, url).push() == MirrorState(unsigned)
    assert not is_signed(url, unsigned, signers)


@pytest.mark.parametrize("content", ["", "no key at all", None])
def test_a_key_that_cannot_sign_stops_the_push_and_says_so(
    place: Path, url: str, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "key").write_text(content)
    before = Mirror(place, url).push().main
    add(Registry(place), "plus")
    state = Mirror(place, url, signing_key=str(tmp_path / "key")).push()
    assert state.main == ""
    assert state.why.startswith("the setting signing_key: ")
    there = subprocess.run(["git", f"--git-dir={url}", "rev-parse", MAIN], capture_output=True, text=True)
    assert there.stdout.strip() == before


def test_a_key_and_a_port_of_the_environment_are_used(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\necho no such key >&2\nexit 255\n')
    ssh.chmod(0o700)
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{ssh} -i my-key")
    assert "no such key" in Mirror(place, "ssh://git@127.0.0.1:9/agentos.git").push().why
    assert (tmp_path / "asked").read_text().startswith("-i my-key")


def test_a_damaged_mirror_is_told(place: Path, url: str) -> None:
    mirror = Mirror(place, url)
    add(Registry(place), "plus")
    assert mirror.push().why == ""
    objects = [
        path for path in Path(url, "objects").rglob("*") if path.is_file() and path.parent.name != "info"
    ]
    for path in objects:
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(Unavailable):
        mirror.check()


def test_a_mirror_loses_no_version_and_two_that_moved_apart_are_told(
    place: Path, url: str, tmp_path: Path
) -> None:
    other = tmp_path / "other.git"
    Mirror(place, url).push()
    shutil.copytree(place, other)
    theirs = add(Registry(other), "minus")
    assert Mirror(other, url).push().why == ""
    add(Registry(place), "plus")
    assert "rejected" in Mirror(place, url).push().why
    assert str(Repository(Path(url)).resolve(MAIN)) == theirs
    with pytest.raises(Conflict):
        Mirror(place, url).take_in()


def test_who_was_replaced_can_push_nothing_more(place: Path, url: str, tmp_path: Path) -> None:
    old = Mirror(place, url, term=1)
    old.lead()
    assert old.push().why == ""
    new = tmp_path / "new.git"
    shutil.copytree(place, new)
    Mirror(new, url, term=2).lead()
    add(Registry(place), "plus")  # though nothing came from the new leader: it would fit
    assert "stale" in old.push().why
    made = add(Registry(new), "minus")
    assert Mirror(new, url, term=2).push().main == made
    assert str(Repository(Path(url)).resolve(MAIN)) == made


@pytest.mark.parametrize(
    "wrong",
    [
        "ext::sh -c touch% /tmp/x",
        "https://me:key@host/x.git",
        "HTTPS://token@host/x.git",
        "--upload-pack=x",
        " ",
    ],
)
def test_an_address_that_could_start_a_program_or_holds_a_password_is_refused(
    place: Path, wrong: str
) -> None:
    with pytest.raises(UserError):
        Mirror(place, wrong)


def test_a_mirror_that_is_behind_takes_nothing_back(place: Path, url: str) -> None:
    """Its candidates are those of its last push, and what is here is newer."""
    mirror, candidates = Mirror(place, url), "refs/candidates/one"
    first = add(Registry(place), "plus")
    repository = Repository(place)
    repository.git.references.create(candidates, first)
    assert mirror.push().why == ""
    second = add(Registry(place), "minus")
    repository.git.references.create(candidates, second, force=True)
    assert not mirror.take_in()
    assert str(repository.resolve(candidates)) == second


@pytest.mark.slow
def test_whoever_writes_the_mirror_brings_in_nothing_that_is_not_known(
    place: Path, url: str, tmp_path: Path
) -> None:
    Mirror(place, url).push()
    behind = tmp_path / "behind.git"
    shutil.copytree(place, behind)
    known = {add(Registry(place), "plus")}
    newest = add(Registry(place), "minus")
    repository = Repository(place)
    known.add(newest)
    Mirror(place, url).push()
    # the thief goes on from there with a version, a tag and a pointer to it
    thief = tmp_path / "thief.git"
    shutil.copytree(place, thief)
    forged = add(Registry(thief), "evil")
    stolen = Repository(thief)
    stolen.git.references.create("refs/tags/skill/plus@9.0.0", forged)
    stolen.git.references.create("refs/agentos/latest/skill/plus", forged, force=True)
    assert Mirror(thief, url).push().why == ""
    mirror = Mirror(behind, url)
    assert mirror.take_in(known)
    there = Repository(behind)
    assert str(there.resolve(MAIN)) == newest
    assert mirror.beyond() == forged
    assert not mirror.take_in(known)
    assert Registry(behind).check().faults == ()
    for name in ("plus", "minus"):
        ref = f"refs/agentos/latest/skill/{name}"
        assert there.resolve(ref) == repository.resolve(ref)
    assert there.resolve("refs/tags/skill/plus@9.0.0") is None
    assert there.resolve("refs/tags/skill/evil@1.0.0") is None
    assert not Mirror(behind, url).take_in(set())
    assert Mirror(behind, url).take_in({forged})  # a person's yes, or a version that the ledger knows of
    assert str(there.resolve(MAIN)) == forged


def test_what_git_started_ends_with_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its helper for https keeps the pipes: a mirror that only listens would be waited for until that has enough."""
    monkeypatch.setattr("agentos.registry.mirror._SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as door:
        began = time.monotonic()
        state = Mirror(place, f"http://127.0.0.1:{door.getsockname()[1]}/x.git").push()
        assert "did not end" in state.why
        assert time.monotonic() - began < 15


def test_the_first_push_of_a_large_registry_has_the_time_that_it_takes(
    place: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one push may take is for what is new; to a mirror that has nothing yet all of it goes."""
    monkeypatch.setattr("agentos.registry.mirror._SECONDS", 0.0)
    monkeypatch.setattr("agentos.registry.mirror._BYTES_A_SECOND", 1)
    mirror = Mirror(place, url)
    assert mirror.push().why == ""
    assert "did not end" in mirror.push().why


def test_where_the_process_stands_is_nothing_to_git(
    place: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that is gone git does nothing; and an address may lead on from the registry."""
    gone = tmp_path / "gone"
    gone.mkdir()
    address = os.path.relpath(url, place)
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert Mirror(place, address).push().why == ""


def test_a_mirror_that_is_away_is_said_and_nothing_else_happens(place: Path, tmp_path: Path) -> None:
    state = Mirror(place, str(tmp_path / "nowhere.git")).push()
    assert state.why
    with pytest.raises(Unavailable):
        Mirror(place, str(tmp_path / "nowhere.git")).take_in()


def write_there(url: str, ref: bytes, commit: str) -> None:
    subprocess.run([b"git", f"--git-dir={url}".encode(), b"update-ref", ref, commit.encode()], check=True)


def test_what_others_put_beside_the_terms_is_passed_over(place: Path, url: str) -> None:
    Mirror(place, url, term=3).lead()
    for name in ("abc", "-7", "9" * 30, "5/6"):
        write_there(url, f"refs/agentos/term/{name}".encode(), term_there(url))
    assert Mirror(place, url, term=4).push().why == ""
    with pytest.raises(Conflict):
        Mirror(place, url, term=3).lead()


def term_there(url: str) -> str:
    told = subprocess.run(
        ["git", f"--git-dir={url}", "rev-parse", "refs/agentos/term/3"], capture_output=True
    )
    return told.stdout.decode().strip()


@pytest.mark.slow
def test_odd_names_of_candidates_in_a_mirror_keep_nobody_from_leading(
    place: Path, url: str, tmp_path: Path
) -> None:
    Mirror(place, url).push()
    behind = tmp_path / "behind.git"
    shutil.copytree(place, behind)
    first = add(Registry(place), "plus")
    Mirror(place, url).push()
    for name in (b"one", b"caf\xe9"):
        write_there(url, b"refs/candidates/" + name, first)
    assert Mirror(behind, url).take_in({first})
    subprocess.run(["git", f"--git-dir={url}", "update-ref", "-d", "refs/candidates/one"], check=True)
    second = add(Registry(place), "minus")
    Mirror(place, url).push()
    write_there(url, b"refs/candidates/one/two", second)
    assert Mirror(behind, url).take_in({first, second})
    assert Repository(behind).below("refs/candidates/") == {"one": first}


def test_no_version_goes_there_that_was_made_since_the_ledger_was_told(place: Path, url: str) -> None:
    mirror = Mirror(place, url)
    told = mirror.main()
    made = add(Registry(place), "plus")
    assert mirror.push(told) == MirrorState(told)
    assert str(Repository(Path(url)).resolve(MAIN)) == told
    assert mirror.push().main == made
