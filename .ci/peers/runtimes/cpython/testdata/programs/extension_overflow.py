# SPDX-License-Identifier: Apache-2.0
import calls

import truth


def down(n):
    if n == 0:
        calls.overflow()
    return down(n - 1)


truth.expect_crash()
down(20)
