"""``agentos registry``: everything that shapes an agent, with its versions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentos.cli.group import AsJson, Yes, noun
from agentos.cli.output import (
    LIMIT_MAX,
    confirm,
    moment_text,
    print_diff,
    print_json,
    print_table,
    print_text,
    tell_held,
    tell_outdated,
)
from agentos.cli.resources import registry_edit
from agentos.domain import EvolutionEnding, EvolutionState, Kind, ResourceId, Snapshot
from agentos.errors import ErrorKind, Unavailable, UserError
from agentos.home import Home
from agentos.ledger.postgres.address import has_ledger
from agentos.resources import examine, parse_id, unknown
from agentos.resources.documents import MAIN_FILE

if TYPE_CHECKING:
    from agentos.registry.check import Report
    from agentos.registry.store import Registry

app = noun(
    "Look at, edit and undo versions of what shapes agents: prompts, tools, skills, memories, rules and others."
)

Reason = Annotated[str, typer.Option("--reason", "-m", metavar="TEXT", help="Why; stays in the history.")]
Name = Annotated[str, typer.Argument(metavar="KIND/NAME")]
Target = Annotated[str, typer.Argument(metavar="KIND/NAME[@VERSION]")]


@app.command("list")
def list_(
    kind: Annotated[Kind | None, typer.Option(metavar="|".join(Kind), help="Only this kind.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the resources with their newest versions."""
    from agentos.cli.resources.skill_sync import told_of
    from agentos.daemon.views.evolution_view import resource_lines

    lines = resource_lines(Home.find(), _open(), kind)
    if as_json:
        print_json(lines)
        return
    tell_outdated(Home.find())
    print_table(
        ("resource", "version", "from", "when", "", "last change"),
        (
            (
                line["resource"],
                line["version"] or "?",
                line["origin"] or "?",
                f"{line['at'].astimezone():%Y-%m-%d %H:%M}" if line["at"] else "",
                ", ".join(
                    filter(None, ("pinned" if line["pinned"] is not None else "", told_of(line["folder"])))
                ),
                line["reason"] or "",
            )
            for line in lines
        ),
        empty="None of that kind: agentos registry list" if kind else "None: agentos registry upgrade",
    )


@app.command()
def show(target: Target, as_json: AsJson = False) -> None:
    """Show a resource: what it says of itself, its files, its text."""
    from agentos.daemon.views.evolution_view import files_of, resource_whole
    from agentos.registry import promotion

    registry = _open()
    resource, number = registry_edit.target_of(target)
    version = registry_edit.version_of(registry, resource, number)
    files = files_of(registry, resource, number)
    found = examine(resource, files)
    fixed = promotion.why_fixed(registry.repository, registry.stable(), resource)
    if as_json:
        print_json(resource_whole(registry, resource, number))
        return
    print_text(f"{resource}@{version.number}", "bold")
    print_text(found.resource.description if found.resource else "")
    if found.resource and (form := found.resource.settings.get("state", 1)) != 1:
        print_text(f"{'has' if resource.kind is Kind.MEMORY else 'reads memories of'} form {form}")
    print_text(
        f"{version.origin} on {moment_text(version.created_at)}: {version.reason}\n"
        f"{fixed.reason if fixed else 'may evolve'}\ncommit {version.commit}, content {version.digest}",
        "dim",
    )
    for path, content in sorted(files.items()):
        print_text(f"{path}  {len(content)} bytes", "cyan")
    for fault in found.faults:
        print_text(fault, "red")
    for warning in found.warnings:
        print_text(warning, "yellow")
    text = files.get(f"{resource}/{MAIN_FILE[resource.kind]}", b"").decode(errors="replace")
    print_text(f"\n{text.rstrip()}")


