"""From a model's name to what is asked, in a real registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentos.errors import NotFound
from agentos.models.resolving import spec_of
from agentos.registry.store import Registry
from agentos.shipped import seed_files
from tests.refusals import raises


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    path: Path = tmp_path_factory.mktemp("registry") / "registry.git"
    registry = Registry.init(path, seed_files()) or Registry(path)
    models = {
        "main": 'fallbacks = ["spare", "last"]\nparameters = {temperature = 0.1}\n'
        "price = {input_per_mtok = 1, output_per_mtok = 2}\n",
        "spare": 'provider = "local"\nfallbacks = ["main", "last"]\n',
        "last": "context_tokens = 4096\n",
        "lost": 'fallbacks = ["nobody"]\n',
    }
    registry.commit(
        {
            f"model/{name}/resource.toml": f'description = "d"\nmodel = "openai/{name}"\n{more}'.encode()
            for name, more in models.items()
        },
        "Models",
        "edit",
    )
    return registry


def test_fallbacks_are_each_there_once_in_order(registry: Registry) -> None:
    spec = spec_of(registry, registry.stable(), "main", "")
    assert (spec.model, spec.parameters["temperature"]) == ("openai/main", 0.1)
    assert spec.price is not None
    assert (spec.price.input, spec.price.output, spec.price.cached) == (1, 2, None)
    assert [(one.name, one.provider, one.context_tokens) for one in spec.fallbacks] == [
        ("spare", "local", 32_768),
        ("last", "", 4096),
    ]


def test_default_is_what_the_settings_say(registry: Registry) -> None:
    snapshot = registry.stable()
    assert spec_of(registry, snapshot, "default", "last").name == "last"
    assert spec_of(registry, snapshot, "", "last").name == "last"
    with raises(NotFound, type_next="agentos model add NAME"):
        spec_of(registry, snapshot, "default", "")


def test_what_is_not_there_is_named(registry: Registry) -> None:
    with raises(NotFound, names=["'nope'"]):
        spec_of(registry, registry.stable(), "nope", "")
    with raises(NotFound, names=["'lost'", "'nobody'"]):
        spec_of(registry, registry.stable(), "lost", "")
