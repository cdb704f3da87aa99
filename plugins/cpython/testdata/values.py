# SPDX-License-Identifier: Apache-2.0
"""Stops in a function whose variables have values of many classes, and writes what repr() returns for each into the
file that the variable VALUES names."""
import collections
import dataclasses
import enum
import functools
import json
import os
import threading
import types


class Plain:
    def __init__(self):
        self.a, self.b = 1, "two"

    def method(self):
        return self.a


class Slots:
    __slots__ = ("x", "y", "missing")

    def __init__(self):
        self.x, self.y = 1, [2]


class Both(Slots):
    def __init__(self):
        super().__init__()
        self.z = 3


class Grown(Plain):
    def __init__(self):
        super().__init__()
        for n in range(40):
            setattr(self, "n%d" % n, n)


class Dictionary(Plain):
    def __init__(self):
        super().__init__()
        vars(self)["added"] = None
        del self.a


class Whole(int):
    pass


class Tagged(int):
    def __new__(cls, value):
        self = super().__new__(cls, value)
        self.tag = "tag"
        return self


class Failure(ValueError):
    pass


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Base:
    x: int
    y: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Derived(Base):
    z: dict = None


Pair = collections.namedtuple("Pair", "first second")


def generate():
    yield 1


async def coroutine():
    pass


def write(names):
    attributes = {name: {k: repr(v) for k, v in vars(names[name]).items()} for name in ("o1", "o3", "o4", "o5", "n2")}
    reprs = {name: repr(value) for name, value in names.items()}
    with open(os.environ["VALUES"], "w") as file:
        json.dump({"reprs": reprs, "attributes": attributes, "params": ["first", "more", "rest", "word"], "unset": ["unset"]}, file)


def kept(first, *rest, word=None, **more):
    small, negative, zero, big, bigger = 1, -5, 0, 2 ** 64, -(3 ** 200)
    bit29, bit30, bit31, bit60, bit61 = 2 ** 29 - 1, 2 ** 30, 2 ** 31, 2 ** 60, -(2 ** 61)
    yes, no, nothing, dots, unknown = True, False, None, ..., NotImplemented
    f1, f2, f3, f4, f5, f6, f7, f8 = 1.0, -0.5, 1e16, 1e-5, 0.1, float("inf"), float("nan"), -0.0
    f9, f10, f11 = 123456789012345680.0, 1.5e300, 5e-324
    c1, c2, c3, c4 = 1j, 1 + 2j, -1.5 - 0.5j, complex(0.0, -1)
    s1, s2, s3, s4 = "", "text", "it's", 'both \' and "'
    s5, s6, s7 = "größe\n\t\x00\x7f\x80\xad", "日本\u2028\ue000", "\U0001f40d\U000e0001"
    s8, s9, s10 = "\udc80 surrogate", "\u0378", 'only "'
    b1, b2, b3, b4 = b"", b"bytes\x00\xff'", b"it's \"", bytearray(b"array\n")
    b5 = bytearray()
    l1, l2, l3 = [], [1, "two", [3.0, [None]]], [0] * 50
    l4 = [1]
    l4.append(l4)
    t1, t2, t3, t4 = (), (1,), (1, (2, 3)), (None, True, "x")
    d1, d2, d3 = {}, {"a": 1, "b": [2]}, {1: "x", (2, 3): {4: 5}, None: ...}
    d4 = {"k%d" % n: n for n in range(300)}
    d5 = {n: -n for n in range(300)}
    d6 = dict(d2, removed=1, last=2)
    del d6["removed"]
    d7 = {"self": None}
    d7["self"] = d7
    e1, e2, e3, e4 = set(), {1, 2, 3}, frozenset("abc"), frozenset()
    e5 = set(range(100)) - set(range(20, 90))
    r1, r2, r3 = range(5), range(1, 10, 3), range(10, 0, -1)
    i1, i2 = slice(1, 2), slice(None, None, -1)
    q1, q2, q3 = collections.deque(), collections.deque([1, 2, 3], maxlen=5), collections.deque(range(200))
    q3.popleft()
    o1, o2, o3, o4, o5 = Plain(), Slots(), Both(), Grown(), Dictionary()
    o6 = object()
    w1, w2 = Colour.RED, Level.LOW
    p1, p2, p3, p4 = Base(1, [2]), Derived(1, [2], {"z": Base(3)}), Pair(1, "two"), [Pair(Base(1), None)]
    x1, x2, x3, x4, x5 = ValueError("bad"), KeyError("k"), Failure(1, 2), OSError(2, "No such file", "/x"), StopIteration()
    k1, k2, k3, k4, k5 = int, Plain, Colour, collections.OrderedDict, ValueError
    m1, m2, m3, m4 = kept, len, o1.method, l2.append
    m5 = lambda: first
    m6 = types
    g1, g2 = generate(), coroutine()
    g2.close()
    y1, y2 = types.MappingProxyType({"a": 1}), functools.partial(int, "1")
    n1, n2 = Whole(7), Tagged(8)
    h1, h2, h3, h4 = threading.Lock(), threading.Lock(), threading.RLock(), threading.RLock()
    for lock in (h2, h4, h4):
        lock.acquire()
    captured = [1, 2]
    unset = 1
    del unset

    def inner():
        return captured, first

    a1 = a2 = None
    if numpy:
        a1, a2 = numpy.zeros((2, 3)), numpy.arange(4, dtype="int16")
    write(dict(locals())), os.write(1, b"ready %d\n" % os.getpid()), os.read(0, 1)
    return inner


numpy = None
if "NUMPY" in os.environ:
    import numpy
kept(1, 2, 3, word="w", more=4)
