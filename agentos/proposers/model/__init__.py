"""The proposer that asks a model: from evidence to one edit in the brief's layer. docs/understand/proposers.md tells how."""

from agentos.proposers.model.proposer import ModelProposer

__all__ = ["ModelProposer"]
