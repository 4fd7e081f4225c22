#!/usr/bin/env python3
"""mini-agent: a small command-line agent that knows nothing of agentos.

usage: agent.py --goal-file FILE [--max-turns N]

It reads OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL, gives the model one tool (a shell), runs
what the model asks for in the current directory, and prints the model's last words.
"""

import argparse
import json
import os
import subprocess
import sys
import urllib.request

SHELL = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Run a command in the current directory; gives its exit status and output.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}


def ask(messages: list) -> dict:
    body = {"model": os.environ.get("OPENAI_MODEL", ""), "messages": messages, "tools": [SHELL]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {
            "Content-Type": "application/json",
            "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", ""),
        },
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


def shell(command: str) -> str:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    return f"exit {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-1000:]}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--goal-file", required=True)
    parser.add_argument("--max-turns", type=int, default=20)
    options = parser.parse_args()
    with open(options.goal_file, encoding="utf-8") as file:
        goal = file.read()
    messages = [
        {"role": "system", "content": "You solve the task with the shell. Answer with the result alone."},
        {"role": "user", "content": goal},
    ]
    for _ in range(options.max_turns):
        message = ask(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            print(message.get("content") or "")
            return 0
        for call in message["tool_calls"]:
            command = json.loads(call["function"]["arguments"])["command"]
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": shell(command)})
    print("too many turns", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
