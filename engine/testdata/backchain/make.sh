#!/bin/sh
# make.sh: the snapshots of chain.c, crashed under qemu, and the stacks that gdb finds.
# Needs gcc for the three machines, qemu-user and gdb-multiarch 13.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cp chain.c crash.c ../bigendian/snapshot.py "$work"
port=45310
for machine in s390x:s390x-linux-gnu:-mbackchain ppc64:powerpc64-linux-gnu: ppc64le:powerpc64le-linux-gnu:; do
	name=${machine%%:*}
	rest=${machine#*:}
	flags="-O1 -ffreestanding -fno-stack-protector -fno-pic -no-pie -fno-optimize-sibling-calls ${rest#*:}"
	(
		cd "$work"
		# shellcheck disable=SC2086 # flags are words
		"${rest%%:*}-gcc" $flags -fno-asynchronous-unwind-tables -c chain.c
		# shellcheck disable=SC2086
		"${rest%%:*}-gcc" $flags -fasynchronous-unwind-tables -c crash.c
		"${rest%%:*}-gcc" -nostdlib -static -no-pie -o values chain.o crash.o
		"${rest%%:*}-strip" --strip-debug values
	)
	port=$((port + 1))
	(cd "$work" && ulimit -c 0 && qemu-"$name" -g $port ./values >/dev/null 2>&1) &
	sleep 1
	echo "== $name"
	(cd "$work" && NAME=$name gdb-multiarch -q -batch -ex "target remote :$port" -ex continue -ex 'source snapshot.py' \
		-ex bt -ex 'p/x $sp' -ex up -ex 'p/x $sp' -ex up -ex 'p/x $sp' -ex up -ex 'p/x $sp' -ex up -ex 'p/x $sp' -ex kill values) 2>&1 |
		grep '^#\|^\$' | uniq
	mv "$work/$name.snapshot" .
done
