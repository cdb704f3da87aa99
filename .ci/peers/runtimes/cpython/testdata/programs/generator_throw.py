# SPDX-License-Identifier: Apache-2.0
import truth


def inner():
    try:
        yield 1
    except ValueError:
        truth.end()
    finally:
        pass


def outer():
    yield from inner()


g = outer()
next(g)
g.throw(ValueError("thrown"))
