# SPDX-License-Identifier: Apache-2.0
import atexit
import threading

import truth

gate = threading.Event()
threading.Thread(target=gate.wait, daemon=True).start()


@atexit.register
def leave():
    truth.end()


truth.settle()
