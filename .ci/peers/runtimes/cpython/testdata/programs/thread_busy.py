# SPDX-License-Identifier: Apache-2.0
import sys
import threading

import truth

done = threading.Event()
sys.setswitchinterval(1000)


def spin():
    done.wait()
    while True:
        pass


for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
truth.end()
