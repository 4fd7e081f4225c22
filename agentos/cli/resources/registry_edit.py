"""What ``agentos registry edit`` and ``retire`` do before the registry sees it: an editor, a file, a question."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agentos.cli.output import confirm
from agentos.daemon.views.evolution_view import version_of as version_of
from agentos.domain import Evolution, Kind, ResourceId
from agentos.errors import AgentOSError, ErrorKind, Invalid, NotFound, UserError
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.registry.promotion import RevertPlan
    from agentos.registry.store import Registry


def place(name: str) -> tuple[ResourceId, str]:
    """The resource and the registry path of the file that ``KIND/NAME[/PATH]`` means."""
    from agentos.resources import parse_id
    from agentos.resources.documents import MAIN_FILE

    parts = name.strip("/").split("/", 2)
    resource = parse_id("/".join(parts[:2]))
    return resource, f"{resource}/{parts[2] if len(parts) > 2 else MAIN_FILE[resource.kind]}"


@contextmanager
def changes(
    present: Mapping[str, bytes], resource: ResourceId, path: str, file: Path | None
) -> Iterator[dict[str, bytes | None]]:
    """What differs between the registry and what the person gives; empty when nothing does."""
    if file is not None:
        yield _differing(present, _given(present, resource, path, file))
        return
    with edited(present.get(path, b""), Path(path).name) as typed:
        yield _differing(present, {path: typed})


def _given(
    present: Mapping[str, bytes], resource: ResourceId, path: str, file: Path
) -> dict[str, bytes | None]:
    from agentos.resources.documents import FILE_MAX
    from agentos.sources import read_bounded

    if file.is_dir():
        from agentos.registry.skill_folders.folder import read

        content = read(file)
        if faults := [*content.faults, *content.left_out]:
            raise Invalid(str(file), faults)
        given = {f"{resource}/{name}": data for name, data in content.files.items()}
        return {**dict.fromkeys(present), **given}
    return {path: read_bounded(file, FILE_MAX, "a resource's file")}


def _differing(present: Mapping[str, bytes], wanted: dict[str, bytes | None]) -> dict[str, bytes | None]:
    from agentos.resources import path_fault

    if faults := [fault for name in wanted if (fault := path_fault(name))]:
        raise Invalid("The change was refused", faults)
    return {name: data for name, data in wanted.items() if present.get(name) != data}


def author() -> str:
    """The login of the person who types, as the kernel knows it."""
    from agentos.evolver.promote.consent import login

    return login()


@contextmanager
def edited(content: bytes, name: str, option: str = "--file") -> Iterator[bytes]:
    """What the person's editor makes of it. Raises UserError.

    It is their work: where what is done with it is refused, or they turn back, it is kept, and told where.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        command = shlex.split(editor)
    except ValueError as error:
        raise UserError(
            f"$VISUAL or $EDITOR is no command ({error}); found: {editor}", kind=ErrorKind.NOT_INSTALLED
        ) from None
    if not command:
        raise UserError(
            f"No editor is set: set $EDITOR, or give the new content with {option}.",
            kind=ErrorKind.NOT_INSTALLED,
        )
    with tempfile.TemporaryDirectory(prefix="agentos-edit-") as folder:
        file = Path(folder) / name
        file.write_bytes(content)
        try:
            done = subprocess.run([*command, str(file)], check=False)
        except OSError as error:
            raise UserError(f"The editor '{editor}' cannot be started: {error.strerror}") from None
        if done.returncode:
            raise UserError(f"The editor ended with {done.returncode}; nothing was changed.")
        typed = file.read_bytes()
    try:
        yield typed
    except (AgentOSError, KeyboardInterrupt, EOFError):
        if typed != content:
            kept = Path(tempfile.mkdtemp(prefix="agentos-edit-")) / name
            kept.write_bytes(typed)
            print(f"What you typed is kept in {kept}.", file=sys.stderr)
        raise


def retire(registry: Registry, resource: ResourceId, reason: str, *, yes: bool) -> str:
    """Ask, and take it out; what to say then. Raises NotFound, and UserError where it is out already."""
    if resource not in registry.names(registry.stable()):
        if registry.latest(resource) is None:
            from agentos.resources import unknown

            raise unknown(resource, registry.names(registry.stable()))
        raise UserError(f"{resource} is retired already.", kind=ErrorKind.DECIDED)
    confirm(f"Retire {resource}?", yes=yes)
    registry.retire(resource, reason or "by hand")
    return f"{resource} is retired. To bring it back: `agentos registry revert {resource}`"


