#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the plugin: unwindd-arch-toy in a folder, or here. Needs Debian's g++, libgrpc++-dev,
# libprotobuf-dev, protobuf-compiler and protobuf-compiler-grpc.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-.}
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
protoc --proto_path="$here/../../sdk/archpb" --proto_path="$here" --cpp_out="$work" --grpc_out="$work" \
	--plugin=protoc-gen-grpc="$(command -v grpc_cpp_plugin)" arch.proto stdio.proto
g++ -std=c++17 ${CXXFLAGS:--O1} -s -Wall -Wextra -I"$work" -I"$here" "$here"/*.cc "$work"/*.cc -o "$out/unwindd-arch-toy" -lgrpc++ -lgrpc -lgpr -lprotobuf
