"""``agentos rule …``: what runs are held to while they are under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentos.cli.group import AsJson, Yes, noun
from agentos.cli.output import LIMIT_MAX, confirm, print_json, print_table, print_text
from agentos.domain import Kind, ResourceId, Result, Run
from agentos.errors import NotFound, Unavailable, UserError, meant
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.registry.store import Registry
    from agentos.rules.document import RunRule
    from agentos.rules.trying import RuleHitInRun

app = noun("Keep rules that stop, refuse or ask about what a run is about to do.")

_Rule = Annotated[
    str,
    typer.Argument(metavar="RULE", help="rule/NAME or NAME; the file of a skill's rule; or one that ships."),
]
_RUNS = 1_000


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the rules of this home and of its skills, and those that ship and are off."""
    registry = _registry()
    here = _rules_of(registry)
    rows = [
        {**_facts(rule), "state": "on", "version": _version(registry, name)} for name, rule in here.items()
    ]
    rows += [
        {**_facts(rule), "state": "off", "version": ""}
        for name, (rule, _) in sorted(_shipped().items())
        if name not in here
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("rule", "state", "version", "on", "does", "says"),
        [
            (row["rule"], row["state"], row["version"], row["on"], row["enforce"], row["description"])
            for row in rows
        ],
        empty="No rules.",
        below=True,
    )
    if any(row["state"] == "off" for row in rows):
        print_text("Turn one on: agentos rule add NAME")


@app.command()
def show(rule: _Rule, as_json: AsJson = False) -> None:
    """Show one rule: when it is asked, its condition, what it does, and its examples."""
    name, found = _found(rule)
    if as_json:
        print_json({**_facts(found), "examples": {"stops": found.stops, "passes": found.passes}})
        return
    print_text(f"{name}  ({found.digest})", "bold")
    print_text(found.description)
    print_text(f"on         {found.on.value}")
    print_text(f"when       {found.when.source.strip()}")
    print_text(
        f"does       {found.enforce.value}{'' if found.acts_on_error else ', not where it cannot judge'}"
    )
    if found.advice:
        print_text(f"advice     {found.advice}")
    for argument, value in found.replace.items():
        print_text(f"replace    {argument} = {value!r}")
    for example in found.stops:
        print_text(f"stops      {dict(example)}")
    for example in found.passes:
        print_text(f"passes     {dict(example)}")


@app.command()
def add(
    rule: Annotated[
        str, typer.Argument(metavar="FILE|NAME", help="A file, or the name of a rule that ships.")
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="What to call it; else as its file.")] = "",
    as_json: AsJson = False,
) -> None:
    """Add a rule, after its examples held; all runs that begin from now on are held to it."""
    from agentos.cli.resources.registry_edit import author
    from agentos.resources import name_fault
    from agentos.rules.trying import faults_of

    registry = _registry()
    resource, content = _document(rule, name)
    if fault := name_fault(resource.name):
        raise UserError(f"{fault}: say what it is to be called with --name")
    read = _read(f"{resource}/resource.toml", content)
    if wrong := faults_of(read):
        first = wrong[0]
        raise UserError(
            f"{len(wrong)} of its examples do not hold; {first.wanted} {first.number}: {dict(first.example)}: "
            f"{first.why}. Try: `agentos rule test {rule}`"
        )
    base = registry.stable()
    path = f"{resource}/resource.toml"
    present = registry.files(base, str(resource)).get(path)
    change = "unchanged" if present == content else "changed" if present else "added"
    if change != "unchanged":
        registry.commit({path: content}, f"Hold runs to {resource}", "edit", base=base, author=author())
    version = _version(registry, str(resource))
    if as_json:
        print_json({"rule": str(resource), "version": version, "change": change, "digest": read.digest})
    else:
        print_text(f"{resource} {version} ({change}): runs that begin from now on are held to it.")


