#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes Notes.app.dSYM anew: the debug information of notes.c as a program for macOS on arm64. The report, notes.ips,
# was written by hand in the form that Apple documents: its UUID and offsets are the program's, which
#   llvm-dwarfdump-22 --uuid Notes.app.dSYM
#   llvm-objdump-22 -d notes
# show. Needs clang-22, ld64.lld-22 and dsymutil-22.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
cp "$here/notes.c" "$work"
cd "$work"
clang-22 -target arm64-apple-macos13 -O1 -fno-optimize-sibling-calls -g -ffile-prefix-map="$work=/example" -c notes.c
ld64.lld-22 -arch arm64 -platform_version macos 13.0 13.0 -undefined dynamic_lookup notes.o -o Notes
dsymutil-22 Notes -o Notes.app.dSYM
rm -rf "$here/Notes.app.dSYM" Notes.app.dSYM/Contents/Resources/Relocations
mv Notes.app.dSYM "$here"
llvm-dwarfdump-22 --uuid "$here/Notes.app.dSYM"
llvm-objdump-22 -d --no-show-raw-insn Notes
rm -rf "$work"
