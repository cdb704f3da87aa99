#!/bin/sh
# make.sh: the snapshots of values.c, crashed under qemu, and what gdb says of its variables.
# Needs clang-22, ld.lld-22, qemu-user and gdb-multiarch 13. gdb takes clang's numbers of
# the registers of us and k on POWER, which the ABI does not have, for others.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cp values.c snapshot.py "$work"
port=45210
for machine in s390x:s390x-linux-gnu ppc64:powerpc64-unknown-linux-musl ppc64le:powerpc64le-linux-gnu; do
	name=${machine%%:*}
	(cd "$work" && clang-22 --target="${machine#*:}" -O2 -g -ffreestanding -fno-stack-protector -fno-pic -fdebug-compilation-dir=. -c values.c -o values.o)
	ld.lld-22 -static -o "$work/values" "$work/values.o"
	port=$((port + 1))
	(cd "$work" && ulimit -c 0 && qemu-"$name" -g $port ./values >/dev/null 2>&1) &
	sleep 1
	(cd "$work" && NAME=$name gdb-multiarch -q -batch -ex "target remote :$port" -ex continue -ex 'source snapshot.py' \
		-ex 'info args' -ex up -ex 'info locals' -ex kill values) > "$work/out" 2>&1
	echo "== $name"
	sed -n '/^ch = /,/^Kill/{/^#1\|^41\|Kill\|Inferior/!p}' "$work/out" | grep -v 'optimized out' 
	mv "$work/$name.snapshot" .
done
