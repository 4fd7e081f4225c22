"""Distributions that are installed beside agentos: the example by pip, others as files that an installer leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from agentos.plugins import registry

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "plugin"
Points = Mapping[str, Mapping[str, str]]  # group -> name -> module:object


def metadata(name: str, version: str, points: Points) -> dict[str, str]:
    """The files of a dist-info folder, by name within it."""
    lines = [
        f"[{group}]\n" + "".join(f"{n} = {at}\n" for n, at in of.items()) for group, of in points.items()
    ]
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "entry_points.txt": "\n".join(lines),
    }


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip installed the example, without the network: its wheel is put together as its build would."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    place = tmp_path_factory.mktemp("example")
    wheel = place / f"agentos_example-{project['version']}-py3-none-any.whl"
    info = f"agentos_example-{project['version']}.dist-info"
    files = {
        f"agentos_example/{path.name}": path.read_text() for path in EXAMPLE.glob("agentos_example/*.py")
    }
    said = metadata(project["name"], project["version"], project["entry-points"])
    files |= {f"{info}/{name}": text for name, text in said.items()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD")))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
               "--disable-pip-version-check", "--target", str(place / "site"), str(wheel)]  # fmt: skip
    subprocess.run(command, check=True, timeout=120, env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})
    return place / "site"


def forget() -> None:
    """As a process that has not looked for plug-ins yet."""
    registry.any_installed.cache_clear()
    registry.installed.cache_clear()
    registry._loaded.clear()


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """Make this process see what is installed in a folder."""

    def use_(site: Path) -> None:
        monkeypatch.syspath_prepend(str(site))
        forget()

    yield use_
    monkeypatch.undo()
    forget()


@pytest.fixture
def install(tmp_path: Path, use: Callable[[Path], None]) -> Callable[..., Path]:
    """``install({"group": {"name": "module:object"}}, module="source")``: a distribution of these modules."""

    def install_(points: Points, name: str = "mine", version: str = "1.2", **modules: str) -> Path:
        site = tmp_path / f"site-{name}"
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        for file, text in metadata(name, version, points).items():
            (info / file).write_text(text)
        for module, source in modules.items():
            (site / f"{module}.py").write_text(source)
            sys.modules.pop(module, None)
        use(site)
        return site

    return install_
