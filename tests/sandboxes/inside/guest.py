"""Runs inside a box, in place of the worker: does what the test asks for.

A frame names a function of a module beside this one and its arguments; the answer is its result.
"""

from __future__ import annotations

import importlib
import traceback

from agentos.wire import Channel, WireClosed


def serve(channel: Channel) -> None:
    while True:
        try:
            frame = channel.receive()
        except WireClosed:
            return
        module, _, name = frame.head["do"].partition(":")
        try:
            result = getattr(importlib.import_module(module), name)(*frame.head["args"])
            channel.send({"result": result})
        except Exception as error:  # noqa: BLE001 - whatever the attack met is its result
            channel.send(
                {"raised": type(error).__name__, "message": str(error), "at": traceback.format_exc()}
            )
