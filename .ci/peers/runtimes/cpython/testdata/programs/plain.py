# SPDX-License-Identifier: Apache-2.0
import truth


def inner(value):
    text = "x" * value
    truth.end()
    return text


def outer():
    return inner(3)


outer()
