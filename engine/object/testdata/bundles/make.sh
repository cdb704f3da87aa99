#!/bin/sh
# Makes the bundles of this folder: a plain one, and compressed ones of versions
# 2 and 3. Debian package: clang-tools-22.
set -eu
cd "$(dirname "$0")"
from=../../../../plugins/amdgpu/testdata
bundle() {
	clang-offload-bundler-22 -type=o -bundle-align=64 "$@" \
		-targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--gfx1100,hipv4-amdgcn-amd-amdhsa--gfx90a \
		-input=/dev/null -input="$from/amd_k.gfx1100.co" -input="$from/amd_h.gfx90a.co"
}
bundle -output=plain.hipfb
COMPRESSED_BUNDLE_FORMAT_VERSION=2 bundle -compress -output=v2.hipfb
COMPRESSED_BUNDLE_FORMAT_VERSION=3 bundle -compress -output=v3.hipfb
