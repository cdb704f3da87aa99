# SPDX-License-Identifier: Apache-2.0
import truth


class Held:
    def __del__(self):
        truth.abort()


def run():
    held = [Held()]
    held.clear()


run()
