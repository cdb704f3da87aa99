#!/bin/sh -e
# SPDX-License-Identifier: Apache-2.0
# make.sh [FOLDER]: makes crash.snapshot, in this folder or another one. The program has compressed
# instructions and no call frame information. It needs Debian's gcc-riscv64-linux-gnu, qemu-user,
# gdb-multiarch and python3.
here=$(cd "$(dirname "$0")" && pwd)
to=$(cd "${1:-$here}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
riscv64-linux-gnu-gcc -march=rv64gc -O1 -fno-inline -nostdlib -static -fno-asynchronous-unwind-tables -o crash "$here/crash.c"
sh "$here/take.sh" crash
python3 "$here/snapshot.py" crash
cp crash.snapshot "$to/"
