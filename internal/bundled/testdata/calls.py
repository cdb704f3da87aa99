# SPDX-License-Identifier: Apache-2.0
"""A program whose calls a reader finds in its text: each line calls what its name says, by threads and generators."""

import json
import sys
import threading


def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def first(n):
    return leaf(n)


def second(n):
    a = leaf(n)
    return a + third(n)


def third(n):
    return leaf(n) + \
        first(n)


def produce(n):
    for i in range(n):
        yield leaf(i)


def consume(n):
    for value in produce(n):
        leaf(value % 7)


class Encoder:
    def encode(self, n):
        return json.dumps({"n": n}, default=self.default)

    def default(self, n):
        return leaf(5)


def recurse(n):
    if n == 0:
        return leaf(300)
    return recurse(n - 1)


def once(n):
    first(n)
    second(n)
    consume(n // 10)
    Encoder().encode(n)
    recurse(n % 60)


def short():
    for _ in range(3):
        once(100)


def forever():
    n = 0
    while True:
        once(100 + n)
        n = (n + 1) % 300


def churn():
    while True:
        thread = threading.Thread(target=short)
        thread.start()
        thread.join()


for _ in range(int(sys.argv[1])):
    threading.Thread(target=forever, daemon=True).start()
print("ready", flush=True)
churn()
