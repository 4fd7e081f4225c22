"""Edits of what is no tool (prompts, memories, skills, agents, environments, rules, the harness), right and bad, through the whole loop.

    python benchmarks/bench_layers.py [--only SCENARIO[/EDIT],...] [--part K/N] [--live] [--alone] [--json FILE]

Each scenario of `benchmarks/data/layers/README.md` gets a fresh home with a daemon, and an agent whose model is the rule-following
server that ships, asked over HTTP: it does what prompts, memories, skills and tools tell it, and with ``--live`` slips now and then. The same server, asked
for an edit, hands in just the labelled one, in the layer that it is of, and none elsewhere; where the proposer `model` has no such
layer a plug-in hands it in. What is promoted has to do fresh work that was never shown. With ``--alone`` nobody hands in anything: what do
the proposers mend that ask no model? A run with ``--json`` goes on where the file ends.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import random
import re
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench_guards import ended
from bench_tools import LIVE, QUIET_S, Agentos, Stuck, settle, work_off

from agentos.domain import Candidate, Evolution, Verdict
from agentos.ledger.reading import Reader
from agentos.testing import ModelServer, Rules, say
from agentos.testing.modelserver.replies import ServerReply

Json = dict[str, Any]
DATA = Path(__file__).resolve().parent / "data" / "layers"
HARNESS = Path(__file__).resolve().parent.parent / "registry" / "harness" / "default"
SHOWN = {True: 8, False: 7}  # tasks by whether they fail
FRESH = 6  # of each kind
NOISE = 0.03  # of the agent's answers, with --live
# The same model, asked the same, answers the same: a trial may be served from the record up to where an edit made
# a difference, and every flip counts. With --live each task is tried afresh in pairs, as shipped.
SERVED = '[replay]\nmodels = "replay-then-live"\n\n[safety]\nrepeats = 1\n'
KEY_ENV = "AGENTOS_BENCH_KEY"
MODEL_LAYERS = ("memory", "prompt", "skill", "harness")
PLACES = {
    "Your place is its memory": "memory",
    "Your place is its system prompt": "prompt",
    "Your place is its skills": "skill",
    "Your place is the program that drives it": "harness",
}
AGENT = '\ndescription = "Does the work of a desk."\n'
TOOLS = {
    "luhn-digit": (
        "luhn_digit",
        "The Luhn check digit of a number",
        """    total = 0
    for place, sign in enumerate(reversed([sign for sign in input.text if sign.isdigit()])):
        digit = int(sign) * (2 - place % 2)
        total += digit - 9 if digit > 9 else digit
    return Output(value=-total % 10)
