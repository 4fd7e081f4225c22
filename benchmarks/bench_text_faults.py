"""The search for repairs on tools whose fault lies in a text beside the code: JSON, TOML, YAML, a shell script.

    python benchmarks/bench_text_faults.py [--set develop|blind|report] [--only NAME,NAME] [--seconds S]

Of each tool in `data/text_faults.toml` the text is made faulty by one replacement. One with `code` is Python, which reads
the text that lies beside it; one with `script` is a program in bash, which gets an input file and the words of `command`.
The first six texts are shown: those on which the faulty tool answers otherwise than the right one are the evidence, the
others working calls. A repair is right when it answers as the right one on all of them. In bubblewrap's boxes, as the
program does.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from agentos.daemon.evolve.benches import BoxBenches
from agentos.domain import Call, Check, Json, Kind, ResourceId
from agentos.evolver.policy import Policy
from agentos.ports import Brief, Case
from agentos.proposers.repair import RepairProposer
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.choice import PlacesHere
from agentos.testing.registry import FakeRegistry

DATA = Path(__file__).resolve().parent / "data" / "text_faults.toml"
SHOWN = 6
HEAD = '''"""What the benchmark calls."""

import {reader}
from pathlib import Path

from pydantic import BaseModel

TOOL = {{"name": "probe", "description": "a tool with a text beside it", "effects": ["read"], "dependencies": []}}


class Input(BaseModel):
    text: str


class Output(BaseModel):
    value: str

'''
FOOT = """

def run(input: Input) -> Output:
    text = Path(__file__).with_name("{file}").read_text(encoding="utf-8")
    return Output(value=str(answer({load}, input.text)))
"""
LOADS = {
    ".json": "json.loads(text)",
    ".toml": "tomllib.loads(text)",
    ".yaml": 'dict((k, v.partition("  #")[0].strip().strip(\'"\')) for k, _, v in (line.partition(": ") for line in text.splitlines() '
    'if ": " in line and line[0] != "#"))',
}
SCRIPT = """# Answers the lines that the function prints.
path=$(sed -n 's/.*"path": *"\\([^"]*\\)".*/\\1/p')

lines() {{{body}}}

lines | awk 'BEGIN {{ printf "[" }} {{ printf "%s\\"%s\\"", (NR > 1 ? ", " : ""), $0 }} END {{ print "]" }}'
"""
DOCUMENT = {
    "name": "probe",
    "description": "a program with one fault",
    "effects": ["read"],
    "command": ["bash", "run.sh"],
}


class Files(FakeRegistry):
    """A registry of one tool, which needs no packages."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__({f"tool/probe/{name}": text for name, text in files.items()})

    def wheels_of(self, files: object) -> Mapping[ResourceId, Mapping[str, bytes]]:
        """None."""
        return {}


