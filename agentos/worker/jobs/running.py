"""The job ``run``: a task, with the harness of the bundle in charge."""

from __future__ import annotations

import contextlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from agentos.messages import RunJob
from agentos.wire import Channel, FrameError, WireClosed, WireLate
from agentos.worker import files
from agentos.worker.children import ChildLimits
from agentos.worker.egress import PLACE
from agentos.worker.faults import Failed, FaultsOf, fault, load_fault
from agentos.worker.files import WorkerPlace
from agentos.worker.rpc import KernelClient
from agentos.worker.sdk import Sdk, StepsUsedUp
from agentos.worker.tools import entered
from agentos.worker.tools.bundle_importer import BundleFiles
from agentos.worker.tools.toolhost import ToolHost

if TYPE_CHECKING:
    from agentos.worker.jobs.forwarder import Forwarder


_HOSTS = 4  # tool calls side by side


def run(channel: Channel, job: RunJob, blobs: tuple[bytes, ...], place: WorkerPlace) -> None:
    """Run the harness to its end, streaming steps; the last frame carries the files it left."""
    entered.begin()
    count = len(job.files)
    held = BundleFiles(place.snapshot, dict(zip(job.files, blobs[:count], strict=True)))
    given = dict(zip(job.inputs, blobs[count:], strict=True))
    files.write(place.snapshot, job.files, blobs[:count])
    files.write(place.workspace, job.inputs, blobs[count:])
    allowance = ChildLimits(job.tool_wall_s, job.memory_mb, job.output_bytes)
    # A task that names its tool makes one call, and its host may end whatever is left of it at once;
    # several hosts must spare each other.
    several = job.call is None and job.command is None
    forwarder = _forwarder(job)
    hosts = [
        ToolHost(held, place.workspace, allowance, alone=place.alone and not several)
        for _ in range(_HOSTS if several else 1)
    ]
    talk = KernelClient(channel)
    sdk = Sdk(talk, job, held, hosts)
    if forwarder is not None:
        forwarder.start(talk, job.models)
    if job.command is not None and forwarder is not None:
        _start(sdk, job, hosts[0], forwarder.url, place)
    else:
        _drive(sdk, held, f"{job.harness}/harness.py")
    for host in hosts:
        host.close()
    collected = files.collect(place.workspace, given)
    if collected.refused:
        refused = fault("refused", "; ".join(collected.refused))
        with contextlib.suppress(StepsUsedUp):
            sdk.step(
                "outputs", {"files": list(collected.names)}, {"refused": list(collected.refused)}, refused
            )
    done = sdk.end
    assert done is not None
    channel.send(done.model_dump(), (collected.tar,) if collected.names else ())


def _forwarder(job: RunJob) -> Forwarder | None:
    """Made before the hosts are forked, so that what they start knows where it listens."""
    if job.command is None and "external" not in job.effects:
        return None
    from agentos.worker.jobs.forwarder import Forwarder

    made = Forwarder()
    os.environ[PLACE] = made.url
    return made


def _start(sdk: Sdk, job: RunJob, host: ToolHost, url: str, place: WorkerPlace) -> None:
    from agentos.worker.jobs import blackbox

    try:
        blackbox.drive(sdk, job, host, url, (place.snapshot, place.workspace))
    except StepsUsedUp:
        pass
    except (WireClosed, WireLate, FrameError):
        path = f"{job.harness}/resource.toml"
        sdk.fail(fault("signal", "the program ended or stopped the process that runs it", path=path))


def _drive(sdk: Sdk, held: BundleFiles, path: str) -> None:
    """Load the harness and let it run; whatever it does, ``sdk.end`` is set afterwards."""
    try:
        with FaultsOf(held.root, path, load_fault):
            harness = _load(held, path)
        with FaultsOf(held.root, path, passes=(StepsUsedUp,)):
            harness.run(sdk)
    except StepsUsedUp:
        pass
    except Failed as error:
        sdk.fail(error.fault)
    if sdk.end is None:
        sdk.fail(fault("no_answer", "the harness ended without an answer", path=path))


def _load(held: BundleFiles, path: str) -> ModuleType:
    """The harness as a module; what lies beside it can be imported by name."""
    source = held.content(path)
    if source is None:
        raise Failed(fault("load", f"{path} is not in the bundle", path=path))
    held.offer(path.rpartition("/")[0])
    module = ModuleType("agentos_harness")
    module.__file__ = str(held.root / path)
    sys.modules[module.__name__] = module
    code = entered.compiled(source, module.__file__, path)
    with entered.loading():
        exec(code, module.__dict__)  # noqa: S102
    if not callable(getattr(module, "run", None)):
        raise Failed(fault("load", f"{path} does not define 'def run(sdk)'", path=path))
    return module
