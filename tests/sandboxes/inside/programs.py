"""What ordinary tools do, one function for each: its answer says that it worked."""

from __future__ import annotations

import asyncio
import concurrent.futures
import decimal
import multiprocessing
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path


def shell(script: str) -> str:
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, cwd="/ws")
    return done.stdout.strip() if done.returncode == 0 else f"exit {done.returncode}: {done.stderr[-500:]}"


def has(program: str) -> bool:
    return shutil.which(program) is not None


def python() -> list[int]:
    """Threads, processes, files that are locked, mapped and watched, and sockets."""
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        found = [sum(threads.map(int, "1234"))]
    with multiprocessing.Pool(2) as pool:
        found.append(sum(pool.map(abs, [-1, -2, -3])))
    with sqlite3.connect("/ws/a.db") as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (n)")
        database.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
        found.append(database.execute("SELECT sum(n) FROM t").fetchone()[0])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a").write_text("x")
        shutil.copy(f"{folder}/a", f"{folder}/b")
        os.replace(f"{folder}/b", f"{folder}/c")
        found.append(len(os.listdir(folder)))
    found.append(asyncio.run(_talk()))
    found.append(int(decimal.Decimal(2) ** 3))
    return found


async def _talk() -> int:
    """A server and a client on loopback, a program, a signal handler and a timer of one event loop."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    writer.write(b"1\n")
    line = await reader.readline()
    writer.close()
    server.close()
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(4)", stdout=-1)
    out, _ = await program.communicate()
    await asyncio.sleep(0.01)
    assert threading.active_count() < 50
    return int(line) + int(out)
