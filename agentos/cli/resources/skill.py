"""``agentos skill …``: bring skills in, look at them, run the tests that they ship."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, noun
from agentos.cli.output import print_json, print_table, print_text, tell_progress
from agentos.cli.resources.skill_sync import sync
from agentos.domain import Kind, ResourceId
from agentos.errors import Conflict, Invalid, NotFound, UserError, meant
from agentos.home import Home
from agentos.ledger.postgres.address import has_ledger

if TYPE_CHECKING:
    from agentos.registry.store import Registry

app = noun("Add skills, look at them, and run the tests that they ship.")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The skill's name, as `agentos skill list` has it.")
]
_TESTS = ("tests/", "examples/")
_POLL_S = 0.2
_TAKEN_S = 30.0  # a daemon with little to do takes a folder in within two seconds


app.command()(sync)


@app.command(example="agentos skill add ~/skills/dice")
def add(
    source: Annotated[
        str, typer.Argument(metavar="PATH|GIT-URL", help="A folder, or a repository (URL#BRANCH).")
    ],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Of several skills, take this one. Repeatable."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Take all skills that lie there.")] = False,
    name: Annotated[str, typer.Option(metavar="NAME", help="What to call it; else as its folder.")] = "",
    as_json: AsJson = False,
) -> None:
    """Copy a skill into the home's skills folder, and wait until a daemon that runs has taken it in."""
    from agentos.registry.skill_folders.folder import skill_name
    from agentos.registry.skill_folders.skill_source import checkout, copy, found_in
    from agentos.registry.skill_folders.skills_folder import examine_folder
    from agentos.registry.store import Registry

    home = Home.find()
    registry = Registry(home.registry)
    known = {str(resource) for resource in registry.names(registry.stable())}
    done: list[tuple[str, Path, list[str]]] = []
    with checkout(source) as place:
        there: dict[str, list[Path]] = {}
        for path in found_in(place):
            there.setdefault(skill_name(_called(path, place, source)), []).append(path)
        wanted = _chosen(there, only or [], source, every=every)
        if name and len(wanted) > 1:
            raise UserError("--name is for one skill; say which with --only")
        for key, path in sorted(wanted.items()):
            own = skill_name(name or key)
            if not own:
                raise UserError(
                    f"{name or path.name!r} has no letter or digit that a skill can be called by; give another --name"
                )
            found = examine_folder(own, path)
            if found.faults:
                raise Invalid(f"{path.name}", list(found.faults))
            _refuse_known(home, known, own)
            _await_forgotten(home, home.skills / own)
            left_out = copy(path, home.skills / own)
            done.append((own, home.skills / own, [*left_out, *found.warnings]))
    if as_json:
        print_json([dict(zip(("skill", "folder", "warnings"), item, strict=True)) for item in done])
    else:
        for own, folder, warnings in done:
            print_text(f"skill/{own}  {folder}")
            for warning in warnings:
                print_text(f"  {warning}", "yellow")
    for refused, faults in _follow(home, {own: folder for own, folder, _ in done}).items():
        raise Invalid(f"{refused} is refused", faults)


def _follow(home: Home, added: dict[str, Path]) -> dict[str, list[str]]:
    """Wait until the daemon has taken all of them in, so that the next command finds them; folder -> its faults."""
    from agentos.daemon.control.daemon_lock import daemon_runs
    from agentos.ledger.reading import Reader
    from agentos.registry.store import Registry

    left, until = dict(added), time.monotonic() + _TAKEN_S
    refused: dict[str, list[str]] = {}
    while daemon_runs(home) and time.monotonic() < until:
        registry, told = Registry(home.registry), Reader(home.ledger).get_kv("skills.refused", {})
        names = {str(resource) for resource in registry.names(registry.stable())}
        left = {own: folder for own, folder in left.items() if f"skill/{own}" not in names}
        refused = {str(folder): told[str(folder)] for folder in left.values() if str(folder) in told}
        if len(refused) == len(left):
            return refused
        time.sleep(_POLL_S)
    tell_progress("The daemon takes in what was added within seconds once it runs: agentos skill list")
    return refused


