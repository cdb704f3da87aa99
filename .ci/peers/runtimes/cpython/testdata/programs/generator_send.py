# SPDX-License-Identifier: Apache-2.0
import truth


def averager():
    total, count = 0, 0
    while True:
        value = yield total
        total += value
        count += 1
        if count == 40:
            truth.end()


def feed(target):
    next(target)
    for value in range(50):
        target.send(value)


feed(averager())
