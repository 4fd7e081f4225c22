#!/usr/bin/env bash
# What the Makefile needs of the machine: a Python, a virtual environment, bubblewrap; and what only the tests do.
# Each function says in one sentence what is missing and what to type; nothing is guessed.
set -euo pipefail

fail() { echo "setup: $1" >&2; exit 1; }

# root with apt-get may install; anybody else is told what to type. One call at a time: apt waits for no other one.
apt_install() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "setup: installing $* with apt-get" >&2
        (
            flock 9
            apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" >/dev/null
        ) 9<"$0"
    else
        return 1
    fi
}

usable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
complete() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

# Prints the first Python >= 3.11 that can make a virtual environment.
find_python() {
    local name first=""
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 /usr/bin/python3; do
        command -v "$name" >/dev/null && usable "$name" || continue
        if complete "$name"; then command -v "$name"; return; fi
        first=${first:-$name}
    done
    [ -n "$first" ] || fail "Python 3.11 or later is needed and none was found; install it (Debian 12 or later: sudo apt-get install python3 python3-venv), or name one: make PYTHON=/path/to/python3"
    # Debian splits ensurepip off into python3-venv.
    apt_install python3-venv >&2 && complete "$first" || fail "$first cannot make a virtual environment; type: sudo apt-get install python3-venv"
    command -v "$first"
}

environment() {
    local venv=$1 python
    if [ ! -x "$venv/bin/python" ] || ! usable "$venv/bin/python"; then
        python=$(find_python)
        echo "setup: making $venv with $python ($("$python" --version))" >&2
        "$python" -m venv --clear "$venv"
    fi
    echo "setup: installing the pinned packages (once; later calls skip this)" >&2
    # PIP_CONSTRAINT and PIP_BUILD_CONSTRAINT pin the build backend too.
    PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
        "$venv/bin/python" -m pip install -q -e ".[all,dev]"
}

bubblewrap() {
    command -v bwrap >/dev/null && return
    apt_install bubblewrap && command -v bwrap >/dev/null ||
        fail "bubblewrap is needed to run anything in a sandbox and bwrap was not found; type: sudo apt-get install bubblewrap"
}

# Only the tests need it: they have systemd look at the unit that `agentos service` writes.
systemd() {
    command -v systemd-analyze >/dev/null && return
    apt_install systemd && command -v systemd-analyze >/dev/null ||
        fail "systemd-analyze was not found, which the tests of the unit need; type: sudo apt-get install systemd"
}

# Only the tests need it: they look at the page as a person does.
chromium() {
    type -P chromium >/dev/null && return  # `command -v` would find this function
    apt_install chromium && type -P chromium >/dev/null ||
        fail "chromium was not found, which the tests of the page need; type: sudo apt-get install chromium"
}

# Only the tests need it: they run a server of their own. Debian keeps initdb off the PATH.
postgres() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return
    apt_install postgresql && compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
        fail "PostgreSQL was not found, which the tests of the ledger there need; type: sudo apt-get install postgresql"
}

# Only the tests need it: they cut the network between hosts, each a namespace of its own.
network() {
    type -P nft >/dev/null && type -P ip >/dev/null && return
    apt_install nftables iproute2 && type -P nft >/dev/null && type -P ip >/dev/null ||
        fail "ip or nft was not found, which the tests of cut networks need; type: sudo apt-get install iproute2 nftables"
}

# All that the tests need, what is missing of it in one call of apt-get: each reads the lists anew.
machine() {
    local missing=()
    command -v bwrap >/dev/null || missing+=(bubblewrap)
    command -v systemd-analyze >/dev/null || missing+=(systemd)
    type -P chromium >/dev/null || missing+=(chromium)
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
    type -P nft >/dev/null && type -P ip >/dev/null || missing+=(nftables iproute2)
    command -v dockerd >/dev/null || missing+=(docker.io ca-certificates)
    [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}" || true  # each of these says what is still missing
    bubblewrap
    systemd
    chromium
    postgres
    network
}

case ${1:-} in
    environment) environment "$2" ;;
    bubblewrap) bubblewrap ;;
    systemd) systemd ;;
    chromium) chromium ;;
    postgres) postgres ;;
    network) network ;;
    machine) machine ;;
    *) fail "expected 'environment DIR', 'bubblewrap', 'systemd', 'chromium', 'postgres', 'network' or 'machine', got '${1:-}'" ;;
esac
