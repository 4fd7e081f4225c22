"""A harness mends itself: a fault that no prompt, skill or tool can mend, found, repaired, watched, taken back.

Drives the `agentos` command as a user would. Nothing here knows where the fault lies or how to mend it;
README.md does. No model, no network.

    python examples/source-evolution/run.py [--home FOLDER] [--sandbox NAME] [--strict]
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from tasks import Task, daily, next_day, quotes, remark

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "demo"))

from driving import STYLE, Agentos, Json, command, submit, wait_for  # noqa: E402

# The search ends with what it finds; in containers each try takes a second or more.
# No task varies, so each is tried once on each side.
# The guards are few, so that old work can slip out of them: that is what the last act is about. It comes back
# while the second repair is still on probation, after four runs of other work.
POLICY = """\
[judge]
fresh_tasks = 0  # nobody files new work while it runs
[propose]
budget_s = 600.0
max_candidates = 1
[replay]
repeats = 1
[evidence]
max_guards = 6
max_hold_out = 3
[probation]
runs = 8
"""
RESOURCE = "harness/desk"
WAITS, PROMOTED, PROBATION, ROLLED_BACK = "awaiting_consent", "promoted", "probation", "rolled_back"
ENDS = {
    "rolled_back",
    "rejected",
    "no_improvement",
    "not_reproducible",
    "cannot_fix",
    "held",
    "circuit_broken",
    "cancelled",
}


@contextmanager
def daemon(agentos: Agentos, folder: Path) -> Iterator[None]:
    """A fresh home with the agent `desk` and its harness, and a running daemon that serves them."""
    agentos("init")
    agentos("daemon", "stop")
    (agentos.home / "policy.toml").write_text(POLICY)
    harness = folder / "harness"
    shutil.copytree(ROOT / "registry" / "harness" / "default", harness, ignore=shutil.ignore_patterns("__*"))
    # files of the same name replace the copied ones
    shutil.copytree(HERE / "harness", harness, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__*"))
    agentos("registry", "edit", RESOURCE, "--file", str(harness), "--yes")
    agentos("registry", "edit", "agent/desk", "--file", str(HERE / "agent"), "--yes")
    agentos("daemon", "start")
    try:
        wait_for("the new harness to pass its probe", lambda: _served(agentos), every_s=0.3)
        yield
    finally:
        agentos("daemon", "stop", "--now")


def _served(agentos: Agentos) -> bool:
    """Whether new runs get what was edited: the registry is plain git, so anybody may look."""
    command = ["git", "--git-dir", str(agentos.home / "registry.git"), "rev-parse", "main", "last-good"]
    main, good = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return main == good


# --- the acts ---------------------------------------------------------------------------------


class Play:
    """One pass over the example; ``lacking`` collects what should have been seen and was not."""

    def __init__(self, agentos: Agentos, folder: Path, console: Console) -> None:
        self.agentos, self.folder, self.console = agentos, folder, console
        self.lacking: list[str] = []

    def submit(self, tasks: list[Task], title: str) -> dict[str, str]:
        """Add the tasks and wait for them: result by name."""
        results = submit(self.agentos, tasks, self.folder, self.console, title).results
        failed = [name for name, result in results.items() if result != "passed"]
        self.console.print(f"  {len(results) - len(failed)} of {len(results)} pass")
        return results

    def expect(self, what: str, *, holds: bool) -> None:
        """Note it where it does not hold."""
        if not holds:
            self.lacking.append(what)

    def wait_for(self, *states: str, after: str = "") -> Json | None:
        """The evolution of the harness, once it is in one of the states; None if it ended otherwise.

        With ``after``, one that was opened later than that.
        """
        found: list[Json] = []

        def there() -> bool:
            known = [item for item in self.agentos.json("evolution", "list") if item["resource"] == RESOURCE]
            found[:] = [item for item in known if item["id"] != after]
            return any(item["state"] in {*states, *ENDS} for item in found)

        wait_for(f"an evolution of {RESOURCE} to be {' or '.join(states)}", there)
        self.console.print(evolutions(found))
        return next((item for item in found if item["state"] in states), None)

    def approve(self, evolution: Json, *, after: str = "") -> Json | None:
        """Show what waits for a person, and consent."""
        story = self.agentos.json("evolution", "show", evolution["id"])
        self.console.print(Text(f"\n{story['evolution']['diagnosis']['why']}."))
        self.console.print(Syntax(self.agentos("evolution", "diff", evolution["id"]), "diff"))
        self.console.print(trials(story))
        self.agentos("evolution", "approve", evolution["id"], "--yes")
        began = time.monotonic()
        found = self.wait_for(PROBATION, PROMOTED, after=after)
        self.console.print(f"  {time.monotonic() - began:.1f} s from consent to the end of the probe")
        return found


def play(console: Console, folder: Path) -> list[str]:
    """The whole example; one sentence for each thing that it should show and did not."""
    began = time.monotonic()
    agentos = Agentos(folder / "home")
    with daemon(agentos, folder):
        acts = Play(agentos, folder, console)
        first = repaired(acts)
        second = overdone(acts, first) if first else None
        if second:
            taken_back(acts, second)
        places = sorted({f"{run['sandbox']} ({run['level']})" for run in agentos.json("run", "list")})
        console.print(f"\nLive runs in: {', '.join(places)}. Done in {time.monotonic() - began:.0f} s.")
    command = f"AGENTOS_HOME={agentos.home} {Path(sys.executable).parent / 'agentos'}"
    console.print(f"What to look at now:\n  {command} evolution show ID", soft_wrap=True)
    console.print(f"  {command} registry log {RESOURCE}", soft_wrap=True)
    return acts.lacking


def repaired(acts: Play) -> str:
    """Act one: from failing runs to a repair on probation, and through it. The evolution's id, "" if none."""
    acts.console.rule("1  Answers in the wrong order")
    tasks = daily()
    acts.expect(
        "the old remark failed at first",
        holds=acts.submit([remark(acts.folder)], "an old kind of work")["the remark on March"] == "passed",
    )
    before = acts.submit(tasks, "the work of a day")
    evolution = acts.wait_for(WAITS)
    if evolution is None or acts.approve(evolution) is None:
        acts.lacking.append("no repair of the harness was found for the first fault")
        return ""
    after = acts.submit([*tasks, *next_day()], "the same work again, and the next day's")
    acts.expect("the first fault was not there", holds=len(set(before.values())) > 1)
    acts.expect("the repair did not mend every task", holds=set(after.values()) == {"passed"})
    settled = acts.wait_for(PROMOTED)
    acts.expect("the first repair did not come through its probation", holds=settled is not None)
    return str(evolution["id"])


