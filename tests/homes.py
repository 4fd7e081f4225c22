"""Homes that are made once and copied for each test that wants one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from agentos.daemon.setup import init_home
from agentos.home import Home
from tests.cli.evolved_home import evolve_home


def first(root: Path) -> Path:
    """As ``agentos init`` makes it."""
    init_home(Home(root))
    return pack(root)


def evolved(root: Path, of: Path) -> Path:
    """With an evolution that was promoted."""
    shutil.copytree(of, root)
    evolve_home(Home(root))
    return pack(root)


def pack(root: Path) -> Path:
    """The registry of a home, packed."""
    pack_registry(Home(root).registry)
    return root


def pack_registry(registry: Path) -> Path:
    """One pack, and one file of references: 36 files and folders are copied in a sixth of the time of 282."""
    for arguments in (["pack-refs", "--all"], ["repack", "-adq"]):
        subprocess.run(["git", "-C", str(registry), *arguments], check=True)
    return registry
