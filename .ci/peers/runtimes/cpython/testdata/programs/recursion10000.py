# SPDX-License-Identifier: Apache-2.0
import sys
import threading

import truth

sys.setrecursionlimit(30000)
threading.stack_size(512 << 20)


def down(n):
    if n == 0:
        truth.end()
        return 0
    return 1 + down(n - 1)


thread = threading.Thread(target=down, args=(10000,), name="deep")
thread.start()
thread.join()
