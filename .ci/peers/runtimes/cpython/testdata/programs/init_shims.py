# SPDX-License-Identifier: Apache-2.0
import truth


class Point:
    def __init__(self, x, last):
        self.x = x
        if last:
            truth.end()


class Line:
    def __init__(self, last):
        self.a = Point(1, False)
        self.b = Point(2, last)


def make(last):
    return Line(last)


for n in range(3000):
    make(n == 2999)