""",
    ),
    "count-words": (
        "count_words",
        "How many words a text has",
        "    return Output(value=len(input.text.split()))\n",
    ),
}
TOOL = '''"""{about}."""

from pydantic import BaseModel, Field

TOOL = {{"name": "{name}", "description": "{about}", "effects": ["pure"], "dependencies": []}}


class Input(BaseModel):
    text: str = Field(description="The text")


class Output(BaseModel):
    value: int


def run(input: Input) -> Output:
{body}'''
PROPOSER = '''"""Hands in one edit, and nothing else."""

import json
from pathlib import Path

from agentos.domain import Layer
from agentos.ports import Proposal


class Given:
    name = "given"
    layers = (Layer.AGENT, Layer.ENVIRONMENT, Layer.RULE)

    def __init__(self, adviser, snapshots):
        self.files, self.layer = json.loads(Path(__file__).with_name("edit.json").read_text())

    def propose(self, brief):
        if brief.layer.value == self.layer:
            fixes = tuple(dict.fromkeys(seen.task.id for seen in brief.runs if not seen.run.passed))
            yield Proposal("its work fails", "the edit", "given", self.files, "it lies there", fixes, ())
'''


@dataclass(frozen=True)
class LayerEdit:
    """One labelled edit of a scenario; ``kind`` says what is bad of it."""

    scenario: Scenario
    name: str
    right: bool
    kind: str
    path: str
    before: str  # "": a new skill
    after: str
    new: str = ""
    description: str = ""


@dataclass(frozen=True)
class Scenario:
    """A home in which some work of one agent fails for a reason that is no tool's."""

    name: str
    document: Json
    files: dict[str, str]

    @property
    def layer(self) -> str:
        return str(self.document["layer"])

    def tasks(self, *, fresh: bool = False) -> list[Json]:
        """The shown tasks, or others of the same kinds, those that fail before the others."""
        return [
            task
            for number, work in enumerate(self.document["work"])
            for task in self._of(number, work, fresh)
        ]

    def _of(self, place: int, work: Json, fresh: bool) -> Iterator[Json]:
        dice = random.Random(f"{self.name} {place} {fresh}")
        count = FRESH if fresh else SHOWN[work.get("fails", False)]
        first = 100 * fresh + 20 * place + 1
        for number in range(first, first + count):
            yield task(number, work, dice, fresh)

    def edits(self) -> Iterator[LayerEdit]:
        """The labelled ones."""
        for item in self.document["edit"]:
            right = item.get("right", False)
            if "new" in item:
                path = f"skill/{item['new']}/SKILL.md"
                yield LayerEdit(
                    self,
                    item["name"],
                    right,
                    item.get("kind", ""),
                    path,
                    "",
                    item["text"],
                    item["new"],
                    item["description"],
                )
                continue
            path = self._edited()
            before = after = self.files[path]
            if "find" in item:
                if before.count(item["find"]) != 1:
                    raise ValueError(f"{self.name}, {item['name']}: not once there: {item['find']!r}")
                after = before.replace(item["find"], item["put"])
            mark = "- " if self.layer == "memory" else ""
            lines = [item["append"]] if "append" in item else []
            if "append_each" in item:
                lines = [item["append_each"].replace("{n}", str(number + 1)) for number in range(SHOWN[True])]
            if lines:
                after = before.rstrip("\n") + "\n" + "".join(f"\n{mark}{line}\n" for line in lines)
            yield LayerEdit(self, item["name"], right, item.get("kind", ""), path, before, after)

    def _edited(self) -> str:
        """The path that its edits are of."""
        if faulty := self.document.get("harness"):
            return f"harness/desk/{faulty['file']}"
        kind = f"{self.layer}/"
        return next(path for path in sorted(self.files) if path.startswith(kind))


def scenarios() -> list[Scenario]:
    """All of them."""
    found = []
    for path in sorted(DATA.glob("*.toml")):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        files = {name: text + AGENT * name.startswith("agent/") for name, text in document["files"].items()}
        files = {name: _headed(text) if name.startswith("agent/") else text for name, text in files.items()}
        files.setdefault("memory/default/memory.md", "# Lessons\n")
        for name, (function, about, body) in TOOLS.items():
            files[f"tool/{name}/tool.py"] = TOOL.format(name=function, about=about, body=body)
            files[f"tool/{name}/resource.toml"] = f'description = "{about}"\n'
        if faulty := document.get("harness"):
            for file in HARNESS.glob("*"):
                if file.is_file():
                    files[f"harness/desk/{file.name}"] = file.read_text(encoding="utf-8")
            place = f"harness/desk/{faulty['file']}"
            if files[place].count(faulty["find"]) != 1:
                raise ValueError(f"{path.stem}: not once there: {faulty['find']!r}")
            files[place] = files[place].replace(faulty["find"], faulty["put"])
        found.append(Scenario(path.stem, document, files))
    return found


def _headed(text: str) -> str:
    """A TOML document with its last line first: no key may follow a table."""
    *lines, last = text.strip("\n").splitlines()
    return "\n".join([last, *lines]) + "\n"


# --- the work -----------------------------------------------------------------------------------


