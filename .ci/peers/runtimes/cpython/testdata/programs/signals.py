# SPDX-License-Identifier: Apache-2.0
import os
import signal

import truth


def handler(number, frame):
    if number == signal.SIGUSR1:
        os.kill(os.getpid(), signal.SIGUSR2)
        for _ in range(1000):
            pass
    else:
        truth.end()


def work():
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(1000000):
        pass


signal.signal(signal.SIGUSR1, handler)
signal.signal(signal.SIGUSR2, handler)
work()
