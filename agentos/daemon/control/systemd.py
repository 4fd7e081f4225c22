"""The daemon as a systemd service: one unit for one home, written, looked at and removed.

The unit is whole: it asks for a delegated control group (boxes are held to their memory by one of their own),
for enough descriptors, and for time to finish the tasks under way. systemd itself is asked where it is there.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentos.errors import Conflict, ErrorKind, Unavailable, UserError
from agentos.home import Home, folder_of_user

_UNIT = """\
[Unit]
Description=agentos daemon of {shown}
After=network-online.target
Wants=network-online.target
# However long a disk is full or a database away: it comes up by itself when it can.
StartLimitIntervalSec=0

[Service]
Type=exec
{user}ExecStart={command}
WorkingDirectory={folder}
UMask=0077
# The first SIGTERM lets tasks under way end; after this long all that is left is killed, and taken up again.
KillMode=mixed
TimeoutStopSec=120
Restart=on-failure
RestartSec=10
# Each box gets a control group below the daemon's own.
Delegate=yes
LimitNOFILE=65536
# Text, with levels; the same as JSON lines is in {shown}/logs/daemon.log.
StandardOutput=journal
StandardError=journal
SyslogIdentifier={name}

[Install]
WantedBy={target}
"""
BOOTED = Path("/run/systemd/system")  # there where systemd is what the machine was booted with (sd_booted(3))
_LONGEST_S = 150  # for systemctl, which waits until the daemon has ended


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """``enabled`` and ``active`` are systemd's words, "" where it cannot be asked."""

    unit: str
    installed: bool
    home: str  # that the unit is for; "" without one
    enabled: str
    active: str


@dataclass(frozen=True, slots=True)
class SystemdUnit:
    """One service by its ``name``; of one person's systemd, or of the machine's."""

    home: Home
    name: str
    user: bool
    stand_by: bool = False

    @property
    def path(self) -> Path:
        """Where the unit stands."""
        if not self.user:
            return Path("/etc/systemd/system") / f"{self.name}.service"
        config = os.environ.get("XDG_CONFIG_HOME") or folder_of_user() / ".config"
        return Path(config) / "systemd" / "user" / f"{self.name}.service"

    def text(self) -> str:
        """The whole unit. A service of the machine runs as whoever the home belongs to."""
        root = self.home.root.resolve()
        owner = ""
        if not self.user:
            uid = root.stat().st_uid
            try:
                owner = f"User={pwd.getpwuid(uid).pw_name}\n"
            except KeyError:
                owner = f"User={uid}\n"
        command = [sys.executable, "-P", "-m", "agentos", "--home", str(root), "daemon", "run"]
        command += ["--stand-by"] if self.stand_by else []
        return _UNIT.format(
            shown=_literal(str(root)),
            folder=_literal(str(root)),
            user=owner,
            command=" ".join(map(_quoted, command)),
            name=self.name,
            target="default.target" if self.user else "multi-user.target",
        )

    def install(self) -> list[str]:
        """Write the unit and have systemd know it; what is left to type. Safe to repeat.

        Raises UserError without a home or the rights, Conflict for the unit of another home.
        """
        self.home.require()
        self._refuse_strangers()
        self._refuse_others()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            aside = self.path.with_suffix(".new")
            aside.write_text(self.text(), encoding="utf-8")
            aside.chmod(0o644)
            aside.rename(self.path)
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error.strerror}") from None
        ctl = "systemctl --user" if self.user else "systemctl"
        left = [f"{ctl} start {self.name}", f"journalctl {'--user ' if self.user else ''}-u {self.name} -f"]
        if self.user:
            left.append("loginctl enable-linger  # so that it runs without your being logged in")
        if not BOOTED.is_dir():
            return [
                "# systemd does not run on this machine: `agentos daemon start` starts the daemon meanwhile"
            ]
        try:
            self._ctl("daemon-reload")
            self._ctl("enable", self.name)
        except Unavailable:
            left = [f"{ctl} daemon-reload", f"{ctl} enable {self.name}", *left]
        return left

    def uninstall(self) -> bool:
        """Stop and forget it; whether there was one."""
        if not self.path.exists():
            return False
        self._refuse_strangers()
        self._refuse_others()
        try:
            self._ctl("disable", "--now", self.name)
        except Unavailable as error:
            if self.status().active == "active":
                raise UserError(f"{error}; the unit {self.path} stays") from None
        try:
            self.path.unlink()
        except OSError as error:
            raise UserError(f"{self.path} cannot be removed: {error.strerror}") from None
        with suppress(Unavailable):
            self._ctl("daemon-reload")
        return True

    @property
    def stands_by(self) -> bool:
        """Whether the unit that is there is of one that stands by."""
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return False
        return any(line.startswith("ExecStart=") and line.endswith(" --stand-by") for line in lines)

    def status(self) -> ServiceStatus:
        """What is there, and what systemd says of it."""
        said = {}
        for verb in ("is-enabled", "is-active"):
            try:
                said[verb] = self._ctl(verb, self.name, fails=True)
            except Unavailable:
                said[verb] = ""
        home = self._home_of_unit()
        return ServiceStatus(str(self.path), self.path.exists(), home, said["is-enabled"], said["is-active"])

    def _refuse_strangers(self) -> None:
        if not self.user and os.geteuid() != 0:
            raise UserError("a service of the machine needs root: put sudo before it, or add --user")

    def _refuse_others(self) -> None:
        other = self._home_of_unit()
        if other and other != _literal(str(self.home.root.resolve())):
            raise Conflict(
                f"{self.path} is the service of {other}: give this one another --name", kind=ErrorKind.TAKEN
            )

    def _home_of_unit(self) -> str:
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return ""
        return next((line.partition("=")[2] for line in lines if line.startswith("WorkingDirectory=")), "?")

    def _ctl(self, *words: str, fails: bool = False) -> str:
        command = ["systemctl", *(["--user"] if self.user else []), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"systemctl cannot be asked: {error}") from None
        if done.returncode and not fails:
            raise Unavailable(f"`{' '.join(command)}` says: {' '.join(done.stderr.split())}")
        return done.stdout.strip()


def _literal(text: str) -> str:
    """A value that systemd takes as it is: % begins what it replaces."""
    return text.replace("%", "%%")


def _quoted(word: str) -> str:
    escaped = _literal(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return escaped if escaped and not set(escaped) & set(" \t'\";\\") else f'"{escaped}"'
