#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes unwind-arm64, unwind-x86_64 and their object files of unwind.c, with LLVM 22.
set -e
cd "$(dirname "$0")"
for arch in arm64 x86_64; do
	clang-22 -target $arch-apple-macos13 -O1 -fomit-frame-pointer -c -o unwind.o unwind.c
	ld64.lld-22 -arch $arch -platform_version macos 13.0 13.0 -undefined dynamic_lookup -o unwind-$arch unwind.o
	mv unwind.o object-$arch
done
