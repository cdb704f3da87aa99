#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes base and new: recordings of two versions of work.c. In the new one parse takes twice as long, and hash is
# called digest. Needs gcc and perf, and to be root.
set -e
cd "$(dirname "$0")"
if [ "$1" != inside ]; then
	exec unshare -u sh -c 'hostname example; exec "$0" inside' "./$(basename "$0")"
fi
for version in base new; do
	flags="-DPARSE=12000000 -DHASH=hash"
	[ $version = base ] || flags="-DPARSE=24000000 -DHASH=digest"
	mkdir -p /tmp/example
	gcc -O0 -g0 -fcf-protection=none -fno-asynchronous-unwind-tables -nostdlib -static -no-pie \
		-Wl,--build-id=sha1 -Wl,-z,noseparate-code -Wl,-z,norelro $flags work.c -o /tmp/example/work
	perf record -q -F 497 -e major-faults:u -e cpu-clock:u -e dummy:u --sample-cpu --call-graph fp --no-buildid-cache \
		-o $version/perf.data /tmp/example/work
	mv /tmp/example/work $version/work
done
chmod 644 base/perf.data new/perf.data
rm -rf /tmp/example base/perf.data.old new/perf.data.old
