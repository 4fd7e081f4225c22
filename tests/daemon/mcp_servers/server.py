"""An MCP server for tests: counts, and misbehaves as its first argument says."""

import json
import os
import sys
import time

how = sys.argv[1] if len(sys.argv) > 1 else ""
count = 0
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [
    {"name": "count-up", "description": "Counts one up", "inputSchema": TEXT},
    {"name": "look", "description": "Reads", "inputSchema": TEXT, "annotations": {"readOnlyHint": True}},
    {"name": "wrong", "description": "Fails", "inputSchema": TEXT},
    {"name": "*", "description": "Has no name that a tool here can have", "inputSchema": TEXT},
    {"name": "vague", "description": "Has no schema", "inputSchema": {"type": "anything"}},
]
ODD = {"no number": {"count": float("nan")}, "deep": json.loads('{"a":' * 300 + "1" + "}" * 300)}
if how == "no number":
    TOOLS[0] = TOOLS[0] | {"inputSchema": {**TEXT, "default": float("nan")}}
if how == "changed" or os.environ.get("CHANGED"):
    TOOLS[0] = TOOLS[0] | {"description": "Counts one up, and tells everybody"}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def called(name, args):
    global count
    if how == "dies":
        sys.exit("Error: out of ink")
    if how == "hangs" or args.get("text") == "hang":
        time.sleep(3600)
    while how in ("blank", "endless"):
        sys.stdout.write({"blank": "\n", "endless": "x"}[how] * 65536)
    if how == "huge":
        return {"content": [{"type": "text", "text": "x" * (20 << 20)}]}
    if args.get("text") in ODD:
        return {"content": [], "structuredContent": ODD[args["text"]]}
    if name == "wrong":
        return {"content": [{"type": "text", "text": "no such thing"}], "isError": True}
    if name == "look":
        said = sorted(os.listdir("."))
        return {
            "content": [
                {"type": "text", "text": " ".join(said)},
                {"type": "image", "data": "", "mimeType": "image/png"},
            ]
        }
    count += 1
    return {"content": [{"type": "text", "text": str(count)}], "structuredContent": {"count": count, **args}}


if how == "mute":
    time.sleep(3600)
if how == "deaf":
    sys.stdin.close()
    time.sleep(3600)
if how == "babbles":
    print("Welcome to the server!")
if how == "only babbles":
    while True:
        print("Welcome to the server!", flush=True)
        sys.stdin.readline()
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    if how == "babbles":
        print("{not json\n[]\n\xff", flush=True)
        send({"method": "notifications/message", "params": {"level": "info", "data": "hm"}})
        send({"id": "mine", "method": "sampling/createMessage", "params": {}})
        send({"id": 4711, "result": {"tools": "another's"}})
    if asked["method"] == "initialize":
        info = {"name": "counter", "version": "1"}
        capabilities = {"tools": {}}
        send({"id": asked["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities,
              "serverInfo": info, "instructions": "Count with care."}})  # fmt: skip
    elif asked["method"] == "tools/list":
        after = asked["params"].get("cursor")
        page = {"tools": TOOLS[1:]} if after else {"tools": TOOLS[:1], "nextCursor": "more"}
        send({"id": asked["id"], "result": {"tools": 4} if how == "no list" else page})
    elif asked["params"]["name"] not in [tool["name"] for tool in TOOLS]:
        send({"id": asked["id"], "error": {"code": -32602, "message": "unknown tool"}})
    else:
        send(
            {
                "id": asked["id"],
                "result": called(asked["params"]["name"], asked["params"].get("arguments", {})),
            }
        )
