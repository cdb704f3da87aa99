# SPDX-License-Identifier: Apache-2.0
"""A program of many threads that wait in deep stacks: deep.py THREADS FRAMES"""

import sys
import threading

over = threading.Event()
waiting = threading.Semaphore(0)


def deep(n):
    if n == 0:
        waiting.release()
        over.wait()
        return 0
    return deep(n - 1) + 1


threads, frames = int(sys.argv[1]), int(sys.argv[2])
for number in range(threads):
    threading.Thread(target=deep, args=(frames,), name=f"worker {number}", daemon=True).start()
for _ in range(threads):
    waiting.acquire()
print("ready", flush=True)
over.wait()
