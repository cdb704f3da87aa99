#!/bin/bash
# Makes an executable for each machine, and the core of its crash. Needs Debian's
# clang-22, lld-22 and qemu-user (7.2), which writes cores as the machine's kernel
# does; the core of i386 is by the kernel of an x86-64 machine whose core_pattern
# is "core". The environment is empty, as it would be in the cores.
set -e
here=$(cd "$(dirname "$0")" && pwd)
rm -rf /tmp/machines && mkdir /tmp/machines && cd /tmp/machines
ulimit -c unlimited
while read -r name target qemu flags; do
	clang-22 --target="$target" $flags -O1 -nostdlib -static -ffreestanding -fno-stack-protector -fno-ident \
		-fuse-ld=lld -Wl,--build-id,-e,_start -o "$name" "$here/crash.c"
	(env -i $qemu "./$name" || true) 2>/dev/null
	[ "$qemu" ] && mv qemu_*.core "$name.core" || mv core "$name.core"
	rm -f core
	bzip2 -9c "$name.core" >"$here/$name.core.bz2"
	cp "$name" "$here/$name"
done <<'MACHINES'
aarch64     aarch64-linux-gnu       qemu-aarch64
aarch64_be  aarch64_be-linux-gnu    qemu-aarch64_be
arm         arm-linux-gnueabi       qemu-arm
armeb       armeb-linux-gnueabi     qemu-armeb
loongarch64 loongarch64-linux-gnu   qemu-loongarch64
mips        mips-linux-gnu          qemu-mips        -fno-pic -mno-abicalls
mipsel      mipsel-linux-gnu        qemu-mipsel      -fno-pic -mno-abicalls
mips64      mips64-linux-gnuabi64   qemu-mips64      -fno-pic -mno-abicalls
mips64el    mips64el-linux-gnuabi64 qemu-mips64el    -fno-pic -mno-abicalls
mipsn32     mips64-linux-gnuabin32  qemu-mipsn32     -fno-pic -mno-abicalls
ppc         powerpc-linux-gnu       qemu-ppc
ppc64       powerpc64-linux-gnu     qemu-ppc64       -mabi=elfv2
ppc64le     powerpc64le-linux-gnu   qemu-ppc64le
s390x       s390x-linux-gnu         qemu-s390x
i386        i386-linux-gnu
MACHINES
