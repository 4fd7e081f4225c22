"""On which host a run gets its boxes: this machine, or a worker that has what is wanted and the least to do.

What this machine's own sandbox is made of is the measure: a worker of another kind or another image gets no work, so
that trials are compared with trials on the same image, and with the runs that they stand for.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from agentos.domain import Limits
from agentos.errors import HostAway, Unavailable
from agentos.ports import Box, Place, Placement, Sandbox
from agentos.sandboxes.choice import HERE, Choice, plugin_of
from agentos.sandboxes.remote.box import WorkerState
from agentos.sandboxes.remote.fleet import Fleet

_REST_S = 30.0  # without new work, for a worker that could not open a box
_PAIRS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class HostSandbox:
    """The sandbox of one worker; the Sandbox port. What it is made of is what the worker says."""

    places: WorkerPlaces
    host: str
    name: str
    level: str
    image: str

    def open(self, limits: Limits, *, light: bool = False, run: str = "") -> Box:
        """See ``ports.Sandbox``. Raises HostAway."""
        return self.places.open_at(self.host, limits, light=light, run=run)

    def close(self) -> None:
        """The worker stays."""


class WorkerPlaces:
    """Implements ``ports.Places`` over this machine and its workers. Thread-safe.

    ``here`` is how many runs at a time get their boxes on this machine; 0 for none.
    """

    def __init__(self, choice: Choice, fleet: Fleet, here: int) -> None:
        self._choice, self._fleet, self._here = choice, fleet, here
        self._lock = threading.Lock()
        self._leases: Counter[str] = Counter()
        self._pairs: OrderedDict[str, str] = OrderedDict()  # the host of each pair of trials
        self._resting: dict[str, float] = {}

    @property
    def room(self) -> int:
        """How many runs fit at a time, over all hosts; 0 where there is none."""
        return self._here + sum(state.hello.boxes for state in self._fleet.states() if not state.unwanted)

    @contextmanager
    def place(self, wanted: Placement) -> Iterator[Place]:
        """See ``ports.Places``."""
        own = self._choice.choose(wanted.asked, wanted.prefer)
        workers = {
            state.name: state
            for state in self._fleet.states()
            if not state.unwanted and (state.hello.sandbox, state.hello.image) == (own.name, own.image)
        }
        with self._lock:
            host = self._chosen(wanted, workers)
            self._leases[host] += 1
        try:
            yield Place(own if host == HERE else self._sandbox(workers[host]), host, plugin_of(own))
        finally:
            with self._lock:
                self._leases[host] -= 1

    def open_at(self, host: str, limits: Limits, *, light: bool, run: str) -> Box:
        """A box on that worker. Raises HostAway."""
        try:
            return self._fleet.open(host, limits, light=light, run=run)
        except HostAway:
            with self._lock:
                self._resting[host] = time.monotonic() + _REST_S
            raise

    def _sandbox(self, state: WorkerState) -> Sandbox:
        hello = state.hello
        return HostSandbox(self, state.name, hello.sandbox, hello.level, hello.image)

    def _chosen(self, wanted: Placement, workers: dict[str, WorkerState]) -> str:
        """Under the lock. Raises HostAway."""
        fitting = [
            name
            for name, state in workers.items()
            if name not in wanted.avoid
            and set(wanted.labels) <= set(state.hello.labels)
            and wanted.memory_mb <= state.hello.memory_mb
        ]
        if self._here and HERE not in wanted.avoid and not wanted.labels:
            fitting.insert(0, HERE)
        if not fitting:
            raise HostAway(self._nobody(wanted, workers))
        if wanted.pair and self._pairs.get(wanted.pair) in fitting:
            return self._pairs[wanted.pair]
        now = time.monotonic()
        rested = [name for name in fitting if self._resting.get(name, 0.0) <= now]
        chosen = min(rested or fitting, key=lambda name: self._load(name, workers, wanted))
        if wanted.pair:
            self._pairs[wanted.pair] = chosen
            while len(self._pairs) > _PAIRS_MAX:
                self._pairs.popitem(last=False)
        return chosen

    def _load(self, name: str, workers: dict[str, WorkerState], wanted: Placement) -> tuple[bool, float]:
        """How much there is to do for what it can; first whether it has no memory for this one now."""
        if name == HERE:
            return False, self._leases[HERE] / self._here
        state = workers[name]
        full = state.memory_mb + wanted.memory_mb > state.hello.memory_mb
        return full, max(self._leases[name], len(state.runs)) / state.hello.boxes

    def _nobody(self, wanted: Placement, workers: dict[str, WorkerState]) -> str:
        if not workers:
            return (
                "no worker is there that this home can use, and `workers.here` is 0; `agentos cluster status` says "
                "what is there"
            )
        labels = f" with the labels {', '.join(wanted.labels)}" if wanted.labels else ""
        return f"none of {len(workers)} workers{labels} has {wanted.memory_mb} MB for a box; see `agentos cluster status`"


def unwanted(choice: Choice, sandbox: str, image: str) -> str:
    """Why a worker with this sandbox and image gets no work, "" where it does."""
    try:
        own = choice.image_of(sandbox)
    except Unavailable as error:
        return f"this machine has no {sandbox} to compare its image with: {error}"
    if not own:
        return f"its sandbox is {sandbox}, and the settings here say another for everything"
    if own != image:
        return f"its image is {image}, and here it is {own}: install the same Python, libraries and agentos"
    return ""
