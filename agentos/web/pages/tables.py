"""The tables of the pages as rows of plain values: for CSV and JSON, and for the lists themselves."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from agentos.domain import MUTED_CURSOR, Candidate, Evolution, Run
from agentos.errors import NotFound, UserError
from agentos.ledger.listing import (
    FailureGroup,
    evolution_page,
    failure_group,
    failure_groups,
    failures_by_day,
    odd_cursors,
    run_page,
    task_page,
)
from agentos.plaintext import clean, counted
from agentos.plugins import registry
from agentos.web.context import WebContext
from agentos.web.pages.charts import sparkline
from agentos.web.pages.resources import resource_lines

ROWS_MAX = 1_000  # the newest, of a table that is taken out
# With which a spreadsheet takes a cell for a formula; some also by the wide forms of eastern fonts.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")

Row = dict[str, Any]


def evolution_rows(site: WebContext, found: Sequence[Evolution]) -> list[Row]:
    """A row for each, with the edit that it came to."""
    rows = []
    for item in found:
        edit = site.reader.get(Candidate, item.candidate_id).edit.summary if item.candidate_id else ""
        rows.append({**asdict(item), "resource": item.resource, "edit": edit})
    return rows


def with_names(site: WebContext, text: str) -> str:
    """A reason with tasks called by their names."""

    def named(found: re.Match[str]) -> str:
        try:
            return f"“{site.reader.task(found[0]).name or found[0]}”"
        except NotFound:
            return found[0]

    return re.sub(r"\btask-\w+", named, text)


def run_rows(site: WebContext, found: Sequence[Run]) -> list[Row]:
    """A row for each. Which set its work belongs to stays out, as everywhere."""
    rows: list[Row] = []
    for run in found:
        outcome = run.outcome
        rows.append(
            {
                "id": run.id,
                "task_id": run.task_id,
                "task": site.reader.task(run.task_id).name,
                "attempt": run.attempt,
                "started_at": run.started_at,
                "finished_at": run.finished_at,
                "result": outcome.result.value if outcome else "running",
                "score": outcome.score if outcome else None,
                "reason": outcome.reason if outcome else "",
                "regrades": run.regrades,
                "wall_s": outcome.cost.wall_s if outcome else None,
                "tokens": outcome.cost.tokens if outcome else None,
                "usd": outcome.cost.usd if outcome else None,
                "snapshot": run.snapshot.commit,
            }
        )
    return rows


def _evolutions(site: WebContext) -> list[Row]:
    rows = evolution_rows(site, evolution_page(site.reader, ROWS_MAX).rows)
    return [{name: row[name] for name in COLUMNS["evolutions"]} for row in rows]


def _runs(site: WebContext) -> list[Row]:
    return run_rows(site, run_page(site.reader, ROWS_MAX).rows)


def _tasks(site: WebContext) -> list[Row]:
    return [
        {
            "id": view.task.id,
            "name": view.task.name,
            "state": view.state.value,
            "agent": view.task.agent,
            "created_at": view.task.created_at,
            "schedule": view.task.schedule_id or view.task.schedule or "",
        }
        for view in task_page(site.reader, ROWS_MAX).rows
    ]


def _resources(site: WebContext) -> list[Row]:
    return [
        {
            "resource": line.name,
            "kind": line.kind,
            "status": line.status,
            "version": line.version.number if line.version else "",
            "from": line.version.origin if line.version else "",
            "at": line.version.created_at if line.version else None,
            "reason": line.version.reason if line.version else "",
        }
        for line in resource_lines(site)
    ]


def _failures(site: WebContext) -> list[Row]:
    return [
        {
            "fingerprint": group.fingerprint.id,
            "resource": group.fingerprint.resource,
            "class": group.fingerprint.klass,
            "signature": group.fingerprint.signature,
            "count": group.count,
            "first_at": group.first_at,
            "last_at": group.last_at,
        }
        for group in failure_groups(site.reader, ROWS_MAX)
    ]


COLUMNS: Mapping[str, Sequence[str]] = {
    name: text.split()
    for name, text in {
        "evolutions": "id state resource edit reason created_at ended_at",
        "runs": "id task_id task attempt started_at finished_at result score reason regrades wall_s tokens usd snapshot",
        "tasks": "id name state agent created_at schedule",
        "resources": "resource kind status version from at reason",
        "failures": "fingerprint resource class signature count first_at last_at",
    }.items()
}
TABLES: Mapping[str, Callable[[WebContext], list[Row]]] = {
    "evolutions": _evolutions,
    "runs": _runs,
    "tasks": _tasks,
    "resources": _resources,
    "failures": _failures,
}


def table(site: WebContext, name: str) -> list[Row]:
    """The newest rows of a table. Raises NotFound."""
    if name not in TABLES:
        raise NotFound(f"There is no table {name[:40]!r}; there are {', '.join(TABLES)}.")
    return TABLES[name](site)


def as_json(rows: Sequence[Row]) -> str:
    """A list of objects."""
    return json.dumps(rows, indent=1, default=_plain)


def as_csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """With a heading, also where there is no row. A cell that a spreadsheet would compute is quoted with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in columns])
    return out.getvalue()


