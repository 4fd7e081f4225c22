"""Wheels made by hand, in a folder that pip is told to look into instead of an index."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

NEEDY = '''"""Greets."""
import greeting
from pydantic import BaseModel

TOOL = {"name": "greet", "description": "Greets.", "effects": ["pure"], "dependencies": DEPENDENCIES}


class Input(BaseModel):
    name: str = "you"


class Output(BaseModel):
    text: str


def run(input: Input) -> Output:
    return Output(text=greeting.hello(input.name))
'''


def needy(*dependencies: str) -> bytes:
    """The source of a tool that depends on these."""
    return NEEDY.replace("DEPENDENCIES", repr(list(dependencies))).encode()


class Shop:
    """A folder of wheels."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()

    def wheel(
        self, name: str, version: str, files: Mapping[str, str | bytes], *, needs: tuple[str, ...] = ()
    ) -> Path:
        """A wheel of these files, which pip finds from now on."""
        info = f"{name}-{version}.dist-info"
        requires = "".join(f"Requires-Dist: {need}\n" for need in needs)
        about = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/RECORD": "",
        }
        path = self.place / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, content in {**files, **about}.items():
                archive.writestr(member, content)
        return path

    def greeting(self, version: str = "1.0", word: str = "Hello") -> Path:
        """The wheel that ``needy`` tools use."""
        source = f"def hello(name):\n    return f'{word}, {{name[:9]}}!'\n"
        return self.wheel("greeting", version, {"greeting/__init__.py": source})


def open_shop(place: Path, patch: pytest.MonkeyPatch) -> Shop:
    """A shop that is all that pip can see."""
    shop = Shop(place)
    patch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        patch.delenv(name, raising=False)
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(place))
    return shop
