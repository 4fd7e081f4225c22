"""For tools that declare the effect ``external``: one request to the outside world.

The box has no network. The request goes to the kernel, which lets it through when the task allows
outside effects and the home's settings name the host (``egress``).
"""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from dataclasses import dataclass

PLACE = "AGENTOS_OUTSIDE"  # the variable that holds the forwarder's URL


class OutsideError(Exception):
    """The kernel did not let the request through, or nobody answered it."""


@dataclass(frozen=True, slots=True)
class Response:
    """``body`` is at most 4 MiB; ``headers`` have lower-case names."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8, undecodable bytes replaced."""
        return self.body.decode("utf-8", "replace")


def fetch(
    url: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: bytes = b""
) -> Response:
    """Ask the kernel to make this request. Raises OutsideError; redirects are not followed."""
    place = os.environ.get(PLACE)
    if not place:
        raise OutsideError("this run may not reach the outside: add 'external' to the task's effects")
    asked = {"method": method, "url": url, "headers": headers or {}, "body": base64.b64encode(body).decode()}
    request = urllib.request.Request(f"{place}/fetch", json.dumps(asked).encode())  # noqa: S310 - our own
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - the forwarder on loopback
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            raise OutsideError(json.load(error)["error"]["message"]) from None
    except OSError as error:
        raise OutsideError(f"the kernel cannot be reached: {error}") from None
    return Response(found["status"], found["headers"], base64.b64decode(found["body"]))
