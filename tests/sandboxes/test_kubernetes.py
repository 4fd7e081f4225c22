"""Pods: how they are asked for, what holds in them, and what their end says when the cluster is at fault."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import errno
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentos.domain import Limits
from agentos.errors import Unavailable, UserError
from agentos.ports import Box
from agentos.sandboxes.box import box_limits
from agentos.sandboxes.choice import SANDBOXES, Choice
from agentos.sandboxes.docker.engine import DockerEngine
from agentos.sandboxes.docker.profile import pod_profile, seccomp_profile
from agentos.sandboxes.kubernetes.cluster import Access, Cluster, ClusterFault, find_access
from agentos.sandboxes.kubernetes.pod import PodBox, PodKind, describe
from agentos.sandboxes.kubernetes.sandbox import Kubernetes
from agentos.sandboxes.plainfiles import write_tar
from agentos.sandboxes.reaper import leftovers, reap
from agentos.sandboxes.seccomp import call_list
from agentos.settings import KubernetesSettings
from agentos.wire import WireClosed
from tests.sandboxes.fake_cluster import TOKEN, FakeCluster, Faults, less_than_restricted, until

Run = Callable[..., Any]
Make = Callable[..., Kubernetes]
LIMITS = Limits(wall_s=30, memory_mb=64, workspace_mb=8, processes=24)
SETTINGS = KubernetesSettings(image="registry.example.org/agentos-sandbox:1")


@pytest.fixture(autouse=True)
def sound_again(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster").faults = Faults()


# --- what is asked of the cluster ---------------------------------------------------------------


def spec_of(**fields: Any) -> dict[str, Any]:
    settings = SETTINGS.model_copy(update=fields)
    return describe(PodKind(LIMITS, "guest:serve", light=True), settings, box_limits())


def test_every_wall_is_asked_for() -> None:
    spec = spec_of(apparmor="agentos-box")
    (container,) = spec["containers"]
    security = container["securityContext"]
    assert less_than_restricted(spec) == ""
    assert (spec["hostNetwork"], spec["hostPID"], spec["hostIPC"], spec["shareProcessNamespace"]) == (
        False,
    ) * 4
    assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False)
    assert "volumes" not in spec
    assert "volumeMounts" not in container
    assert "env" not in container
    assert (security["readOnlyRootFilesystem"], security["capabilities"]) == (True, {"drop": ["ALL"]})
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsNonRoot"]) == (65534, True)
    assert spec["securityContext"]["seccompProfile"] == {
        "type": "Localhost",
        "localhostProfile": "agentos/box.json",
    }
    assert spec["securityContext"]["appArmorProfile"] == {
        "type": "Localhost",
        "localhostProfile": "agentos-box",
    }
    assert container["resources"]["limits"] == container["resources"]["requests"]
    assert set(container["resources"]["limits"]) == {"cpu", "memory", "ephemeral-storage"}
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] > LIMITS.wall_s + box_limits().grace_s
    assert container["terminationMessagePath"].startswith("/ws/"), "below what the box's own /ws lies over"


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("hostNetwork", True),
        ("hostPID", True),
        ("volumes", [{"name": "x", "hostPath": {"path": "/"}}]),
        ("securityContext", {"runAsNonRoot": True, "seccompProfile": {"type": "Unconfined"}}),
        ("securityContext", {"seccompProfile": {"type": "RuntimeDefault"}}),
        ("containers", [{"securityContext": {"privileged": True}}]),
    ],
)
def test_the_cluster_of_the_tests_refuses_what_is_less(place: str, value: Any) -> None:
    """Else that it takes ours would say nothing."""
    assert less_than_restricted(copy.deepcopy(spec_of()) | {place: value})


def test_the_nodes_profile_has_two_calls_more_than_a_container_s() -> None:
    def allowed(profile: dict[str, Any]) -> set[str]:
        return {
            name
            for rule in profile["syscalls"]
            if rule["action"] == "SCMP_ACT_ALLOW"
            for name in rule["names"]
        }

    assert allowed(pod_profile()) - allowed(seccomp_profile()) == {"mount", "unshare"}
    assert not {"mount", "unshare"} & call_list().names, "the filter that a job runs under has neither"


# --- what holds ---------------------------------------------------------------------------------


class WeakKubernetes(Kubernetes):
    """Is probed without one wall."""

    wall = ""

    def open_entry(self, limits: Limits, entry: str, *, light: bool = False) -> PodBox:
        return super().open_entry(limits, f"selfcheck_without_{self.wall}:serve", light=light)


@pytest.mark.docker
def test_every_promise_holds_in_a_pod_that_has_a_network(pods_sandbox: Kubernetes) -> None:
    assert (pods_sandbox.name, pods_sandbox.level) == ("kubernetes", "container")
    assert len(pods_sandbox.image) == 16


@pytest.mark.docker
def test_where_the_probe_finds_a_network_the_sandbox_is_refused(
    tmp_path: Path, make_pods: Make, cluster: FakeCluster, pod_image: str
) -> None:
    """As where a policy of the cluster were all that stood between a job and its network."""
    with WeakKubernetes(tmp_path, settings=KubernetesSettings(image=pod_image)) as sandbox:
        sandbox.wall = "network"
        broken = {claim.promise: claim.detail for claim in sandbox.examine() if not claim.held}
        assert set(broken) == {"has no network"}
        assert "eth0" in broken["has no network"]
        with pytest.raises(Unavailable, match="has no network"):
            sandbox.start()
        assert sandbox.level == "unprobed"


@pytest.mark.docker
@pytest.mark.parametrize(
    ("wall", "attack"), [("network", "network"), ("seccomp", "namespaces"), ("sealing", "identity")]
)
def test_without_its_wall_the_attack_succeeds(wall: str, attack: str, make_pods: Make, run: Run) -> None:
    with make_pods() as sandbox, sandbox.open_entry(LIMITS, f"guest_without_{wall}:serve", light=True) as box:
        assert run(box, f"attacks:{attack}") != ""


# --- life and death -----------------------------------------------------------------------------


@pytest.mark.docker
def test_a_closed_box_leaves_nothing(pods_sandbox: Kubernetes, cluster: FakeCluster, run: Run) -> None:
    before = pipes_here()
    with pods_sandbox.open(LIMITS, light=True, run="run-7") as box:
        assert run(box, "os:getpid") == 1
        assert cluster.pods[box.name].body["metadata"]["annotations"] == {"agentos.run": "run-7"}
        assert pipes_here() > before
    usage = box.close()
    assert (usage.lost, usage.oom) == ("", False)
    assert until(lambda: box.name not in cluster.pods)
    assert until(lambda: pipes_here() == before)


def pipes_here() -> int:
    """Descriptors of channels."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith("pipe:")
    return count


