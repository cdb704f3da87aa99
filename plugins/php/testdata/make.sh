#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the recordings anew, in /example/php, with an environment of their own, so that they hold nothing of the machine
# that they were made on. Needs the executables that the command php of .ci/peers/runtimes has fetched, a
# kernel.core_pattern of "core", and gdb.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
programs=$here/../../../.ci/peers/runtimes/php/programs
cache=${XDG_CACHE_HOME:-$HOME/.cache}/unwindd-peers/php
work=/example/php
[ ! -e "$work" ] || { echo "$work exists" >&2; exit 1; }
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
cp "$programs"/* "$here"/*.php "$work"
cd "$work"

# record NAME: runs a program up to its trace, and ends it. thrown ends where an exception is set: EG(exception).
record() {
	local name=$1
	rm -f core* trace
	local php=(env -i TRACE=trace TZ=UTC LD_LIBRARY_PATH=/example/php/lib ./bin/php -n -d zend.exception_ignore_args=1 "${name%-*}.php")
	if [ "${name%-*}" = thrown ]; then
		gdb -batch -ex 'set startup-with-shell off' -ex 'set breakpoint pending on' -ex 'break php_request_startup' -ex run \
			-ex 'watch *(long *)((char *)&executor_globals + 864)' -ex continue -ex 'gcore core' --args "${php[@]}" >out 2>&1
	else
		(ulimit -c unlimited && exec "${php[@]}" >out 2>&1) &
		local pid=$!
		for _ in $(seq 1200); do [ -e trace ] && break || sleep 0.05; done
		sleep 0.3
		kill -ABRT "$pid"
		wait "$pid" || true
	fi
	(cd "$here/.." && TRACE=$work/trace CORE=$(echo "$work"/core*) TO=$here/$name.json.gz go test -trimpath -count=1 -tags record -run '^TestRecord$' .)
}

for version in amazon-linux-2-v82 amazon-linux-2-v74 amazon-linux-2-v83 amazon-linux-2023-v84 almalinux-9-v85; do
	rm -rf bin lib; mkdir bin
	cp "$cache/@libphp+$version/package/native/php/php" bin
	cp -r "$cache/@libphp+$version/package/native/lib" lib
	number=${version#*-v}
	list="references generators"
	if [ "$number" = 82 ]; then
		list="$list fibers fatal loop thrown"
	fi
	for name in $list; do
		record "$name-${number:0:1}.${number:1}"
	done
done
