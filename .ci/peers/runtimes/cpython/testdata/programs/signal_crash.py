# SPDX-License-Identifier: Apache-2.0
import signal
import time

import truth


def handler(number, frame):
    truth.abort()


signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
time.sleep(1000)
