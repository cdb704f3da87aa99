# SPDX-License-Identifier: Apache-2.0
import numpy

import truth


class Number:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Number(self.value + other.value)

    def __lt__(self, other):
        truth.end()
        return self.value < other.value


def run():
    values = numpy.array([Number(n) for n in range(5)], dtype=object)
    values = values + values
    values.sort()
    return values


run()