def _cell(value: Any) -> str:
    text = "" if value is None else clean(_plain(value))
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _plain(item: Any) -> str:
    return item.isoformat() if isinstance(item, datetime) else str(item)


# --- Failures: runs that failed alike, how often lately, what was tried, and whether one is muted


_DAYS = 30
_TRIED = 5  # evolutions of a failure in the list; its own page has more


@dataclass(frozen=True, slots=True)
class FailureLine:
    """A failure. ``spark``: how often on each of the last days."""

    group: FailureGroup
    spark: Markup
    tried: Sequence[Evolution]
    muted: bool


def failure_lines(site: WebContext, limit: int) -> list[FailureLine]:
    """The one that was seen last first."""
    muted, groups = odd_cursors(site.reader, MUTED_CURSOR), failure_groups(site.reader, limit)
    return [_line(site, group, _TRIED, muted=group.fingerprint.id in muted) for group in groups]


def failure_line(site: WebContext, fingerprint_id: str) -> FailureLine:
    """One of them. Raises NotFound."""
    group = failure_group(site.reader, fingerprint_id)
    return _line(site, group, 50, muted=group.fingerprint.id in odd_cursors(site.reader, MUTED_CURSOR))


def _line(site: WebContext, group: FailureGroup, tried: int, *, muted: bool) -> FailureLine:
    name, today = group.fingerprint.id, datetime.now(UTC)
    days = [f"{today - timedelta(days=back):%Y-%m-%d}" for back in range(_DAYS - 1, -1, -1)]
    counts = failures_by_day(site.reader, name, today - timedelta(days=_DAYS - 1))
    bars = [counts.get(day, 0) for day in days]
    title = f"{counted(sum(bars), 'time')} in the last {_DAYS} days, {bars[-1]} today"
    past = evolution_page(site.reader, tried, fingerprint_id=name).rows
    return FailureLine(group, sparkline(bars, title), past, muted)


# --- Pages of other distributions: they give words and cells, which the template escapes, and no HTML


_ROWS = 500
_CELLS = 20


def installed_page(site: WebContext, request: Request) -> Response:
    """What a plug-in's ``show(reader, query)`` gives: a mapping with "lead", "columns" and "rows", each optional."""
    try:
        plugin = registry.named("pages", request.path_params["name"])
    except UserError as error:
        raise NotFound(str(error)) from None
    page = registry.load(plugin)
    query = dict(request.query_params)

    def shown() -> Mapping[str, Any]:
        told = dict(page.show(site.reader, query))
        rows = [[str(cell) for cell in row][:_CELLS] for row in told.get("rows", ())][:_ROWS]
        columns = [str(column) for column in told.get("columns", ())][:_CELLS]
        title = str(getattr(page, "title", plugin.name))
        return {"title": title, "lead": str(told.get("lead", "")), "columns": columns, "rows": rows}

    return site.page(request, "installed.html", plugin=str(plugin), **registry.call(plugin, shown))
