#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh: the snapshots of internal/subject/testdata/abi.c, crashed under qemu 7.2 in each of
# its modes: at -O0 and -O2, and at -O2 without call frame information. Needs Debian 12's
# gcc-powerpc64le-linux-gnu, gcc-powerpc64-linux-gnu, gcc-s390x-linux-gnu, qemu-user and
# gdb-multiarch.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cp ../../../internal/subject/testdata/abi.c ../../../internal/subject/testdata/bare.h snapshot.py "$work"
flags="-w -g -DBARE -ffreestanding -fno-stack-protector -fno-pie -no-pie -nostdlib -static -Wl,-z,max-page-size=4096 -ffile-prefix-map=$work=."
for machine in ppc64le:powerpc64le ppc64:powerpc64 s390x:s390x; do
	arch=${machine%%:*}
	for build in O0:-O0 O2:-O2 bare:"-O2 -fno-asynchronous-unwind-tables -fno-unwind-tables -g0"; do
		(cd "$work" && "${machine#*:}-linux-gnu-gcc" $flags ${build#*:} -o subject "$work/abi.c" -lgcc)
		for mode in data tail call handler; do
			name=$arch-${build%%:*}-$mode
			again=
			[ $mode != handler ] || again='-ex continue'
			(
				cd "$work"
				rm -f stub
				env -i PATH="$PATH" sh -c "ulimit -c 0; exec timeout 60 qemu-$arch -g stub ./subject $mode" >/dev/null 2>&1 &
				for i in $(seq 100); do [ -S stub ] || sleep 0.1; done
				ARCH=$arch MODE=$mode OUT=$name.snapshot gdb-multiarch -nx -batch -ex 'file subject' -ex 'target remote stub' -ex continue $again \
					-ex 'source snapshot.py' -ex kill >out 2>&1 || cat out
			)
			mv "$work/$name.snapshot" .
		done
	done
done
