# SPDX-License-Identifier: Apache-2.0
import _thread
import time

import truth


def blocked(lock):
    truth.register()
    with lock:
        pass


gate = _thread.allocate_lock()
gate.acquire()
for _ in range(4):
    _thread.start_new_thread(blocked, (gate,))
while len(truth.natives) < 4:
    time.sleep(0.05)
truth.end()
