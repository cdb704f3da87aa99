#!/bin/sh
# Compiles calls.spv, the module that the documents show; Debian's clang-15 and
# llvm-spirv-15.
set -eu
cd "$(dirname "$0")"
clang-15 -x cl -cl-std=CL2.0 -target spir64 -g -O0 -Xclang -finclude-default-header "-ffile-prefix-map=$PWD=/example" \
	-emit-llvm -c "$PWD/calls.cl" -o calls.bc
llvm-spirv-15 --spirv-debug-info-version=ocl-100 calls.bc -o calls.spv
rm calls.bc
