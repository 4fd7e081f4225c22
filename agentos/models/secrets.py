"""Secrets that the kernel puts into requests of runs: names, hosts and values, in the home and nowhere else.

``secrets.json`` (mode 0600) holds names and hosts, and the values where no keyring holds them. No sandbox, ledger,
registry or log ever does; ``daemon/requests/secret_requests.py`` is the one place that reads a value.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agentos.durable import write_whole
from agentos.errors import ErrorKind, NotFound, Unavailable, UserError, meant, to_type
from agentos.home import Home
from agentos.plugins import registry

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
SHORTEST, LONGEST = 8, 8_192  # characters: a shorter value would be found in innocent text
_HOST = re.compile(r"(http://)?(\[[0-9a-f:]+\]|[a-z0-9]([a-z0-9.-]{0,252}[a-z0-9])?)(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Secret:
    """One secret without its value. A host is ``name`` or ``name:port`` over https, or begins with ``http://``."""

    name: str
    hosts: tuple[str, ...]
    any_task: bool  # whether a task need not name it
    set_at: str  # ISO 8601
    kept_in: str  # "file", "keyring", or the name of a plug-in

    def is_for(self, scheme: str, place: str) -> bool:
        """Whether it may be sent to ``place`` (``host`` or ``host:port``) over this scheme."""
        return (place if scheme == "https" else f"{scheme}://{place}") in self.hosts


def keep(home: Home, secret: Secret, value: str, *, in_file: bool = False, store: str = "") -> Secret:
    """Store it, over one of the same name; ``store`` names a plug-in. Raises UserError for what cannot be one."""
    if not NAME.fullmatch(secret.name):
        raise UserError(f"'{secret.name}' is no name of a secret: letters, digits and '_', a letter first.")
    hosts = tuple(host.strip().lower().removeprefix("https://").rstrip("/") for host in secret.hosts)
    if wrong := [host for host in hosts if not _HOST.fullmatch(host)]:
        raise UserError(f"'{wrong[0]}' is no host: expected api.example.org, host:port, or http://host:port.")
    if in_file and store:
        raise UserError(
            "A secret is kept in one place: give --file or --store, not both.", kind=ErrorKind.USAGE
        )
    if not hosts:
        raise UserError("A secret is bound to hosts: add --host api.example.org.")
    if not SHORTEST <= len(value) <= LONGEST or not value.isprintable():
        raise UserError(f"A secret has {SHORTEST} to {LONGEST:,} printable characters, in one line.")
    ring = None if in_file or store else _keyring()
    kept = replace(secret, hosts=hosts, kept_in=store or ("keyring" if ring else "file"))
    if store:
        _in_plugin(home, store, lambda there: there.set(secret.name, value))
    if ring:
        with _unlocked(ring):
            ring.set_password(_service(home), secret.name, value)
    with _changed(home) as table:
        table[secret.name] = asdict(kept) | ({"value": value} if kept.kept_in == "file" else {})
    return kept


def remove(home: Home, name: str) -> Secret:
    """Forget it. Raises NotFound."""
    table = _table(home)
    if name not in table:
        hint = meant(name, table, "Type: ", to_type("agentos secret list"))
        raise NotFound(f"There is no secret '{name}'. ", hint)
    secret = _secret(table[name])
    if secret.kept_in == "keyring" and (ring := _keyring()):
        with suppress(Unavailable), _unlocked(ring):  # it may be gone already
            ring.delete_password(_service(home), name)
    elif secret.kept_in not in ("file", "keyring"):
        with suppress(Unavailable):
            _in_plugin(home, secret.kept_in, lambda there: there.delete(name))
    with _changed(home) as table:
        table.pop(name, None)
    return secret


def secrets_of(home: Home) -> Mapping[str, Secret]:
    """All secrets by name, without values. Raises UserError when others may read the file."""
    return {name: _secret(entry) for name, entry in _table(home).items()}


