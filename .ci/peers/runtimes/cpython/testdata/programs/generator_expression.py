# SPDX-License-Identifier: Apache-2.0
import truth


def check(n):
    if n == 4:
        truth.end()
    return n < 10


def run():
    return all(check(n) for n in range(10)) and sum(n for n in range(5))


run()
