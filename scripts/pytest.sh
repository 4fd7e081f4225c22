#!/usr/bin/env bash
# pytest with its temporary files in memory, where there is room: a third of what the tests would wait for is the
# disk, at every version and every row that they make durable. PYTHON ARGUMENTS...
set -uo pipefail

python=$1
shift
free_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null)
room_kb=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
if [ "${free_kb:-0}" -gt 8000000 ] && [ "${room_kb:-0}" -gt 4000000 ]; then
    TMPDIR=$(mktemp -d /dev/shm/a.XXXX)  # short: the paths of sockets may have 107 signs
    export TMPDIR
    chmod 755 "$TMPDIR"
    trap 'rm -rf "$TMPDIR"' EXIT
    set -- --basetemp="$TMPDIR/p" "$@"
fi
"$python" -m pytest "$@"
