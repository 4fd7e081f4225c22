"""Hostile code against the walls. Each attack answers with its loot; "" means that it was stopped."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentos.domain import Limits
from agentos.errors import Unavailable
from agentos.sandboxes.box import WorkerBox
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap
from agentos.sandboxes.docker.sandbox import Docker
from agentos.sandboxes.kubernetes.sandbox import Kubernetes

Run = Callable[..., Any]

# Attacks that need to know nothing of the host.
BLIND = [
    "visible_processes",
    "host_files_by_place",
    "inherited_descriptors",
    "network",
    "shared_memory",
    "write_anywhere",
    "kernel_settings",
    "tracing",
    "first_process",
    "mounting",
    "namespaces",
    "identity",
    "keyrings",
    "terminal",
    "clock",
    "devices",
    "exotic_calls",
    "shared_kernel",
    "raw_socket",
    "other_numbers",
    "core_dump",
    "priorities",
    "kill_everything",
    "control_group",
]


@pytest.fixture(scope="module")
def target(each_sandbox: Bubblewrap | Docker, small: Limits) -> Iterator[WorkerBox]:
    """One box for all attacks that leave it as it was."""
    with each_sandbox.open(small, light=isinstance(each_sandbox, Kubernetes)) as made:
        yield made


@pytest.mark.parametrize("attack", BLIND)
def test_the_box_stops(attack: str, target: WorkerBox, run: Run) -> None:
    assert run(target, f"attacks:{attack}") == ""


class Canaries:
    """Things of the host that any program of this user reads, reaches or sees."""

    def __init__(self, directory: Path) -> None:
        directory.chmod(0o755)
        file = directory / "secret"
        file.write_text("secret")
        self.loopback = socket.create_server(("127.0.0.1", 0))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.path = socket.socket(socket.AF_UNIX)
        for sock, name in ((self.abstract, f"\0agentos-{os.getpid()}"), (self.path, str(directory / "sock"))):
            sock.bind(name)
            sock.listen()
        self.attacks: list[tuple[str, list[object]]] = [
            ("host_file", [str(file)]),
            ("host_environment", ["AGENTOS_CANARY"]),
            ("host_loopback", [self.loopback.getsockname()[1]]),
            ("host_abstract_socket", [f"agentos-{os.getpid()}"]),
            ("host_path_socket", [str(directory / "sock")]),
            ("host_process", [os.getpid()]),
            ("write_outside", [str(directory)]),
        ]

    def close(self) -> None:
        for sock in (self.loopback, self.abstract, self.path):
            sock.close()


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Canaries]:
    os.environ["AGENTOS_CANARY"] = "secret"
    made = Canaries(tmp_path_factory.mktemp("canaries"))
    yield made
    made.close()
    del os.environ["AGENTOS_CANARY"]


def test_nothing_of_the_host_can_be_read_or_reached(canaries: Canaries, target: WorkerBox, run: Run) -> None:
    found = {name: run(target, f"attacks:{name}", *arguments) for name, arguments in canaries.attacks}
    assert found == dict.fromkeys(found, "")


def test_the_attacks_on_the_host_work_where_there_is_no_wall(canaries: Canaries, inside: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(inside)!r}); import attacks\n"
        f"for name, arguments in {canaries.attacks!r}: print(name, bool(getattr(attacks, name)(*arguments)))\n"
        "print('visible_processes', bool(attacks.visible_processes()))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split()[1::2] == ["True"] * (len(canaries.attacks) + 1), done.stdout


@pytest.mark.parametrize(
    ("wall", "attack"),
    [
        ("seccomp", "tracing"),
        ("seccomp", "keyrings"),
        ("seccomp", "exotic_calls"),
        ("seccomp", "shared_kernel"),
        ("seccomp", "namespaces"),
        ("namespaces", "visible_processes"),
        ("cgroup-names", "control_group"),
        ("rlimits", "priorities"),
    ],
)
def test_without_its_wall_the_attack_succeeds(
    wall: str, attack: str, weakened: Callable[[str], Bubblewrap], small: Limits, run: Run
) -> None:
    with weakened(wall).open(small) as box:
        assert run(box, f"attacks:{attack}") != ""


@pytest.mark.sandbox
def test_a_sandbox_without_a_wall_is_refused(make: Callable[..., Bubblewrap]) -> None:
    with make("seccomp", kind=Bubblewrap) as sandbox:
        with pytest.raises(Unavailable, match="system calls"):
            sandbox.start()
        assert sandbox.level == "unprobed"


def test_siblings_share_nothing(each_sandbox: Bubblewrap | Docker, small: Limits, run: Run) -> None:
    with each_sandbox.open(small) as one, each_sandbox.open(small) as other:
        port, segment = run(one, "attacks:hide_something", "sibling-secret")
        assert segment >= 0
        assert run(other, "attacks:find_something", "sibling-secret", port) == ""


def test_siblings_that_share_namespaces_would_find_each_other(
    weakened: Callable[[str], Bubblewrap], small: Limits, run: Run
) -> None:
    with weakened("namespaces").open(small) as one, weakened("namespaces").open(small) as other:
        run(one, "attacks:host_abstract_socket", "nobody")
        one.channel.send({"do": "subprocess:getoutput", "args": ["sleep 0.5"]})
        assert "sees" in run(other, "attacks:visible_processes")


def test_no_signal_leaves_the_box(sandbox: Bubblewrap, small: Limits, run: Run) -> None:
    with sandbox.open(small) as attacker, sandbox.open(small) as sibling:
        pid = sandbox.template_pid
        assert run(attacker, "attacks:kill_everything") == ""
        assert run(sibling, "os:getpid") == 1
        assert run(attacker, "os:getpid") == 1
    with sandbox.open(small) as later:
        assert run(later, "os:getpid") == 1
    assert sandbox.template_pid == pid