@pytest.mark.docker
def test_closing_the_sandbox_ends_its_boxes(make_pods: Make, cluster: FakeCluster) -> None:
    sandbox = make_pods()
    box = sandbox.open_entry(LIMITS, "guest:serve", light=True)
    sandbox.close()
    sandbox.close()
    with pytest.raises(WireClosed):
        box.channel.receive(deadline=time.monotonic() + 10)
    assert until(lambda: box.name not in cluster.pods)
    with pytest.raises(Unavailable, match="closed"):
        sandbox.open(LIMITS)


@pytest.mark.docker
@pytest.mark.parametrize("name", ["pipe2", "dup"])
def test_a_daemon_that_may_open_no_more_files_leaves_no_pod(
    make_pods: Make, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with make_pods() as sandbox:
        before = set(cluster.pods)
        with monkeypatch.context() as patched:
            patched.setattr(os, name, full)
            with pytest.raises(OSError, match="files"):
                sandbox.open_entry(LIMITS, "guest:serve", light=True)
        assert until(lambda: set(cluster.pods) == before)


OWNER = """
import sys, time
from pathlib import Path
from agentos.domain import Limits
from agentos.sandboxes.kubernetes.pod import PodKind
from agentos.sandboxes.kubernetes.sandbox import Kubernetes
sandbox = Kubernetes(Path(sys.argv[1]))
box = sandbox._working().open(PodKind(Limits(wall_s=600), "guest:serve", True, "run-9"))
print(box.name, flush=True)
time.sleep(600)
"""


@pytest.mark.docker
def test_pods_of_a_killed_daemon_are_found_by_label_and_removed(
    tmp_path: Path, make_pods: Make, cluster: FakeCluster, pod_image: str
) -> None:
    (tmp_path / "agentos.toml").write_text(f'[kubernetes]\nimage = "{pod_image}"\n')
    names = []
    long = dataclasses.replace(LIMITS, wall_s=600)  # a busy machine takes minutes for what follows
    with (
        make_pods(home=tmp_path / "other") as other,
        other.open_entry(long, "guest:serve", light=True) as neighbour,
    ):
        for _ in range(2):
            owner = subprocess.Popen(
                [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
            )
            assert owner.stdout is not None
            with owner.stdout:
                names.append(owner.stdout.readline().strip())
                assert leftovers(tmp_path) == []  # its daemon lives
                owner.kill()
                owner.wait()
            if len(names) == 1:
                (found,) = leftovers(tmp_path)
                assert (found.kind, found.what, found.runs) == ("pod", names[0], ("run-9",))
                assert reap([found]) == []
                assert until(lambda: names[0] not in cluster.pods)
        with make_pods(home=tmp_path) as sandbox:
            sandbox.start()
        assert until(lambda: names[1] not in cluster.pods)
        assert neighbour.name in cluster.pods
    assert leftovers(tmp_path) == []


def test_a_home_that_never_made_a_pod_asks_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    assert leftovers(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


# --- the cluster is at fault: no box ------------------------------------------------------------


def kind_of(work: Callable[[], Any]) -> str:
    with pytest.raises(ClusterFault) as caught:
        work()
    return caught.value.kind


@pytest.mark.docker
@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        (Faults(every=503), "server"),
        (Faults(every=500), "server"),
        (Faults(every=429), "busy"),
        (Faults(every=403), "refused"),
        (Faults(torn=True), "cut"),
        (Faults(torn=True, only="GET"), "cut"),
        (Faults(silent_s=2), "slow"),
        (Faults(silent_s=2, only="GET"), "slow"),
        (Faults(quota=0), "quota"),
        (Faults(no_node=True), "unscheduled"),
        (Faults(refuse_attach=503), "server"),
        (Faults(refuse_attach=403), "refused"),
        (Faults(pod_status={"phase": "Failed", "reason": "Evicted", "message": "pressure"}), "evicted"),
        (Faults(pod_status={"phase": "Failed", "reason": "NodeShutdown"}), "evicted"),
    ],
)
def test_what_keeps_a_box_from_being_opened_has_a_name(
    faults: Faults, kind: str, make_pods: Make, cluster: FakeCluster
) -> None:
    before = set(cluster.pods)
    with make_pods(timeout_s=0.7, start_s=0.5 if faults.no_node else 60.0) as sandbox:
        cluster.faults = faults
        assert kind_of(lambda: sandbox.open_entry(LIMITS, "guest:serve", light=True)) == kind
        cluster.faults = Faults()
    assert until(lambda: not set(cluster.pods) - before)


@pytest.mark.docker
@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"image": "agentos-sandbox:not-there"}, "image"),
        ({"seccomp": "agentos/not-there.json"}, "start"),
    ],
)
def test_what_a_node_cannot_do_has_a_name(fields: dict[str, str], kind: str, make_pods: Make) -> None:
    with make_pods(**fields) as sandbox:
        assert kind_of(lambda: sandbox.open_entry(LIMITS, "guest:serve", light=True)) == kind


