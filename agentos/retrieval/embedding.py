"""The optional model of meaning: ``pip install agentos-daemon[embeddings]``.

WordLlama carries its weights in its package and needs numpy alone to use them (docs/use/retrieval.md,
docs/decisions/retrieval.md). It is imported with the first text, never with the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from agentos.errors import ErrorKind, UserError, missing_extra


class Embedder(Protocol):
    """Turns texts into vectors whose inner product says how near they are in meaning."""

    @property
    def name(self) -> str:
        """Of the model and its version: vectors of another name are of no use."""
        ...

    def encode(self, texts: Sequence[str]) -> Any:
        """A float32 numpy array of one row of length 1 for each text (of zeros for an empty one)."""
        ...


class WordLlama:
    """Implements ``Embedder``. Raises UserError when the extra is not installed."""

    def __init__(self) -> None:
        try:
            self.name = f"wordllama-{version('wordllama')}-256"
        except PackageNotFoundError:
            raise UserError(
                missing_extra("embeddings", 'retrieval = "hybrid"'), kind=ErrorKind.NOT_INSTALLED
            ) from None

    @cached_property
    def _model(self) -> Any:
        import wordllama

        # It looks for its own tokenizer in a folder of another name than the one it ships
        # (0.4.0): named as the cache, its package is searched in the right one.
        package = Path(wordllama.__file__).parent
        return wordllama.WordLlama.load(dim=256, cache_dir=package, disable_download=True)

    def encode(self, texts: Sequence[str]) -> Any:
        """See ``Embedder``."""
        import numpy

        plain = [text.encode("utf-8", "replace").decode() for text in texts]  # it refuses lone surrogates
        vectors = numpy.asarray(self._model.embed(plain), dtype=numpy.float32)
        lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors / numpy.maximum(lengths, 1e-9)