def overdone(acts: Play, first: str) -> str:
    """Act two: another fault; what mends it passes every trial there is. The evolution's id, "" if none."""
    acts.console.rule("2  Quotes that lose their blanks")
    before = acts.submit(quotes(), "quotes, to the letter")
    evolution = acts.wait_for(WAITS, after=first)
    if evolution is None or acts.approve(evolution, after=first) is None:
        acts.lacking.append("no repair of the harness was found for the second fault")
        return ""
    after = acts.submit(quotes(), "the same quotes again")
    acts.expect("the second fault was not there", holds="passed" not in before.values())
    acts.expect("the second repair did not mend the quotes", holds=set(after.values()) == {"passed"})
    return str(evolution["id"])


def taken_back(acts: Play, second: str) -> None:
    """Act three: the old kind of work comes back, fails, and probation undoes what broke it."""
    acts.console.rule("3  What no trial had asked for")
    task = remark(acts.folder)
    broken = acts.submit([task], "the old kind of work again")
    acts.expect("the second repair broke nothing", holds="passed" not in broken.values())

    def undone() -> bool:
        return bool(acts.agentos.json("evolution", "show", second)["evolution"]["state"] == ROLLED_BACK)

    wait_for("probation to take the second repair back", undone)
    story = acts.agentos.json("evolution", "show", second)["evolution"]
    acts.console.print(Text(f"{story['id']}: {story['reason']}", style="yellow"))
    again = acts.submit([task, *daily()[-2:]], "the old work, and what act one mended")
    acts.expect("after the roll-back something fails", holds=set(again.values()) == {"passed"})


# --- what is shown ----------------------------------------------------------------------------


def evolutions(found: list[Json]) -> Table:
    """One line an evolution."""
    table = Table("evolution", "state", "edit, or why there is none", box=None, header_style="bold")
    for item in found:
        state = Text(item["state"], style=STYLE.get(item["state"], "cyan"))
        table.add_row(item["id"], state, Text(item["edit"] or item["reason"]))
    return table


def trials(story: Json) -> Table:
    """What was measured on both sides, by set of tasks."""
    table = Table("set", "tasks", "base passes", "candidate passes", "in", box=None, header_style="bold")
    for name in ("evidence", "guard", "hold-out"):
        of_set = [trial for trial in story["trials"] if trial["set"] == name]
        if not of_set:
            continue
        arms = [
            sum(trial["outcome"]["result"] == "passed" for trial in of_set if trial["arm"] == arm)
            for arm in ("base", "candidate")
        ]
        runs = len(of_set) // 2
        places = ", ".join(sorted({trial["sandbox"] for trial in of_set}))
        tasks = len({trial["task_id"] for trial in of_set})
        table.add_row(name, str(tasks), *(f"{passed} of {runs} trials" for passed in arms), places)
    return table


if __name__ == "__main__":
    sys.exit(command("Show how a harness mends itself at source level.", ROOT / ".demo-source", play))
