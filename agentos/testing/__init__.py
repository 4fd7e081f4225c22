"""Fakes of the ports, for our tests and for authors of skills, tools and proposers.

They obey the rules of the real parts (one test suite runs over both where there are both) and
need no disk, no git and no sandbox::

    ledger = MemoryLedger()                      # Records, Journal, Cursor, Audit
    blobs = MemoryBlobs()                        # Blobs
    registry = FakeRegistry({"tool/sum/tool.py": "..."})  # Snapshots, CandidateStore, Evolvable
    executor = FakeExecutor(lambda task, snapshot: attempt(passed=snapshot == registry.stable()))
    durable, replayer = Undurable(), SerialReplayer()
"""

from agentos.testing.memory import AuditNote, FakeModels, MemoryBlobs, MemoryLedger
from agentos.testing.modelserver import ModelServer, Rules, ServerReply, call, fault, say
from agentos.testing.registry import (
    FakeBench,
    FakeBox,
    FakeExecutor,
    FakeRegistry,
    FakeSandbox,
    ScriptedProposer,
    SerialReplayer,
    Undurable,
    attempt,
)

__all__ = [
    "AuditNote",
    "FakeBench",
    "FakeBox",
    "FakeExecutor",
    "FakeModels",
    "FakeRegistry",
    "FakeSandbox",
    "MemoryBlobs",
    "MemoryLedger",
    "ModelServer",
    "Rules",
    "ScriptedProposer",
    "SerialReplayer",
    "ServerReply",
    "Undurable",
    "attempt",
    "call",
    "fault",
    "say",
]
