# SPDX-License-Identifier: Apache-2.0
import threading

import truth

gate = threading.Event()


def down(n):
    if n == 0:
        gate.wait()
        return 0
    return down(n - 1)


for n in range(60):
    threading.Thread(target=down, args=(n,), daemon=True).start()
truth.end()
