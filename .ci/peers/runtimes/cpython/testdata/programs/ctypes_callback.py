# SPDX-License-Identifier: Apache-2.0
import ctypes

import truth

libc = ctypes.CDLL(None)
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))


def compare(a, b):
    if depth:
        truth.end()
    return run()


def run():
    global depth
    depth += 1
    array = (ctypes.c_int * 4)(4, 2, 3, 1)
    libc.qsort(array, 4, ctypes.sizeof(ctypes.c_int), kind(compare))
    return 0


depth = -1
run()
