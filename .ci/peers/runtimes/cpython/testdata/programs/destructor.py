# SPDX-License-Identifier: Apache-2.0
import truth


class Held:
    def __init__(self, inner):
        self.inner = inner

    def __del__(self):
        if self.inner is None:
            truth.end()


def run():
    chain = None
    for _ in range(5):
        chain = Held(chain)
    chain = 1
    return chain


run()