@app.command()
def log(
    target: Annotated[str | None, typer.Argument(metavar="KIND/NAME")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=LIMIT_MAX, help="How many versions.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show the versions of a resource, or the newest changes of all; the newest first."""
    registry = _open()
    if target is not None:
        resource = parse_id(target)
        versions = registry.versions(resource)[:limit]
        if not versions:
            raise unknown(resource, registry.names(registry.stable()))
        if as_json:
            print_json(versions)
            return
        print_table(
            ("version", "parent", "from", "when", "evolution", "reason"),
            (
                (
                    version.number if version.digest else f"{version.number} (retired)",
                    version.parent or "",
                    version.origin,
                    f"{version.created_at.astimezone():%Y-%m-%d %H:%M}",
                    version.evolution or "",
                    version.reason,
                )
                for version in versions
            ),
            empty="",
            below=True,
        )
        return
    from agentos.registry.git import versions as history

    entries = history.log(registry.repository, limit)
    if as_json:
        print_json(entries)
        return
    print_table(
        ("commit", "when", "by", "from", "versions", "what"),
        (
            (
                entry.commit[:10],
                f"{entry.at.astimezone():%Y-%m-%d %H:%M}",
                entry.author,
                entry.origin,
                _few(entry.versions),
                entry.subject,
            )
            for entry in entries
        ),
        empty="Nothing yet. Try: agentos init",
        below=True,
    )


@app.command()
def diff(
    target: Annotated[str, typer.Argument(metavar="KIND/NAME[@VERSION]|EVOLUTION")],
    since: Annotated[
        str | None, typer.Option("--from", metavar="VERSION", help="Compare with this version.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a version changed against its parent (or --from), or what an evolution changed."""
    from agentos.registry import promotion
    from agentos.registry.git import versions as history

    registry = _open()
    if "/" not in target:
        if since:
            raise UserError("--from goes with KIND/NAME, not with an evolution.", kind=ErrorKind.USAGE)
        commit = promotion.evolution_commit(registry.repository, registry_edit.evolution_of(registry, target))
        old, new, path = str(commit.parent_ids[0]), str(commit.id), ""
    else:
        resource, number = registry_edit.target_of(target)
        version = registry_edit.version_of(registry, resource, number)
        before = since or version.parent
        old = registry_edit.version_of(registry, resource, before).commit if before else _NOTHING
        new, path = version.commit, str(resource)
    text = history.diff(registry.repository, old, new, path)
    if as_json:
        print_json({"from": old, "to": new, "diff": text})
    else:
        print_diff(text or "No difference.\n")


_NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name of the empty tree


@app.command()
def edit(
    name: Annotated[str, typer.Argument(metavar="KIND/NAME[/PATH]")],
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="PATH", help="Take the content from this file or folder."),
    ] = None,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Change a resource in your editor (or from --file); it becomes a new version."""
    from agentos.registry.git.reading import readable
    from agentos.resources import examine

    registry = _open()
    resource, path = registry_edit.place(name)
    base = registry.stable()
    present = readable(registry.repository, base.tree, str(resource))  # so that damage can be mended
    with registry_edit.changes(present, resource, path, file) as changes:
        if not changes:
            print_text("Nothing was changed.")
            return
        preview = registry.repository.write_tree(base.tree, dict(changes))
        _show(registry, base, str(preview), str(resource))
        confirm("Make this a new version?", yes=yes or file is not None)
        reason = reason or f"Edit {resource}"
        registry.commit(changes, reason, "edit", base=base, author=registry_edit.author())
    _say_now(registry, [resource])
    if stands := registry.files(registry.stable(), str(resource)):
        for warning in (*examine(resource, stands).warnings, *registry_edit.unknown_in(registry, resource)):
            print_text(warning, "yellow")


@app.command("revert")
def revert_(
    target: Annotated[str, typer.Argument(metavar="KIND/NAME[@VERSION]|EVOLUTION")],
    to: Annotated[
        str | None, typer.Option("--to", metavar="VERSION", help="Go back to this version's content.")
    ] = None,
    reason: Reason = "",
    yes: Yes = False,
) -> None:
    """Undo a version (the newest if none is given) or an evolution; shows the diff and asks.

    The result is a new version with the old content; nothing is ever removed from the history.
    """
    registry = _open()
    plan = registry_edit.plan_of(registry, target, to)
    warnings = registry_edit.warnings(plan, target)
    evolution = (
        plan.trailers.get("Reverts", "")
        if "/" not in target
        else registry_edit.sole_evolution(registry, plan)
    )
    if plan.contents and evolution and has_ledger(Home.find().ledger):
        from agentos.cli.evolutions.evolution import revert as revert_evolution

        revert_evolution(evolution, reason or "no reason given", yes)  # so that the ledger knows it too
        return
    if not plan.contents:
        print_text("It has that content already; nothing was changed.")
        return
    _show(registry, plan.base, plan.tree, "")
    for warning in warnings:
        print_text(warning, "yellow")
    confirm(f"{plan.subject}?", yes=yes)
    registry.revert(plan, reason, author=registry_edit.author())
    _say_now(registry, list(plan.contents))


@app.command()
def retire(name: Name, reason: Reason = "", yes: Yes = False) -> None:
    """Retire a resource: runs get it no more; its history stays, and `registry revert` brings it back."""
    print_text(registry_edit.retire(_open(), parse_id(name), reason, yes=yes), "green")


@app.command()
def pin(name: Name, reason: Reason = "") -> None:
    """Pin a resource: no evolution changes it."""
    resource, registry = parse_id(name), _open()
    watched = registry_edit.watched_for(registry, resource)
    registry.pin(resource, reason)
    if watched is not None and watched.state is EvolutionState.PROBATION:
        print_text(
            f"The pin ends the watch of {watched.id}, which made this version; an unpin does not take it up again. "
            f"To take the version back: agentos evolution revert {watched.id}",
            "yellow",
        )
    print_text(f"{resource} is pinned. To allow evolutions again: agentos registry unpin {resource}", "green")


@app.command()
def unpin(name: Name) -> None:
    """Unpin a resource: evolutions may change it again."""
    resource, registry = parse_id(name), _open()
    was_pinned = str(resource) in registry.pinned()
    registry.unpin(resource)
    print_text(f"{resource} is pinned no longer.", "green")
    watched = registry_edit.watched_for(registry, resource)
    if watched is not None and was_pinned and watched.ending is EvolutionEnding.PINNED:
        print_text(
            f"The pin ended the watch of {watched.id}, which made this version, and it is not taken up again. "
            f"To take the version back: agentos evolution revert {watched.id}",
            "yellow",
        )


@app.command()
def check(
    mirror: Annotated[
        bool, typer.Option("--mirror", help="Fetch the mirror that the settings name, and check that.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every object, resource and version. Exit code 1 when something is wrong."""
    registry = _open()
    report = _checked_mirror() if mirror else registry.check()
    report = report if mirror else replace(report, faults=(*report.faults, *_unknown_promotions(registry)))
    if as_json:
        print_json(report)
    else:
        for warning in (*report.warnings, *report.assumed):
            print_text(warning, "yellow")
        for fault in report.faults:
            print_text(fault, "red")
        if report.repaired:
            print_text(f"{report.repaired} missing version tags were written again.", "yellow")
        if not report.faults:
            print_text(f"The registry is whole: {report.resources} resources.", "green")
    if report.faults:
        raise typer.Exit(1)


def _checked_mirror() -> Report:
    from agentos.registry.mirror import Mirror
    from agentos.settings import load_settings

    home = Home.find()
    url = load_settings(home.settings).registry.mirror
    if not url:
        raise UserError('no mirror is set: [registry] mirror = "…" in agentos.toml')
    return Mirror(home.registry, url).check()


def _unknown_promotions(registry: Registry) -> list[str]:
    """Commits that say an evolution made them, of which the home's ledger knows nothing."""
    from agentos.daemon.upkeep.auditing import began_with, promotion_faults
    from agentos.ledger.integrity import LedgerSnapshot

    ledger = Home.find().ledger
    if not has_ledger(ledger):
        return []
    try:
        with LedgerSnapshot(ledger) as reader:
            return list(promotion_faults(reader, registry.promotions(began_with(reader)), ledger))
    except Unavailable as error:
        return [str(error)]


@app.command()
def wheels(
    name: Annotated[str | None, typer.Argument(metavar="KIND/NAME")] = None,
    relock: Annotated[bool, typer.Option("--relock", help="Resolve anew, as a new version.")] = False,
    as_json: AsJson = False,
    again: Annotated[bool, typer.Option("--again", hidden=True)] = False,  # before 0.3
) -> None:
    """Show the Python wheels that tools depend on, and fetch those that are missing here."""
    from agentos.cli.resources import registry_wheels

    registry = _open()
    resource = parse_id(name) if name else None
    if resource is not None:
        registry_edit.version_of(registry, resource, None)  # raises NotFound
    if relock or again:
        if resource is None:
            raise UserError("--relock goes with KIND/NAME: one resource at a time.")
        registry_wheels.lock_again(registry, resource)
        if not as_json:
            _say_now(registry, [resource])
    registry_wheels.show(registry, resource, as_json=as_json)


@app.command()
def upgrade(
    keep: Annotated[
        list[str] | None, typer.Option(metavar="KIND/NAME", help="Keep it as it is here.")
    ] = None,
    take: Annotated[list[str] | None, typer.Option(metavar="KIND/NAME", help="Take it as it ships.")] = None,
    as_json: AsJson = False,
) -> None:
    """Merge what this release ships, without losing what was learnt. Exit code 1 on conflicts."""
    from agentos import __version__, shipped
    from agentos.registry.upgrade import UpgradeChoice
    from agentos.resources import resources_of

    registry, ships = _open(), shipped.seed_files()
    choice = UpgradeChoice([parse_id(name) for name in keep or []], [parse_id(name) for name in take or []])
    if both := {*choice.keep} & {*choice.take}:
        raise UserError(f"{min(both)} can be kept or taken, not both.", kind=ErrorKind.USAGE)
    known = {*registry.names(registry.stable()), *resources_of(ships)}
    for resource in (*choice.keep, *choice.take):
        if resource not in known and not registry.latest(resource):
            raise unknown(resource, known)
    done = registry.upgrade(ships, __version__, choice)
    if as_json:
        print_json(done)
    else:
        print_table(
            ("resource", "what", "why"),
            ((item.resource, item.action, item.detail) for item in done.items),
            empty="Nothing that ships has changed.",
            wrap=True,
        )
    conflicts = [str(item.resource) for item in done.items if item.action == "conflict"]
    if conflicts and not as_json:
        options = f"--keep {conflicts[0]} or --take {conflicts[0]}"
        print_text(f"Conflicts were left as they are here. To settle: agentos registry upgrade {options}")
    if conflicts:
        raise typer.Exit(1)


# --- shared -----------------------------------------------------------------------------------


def _open() -> Registry:
    from agentos.registry.store import Registry

    return Registry(Home.find().registry)


def _show(registry: Registry, base: Snapshot, tree: str, path: str) -> None:
    from agentos.registry.git import versions as history

    try:
        print_diff(history.diff(registry.repository, base.tree, tree, path))
    except Unavailable as error:
        print_text(f"No diff can be shown: {error}", "yellow")


def _say_now(registry: Registry, resources: list[ResourceId]) -> None:
    for resource in resources:
        if version := registry.latest(resource):
            retired = "" if version.digest else " (retired)"
            print_text(f"{resource} is now {version.number}{retired}: {version.reason}", "green")
    tell_held(Home.find())


def _few(texts: tuple[str, ...]) -> str:
    return ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
