#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes toy.snapshot anew: of a static executable, in a folder and with an environment of their own, so that it holds
# nothing of the machine it was made on. UNWINDD names the unwindd that writes it. Needs what build.sh does, the C
# library's static archive, and a kernel.core_pattern of "core".
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=/srv/toy
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT
cp "$here"/toy.[ch] "$here/paint.toy" "$work"
"$here/build.sh" "$work"
cd "$work"
gcc -O1 -g -fno-optimize-sibling-calls -static -fno-pie -no-pie "-ffile-prefix-map=$work=." -Wl,--build-id -o toy toy.c -pthread
(ulimit -c unlimited && exec env -i ./toy paint.toy) || true
rm -f "$here/toy.snapshot"
"${UNWINDD:-unwindd}" snapshot core* --plugin-dir . --files -o "$here/toy.snapshot"
chmod 644 "$here/toy.snapshot"
