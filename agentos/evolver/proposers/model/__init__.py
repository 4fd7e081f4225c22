"""The proposer that asks a model: from evidence to one edit in the brief's layer. docs/proposers.md tells how."""

from agentos.evolver.proposers.model.proposer import ModelProposer

__all__ = ["ModelProposer"]
