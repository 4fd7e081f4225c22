"""The settings files in examples/models load as they are, and say how to add a model to each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentos.settings import load_settings

FOLDER = Path(__file__).parents[1] / "examples" / "models"
FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_loads_and_names_its_own_provider(path: Path) -> None:
    ((name, provider),) = load_settings(path).providers.items()
    assert name == path.stem
    assert provider.api_base
    typed = re.search(
        r"^#   agentos model add [a-z-]+ --model ([\w/:.-]+) --provider (\S+)$", path.read_text(), re.M
    )
    assert typed is not None
    model, of = typed.groups()
    assert of == name
    assert "/" in model


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_hosted_providers_take_a_key_and_get_it_encrypted(path: Path) -> None:
    (provider,) = load_settings(path).providers.values()
    local = "://127.0.0.1:" in provider.api_base
    assert local or (provider.key_env and provider.api_base.startswith("https://"))


def test_each_file_stands_in_the_readme() -> None:
    text = (FOLDER / "README.md").read_text()
    assert set(re.findall(r"^\| \[([\w-]+\.toml)\]", text, re.M)) == {path.name for path in FILES}
