# SPDX-License-Identifier: Apache-2.0
import calls

import truth


def leaf(n):
    if n == 0:
        truth.end()
        return 0
    return calls.call(leaf, n - 1)


calls.twice(lambda: leaf(6))
