"""What ``agentos registry edit`` does before the registry sees it: an editor, a file, a folder."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agentos.domain import ResourceId
from agentos.errors import Invalid, UserError


def place(name: str) -> tuple[ResourceId, str]:
    """The resource and the registry path of the file that ``KIND/NAME[/PATH]`` means."""
    from agentos.resources import MAIN_FILE, parse_id

    parts = name.strip("/").split("/", 2)
    resource = parse_id("/".join(parts[:2]))
    return resource, f"{resource}/{parts[2] if len(parts) > 2 else MAIN_FILE[resource.kind]}"


def changes(
    present: Mapping[str, bytes], resource: ResourceId, path: str, file: Path | None
) -> dict[str, bytes | None]:
    """What differs between the registry and what the person gives; empty when nothing does."""
    from agentos.resources import path_fault

    if file is None:
        wanted: dict[str, bytes | None] = {path: _edited(present.get(path, b""), Path(path).name)}
    elif file.is_dir():
        from agentos.registry.folder import read

        content = read(file)
        if content.faults:
            raise Invalid(str(file), content.faults)
        given = {f"{resource}/{name}": data for name, data in content.files.items()}
        wanted = {**dict.fromkeys(present), **given}
    else:
        wanted = {path: _bounded(file)}
    if faults := [fault for name in wanted if (fault := path_fault(name))]:
        raise Invalid("The change was refused", faults)
    return {name: data for name, data in wanted.items() if present.get(name) != data}


def author() -> str:
    """The login of the person who types, as the kernel knows it."""
    from agentos.evolver.promote.consent import login

    return login()


def _bounded(file: Path) -> bytes:
    from agentos.resources import FILE_MAX

    with file.open("rb") as opened:
        content = opened.read(FILE_MAX + 1)
    if len(content) > FILE_MAX:
        raise UserError(f"{file} is larger than the {FILE_MAX} bytes that a resource's file may have.")
    return content


def _edited(content: bytes, name: str) -> bytes:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise UserError("No editor is set: set $EDITOR, or give the new content with --file.")
    with tempfile.TemporaryDirectory(prefix="agentos-edit-") as folder:
        file = Path(folder) / name
        file.write_bytes(content)
        try:
            done = subprocess.run([*shlex.split(editor), str(file)], check=False)
        except OSError as error:
            raise UserError(f"The editor '{editor}' cannot be started: {error.strerror}") from None
        if done.returncode:
            raise UserError(f"The editor ended with {done.returncode}; nothing was changed.")
        return file.read_bytes()
