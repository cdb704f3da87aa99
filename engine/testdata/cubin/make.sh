#!/bin/sh
# Makes the fat binary of this folder, and the lines that nvdisasm has for each of its instructions,
# with nvcc, cuobjdump and nvdisasm of CUDA 13.5 (PyPI: nvidia-cuda-nvcc, nvidia-cuda-cuobjdump and
# nvidia-cuda-nvdisasm 13.5). No GPU is needed. The path of the source is in the file, so that is
# /example/kernels.cu.
set -eu
cd "$(dirname "$0")"
here=$PWD
mkdir -p /example
cp kernels.cu /example
(cd /example && nvcc -lineinfo -Xfatbin=-compress-all -fatbin -arch=sm_90 kernels.cu -o "$here/kernels.fatbin")
work=$(mktemp -d)
(cd "$work" && cuobjdump -xelf all "$here/kernels.fatbin" >/dev/null && nvdisasm -gi -c ./*.cubin) |
	grep -E '^\.text|//## File|^ +/\*[0-9a-f]{4}\*/' >kernels.lines
rm -r "$work"
