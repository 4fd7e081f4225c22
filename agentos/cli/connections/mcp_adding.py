"""What `agentos mcp add` was given, held against what can be meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from agentos.daemon.mcp.packages import Packages, packages_of
from agentos.errors import UserError, meant
from agentos.home import Home
from agentos.models.secrets import secrets_of

_HOST = re.compile(r"(\*\.)?(\[[0-9a-fA-F:]+\]|[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?)(:[0-9]{1,5})?")


def asked_packages(command: Sequence[str], url: str, files: Path | None) -> Packages:
    """How it is started. Raises UserError."""
    if bool(command) is bool(url):
        raise UserError("A server is named by a command after -- or by --url: give one of the two")
    if url:
        if files:
            raise UserError("--files is for a server that is started here")
        return Packages(())
    packages = packages_of(command)
    if packages.npm and files:
        raise UserError("--files is for a server that is no package of npm")
    return packages


def hosts_of(url: str, hosts: Sequence[str]) -> list[str]:
    """What it may reach: of a URL its own host alone. Raises UserError."""
    if not url:
        if wrong := [host for host in hosts if not _HOST.fullmatch(host)]:
            raise UserError(f"--host is a name, *.name or name:port, found '{wrong[0][:100]}'")
        return [host.lower() for host in hosts]
    if hosts:
        raise UserError(
            "--host is for a server that is started here; one with --url is reached at its own host"
        )
    try:
        parts = urlsplit(url)
        place = (parts.hostname or "") + (f":{parts.port}" if parts.port is not None else "")
    except ValueError:
        place = ""
    if parts.scheme not in ("http", "https") or not place or parts.username is not None:
        raise UserError(f"--url is https://HOST/PATH without a user, found '{url[:200]}'")
    return [place]


def environment_of(
    home: Home, given: Mapping[str, str], secrets: Sequence[str], url: str, hosts: Sequence[str]
) -> dict[str, str]:
    """Variables (headers of a server by URL) with the names of secrets in place of values. Raises UserError."""
    if secrets and not hosts:
        raise UserError("--secret is put into requests: name by --host where the server sends them")
    known, found = secrets_of(home), dict(given)
    for text in secrets:
        variable, _, name = text.rpartition("=")
        if name not in known:
            hint = meant(name, known, "Type: agentos secret set NAME --host HOST")
            raise UserError(f"There is no secret '{name[:64]}'. {hint}")
        placed = f"{{{{secret:{name}}}}}"
        if url and not variable:
            found["Authorization"] = f"Bearer {placed}"
        else:
            found[variable or name] = placed
    return found


def egress_hint(home: Home, hosts: Sequence[str]) -> list[str]:
    """One sentence where the settings do not let runs reach what the server was given."""
    from agentos.daemon.requests.egress import is_named
    from agentos.settings import load_settings

    allowed = load_settings(home.settings).egress
    missing = [host for host in hosts if not is_named(host, allowed)]
    names = ", ".join(f'"{host}"' for host in missing)
    return [f"Runs may not reach {names} yet: add it to 'egress' in agentos.toml"] if missing else []
