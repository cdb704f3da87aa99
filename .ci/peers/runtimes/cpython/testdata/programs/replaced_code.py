# SPDX-License-Identifier: Apache-2.0
import truth


def original():
    truth.end()


if hasattr(original.__code__, "replace"):
    original.__code__ = original.__code__.replace(co_name="renamed", co_filename="", co_firstlineno=77)
original()
