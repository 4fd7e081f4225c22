"""Ranking by meaning beside words, with the real model that the extra brings."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from agentos.errors import ErrorKind, UserError
from agentos.retrieval import embedding
from agentos.retrieval.embedding import WordLlama
from agentos.retrieval.index import Index
from agentos.testing.registry import FakeRegistry
from tests.refusals import raises

needs_extra = pytest.mark.skipif(find_spec("wordllama") is None, reason="needs agentos-daemon[embeddings]")

FILES = {
    f"skill/{name}/SKILL.md": f"---\nname: {name}\ndescription: {text}\n---\n"
    for name, text in {
        "travel-plan": "Plans a journey with trains, hotels and a schedule",
        "contract-review": "Reads a contract and lists obligations and unusual clauses",
        "recipe-scaling": "Scales the ingredients of a recipe to more portions",
    }.items()
}


@needs_extra
@pytest.mark.slow
def test_meaning_finds_what_words_do_not(tmp_path: Path) -> None:
    registry = FakeRegistry(FILES)
    by_words = Index(tmp_path / "index.db", registry)
    hybrid = Index(tmp_path / "index.db", registry, WordLlama())  # the file was made without vectors
    query = "cooking dinner for twelve people"
    assert by_words.find(registry.stable(), query) == []
    found = hybrid.find(registry.stable(), query)
    assert found[0].resource.name == "recipe-scaling"
    assert found == Index(tmp_path / "other.db", registry, WordLlama()).find(registry.stable(), query)
    after = registry.edit(
        {"skill/soup-kitchen/SKILL.md": "---\nname: soup-kitchen\ndescription: Cooking dinner\n---\n"}
    )
    assert hybrid.find(after, query)[0].resource.name == "soup-kitchen"
    assert hybrid.find(after, "") == []
    assert hybrid.find(after, "cooking \ud800 dinner")[0].resource.name == "soup-kitchen"


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise embedding.PackageNotFoundError(name)

    monkeypatch.setattr(embedding, "version", missing)
    with raises(UserError, ErrorKind.NOT_INSTALLED, type_next="pip install 'agentos-daemon[embeddings]'"):
        WordLlama()


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    script = (
        "import sys, agentos.retrieval.index, agentos.retrieval.embedding\n"
        "print([name for name in ('numpy', 'wordllama', 'requests', 'tokenizers') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"
