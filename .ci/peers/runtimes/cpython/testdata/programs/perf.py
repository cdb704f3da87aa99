# SPDX-License-Identifier: Apache-2.0
import sys

import truth


def inner(n):
    if n == 0:
        truth.end()
        return 0
    return max([n - 1], key=inner)


def outer():
    return inner(8)


if hasattr(sys, "activate_stack_trampoline"):
    sys.activate_stack_trampoline("perf")
outer()
