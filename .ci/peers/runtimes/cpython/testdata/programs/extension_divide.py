# SPDX-License-Identifier: Apache-2.0
import threading

import calls

import truth


def run():
    truth.expect_crash()
    calls.divide()


thread = threading.Thread(target=run)
thread.start()
thread.join()
