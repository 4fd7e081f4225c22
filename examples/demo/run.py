"""The main job on real input: tasks fail, causes are found, repaired, replayed, promoted, reverted.

Drives the `agentos` command as a user would. Nothing here knows which tools are wrong or how to mend
them; examples/demo/README.md does.

    python examples/demo/run.py [--home FOLDER] [--strict]

The home stays where it is afterwards, so that one can look around; the next demo begins afresh.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import unified_diff
from functools import partial
from pathlib import Path

import yaml
from driving import LIVE, STYLE, Agentos, Json, Round, command, submit, wait_for, watch
from make_tasks import write_tasks
from rich.console import Console
from rich.table import Table
from rich.text import Text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKILLS = HERE / "skills"

# The demo's searches are over small files: less than the default will do, also on a machine that is busy. And nobody
# files new work while it runs: an edit waits here for none, as it would by the shipped policy for ten tasks.
POLICY = """\
[judge]
fresh_tasks = 0
[propose]
budget_s = 10.0
max_candidates = 3
"""


# --- the steps --------------------------------------------------------------------------------


@contextmanager
def daemon(agentos: Agentos) -> Iterator[None]:
    """A fresh home with a running daemon."""
    agentos("init")
    (agentos.home / "policy.toml").write_text(POLICY)
    agentos("daemon", "start")
    try:
        yield
    finally:
        agentos("daemon", "stop", "--now")


def drop_skills(agentos: Agentos) -> list[str]:
    """Copy the demo's skills into the watched folder and wait until all are in the registry."""
    names = sorted(path.name for path in SKILLS.iterdir())
    for name in names:
        shutil.copytree(SKILLS / name, agentos.home / "skills" / name, ignore=shutil.ignore_patterns("__*"))

    def arrived() -> bool:
        # The registry is plain git: anybody may look.
        command = [
            "git",
            "--git-dir",
            str(agentos.home / "registry.git"),
            "ls-tree",
            "--name-only",
            "main:skill",
        ]
        known = subprocess.run(command, capture_output=True, text=True).stdout.split()
        return set(names) <= set(known)

    wait_for("the skills to be taken into the registry", arrived)
    return names


# --- the closing tables -----------------------------------------------------------------------


def diff_of(story: Json, evolution: Json) -> Text:
    """The changed lines of the promoted candidate."""
    chosen = next(item for item in story["candidates"] if item["id"] == evolution["candidate_id"])
    text = Text()
    for path, new in chosen["edit"]["files"].items():
        old = (SKILLS.parent / "skills" / Path(path).relative_to("skill")).read_text()
        for line in unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""):
            if line[0] in "+-" and line[:3] not in ("+++", "---"):
                text.append(f"{line[0]} {line[1:].strip()}\n", style="green" if line[0] == "+" else "red")
    text.rstrip()
    return text


def by_skill(documents: list[Json], before: Round, after: Round) -> Table:
    """Tasks passed before and after, for each skill."""
    table = Table("skill", "tasks", "passed before", "passed after", title="Tasks", title_justify="left")
    skills = list(dict.fromkeys(document["call"]["tool"].split("/")[0] for document in documents))
    for skill in skills:
        names = [item["name"] for item in documents if item["call"]["tool"].startswith(skill + "/")]
        counts = [sum(each.results[name] == "passed" for name in names) for each in (before, after)]
        style = "green" if counts[1] > counts[0] else "" if counts[1] == len(names) else "red"
        table.add_row(skill, str(len(names)), str(counts[0]), Text(str(counts[1]), style=style))
    table.add_section()
    table.add_row("all", str(len(documents)), str(before.passed), str(after.passed), style="bold")
    return table


def outcomes(evolutions: list[Json], stories: dict[str, Json]) -> Iterator[Table]:
    """What was promoted, and what was not and why."""
    promoted = Table("evolution", "resource", "edit", title="Promoted", title_justify="left", show_lines=True)
    other = Table(
        "evolution", "resource", "end", "why", title="Not repaired", title_justify="left", show_lines=True
    )
    for item in evolutions:
        if item["state"] in LIVE:
            promoted.add_row(item["id"], item["resource"], diff_of(stories[item["id"]], item))
        else:
            state = Text(item["state"], style=STYLE.get(item["state"], ""))
            other.add_row(item["id"], item["resource"], state, Text(item["reason"]))
    yield promoted
    yield other


