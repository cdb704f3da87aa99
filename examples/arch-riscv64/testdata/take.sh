#!/bin/sh -e
# SPDX-License-Identifier: Apache-2.0
# take.sh PROGRAM: runs a program until it crashes, and writes down its registers and its stack.
rm -f stub
timeout 60 qemu-riscv64 -g stub "$1" 2>/dev/null &
for i in $(seq 100); do [ -S stub ] || sleep 0.1; done
gdb-multiarch -batch -ex 'target remote stub' -ex continue -ex 'info registers' \
	-ex "dump binary memory $1.stack \$sp \$sp+128" "$1" >"$1.txt" 2>&1
