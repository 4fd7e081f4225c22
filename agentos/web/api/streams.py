"""What is followed while it happens: the audit log and the steps of a run, as server-sent events that can be resumed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import PurePosixPath
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from agentos.daemon.views.json_views import without_share
from agentos.domain import Run, Step
from agentos.errors import NotFound
from agentos.ledger.blobs import BlobStore
from agentos.ledger.reading import Reader
from agentos.plaintext import json_text
from agentos.web.api.operations import ApiHome
from agentos.web.api.problems import ApiRefusal
from agentos.web.api.tokens import Token, still_stands

EVERY_S = 0.5
ALIVE_EVERY = 40  # looks without news, after which a comment keeps the connection
OPEN_MAX = 64  # streams at a time
_AT_ONCE = 500


class Streams:
    """Serves them; at most ``OPEN_MAX`` at a time, until the server or the token ends."""

    def __init__(self, site: ApiHome, is_ending: Callable[[], bool]) -> None:
        self._site, self._is_ending = site, is_ending
        self._open = 0

    async def events(self, request: Request) -> Response:
        """What happens in this home, in the order of the audit log; from now on, or after ``Last-Event-ID``."""
        reader = self._site.reader
        given = request.headers.get("last-event-id") or request.query_params.get("after", "")
        after = _place(given) if given else (await run_in_threadpool(reader.head)).count
        return self._stream(self._entries(reader, after, request.scope["token"]))

    def _is_over(self, token: Token) -> bool:
        return self._is_ending() or not still_stands(self._site.home, token)

    async def _entries(self, reader: Reader, after: int, token: Token) -> AsyncIterator[str]:
        quiet = 0
        while not self._is_over(token):
            found = await run_in_threadpool(reader.entries_after, after, _AT_ONCE)
            for entry in found:
                after = entry.seq
                told = {"seq": entry.seq, "at": entry.at, "event": entry.event, "subject": entry.subject}
                yield f"id: {entry.seq}\nevent: {entry.event}\ndata: {json_text(told)}\n\n"
            quiet = 0 if found else quiet + 1
            if quiet >= ALIVE_EVERY:
                quiet = 0
                yield ": \n\n"
            if len(found) < _AT_ONCE:
                await asyncio.sleep(EVERY_S)

    async def steps(self, request: Request) -> Response:
        """The steps of a run as they come, then the run; after that the stream ends."""
        reader = self._site.reader
        run_id = await run_in_threadpool(reader.resolve, "run", request.path_params["id"])
        given = request.headers.get("last-event-id", "")
        after = _place(given) if given else -1
        return self._stream(self._steps(reader, run_id, after, request.scope["token"]))

    async def _steps(self, reader: Reader, run_id: str, after: int, token: Token) -> AsyncIterator[str]:
        quiet = 0
        while not self._is_over(token):
            run, steps = await run_in_threadpool(_look, reader, run_id, after)
            for step in steps:
                after = step.index
                yield f"id: {step.index}\nevent: step\ndata: {json_text(step)}\n\n"
            if run.outcome is not None:
                yield f"event: run\ndata: {json_text(without_share(run))}\n\n"
                return
            quiet = 0 if steps else quiet + 1
            if quiet >= ALIVE_EVERY:
                quiet = 0
                yield ": \n\n"
            await asyncio.sleep(EVERY_S)

    def _stream(self, events: AsyncIterator[str]) -> Response:
        if self._open >= OPEN_MAX:
            raise ApiRefusal(
                429, "too_many_streams", f"{OPEN_MAX} streams are open already.", {"Retry-After": "5"}
            )

        async def counted() -> AsyncIterator[str]:
            self._open += 1
            try:
                yield "retry: 2000\n\n"
                async for event in events:
                    yield event
            finally:
                self._open -= 1

        return StreamingResponse(counted(), media_type="text/event-stream")

    async def file(self, request: Request) -> Response:
        """A file that a run left, by its place in the list: no path comes from the address."""
        return await run_in_threadpool(self._file, request)

    def _file(self, request: Request) -> Response:
        reader = self._site.reader
        run = reader.run(reader.resolve("run", request.path_params["id"]))
        number = request.path_params["number"]
        if not 0 <= number < len(run.outputs):
            raise NotFound(f"{run.id} left {len(run.outputs)} files, counted from 0.")
        file = run.outputs[number]
        name = quote(PurePosixPath(file.path).name, safe="")
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        content = BlobStore(self._site.home.blobs).get(file.sha256)
        return Response(content, media_type="application/octet-stream", headers=headers)


def _look(reader: Reader, run_id: str, after: int) -> tuple[Run, list[Step]]:
    """The run before its steps: so that none that came before its end is left out."""
    run = reader.run(run_id)
    return run, list(reader.steps(run_id, after))


def _place(text: str) -> int:
    if not text.isdecimal() or len(text) > 15:
        raise ApiRefusal(400, "bad_place", "`Last-Event-ID` is the id of an event of this stream, a number.")
    return int(text)
