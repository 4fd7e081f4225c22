#!/usr/bin/env bash
# pytest with its temporary files in memory, where there is room: a third of what the tests would wait for is the
# disk, at every version and every row that they make durable. PYTHON ARGUMENTS...
set -uo pipefail

python=$1
shift
free_kb=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null)
room_kb=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)
if [ "${free_kb:-0}" -gt 8000000 ] && [ "${room_kb:-0}" -gt 4000000 ]; then
    place=$(mktemp -d /dev/shm/a.XXXX)  # short: the path of a socket has at most 107 bytes
    trap 'rm -rf "$place"' EXIT
    chmod 755 "$place"
    export TMPDIR=$place
    set -- --basetemp="$place/p" "$@"
fi
"$python" -m pytest "$@"
status=$?
if [ $status = 1 ] && [ -z "${CI:-}" ] && [ -n "${place:-}" ]; then  # somebody may want to look at what failed
    trap - EXIT
    echo "The tests' files are in memory until you type: rm -rf $place"
fi
exit $status
