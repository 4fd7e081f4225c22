"""The ``docker`` SDK, which is an extra: importing this module raises Unavailable where it is not installed."""

from __future__ import annotations

from agentos.errors import Unavailable, missing_extra

try:
    import docker
    import docker.errors
    import requests
except ModuleNotFoundError:
    raise Unavailable(missing_extra("docker", "The container sandbox")) from None

__all__ = ["docker", "requests"]
