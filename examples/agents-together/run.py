"""Agents together, with a fault planted in a worker's tool: it is found below the planner, mended, and the work done again.

    python examples/agents-together/run.py [--home FOLDER] [--strict]

No model. The planner's runs fail because the worker's do; the evolution names the worker and its tool, the search mends
the tool, and the edit has to pass on whole trees of runs. A person is asked then, because guards ran the tool only below the
planner, where nobody sees how far into it; here the script says yes. With --strict the exit code is 1 when something that is
promised here did not happen.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from rich.console import Console

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "demo"))

from driving import LIVE, Agentos, Json, command, submit, watch  # noqa: E402

PARTS = (
    "tool/sum-amounts",
    "tool/check-totals",
    "harness/planner",
    "harness/worker",
    "harness/checker",
    "agent/worker",
    "agent/checker",
    "agent/planner",
)
RIGHT, WRONG = 'float(line.replace(",", ""))', "float(line)"  # it forgets that 1,200.50 has a comma
PLAIN = [
    ["12.00", "3.50"],
    ["7.25", "0.75"],
    ["80.00", "-5.25"],
    ["2.00", "-1.00"],
    ["9.10", "0.90"],
    ["5.00", "5.00"],
]
COMMAS = [["1,200.50", "19.50"], ["2,000.00", "0.75"], ["3,100.00", "-100.00"]]


def play(console: Console, folder: Path) -> list[str]:
    """Make the home, do the work, and watch. Gives a sentence for each thing that it did not show."""
    agentos = Agentos(folder / "home")
    agentos("init")
    # What nothing within reach mends is given up sooner. Each trial is a tree of five runs: a fall by a quarter is
    # excluded in a third of the pairs that a fall by a tenth takes.
    (agentos.home / "policy.toml").write_text(
        "[propose]\nbudget_s = 10.0\nmax_candidates = 2\n[replay]\nrepeats = 1\n[judge]\nmargin = 0.25\n"
    )
    for part in PARTS:
        agentos("registry", "edit", part, "--file", str(planted(folder, part)), "--yes")
    agentos("daemon", "start")
    try:
        documents = [ledger(folder, number, amounts) for number, amounts in enumerate([*PLAIN, *COMMAS])]
        first = submit(agentos, documents, folder, console, "Ledgers, with a faulty worker")
        consent(console, agentos, watch(agentos, console, leave=True))
        evolutions = watch(agentos, console, leave=True)
        again = submit(agentos, documents, folder, console, "The same ledgers again")
        return told(console, agentos, evolutions, (first.passed, again.passed))
    finally:
        agentos("daemon", "stop", "--now")


def planted(folder: Path, part: str) -> Path:
    """The part as it ships, or a copy with the fault in it."""
    if part != "tool/sum-amounts":
        return HERE / part
    copy = folder / part
    copy.mkdir(parents=True)
    for file in (HERE / part).iterdir():
        if file.is_file():
            text = file.read_text()
            if file.name == "tool.py" and RIGHT not in text:
                raise SystemExit(f"{file} is not as this script expects it")
            (copy / file.name).write_text(text.replace(RIGHT, WRONG))
    return copy


def ledger(folder: Path, number: int, amounts: list[str]) -> Json:
    """A ledger of one region as a file, and the task to add it up."""
    name = folder / f"sales-{number}.csv"
    name.write_text("region,amount\n" + "".join(f'north,"{amount}"\n' for amount in amounts))
    document = yaml.safe_load((HERE / "task.yaml").read_text())
    total = round(sum(float(amount.replace(",", "")) for amount in amounts), 2)
    return document | {
        "name": f"ledger {number}",
        "inputs": [str(name)],
        "goal": f"Add up the sales in {name.name} by region.",
        "checks": [{"equals": {"value": {"north": total}}}],
    }


def consent(console: Console, agentos: Agentos, evolutions: list[Json]) -> None:
    """Say yes to what is asked about the worker's tool, as a person would."""
    for one in evolutions:
        if one["state"] == "awaiting_consent" and one["resource"] == "tool/sum-amounts":
            console.print(f"A person is asked: {one['reason']}")
            console.print(agentos("evolution", "approve", one["id"], "--yes"))


def told(console: Console, agentos: Agentos, evolutions: list[Json], passed: tuple[int, int]) -> list[str]:
    """What came of it, as the commands say it."""
    lacking = []
    for one in evolutions:
        console.print(agentos("evolution", "show", one["id"]))
    whole = len(PLAIN) + len(COMMAS)
    console.print(f"{passed[0]} of {whole} ledgers were right before, {passed[1]} after")
    mended = [one for one in evolutions if one["state"] in LIVE and one["resource"] == "tool/sum-amounts"]
    if not mended:
        lacking.append("the worker's tool is mended and promoted")
    elif "agent/worker" not in agentos("evolution", "show", mended[0]["id"]):
        lacking.append("the evolution names the worker")
    if passed != (len(PLAIN), whole):
        lacking.append(
            f"only ledgers with commas fail, and none does after ({passed[0]} and {passed[1]} of {whole})"
        )
    return lacking


if __name__ == "__main__":
    sys.exit(
        command(
            str(__doc__).partition("\n")[0], HERE.parent.parent / ".agents-together", play, sandboxes=False
        )
    )