def task(number: int, work: Json, dice: random.Random, fresh: bool) -> Json:
    """One task of a kind of work, its check computed by other means than the agent's."""
    kind = work["kind"]
    sizes = work.get("fresh_numbers", work.get("numbers")) if fresh else work.get("numbers")
    count = dice.randint(*sizes) if sizes else 4
    values = [dice.randint(105, 995) for _ in range(count)]
    word = dice.choice(["calm", "glad", "angry", "tired", "proud", "bored", "afraid"])
    inputs: list[Json] = []
    expected: Any
    data = ", ".join(map(str, values))
    if kind == "total":
        expected, data = total(values, work, dice)
        inputs = written(number, data, work, fresh)
    elif kind == "sort":
        names = dice.sample(["ann", "bo", "cleo", "dora", "eli", "fay", "gus", "ida", "jon", "kim"], 5)
        expected, data = ", ".join(sorted(names)), ", ".join(names)
    elif kind == "words":
        words = [
            dice.choice(["oak", "elm", "ash", "fir", "yew"]) for _ in range(dice.choice([6, 7, 8, 9, 11, 12]))
        ]
        expected, data = len(words), " ".join(words)
    elif kind == "luhn":
        data = "".join(str(dice.randint(1, 9)) for _ in range(9))
        expected = next(digit for digit in range(10) if valid(f"{data}{digit}"))
    else:
        expected = ""
    check: Json = {"equals": {"value": expected}}
    if "pattern" in work:
        check = {"regex": {"pattern": work["pattern"]}}
    elif "path" in work:
        check["equals"]["path"] = work["path"]
    goal = work["goal"].format(
        n=number, data=data, word=word, files=" and ".join(item["as"] for item in inputs)
    )
    return {
        "name": goal.partition(":")[0],
        "agent": "desk",
        "goal": goal,
        "checks": [check],
        "inputs": inputs,
    }


def total(values: list[int], work: Json, dice: random.Random) -> tuple[Any, str]:
    """What a sum should be, and the data as it is told."""
    scale = work.get("scale", 1)
    if work.get("given") == "decimal":
        while sum(values) % 10 == 0 or sum(values) % 10 == 5:
            values[0] = dice.randint(105, 995)
        told, whole = ", ".join(f"{value / 100:.2f}" for value in values), sum(values) / 100
        return round(whole, work["decimals"]), told
    found: Any = sum(values) / scale if scale > 1 else sum(values)
    if unit := work.get("unit"):
        found = f"{found} {unit}"
    return found, ", ".join(map(str, values))


def written(number: int, data: str, work: Json, fresh: bool) -> list[Json]:
    """The data as input files; their text stands under "text" until they are written."""
    count = work.get("fresh_files", work.get("files", 0)) if fresh else work.get("files", 0)
    values = data.split(", ")
    parts = [values[at::count] for at in range(count)]
    return [{"as": f"{'abc'[at]}{number}.txt", "text": ", ".join(part)} for at, part in enumerate(parts)]


def valid(whole: str) -> bool:
    doubled = {sign: sum(map(int, str(2 * int(sign)))) for sign in "0123456789"}
    return (sum(map(int, whole[-1::-2])) + sum(doubled[sign] for sign in whole[-2::-2])) % 10 == 0


def file_of(tasks: list[Json], place: Path) -> Path:
    """A task file below ``place``, its inputs beside it."""
    place.mkdir(parents=True)
    documents = []
    for number, item in enumerate(tasks):
        inputs = []
        for at, given in enumerate(item["inputs"]):
            (place / f"{number}-{at}.txt").write_text(given["text"])
            inputs.append({"path": f"{number}-{at}.txt", "as": given["as"]})
        documents.append({**item, "inputs": inputs})
    file = place / "tasks.json"
    file.write_text(json.dumps(documents))
    return file


# --- the model ----------------------------------------------------------------------------------


class Desk:
    """A policy for ModelServer: work by what it is told, with slips; asked for an edit, the labelled one."""

    def __init__(self, edit: LayerEdit | None, noise: float) -> None:
        self._rules = Rules(noise=noise, seed=4)
        self._edit = edit

    def __call__(self, request: Json, number: int) -> ServerReply | list[ServerReply]:
        system = str(request["messages"][0].get("content"))
        if not system.startswith("You improve an AI agent"):
            return self._rules(request, number)
        told = str(request["messages"][1]["content"])
        if "Answer with the name of the one file" in system and self._edit:
            return say(self._edit.path.rpartition("/")[2])
        place = next((place for words, place in PLACES.items() if words in system), "")
        return say(self._proposal(place, told))

    def _proposal(self, place: str, told: str) -> str:
        edit = self._edit
        fits = (
            edit is not None
            and edit.path.startswith(f"{place}/")
            and bool(edit.new) == ("Write a new" in told)
        )
        if edit is None or not place or not fits or "You proposed these edits already" in told:
            return '{"no_edit": "I see no edit of this kind that would help."}'
        findings = {
            "cause": "the work was not done as it is wanted",
            "why_this_layer": "it is missing there",
            "summary": edit.name,
            "predicted_fixes": re.findall(r"Failing task (T\d+)", told),
            "tasks_at_risk": [],
            "name": edit.new,
            "description": edit.description,
        }
        block = edit.after if edit.new else hunks(edit)
        return f"{json.dumps(findings)}\n\n```\n{block}\n```"