@app.command()
def remove(
    rule: _Rule,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a rule; its versions stay, and `agentos registry revert` brings it back."""
    registry = _registry()
    name = rule if rule.startswith("rule/") else f"rule/{rule}"
    resource = ResourceId(Kind.RULE, name.partition("/")[2])
    if resource not in registry.names(registry.stable()):
        raise NotFound(f"No rule '{rule}' is on. Try: `agentos rule list`")
    confirm(f"Hold no run to {resource} any more?", yes=yes)
    registry.retire(resource, "by hand")
    if as_json:
        print_json({"rule": str(resource), "change": "removed"})
    else:
        print_text(f"{resource} is off. To bring it back: agentos registry revert {resource}")


@app.command("test")
def try_(
    rule: Annotated[
        str, typer.Argument(metavar="FILE|RULE", help="A file, a rule of the home, or one that ships.")
    ],
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]…", help="These runs; without any, the newest.")
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            metavar="N", min=0, max=LIMIT_MAX, help="How many of the newest runs; 0: its examples alone."
        ),
    ] = _RUNS,
    as_json: AsJson = False,
) -> None:
    """Test a rule on its examples and on runs on record. Exit code 1 when an example does not hold."""
    from agentos.rules.trying import faults_of

    found = _read(rule, _bounded(Path(rule))) if Path(rule).is_file() else _found(rule)[1]
    wrong = faults_of(found)
    looked = 0
    hits: list[tuple[Run, RuleHitInRun]] = []
    for run, hit in _in_runs(found, runs or [], limit):
        looked += 1
        if hit is not None:
            hits.append((run, hit))
    if as_json:
        print_json(
            {
                "rule": found.name,
                "examples": len(found.stops) + len(found.passes),
                "wrong": wrong,
                "runs": looked,
                "acts": [{"run": run.id, "result": _result(run), **_hit(hit)} for run, hit in hits],
            }
        )
    else:
        _tell_test(found, wrong, looked, hits)
    if wrong:
        raise typer.Exit(1)


def _tell_test(rule: RunRule, wrong: list[Any], looked: int, hits: list[tuple[Run, RuleHitInRun]]) -> None:
    count = len(rule.stops) + len(rule.passes)
    print_text(f"{rule.name}: {count - len(wrong)} of {count} examples hold", "red" if wrong else "green")
    for fault in wrong:
        print_text(f"{fault.wanted} {fault.number}: {dict(fault.example)}: {fault.why}", "red")
    passed = sum(_result(run) == Result.PASSED for run, _ in hits)
    print_text(
        f"In {looked:,} runs on record it would have acted in {len(hits):,}, {passed:,} of which had passed."
    )
    for run, hit in hits[:50]:
        where = "at the answer" if hit.step is None else f"at step {hit.step}"
        print_text(f"  {run.id}  {_result(run):<10} {where}, {hit.times} in all: {hit.reason}")
    if len(hits) > 50:
        print_text(f"  … and {len(hits) - 50:,} more (--json has all)")


def _in_runs(rule: RunRule, ids: list[str], limit: int) -> Iterator[tuple[Run, RuleHitInRun | None]]:
    """Each run that is looked at, newest first, with the rule's first act in it."""
    from agentos.evolver.history.recordings import in_full
    from agentos.ledger.blobs import BlobStore
    from agentos.ledger.reading import Reader
    from agentos.ports import ObservedRun
    from agentos.resources.declarations import recorded_effects
    from agentos.rules.trying import in_run

    if not ids and not limit:
        return
    home = Home.find()
    reader, blobs = Reader(home.ledger), BlobStore(home.blobs)
    effects = recorded_effects(_registry())
    found = [reader.run(reader.resolve("run", one)) for one in ids] or reader.runs(limit=limit)
    for run in found:
        seen = ObservedRun(reader.task(run.task_id), run, tuple(reader.steps(run.id)))
        with suppress(Unavailable):  # of a record that has gone in part, what is there is looked at
            seen = in_full(blobs, seen)
        yield run, in_run(rule, seen, effects)


def _registry() -> Registry:
    from agentos.registry.store import Registry

    return Registry(Home.find().registry)


def _read(path: str, content: bytes) -> RunRule:
    from agentos.rules.document import rule_of

    return rule_of(path.removesuffix("/resource.toml"), _parsed(path, content))


def _parsed(path: str, content: bytes) -> Mapping[str, Any]:
    from agentos.rules.document import document_of

    return document_of(path, content)


def _rules_of(registry: Registry) -> dict[str, RunRule]:
    from agentos.domain import is_rule_file
    from agentos.rules.document import read_rule, rule_name

    stable = registry.stable()
    files = {**registry.files(stable, Kind.RULE.value), **registry.files(stable, Kind.SKILL.value)}
    return {rule_name(path): read_rule(path, files[path]) for path in sorted(files) if is_rule_file(path)}


def _shipped() -> dict[str, tuple[RunRule, bytes]]:
    from agentos.shipped import folder

    found = {}
    for path in sorted((folder("registry") / "rules").glob("*/resource.toml")):
        name = f"rule/{path.parent.name}"
        content = path.read_bytes()
        found[name] = (_read(f"{name}/resource.toml", content), content)
    return found


def _found(name: str) -> tuple[str, RunRule]:
    """A rule of the home, else one that ships. Raises NotFound."""
    known = {**{key: rule for key, (rule, _) in _shipped().items()}, **_rules_of(_registry())}
    for key in (name, f"rule/{name}"):
        if key in known:
            return key, known[key]
    hint = meant(
        name, [part for key in known for part in (key, key.removeprefix("rule/"))], "Try: `agentos rule list`"
    )
    raise NotFound(f"There is no rule '{name}', and no file of that name. {hint}")


def _document(given: str, name: str) -> tuple[ResourceId, bytes]:
    """What is to stand in the registry for a file or the name of a rule that ships."""
    import tomlkit
    import tomlkit.exceptions

    path = Path(given)
    if path.is_file():
        content = _bounded(path)
        if path.suffix in (".yaml", ".yml"):
            try:
                content = tomlkit.dumps(dict(_parsed(given, content))).encode()
            except tomlkit.exceptions.ConvertError:
                raise UserError(
                    f"{given} holds an empty value, which TOML has not: leave that key out"
                ) from None
        stem = path.parent.name if path.name == "resource.toml" else path.stem
        return ResourceId(Kind.RULE, name or stem.replace("_", "-").lower()), content
    key = given if given.startswith("rule/") else f"rule/{given}"
    if key not in (shipped := _shipped()):
        names = ", ".join(one.partition("/")[2] for one in shipped)
        raise NotFound(f"'{given}' is no file, and no rule that ships: those are {names}")
    return ResourceId(Kind.RULE, name or key.partition("/")[2]), shipped[key][1]


def _bounded(path: Path) -> bytes:
    from agentos.rules.document import DOCUMENT_MAX
    from agentos.sources import read_bounded

    return read_bounded(path, DOCUMENT_MAX, "a rule")


def _version(registry: Registry, name: str) -> str:
    from agentos.resources import parse_id

    version = registry.latest(parse_id("/".join(name.split("/")[:2])))
    return version.number if version else "?"


def _facts(rule: RunRule) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "digest": rule.digest,
        "description": rule.description,
        "on": rule.on.value,
        "when": rule.when.source.strip(),
        "enforce": rule.enforce.value,
        "advice": rule.advice,
        "replace": dict(rule.replace),
        "acts_on_error": rule.acts_on_error,
    }


def _hit(hit: RuleHitInRun) -> dict[str, Any]:
    return {"step": hit.step, "reason": hit.reason, "times": hit.times}


def _result(run: Run) -> str:
    return run.outcome.result.value if run.outcome else "under way"
