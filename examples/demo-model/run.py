"""Agents that think, and a loop that finds what each of them lacks: a lesson, a rule, a skill, a tool.

Drives the `agentos` command as a user would. Without MODEL the tasks are done by the rule-following model
server that agentos ships, and the edits are written by `stand_in.py`, a script that says so: no network,
no key. With MODEL=provider/name both are done by that model, through the same commands; with API_BASE=URL too it is
reached at a server of your own, and as such models are slow only a few tasks are done.

    python examples/demo-model/run.py [--home FOLDER] [--strict]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text
from stand_in import StandIn
from tasks import AGENTS, WRONG_LESSON, tasks

from agentos.testing import ModelServer

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "demo"))

from driving import DEADLINE_S, LIVE, STYLE, Agentos, Json, Round, command, submit, watch  # noqa: E402

# The stand-in answers alike each time, so a trial may be served from the record up to where an edit made
# a difference, and every flip counts. A real model is tried afresh in pairs, as shipped (docs/understand/judging.md).
SERVED = '[replay]\nmodels = "replay-then-live"\n'
# Six tasks of evidence are as many as a proposer is shown. With more, the edit that names those shown mends too
# few to be tried any further: the race passes it over, and nobody sees what the hold-out would have said of it.
POLICY = (
    "[judge]\nfresh_tasks = 0\n"  # nobody files new work while it runs
    "[propose]\nbudget_s = 20.0\nmax_candidates = 10\n"
    "[evidence]\nmax_tasks = 6\nmax_guards = 10\nmax_hold_out = 8\n"
)
KEY_ENV = "AGENTOS_DEMO_KEY"
SMALL = {"till": 6, "report": 6}  # tasks by agent, for a server of your own
ASKED = 3  # times that a task of these asks its model, about
PATIENCE_S = 6 * 3600.0  # for a real model


@contextmanager
def daemon(agentos: Agentos, model: str) -> Iterator[None]:
    """A fresh home with a model, the demo's agents, a wrong lesson, and a running daemon."""
    with ExitStack() as stack:
        agentos("init")
        agentos("daemon", "stop")
        policy = POLICY
        if model:
            api_base = os.environ.get("API_BASE", "")
            where = ("--provider", "demo", "--api-base", api_base, "--context", "8192") if api_base else ()
            agentos("model", "add", "demo", "--model", model, *where, "--default")
        else:
            os.environ[KEY_ENV] = "not-needed"
            server = stack.enter_context(ModelServer(policy=StandIn()))
            where = ("--provider", "demo", "--api-base", server.base_url, "--key-env", KEY_ENV)
            agentos("model", "add", "demo", "--model", "openai/scripted", *where, "--default")
            policy += SERVED
        (agentos.home / "policy.toml").write_text(policy)
        furnish(agentos)
        stack.callback(agentos, "daemon", "stop", "--now")  # before the start, which may be interrupted too
        agentos("daemon", "start")
        yield


def furnish(agentos: Agentos) -> None:
    """The agents, and what one of them was taught wrongly."""
    with tempfile.TemporaryDirectory() as folder:
        for name in AGENTS:
            document = Path(folder) / name / "resource.toml"
            document.parent.mkdir()
            document.write_text(f'description = "Does the work of the {name} desk."\n')
            agentos("registry", "edit", f"agent/{name}", "--file", str(document.parent), "--yes")
        lesson = Path(folder) / "memory.md"
        lesson.write_text(WRONG_LESSON)
        edit = ("registry", "edit", "memory/default/memory.md", "--file", str(lesson), "--yes")
        agentos(*edit, "--reason", "somebody remembered it wrongly")


def small(documents: list[Json]) -> list[Json]:
    """The first few tasks of a few agents."""
    left = dict(SMALL)
    chosen = []
    for document in documents:
        if left.get(document["agent"], 0):
            left[document["agent"]] -= 1
            chosen.append(document)
    return chosen


# --- the closing tables -----------------------------------------------------------------------


