"""Many git objects written at once: one pack and one flush to disk, where a file each would take minutes.

Nothing is there until ``write`` has returned; git itself checks and indexes the pack.
"""

from __future__ import annotations

import hashlib
import subprocess
import zlib
from collections.abc import Mapping

import pygit2

from agentos.errors import Unavailable
from agentos.registry.git.repository import Repository, environment

_TYPES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}


class ObjectPack:
    """Objects that are to be written; adding one again is nothing."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._objects: dict[bytes, tuple[int, bytes]] = {}
        self.size = 0  # bytes

    def add(self, kind: str, content: bytes) -> pygit2.Oid:
        """The object's id. ``kind`` is blob, tree, commit or tag."""
        head = b"%s %d\0" % (kind.encode(), len(content))
        name = hashlib.sha1(head + content, usedforsecurity=False).digest()
        if name not in self._objects:
            self._objects[name] = _TYPES[kind], content
            self.size += len(content)
        return pygit2.Oid(raw=name)

    def add_folder(self, files: Mapping[str, bytes]) -> pygit2.Oid:
        """The id of the tree of these files (path -> content)."""
        below: dict[str, dict[str, bytes]] = {}
        entries: list[tuple[bytes, bytes]] = []
        for path, content in files.items():
            name, _, rest = path.partition("/")
            if rest:
                below.setdefault(name, {})[rest] = content
            else:
                raw = name.encode()
                entries.append((raw, b"100644 %s\0%s" % (raw, self.add("blob", content).raw)))
        for name, inner in below.items():
            raw = name.encode()  # git sorts a directory as if its name ended in a slash
            entries.append((raw + b"/", b"40000 %s\0%s" % (raw, self.add_folder(inner).raw)))
        return self.add("tree", b"".join(entry for _, entry in sorted(entries)))

    def add_all(self, other: ObjectPack) -> None:
        """What is in the other as well."""
        self._objects |= other._objects
        self.size += other.size

    def write(self) -> None:
        """Make them durable, and start again with none. Raises Unavailable."""
        if not self._objects:
            return
        parts = [_head(kind, len(data)) + zlib.compress(data, 1) for kind, data in self._objects.values()]
        content = b"PACK" + (2).to_bytes(4) + len(parts).to_bytes(4) + b"".join(parts)
        content += hashlib.sha1(content, usedforsecurity=False).digest()
        done = subprocess.run(
            ["git", f"--git-dir={self._repository.path}", "index-pack", "--stdin"],
            env=environment(),
            cwd=self._repository.path,
            input=content,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(
                f"The registry cannot be written: {done.stderr.decode(errors='replace').strip()}"
            )
        self._objects.clear()
        self.size = 0


def _head(kind: int, size: int) -> bytes:
    """Type and size as a pack states them: 4 bits of size, then 7 a byte."""
    found = bytearray()
    byte, size = kind << 4 | size & 15, size >> 4
    while size:
        found.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    found.append(byte)
    return bytes(found)
