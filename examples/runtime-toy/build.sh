#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the plugin, one file that Python executes, and the interpreter: unwindd-runtime-toy and toy, in a folder or here.
# Needs gcc, and Debian's python3, python3-grpcio, python3-protobuf and protobuf-compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-.}
"$here/../python/build.sh" "$here/plugin" "$out/unwindd-runtime-toy"
gcc -O1 -g -fno-optimize-sibling-calls -Wl,--build-id "-ffile-prefix-map=$here=." -o "$out/toy" "$here/toy.c" -pthread
