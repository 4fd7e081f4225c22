"""What an honest evolution brings a small model: passes of shown and of fresh tasks, before it and after.

    python benchmarks/small_model.py --model openai/NAME --api-base http://127.0.0.1:8080/v1 [--seconds S] [--approve]

One agent without tools is asked for dates in sentences, by a prompt that does not say in which form. The shown tasks
fail in the home that evolves; the fresh ones are done before in a home of their own, so that nothing can learn from
them, and after in the one that evolved. Where every task fails nothing guards, so that an edit waits for a person:
``--approve`` is one who says yes to all. Proposer and agent are the same model, as shipped. Run by hand: no model is
shipped.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "demo"))

from driving import Agentos, DemoError, Json, Round, submit, watch

SENTENCES = (
    "The rent is due on {day} this time. When is it due?",
    "Our meeting was moved to {day}. On which date is the meeting?",
    "The parcel will arrive on {day}, says the shop. When will it arrive?",
    "Her passport expires on {day}. When does it expire?",
    "The course begins on {day} at nine. On which date does it begin?",
)
SHOWN, FRESH = 14, 10
WAITS = {"awaiting_consent", "held"}
PROMPT = "You answer questions about short notes. Answer with the date alone, nothing else.\n"
POLICY = "[wait]\nmodels_s = 3600\n"


def dates(count: int, seed: int) -> list[Json]:
    """Tasks with a date in words, whose answer is looked for as YYYY-MM-DD."""
    dice = random.Random(seed)
    found = []
    for number in range(count):
        day = date(2026, 1, 1) + timedelta(days=dice.randrange(700))
        said = f"{day.day} {day:%B %Y}" if dice.random() < 0.5 else f"{day:%B} {day.day}, {day.year}"
        found.append(
            {
                "name": f"date {seed}-{number}",
                "goal": SENTENCES[number % len(SENTENCES)].format(day=said),
                "agent": "dates",
                "checks": [{"regex": {"pattern": rf"\b{day.isoformat()}\b"}}],
            }
        )
    return found


def home(folder: Path, options: argparse.Namespace) -> Agentos:
    """A fresh one with the model and the agent, whose daemon runs and evolves when it is told to."""
    agentos = Agentos(folder / "home")
    folder.mkdir()
    agentos("init")
    agentos("daemon", "stop")
    where = ("--provider", "own", "--api-base", options.api_base, "--context", "8192")
    agentos("model", "add", "own", "--model", options.model, *where, "--default")
    (agentos.home / "policy.toml").write_text(POLICY)
    settings = agentos.home / "agentos.toml"
    settings.write_text('evolve = "manual"\n' + settings.read_text())
    for kind, text in (("prompt", ""), ("agent", 'prompt = "dates"\ntools = []\nskills = []\nasks = []\n')):
        source = folder / kind
        source.mkdir()
        (source / "resource.toml").write_text('description = "Finds dates in notes"\n' + text)
        if kind == "prompt":
            (source / "prompt.md").write_text(PROMPT)
        agentos("registry", "edit", f"{kind}/dates", "--file", str(source), "--yes")
    agentos("daemon", "start")
    return agentos


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--api-base", required=True)
    parser.add_argument("--tasks", type=int, nargs=2, default=(SHOWN, FRESH), help="shown ones, fresh ones")
    parser.add_argument("--seconds", type=float, default=3600.0, help="for all of it")
    parser.add_argument(
        "--approve", action="store_true", help="consent to every edit that waits for a person"
    )
    options = parser.parse_args()
    console = Console(highlight=False, width=140)
    until = time.monotonic() + options.seconds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        still = home(folder / "still", options)
        stack.callback(still, "daemon", "stop", "--now")

        def work(agentos: Agentos, what: str, tasks: list[Json]) -> Round:
            left_s = until - time.monotonic()
            return submit(agentos, tasks, folder, console, what, deadline_s=left_s, lines=True)

        shown, fresh = dates(options.tasks[0], 1), dates(options.tasks[1], 2)
        fresh_before = work(still, "fresh, before", fresh)
        evolving = home(folder / "evolving", options)
        stack.callback(evolving, "daemon", "stop", "--now")
        shown_before = work(evolving, "shown, before", shown)
        began = time.monotonic()
        evolving("evolve", "--no-wait")  # once all have failed, so that how fast they did decides nothing
        try:
            evolutions = watch(evolving, console, leave=True, deadline_s=until - time.monotonic())
        except DemoError as error:
            console.print(str(error))
            evolutions = evolving.json("evolution", "list")
        took_s = time.monotonic() - began
        for item in evolutions:
            console.print(evolving("evolution", "show", item["id"]))
        waiting = [item["id"] for item in evolutions if item["state"] in WAITS]
        if options.approve and waiting:
            for evolution_id in waiting:
                console.print(evolving("evolution", "approve", evolution_id, "--yes"))
            evolutions = watch(evolving, console, leave=True, deadline_s=until - time.monotonic())
        fresh_after = work(evolving, "fresh, after", fresh)
        shown_after = work(evolving, "shown, after", shown)
        console.print(evolving("model", "list"))
    for what, before, after, count in (
        ("shown", shown_before, shown_after, len(shown)),
        ("fresh", fresh_before, fresh_after, len(fresh)),
    ):
        print(
            f"| dates, {what} tasks passed | {after.passed} of {count} | {before.passed} before | {options.model} |"
        )
    states = ", ".join(item["state"] for item in evolutions) or "none was opened"
    print(f"| its evolutions | {states} |  | {took_s:.0f} s |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
