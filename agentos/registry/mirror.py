"""A bare copy of the registry in another git repository, pushed version by version, and taken in from there.

A push is atomic, and moves ``main`` and tags forward only: a mirror that holds something else refuses it, and so it shows.
With a key each push brings a signed tag on its ``main``, which vouches for all before it.
Where control processes share a database the mirror also says whose *term* it is (``refs/agentos/term/N``): a push of one
that was replaced is refused. Only this module lets git speak to another repository.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import pygit2

from agentos.domain import dataclass
from agentos.errors import Conflict, Unavailable, UserError, to_type
from agentos.registry.check import Report, check
from agentos.registry.git import environment, run_in_time, versions
from agentos.registry.git.external_commits import announce, note
from agentos.registry.git.repository import EMAIL, MAIN, Repository
from agentos.registry.promotion import CANDIDATE_ID, CANDIDATES

_TERM = "refs/agentos/term/"
_TERM_THERE = re.compile(rf"[0-9a-f]+\t{_TERM}([0-9]{{1,18}})")
_THEIRS, _THEIR_CANDIDATES = "refs/mirror/main", "refs/mirror/candidates/"
_TAGS = "refs/tags/*"  # moves forward only, as main does
_AS_IT_IS = ("refs/heads/last-good", "refs/candidates/*", "refs/agentos/shipped", "refs/agentos/latest/*")
SIGNED = "signed/"  # and the first digits of a commit on main: no version's tag is called so
_SSH = "GIT_SSH_COMMAND"  # as git reads it
_SECONDS = 120.0
_BYTES_A_SECOND = 128 << 10  # that a line is taken to carry at least, where all of the registry goes over it
_PROTOCOLS = ("file", "git", "ssh", "http", "https")  # all else, as git's `ext`, could start a program
_SECRET = re.compile(r"https?://[^/]*@|\w+://[^@/]*:[^@/]*@", re.IGNORECASE)  # a token may stand for the user


@dataclass(frozen=True, slots=True)
class MirrorState:
    """What a push came to. ``main`` is what the mirror got, "" for nothing; ``why`` says why not, "" when it has all."""

    main: str
    why: str = ""


def fault_of(url: str) -> str:
    """What is wrong with an address, "" for nothing."""
    if _SECRET.match(url):
        return "it has a password or a token in it, and settings are no place for one: use a key of ssh, or ~/.netrc"
    if "::" in url or url.startswith("-") or not url.strip():
        return "it is no address of a git repository"
    return ""


class Mirror:
    """The copy of the registry at ``path`` in the repository ``url``. ``term`` 0: nobody else pushes there.

    ``signing_key`` is the file of a private key of ssh.
    """

    def __init__(self, path: Path, url: str, term: int = 0, *, signing_key: str = "") -> None:
        if fault := fault_of(url):
            raise UserError(f"the setting mirror: {fault}")
        self._repository, self._url, self._term = Repository(path), url, term
        self._mine = f"{_TERM}{term}"
        self._led = not term
        self._has_pushed = False
        self._key = Path(os.path.expanduser(signing_key)) if signing_key else None

    def fingerprint(self) -> str:
        """Another value whenever there may be something to push."""
        said = self._repository.run("for-each-ref", "--format=%(objectname) %(refname)", *_globs())
        return said.stdout

    def main(self) -> str:
        """The newest version of the registry itself."""
        return str(self._repository.resolve(MAIN) or "")

    def push(self, main: str = "") -> MirrorState:
        """Bring the mirror up to date; blocks for minutes at most. Never raises for what is wrong there.

        With ``main`` to that commit, and not to one that was made since: the ledger has to know of what is there.
        """
        main = main or self.main()
        if why := self._signed(main):
            return MirrorState("", why)
        present = {line.partition(" ")[2] for line in self.fingerprint().splitlines()}
        wanted = [item for item in _AS_IT_IS if item.endswith("*") or item in present]
        specs = [f"{main or MAIN}:{MAIN}", f"{_TAGS}:{_TAGS}", *(f"+{item}:{item}" for item in wanted)]
        lease = []
        if self._term:
            try:
                self.lead()
            except (Unavailable, Conflict) as error:
                return MirrorState("", str(error))
            lease = [f"--force-with-lease={self._mine}:{self._repository.resolve(self._mine)}"]
            specs.append(f"{self._mine}:{self._mine}")
        words = ("push", "--atomic", "--quiet", "--porcelain", *lease, self._url, *specs)
        # after the first push only what is new goes over the line
        why = self._git(*words, seconds=_SECONDS if self._has_pushed else self._whole_s())
        self._has_pushed = self._has_pushed or not why
        return MirrorState("" if why else main, why)

    def _signed(self, main: str) -> str:
        """Sign ``main`` once, where there is a key; why that failed, "" when it did not."""
        name = SIGNED + main[:16]
        if self._key is None or not main or self._has_signature(name):
            return ""
        who = ("-c", "user.name=agentos", "-c", f"user.email={EMAIL}")
        by = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={self._key}")
        with self._repository.lock():
            why = self._git(
                *who, *by, "tag", "--force", "--sign", "--message", f"The registry at {main}", name, main
            )
            # git 2.39 makes a bare tag of a key that it cannot use, and ends with 0
            if not self._has_signature(name):
                self._repository.drop(f"refs/tags/{name}")
                why = (
                    why
                    or f"git cannot sign with {self._key}: is it a private key of ssh, without a passphrase?"
                )
        return f"the setting signing_key: {why}" if why else ""

    def _has_signature(self, tag: str) -> bool:
        found = self._repository.resolve(f"refs/tags/{tag}")
        return (
            found is not None and b"-----BEGIN SSH SIGNATURE-----" in self._repository.git[found].read_raw()
        )

    def lead(self) -> None:
        """Say there, once, that this term is the newest. Raises Unavailable, and Conflict where it is not."""
        if self._led:
            return
        listed = self._git_text("ls-remote", self._url, f"{_TERM}*").splitlines()
        # whoever can write there may have put anything beside them
        known = [int(found[1]) for line in listed if (found := _TERM_THERE.fullmatch(line))]
        if max(known, default=0) > self._term:
            raise Conflict(f"another control process pushes to the mirror {self._url} (term {max(known)})")
        self._mark()
        gone = [f":{_TERM}{number}" for number in known if number < self._term]
        if why := self._git(
            "push", "--quiet", "--porcelain", self._url, f"+{self._mine}:{self._mine}", *gone
        ):
            raise Unavailable(f"the mirror {self._url} cannot be written: {why}")
        self._led = True

    def take_in(self, known: Collection[str] | None = None) -> bool:
        """Bring the registry up to the mirror; whether it was behind. An empty mirror has nothing.

        Whoever can write there could move ``main`` on: with ``known`` it is followed to the newest of these commits, and no tag,
        number or name is taken from it. Raises Unavailable, and Conflict where each has what the other one lacks.
        """
        if not self._git_text("ls-remote", self._url, MAIN).strip():
            return False
        self._fetch(f"+{MAIN}:{_THEIRS}", *([f"{_TAGS}:{_TAGS}"] if known is None else []))
        if not self._is_behind(self._target(known)):
            return False
        if known is None:
            # only now: what a mirror that is itself behind says of candidates is older than what is here
            self._fetch(*(f"+{item}:{item}" for item in _AS_IT_IS if item.endswith("*")))
        else:
            # so that commits that the ledger names are there; `a/b` has no place beside an `a` of before
            self._fetch(f"+{CANDIDATES}*:{_THEIR_CANDIDATES}*", prune=True)
        with self._repository.lock():
            ours, theirs = self._repository.resolve(MAIN), self._target(known)
            if theirs is None or not self._is_behind(theirs):
                return False
            announce(self._repository, theirs)
            self._repository.move(MAIN, theirs, expected=ours)
            note(self._repository, theirs)
            if known is not None:
                self._record(ours, theirs)
        return True

    def beyond(self) -> str:
        """The mirror's newest version, as it was fetched, where the registry does not have it."""
        theirs, ours = self._repository.resolve(_THEIRS), self._repository.resolve(MAIN)
        if theirs is None or theirs == ours or (ours and self._is_ancestor(str(theirs), str(ours))):
            return ""
        return str(theirs)

    def _target(self, known: Collection[str] | None) -> pygit2.Oid | None:
        """How far the mirror is followed, as it was fetched."""
        theirs = self._repository.resolve(_THEIRS)
        if known is None or theirs is None:
            return theirs
        there = self._repository.run("rev-list", "--first-parent", _THEIRS).stdout.split()
        found = next((commit for commit in there if commit in known), None)
        return pygit2.Oid(hex=found) if found else None

    def _record(self, ours: pygit2.Oid | None, theirs: pygit2.Oid) -> None:
        """Versions follow from the commits; and a candidate that was here is the one that was here. Needs the lock."""
        since = [f"^{ours}"] if ours else []
        line = self._repository.run("rev-list", "--reverse", "--first-parent", str(theirs), *since)
        for commit in line.stdout.split():
            versions.record(self._repository, self._repository.commit(commit))
        for name, target in self._repository.below(_THEIR_CANDIDATES).items():
            if CANDIDATE_ID.fullmatch(name) and self._repository.resolve(CANDIDATES + name) is None:
                self._repository.move(CANDIDATES + name, pygit2.Oid(hex=target), expected=None)

    def _is_behind(self, theirs: pygit2.Oid | None) -> bool:
        """Whether the registry lacks that version of the mirror. Raises Conflict."""
        ours = self._repository.resolve(MAIN)
        if theirs is None or ours == theirs or (ours and self._is_ancestor(str(theirs), str(ours))):
            return False
        if ours and not self._is_ancestor(str(ours), str(theirs)):
            raise Conflict(
                f"the registry {self._repository.path} and its mirror {self._url} each have versions that the other "
                "one lacks: ",
                to_type("agentos registry log"),
                " shows them; move this registry away, or the mirror",
            )
        return True

    def _fetch(self, *specs: str, prune: bool = False) -> None:
        options = ["--no-auto-gc", "--no-tags", *(["--prune"] if prune else [])]
        if why := self._git("fetch", "--quiet", *options, self._url, *specs):
            raise Unavailable(f"the mirror {self._url} cannot be read: {why}")

    def check(self) -> Report:
        """Fetch all of it into a repository that is thrown away, and check each object and version there."""
        with tempfile.TemporaryDirectory(prefix="agentos-mirror-") as place:
            copy = Repository.create(Path(place) / "registry.git")
            fetched = Mirror(copy.path, self._url)
            fetched.take_in()
            return check(copy)

    def commits(self) -> frozenset[str]:
        """All on ``main`` of the registry itself."""
        return frozenset(self._repository.run("rev-list", MAIN).stdout.split())

    def _is_ancestor(self, old: str, new: str) -> bool:
        return self._repository.run("merge-base", "--is-ancestor", old, new).returncode == 0

    def _mark(self) -> None:
        """The reference that names our term, and none of another one."""
        with self._repository.lock():
            for old in self._repository.below(_TERM):
                self._repository.drop(f"{_TERM}{old}")
            made = self._repository.git.create_blob(f"term {self._term}\n".encode())
            self._repository.move(self._mine, made, expected=None)

    def _whole_s(self) -> float:
        """How long a line may take for all of the registry."""
        size = 0
        for path in (self._repository.path / "objects").rglob("*"):
            with suppress(FileNotFoundError):  # packed meanwhile
                size += path.lstat().st_size
        return _SECONDS + size / _BYTES_A_SECOND

    def _git(self, *words: str, seconds: float | None = None) -> str:
        """Run it; why it failed, "" when it did not."""
        try:
            self._git_text(*words, seconds=seconds)
        except Unavailable as error:
            return str(error)
        return ""

    def _git_text(self, *words: str, seconds: float | None = None) -> str:
        patience_s = _SECONDS if seconds is None else seconds
        allowed = [word for name in _PROTOCOLS for word in ("-c", f"protocol.{name}.allow=always")]
        # a person's own may be no OpenSSH, which knows these options; whatever asks or waits is cut off below
        ssh = {_SSH: os.environ.get(_SSH) or "ssh -o BatchMode=yes -o ConnectTimeout=10"}
        slow = ["-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=30"]
        words = (f"--git-dir={self._repository.path}", *allowed, *slow, *words)
        try:
            git = run_in_time(words, environment() | ssh, patience_s, cwd=self._repository.path)
        except TimeoutError:
            raise Unavailable(f"git did not end within {patience_s:.0f} s") from None
        if git.returncode:
            refused = [line for line in git.stdout.splitlines() if line.startswith("!")]
            told = " ".join("; ".join(refused or [git.stderr]).split())
            raise Unavailable(told[:400] or f"git ended with {git.returncode}")
        return git.stdout


def _globs() -> Iterator[str]:
    for item in (MAIN, _TAGS, *_AS_IT_IS):
        yield item.removesuffix("*").removesuffix("/")
