#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the fixtures anew: what the plugin reads of processes of several versions, which run programs of
# .ci/peers/runtimes/ruby in folders of their own. RUBY_UBUNTU is the address of a mirror of Ubuntu.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=/example/ruby
rm -rf "$work"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tmp" "$work/programs"
cp "$here"/../../../.ci/peers/runtimes/ruby/testdata/*.rb "$work/programs"
cd "$here/../../../.ci/peers"
go build -o "$work/compare" ./runtimes/ruby
make() {
	TMPDIR=$work/tmp "$work/compare" -rubies "$work" -programs "$work/programs" -versions "$1" -run "^($2)\$" -record "$here"
}
make 2.7 'threads|pending'
make 3.0 rescues
make 3.1 'threads|pending|locals'
make 3.2 operators
make 3.3 'fibers|ractors'
make 3.4 'threads|rescues|locals'
rm -f "$here"/*--*