def unknown_in(registry: Registry, resource: ResourceId) -> list[str]:
    """What an agent or a model names beside what it stands on, and nothing bears today: one sentence for each."""
    from agentos.resources import read, unknown

    stable = registry.stable()
    known = registry.names(stable)
    wanted: list[ResourceId] = []
    tools: list[str] = []
    if resource.kind in (Kind.AGENT, Kind.MODEL) and resource in known:
        settings = read(resource, registry.files(stable, str(resource))).settings
        for key, kind in (("skills", Kind.SKILL), ("agents", Kind.AGENT), ("fallbacks", Kind.MODEL)):
            wanted += [ResourceId(kind, name) for name in settings.get(key, ()) if "*" not in name]
        if resource.kind is Kind.AGENT and settings["model"] != "default":
            wanted.append(ResourceId(Kind.MODEL, settings["model"]))
        tools = [name for name in settings.get("tools", ()) if "*" not in name]
    found = [str(unknown(name, known)) for name in wanted if name not in known]
    for tool in tools:
        try:
            registry.find_tool(stable, tool)
        except UserError as error:
            found.append(str(error))
    return found


def watched_for(registry: Registry, resource: ResourceId) -> Evolution | None:
    """The evolution that made what stands there, None where nobody knows of one."""
    from agentos.ledger.postgres.address import has_ledger
    from agentos.ledger.reading import Reader

    version, ledger = registry.latest(resource), Home.find().ledger
    if version is None or not version.evolution or not has_ledger(ledger):
        return None
    with closing(Reader(ledger)) as reader:
        try:
            return reader.get(Evolution, version.evolution)
        except NotFound:
            return None


def warnings(plan: RevertPlan, target: str) -> list[str]:
    """What a person should know before a revert; raises UserError where undoing a version would remove it."""
    gone = [str(resource) for resource, digest in plan.contents.items() if not digest]
    name, _, number = target.partition("@")
    if gone and "/" in target:
        first = f"{name}@{number}" if number else f"the newest version of {name}"
        back = (
            f"; to go back to its content: `agentos registry revert {name} --to {number}`" if number else ""
        )
        raise UserError(
            f"Nothing stood before {first}, so undoing it would remove {gone[0]}. "
            f"To remove it: `agentos registry retire {gone[0]}`{back}."
        )
    removed = [f"This removes {', '.join(gone)}: there was nothing before."] if gone else []
    aside = f"Set aside, because it has another form: {', '.join(plan.set_aside)}"
    return removed + ([aside] if plan.set_aside else [])


def evolution_of(registry: Registry, fragment: str) -> str:
    """The promoted evolution whose id starts or ends so; the text itself where none does. Raises UserError for several."""
    ids = {promotion.evolution for promotion in registry.promotions()}
    if fragment in ids or not fragment:
        return fragment
    starts = (fragment, f"evo-{fragment}")
    found = sorted(one for one in ids if one.startswith(starts) or one.endswith(fragment))
    if len(found) > 1:
        raise UserError(
            f"{fragment!r} could be any of {', '.join(found[:5])}: give more letters of the evolution's id",
            kind=ErrorKind.AMBIGUOUS,
        )
    return found[0] if found else fragment


def target_of(text: str) -> tuple[ResourceId, str | None]:
    """The resource and the version that ``KIND/NAME[@VERSION]`` means."""
    from agentos.resources import parse_id

    name, _, number = text.partition("@")
    return parse_id(name), number or None


def plan_of(registry: Registry, target: str, to: str | None) -> RevertPlan:
    """What a person means to undo or to go back to. Raises UserError and NotFound."""
    if "/" not in target:
        if to:
            raise UserError("--to goes with KIND/NAME, not with an evolution.")
        return registry.plan_undo_evolution(evolution_of(registry, target))
    resource, number = target_of(target)
    if to:
        if number:
            raise UserError(
                f"Give one version: {resource} --to {to}, or {resource}@{number} to undo that.",
                kind=ErrorKind.USAGE,
            )
        return registry.plan_restore(resource, to)
    return registry.plan_undo(resource, number or version_of(registry, resource, None).number)


def sole_evolution(registry: Registry, plan: RevertPlan) -> str:
    """The evolution that the plan undoes as a whole, "" when it does not."""
    from agentos.registry.git.versions import versions_of

    name, _, number = plan.trailers.get("Reverts", "").partition("@")
    if not number:
        return ""
    version = version_of(registry, *target_of(f"{name}@{number}"))
    made = versions_of(registry.repository.commit(version.commit))
    return version.evolution or "" if len(made) == 1 else ""
