"""The image that containers are made of: named by what is in it, so that equal content is built once.

Two ways lead to one: ``sandboxes/Dockerfile`` where a registry of images is in reach, and the
host's own Python (``image_host.py``) where none is. Nothing is ever tagged ``latest``.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from agentos import shipped
from agentos.errors import Unavailable, to_type
from agentos.sandboxes.docker import image_host
from agentos.sandboxes.docker.engine import DockerEngine, answering, docker
from agentos.sandboxes.plainfiles import write_tar

REPOSITORY = "agentos-sandbox"
LABEL = "agentos.image"
KERNEL = "/opt/agentos"
_ON_TOP = "FROM {base}\nCOPY agentos {place}/agentos\n"
_EPOCH = "1970-01-01T00:00:00Z"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Image:
    """One of ours in the engine. ``way`` is ``host``, ``base`` (below one of those) or ``dockerfile``."""

    name: str
    id: str
    way: str
    size: int
    current: bool


def build_from_host(engine: DockerEngine) -> str:
    """The name of the image made of this host's Python; built unless it is there.

    Two steps, since the worker changes with every version of the program and the rest hardly ever.
    """
    below = image_host.collect()
    name, base = _host_names(below)
    if not _present(engine, name):
        if not _present(engine, base):
            with answering():
                for line in engine.api.load_image(_archive(base, image_host.layer(below))):
                    _must_be_well(line)
        files = image_host.compiled(image_host.worker(), KERNEL)
        _build(engine, name, "host", files | {"Dockerfile": _ON_TOP.format(base=base, place=KERNEL).encode()})
    return name


def build_from_dockerfile(engine: DockerEngine) -> str:
    """The name of the image that ``sandboxes/Dockerfile`` describes; built unless it is there."""
    context = _context()
    name = f"{REPOSITORY}:{_digest(context)}"
    if not _present(engine, name):
        _build(engine, name, "dockerfile", context)
    return name


def _build(engine: DockerEngine, name: str, way: str, context: Mapping[str, bytes]) -> None:
    with answering():
        lines = engine.api.build(
            fileobj=io.BytesIO(write_tar(context)),
            custom_context=True,
            tag=name,
            labels={LABEL: way},
            rm=True,
            forcerm=True,
            decode=True,
        )
        for line in lines:
            _must_be_well(line)


def _must_be_well(line: Mapping[str, Any]) -> None:
    if "error" in line:
        raise Unavailable(f"the image could not be built: {str(line['error']).strip()[-500:]}")


def find(engine: DockerEngine) -> str:
    """The name of the image that belongs to this installation. Raises Unavailable if it was not built."""
    for name in _names()[:2]:
        if _present(engine, name):
            return name
    raise Unavailable(
        "There is no container image of this version yet: type ",
        to_type("agentos sandbox build"),
        ", or, where no image registry can be reached, ",
        to_type("agentos sandbox build --from-host"),
        ".",
    )


def _names() -> tuple[str, str, str]:
    """What the images of this installation would be called: from the host, by Dockerfile, below the first."""
    host, base = _host_names(image_host.collect())
    return host, f"{REPOSITORY}:{_digest(_context())}", base


def _host_names(below: image_host.ImageContent) -> tuple[str, str]:
    """Of the image, and of the one below it."""
    base = f"{REPOSITORY}:base-{below.digest()}"
    return f"{REPOSITORY}:{_digest(image_host.worker() | {'base': base.encode()})}", base


def images(engine: DockerEngine) -> list[Image]:
    """Ours that the engine holds, the current ones marked."""
    names = _names()
    with answering():
        found = engine.api.images(filters={"label": LABEL})
    rows = [(row, row["RepoTags"] or ["<none>"]) for row in found]  # more than one where it was pushed
    return [
        Image(
            name=next((tag for tag in tags if tag in names), tags[0]),
            id=row["Id"],
            way=row["Labels"][LABEL],
            size=row["Size"],
            current=any(tag in names for tag in tags),
        )
        for row, tags in rows
    ]


def prune(engine: DockerEngine) -> list[Image]:
    """Remove ours that no container uses and that are not current; those that went."""
    gone = []
    for image in images(engine):
        if image.current:
            continue
        try:
            with answering():
                engine.api.remove_image(image.id)
        except Unavailable:
            continue  # a container still uses it
        gone.append(image)
    return gone


def _present(engine: DockerEngine, name: str) -> bool:
    with answering():
        try:
            engine.api.inspect_image(name)
        except docker.errors.ImageNotFound:
            return False
    return True


def digest_of(engine: DockerEngine, name: str) -> str:
    """Of all that is in the image with this name; 16 hex digits of its id. Raises Unavailable."""
    with answering():
        return str(engine.api.inspect_image(name)["Id"]).removeprefix("sha256:")[:16]


def _archive(name: str, layer: bytes) -> bytes:
    """An image as ``docker load`` reads it; no date and no host name are in it."""
    digest = hashlib.sha256(layer).hexdigest()
    machine = _ARCHITECTURES.get(platform.machine(), platform.machine())
    config = json.dumps(
        {
            "architecture": machine,
            "os": "linux",
            "created": _EPOCH,
            "config": {"User": "65534:65534", "WorkingDir": "/ws", "Labels": {LABEL: "base"}},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created": _EPOCH, "created_by": "agentos sandbox build --from-host"}],
        },
        sort_keys=True,
    ).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [f"{digest}/layer.tar"]}]
    files = {
        config_name: config,
        f"{digest}/layer.tar": layer,
        "manifest.json": json.dumps(manifest).encode(),
    }
    return write_tar(files)


def _context() -> dict[str, bytes]:
    """What the Dockerfile builds from: itself, the pinned libraries, the worker's side of the package."""
    names = sorted(image_host.closure())
    pins = "".join(f"{name}=={metadata.version(name)}\n" for name in names)
    context = {
        "Dockerfile": (shipped.folder("sandboxes") / "Dockerfile").read_bytes(),
        "requirements.txt": pins.encode(),
    }
    return context | image_host.worker()


def _digest(context: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(context):
        total.update(f"{name}\0{hashlib.sha256(context[name]).hexdigest()}\n".encode())
    return total.hexdigest()[:16]
