"""A client of the API of a home (docs/use/api.md). Standard library only.

What comes back are the documents that ``--json`` prints, as dictionaries. A failure is an ``ApiError``.

    with Client("http://127.0.0.1:8420", token) as home:
        task = home.add_task("How many words has the letter?", files={"letter.txt": text})
        done = home.wait(task["task"]["id"])
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

Document = dict[str, Any]

_PREFIX = "/api/v1"
_ENDED = ("done", "cancelled")
_IDLE_S = 2.0  # after which another connection is opened


class ApiError(Exception):
    """The API refused. ``kind`` is for programs (docs/use/api.md#errors), the text of the error for people.

    ``type_next`` are the commands that the text says to type, ``faults`` those of a document.
    """

    def __init__(
        self, status: int, kind: str, detail: str, faults: Sequence[str] = (), type_next: Sequence[str] = ()
    ) -> None:
        self.status, self.kind, self.faults, self.type_next = status, kind, tuple(faults), tuple(type_next)
        super().__init__(detail)


class Client:
    """One home. Not for several threads at a time; streams have a connection of their own.

    ``address`` as `agentos web` prints it, without a path. Methods raise ApiError for what the API refuses, and
    OSError where it is not reached. ``timeout_s`` bounds each read.
    """

    def __init__(self, address: str, token: str, timeout_s: float = 60.0) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"an address is http://HOST:PORT, not {address!r}")
        self._secure, self._place = parts.scheme == "https", parts.netloc
        self._token, self._timeout_s = token, timeout_s
        self._connection, self._used_at = self._connect(), 0.0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        self._connection.close()

    # --- tasks and runs -----------------------------------------------------------------------

    def token(self) -> Document:
        """What the token is called and may."""
        return self._call("GET", "/token")

    def add_task(
        self, goal: str = "", *, files: Mapping[str, str | bytes] | None = None, **document: Any
    ) -> Document:
        """Queue a task. ``document``: the other keys of a task: call, agent, checks, limits, name, effects."""
        return self._call("POST", "/tasks", _filed(goal, files, document))

    def tasks(self, *, state: str = "", limit: int = 50) -> Iterator[Document]:
        """All tasks, newest first; ``limit`` at a time."""
        return self._pages("/tasks", limit, state=state)

    def task(self, id: str) -> Document:
        """One task, by its id or enough of it."""
        return self._call("GET", f"/tasks/{quote(id, safe='')}")

    def cancel(self, id: str) -> Document:
        """Take it out of the queue, or stop it."""
        return self._call("POST", f"/tasks/{quote(id, safe='')}/cancel")

    def wait(self, id: str, seconds: float = 600.0, every_s: float = 0.2) -> Document:
        """The task when it is over or waits for a person. Raises TimeoutError."""
        until = time.monotonic() + seconds
        while (found := self.task(id))["state"] not in (*_ENDED, "waiting"):
            if time.monotonic() > until:
                raise TimeoutError(f"{id} is {found['state']} after {seconds} s")
            time.sleep(every_s)
        return found

    def runs(self, *, task: str = "", result: str = "", limit: int = 50) -> Iterator[Document]:
        """All runs, newest first."""
        return self._pages("/runs", limit, task=task, result=result)

    def run(self, id: str) -> Document:
        """One run with its steps."""
        return self._call("GET", f"/runs/{quote(id, safe='')}")

    def file(self, run: str, number: int) -> bytes:
        """A file that the run left, by its place in the run's ``outputs``."""
        return self._answer(self._send("GET", f"/runs/{quote(run, safe='')}/files/{number}")).read()

    def rate(
        self, run: str, rating: str, *, because: str = "", expect: Sequence[str] = (), **said: Any
    ) -> list[Document]:
        """A person's word: ``good`` or ``bad``. ``answer=…`` says what it should have been (with ``bad``)."""
        body = {"rating": rating, "because": because, "expect": list(expect), **said}
        return self._list("POST", f"/runs/{quote(run, safe='')}/feedback", body)

    def questions(self) -> list[Document]:
        """What runs wait to be answered."""
        return self._list("GET", "/questions")

    def answer(self, question: str, answer: str) -> Document:
        """Answer one; its task goes on."""
        return self._call("POST", f"/questions/{quote(question, safe='')}/answer", {"answer": answer})

    # --- evolutions ---------------------------------------------------------------------------

    def evolutions(self, *, state: str = "", resource: str = "", limit: int = 50) -> Iterator[Document]:
        """All evolutions, newest first."""
        return self._pages("/evolutions", limit, state=state, resource=resource)

    def evolution(self, id: str) -> Document:
        """One evolution with its proof. ``["etag"]`` is what ``decide`` wants: it stands for all that is in it."""
        response = self._answer(self._send("GET", f"/evolutions/{quote(id, safe='')}"))
        return {**json.loads(response.read()), "etag": response.headers["ETag"]}

    def decide(self, act: str, evolution: Document, reason: str = "") -> Document:
        """``approve``, ``reject``, ``revert`` or ``retry`` what ``evolution()`` gave.

        ApiError ``changed`` where it is another by now.
        """
        path = f"/evolutions/{quote(evolution['evolution']['id'], safe='')}/{quote(act, safe='')}"
        return self._call("POST", path, {"reason": reason}, {"If-Match": evolution["etag"]})

    # --- resources and schedules --------------------------------------------------------------

    def resources(self, kind: str = "") -> list[Document]:
        """What shapes agents."""
        return self._list("GET", _with("/resources", kind=kind))

    def resource(self, name: str, version: str = "") -> Document:
        """``name`` is KIND/NAME."""
        return self._call("GET", _with(f"/resources/{quote(name)}", version=version))

    def versions(self, name: str) -> list[Document]:
        """Newest first."""
        return self._list("GET", f"/resources/{quote(name)}/versions")

    def pin(self, name: str, reason: str = "") -> Document:
        """Let no evolution touch it."""
        return self._call("POST", f"/resources/{quote(name)}/pin", {"reason": reason})

    def unpin(self, name: str) -> Document:
        """Let evolutions touch it again."""
        return self._call("POST", f"/resources/{quote(name)}/unpin")

    def schedules(self) -> list[Document]:
        """All schedules."""
        return self._list("GET", "/schedules")

    def schedule(self, id: str) -> Document:
        """By its id or its name."""
        return self._call("GET", f"/schedules/{quote(id, safe='')}")

    def add_schedule(
        self,
        cron: str,
        goal: str = "",
        *,
        files: Mapping[str, str | bytes] | None = None,
        **document: Any,
    ) -> Document:
        """As ``add_task``, at the times of a cron line; also with ``timezone`` and ``missed``."""
        return self._call("POST", "/schedules", {**_filed(goal, files, document), "schedule": cron})

    def change_schedule(self, act: str, id: str) -> Document:
        """``pause``, ``resume``, ``run`` or ``remove``."""
        path = f"/schedules/{quote(id, safe='')}"
        return self._call("DELETE", path) if act == "remove" else self._call("POST", f"{path}/{quote(act)}")

    # --- what happens -------------------------------------------------------------------------

    def events(self, after: int | None = None) -> Iterator[Document]:
        """What happens from now on, or after that event; goes on where it was cut off, until the caller ends it."""
        while True:
            try:
                for place, told in self._stream("/events", after):
                    after = int(place)
                    yield told
            except (OSError, HTTPException):
                if after is None:
                    raise
            time.sleep(1.0)

    def steps(self, run: str) -> Iterator[Document]:
        """The steps of a run as they come; the last document is the run."""
        for _, told in self._stream(f"/runs/{quote(run, safe='')}/events", None):
            yield told

    def _stream(self, path: str, after: int | None) -> Iterator[tuple[str, Document]]:
        """The id of each event, and what it tells."""
        connection = self._connect()
        try:
            headers = {} if after is None else {"Last-Event-ID": str(after)}
            connection.request("GET", _PREFIX + path, headers=self._headers() | headers)
            response = self._answer(connection.getresponse())
            fields: dict[str, str] = {}
            while line := response.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    yield fields.get("id", ""), json.loads(fields["data"])
                    fields = {}
        finally:
            connection.close()

    # --- HTTP ---------------------------------------------------------------------------------

    def _pages(self, path: str, limit: int, **query: str) -> Iterator[Document]:
        before: int | None = 0
        while before is not None:
            found = self._call("GET", _with(path, limit=str(limit), before=str(before), **query))
            yield from found["items"]
            before = found["older"]

    def _call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Document:
        found: Document = json.loads(self._answer(self._send(method, path, body, headers)).read())
        return found

    def _list(self, method: str, path: str, body: object = None) -> list[Document]:
        found: list[Document] = json.loads(self._answer(self._send(method, path, body)).read())
        return found

    def _send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        about = {"Content-Type": "application/json"} if data is not None else {}
        if time.monotonic() - self._used_at > _IDLE_S:
            self._connection.close()  # the server closes what is idle, and an act is not to be tried twice
        try:
            self._connection.request(
                method, _PREFIX + path, data, self._headers() | about | dict(headers or {})
            )
            response = self._connection.getresponse()
            self._used_at = time.monotonic()
            return response
        except (OSError, HTTPException):
            self._connection.close()  # half an answer may be left in it
            raise

    def _answer(self, response: HTTPResponse) -> HTTPResponse:
        if response.status < 300:
            return response
        text = response.read().decode("utf-8", "replace")
        try:
            said = json.loads(text)
            kind, detail = said["kind"], said["detail"]
            raise ApiError(response.status, kind, detail, said.get("faults", ()), said.get("type_next", ()))
        except (ValueError, KeyError, TypeError):
            raise ApiError(response.status, "no_api", text[:500] or response.reason) from None

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}

    def _connect(self) -> HTTPConnection:
        kind = HTTPSConnection if self._secure else HTTPConnection
        return kind(self._place, timeout=self._timeout_s)


def _filed(goal: str, files: Mapping[str, str | bytes] | None, document: Mapping[str, Any]) -> dict[str, Any]:
    told = {
        name: it if isinstance(it, str) else {"base64": base64.b64encode(it).decode()}
        for name, it in (files or {}).items()
    }
    return {**({"goal": goal} if goal else {}), "files": told, **document}


def _with(path: str, **query: str) -> str:
    given = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path
