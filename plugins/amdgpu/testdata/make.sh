#!/bin/sh
# Compiles the code objects of this folder. Debian packages: clang-22 lld-22.
#
# amd_h.gfx90a.cfi.co has call frame information that inject_cfi.py writes into
# the assembly, since no compiler at hand writes any: in the published encoding
# of the heterogeneous extension, from what each prologue saves. It is not exact
# in the last instructions of epilogues.
set -eu
out=$(cd "$(dirname "$0")" && pwd)
mkdir -p /src
cp "$out"/amd_k.cl "$out"/amd_h.hip /src
cd /src
hip="-x hip --offload-device-only --no-gpu-bundle-output --offload-arch=gfx90a -nogpuinc -nogpulib -g -O2"
clang-22 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -g -O2 -o "$out/amd_k.gfx1100.co" amd_k.cl
clang-22 $hip -o "$out/amd_h.gfx90a.co" amd_h.hip
clang-22 $hip -S -o amd_h.s amd_h.hip
python3 "$out/inject_cfi.py" amd_h.s amd_h.cfi.s 64
clang-22 -target amdgcn-amd-amdhsa -mcpu=gfx90a -x assembler -o "$out/amd_h.gfx90a.cfi.co" amd_h.cfi.s
# What LLVM 23 writes call frame information for. Debian packages: clang-23 lld-23.
for processor in gfx90a gfx942; do
	clang-23 -x hip --offload-device-only --no-gpu-bundle-output --offload-arch=$processor -nogpuinc -nogpulib -w -O1 -fno-ident \
		-o "$out/amd_h.$processor.llvm23.co" amd_h.hip
done
clang-23 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=gfx90a -nogpulib -w -O2 -fno-ident -o "$out/amd_k.gfx90a.llvm23.co" amd_k.cl
