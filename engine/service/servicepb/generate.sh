#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Generates the Go code of unwindd.proto with protoc and the generators that go.mod
# names as tools. With --check, nothing is written: it fails when what is
# committed is not what would be generated.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/out"
go build -o "$work/bin/" \
	google.golang.org/protobuf/cmd/protoc-gen-go \
	google.golang.org/grpc/cmd/protoc-gen-go-grpc
PATH="$work/bin:$PATH" protoc --proto_path=. \
	--go_out="$work/out" --go_opt=paths=source_relative \
	--go-grpc_out="$work/out" --go-grpc_opt=paths=source_relative \
	unwindd.proto
for f in unwindd.pb.go unwindd_grpc.pb.go; do
	if [ "${1-}" = --check ]; then
		cmp "$work/out/$f" "$f" || {
			echo "engine/service/servicepb/$f is stale: run go generate ./engine/service/servicepb" >&2
			exit 1
		}
	else
		cp "$work/out/$f" "$f"
	fi
done
