"""Which sandbox a box is made in: what the settings, the environment and the policy's tier ask for.

The settings come first: a name there stands for everything. Under ``auto`` an environment may name
one; where it does not, the tier of what is tried says which is preferred. Each sandbox is started
and probed when it is first chosen, and one that does not hold is never used: where a name was
asked for that is an error, and only a mere preference passes on to the next.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agentos.domain import Limits
from agentos.errors import ErrorKind, HostAway, Unavailable, UserError
from agentos.plugins import registry
from agentos.plugins.registry import Plugin, PluginFailed
from agentos.ports import Box, Place, Placement, Sandbox
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.probe import Guarantee, refusal

AUTO = "auto"
HERE = ""  # the name of this machine among the hosts of boxes
_AGAIN_S = 30.0  # an engine that was away is not asked anew for every box


class StartableSandbox(Sandbox, Protocol):
    """A sandbox of this package. ``reaches`` is the level it has where every promise holds."""

    reaches: str

    @property
    def lacks(self) -> str:
        """Once started: what the machine does not give beyond the promises, and what to type; "" for nothing."""
        ...

    def examine(self) -> tuple[Guarantee, ...]:
        """Try every promise once. Raises Unavailable."""
        ...

    def start(self) -> None:
        """Start and probe, unless that is done. Raises Unavailable."""
        ...


def _docker(home: Path, _run_uid: int | None) -> StartableSandbox:
    from agentos.sandboxes.docker.sandbox import Docker

    return Docker(home)


def _kubernetes(home: Path, _run_uid: int | None) -> StartableSandbox:
    from agentos.sandboxes.kubernetes.sandbox import Kubernetes

    return Kubernetes(home)


# Those that ``auto`` tries, the first in front. Any other is used where it is named: a cluster is nobody's fallback.
SANDBOXES: Mapping[str, Callable[[Path, int | None], StartableSandbox]] = {
    "bubblewrap": Bubblewrap,
    "docker": _docker,
}
_NAMED: Mapping[str, Callable[[Path, int | None], StartableSandbox]] = {"kubernetes": _kubernetes}


def made(name: str, home: Path, run_uid: int | None) -> StartableSandbox:
    """The sandbox of that name, not yet started. Raises Unavailable."""
    if ships := SANDBOXES.get(name) or _NAMED.get(name):
        return ships(home, run_uid)
    try:
        return InstalledSandbox(registry.named("sandboxes", name), home, run_uid)
    except UserError as error:
        raise Unavailable(error) from None


class Choice:
    """The sandboxes of one home. As a Sandbox itself it is the one that nobody asked otherwise for.

    ``wanted`` is the setting. Thread-safe; constructing starts nothing.
    """

    def __init__(self, home: Path, run_uid: int | None, wanted: str = AUTO) -> None:
        self._wanted = wanted
        self._home, self._run_uid = home, run_uid
        self._made: dict[str, StartableSandbox] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._closed = False

    @property
    def name(self) -> str:
        """Of the one that nobody asked otherwise for."""
        return self.choose().name

    @property
    def level(self) -> str:
        """The level it was probed at."""
        return self.choose().level

    @property
    def image(self) -> str:
        """What its boxes are made of."""
        return self.choose().image

    @property
    def lacks(self) -> str:
        """See ``StartableSandbox``."""
        return self.choose().lacks

    def image_of(self, name: str) -> str:
        """What boxes of this sandbox are made of now; "" where the settings say another for everything.

        Raises Unavailable when it cannot be had at the moment.
        """
        return self.choose(name).image if self._wanted in (AUTO, name) else ""

    def start(self) -> None:
        """Find out what can be had. Raises Unavailable with what to install, enable or build."""
        self.choose()

    def choose(self, asked: str = AUTO, prefer: str = AUTO) -> StartableSandbox:
        """A started sandbox. ``asked`` is the environment's wish, ``prefer`` the policy's for a tier.

        Raises Unavailable when what must be used does not hold.
        """
        names = self._names(asked, prefer)
        reasons = []
        for name in names:
            with self._locks[name]:  # one that is slow to start holds up only those who want it
                if self._closed:
                    raise Unavailable("the sandbox is closed", kind=ErrorKind.CLOSED)
                why_not = self._start(name)
                if not why_not:
                    return self._made[name]
                reasons.append(why_not)
        raise Unavailable(" ".join(reason if reason.endswith(".") else f"{reason}." for reason in reasons))

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Box:
        """See ``ports.Sandbox``."""
        return self.choose().open(limits, light=light, run=run)

    def close(self) -> None:
        """Close all that were started; idempotent. One that cannot be closed, as a plug-in's, keeps no other open."""
        self._closed = True
        for name, lock in list(self._locks.items()):
            with lock:
                sandbox = self._made.pop(name, None)
            if sandbox is not None:
                with suppress(Unavailable):
                    sandbox.close()

    def _names(self, asked: str, prefer: str) -> list[str]:
        for name in (asked, prefer, self._wanted):
            if name not in (AUTO, *SANDBOXES) and name not in (known := registry.names("sandboxes")):
                raise Unavailable(f"There is no sandbox '{name}': use auto, {' or '.join(known)}.")
        if self._wanted != AUTO:
            if asked not in (AUTO, self._wanted):
                raise Unavailable(
                    f"The environment asks for {asked}, but the settings say {self._wanted} for everything: "
                    'set sandbox = "auto" in agentos.toml to let environments choose.'
                )
            return [self._wanted]
        if asked != AUTO:
            return [asked]
        return sorted(SANDBOXES, key=lambda name: name != prefer)

    def _start(self, name: str) -> str:
        """Why it cannot be used, "" when it can."""
        if name in self._made:
            return ""
        failed_at, why = self._failed.get(name, (-_AGAIN_S, ""))
        if time.monotonic() - failed_at < _AGAIN_S:
            return why
        sandbox: StartableSandbox | None = None
        try:
            # its library may be an extra that is not installed
            sandbox = made(name, self._home, self._run_uid)
            sandbox.start()
        except Unavailable as error:
            if sandbox is not None:
                with suppress(Unavailable):  # why it did not start is what is to be told
                    sandbox.close()
            self._failed[name] = (time.monotonic(), str(error))
            return str(error)
        self._made[name] = sandbox
        return ""