def _await_forgotten(home: Home, folder: Path) -> None:
    """Wait until the daemon has dropped what it said of an earlier folder there: it would be taken for its word on the new one."""
    from agentos.daemon.control.daemon_lock import daemon_runs
    from agentos.ledger.reading import Reader

    until = time.monotonic() + _TAKEN_S
    while (
        not folder.exists()
        and daemon_runs(home)
        and str(folder) in Reader(home.ledger).get_kv("skills.refused", {})
        and time.monotonic() < until
    ):
        time.sleep(_POLL_S)


def _refuse_known(home: Home, known: Collection[str], own: str) -> None:
    """The daemon would not take in a second one of that name."""
    if f"skill/{own}" in known and not (home.skills / own).exists():
        raise Conflict(
            f"The registry has a skill/{own} already; give another --name, or replace that one: "
            f"`agentos registry edit skill/{own} --file FOLDER`"
        )


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the skills, and the folders that were refused."""
    from agentos import frontmatter
    from agentos.ledger.reading import Reader

    home, registry = Home.find(), _open()
    main = registry.stable()
    rows = []
    for resource in registry.names(main):
        if resource.kind is Kind.SKILL:
            version, path = registry.latest(resource), f"{resource}/SKILL.md"
            try:
                text = registry.files(main, path).get(path, b"").decode("utf-8", "replace")
                description = " ".join(frontmatter.read(text).description.split())
            except ValueError:
                description = ""
            rows.append(
                (
                    resource.name,
                    version.number if version else "?",
                    version.origin if version else "?",
                    description,
                )
            )
    told_of: dict[str, dict[str, list[str]]] = {"refused": {}, "left_out": {}}
    if has_ledger(home.ledger):
        told_of = {name: Reader(home.ledger).get_kv(f"skills.{name}", {}) for name in told_of}
    if as_json:
        keys = ("skill", "version", "origin", "description")
        print_json({"skills": [dict(zip(keys, row, strict=True)) for row in rows], **told_of})
        return
    told = [(*row[:3], row[3] if len(row[3]) <= 100 else f"{row[3][:99]}…") for row in rows]
    print_table(
        ("skill", "version", "from", "what it is for"),
        told,
        empty="No skill is here. Try: agentos skill add PATH",
    )
    for name, style in (("refused", "red"), ("left_out", "yellow")):
        for folder, sentences in sorted(told_of[name].items()):
            print_text(f"{name.replace('_', ' ')}: {folder}: {'; '.join(sentences)}", style)


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a skill: what was assumed of it, its tools, scripts, tests and requirements."""
    from agentos.frontmatter import read
    from agentos.programs import is_script
    from agentos.registry.wheels import locked, needed, unlocked
    from agentos.resources import examine, tool_reference

    registry = _open()
    skill, files = _skill(registry, name)
    found, version, lock = examine(skill, files), registry.latest(skill), locked(files)
    front = read(files.get(f"{skill}/SKILL.md", b"").decode("utf-8", "replace"))
    inside = sorted(path.removeprefix(f"{skill}/") for path in files)
    view = {
        "skill": skill.name,
        "version": version,
        "description": front.description,
        "evolves": bool(found.resource and found.resource.evolvable),
        "allowed_tools": front.tools,
        "tools": [tool_reference(path) for path in (found.resource.tools if found.resource else ())],
        "scripts": [path for path in inside if is_script(f"{skill}/{path}")] if front.runs_scripts else [],
        "tests": sorted(_tests(skill, files)),
        "requires": needed(files),
        "locked": [f"{wheel.name} {wheel.version}" for wheel in lock.wheels] if lock else [],
        "warnings": [*found.warnings, *unlocked(files)],
        "faults": found.faults,
        "files": inside,
    }
    if as_json:
        print_json(view)
        return
    print_text(f"{skill}@{version.number if version else '?'}", "bold")
    print_text(front.description)
    for key in ("allowed_tools", "tools", "scripts", "tests", "requires", "locked", "files"):
        value = view[key]
        if isinstance(value, list | tuple) and value:
            print_text(f"{key.replace('_', ' '):14}{', '.join(map(str, value))}")
    for fault in found.faults:
        print_text(fault, "red")
    for warning in [*found.warnings, *unlocked(files)]:
        print_text(warning, "yellow")