def refusals(stories: dict[str, Json], names: dict[str, str]) -> Table:
    """Edits that made failing tasks pass and were refused all the same."""
    table = Table(
        "resource", "tempting edit", "refused because", title="Refused repairs", title_justify="left"
    )
    for story in stories.values():
        edits = {each["id"]: each["edit"]["summary"] for each in story["candidates"]}
        for verdict in story["verdicts"]:
            if verdict["decision"] == "reject":
                why = "; ".join(verdict["reasons"])
                for id, name in names.items():
                    why = why.replace(id, f"“{name}”")
                table.add_row(
                    story["evolution"]["diagnosis"]["resource"], edits[verdict["candidate_id"]], Text(why)
                )
    return table


def evidence_of(story: Json, *rounds: Round) -> list[str]:
    """Names of the tasks that an evolution rests on."""
    names = {id: name for each in rounds for id, name in each.names.items()}
    return [names[id] for id in story["evidence"]["task_ids"]]


def revert_one(
    agentos: Agentos, story: Json, rounds: list[Round], run: Callable[[list[str]], Round]
) -> Table:
    """Take a promotion back and run its tasks again: how they ended at first, promoted, and now."""
    names = evidence_of(story, *rounds)
    agentos("evolution", "revert", story["evolution"]["id"], "--yes", "--reason", "shown in the demo")
    rounds.append(run(names))
    resource = story["evolution"]["diagnosis"]["resource"]
    table = Table(
        "task", "at first", "promoted", "reverted", title=f"Reverted: {resource}", title_justify="left"
    )
    for name in names:
        table.add_row(Text(name), *(each.results[name] for each in rounds))
    return table


def demo(console: Console, folder: Path) -> list[str]:
    """The whole job; one sentence for each thing that the demo should show and did not."""
    began = time.monotonic()
    agentos = Agentos(folder / "home")
    files = write_tasks(folder / "tasks")
    documents = [item for path in files for item in yaml.safe_load(path.read_text())]
    with daemon(agentos):
        names = drop_skills(agentos)
        console.print(
            f"{len(names)} skills are in the registry; {len(documents)} tasks over real files follow."
        )
        first = submit(agentos, documents, folder, console, "tasks, first time")
        evolutions = watch(agentos, console, leave=True)
        second = submit(agentos, documents, folder, console, "the same tasks again")
        evolutions = watch(agentos, console, leave=False)
        stories = {item["id"]: agentos.json("evolution", "show", item["id"]) for item in evolutions}
        console.print(by_skill(documents, first, second))
        places = sorted({f"{run['sandbox']} ({run['level']})" for run in agentos.json("run", "list")})
        console.print(f"Sandbox: {', '.join(places)}")
        for table in outcomes(evolutions, stories):
            console.print(table)
        console.print(refusals(stories, first.names))
        promoted = [item["id"] for item in evolutions if item["state"] in LIVE]
        rounds = [first, second]
        for id in reversed(promoted):
            if all(second.results[name] == "passed" for name in evidence_of(stories[id], first, second)):
                again = partial(run_again, agentos, documents, folder, console)
                console.print(revert_one(agentos, stories[id], rounds, again))
                break
    console.print(f"Done in {time.monotonic() - began:.0f} s. What to look at now:")
    example = promoted[0] if promoted else "ID"
    command = f"AGENTOS_HOME={agentos.home} {Path(sys.executable).parent / 'agentos'}"
    for verb in ("show", "diff", "revert"):
        console.print(f"  {command} evolution {verb} {example}", soft_wrap=True)
    console.print(f"  {command} web --open", soft_wrap=True)
    return missing(evolutions, stories, rounds)


def run_again(
    agentos: Agentos, documents: list[Json], folder: Path, console: Console, names: list[str]
) -> Round:
    """Submit the tasks with these names once more."""
    chosen = [item for item in documents if item["name"] in names]
    return submit(agentos, chosen, folder, console, "the tasks of the reverted one")


def missing(evolutions: list[Json], stories: dict[str, Json], rounds: list[Round]) -> list[str]:
    """What the demo promises and this pass did not show (the outcome depends on the tools)."""
    first, *_, last = rounds
    verdicts = [verdict for story in stories.values() for verdict in story["verdicts"]]
    sentences = {
        "fewer than 4 evolutions were promoted": sum(item["state"] in LIVE for item in evolutions) >= 4,
        "no fault ended as cannot_fix": any(item["state"] == "cannot_fix" for item in evolutions),
        "no repair was refused by guards or hold-out": any(verdict["broken"] for verdict in verdicts),
        "no reverted promotion's tasks failed as at first": len(rounds) == 3
        and all(first.results[name] == result for name, result in last.results.items()),
    }
    return [sentence for sentence, holds in sentences.items() if not holds]


if __name__ == "__main__":
    sys.exit(command("Show the whole loop on real files.", ROOT / ".demo", demo))