def value_of(home: Home, name: str) -> str:
    """The value. Raises NotFound, or Unavailable when the keyring does not give it."""
    entry = _table(home).get(name)
    if entry is None:
        raise NotFound(
            f"there is no secret '{name}': type ", to_type(f"agentos secret set {name} --host HOST")
        )
    if entry["kept_in"] == "file":
        return str(entry["value"])
    if entry["kept_in"] != "keyring":
        value = _in_plugin(home, entry["kept_in"], lambda there: there.get(name))
        if not isinstance(value, str) or not SHORTEST <= len(value) <= LONGEST:
            raise Unavailable(f"the secret store {entry['kept_in']} does not give the secret '{name}'")
        return value
    ring, value = _keyring(), None
    if ring:
        with _unlocked(ring):
            value = ring.get_password(_service(home), name)
    if not value:
        raise Unavailable(f"the keyring does not give the secret '{name}': unlock it, or set it with --file")
    return str(value)


def values(home: Home) -> Sequence[tuple[str, str]]:
    """Name and value of all that can be read, so that they can be kept out of what is stored."""
    found = []
    for name in _table(home):
        with suppress(Unavailable):
            found.append((name, value_of(home, name)))
    return found


def _in_plugin(home: Home, store: str, use: Callable[[Any], Any]) -> Any:
    """What a use of the installed store gives. Raises Unavailable, which quotes nothing that the plug-in says."""
    try:
        plugin = registry.named("secret_stores", store)
        made = registry.make(plugin, home.root)
        return registry.call(plugin, lambda: use(made), quotes=False)
    except UserError as error:
        raise Unavailable(str(error)) from None


def _secret(entry: Mapping[str, Any]) -> Secret:
    return Secret(
        str(entry["name"]),
        tuple(map(str, entry["hosts"])),
        bool(entry["any_task"]),
        str(entry["set_at"]),
        str(entry["kept_in"]),
    )


def _table(home: Home) -> dict[str, dict[str, Any]]:
    text = read_private(home.secrets)
    try:
        table = json.loads(text) if text else {}
        for entry in table.values():
            _secret(entry)
    except (ValueError, AttributeError, KeyError, TypeError):
        # the reason is left out: it would quote the line, and that may be a secret
        raise UserError(
            f"{home.secrets} is damaged: restore it, or remove it and set the secrets again",
            kind=ErrorKind.DAMAGED,
        ) from None
    return dict(table)


@contextmanager
def _changed(home: Home) -> Iterator[dict[str, dict[str, Any]]]:
    """The table, to be written when it was changed; of two processes one waits, or the other's secret would be lost."""
    home.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(home.run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        table = _table(home)
        yield table
        write_whole(home.secrets, json.dumps(table).encode())
    finally:
        os.close(lock)


def _service(home: Home) -> str:
    return f"agentos {home.root}"


def _keyring() -> Any:
    """The module ``keyring`` where it is installed and has somewhere to keep things, else None."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        return None
    return keyring if keyring.get_keyring().priority >= 1 else None


@contextmanager
def _unlocked(ring: Any) -> Iterator[None]:
    try:
        yield
    except ring.errors.KeyringError as error:
        raise Unavailable(
            f"the keyring refuses ({type(error).__name__}): unlock it, or set the secret with --file"
        ) from None


# --- Where the keys of providers lie: variables of the environment, and ``keys.toml`` of the home


def read_keys(path: Path) -> dict[str, str]:
    """Variable name -> key, from a file that only its owner can read; empty when there is none.

    Raises UserError when others could read it, or it is not a table of texts.
    """
    try:
        table = tomllib.loads(read_private(path).decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        # the reason is left out: it would quote the line, and that may be a key
        raise UserError(
            f'{path} is not TOML; expected lines like OPENAI_API_KEY = "…"', kind=ErrorKind.UNREADABLE
        ) from None
    if not all(isinstance(value, str) for value in table.values()):
        raise UserError(
            f'{path} must hold nothing but lines like OPENAI_API_KEY = "…"', kind=ErrorKind.UNREADABLE
        )
    return table


def read_private(path: Path) -> bytes:
    """The first MiB of a file that only its owner can read; empty when there is none.

    Raises UserError, and OSError where it is the machine that cannot: that says nothing of the file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise
        raise UserError(f"{path} cannot be read: {error.strerror}", kind=ErrorKind.UNREADABLE) from None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        if about.st_uid != os.geteuid() or not stat.S_ISREG(about.st_mode):
            raise UserError(f"{path} holds keys, so it must be a file of yours; it belongs to somebody else")
        if about.st_mode & 0o077:
            raise UserError(
                f"{path} holds keys, but others may read it; type: ",
                to_type(f"chmod 600 {path}"),
                kind=ErrorKind.EXPOSED,
            )
        return file.read(1 << 20)