@app.command()
def test(name: Name) -> None:
    """Run what a skill ships: task files and scripts in its tests/ and examples/. Exit code 1 when one fails."""
    from agentos.cli.tasks import task

    registry = _open()
    skill, files = _skill(registry, name)
    tests = _tests(skill, files)
    if not tests:
        raise UserError(f"{skill} ships no tests: task files (.yaml) or scripts in tests/ or examples/")
    failed = []
    inside = [{"path": file, "as": file} for file in sorted(it.removeprefix(f"{skill}/") for it in files)]
    with tempfile.TemporaryDirectory(prefix="agentos-test-") as aside:
        for path, content in files.items():
            target = Path(aside, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        for number, (file, call) in enumerate(sorted(tests.items())):
            place = Path(aside, str(skill), file)
            if call is not None:
                document = {
                    "name": f"{skill.name}: {file}",
                    "goal": f"Run {file} of {skill}",
                    "call": call,
                    "inputs": inside,  # a test names the skill's files as they lie beside it
                }
                place = Path(aside, str(skill), f"agentos-test-{number}.json")
                place.write_text(json.dumps(document))
            print_text(file, "bold")
            try:
                task.run(str(place))
            except typer.Exit as ended:
                failed += [file] if ended.exit_code else []
    print_text(f"{len(tests) - len(failed)} of {len(tests)} passed")
    raise typer.Exit(1 if failed else 0)


def _tests(skill: ResourceId, files: Mapping[str, bytes]) -> dict[str, dict[str, object] | None]:
    """File below the skill -> the call of a script, None for a task file.

    A Python file of test functions that starts nothing itself would pass always, and is none.
    """
    from agentos.programs import is_script

    found: dict[str, dict[str, object] | None] = {}
    for path, content in files.items():
        file = path.removeprefix(f"{skill}/")
        if not file.startswith(_TESTS):
            continue
        if file.endswith((".yaml", ".yml")):
            found[file] = None
        elif (
            file.startswith("tests/test")
            and is_script(path)
            and (b"def test" not in content or b"__main__" in content)
        ):
            found[file] = {"tool": f"{skill.name}/{file}", "args": {}}
    return found


def _chosen(there: dict[str, list[Path]], only: list[str], source: str, *, every: bool) -> dict[str, Path]:
    """Of the skills that lie there those that are asked for. Raises UserError."""
    from agentos.registry.skill_folders.skill_source import DEEPEST

    if every and only:
        raise UserError("--all takes in all that lie there, --only a few of them: give one of the two.")
    if missing := sorted({*only} - there.keys()):
        raise UserError(
            f"There is no skill {missing[0]} in {source}; there are: {', '.join(sorted(there)) or 'none'}"
        )
    if not there:
        raise UserError(
            f"There is no folder with a SKILL.md in {source}, nor up to {DEEPEST} folders below it; if it lies "
            "deeper, name a folder nearer to it"
        )
    if len(there) > 1 and not every and not only:
        raise UserError(
            f"{source} holds several skills ({', '.join(sorted(there))}); say --only NAME, or --all"
        )
    chosen = {key: paths for key, paths in there.items() if not only or key in only}
    for key, paths in chosen.items():
        if len(paths) > 1:
            folders = ", ".join(sorted(f"{path.parent.name}/{path.name}" for path in paths))
            raise UserError(
                f"{len(paths)} folders of {source} would be skill/{key} ({folders}); add each by its own path, with "
                "--name for all but one"
            )
    return {key: paths[0] for key, paths in chosen.items()}


def _called(path: Path, place: Path, source: str) -> str:
    """A skill at the top of a checkout is called as its repository."""
    from agentos.registry.skill_folders.skill_source import is_address

    if path != place:
        return path.name
    if not is_address(source):
        return place.resolve().name
    return re.split("[/:]", source.partition("#")[0].rstrip("/"))[-1].removesuffix(".git")


def _open() -> Registry:
    from agentos.registry.store import Registry

    return Registry(Home.find().registry)


def _skill(registry: Registry, name: str) -> tuple[ResourceId, Mapping[str, bytes]]:
    skill = ResourceId(Kind.SKILL, name.removeprefix("skill/"))
    known = [found.name for found in registry.names(registry.stable()) if found.kind is Kind.SKILL]
    if skill.name not in known:
        raise NotFound(f"There is no {skill}. {meant(skill.name, known, 'Try: `agentos skill list`')}")
    return skill, registry.files(registry.stable(), str(skill))
