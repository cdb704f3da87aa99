# SPDX-License-Identifier: Apache-2.0
import truth


class Number:
    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return other[self]

    def __getitem__(self, other):
        return other in self

    def __contains__(self, other):
        return self < other

    def __lt__(self, other):
        return bool(len({self}))

    def __hash__(self):
        return int(f"{self}")

    def __format__(self, form):
        truth.end()
        return str(self.value)


def compute(a, b):
    return a + b


compute(Number(1), Number(2))
