#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the plugin, one file that Python executes: unwindd-arch-toy in a folder, or here.
# Needs Debian's python3, python3-grpcio, python3-protobuf and protobuf-compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-.}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/toy/*.py "$work"
protoc --proto_path="$here/../../sdk/archpb" --python_out="$work" arch.proto
/usr/bin/python3 -m zipapp "$work" -p /usr/bin/python3 -o "$out/unwindd-arch-toy"
