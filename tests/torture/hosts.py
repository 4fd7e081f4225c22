"""What runs on hosts of tests/torture/partitions.py that have no agentos: an S3 server, and the outside. They import little.

python -m tests.torture.hosts s3|outside PATH
"""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

HOSTS = {"control": 1, "one": 11, "two": 12, "three": 13, "pg": 21, "s3": 22, "outside": 31, "person": 99}
S3_PORT, SITE_PORT = 9000, 8080
BUCKET = "blobs"


def address(host: str) -> str:
    return f"10.77.0.{HOSTS[host]}"


class _Outside(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        with open(self.server.told, "a") as file:  # type: ignore[attr-defined]
            file.write(f"{self.path}\n")
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None: ...


def _be_outside(told: Path) -> None:
    site = ThreadingHTTPServer((address("outside"), SITE_PORT), _Outside)
    site.told = told  # type: ignore[attr-defined]
    site.serve_forever()


def _be_s3(kept: Path) -> None:
    """moto's server, whose memory outlives it: an object is on disk before the answer says that it is there."""
    from moto.s3.models import S3Backend, s3_backends
    from moto.server import main as serve

    kept.mkdir(exist_ok=True)
    put, delete = S3Backend.put_object, S3Backend.delete_object

    def putting(self: Any, bucket: str, key: str, value: bytes, *given: Any, **more: Any) -> Any:
        aside = kept / f".{threading.get_ident()}"
        aside.write_bytes(value)
        aside.rename(kept / quote(key, safe=""))
        return put(self, bucket, key, value, *given, **more)

    def deleting(self: Any, bucket: str, key: str, *given: Any, **more: Any) -> Any:
        (kept / quote(key, safe="")).unlink(missing_ok=True)
        return delete(self, bucket, key, *given, **more)

    backend = s3_backends["123456789012"]["aws"]
    backend.create_bucket(BUCKET, "us-east-1")
    for path in kept.iterdir():
        if not path.name.startswith("."):
            put(backend, BUCKET, unquote(path.name), path.read_bytes())
    S3Backend.put_object, S3Backend.delete_object = putting, deleting  # type: ignore[method-assign]
    serve(["-H", address("s3"), "-p", str(S3_PORT)])


if __name__ == "__main__":
    {"s3": _be_s3, "outside": _be_outside}[sys.argv[1]](Path(sys.argv[2]))
