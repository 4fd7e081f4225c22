#!/usr/bin/env bash
# A hook: the first line of a commit's message has at most 72 characters, the second is empty.
set -euo pipefail
export LC_ALL=C.UTF-8  # characters, not bytes

IFS= read -r subject <"$1" || true
if [ "${#subject}" -gt 72 ]; then
    echo "the subject has ${#subject} characters, 72 are allowed: say why in the body" >&2
    exit 1
fi
if [ -n "$(sed -n '2{/^#/!p}' "$1")" ]; then
    echo "an empty line is expected between the subject and the body" >&2
    exit 1
fi
