# SPDX-License-Identifier: Apache-2.0
import sys
import threading
from functools import partial

import truth

sys.setrecursionlimit(5000)
threading.stack_size(512 << 20)


def down(n):
    if n == 0:
        truth.end()
        return 0
    return max([n - 1], key=down)


thread = threading.Thread(target=partial(down, 150))
thread.start()
thread.join()
