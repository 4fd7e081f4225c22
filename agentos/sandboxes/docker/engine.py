"""The container engine, spoken to through the ``docker`` SDK: who it is, and what its failures mean.

The SDK's client mixes up answers when two threads or a forked child share it, so every thread and
process gets one of its own here. Every call has a time limit.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import threading
from collections.abc import Iterator
from typing import Any

from agentos.errors import Unavailable
from agentos.sandboxes.docker.sdk import docker, requests

SOCKET = "unix:///var/run/docker.sock"
_MISSING = (
    "The container engine does not answer ({why}): start it with `systemctl start docker` (or, as root, "
    '`dockerd`), install it with `apt-get install docker.io`, or set sandbox = "bubblewrap" in agentos.toml.'
)
_FORBIDDEN = (
    "This user may not use the container engine ({why} at {address}): type `sudo usermod -aG docker {user}`, "
    "log in anew and start the daemon again (that group is as good as root on this machine, see "
    'docs/use/docker.md), or set sandbox = "bubblewrap" in agentos.toml.'
)


class DockerEngine:
    """The engine of this machine. Constructing costs nothing and connects to nothing."""

    def __init__(self, timeout_s: float = 60.0) -> None:
        self.address = os.environ.get("DOCKER_HOST") or SOCKET
        self._timeout_s = timeout_s
        self._local = threading.local()
        self._all: list[docker.APIClient] = []
        self._lock = threading.Lock()

    @property
    def api(self) -> docker.APIClient:
        """This thread's own client. Use within ``answering``."""
        client, pid = getattr(self._local, "client", (None, 0))
        if client is None or pid != os.getpid():
            if not self.address.startswith("unix://"):
                raise Unavailable(
                    f"The engine must run on this machine, since a box is reached through a socket in a directory; "
                    f"DOCKER_HOST is {self.address}: unset it."
                )
            client = docker.APIClient(base_url=self.address, version="auto", timeout=self._timeout_s)
            self._local.client = (client, os.getpid())
            with self._lock:
                self._all.append(client)
        return client

    def version(self) -> dict[str, Any]:
        """What the engine says of itself; raises Unavailable when there is none."""
        with answering():
            return dict(self.api.version())

    def close(self) -> None:
        """Close every thread's connections; the threads must be done with them."""
        with self._lock:
            clients, self._all = self._all, []
        self._local = threading.local()
        for client in clients:
            client.close()


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Engine failures as Unavailable, with what to do about those that are known."""
    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise Unavailable(f"{error.explanation}: type `agentos sandbox build --from-host`") from None
    except docker.errors.APIError as error:
        raise Unavailable(f"the container engine refused: {error.explanation or error}") from None
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise Unavailable(_advice(_innermost(error))) from None


def _innermost(error: BaseException) -> BaseException:
    """The cause; what lies above is the SDK's and urllib3's packaging."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


def _advice(error: BaseException) -> str:
    """What happened, and what to type."""
    why = (getattr(error, "strerror", None) or str(error))[:200]
    if not isinstance(error, PermissionError):
        return _MISSING.format(why=why)
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = "$USER"
    return _FORBIDDEN.format(why=why, address=os.environ.get("DOCKER_HOST") or SOCKET, user=user)
