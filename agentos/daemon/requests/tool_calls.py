"""What becomes of a tool call that the worker announces: made, served from the record, or the end.

The effects of a tool are what the kernel itself reads in the source that it handed out, never what
the worker says. docs/understand/replay.md has the table of what happens to which effect in which mode.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentos.daemon.job.bundle import Bundle, is_kernel_file
from agentos.daemon.requests.run_requests import CallCheck, Denied, RequestHandler, RunContext, RunEnds
from agentos.domain import (
    Effect,
    Json,
    KernelFault,
    RecordedTool,
    Recording,
    Result,
    Snapshot,
    Step,
    call_key,
    kernel_fault,
)
from agentos.errors import Unavailable, UserError
from agentos.evolver.history.recordings import EXTERNAL, UNCERTAIN, recorded_call
from agentos.messages import WHEELS
from agentos.ports import Plan, Snapshots
from agentos.resources import tool_path, tool_reference
from agentos.resources.declarations import Effects, ServerTool, declared, is_server, server_tool

if TYPE_CHECKING:
    from agentos.daemon.requests.server_calls import RunServers

_AGAIN = frozenset({Effect.PURE, Effect.READ})  # run again in a replay, and held against the record
_GO: Mapping[str, Json] = {"go": True}


def tool_asks(asking: RunContext, servers: Callable[[RunContext], RunServers] | None = None) -> ToolAsks:
    """Makes the answerer of each run's announced tool calls (``RunServices.answerers["tool"]``)."""
    return ToolAsks(asking, servers(asking) if servers and is_server(asking.bundle.files) else None)


class ToolAsks(RequestHandler):
    """One run's announced tool calls. The n-th of equal calls is the n-th of those on record.

    A tool of an MCP server is called here, where it is let happen: the worker gets what it gave.
    """

    def __init__(self, asking: RunContext, servers: RunServers | None = None) -> None:
        self._asking = asking
        self._servers = servers
        self._recorded = _by_key(asking.plan.recording)
        self._asked: Counter[str] = Counter()
        self._given: list[tuple[str, Json, Json]] = []  # key, observation and fault of calls that were served
        self._lock = threading.Lock()
        alone = asking.rules is None and asking.plan.recording is None
        self.at_once = alone and not is_server(asking.bundle.files)

    def answer(self, body: Mapping[str, Any]) -> Mapping[str, Json]:
        """As ``messages.Ask`` says. Raises Denied, or RunEnds where a replay cannot go on."""
        tool, args = body.get("tool"), body.get("args")
        if not isinstance(tool, str) or not isinstance(args, dict):
            raise Denied("request", "a call has the name of a tool and its arguments")
        most = self._asking.bundle.limits.output_bytes  # it is recorded, as an action is
        if len(json.dumps(args)) > most:
            raise Denied("limit", f"the arguments of a call have at most {most:,} bytes")
        path, says = self._declared(tool)
        rules = self._asking.rules
        held = rules.call(tool, args, says.effects) if rules else CallCheck(args)
        given = self._given_for(tool, dict(held.args), (path, says), refused=held.refused)
        return given if held.args == args else {**given, "args": dict(held.args)}

    def _given_for(
        self,
        tool: str,
        args: Mapping[str, Json],
        known: tuple[str, Effects],
        *,
        refused: Mapping[str, Json] | None,
    ) -> Mapping[str, Json]:
        """What a call gets; one that is refused counts among those that are equal to it, as it does on record."""
        path, says = known
        key = call_key(tool, self._asking.redact(args))  # on record it stands without its secrets
        with self._lock:
            number = self._asked[key]
            self._asked[key] += 1
        if refused is not None:
            return refused
        calls = self._recorded.get(key, ())
        found = calls[number] if number < len(calls) else None
        action = {"tool": tool, "args": args, "path": path, "number": number}
        if served := server_tool(path, self._asking.bundle.files[path]):
            return self._of_server(served, action, says, found)
        if Effect.EXTERNAL in says.effects:
            return self._external(action, says, found)
        if found is None or found.result is None or not self._asking.plan.resume:
            return _GO
        # The workspace died with the box of the attempt before: what changes it is done again.
        return {**_GO, **self._serve(found)} if Effect.WRITE in says.effects else self._serve(found)

    def _of_server(
        self, tool: ServerTool, action: Mapping[str, Json], says: Effects, found: RecordedTool | None
    ) -> Mapping[str, Json]:
        """From the record where it is on record, whatever its effects, unless it was made with other wheels.

        Else it is made, in a replay too unless it acts on the outside: the server's box is the run's own, and is
        brought first to where the calls before it left it.
        """
        if self._servers is None:
            raise Denied("not_available", "nothing here calls the tools of MCP servers")
        if self._servers.has_other_wheels(tool):
            found = None  # what these wheels give is what is asked
        if Effect.EXTERNAL in says.effects:
            answer = self._served(action, says, found)
            if answer is None:
                # a server that does not start, or waits for a person, was asked for nothing
                failed = self._servers.begin(tool)
                if failed is not None:
                    return failed
                self._begins(action)
        else:
            answer = self._serve(found) if found is not None and found.result is not None else None
        if answer is None:
            return self._servers.call(tool, action["args"])
        # Where its requests are not served from the record, what acts on the outside would act there once more.
        acts = Effect.EXTERNAL in says.effects and not self._asking.plan.replays
        if not says.effects <= _AGAIN and not acts:
            self._servers.was_served(tool, action["args"])
        return answer

    def close(self) -> None:
        """See ``RequestHandler``."""
        if self._servers is not None:
            self._servers.close()

    stop = close  # a call under way ends with its server

    def _serve(self, call: RecordedTool) -> Mapping[str, Json]:
        given = {"observation": call.result or {"ok": False}, "fault": call.fault}
        with self._lock:
            self._given.append((call_key(call.tool, call.args), given["observation"], given["fault"]))
        return given

    def was_served(self, step: Step) -> bool:
        """Whether the step tells of a call that was answered from the record; asked once for each step.

        The kernel writes that down, because what runs in the box is not told.
        """
        call = recorded_call(step) if self._given else None
        if call is None:
            return False
        told = (call_key(call.tool, call.args), call.result, call.fault)
        with self._lock:
            if told not in self._given:
                return False
            self._given.remove(told)
            return True

    def _external(
        self, action: Mapping[str, Json], says: Effects, found: RecordedTool | None
    ) -> Mapping[str, Json]:
        ran = self._asking.plan.replays and self._runs_in_a_replay(found)
        answer = None if ran else self._served(action, says, found)
        if answer is None:
            self._begins(action)
        return _GO if answer is None else answer

    def _served(
        self, action: Mapping[str, Json], says: Effects, found: RecordedTool | None
    ) -> Mapping[str, Json] | None:
        """What a call that acts on the outside gets of the record; None where it is to be made. Raises Denied, RunEnds."""
        plan = self._asking.plan
        if found is not None:
            lost = found.result is None
            again = not plan.replays and says.idempotent and (lost or _told_unsure(found))
            if not again and not (lost and plan.replays):
                return self._serve(found)
        if plan.replays:
            why = f"a replay came to a call of '{action['tool']}', which acts on the outside and is not on record"
            raise RunEnds(Result.NOT_REPLAYABLE, kernel_fault(KernelFault.NOT_RECORDED, why))
        if Effect.EXTERNAL not in self._asking.task.effects:
            why = f"'{action['tool']}' has the effect 'external': add it to the task's effects to allow it"
            raise Denied("effect", why)
        return None

    def _begins(self, action: Mapping[str, Json]) -> None:
        """On record before the call: whoever is killed now leaves behind that it may have happened."""
        self._asking.step(EXTERNAL, dict(action), None, 0.0)

    def _runs_in_a_replay(self, found: RecordedTool | None) -> bool:
        """Whether the tool's own code is run: its box has no way out but requests, which are served from the
        record (``egress``). Not where an earlier version recorded requests without their answers.
        """
        recording = self._asking.plan.recording
        fetches = recording.fetches if recording else None
        if fetches is None or (found is not None and (found.served or _told_unsure(found))):
            return False
        # Of a call that is not on record, or was lost, nobody knows what it would have asked for.
        return bool(fetches) or (found is not None and found.result is not None)

    def _declared(self, tool: str) -> tuple[str, Effects]:
        files = self._asking.bundle.files
        try:
            path = tool_path(tool, files)
        except UserError as error:
            raise Denied("unknown_tool", str(error)) from None
        return path, declared(path, files[path])


