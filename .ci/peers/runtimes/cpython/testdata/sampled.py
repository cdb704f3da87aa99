# SPDX-License-Identifier: Apache-2.0
"""Logs what it calls into a file that it shares, while it runs.

Each thread has 64 words: how many functions it is in, and which, by their order in this file. The last word is the ID of
the thread. A line with "outside" is executed while the function may not be in the log; one with "-> name" calls it.
"""
import mmap
import os
import random
import sys
import threading

WORDS, THREADS = 64, 3
file = open(os.path.join(os.environ["TRUTH_FOLDER"], "calls.log"), "w+b")
file.truncate(8 * WORDS * THREADS)
view = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")


def loop(base):
    view[base + 1 + view[base]] = 1; view[base] += 1  # outside
    view[base + 63] = threading.get_native_id()
    choose = random.Random(base).choice
    calls = [alpha, beta, by_key, listed, made, pulled]
    while True:
        choose(calls)(base, 4)  # -> alpha beta by_key listed made pulled


def alpha(base, n):
    view[base + 1 + view[base]] = 2; view[base] += 1  # outside
    if n:
        beta(base, n - 1)  # -> beta
        made(base, n - 1)  # -> made
    view[base] -= 1  # outside
    return n  # outside


def beta(base, n):
    view[base + 1 + view[base]] = 3; view[base] += 1  # outside
    total = 0
    for i in range(n):
        total += pulled(base, i)  # -> pulled
    view[base] -= 1  # outside
    return total  # outside


def by_key(base, n):
    view[base + 1 + view[base]] = 4; view[base] += 1  # outside
    found = max((base,), key=key)  # -> key
    view[base] -= 1  # outside
    return found  # outside


def key(base):
    view[base + 1 + view[base]] = 5; view[base] += 1  # outside
    alpha(base, 2)  # -> alpha
    view[base] -= 1  # outside
    return base  # outside


def listed(base, n):
    view[base + 1 + view[base]] = 6; view[base] += 1  # outside
    found = [alpha(base, 1) for _ in range(n)]  # -> alpha
    view[base] -= 1  # outside
    return found  # outside


class Made:
    def __init__(self, base, n):
        view[base + 1 + view[base]] = 7; view[base] += 1  # outside
        self.value = beta(base, n)  # -> beta
        view[base] -= 1  # outside


def made(base, n):
    view[base + 1 + view[base]] = 8; view[base] += 1  # outside
    value = Made(base, n).value  # -> __init__
    view[base] -= 1  # outside
    return value  # outside


def pulled(base, n):
    view[base + 1 + view[base]] = 9; view[base] += 1  # outside
    total = 0
    for value in numbers(base, n):  # -> numbers
        total += value
    view[base] -= 1  # outside
    return total  # outside


def numbers(base, n):
    for i in range(n):  # outside
        view[base + 1 + view[base]] = 10; view[base] += 1  # outside
        value = inner(base, i)  # -> inner
        view[base] -= 1  # outside
        yield value  # outside


def inner(base, n):
    view[base + 1 + view[base]] = 11; view[base] += 1  # outside
    value = n * n
    view[base] -= 1  # outside
    return value  # outside


sys.setswitchinterval(0.0005)
threads = [threading.Thread(target=loop, args=(n * WORDS,), daemon=True) for n in range(THREADS)]
for thread in threads:
    thread.start()
os.write(1, b"ready %d\n" % os.getpid())
os.read(0, 1)
os._exit(0)
