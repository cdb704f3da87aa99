#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# values.sh NAME MODULE COMMAND...: makes the fixture values-NAME.gz of values.py, which COMMAND executes. MODULE is the file that has
# the runtime. The command is executed in an empty environment; where it is in a root of its own, values.py has to be at
# /example there, and ROOT is that root.
set -eu
name=$1 module=$(realpath "$2")
shift 2
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "${ROOT:-}/example"
cp "$here/values.py" "${ROOT:-}/example/"
mkfifo "$work/in"
(cd "$work" && ulimit -c unlimited && exec env -i PATH=/usr/bin:/bin VALUES=/example/reprs PYTHONDONTWRITEBYTECODE=1 ${ROOT:+/usr/sbin/chroot "$ROOT"} "$@" /example/values.py <"$work/in" >"$work/out") &
exec 3>"$work/in"
for _ in $(seq 600); do grep -q ready "$work/out" && break || sleep 0.1; done
pid=$(sed -n 's/^ready //p' "$work/out")
cat "/proc/$pid/maps" >"$work/maps"
echo 0x7f >"/proc/$pid/coredump_filter"
kill -ABRT "$pid"
wait || true
core=$(ls "$work"/core* "${ROOT:-/nowhere}"/core* "${ROOT:-/nowhere}"/example/core* 2>/dev/null | head -1)
cd "$here/.."
go test -run 'TestRecord$' . -record.core="$core" -record.module="$module" -record.maps="$work/maps" -record.want="${ROOT:-}/example/reprs" -record.into="$here/values-$name.gz"
rm -f "$core"
ls -l "$here/values-$name.gz"
