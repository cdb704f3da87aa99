# SPDX-License-Identifier: Apache-2.0
import sys

import truth

source = """
def check(value):
    match value:
        case [first, *rest] if (n := len(rest)) > 1:
            return check(rest)
        case [one, two]:
            stop()
        case _:
            pass

check([1, 2, 3, 4])
"""
exec(source if sys.version_info >= (3, 10) else "stop()", {"stop": truth.end})
