"""``agentos sandbox``: what holds tasks on this machine, found out by trying; images and leftovers."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentos.cli.group import AsJson, Yes, noun
from agentos.cli.output import confirm, print_json, print_table, print_text
from agentos.errors import Unavailable, UserError
from agentos.home import Home

if TYPE_CHECKING:
    from agentos.sandboxes.probe import Guarantee
    from agentos.settings import Settings

app = noun("Check the sandbox that tasks run in on this machine; build and remove container images.")


@dataclass(frozen=True, slots=True)
class _Found:
    """One sandbox, tried."""

    sandbox: str
    level: str
    claims: list[Guarantee]
    remark: str
    seconds: float

    @property
    def broken(self) -> list[str]:
        return [claim.promise for claim in self.claims if not claim.held]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the sandboxes that can be used here, and the container images that were built."""
    from agentos.sandboxes.bubblewrap.launch import require
    from agentos.settings import load_settings

    home = Home.find()
    settings = load_settings(home.settings)
    rows, found = [], []
    try:
        rows.append(("bubblewrap", "there", require(settings.run_uid)))
    except Unavailable as error:
        rows.append(("bubblewrap", "missing", str(error)))
    try:
        from agentos.sandboxes.docker.engine import DockerEngine
        from agentos.sandboxes.docker.image import images

        with closing(DockerEngine(timeout_s=10)) as engine:
            version, found = engine.version(), images(engine)
        built = "there" if any(image.current and image.way != "base" for image in found) else "no image"
        rows.append(("docker", built, f"engine {version['Version']} at {engine.address}"))
    except Unavailable as error:
        rows.append(("docker", "missing", str(error)))
    rows.append(_cluster(settings))
    if as_json:
        keys = ("sandbox", "state", "detail")
        print_json(
            {
                "setting": settings.sandbox,
                "sandboxes": [dict(zip(keys, row, strict=True)) for row in rows],
                "images": found,
            }
        )
        return
    print_table(("sandbox", "state", "detail"), rows, empty="", wrap=True)
    print_text(
        f"setting: sandbox = {settings.sandbox}. Type `agentos sandbox check` to try what holds.", "dim"
    )
    if found:
        mine = [(it.name, it.way, f"{it.size >> 20} MB", "yes" if it.current else "old") for it in found]
        print_table(("image", "from", "size", "current"), mine, empty="")


def _cluster(settings: Settings) -> tuple[str, str, str]:
    """What is set up for pods; the cluster is not asked."""
    try:
        from agentos.sandboxes.kubernetes.sandbox import reached

        with closing(reached(settings.kubernetes)) as cluster:
            return "kubernetes", "set up", f"namespace {cluster.namespace} at {cluster.url}"
    except Unavailable as error:
        return "kubernetes", "missing", str(error)


@app.command()
def profile() -> None:
    """Print the seccomp profile that the nodes of a cluster need for pods (docs/use/kubernetes.md)."""
    from agentos.sandboxes.docker.profile import pod_profile

    print_json(pod_profile())


@app.command()
def build(
    from_host: Annotated[
        bool, typer.Option("--from-host", help="From this machine's own Python; needs no image registry.")
    ] = False,
) -> None:
    """Build the container image of this version, unless it is there. Prints its name.

    It is named by what is in it, so the same content is built once.
    """
    from agentos.sandboxes.docker.engine import DockerEngine
    from agentos.sandboxes.docker.image import build_from_dockerfile, build_from_host

    began = time.monotonic()
    engine = DockerEngine(timeout_s=600)
    try:
        name = build_from_host(engine) if from_host else build_from_dockerfile(engine)
    except Unavailable as error:
        hint = "" if from_host else ". Where no image registry can be reached, add --from-host."
        raise Unavailable(f"{str(error).rstrip('.')}{hint}") from None
    finally:
        engine.close()
    print_text(f"{name} ({time.monotonic() - began:.1f} s)")