@dataclass(frozen=True, slots=True)
class PlacesHere:
    """Implements ``ports.Places`` where no worker may join: every box is made on this machine."""

    sandbox: Sandbox
    choice: Choice | None = None

    @contextmanager
    def place(self, wanted: Placement) -> Iterator[Place]:
        """See ``ports.Places``."""
        if wanted.labels:
            raise HostAway(f"no host has the labels {', '.join(wanted.labels)}: this home takes no workers")
        if HERE in wanted.avoid:
            raise HostAway("there is no other host")
        own = self.choice.choose(wanted.asked, wanted.prefer) if self.choice else self.sandbox
        yield Place(own, plugin=plugin_of(own))


def plugin_of(sandbox: Sandbox) -> str:
    """The label of the plug-in that brings it, "" of one that ships."""
    own = sandbox.choose() if isinstance(sandbox, Choice) else sandbox
    return own.plugin if isinstance(own, InstalledSandbox) else ""


# -------------------------------------------------------------------------------------------------
# A sandbox of another distribution, held to what ships: it is examined like these, and its images
# carry its version.


class InstalledSandbox:
    """Implements ``choice.StartableSandbox``. Whatever the plug-in raises is Unavailable: it counts for no candidate."""

    def __init__(self, plugin: Plugin, home: Path, run_uid: int | None) -> None:
        """Raises PluginFailed."""
        self.name = plugin.name
        self.plugin = plugin.label
        self._plugin = plugin
        self._made = registry.make(plugin, home, run_uid)
        self.reaches = str(getattr(self._made, "reaches", "unknown"))
        self.level = "unprobed"

    @property
    def image(self) -> str:
        """Another where the plug-in has another version: trials in boxes of both are not compared."""
        return (
            f"{self._plugin.distribution} {self._plugin.version}: {self._call(lambda: str(self._made.image))}"
        )

    @property
    def lacks(self) -> str:
        """See ``choice.StartableSandbox``."""
        return str(getattr(self._made, "lacks", ""))

    def start(self) -> None:
        """Start it, and try every promise as for those that ship: one that does not hold is never used."""
        if self.level != "unprobed":
            return
        self._call(self._made.start)
        if why := refusal(self.examine()):
            self.close()
            raise Unavailable(f"{self._plugin}: {why}")
        self.level = self.reaches

    def examine(self) -> tuple[Guarantee, ...]:
        """What the plug-in found of its promises. Raises Unavailable where it names none."""
        claims: tuple[Guarantee, ...] = self._call(lambda: tuple(self._made.examine()))
        if not claims or not all(isinstance(claim, Guarantee) for claim in claims):
            raise Unavailable(f"the sandbox {self._plugin} examines nothing: it is not used")
        return claims

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Box:
        """See ``ports.Sandbox``."""
        self.start()
        made: Box = self._call(lambda: self._made.open(limits, light=light, run=run))
        return made

    def close(self) -> None:
        """See ``ports.Sandbox``."""
        self._call(self._made.close)

    def _call(self, work: Any) -> Any:
        try:
            return registry.call(self._plugin, work)
        except PluginFailed as error:
            if isinstance(error.__cause__, Unavailable):  # it says itself what to do, and how a box died
                raise error.__cause__ from None
            raise Unavailable(error) from None