def hunks(edit: LayerEdit) -> str:
    """The edit as what is replaced by what; of a memory the new line alone."""
    old, new = edit.before.splitlines(), edit.after.splitlines()
    codes = [
        code
        for code in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if code[0] != "equal"
    ]
    if edit.path.startswith("memory/") and old == new[: len(old)]:
        return "\n".join(line.removeprefix("- ") for line in new[len(old) :] if line)
    parts = []
    for _, start, end, first, last in codes:
        before, after = old[start:end], new[first:last]
        if not before and start < len(old):  # lines are added before this one
            before, after = [old[start]], [*after, old[start]]
        parts.append("\n".join(["<<<<<<< SEARCH", *before, "=======", *after, ">>>>>>> REPLACE"]))
    return "\n".join(parts)


# --- the whole loop -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """What became of one edit, or of a scenario where nobody hands in any."""

    name: str
    layer: str
    kind: str
    right: bool
    outcome: str  # promoted, asked, waiting, rejected, no edit
    tried: list[str] = field(default_factory=list)  # "proposer, layer: summary: screened or verdict"
    reasons: list[str] = field(default_factory=list)
    failed_at_first: int = 0  # of the shown tasks
    mended: str = ""  # fresh tasks that pass after the promotion, of the failing kind and of the others
    seconds: float = 0.0


def attempt(scenario: Scenario, edit: LayerEdit | None, *, live: bool) -> Ended:
    """One edit, from a fresh home to its end."""
    began, desk = time.monotonic(), Desk(edit, NOISE * live)
    with tempfile.TemporaryDirectory(prefix="bench-layers-") as folder, ModelServer(policy=desk) as server:
        agentos = Agentos(Path(folder) / "home")
        os.environ[KEY_ENV] = "not-needed"
        site, before = Path(folder) / "site", os.environ.get("PYTHONPATH", "")
        if edit is not None and scenario.layer not in MODEL_LAYERS:
            given_site(site, edit)
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), before]))
        try:
            furnish(agentos, scenario, server, Path(folder))
            if not live:
                (agentos.home / "policy.toml").write_text(SERVED)
            agentos("daemon", "start")
            failed = work_off(agentos, file_of(scenario.tasks(), Path(folder) / "tasks"))
            agentos("evolve")
            settle(agentos, QUIET_S)
            reader = Reader(agentos.home / "ledger.db")
            evolutions = list(reader.find(Evolution))
            mended = ""
            if any(item.state.value in LIVE for item in evolutions):
                mended = fresh(agentos, scenario, Path(folder) / "later")
            tried, reasons = told(reader, evolutions)
        finally:
            os.environ["PYTHONPATH"] = before
            with suppress(Stuck):  # it never came up
                agentos("daemon", "stop", "--now")
    return Ended(
        f"{scenario.name}/{edit.name}" if edit else scenario.name,
        scenario.layer,
        edit.kind if edit else "",
        bool(edit and edit.right),
        ended(evolutions),
        tried,
        reasons,
        failed,
        mended,
        round(time.monotonic() - began, 1),
    )


def furnish(agentos: Agentos, scenario: Scenario, server: ModelServer, folder: Path) -> None:
    """A fresh home with the model and the scenario's resources."""
    agentos("init")
    agentos("daemon", "stop", "--now")
    where = ("--provider", "desk", "--api-base", server.base_url, "--key-env", KEY_ENV)
    agentos("model", "add", "desk", "--model", "openai/scripted", *where, "--default")
    for path, text in scenario.files.items():
        (folder / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "files" / path).write_text(text, encoding="utf-8")
    order = ("tool", "skill", "harness", "prompt", "environment", "memory", "rule", "agent")
    for place in sorted((folder / "files").glob("*/*"), key=lambda place: order.index(place.parent.name)):
        resource = f"{place.parent.name}/{place.name}"
        if resource == "memory/default":
            if scenario.files["memory/default/memory.md"] != "# Lessons\n":
                agentos(
                    "registry", "edit", f"{resource}/memory.md", "--file", str(place / "memory.md"), "--yes"
                )
            continue
        document = place / "resource.toml"
        if not document.exists() and place.parent.name == "prompt":
            document.write_text('description = "How the desk works."\n')
        agentos("registry", "edit", resource, "--file", str(place), "--yes")


