# SPDX-License-Identifier: Apache-2.0
import truth


def down(n):
    if n == 0:
        truth.end()
        return 0
    return 1 + down(n - 1)


down(150)
