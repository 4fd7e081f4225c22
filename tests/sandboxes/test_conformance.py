"""Every sandbox passes the same suite; one that does nothing passes none of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.conformance import CHECKS, check
from agentos.sandboxes.docker.sandbox import Docker
from agentos.sandboxes.kubernetes.sandbox import ENTRY, Kubernetes
from agentos.testing import FakeSandbox
from agentos.wire import Channel


@pytest.mark.sandbox
@pytest.mark.slow
def test_bubblewrap_conforms(worker_sandbox: Bubblewrap) -> None:
    assert [claim for claim in check(worker_sandbox) if not claim.held] == []


@pytest.mark.docker
@pytest.mark.slow
def test_docker_conforms(tmp_path: Path, docker_image: str) -> None:
    with Docker(tmp_path, image=docker_image, ready=1) as sandbox:  # from the pool, as runs get theirs
        assert [claim for claim in check(sandbox) if not claim.held] == []


@pytest.mark.docker
@pytest.mark.slow
def test_kubernetes_conforms(make_pods: Callable[..., Kubernetes]) -> None:
    """But for what a cluster does not count."""
    with make_pods(entry=ENTRY) as sandbox:
        assert [claim for claim in check(sandbox, grouped=not sandbox.lacks) if not claim.held] == []


def test_a_sandbox_that_does_nothing_conforms_in_nothing() -> None:
    claims = list(check(FakeSandbox(lambda channel: None)))
    assert [claim.promise for claim in claims] == list(CHECKS)
    assert [claim for claim in claims if claim.held] == []


def test_an_answer_of_another_shape_is_a_promise_that_does_not_hold() -> None:
    def says_done(channel: Channel) -> None:
        channel.receive()
        channel.send({"type": "done"})

    claims = list(check(FakeSandbox(says_done)))
    assert [claim.promise for claim in claims] == list(CHECKS)
    assert sum(claim.held for claim in claims) <= 1, (
        "one that is at its end at once has not outlived its time"
    )
