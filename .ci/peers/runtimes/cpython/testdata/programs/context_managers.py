# SPDX-License-Identifier: Apache-2.0
import contextlib

import truth


class Guard:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        truth.end()


@contextlib.contextmanager
def opened():
    with Guard():
        yield 1


def run():
    with contextlib.ExitStack() as stack:
        stack.enter_context(opened())
        raise ValueError("handled by none")


run()
