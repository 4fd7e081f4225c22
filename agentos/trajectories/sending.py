"""Sends finished runs to an OpenTelemetry collector: OTLP over HTTP in its JSON form.

The standard library is enough for that: https://opentelemetry.io/docs/specs/otlp/#otlphttp. Whoever
hands a run over never waits and never hears of a failure; a collector that is away costs spans.
"""

from __future__ import annotations

import http.client
import json
import queue
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

from agentos.domain import Json
from agentos.errors import ErrorKind, UserError
from agentos.trajectories.chat import FinishedRun
from agentos.trajectories.spans import otlp

WAITING_MAX = 1_000  # runs; what comes when so many wait is dropped
BATCH_MAX = 64
_TIMEOUT_S = 10.0
_PAUSES_S = (1.0, 5.0)  # before another attempt at one batch
_AGAIN = frozenset({429, 502, 503, 504})  # what the specification says is worth one
_PATH = "/v1/traces"


class Collector:
    """A collector's address for one kind of data. ``setting`` is named where the address is wrong (UserError)."""

    def __init__(self, address: str, path: str, setting: str) -> None:
        try:
            url = urlsplit(address)
            host, port = url.hostname, url.port
        except ValueError:
            host = None
        if not host or url.scheme not in ("http", "https"):
            raise UserError(
                f"{setting} is {address!r}, expected the address of a collector, as http://localhost:4318",
                kind=ErrorKind.USAGE,
            )
        secure = url.scheme == "https"
        self._port = port or (443 if secure else 80)  # left out, the end of an IPv6 address is taken for it
        self._connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self.host = host
        own = url.path.rstrip("/")
        self._path = own if own.endswith(path) else own + path
        self._closing = threading.Event()

    def post(self, body: bytes) -> str:
        """Deliver one request, with pauses between attempts; why it could not be, or ""."""
        why = ""
        for pause_s in (0.0, *_PAUSES_S):
            if pause_s and self._closing.wait(pause_s):
                break
            try:
                status = self._try(body)
            except (OSError, http.client.HTTPException, UnicodeError) as error:  # the last: of a host or path
                why = f"{type(error).__name__}: {error}"
                continue
            if status < 300:
                return ""
            why = f"it answered {status}"
            if status not in _AGAIN:
                break
        return why

    def close(self) -> None:
        """Pause no more."""
        self._closing.set()

    def _try(self, body: bytes) -> int:
        connection = self._connect(self.host, self._port, timeout=_TIMEOUT_S)
        try:
            connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            with connection.getresponse() as response:
                response.read(1 << 16)
                return response.status
        finally:
            connection.close()


class Sender:
    """Takes runs on any thread and sends them from its own.

    ``tell`` gets one sentence when sending begins to fail, and one when it works again.
    ``redact`` is applied to every request before it leaves. Raises UserError for a wrong address.
    """

    def __init__(
        self, address: str, tell: Callable[[str], None], redact: Callable[[Json], Json] = lambda value: value
    ) -> None:
        self._collector = Collector(address, _PATH, "otlp")
        self._tell, self._redact = tell, redact
        self._waiting: queue.Queue[FinishedRun] = queue.Queue(WAITING_MAX)
        self._closing = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._work, name="otlp", daemon=True)
        self._thread.start()

    def send(self, happened: FinishedRun) -> None:
        """Send it soon; returns at once. ``steps`` must hold their big values, not references."""
        if self._closing.is_set():
            return
        try:
            self._waiting.put_nowait(happened)
        except queue.Full:
            self._failed(f"more than {WAITING_MAX} runs wait to be sent")

    def close(self, wait_s: float = 5.0) -> None:
        """Send what waits, but take no longer than this; idempotent."""
        self._closing.set()
        self._collector.close()
        self._thread.join(wait_s)

    def _work(self) -> None:
        while batch := self._batch():
            body = json.dumps(self._redact(otlp(batch))).encode()
            why = self._collector.post(body)
            if why:
                self._failed(why)
            elif self._failing:
                self._failing = False
                self._tell(f"spans reach {self._collector.host} again")

    def _batch(self) -> list[FinishedRun]:
        """Waits for at least one run; empty when all is sent and the sender closes."""
        batch: list[FinishedRun] = []
        while len(batch) < BATCH_MAX:
            try:
                batch.append(self._waiting.get(timeout=0.0 if batch or self._closing.is_set() else 0.5))
            except queue.Empty:
                if batch or self._closing.is_set():
                    break
        return batch

    def _failed(self, why: str) -> None:
        if not self._failing:
            self._failing = True
            self._tell(f"spans cannot be sent to {self._collector.host} and are dropped: {why}")
