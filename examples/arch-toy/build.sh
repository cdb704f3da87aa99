#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the plugin, one file that Python executes: unwindd-arch-toy in a folder, or here.
# Needs Debian's python3, python3-grpcio, python3-protobuf and protobuf-compiler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../python/build.sh" "$here/toy" "${1:-.}/unwindd-arch-toy"