def given_site(place: Path, edit: LayerEdit) -> None:
    """A distribution with the proposer of this edit."""
    about = place / "given-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: given\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[agentos.proposers]\ngiven = given:Given\n")
    (place / "given.py").write_text(PROPOSER)
    (place / "edit.json").write_text(json.dumps([{edit.path: edit.after}, edit.scenario.layer]))


def fresh(agentos: Agentos, scenario: Scenario, place: Path) -> str:
    """How many fresh tasks of the failing kind, and of the others, pass now."""
    tasks = scenario.tasks(fresh=True)
    work_off(agentos, file_of(tasks, place))
    reader = Reader(agentos.home / "ledger.db")
    ends = {
        reader.task(run.task_id).name
        for run in reader.runs()
        if run.outcome is not None and run.outcome.result.value == "passed"
    }
    sizes = [item["name"] in ends for item in tasks]
    return f"{sum(sizes[:FRESH])}+{sum(sizes[FRESH:])} of {FRESH}+{len(tasks) - FRESH}"


def told(reader: Reader, evolutions: list[Evolution]) -> tuple[list[str], list[str]]:
    """What was tried, and what was said of it."""
    tried = []
    for item in evolutions:
        for candidate in reader.find(Candidate, evolution_id=item.id):
            said = candidate.screened or "; ".join(
                f"{verdict.decision.value}: {' | '.join(verdict.reasons)}"
                for verdict in reader.find(Verdict, candidate_id=candidate.id)
            )
            tried.append(
                f"{candidate.proposer}, {candidate.manifest.layer.value}: {candidate.edit.summary}: {said}"
            )
    return tried, [f"{item.state.value}: {item.reason}" for item in evolutions]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", help="scenarios, or of them edits such as memory-false/forgotten, with commas between them"
    )
    parser.add_argument("--part", default="0/1", help="of them: every Nth, from the Kth on")
    parser.add_argument(
        "--live", action="store_true", help="each task is tried afresh in pairs, and the model slips"
    )
    parser.add_argument("--alone", action="store_true", help="nobody hands in an edit")
    parser.add_argument("--json", type=Path, help="where to write what became of them")
    options = parser.parse_args()
    first, of = map(int, options.part.split("/"))
    pairs = [(one, edit) for one in scenarios() for edit in ([None] if options.alone else one.edits())]
    done: list[Ended] = []
    if options.json and options.json.exists():
        done = [Ended(**item) for item in json.loads(options.json.read_text())]
    known, wanted = {item.name for item in done}, set((options.only or "").split(",")) - {""}
    for scenario, edit in pairs[first::of]:
        name = f"{scenario.name}/{edit.name}" if edit else scenario.name
        if name in known or (wanted and not wanted & {name, scenario.name}):
            continue
        try:
            done.append(attempt(scenario, edit, live=options.live))
        except Stuck as error:
            print(f"{name}: not measured: {error}", flush=True)
            continue
        item = done[-1]
        print(f"{name:36} {item.kind:20} {item.outcome:9} {item.mended:14} {item.seconds:5.0f} s", flush=True)
        print(*item.tried, *item.reasons, sep="\n    ", flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(one) for one in done], indent=1))
    for right in (True, False):
        chosen = [item for item in done if item.right is right]
        ends = {
            end: sum(item.outcome == end for item in chosen)
            for end in sorted({item.outcome for item in chosen})
        }
        said = ", ".join(f"{count} {end}" for end, count in ends.items())
        print(
            f"| {'right' if right else 'bad'} edits of other layers than tools | {said} | n={len(chosen)} | |"
        )


if __name__ == "__main__":
    main()
