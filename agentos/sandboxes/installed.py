"""A sandbox of another distribution, held to what ships: it is examined like these, and its images carry its version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.plugins import registry
from agentos.plugins.registry import Plugin, PluginFailed
from agentos.ports import Box
from agentos.sandboxes.probe import Guarantee, refusal


class InstalledSandbox:
    """Implements ``choice.StartableSandbox``. Whatever the plug-in raises is Unavailable: it counts for no candidate."""

    def __init__(self, plugin: Plugin, home: Path, run_uid: int | None) -> None:
        """Raises PluginFailed."""
        self.name = plugin.name
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
            raise Unavailable(str(error)) from None