@pytest.mark.docker
def test_an_image_of_another_version_is_refused(make_pods: Make, pod_image: str) -> None:
    dockerfile = f"FROM {pod_image}\nCOPY job.py /opt/agentos/agentos/worker/newer.py\n".encode()
    name = f"{pod_image}-newer"
    engine = DockerEngine()
    try:
        context = io.BytesIO(write_tar({"Dockerfile": dockerfile, "job.py": b"# newer\n"}))
        list(engine.api.build(fileobj=context, custom_context=True, tag=name, rm=True, decode=True))
        with make_pods(image=name) as sandbox:
            assert kind_of(lambda: sandbox.open_entry(LIMITS, "guest:serve", light=True)) == "image"
    finally:
        engine.api.remove_image(name, force=True)
        engine.close()


def test_a_cluster_that_is_not_there_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    write_config(tmp_path / "config", {"token": TOKEN}, server=f"http://127.0.0.1:{port}")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with Kubernetes(tmp_path / "home", settings=SETTINGS) as sandbox:
        assert kind_of(lambda: sandbox.open_entry(LIMITS, "guest:serve")) == "away"
        assert kind_of(sandbox.start) == "away"


def test_who_may_not_ask_leaves_no_descriptors_behind(tmp_path: Path) -> None:
    cluster = Cluster(Access("http://127.0.0.1:9", "n", None, token_file=tmp_path / "none"))
    reads, writes = os.pipe()
    try:
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(ClusterFault) as found:
            cluster.attach("pod", "box", reads, writes, lambda whole: None)
        assert (found.value.kind, len(os.listdir("/proc/self/fd"))) == ("refused", before)
    finally:
        os.close(reads)
        os.close(writes)
        cluster.close()


