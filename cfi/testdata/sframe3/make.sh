#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the files of this folder: sections .sframe of version 3 and .eh_frame, and what
# readelf says of the first. RUN is what runs a tool of binutils 2.47 or later, such as
# s390x-linux-gnu-as; nothing by default. Needs clang (CLANG names another) and gcc-aarch64-linux-gnu too.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
aarch64-linux-gnu-gcc -O2 -fno-inline -fasynchronous-unwind-tables -mbranch-protection=pac-ret+leaf+b-key -S -o "$tmp/aarch64.s" functions.c
${CLANG:-clang} --target=s390x-linux-gnu -O0 -fasynchronous-unwind-tables -S -o - functions.c | sed /addrsig/d >"$tmp/s390x-c.s"
cp x86_64.s s390x.s "$tmp"
one() { # NAME TOOLS
	${RUN:-} "$2-as" --gsframe-3 -o "$tmp/$1.o" "$tmp/$1.s"
	${RUN:-} "$2-ld" -o "$tmp/$1.elf" "$tmp/$1.o"
	${RUN:-} "$2-objcopy" -j .sframe -j .eh_frame "$tmp/$1.elf" "$1.elf"
	${RUN:-} "$2-readelf" --sframe --wide "$1.elf" >"$1.txt"
}
one x86_64 x86_64-linux-gnu
one aarch64 aarch64-linux-gnu
one s390x s390x-linux-gnu
one s390x-c s390x-linux-gnu
