#!/usr/bin/env bash
# Sees to a container engine: installs docker.io where it is missing and may be, starts dockerd if
# none answers, waits for it. Says in one sentence what went wrong and fails.
# On somebody's own machine nothing is installed or started unless AGENTOS_REQUIRE names docker.
set -euo pipefail

fail() { echo "docker-up: $1" >&2; exit 1; }
answers() { python3 - 2>/dev/null <<"PY"
import socket
engine = socket.socket(socket.AF_UNIX)
engine.settimeout(5)
engine.connect("/var/run/docker.sock")
engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
assert b"200 OK" in engine.recv(4096)
PY
}

answers && exit 0
case ",${AGENTOS_REQUIRE:-}," in *,docker,*) ;; *)
    echo "docker-up: no container engine answers; the tests marked docker will be skipped" >&2
    exit 0 ;;
esac
[ "$(id -u)" = 0 ] || fail "no container engine answers; start one (sudo systemctl start docker) and let this user use it"
if ! command -v dockerd >/dev/null; then
    command -v apt-get >/dev/null || fail "dockerd is missing and there is no apt-get to install docker.io with"
    echo "docker-up: installing docker.io with apt-get" >&2
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends docker.io ca-certificates; } >/dev/null ||
        fail "docker.io could not be installed"
fi
if ! grep -q ' /sys/fs/cgroup' /proc/mounts; then  # a bare container has none mounted
    mount -t cgroup2 cgroup2 /sys/fs/cgroup || fail "control groups could not be mounted"
fi
if [ -d /run/systemd/system ]; then
    systemctl start docker || fail "systemctl start docker failed"
else
    # What a killed engine left makes the next one wait for it for ever.
    for name in /var/run/docker.pid /var/run/docker/containerd/containerd.pid; do
        if [ -f "$name" ] && ! kill -0 "$(cat "$name")" 2>/dev/null; then rm -f "$name"; fi
    done
    log=$(mktemp /tmp/dockerd.XXXXXX)
    nohup setsid dockerd </dev/null >"$log" 2>&1 &
fi
for _ in $(seq 120); do
    answers && exit 0
    sleep 0.5
done
[ -z "${log:-}" ] || tail -n 5 "$log" >&2
fail "dockerd did not answer within 60 s"
