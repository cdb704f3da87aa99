# SPDX-License-Identifier: Apache-2.0
# Compiles kernels of Triton for processors, without a GPU: python3 kernels.py FOLDER 80 90 ...
import os
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def smooth(x, weight):
    return x * weight + tl.exp(-x * x)


@triton.jit
def normal(x, n: tl.constexpr):
    mean = tl.sum(x, axis=0) / n
    return (x - mean) / tl.sqrt(tl.sum((x - mean) * (x - mean), axis=0) / n + 1e-5)


@triton.jit
def scale(source, target, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(source + at, mask=at < n, other=0.0)
    tl.store(target + at, smooth(x, factor), mask=at < n)


@triton.jit
def rows(source, target, n, factor, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(source + row * n + at, mask=at < n, other=-float("inf"))
    x = smooth(normal(x, BLOCK), factor)
    largest = tl.max(x, axis=0)
    e = tl.exp(x - largest)
    tl.store(target + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def product(source, target, n, factor, BLOCK: tl.constexpr):
    at, other = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    sums = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, n, BLOCK):
        a = tl.load(source + at * n + k + other)
        b = tl.load(source + (k + at) * n + other)
        sums += tl.dot(a, b)
    tl.store(target + at * n + other, smooth(sums, factor))


def main():
    folder, processors = sys.argv[1], sys.argv[2:]
    signature = {"source": "*fp32", "target": "*fp32", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"}
    for processor in processors:
        for kernel, sizes in ((scale, (128, 1024)), (rows, (256, 1024)), (product, (16, 32, 64))):
            for size in sizes:
                source = ASTSource(fn=kernel, signature=signature, constexprs={"BLOCK": size})
                made = triton.compile(source, target=GPUTarget("cuda", int(processor), 32))
                name = f"triton-{kernel.fn.__name__}{size}-sm_{processor}.cubin"
                with open(os.path.join(folder, name), "wb") as out:
                    out.write(made.asm["cubin"])


main()
