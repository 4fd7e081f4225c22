"""A real S3 server (moto's) as a process of its own, to be killed, frozen and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from tests.loopback import held_port

BUCKET = "blobs"
KEYS = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "nobody",  # moto asks for none
    "AWS_DEFAULT_REGION": "us-east-1",
}


@dataclass
class S3Server:
    """One server. What it holds is in its memory: a kill loses it."""

    port: int
    child: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    @contextmanager
    def start(cls) -> Iterator[S3Server]:
        """Up, with an empty bucket, until the end of the context."""
        with held_port() as port:
            server = cls(port)
            server.up()
            try:
                yield server
            finally:
                server.kill()

    def up(self) -> None:
        """Begin to serve, with an empty bucket."""
        words = ["-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.child = subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )
        deadline = time.monotonic() + 120
        while True:
            try:
                self.client().create_bucket(Bucket=BUCKET)
                return
            except (BotoCoreError, ClientError):
                assert time.monotonic() < deadline, "the S3 server does not come up"
                time.sleep(0.1)

    def kill(self) -> None:
        """As kill -9."""
        if self.child is not None:
            with suppress(ProcessLookupError):
                self.child.send_signal(signal.SIGKILL)
            self.child.wait()

    def client(self):  # type: ignore[no-untyped-def]
        """To do to the content what no blob store does."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id="somebody",
            aws_secret_access_key="nobody",
            region_name="us-east-1",
        )

    def content(self) -> list[str]:
        """All that it holds."""
        return [item["Key"] for item in self.client().list_objects_v2(Bucket=BUCKET).get("Contents", [])]
