# SPDX-License-Identifier: Apache-2.0
import truth


def stop(n):
    if n == 2:
        truth.end()
    return n


def lists():
    return [stop(n) for n in range(3)]


def sets():
    return {n: {m for m in [len(lists())]} for n in range(2)}


print([value for value in (sets() for _ in range(2))])
