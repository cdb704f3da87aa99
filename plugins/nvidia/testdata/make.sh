#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the cubins of this folder. nvcc and nvlink are of CUDA 13.5 (nvidia-cuda-nvcc of PyPI), clang of LLVM 22, and
# PTXAS12 is ptxas of CUDA 12.9 (nvidia-cuda-nvcc-cu12).
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for arch in 75 90 120; do
	nvcc -arch=sm_$arch -cubin -o calls$arch.cubin calls.cu
done
for arch in 75 90; do
	nvcc -arch=sm_$arch -rdc=true -cubin -o "$work/a.o" linked.cu
	nvcc -arch=sm_$arch -rdc=true -DOTHER -cubin -o "$work/b.o" linked.cu
	nvlink -arch=sm_$arch "$work/a.o" "$work/b.o" -o linked$arch.cubin
done
# The name of the folder is in the debug information: another one of the same length.
cp debug.cu "$work"
(cd "$work" && nvcc -arch=sm_90 -G -cubin -o debug90.cubin debug.cu)
sed "s|$work|/home/you/cuda/test|g" "$work/debug90.cubin" >debug90.cubin
clang-22 -x cuda --cuda-gpu-arch=sm_90 --cuda-feature=+ptx78 --cuda-device-only -nocudainc -nocudalib -fdebug-compilation-dir=/home/you/cuda -g -O0 -S -o "$work/clang.ptx" clang.cu
ptxas -g -arch=sm_90 "$work/clang.ptx" -o clang90.cubin
# CUDA 12 compiles for older processors, whose calls keep return addresses to themselves.
nvcc -arch=sm_75 -ptx -o "$work/calls.ptx" calls.cu
sed 's/^\.version.*/.version 7.0/;s/^\.target.*/.target sm_61/' "$work/calls.ptx" >"$work/calls61.ptx"
"${PTXAS12:-ptxas}" -g -arch=sm_61 "$work/calls61.ptx" -o calls61.cubin
sed 's/^\.version.*/.version 7.0/;s/^\.target.*/.target sm_70/' "$work/calls.ptx" >"$work/calls70.ptx"
"${PTXAS12:-ptxas}" -arch=sm_70 "$work/calls70.ptx" -o calls70.cubin
