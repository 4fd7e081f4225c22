"""A model to test against: a real HTTP server that speaks OpenAI's protocol and thinks by script.

It says what it is: its model is ``scripted``, its fingerprint ``agentos-scripted``.::

    with ModelServer([call("sum", {"a": 1, "b": 2}), say("3")]) as server:
        ...                                   # clients take server.base_url
        assert server.paid == 2 and server.repeated == 0

    server.fault_next("rate_limit", retry_after_s=1)   # the next request gets a 429
    server.add(fault("reset_midstream", say("…")))     # paid, and cut on the way

    server = ModelServer(policy=Rules(noise=0.1, seed=1))   # succeeds if it was told what it needs

``FAULTS`` names all that can go wrong; a request may ask for one by the header ``X-Scripted-Fault``.
From another process: ``python -m agentos.testing.modelserver``, ``GET /_/stats``, ``POST /_/script``.
"""

from agentos.testing.modelserver.policy import Rules
from agentos.testing.modelserver.replies import (
    FAULTS,
    Policy,
    ServerFault,
    ServerReply,
    ServerToolCall,
    call,
    fault,
    say,
)
from agentos.testing.modelserver.server import ModelServer, Request

__all__ = [
    "FAULTS",
    "ModelServer",
    "Policy",
    "Request",
    "Rules",
    "ServerFault",
    "ServerReply",
    "ServerToolCall",
    "call",
    "fault",
    "say",
]
