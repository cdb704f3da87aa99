# SPDX-License-Identifier: Apache-2.0
"""Starts as many threads as its argument says, each deep in calls, which wait."""

import os
import sys
import threading

COUNT = int(sys.argv[1])
ready = threading.Barrier(COUNT + 1)
forever = threading.Event()


def descend(depth):
    if depth > 0:
        return descend(depth - 1)
    ready.wait()
    return forever.wait()


def work():
    return descend(20)


for _ in range(COUNT):
    threading.Thread(target=work, daemon=True).start()
ready.wait()
if sys.argv[2:] == ["wait"]:
    print("waiting", flush=True)
    forever.wait()
os.abort()