def test_whoever_is_attaching_while_the_sandbox_is_closed_is_told(tmp_path: Path) -> None:
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cluster = Cluster(Access(f"http://127.0.0.1:{silent.getsockname()[1]}", "n", None))
        reads, writes = os.pipe()

        def attach() -> None:
            try:
                cluster.attach("agentos-x", "box", reads, writes, lambda whole: None)
            except ClusterFault as fault:
                told.append(fault.kind)

        attaching = threading.Thread(target=attach)
        attaching.start()
        connection, _ = silent.accept()
        cluster.close()
        attaching.join(10)
        connection.close()
    os.close(reads)
    os.close(writes)
    assert told == ["cut"]


@pytest.mark.docker
def test_a_token_that_does_not_stand_is_refused(
    tmp_path: Path, cluster: FakeCluster, make_pods: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_config(tmp_path / "config", {"token": "another"}, server=cluster.url)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with make_pods() as sandbox:
        assert kind_of(lambda: sandbox.open_entry(LIMITS, "guest:serve", light=True)) == "refused"


@pytest.mark.docker
def test_what_passes_is_waited_for(make_pods: Make, cluster: FakeCluster, run: Run) -> None:
    with make_pods() as sandbox:
        cluster.faults = Faults(answers=[(503, {}), (429, {"Retry-After": "0"}), (500, {})])
        with sandbox.open_entry(LIMITS, "guest:serve", light=True) as box:
            assert run(box, "os:getpid") == 1
            assert cluster.faults.answers == []


@pytest.mark.docker
def test_a_pod_that_is_there_already_is_this_one(
    make_pods: Make, cluster: FakeCluster, tmp_path: Path
) -> None:
    """The answer to the first try was lost; the name is random."""
    cluster.faults = Faults(no_node=True)
    api = Cluster(find_access("", "agentos-boxes"))
    pod = {"metadata": {"name": "agentos-twice", "labels": {}}, "spec": spec_of()}
    try:
        api.create(pod)
        api.create(pod)
        assert api.pod("agentos-twice") is not None
        api.delete("agentos-twice")
    finally:
        api.close()


# --- the cluster is at fault: the box was at work -----------------------------------------------


@pytest.fixture
def at_work(pods_sandbox: Kubernetes) -> Iterator[PodBox]:
    with pods_sandbox.open(LIMITS, light=True) as box:
        box.channel.send({"do": "bombs:sleep_for_ever", "args": []})
        yield box


def ended(box: Box) -> None:
    with pytest.raises(WireClosed):
        box.channel.receive(deadline=time.monotonic() + 10)


@pytest.mark.docker
@pytest.mark.parametrize(("reason", "kind"), [("Evicted", "evicted"), ("DeadlineExceeded", "deadline")])
def test_a_pod_that_the_cluster_ended_says_nothing_of_its_job(
    reason: str, kind: str, at_work: PodBox, cluster: FakeCluster
) -> None:
    cluster.evict(cluster.pods[at_work.name], reason)
    ended(at_work)
    usage = at_work.close()
    assert at_work.fault is not None
    assert at_work.fault.kind == kind
    assert (usage.lost, usage.oom) == (str(at_work.fault), False)
    assert until(lambda: at_work.name not in cluster.pods)


@pytest.mark.docker
def test_a_pod_that_somebody_deleted_says_nothing_of_its_job(at_work: PodBox, cluster: FakeCluster) -> None:
    pod = cluster.pods[at_work.name]
    pod.deleted = "now"
    cluster.end(pod, 0)
    ended(at_work)
    usage = at_work.close()
    assert at_work.fault is not None
    assert at_work.fault.kind == "deleted"
    assert usage.lost


@pytest.mark.docker
def test_a_stream_that_breaks_off_says_nothing_of_its_job(at_work: PodBox, cluster: FakeCluster) -> None:
    cluster.cut_streams()
    ended(at_work)
    usage = at_work.close()
    assert at_work.fault is not None
    assert at_work.fault.kind == "cut"
    assert usage.lost
    assert until(lambda: at_work.name not in cluster.pods)


@pytest.mark.docker
def test_a_box_whose_end_cannot_be_seen_is_lost_and_removed_later(
    make_pods: Make, cluster: FakeCluster
) -> None:
    with make_pods(timeout_s=0.7) as sandbox:
        box = sandbox.open_entry(LIMITS, "guest:serve", light=True)
        cluster.faults = Faults(every=503)
        usage = box.close()
        assert box.fault is not None
        assert box.fault.kind == "server"
        assert usage.lost
        assert box.close() == usage
        cluster.faults = Faults()
        assert box.name in cluster.pods
    assert until(lambda: box.name not in cluster.pods)


@pytest.mark.docker
def test_a_job_that_ends_its_worker_or_eats_its_memory_is_its_own_fault(
    pods_sandbox: Kubernetes, run: Run
) -> None:
    with pods_sandbox.open(LIMITS, light=True) as box:
        box.channel.send({"do": "os:_exit", "args": [7]})
        ended(box)
        assert box.close().lost == ""
    with pods_sandbox.open(LIMITS, light=True) as box:
        box.channel.send({"do": "bombs:memory_files", "args": [60, 6 << 20]})
        try:
            box.channel.receive(deadline=time.monotonic() + 20)
        except WireClosed:
            assert box.close().oom
        assert box.close().lost == ""


@pytest.mark.docker
def test_the_role_of_the_example_is_what_is_used_and_no_more(make_pods: Make, cluster: FakeCluster) -> None:
    example = Path(__file__).parents[2] / "examples" / "cluster" / "kubernetes.yaml"
    documents = {it["kind"]: it for it in yaml.safe_load_all(example.read_text())}
    granted = {
        (resource, verb)
        for rule in documents["Role"]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    cluster.used.clear()
    with make_pods() as sandbox:
        sandbox.start()
    assert granted - cluster.used == {("pods/attach", "create")}, "what newer versions ask for"
    assert cluster.used <= granted
    assert documents["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert documents["NetworkPolicy"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.docker
def test_the_commands_know_it(tmp_path: Path, make_pods: Make, pod_image: str) -> None:
    def agentos(*words: str) -> Any:
        command = [sys.executable, "-m", "agentos", "--home", str(tmp_path), "sandbox", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    (tmp_path / "agentos.toml").write_text(f'sandbox = "kubernetes"\n[kubernetes]\nimage = "{pod_image}"\n')
    (found,) = agentos("check", "--quick", "--json")["sandboxes"]
    assert (found["sandbox"], found["level"]) == ("kubernetes", "container")
    assert agentos("profile") == pod_profile()
    listed = {it["sandbox"]: it["state"] for it in agentos("list", "--json")["sandboxes"]}
    assert listed["kubernetes"] == "set up"


def test_it_is_used_where_it_is_named_and_never_instead_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    (tmp_path / "agentos.toml").write_text('[kubernetes]\nimage = "x"\n')
    for wanted, asked in (("kubernetes", "auto"), ("auto", "kubernetes")):
        choice = Choice(tmp_path, None, wanted)
        with pytest.raises(Unavailable, match="KUBECONFIG"):
            choice.choose(asked)
        choice.close()
    assert "kubernetes" not in SANDBOXES, "those that auto tries"


# --- who asks -----------------------------------------------------------------------------------


def write_config(
    path: Path, user: dict[str, Any], server: str = "https://cluster.example.org", **cluster: Any
) -> None:
    config = {
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(config))


def headers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: dict[str, Any], context: str = "", **of: Any
) -> Any:
    write_config(tmp_path / "config", user, **of)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    return find_access(context, "n").headers()


def test_a_token_comes_from_the_kubeconfig_a_file_or_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("from-file\n")
    counted = tmp_path / "count"
    credential = {"kind": "ExecCredential", "status": {"token": "from-program"}}
    program = f"open({str(counted)!r}, 'a').write('x'); print({json.dumps(credential)!r})"
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", program],
    }
    for user, token in (
        ({"token": "t"}, "t"),
        ({"tokenFile": "token"}, "from-file"),
        ({"exec": plugin}, "from-program"),
    ):
        assert headers(tmp_path, monkeypatch, user) == {"Authorization": f"Bearer {token}"}
    access = find_access("one", "n")
    assert access.headers() == access.headers()
    assert counted.read_text() == "xx", "once for each that asks, until it ends"


def test_an_end_without_a_zone_is_one_of_utc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = {"token": "t", "expirationTimestamp": "2026-01-01T00:00:00"}
    plugin = {"apiVersion": "v1", "command": "echo", "args": [json.dumps({"status": status})]}
    write_config(tmp_path / "config", {"exec": plugin})
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    access = find_access("", "n")
    assert access.headers() == access.headers() == {"Authorization": "Bearer t"}


@pytest.mark.parametrize(
    ("user", "of"),
    [
        ({"token": "t"}, {"insecure-skip-tls-verify": True}),
        ({"token": "t"}, {"context": "two"}),
        ({"exec": {"apiVersion": "v1", "command": "false"}}, {}),
        ({"exec": {"apiVersion": "v1", "command": "no-such-program"}}, {}),
        ({"exec": {"apiVersion": "v1"}}, {}),
        ({"exec": {"command": "true"}}, {}),
        ({"exec": {"apiVersion": "v1", "command": "true", "env": [{"name": "HOME"}]}}, {}),
    ],
)
def test_what_would_trust_anybody_or_nobody_is_refused(
    user: dict[str, Any], of: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError):
        headers(tmp_path, monkeypatch, user, **of)


@pytest.mark.parametrize("text", ["", "[]", "one", '{"current-context": "one", "contexts": "none"}'])
def test_a_kubeconfig_that_is_none_is_told(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    with pytest.raises(UserError):
        find_access("", "n")


def test_without_an_image_or_a_cluster_one_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    for settings, word in ((KubernetesSettings(), "image"), (SETTINGS, "KUBECONFIG")):
        with Kubernetes(tmp_path, settings=settings) as sandbox, pytest.raises(Unavailable, match=word):
            sandbox.start()
