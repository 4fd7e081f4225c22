"""Sends heads of the audit log to where whoever rewrites the home cannot follow: a file elsewhere, a collector.

A head says how many entries there are and what the newest hashes to, and nothing of what they hold. The log that
contains all heads that were sent is the log from which they were taken.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from agentos.domain import Json
from agentos.errors import ErrorKind, UserError
from agentos.ledger.audit import AuditHead
from agentos.trajectories.sending import Collector

_LOGS = "/v1/logs"


class Heads:
    """Tells each target of a head once. ``targets`` are absolute paths and addresses of OpenTelemetry collectors.

    ``tell`` gets one sentence when a target begins to fail, and one when it works again. Raises UserError for
    what is neither.
    """

    def __init__(self, targets: Sequence[str], tell: Callable[[str], None]) -> None:
        self._send = {target: _sender(target) for target in targets}
        self._sent = dict.fromkeys(targets, AuditHead())
        self._failing: set[str] = set()
        self._tell = tell

    def send(self, head: AuditHead, now: datetime) -> None:
        """Blocks until each has it, or could not be reached; such a one is tried again with a later head."""
        for target, send in self._send.items():
            if self._sent[target] == head:
                continue
            why = send(head, now)
            if not why:
                self._sent[target] = head
                if target in self._failing:
                    self._failing.discard(target)
                    self._tell(f"heads of the audit log reach {target} again")
            elif target not in self._failing:
                self._failing.add(target)
                self._tell(f"heads of the audit log cannot be sent to {target}: {why}")


def _sender(target: str) -> Callable[[AuditHead, datetime], str]:
    if target.startswith(("http://", "https://")):
        collector = Collector(target, _LOGS, "audit_heads")
        return lambda head, now: collector.post(json.dumps(_record(head, now)).encode())
    path = Path(target)
    if not path.is_absolute():
        raise UserError(
            f"audit_heads has {target!r}, expected an absolute path of a file, or the address of a collector",
            kind=ErrorKind.USAGE,
        )
    return lambda head, now: _append(path, f"{now.isoformat(timespec='seconds')} {head}\n")


def _append(path: Path, line: str) -> str:
    """On the disk when it returns; why not, or "". A folder that is missing is a disk that is not mounted."""
    try:
        # a pipe that nobody reads would be waited for without end
        how = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        file = os.open(path, how, 0o600)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return "it is no plain file"
            size = os.fstat(file).st_size
            data = (line if _ends_a_line(path, size) else f"\n{line}").encode()
            if os.write(file, data) < len(data):  # half a line is no head, and nobody could read on
                os.ftruncate(file, size)
                return os.strerror(errno.ENOSPC)
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _ends_a_line(path: Path, size: int) -> bool:
    """Not after a power cut in the midst of one, which would make the next head unreadable as well."""
    with path.open("rb") as file:
        file.seek(max(0, size - 1))
        return file.read(1) in (b"", b"\n")


def _record(head: AuditHead, now: datetime) -> Json:
    """One log record: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding."""
    record = {
        "timeUnixNano": str(int(now.timestamp() * 1e9)),
        "severityNumber": 9,
        "severityText": "INFO",
        "body": {"stringValue": f"audit head {head}"},
        "attributes": [
            {"key": "agentos.audit.entries", "value": {"intValue": str(head.count)}},
            {"key": "agentos.audit.hash", "value": {"stringValue": head.hash}},
        ],
    }
    name = {"key": "service.name", "value": {"stringValue": "agentos"}}
    logs = {"scope": {"name": "agentos.audit"}, "logRecords": [record]}
    return {"resourceLogs": [{"resource": {"attributes": [name]}, "scopeLogs": [logs]}]}
