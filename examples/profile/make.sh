#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes words and perf.data anew: a static executable and what perf recorded of
# it. They are built and recorded in a folder, with a host name and an
# environment of their own. Needs g++ and perf, and to be root.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=/srv/example
rm -rf "$work"
mkdir -p "$work"
cp "$here/words.cc" "$work"
cd "$work"
g++ -O2 -g -std=c++17 -static -nostdlib -fno-pie -no-pie -fno-stack-protector -fno-exceptions -fno-optimize-sibling-calls \
	-ffile-prefix-map="$work=/example" -Wl,--build-id -o words words.cc
unshare --uts sh -c 'hostname example && exec env -i PATH="$PATH" HOME="$PWD" \
	perf record -q -o perf.data -F 250 --all-user -e cpu-clock,page-faults --call-graph dwarf,1536 -- ./words'
cp words perf.data "$here"
chmod 644 "$here/perf.data"
rm -rf "$work"
ls -l "$here"
