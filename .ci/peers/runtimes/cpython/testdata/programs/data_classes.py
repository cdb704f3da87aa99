# SPDX-License-Identifier: Apache-2.0
import collections
import dataclasses
import enum

import truth


class Colour(enum.Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value):
        truth.end()
        return cls.RED


@dataclasses.dataclass
class Base:
    value: int = 0
    names: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        Colour(2)


class Pair(collections.namedtuple("Pair", "a b")):
    def __new__(cls, a):
        return super().__new__(cls, a, Base(a))


for n in range(100):
    Pair(n)
