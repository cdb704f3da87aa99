# SPDX-License-Identifier: Apache-2.0
import os
import threading
import warnings

import truth

warnings.simplefilter("ignore")


def run():
    pid = os.fork()
    if pid == 0:
        truth.end()
        os._exit(0)
    os.waitpid(pid, 0)


gate = threading.Event()
threading.Thread(target=gate.wait, daemon=True).start()
thread = threading.Thread(target=run)
thread.start()
thread.join()