def _by_key(recording: Recording | None) -> Mapping[str, Sequence[RecordedTool]]:
    found: dict[str, list[RecordedTool]] = {}
    for call in recording.tools if recording else ():
        found.setdefault(call_key(call.tool, call.args), []).append(call)
    return found


def _told_unsure(call: RecordedTool) -> bool:
    return isinstance(call.fault, dict) and call.fault.get("type") == UNCERTAIN


# --- drift --------------------------------------------------------------------------------------


def drift(snapshots: Snapshots, bundle: Bundle, plan: Plan, steps: Sequence[Step]) -> tuple[str, ...]:
    """What came out differently from the recording although nothing that was edited explains it.

    One sentence for each tool: its own resource is the same in both snapshots, it got the same
    arguments, and it gave another result. What only reads may follow what an edit changed, so it
    is not held against the recording any more once the runs have parted for another reason.
    """
    recording = plan.recording
    if recording is None or plan.resume:
        return ()
    recorded = _by_key(recording)
    asked: Counter[str] = Counter()
    found: dict[str, str] = {}
    parted = False
    for step in steps:
        call = recorded_call(step)
        if call is None:
            continue
        key, path = call_key(call.tool, call.args), str(step.action["path"])
        earlier = recorded.get(key, ())[asked[key] :]
        asked[key] += 1
        if not earlier:
            parted = True
            continue
        if _same_result(earlier[0], call):
            continue
        effects = declared(path, bundle.files.get(path, b"")).effects
        if not _same_resource(snapshots, recording.snapshot, bundle.files, path):
            parted = True
        elif effects <= _AGAIN and (Effect.READ not in effects or not parted):
            what = " and ".join(sorted(effects))
            found.setdefault(
                path, f"{tool_reference(path)} ({what}) gave another result than the one on record"
            )
    return tuple(found.values())


def _same_result(one: RecordedTool, other: RecordedTool) -> bool:
    return bool(one.result == other.result and one.fault == other.fault)


def _same_resource(snapshots: Snapshots, recorded: Snapshot, files: Mapping[str, bytes], path: str) -> bool:
    """Whether the tool's resource is the same in the recording's snapshot as among these files.

    A snapshot that is gone cannot be compared, so nothing is held against it.
    """
    root = "/".join(path.split("/")[:2]) + "/"
    # What a lock stands for is no file of the registry; the lock itself is.
    here = {
        name: content
        for name, content in files.items()
        if name.startswith(root) and not name.startswith(f"{root}{WHEELS}/")
    }
    try:
        there = snapshots.files(recorded, root.rstrip("/"))
        return {path: content for path, content in there.items() if not is_kernel_file(path)} == here
    except Unavailable:
        return False
