#!/bin/sh
# Makes samples.dat, with CUPTI of CUDA 12.9 (PyPI: nvidia-cuda-cupti-cu12 12.9.79, whose folder CUPTI
# is) and the headers of CUDA (PyPI: nvidia-cuda-runtime, whose folder of headers CUDA_INCLUDE is).
# CUDA 13.5's library writes the same bytes. No GPU is needed.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
g++ -I"$CUPTI/include" -I"$CUDA_INCLUDE" samples.cc -o "$work/samples" -L"$CUPTI/lib" -l:libpcsamplingutil.so
rm -f samples.dat
LD_LIBRARY_PATH=$CUPTI/lib "$work/samples" samples.dat
rm -r "$work"
