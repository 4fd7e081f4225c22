"""The documents say what there is: words, states, settings, commands and links; README's examples run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from agentos.checks import KINDS
from agentos.cli.main import COMMANDS, load
from agentos.domain import RUNNING_STATES, EvolutionState, Kind, Result
from agentos.settings import Settings
from tests.command_server import write_command

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/*.md", "*/README.md")
    for path in ROOT.glob(pattern)
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)

VOCABULARY = re.findall(
    r"[\w-]+",
    "Resource, Version, Registry, Snapshot, Pointer, Task, Check, Run, Trajectory, Step, Outcome, Signal, "
    "Fingerprint, Evidence, Layer, Manifest, Candidate, Surface, Gate, Replay, Trial, Guard, Hold-out, "
    "Verdict, Consent, Promotion, Probe, Probation, Rollback, Evolution, Lineage, Ledger, Misevolution",
)

NOT_AN_END = RUNNING_STATES | {EvolutionState.AWAITING_CONSENT, EvolutionState.PROBATION}


def concepts() -> str:
    return (ROOT / "docs" / "understand" / "concepts.md").read_text()


def test_every_word_of_the_vocabulary_is_explained() -> None:
    explained = re.findall(r"^\*\*([\w-]+)\*\*:", concepts(), re.MULTILINE)
    assert set(VOCABULARY) - set(explained) == set()


def test_kinds_results_checks_and_end_states_are_named() -> None:
    text = concepts()
    ends = [state for state in EvolutionState if state not in NOT_AN_END]
    for word in [*Kind, *Result, *KINDS]:
        assert re.search(rf"[`*]{word}[`*]", text), word
    for state in ends:
        assert f"| `{state}` |" in text, state


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "use" / "operating.md").read_text()
    assert [name for name in Settings.model_fields if f"`{name}`" not in page] == []


def commands() -> Iterator[str]:
    """Every command that does something, as typed."""
    for noun in COMMANDS:
        yield from _below(load(noun), f"agentos {noun}")


def _below(command: Any, typed: str) -> Iterator[str]:
    if not hasattr(command, "list_commands"):
        yield typed
        return
    context = typer.Context(command)
    if command.invoke_without_command:
        yield typed
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if not child.hidden:
            yield from _below(child, f"{typed} {name}")


def test_every_command_is_documented() -> None:
    everything = "\n".join(page.read_text() for page in PAGES)
    assert [typed for typed in commands() if not re.search(rf"{typed}\b", everything)] == []


@pytest.mark.parametrize("page", ["understand/architecture.md", "contribute/recipes.md", "contribute/map.md"])
def test_files_that_a_contributor_is_sent_to_are_there(page: str) -> None:
    named = re.findall(
        r"`((?:agentos|tests|evolver|registry|benchmarks|docs)/[\w./-]*)`", (ROOT / "docs" / page).read_text()
    )
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def anchors(page: Path) -> set[str]:
    """The anchors that a forge makes of the headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_relative_links_lead_somewhere() -> None:
    nowhere = []
    for page in PAGES:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            file = (page.parent / target).resolve() if target else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                nowhere.append((str(page.relative_to(ROOT)), link))
    assert nowhere == []


def test_blocks_end_and_tables_stand_by_themselves() -> None:
    """A cut block showed the rest of its page as code, and a text right below a table is a row of it."""
    wrong = []
    for page in PAGES:
        lines, within = page.read_text().splitlines(), False
        for number, (line, below) in enumerate(zip(lines, [*lines[1:], ""], strict=True), 1):
            if line.lstrip().startswith("```"):
                within = not within
            elif not within and line.startswith("|") and below and not below.startswith("|"):
                wrong.append((str(page.relative_to(ROOT)), number))
        if within:
            wrong.append((str(page.relative_to(ROOT)), len(lines)))
    assert wrong == []


def test_code_that_a_page_names_is_there() -> None:
    named = re.compile(r"`((?:agentos|tests|benchmarks|docs)/[\w/.-]*\w)/?`")
    found = [
        (str(page.relative_to(ROOT)), path) for page in PAGES for path in named.findall(page.read_text())
    ]
    assert [(page, path) for page, path in found if not (ROOT / path).exists()] == []


