#!/bin/sh
# One command: PostgreSQL, a daemon and three workers as containers. What it makes (a certificate, a password, three
# tokens) lies in secrets/ and is used again. Ended by `docker compose down`; with `--volumes` the home goes too.
set -eu
umask 077
cd "$(dirname "$0")"
compose=${COMPOSE:-docker compose}
mkdir -p secrets
[ -s secrets/database ] || openssl rand -hex 24 >secrets/database
echo "postgres:5432:agentos:agentos:$(cat secrets/database)" >secrets/pgpass
[ -s secrets/key.pem ] || openssl req -x509 -newkey rsa:3072 -nodes -days 365 -subj /CN=control \
    -addext subjectAltName=DNS:control -keyout secrets/key.pem -out secrets/certificate.pem 2>/dev/null
if [ -z "$(docker images -q agentos)" ]; then
    git -C ../.. archive HEAD | docker build -t agentos ${BASE:+--build-arg BASE="$BASE"} -f examples/cluster/Dockerfile -
fi
$compose up -d postgres control
until $compose exec -T control agentos daemon status >/dev/null 2>&1; do sleep 1; done
for name in one two three; do
    [ -s "secrets/token-$name" ] || $compose exec -T control agentos token add "$name" --role worker --json |
        sed -n 's/.*"token": "\([^"]*\)".*/\1/p' >"secrets/token-$name"
done
$compose up -d
until [ "$($compose exec -T control agentos cluster status --json | grep -c '"state": "works"')" = 3 ]; do sleep 1; done
$compose exec -T control agentos cluster status
