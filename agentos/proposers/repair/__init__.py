"""The search-based repairer: edits of the syntax tree, no model. docs/understand/repair.md says what it can repair."""

from agentos.proposers.repair.proposer import RepairProposer

__all__ = ["RepairProposer"]
