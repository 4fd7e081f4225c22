"""Which layer and which file a failure belongs to, and in which order layers are tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentos.evolver.history import HistoryContext

if TYPE_CHECKING:
    from agentos.evolver.find import FailureClass


class DiagnosisContext(HistoryContext, Protocol):
    """What a failure's layer and file are found with."""

    taxonomy: tuple[FailureClass, ...]
