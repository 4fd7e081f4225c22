"""What the agent's own loop costs: CPU of a box for 20 scripted turns, beside a loop that does only the least.

python benchmarks/bench_agent.py [--profile]

The scripted model answers over the box's channel at once, so no model's time is in it. The box is real,
and so is the worker in it; CPU is the box's whole, its tools' processes included.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agentos import shipped
from agentos.domain import Limits
from agentos.messages import Answer, LoadDone, LoadJob, RunDone, RunJob, ToolCard
from agentos.sandboxes.bubblewrap.sandbox import Bubblewrap

TURNS = 20
TIMES = 15
TOOL = "tool/word-count/tool.py"
TEXT = b"three small words\n"

# The same asks and calls without graph, context, stop rules or anything else.
BARE = """
import json
def run(sdk):
    messages = [{"role": "user", "content": sdk.task.goal}]
    while True:
        message = sdk.model({"messages": messages})["choices"][0]["message"]
        if not message.get("tool_calls"):
            return sdk.finish(message["content"])
        messages.append(message)
        for call in message["tool_calls"]:
            name, args = call["function"]["name"], json.loads(call["function"]["arguments"])
            content = "x" if name == "read_output" else json.dumps(sdk.call_tool(name, args).output)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
"""
PROFILE = """
import cProfile, pstats, sys
import real_harness
def run(sdk):
    profile = cProfile.Profile()
    profile.runcall(real_harness.run, sdk)
    with open("profile.txt", "w") as file:
        pstats.Stats(profile, stream=file).sort_stats("tottime").print_stats(35)
"""


def files_of(harness: str) -> dict[str, str]:
    """The bundle: the shipped harness, agent, prompt and tools, or another ``harness.py``."""
    root = shipped.folder("registry")
    files = {f"harness/default/{path.name}": path.read_text() for path in root.glob("harness/default/*.*")}
    if harness == PROFILE:
        files["harness/default/real_harness.py"] = files["harness/default/harness.py"]
    if harness:
        files["harness/default/harness.py"] = harness
    for folder, kind in (("agents", "agent"), ("prompts", "prompt"), ("tools", "tool")):
        for path in root.glob(f"{folder}/*/*.*"):
            files[f"{kind}/{path.parent.name}/{path.name}"] = path.read_text()
    return files


def cards_of(sandbox: Bubblewrap, files: dict[str, str]) -> list[ToolCard]:
    """As the kernel has them at hand."""
    tools = [path for path in files if path.startswith("tool/") and path.endswith("/tool.py")]
    job = LoadJob(files=list(files), tools=tools)
    with sandbox.open(Limits(), light=True) as box:
        box.channel.send(job.model_dump(), tuple(text.encode() for text in files.values()))
        frame = box.channel.receive(deadline=time.monotonic() + 60)
    return LoadDone.model_validate(frame.head).tools


def said(turn: int, tool: str, each: int) -> dict[str, Any]:
    """The reply of this turn: calls that differ from those before, then an answer."""
    if turn == TURNS:
        return {"role": "assistant", "content": "done"}
    args = {"path": f"{turn % 7}.txt"} if tool == "word_count" else {"reference": f"output:{turn}"}
    function = {"name": tool, "arguments": json.dumps(args)}
    asked = [{"id": f"{turn}-{n}", "type": "function", "function": function} for n in range(each)]
    return {"role": "assistant", "content": None, "tool_calls": asked}


def run(
    sandbox: Bubblewrap, files: dict[str, str], cards: list[ToolCard], tool: str, each: int = 1
) -> tuple[float, float, bytes]:
    """CPU and wall in ms of one run, and the tar of what it left."""
    inputs = [f"{n}.txt" for n in range(7)]
    job = RunJob(
        run_id="bench", goal="count", call=None, agent="default", effects=["read"], max_steps=1_000,
        tool_wall_s=60.0, output_bytes=1 << 20, memory_mb=512, harness="harness/default",
        files=list(files), inputs=inputs, cards=cards, models=[{"name": "m", "context_tokens": 128_000}],
    )  # fmt: skip
    blobs = (*(text.encode() for text in files.values()), *([TEXT] * len(inputs)))
    deadline, turn = time.monotonic() + 120, 0
    with sandbox.open(Limits()) as box:
        began = time.perf_counter()
        box.channel.send(job.model_dump(), blobs)
        while (frame := box.channel.receive(deadline=deadline)).head["type"] in ("step", "ask"):
            if frame.head["type"] == "ask":
                reply = {"reply": {"choices": [{"message": said(turn, tool, each)}]}}
                box.channel.send(Answer(id=frame.head["id"], body=reply).model_dump())
                turn += 1
        wall = (time.perf_counter() - began) * 1e3
        done = RunDone.model_validate(frame.head)
        assert done.answer == "done", done.fault
        return box.close().cpu_s * 1e3, wall, frame.blobs[0]


def row(what: str, value: str, beside: str = "", remarks: str = "") -> None:
    print(f"| {what} | {value} | {beside} | {remarks} |", flush=True)


def main() -> None:
    uid = 61321 if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory() as folder, Bubblewrap(Path(folder), uid) as sandbox:
        sandbox.start()
        ours, bare = files_of(""), files_of(BARE)
        cards = cards_of(sandbox, ours)
        if "--profile" in sys.argv:
            tar = run(sandbox, files_of(PROFILE), cards, "word_count")[2]
            print(tar.decode("utf-8", "replace"))
            return
        kinds = {
            "one tool each": ("word_count", 1),
            "no tool's process": ("read_output", 1),
            "four tools side by side": ("word_count", 4),
        }
        for name, (tool, each) in kinds.items():
            measured: dict[str, list[tuple[float, float]]] = {"ours": [], "bare": []}
            for _ in range(TIMES):  # interleaved: the machine is not alike all the time
                for which, files in (("ours", ours), ("bare", bare)):
                    measured[which].append(run(sandbox, files, cards, tool, each)[:2])
            cpu, wall = (statistics.median(one[n] for one in measured["ours"]) for n in (0, 1))
            least, _ = (statistics.median(one[n] for one in measured["bare"]) for n in (0, 1))
            row(
                f"{TURNS} scripted turns, {name}: CPU of the box",
                f"{cpu:.0f} ms",
                f"{least:.0f} ms with a loop that does the least",
                f"{(cpu - least) / TURNS:.1f} ms a turn for graph, context and stop rules; wall {wall:.0f} ms",
            )


if __name__ == "__main__":
    main()
