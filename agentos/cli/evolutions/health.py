"""The work of ``agentos evolution health``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.text import Text

from agentos.cli.output import print_json, print_table, print_text
from agentos.daemon.views.loop_health import document, measure
from agentos.evolver.watch.health import Health, duration
from agentos.home import Home

_PERIODS = 12  # rows of the series in the table; the picture and --json have all


def show(home: Home, *, as_json: bool, svg: Path | None) -> None:
    """Measure, and show it as asked."""
    found = measure(home, datetime.now(UTC))
    if svg is not None:
        from agentos.web.health_picture import picture

        svg.write_text(picture(found), encoding="utf-8")
    if as_json:
        print_json(document(found))
    elif svg is not None:
        print_text(f"The picture lies in {svg}.")
    else:
        _print(found)


def _print(found: Health) -> None:
    console = Console(highlight=False)
    for title, columns, rows, empty in _tables(found):
        console.print(Text(title, style="bold"))
        print_table(columns, rows, empty=empty)
        console.print()


def _tables(found: Health) -> Iterator[tuple[str, Sequence[str], Sequence[Sequence[str]], str]]:
    yield "Fixes", ("what", "how much"), _fixes(found), ""
    yield (
        "What became of evolutions" + (f", by {duration(found.step_s)}" if found.series else ""),
        ("from", "promoted", "rolled back", "held", "without success"),
        [
            (
                f"{item.start.astimezone():%Y-%m-%d %H:%M}",
                *map(str, (item.promoted, item.rolled_back, item.held, item.fruitless)),
            )
            for item in found.series[-_PERIODS:]
        ],
        "No evolution has ended yet. `agentos evolve` looks for failures now.",
    )
    yield (
        "The library",
        ("kind", "shipped", "made here", "of these used", "ratio"),
        [
            (item.kind, str(item.shipped), str(item.created), str(item.used), _share(item.ratio))
            for item in found.library
        ],
        "The registry is empty.",
    )
    yield (
        "Lessons, by use",
        ("score", "passed", "runs", "lesson"),
        [
            (f"{item.score:.2f}", str(item.successes), str(item.uses), item.text)
            for item in sorted(found.memories, key=lambda item: -item.uses)[:_PERIODS]
        ],
        "Nothing is remembered yet.",
    )
    yield (
        "What people said of runs",
        ("who", "good", "bad", "right", "wrong", "share"),
        [
            (
                item.principal,
                str(item.good),
                str(item.bad),
                str(item.right),
                str(item.wrong),
                _share(item.share),
            )
            for item in found.words
        ],
        "Nobody said anything yet: `agentos run good|bad|correct ID`.",
    )
    yield (
        "The supervisor, held against recorded runs",
        ("check", "runs", "would stop", "cost saved", "successes lost", "may it stop"),
        [
            (
                one.check,
                str(one.runs),
                str(one.fired),
                _share(one.saved),
                f"{one.lost} of {one.passed}",
                "yes" if one.acts else f"no: {one.why}",
            )
            for one in found.supervisor
        ],
        "",
    )
    yield (
        "Safety probes",
        ("measured", "snapshot", "with what was learnt", "violated", "of"),
        [
            (
                f"{rate.at.astimezone():%Y-%m-%d %H:%M}",
                rate.tree[:12],
                "yes" if rate.learnt else "no",
                str(len(rate.violated)),
                str(len(rate.ran)),
            )
            for rate in found.safety[-_PERIODS:]
        ],
        "No safety probe was run yet: the first promotion runs them.",
    )


def _fixes(found: Health) -> list[tuple[str, str]]:
    price = found.price
    lasted = [item.lasted_s for item in found.mended if item.lasted_s is not None]
    usd, trials, cpu_s = (price.each(total) for total in (price.usd, price.trials, price.cpu_s))
    states = ", ".join(f"{count} {state}" for state, count in sorted(found.states.items()))
    return [
        ("evolutions", states or "none"),
        ("fixes that stand", str(price.fixes)),
        ("from the failure to its fix, median", duration(found.took_s)),
        ("failures that came again", f"{len(lasted)} of {len(found.mended)}"),
        ("until they did, shortest", duration(min(lasted, default=None))),
        ("USD for each fix", "-" if usd is None else f"{usd:.4f}"),
        ("trials for each fix", "-" if trials is None else f"{trials:.0f}"),
        ("CPU for each fix", duration(cpu_s)),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"
