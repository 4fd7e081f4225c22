"""The inside of a bench over the tests of a library: they are collected once, and each source is tried in a fork.

    python library_bench_server.py FILE TEST_FILE…     (requests on standard input, answers on standard output)

A source changes functions of FILE: the new code is put into the function objects that are there already, so that
whoever imported them has it. It needs pytest and nothing of agentos: the interpreter may be the library's own.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
import types
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

MEMORY = 1 << 30


class OutOfTime(BaseException):
    """A test used up its CPU time."""


class Bench:
    """The plug-in that serves requests in the place of pytest's own loop."""

    def __init__(self, path, requests, answers):
        self.path, self.requests, self.answers = os.path.realpath(path), requests, answers
        self.known = {}

    def pytest_runtestloop(self, session):
        self._say([item.nodeid for item in session.items])
        for line in self.requests:
            asked = json.loads(line)
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reading)
                try:
                    found = self._tried(session, asked)
                except BaseException as error:  # noqa: BLE001 (a source may end its process in any way)
                    found = [
                        [False, {"error": type(error).__name__, "message": str(error)[:200]}, [], 0, 0.0]
                    ]
                os.write(writing, json.dumps(found).encode())
                os._exit(0)
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                said = pipe.read()
            _, _, used = os.wait4(child, 0)
            self._say({"results": json.loads(said or b"[]"), "cpu_s": used.ru_utime + used.ru_stime})
        return True

    def _say(self, message):
        self.answers.write(json.dumps(message) + "\n")
        self.answers.flush()

    def _tried(self, session, asked):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        signal.signal(signal.SIGPROF, _out_of_time)
        if asked["source"]:
            self._patch(asked["source"])
        found = []
        for number in asked["wanted"]:
            found.append(self._one(session.items[number], asked))
            if asked["stop"] and not found[-1][0]:
                break
        return found

    def _one(self, item, asked):
        lines = set()

        def local(frame, event, arg):
            lines.add(frame.f_lineno)
            return local

        def trace(frame, event, arg):
            return local if self._is_own(frame.f_code.co_filename) else None

        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, asked["timeout_s"], 0.2)
        try:
            if asked["trace"]:
                sys.settrace(trace)
            reports = runtestprotocol(item, log=False, nextitem=None)
        except OutOfTime:
            return [False, {"error": "timeout", "message": ""}, sorted(lines), 0, time.process_time() - began]
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
        took = time.process_time() - began
        bad = next((report for report in reports if report.failed), None)
        if bad is None and any(report.when == "call" and report.passed for report in reports):
            return [True, None, sorted(lines), 0, took]
        crash = getattr(getattr(bad, "longrepr", None), "reprcrash", None)
        text = crash.message if crash else "not run"
        kind, _, message = text.partition(":")
        entries = getattr(getattr(bad, "longrepr", None), "reprtraceback", None)
        raised = [e.reprfileloc.lineno for e in entries.reprentries if self._own(e)] if entries else []
        out = {
            "error": kind.split()[0] if kind.strip() else "AssertionError",
            "message": message.strip()[:200],
        }
        return [False, out, sorted(lines), raised[-1] if raised else 0, took]

    def _own(self, entry):
        place = getattr(entry, "reprfileloc", None)
        return place is not None and os.path.realpath(place.path) == self.path

    def _is_own(self, name):
        if name not in self.known:
            self.known[name] = os.path.realpath(name) == self.path
        return self.known[name]

    def _patch(self, source):
        module = next(
            m
            for m in sys.modules.values()
            if os.path.realpath(getattr(m, "__file__", None) or "/") == self.path
        )
        namespace = types.ModuleType(module.__name__)
        namespace.__dict__.update({k: v for k, v in module.__dict__.items() if k.startswith("__")})
        exec(compile(source, self.path, "exec"), namespace.__dict__)
        _taken_over(module.__dict__, namespace.__dict__, module.__name__, 0)


def _taken_over(old, new, name, depth):
    """Code of functions, in classes too; constants of the module."""
    for key, value in list(new.items()):
        mine = old.get(key)
        mine, value = (getattr(v, "__wrapped__", v) for v in (mine, value))
        mine, value = (getattr(v, "__func__", v) for v in (mine, value))
        if isinstance(mine, property) and isinstance(value, property):
            mine, value = mine.fget, value.fget
        if isinstance(mine, types.FunctionType) and isinstance(value, types.FunctionType):
            if mine.__module__ == name and mine.__code__.co_freevars == value.__code__.co_freevars:
                mine.__code__, mine.__defaults__ = value.__code__, value.__defaults__
                mine.__kwdefaults__ = value.__kwdefaults__
        elif isinstance(mine, type) and isinstance(value, type) and mine.__module__ == name and depth < 3:
            _taken_over(vars(mine), vars(value), name, depth + 1)
        elif (
            depth == 0
            and isinstance(value, int | float | str | tuple | list | dict)
            and not key.startswith("__")
        ):
            old[key] = value


def _out_of_time(number, frame):
    raise OutOfTime


def main():
    path, *tests = sys.argv[1:]
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")  # pytest takes both for itself
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)  # what tests print is no answer
    os.dup2(null, 2)
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "--continue-on-collection-errors",
        "-o",
        "addopts=",
    ]
    pytest.main([*options, "--rootdir", str(Path.cwd()), *tests], plugins=[Bench(path, requests, answers)])


if __name__ == "__main__":
    main()