def by_agent(documents: list[Json], before: Round, after: Round) -> Table:
    """Tasks passed before and after, for each agent."""
    table = Table("agent", "what it lacks", "tasks", "before", "after", title="Tasks", title_justify="left")
    for agent, lack in AGENTS.items():
        names = [item["name"] for item in documents if item["agent"] == agent]
        counts = [sum(each.results[name] == "passed" for name in names) for each in (before, after)]
        style = "green" if counts[1] > counts[0] else "red"
        table.add_row(agent, lack, str(len(names)), str(counts[0]), Text(str(counts[1]), style=style))
    table.add_section()
    table.add_row("all", "", str(len(documents)), str(before.passed), str(after.passed), style="bold")
    return table


def edits(stories: list[Json]) -> Table:
    """Every edit that was tried, with what became of it."""
    table = Table("layer", "edit", "trials", "verdict", "because", title="Edits tried", title_justify="left")
    for story in stories:
        verdicts = {item["candidate_id"]: item for item in story["verdicts"]}
        for candidate in story["candidates"]:
            verdict = verdicts.get(candidate["id"])
            if verdict is None:
                continue
            trials = sum(trial["candidate_id"] == candidate["id"] for trial in story["trials"])
            kept = (
                candidate["id"] == story["evolution"]["candidate_id"] and story["evolution"]["state"] in LIVE
            )
            decision = "promoted" if kept else verdict["decision"]
            style = STYLE.get("promoted" if kept else "rejected", "")
            manifest = candidate["manifest"]
            table.add_row(
                manifest["layer"],
                Text(manifest["edit"]),
                str(trials),
                Text(decision, style=style),
                Text(verdict["reasons"][0]),
            )
        table.add_section()
    return table


def demo(console: Console, folder: Path) -> list[str]:
    """The whole job; one sentence for each thing that the demo should show and did not."""
    began, model = time.monotonic(), os.environ.get("MODEL", "")
    agentos = Agentos(folder / "home")
    documents = small(tasks()) if os.environ.get("API_BASE") else tasks()
    patience_s = PATIENCE_S if model else DEADLINE_S
    with daemon(agentos, model):
        who = model or "the scripted stand-in"
        agents = len({item["agent"] for item in documents})
        console.print(f"{agents} agents and {who}; {len(documents)} free-form tasks follow.")
        if model:
            answer_s = agentos.json("model", "test", "demo")["latency_ms"] / 1000
            least = 2 * len(documents) * ASKED * answer_s / 60
            console.print(
                f"One short answer takes {answer_s:.1f} s: {least:.0f} minutes at least, and evolutions beside."
            )
        given = {"deadline_s": patience_s, "lines": bool(model)}
        first = submit(agentos, documents, folder, console, "tasks, first time", **given)
        watch(agentos, console, leave=True, deadline_s=patience_s)
        second = submit(agentos, documents, folder, console, "the same tasks again", **given)
        evolutions = watch(agentos, console, leave=False, deadline_s=patience_s)
        stories = [agentos.json("evolution", "show", item["id"]) for item in evolutions]
        console.print(by_agent(documents, first, second))
        console.print(edits(stories))
        console.print(
            f"Done in {time.monotonic() - began:.0f} s. The home is {agentos.home}.", soft_wrap=True
        )
    return missing(stories, first, second)


def missing(stories: list[Json], first: Round, second: Round) -> list[str]:
    """What the demo promises and this pass did not show."""
    candidates = {item["id"]: item for story in stories for item in story["candidates"]}
    live = [story["evolution"] for story in stories if story["evolution"]["state"] in LIVE]
    layers = {candidates[item["candidate_id"]]["manifest"]["layer"] for item in live}
    reasons = [
        (candidates[verdict["candidate_id"]]["manifest"]["layer"], " ".join(verdict["reasons"]))
        for story in stories
        for verdict in story["verdicts"]
        if verdict["decision"] != "promote"
    ]
    sentences = {
        f"no {layer} was promoted": layer in layers for layer in ("memory", "prompt", "skill", "tool")
    } | {
        "no prompt was refused by the hold-out": any(
            layer == "prompt" and "hidden tasks" in why for layer, why in reasons
        ),
        "no memory was refused by the control": any(
            layer == "memory" and "without any memory" in why for layer, why in reasons
        ),
        "no more tasks passed than before": second.passed > first.passed,
    }
    return [sentence for sentence, holds in sentences.items() if not holds]


if __name__ == "__main__":
    sys.exit(command("Show the loop on agents that think.", ROOT / ".demo-model", demo, sandboxes=False))
