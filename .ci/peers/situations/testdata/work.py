# SPDX-License-Identifier: Apache-2.0
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


end = time.time() + 3
while time.time() < end:
    fib(18)
