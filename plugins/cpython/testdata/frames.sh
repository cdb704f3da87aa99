#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# frames.sh NAME UNWINDD COMMAND...: makes the fixture frames-NAME.gz of frames.py, which COMMAND executes in an empty
# environment. Where the interpreter is in a root of its own, ROOT is that root.
set -eu
name=$1 unwindd=$2
shift 2
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "${ROOT:-}/example/run"
cp "$here/frames.py" "${ROOT:-}/example/"
rm -f "${ROOT:-}"/example/run/*
(cd "${ROOT:-}/example/run" && ulimit -c unlimited && echo 0x7f >/proc/self/coredump_filter &&
	exec env -i PATH=/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1 ${LIBRARIES:+LD_LIBRARY_PATH=$LIBRARIES} ${ROOT:+/usr/sbin/chroot "$ROOT"} "$@" /example/frames.py /example/run/want) || true
core=$(ls "${ROOT:-}"/example/run/core* "${ROOT:-/nowhere}"/core* 2>/dev/null | head -1)
if [ -n "${ROOT:-}" ]; then # the paths are those of the root
	cp "$unwindd" "$ROOT/example/unwindd"
	mkdir -p "$ROOT"/{proc,tmp,dev}
	[ -e "$ROOT/dev/null" ] || mknod -m 666 "$ROOT/dev/null" c 1 3
	unwindd=/example/unwindd in_root="unshare -m sh -c 'mount -t proc proc \"$ROOT/proc\" && exec /usr/sbin/chroot \"$ROOT\" \"\$@\"' sh"
fi
for call in OpenRuntime ManagedFrames; do
	eval "${in_root:-}" '"$unwindd"' plugin call $call '"${core#"${ROOT:-}"}"' --runtime cpython --request >"$work/$call.json"
done
cd "$here/.."
go test -count=1 -run 'TestRecordFrames$' . -frames.core="$core" -frames.calls="$work" -frames.want="${ROOT:-}/example/run/want" -frames.into="$here/frames-$name.gz"
rm -rf "$core" "${ROOT:-}"/example/run
ls -l "$here/frames-$name.gz"
