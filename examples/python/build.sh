#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a plugin of the modules in a folder, among them __main__.py, and of unwindd_plugin: one file
# that Python executes. Needs Debian's python3, python3-grpcio, python3-protobuf and protobuf-compiler.
#
#   build.sh FOLDER unwindd-arch-NAME    the plugin
#   build.sh FOLDER DIRECTORY/           the modules in a directory, for mypy, tests and debuggers
set -eu
here=$(cd "$(dirname "$0")" && pwd)
modules=$1
out=$2
case $out in
*/) work=$out ;;
*)
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	;;
esac
mkdir -p "$work/unwindd_plugin" "$(dirname "$out")"
cp "$here"/unwindd_plugin/*.py "$work/unwindd_plugin"
cp "$modules"/*.py "$work"
protoc --proto_path="$here/../../sdk/archpb" --python_out="$work/unwindd_plugin" --pyi_out="$work/unwindd_plugin" arch.proto
case $out in
*/) cp "$here/mypy.ini" "$work" ;;
*) /usr/bin/python3 -m zipapp "$work" -p /usr/bin/python3 -o "$out" ;;
esac
