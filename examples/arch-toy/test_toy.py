# SPDX-License-Identifier: Apache-2.0
"""Run beside the modules: ../python/build.sh toy DIRECTORY/, then python3 -m unittest there."""

import struct
import unittest

from toy import FUNCTION, MAGIC, Toy
from unwindd_plugin import ObjectRequest, Refusal, kit


class Program(kit.Noise):
    """An engine with one program."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data

    def read_section(self, handle: int, name: str = "") -> bytes:
        return self.data


class TestToy(unittest.TestCase):
    def test_architecture(self) -> None:
        kit.check(self, Toy())

    def test_program(self) -> None:
        data = MAGIC + struct.pack("<I", 1) + FUNCTION.pack(b"kernel", 0, 64, 8)
        (function,) = Toy().open_object(Program(data), ObjectRequest(1)).functions
        self.assertEqual(("kernel", 0, 64), (function.name, function.start, function.end))
        for damaged in (b"", data[:-1], data + b"x", MAGIC + b"\xff" * 4):
            self.assertRaises(Refusal, Toy().open_object, Program(damaged), ObjectRequest(1))


if __name__ == "__main__":
    unittest.main()
