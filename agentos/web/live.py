"""Tells open pages that what they show has changed: server-sent events, which resume where they were cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool

from agentos.errors import AgentOSError
from agentos.ledger.listing import data_version, last_step
from agentos.web.context import WebContext

EVERY_S = 1.0  # at most one change a second is told
_ALIVE_EVERY = 20  # rounds without a change, after which a comment keeps the connection


def page_version(site: WebContext, path: str) -> str:
    """Another text after what the page at ``path`` shows has changed."""
    parts = path.strip("/").split("/")
    try:
        if parts[0] == "runs" and len(parts) == 2:
            run = site.reader.run(parts[1])
            return f"{last_step(site.reader, run.id)}.{run.outcome.result.value if run.outcome else ''}"
        return ".".join(map(str, data_version(site.reader)))
    except AgentOSError:
        return "unknown"


async def changes(
    site: WebContext, path: str, since: str, is_ending: Callable[[], bool]
) -> AsyncIterator[str]:
    """An event for each change of the page after version ``since``, until the server ends."""
    yield "retry: 2000\n\n"
    rounds = 0
    while not is_ending():
        now = await run_in_threadpool(page_version, site, path)
        rounds += 1
        if now != since:
            since, rounds = now, 0
            yield f"id: {now}\ndata: changed\n\n"
        elif rounds >= _ALIVE_EVERY:
            rounds = 0
            yield ": \n\n"
        await asyncio.sleep(EVERY_S)