def test_tests_that_the_promises_name_are_there() -> None:
    there = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    names = re.findall(r"`(test_\w+)`", (ROOT / "docs" / "understand" / "security.md").read_text())
    assert names
    for name in names:
        assert f"def {name}(" in there, name


# --- README as a new user reads it --------------------------------------------------------------

NOT_RUN = ("make ",)  # these are what runs this very test


def blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """The file that the line above names (or ""), language and content of each fenced block, in order."""
    yield from re.findall(r"^(?:`([^`\n]+)`[^`\n]*:\n\n)?```(\w+)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def write_named_file(name: str, content: str, home: Path, folder: Path) -> None:
    """Exactly as it stands there: a reader copies the whole block."""
    assert name, f"the line above this block names no file:\n{content}"
    path = home / name.removeprefix("~/.agentos/") if name.startswith("~/") else folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


class Newcomer:
    """Who types what README shows, one line after the other."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.folder = folder
        installed = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "AGENTOS_HOME": str(home), "PATH": installed, "NO_COLOR": "1"}
        self._forked = folder.parent / "bin"
        self._forked.mkdir()
        write_command(self._forked / "agentos")
        self._ids: dict[str, str] = {}  # kind -> the newest id that was shown

    def types(self, command: str, seconds: float = 300.0) -> str:
        """What is shown. A person types more slowly than this: what is not there yet is tried again."""
        deadline = time.monotonic() + seconds
        while True:
            done = self._once(command)
            # a task that fails is what the reader was told of
            if done.returncode == 0 or (" task run " in command and done.returncode == 1):
                # The installed program was typed once; the others are forked, with their imports done.
                self._environment["PATH"] = f"{self._forked}:{os.environ['PATH']}"
                break
            assert time.monotonic() < deadline, f"{command}\n{done.stdout}\n{done.stderr}"
            time.sleep(0.5)  # the machine is needed for what is waited for
        shown = done.stdout + done.stderr
        if "--json" in command:
            return done.stdout
        for kind in ("run", "evolution"):
            listed = command.endswith(f"{kind} list")
            if listed or (kind == "run" and " ask " in command):
                self._ids[kind] = re.findall(r"\b(?:run|evo)-\w+", shown)[0]
        return shown

    def waits_for_an_edit(self) -> None:
        """Until one waits for consent."""
        deadline = time.monotonic() + 900.0
        state, over = "", {"cannot_fix", "no_improvement", "not_reproducible", "rejected"}
        while state != "awaiting_consent":
            assert state not in over, state
            assert time.monotonic() < deadline, state
            found = json.loads(self.types("agentos evolution list --json"))
            state = found[0]["state"] if found else ""
            time.sleep(1.0)

    def _once(self, command: str) -> subprocess.CompletedProcess[str]:
        command += " --yes" if " approve " in command else ""  # as the person answers who is asked
        for kind, name in self._ids.items():
            command = re.sub(rf"(agentos {kind} \w+) ID\b", rf"\1 {name}", command)
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=900,
        )


@pytest.mark.sandbox
@pytest.mark.example
@pytest.mark.slow
def test_the_examples_of_the_readme_run(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "work"
    # a reader stands in the checkout
    shutil.copytree(ROOT / "examples" / "first", folder / "examples" / "first")
    newcomer = Newcomer(home, folder)
    shown: dict[str, list[str]] = {}
    try:
        for name, language, content in blocks(README.read_text()):
            if language != "console":
                write_named_file(name, content, home, folder)
                continue
            for line in content.splitlines():
                if not line.startswith("$ ") or line[2:].startswith(NOT_RUN):
                    continue
                if line == "$ agentos evolution list":  # what `evolve` opened is followed there already
                    newcomer.waits_for_an_edit()
                shown.setdefault(line, []).append(newcomer.types(line[2:]))
    finally:
        if home.exists():
            newcomer.types("agentos daemon stop --now || true")
    twice = shown["$ agentos task run examples/first/tasks.yaml"]
    before, after = (re.findall(r"\] (\w+)", told) for told in twice)
    assert sorted(before) == ["failed", "failed", "passed"]
    assert after == ["passed"] * 3
