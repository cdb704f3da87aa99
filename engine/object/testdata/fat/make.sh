#!/bin/sh
# Makes the fat binaries of this folder, with nvcc, fatbinary and ptxas of CUDA 13.5 (PyPI:
# nvidia-cuda-nvcc 13.5), in a copy of the folder at /example/gpu. No GPU is needed. fatbinary_test.go has the SHA-256 of the files that
# `cuobjdump -all -xelf all` and `cuobjdump -all -xptx all` take out of each.
set -eu
cd "$(dirname "$0")"
fat() { nvcc -lineinfo -fatbin -gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90a,code=[sm_90a,compute_90a]' "$@"; }
fat -Xfatbin=-compress-mode=none scale.cu -o plain.fatbin
fat -Xfatbin=-compress-all -Xfatbin=-compress-mode=speed scale.cu -o lz4.fatbin
fat -Xfatbin=-compress-all -Xfatbin=-compress-mode=size scale.cu -o zstd.fatbin
fat -Xfatbin=-concat scale.cu -o group.fatbin
nvcc -O1 -rdc=true -gencode 'arch=compute_80,code=[sm_80,lto_80]' -Xfatbin=-compress-all -c scale.cu -o rdc.o
