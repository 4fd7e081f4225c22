"""A certificate for the hosts that one server's box may reach, of use in that box alone.

TLS of the server's requests is ended inside its box, so that the kernel can hold each to its rules; nobody but
the programs of that box trusts it, and it is thrown away with the box.
"""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from agentos.errors import Unavailable

_DAYS = "3"  # a box lives for minutes; clocks differ
_TIMEOUT_S = 30.0


def certificate_for(hosts: Iterable[str]) -> str:
    """Key and certificate as PEM, for these (``name``, ``*.name``, ``name:port``). Raises Unavailable."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise Unavailable(
            "an MCP server with a way out needs openssl, which is not here: type `apt-get install openssl`"
        )
    names = ",".join(sorted({_alternative(host) for host in hosts}))
    extensions = [
        f"subjectAltName={names}",
        "basicConstraints=critical,CA:TRUE",
        "keyUsage=critical,keyCertSign,digitalSignature",
    ]
    with tempfile.TemporaryDirectory(prefix="agentos-certificate-") as folder:
        key, made = Path(folder, "key"), Path(folder, "made")
        command = [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ]
        command += ["-subj", "/CN=agentos", "-days", _DAYS, "-keyout", str(key), "-out", str(made)]
        command += [word for extension in extensions for word in ("-addext", extension)]
        try:
            subprocess.run(command, capture_output=True, check=True, timeout=_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"openssl made no certificate for the MCP server: {error}") from None
        return key.read_text() + made.read_text()


def _alternative(host: str) -> str:
    name = host[1:].partition("]")[0] if host.startswith("[") else host
    name = name.partition(":")[0] if name.count(":") == 1 else name
    try:
        return f"IP:{ipaddress.ip_address(name)}"
    except ValueError:
        return f"DNS:{name}"
