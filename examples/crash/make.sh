#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes server and server.core anew: a static executable and the core of its
# crash. They are built and run in a folder and with an environment of their
# own, so that neither holds anything of the machine they were made on.
# Needs gcc, the C library's static archive, and a kernel.core_pattern of
# "core".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=/srv/example
rm -rf "$work"
mkdir -p "$work"
cp "$here/server.c" "$work"
cd "$work"
gcc -O2 -fno-optimize-sibling-calls -g -static -fno-pie -no-pie \
	-ffile-prefix-map="$work=/example" -Wl,--build-id -o server server.c -pthread
(ulimit -c unlimited && exec env -i ./server) || true
core=$(ls core* | head -n 1)
cp server "$here/server"
cp "$core" "$here/server.core"
chmod 644 "$here/server.core"
rm -rf "$work"
ls -l "$here"
