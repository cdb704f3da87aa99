# SPDX-License-Identifier: Apache-2.0
import functools

import truth


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


class Counted:
    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self, *args):
        self.count += 1
        return self.function(*args)


@functools.lru_cache(maxsize=None)
@Counted
@logged
def compute(n):
    if n == 0:
        truth.end()
        return 0
    return compute(n - 1)


@functools.singledispatch
def handle(value):
    return compute(5)


@handle.register(int)
def handle_int(value):
    return handle(str(value))


functools.partial(handle, 3)()
