#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the files of this folder with clang, lld, dsymutil and llvm-lipo, version 22.
set -e
cd "$(dirname "$0")"
export ZERO_AR_DATE=1
for arch in arm64 x86_64; do
	for source in calls.c main.m; do
		clang-22 -target $arch-apple-macos13 -O1 -g -fdebug-compilation-dir=/src -ffile-prefix-map="$PWD"=/src -c $source -o "${source%.*}-$arch.o"
	done
	rm -f libcalls-$arch.a
	llvm-ar-22 --format=darwin rcD libcalls-$arch.a calls-$arch.o
	ld64.lld-22 -arch $arch -platform_version macos 13.0 13.0 -undefined dynamic_lookup -oso_prefix . main-$arch.o libcalls-$arch.a -o app-$arch
	(cd /; dsymutil-22 --oso-prepend-path "$OLDPWD" "$OLDPWD/app-$arch" -o "$OLDPWD/app-$arch.dSYM")
done
llvm-lipo-22 -create app-arm64 app-x86_64 -output app
mkdir -p app.dSYM/Contents/Resources/DWARF
llvm-lipo-22 -create app-arm64.dSYM/Contents/Resources/DWARF/app-arm64 app-x86_64.dSYM/Contents/Resources/DWARF/app-x86_64 \
	-output app.dSYM/Contents/Resources/DWARF/app
rm -r app-*.dSYM app-arm64 app-x86_64 calls-*.o
# app-*.sym are what dump_syms 2.3.9 writes, the one in Rust (cargo install dump_syms).
if command -v dump_syms >/dev/null; then
	for arch in arm64 x86_64; do
		dump_syms --inlines --arch $arch -o app-$arch.sym app app.dSYM/Contents/Resources/DWARF/app
	done
fi
