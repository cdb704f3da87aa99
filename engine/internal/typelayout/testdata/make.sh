#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes types.elf anew. Needs g++.
set -eu
cd "$(dirname "$0")"
g++ -g -O0 -shared -fPIC -nostdlib -ffile-prefix-map="$PWD=/types" -Wl,--build-id=none -o types.elf types.cc
objcopy --remove-section=.comment --remove-section=.note.gnu.property types.elf
