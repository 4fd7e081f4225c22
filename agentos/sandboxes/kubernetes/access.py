"""Where the cluster is and who asks: a context of the kubeconfig, or the service account of the pod that this is.

Read as kubectl reads it, without the official client (docs/decisions/kubernetes-by-http.md): a token, a token's
file, a certificate, or a program that prints one of them (``client.authentication.k8s.io/v1``).
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from agentos.errors import UserError

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_PLUGIN_S = 30.0
_EARLY = timedelta(seconds=60)  # before it ends a token is asked for anew


@dataclass(slots=True)
class Access:
    """``url`` and ``namespace`` of the cluster, and what proves who asks. Thread-safe."""

    url: str
    namespace: str
    trust: ssl.SSLContext | None
    token: str = ""
    token_file: Path | None = None
    plugin: Mapping[str, Any] | None = None
    _until: datetime | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def headers(self) -> dict[str, str]:
        """With a token that stands now. Raises UserError where the program that makes them does not."""
        if self.token_file is not None:  # the kubelet writes a new one each hour
            return _bearer(self.token_file.read_text().strip())
        with self._lock:
            if self.plugin is not None and (self._until is None or datetime.now(UTC) > self._until):
                self.token, self._until = _asked(self.plugin, self.url)
            return _bearer(self.token)


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def find_access(context: str, namespace: str) -> Access:
    """That context of the kubeconfig, "" for the current one. Raises UserError."""
    if not context and (_ACCOUNT / "token").exists():
        host, port = (
            os.environ.get("KUBERNETES_SERVICE_HOST", ""),
            os.environ.get("KUBERNETES_SERVICE_PORT", "443"),
        )
        if host:
            trust = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
            return Access(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", namespace, trust,
                          token_file=_ACCOUNT / "token")  # fmt: skip
    path = Path(os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or "~/.kube/config").expanduser()
    try:
        return _of(yaml.safe_load(path.read_text()), context, namespace, path.parent)
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
        raise UserError(
            f"The cluster is not known ({path}: {why}): name a kubeconfig in the variable KUBECONFIG, and its "
            "context in the table [kubernetes] of agentos.toml."
        ) from None


def _of(config: Mapping[str, Any], context: str, namespace: str, folder: Path) -> Access:
    chosen = _named(config, "contexts", context or config.get("current-context", ""))["context"]
    cluster = _named(config, "clusters", chosen["cluster"])["cluster"]
    user = _named(config, "users", chosen["user"]).get("user") or {}
    token_file = folder / user["tokenFile"] if "tokenFile" in user else None
    url = str(cluster["server"]).rstrip("/")
    return Access(
        url,
        namespace,
        _trust(cluster, user, folder) if url.startswith("https") else None,
        str(user.get("token", "")),
        token_file,
        user.get("exec"),
    )


def _named(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    for one in config.get(kind) or ():
        if one["name"] == name:
            found: Mapping[str, Any] = one
            return found
    raise ValueError(f"there is no {name!r} among its {kind}")


def _trust(cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> ssl.SSLContext:
    """Its own authority where one is named. A cluster that nobody vouches for is refused."""
    if cluster.get("insecure-skip-tls-verify"):
        raise ValueError("insecure-skip-tls-verify: name the authority of the cluster instead")
    authority = _content(cluster, "certificate-authority", folder)
    trust = ssl.create_default_context(cadata=authority.decode() if authority else None)
    certificate, key = (_content(user, f"client-{kind}", folder) for kind in ("certificate", "key"))
    if certificate and key:
        with tempfile.NamedTemporaryFile(
            prefix="agentos-", suffix=".pem"
        ) as file:  # mode 0600; ssl reads files only
            file.write(certificate + b"\n" + key)
            file.flush()
            trust.load_cert_chain(file.name)
    return trust


def _content(table: Mapping[str, Any], name: str, folder: Path) -> bytes:
    if f"{name}-data" in table:
        return base64.b64decode(table[f"{name}-data"])
    return (folder / table[name]).read_bytes() if name in table else b""


def _asked(plugin: Mapping[str, Any], url: str) -> tuple[str, datetime | None]:
    """What the program of the kubeconfig prints: a token, and when to ask anew."""
    version = str(plugin["apiVersion"])
    asked = {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": url}},
    }
    variables = {one["name"]: one["value"] for one in plugin.get("env") or ()}
    try:
        done = subprocess.run(
            [plugin["command"], *(plugin.get("args") or ())],
            env=os.environ | variables | {"KUBERNETES_EXEC_INFO": json.dumps(asked)},
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_PLUGIN_S, check=True,
        )  # fmt: skip
        status = json.loads(done.stdout)["status"]
        token = str(status["token"])
        ends = status.get("expirationTimestamp")
        return token, datetime.fromisoformat(ends) - _EARLY if ends else datetime.max.replace(tzinfo=UTC)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        told = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip()[-300:]
        raise UserError(
            f"The kubeconfig's program {plugin['command']!r} gave no token ({told or f'{type(error).__name__}: {error}'})."
        ) from None