@app.command()
def check(
    sandbox: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="bubblewrap, docker, kubernetes or a plug-in's.  [default: what the settings may use]",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only what the daemon tries before its first job.")
    ] = False,
    run_uid: Annotated[
        int | None,
        typer.Option(
            metavar="UID",
            min=1,
            help="As root: the user id to try bubblewrap with.  [default: the settings' run_uid]",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start real sandboxes, try from inside what they must prevent and must do, and print what held.

    The daemon does the first half before its first job and runs none where a promise fails. Exit
    code 1 when one does not hold, or when there can be no sandbox (the message says what to type).
    """
    from agentos.plugins import registry
    from agentos.sandboxes.choice import AUTO, SANDBOXES
    from agentos.settings import load_settings

    home = Home.find()
    settings = load_settings(home.settings)
    wanted = sandbox or settings.sandbox
    if wanted not in (AUTO, *(known := registry.names("sandboxes"))):
        raise UserError(f"There is no sandbox '{wanted}': use {' or '.join(known)}.")
    found: list[_Found] = []
    missing: list[str] = []
    for name in SANDBOXES if wanted == AUTO else [wanted]:
        try:
            found.append(_try(name, home.root, run_uid or settings.run_uid, quick=quick))
        except Unavailable as error:
            missing.append(f"{name}: {error}")
    if not found:
        raise Unavailable(" ".join(missing))
    if as_json:
        print_json({"sandboxes": [asdict(it) for it in found], "missing": missing})
    else:
        for it in found:
            _show(it)
        for sentence in missing:
            print_text(sentence, "dim")
    if any(it.broken for it in found):
        raise typer.Exit(1)


def _try(name: str, root: Path, run_uid: int | None, *, quick: bool) -> _Found:
    from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
    from agentos.sandboxes.choice import made as make
    from agentos.sandboxes.conformance import check as conform

    began = time.monotonic()
    made = make(name, root, run_uid)
    try:
        claims = list(made.examine())
        level = made.reaches if all(claim.held for claim in claims) else "none"  # as the daemon decides
        if not quick and level != "none":
            claims += conform(made, grouped=not made.lacks)
        remark = _groups(made.groups) if isinstance(made, Bubblewrap) else ""
    finally:
        made.close()
    return _Found(name, level, claims, remark, round(time.monotonic() - began, 3))


def _groups(groups: Any) -> str:
    """What holds memory and CPU of a bubblewrap box."""
    if groups.parents:
        return f"control groups version {groups.version}: {', '.join(sorted(groups.controllers))}"
    return str(groups.lacks)


def _show(found: _Found) -> None:
    rows = [
        ("yes" if claim.held else "NO", f"A job {claim.promise}.", claim.detail) for claim in found.claims
    ]
    print_table(("holds", "promise", "found"), rows, empty="Nothing was tried.", wrap=True)
    print_text(f"{found.sandbox}: level {found.level}, tried in {found.seconds:.1f} s. {found.remark}")
    if found.broken:
        print_text(
            f"{found.sandbox} does not hold here: {'no task will run' if found.level == 'none' else 'tasks run'} in it. "
            f"Broken: {'; '.join(found.broken)}.",
            "red",
        )


@app.command()
def prune(yes: Yes = False) -> None:
    """Remove sandboxes that killed daemons left, and container images of other versions."""
    from agentos.sandboxes.docker import image
    from agentos.sandboxes.docker.engine import DockerEngine
    from agentos.sandboxes.reaper import leftovers, reap

    home = Home.find()
    left = leftovers(home.root)
    engine = DockerEngine(timeout_s=60)
    try:
        try:
            old = [it for it in image.images(engine) if not it.current]
        except Unavailable as error:
            old = []
            print_text(f"No images were looked at: {error}", "dim")
        rows = [(it.kind, str(it)) for it in left] + [
            ("image", f"{it.name}, {it.size >> 20} MB") for it in old
        ]
        if not rows:
            print_text("There is nothing to remove.")
            return
        print_table(("kind", "what"), rows, empty="", wrap=True)
        confirm("Remove these?", yes=yes)
        stayed = reap(left)
        gone = image.prune(engine) if old else []
    finally:
        engine.close()
    print_text(f"{len(left) - len(stayed) + len(gone)} of {len(rows)} removed.")
    if stayed or len(gone) < len(old):
        print_text("The others are in use; try again when the daemon has stopped.", "yellow")