def files_of(tool: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Which file the diagnosis names, and all files of the right tool."""
    if "script" in tool:
        script = SCRIPT.format(body=tool["script"])
        document = DOCUMENT
        if "command" in tool:  # its words beyond the script's name are for the function
            document = {**DOCUMENT, "command": tool["command"]}
            script = script.replace("\nlines | awk", '\nlines "$@" | awk')
        return "tool.json", {"tool.json": json.dumps(document, indent=2), "run.sh": script}
    file = tool["file"]
    ending = Path(file).suffix
    reader = {".json": "json", ".toml": "tomllib"}.get(ending, "json")
    source = HEAD.format(reader=reader) + tool["code"] + FOOT.format(file=file, load=LOADS[ending])
    return "tool.py", {"tool.py": source, file: tool["text"].lstrip("\n")}


def calls_of(tool: Mapping[str, Any]) -> list[Case]:
    """One for each text."""
    if "script" not in tool:
        return [Case(f"t{n}", Call("probe", {"text": text}), {}, ()) for n, text in enumerate(tool["texts"])]
    name = tool.get("input", "input.txt")
    return [
        Case(f"t{n}", Call("probe", {"path": name}), {name: text.encode()}, ())
        for n, text in enumerate(tool["texts"])
    ]


def answers(
    sandbox: Bubblewrap, path: str, files: Mapping[str, str], cases: Sequence[Case]
) -> Sequence[Json]:
    """Of the tool with these files."""
    registry = Files(files)
    bench = BoxBenches(registry, PlacesHere(sandbox)).bench(
        registry.stable(), f"tool/probe/{path}", cases, 5.0
    )
    with closing(bench):
        return bench.try_source(files[path]).outputs


def score(sandbox: Bubblewrap, tool: Mapping[str, Any], seconds: float) -> str:
    """Search, judge the first proposal, tell."""
    path, right = files_of(tool)
    old, new = tool["fault"]
    faulty = {name: text.replace(old, new) if name != "tool.py" else text for name, text in right.items()}
    assert sum(faulty[name] != text for name, text in right.items()) == 1, tool["name"]
    cases = calls_of(tool)
    wanted, had = (answers(sandbox, path, files, cases) for files in (right, faulty))
    checked = [
        Case(case.task_id, case.call, case.inputs, (Check("equals", {"value": value}),))
        for case, value in zip(cases, wanted, strict=True)
    ]
    failing = tuple(checked[n] for n in range(SHOWN) if had[n] != wanted[n])
    working = tuple((checked[n], had[n]) for n in range(SHOWN) if had[n] == wanted[n])
    assert failing, tool["name"]
    registry = Files(faulty)
    brief = Brief(
        "texts", registry.stable(), ResourceId(Kind.TOOL, "probe"), f"tool/probe/{path}", faulty[path], failing, working,
        seconds, 6, files={f"tool/probe/{name}": text for name, text in faulty.items()}, searched=Policy().surface.searched,
    )  # fmt: skip
    began, before = time.monotonic(), os.times()
    found = RepairProposer(BoxBenches(registry, PlacesHere(sandbox)), 1).propose(brief)
    proposals, effort = [], None
    while True:
        try:
            proposals.append(next(found))
        except StopIteration as end:
            effort = end.value
            break
    used = time.monotonic() - began
    cpu_s = sum(os.times()[:4]) - sum(before[:4])
    words = []
    for proposal in proposals:
        made = {**faulty, **{name.rpartition("/")[2]: text for name, text in proposal.files.items()}}
        words.append("right" if answers(sandbox, path, made, cases) == wanted else "wrong")
    word = words[0] if words else "none"
    what = proposals[0].summary if proposals else f"{effort.tried} tried of {effort.known}" if effort else ""
    later = " (a right one later)" if "right" in words[1:] and word != "right" else ""
    asked = all(p.prior < Policy().replay.prior_min for p in proposals)
    print(f"{tool['name']:16} {len(failing)} failing  {word:5} {used:5.1f} s {cpu_s:5.1f} s of CPU here{'' if asked else '  NOT ASKED'}  {what}{later}", flush=True)  # fmt: skip
    return word


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--set", default="develop", choices=("develop", "blind", "report"))
    parser.add_argument("--only", default="", help="names, with commas")
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU for each")
    options = parser.parse_args()
    tools = tomllib.loads(DATA.read_text(encoding="utf-8"))["tool"]
    only = [name for name in options.only.split(",") if name]
    chosen = [tool for tool in tools if tool["set"] == options.set and (not only or tool["name"] in only)]
    words = []
    with tempfile.TemporaryDirectory() as home:
        uid = 65534 if os.getuid() == 0 else None
        os.chmod(home, 0o755)  # the user of the boxes has to come to it
        with Bubblewrap(Path(home), uid) as sandbox:
            words = [score(sandbox, tool, options.seconds) for tool in chosen]
    counted = ", ".join(f"{words.count(word)} {word}" for word in ("right", "wrong", "none"))
    print(f"| texts, {options.set} | {len(words)} | {counted} | {options.seconds:g} s of CPU |")


if __name__ == "__main__":
    main()
