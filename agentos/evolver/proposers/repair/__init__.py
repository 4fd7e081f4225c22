"""The search-based repairer: edits of the syntax tree, no model. docs/repair.md says what it can repair."""

from agentos.evolver.proposers.repair.proposer import RepairProposer

__all__ = ["RepairProposer"]
